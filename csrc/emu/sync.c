/* What lanes of one warp do together: bar.warp.sync, shfl, vote, match, redux, elect, activemask.
 *
 * Each has a member mask. Nearly always its lanes run together here, and the handler works at once.
 * If some are in other fragments the fragment waits; when the last one arrives, the operands of all are
 * gathered in one frame, the same handler runs there once, and the results go back to each.
 */
#include <string.h>

#include "block.h"
#include "decode.h"
#include "lanes.h"

/* insn.flags */
enum { NEGATED = 1, WIDE = 2, UP = 4, DOWN = 8, BUTTERFLY = 12, MODE = 12 };

/* Destinations d and e, sources a, b, c; the member mask is in slot imm. */
#define MEMBERS(w, i, lane) (U32(w, (i)->imm)[lane])

/* ---- meeting ---- */

enum { MEETING_SLOT = LANES * sizeof(uint64_t) }; /* bytes, of each operand in the common frame */

typedef struct operand_place {
    uint32_t own, common, element;
} operand_place;

static int places(const insn *i, operand_place out[5]) {
    const uint32_t wide = i->flags & WIDE ? 8 : 4;
    const operand_place all[5] = {{i->a, 0, wide},
                                  {i->b, MEETING_SLOT, 4},
                                  {i->c, 2 * MEETING_SLOT, 4},
                                  {i->d, 3 * MEETING_SLOT, 4},
                                  {i->e, 4 * MEETING_SLOT, 4}};
    memcpy(out, all, sizeof all);
    return 5;
}

static void exchange(unsigned char *common, const fragment *f, bool gather) {
    operand_place place[5];
    const int n = places(f->next, place);
    for (int k = 0; k < n; k++)
        for (uint32_t lanes = f->active; lanes; lanes &= lanes - 1) {
            const size_t at = (size_t)first_lane(lanes) * place[k].element;
            unsigned char *own = f->frame->slots + place[k].own + at;
            unsigned char *shared = common + place[k].common + at;
            if (gather) memcpy(shared, own, place[k].element);
            else if (k >= 3) memcpy(own, shared, place[k].element);
        }
}

static bool takes_part(const fragment *f, const insn *i, uint32_t members) {
    return !f->at_barrier && f->waits_for == members && f->next->exec == i->exec;
}

/* Runs the instruction for all waiting fragments that name these members. */
static void meet(warp *w, const insn *i, uint32_t members) {
    unsigned char common[5 * MEETING_SLOT] __attribute__((aligned(64))) = {0};
    unsigned char *const frame = w->frame;
    const uint32_t active = w->active;
    uint32_t together = 0;
    for (const fragment *f = w->waiting; f; f = f->link)
        if (takes_part(f, i, members)) {
            exchange(common, f, true);
            together |= f->active;
        }
    operand_place place[5];
    insn joint = *i;
    places(i, place);
    joint.a = place[0].common, joint.b = place[1].common, joint.c = place[2].common;
    joint.d = place[3].common, joint.e = place[4].common;
    w->frame = common;
    warp_set_active(w, together);
    i->body(w, &joint);
    w->frame = frame;
    warp_set_active(w, active);
    for (fragment *f = w->waiting, *next; f; f = next) {
        next = f->link;
        if (!takes_part(f, i, members)) continue;
        exchange(common, f, false);
        fragment_resume(w, f, f->next + 1);
    }
}

static bool all_here(const warp *w, const insn *i, uint32_t members) {
    uint32_t here = 0;
    for (const fragment *f = w->waiting; f; f = f->link)
        if (takes_part(f, i, members)) here |= f->active;
    return !(members & w->alive & ~here);
}

/* What the loop calls: exec; body is the operation itself on lanes that run together. */
static const insn *exec_collective(warp *w, const insn *i) {
    const uint32_t members = MEMBERS(w, i, first_lane(w->active));
    if (!(members & w->alive & ~w->active)) {
        i->body(w, i);
        return i + 1;
    }
    if (w->active & ~members)
        return warp_fault(w, i, SMK_LAUNCH, w->active & ~members,
                          "the thread's lane is not in the member mask 0x%08x", members);
    fragment *f = w->fragment;
    fragment_wait(w, i, false, members);
    (void)f;
    if (all_here(w, i, members)) {
        meet(w, i, members);
    }
    return w->fragment ? w->fragment->next : fragment_switch(w);
}
