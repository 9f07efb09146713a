/* Bringing the lanes of a collective instruction together.
 *
 * Nearly always its members run together anyway, and the operation is done at once. If some are in other
 * splits the warp_split waits; when the last one arrives, the operands of all are gathered in one frame,
 * the operation runs there once, and the results go back to each. Lanes that have exited are not waited
 * for.
 */
#include "collective.h"

#include <string.h>

#include "block.h"
#include "../base/lanes.h"

/* All members that active lanes name, and the lanes that do not name themselves. */
static uint32_t all_members(const warp *w, const insn *i, uint32_t *outside) {
    const uint32_t *mask = U32(w, i->imm);
    uint32_t members = 0;
    *outside = 0;
    for (int l = 0; l < LANES; l++) {
        members |= mask[l] & w->mask[l];
        *outside |= ~mask[l] & w->active & 1u << l;
    }
    return members;
}

enum { OPERANDS = 6, FIRST_RESULT = 4, OPERAND_BYTES = LANES * sizeof(uint64_t) };

typedef struct operand_slots {
    uint32_t at[OPERANDS];
} operand_slots;

static operand_slots slots_of(const insn *i) {
    return (operand_slots){{i->a, i->b, i->c, (uint32_t)i->imm, i->d, i->e}};
}

static void exchange(unsigned char *common, const warp_split *f, int first, int last, bool gather) {
    const operand_slots slots = slots_of(f->next);
    for (int k = first; k < last; k++) {
        const size_t bytes = k == 0 && f->next->flags & COLLECTIVE_WIDE ? 8 : 4;
        for (uint32_t lanes = f->active; lanes; lanes &= lanes - 1) {
            const size_t at = (size_t)first_lane(lanes) * bytes;
            unsigned char *own = f->frame->slots + slots.at[k] + at;
            unsigned char *joint = common + k * OPERAND_BYTES + at;
            memcpy(gather ? joint : own, gather ? own : joint, bytes);
        }
    }
}

/* Runs the operation once for the waiting splits of these lanes. */
static void meet(warp *w, const insn *i, uint32_t together) {
    unsigned char common[OPERANDS * OPERAND_BYTES] __attribute__((aligned(64))) = {0};
    unsigned char *const frame = w->frame;
    const uint32_t active = w->active;
    insn joint = *i;
    joint.a = 0, joint.b = OPERAND_BYTES, joint.c = 2 * OPERAND_BYTES,
    joint.imm = 3 * OPERAND_BYTES;
    joint.d = FIRST_RESULT * OPERAND_BYTES, joint.e = (FIRST_RESULT + 1) * OPERAND_BYTES;
    for (const warp_split *f = w->waiting; f; f = f->link)
        if (f->active & together) exchange(common, f, 0, FIRST_RESULT, true);
    w->frame = common;
    warp_set_active(w, together);
    i->body(w, &joint);
    w->frame = frame;
    warp_set_active(w, active);
    for (warp_split *f = w->waiting, *next; f; f = next) {
        next = f->link;
        if (!(f->active & together)) continue;
        exchange(common, f, FIRST_RESULT, OPERANDS, false);
        split_resume(w, f, f->next + 1);
    }
}

static bool same_operation(const warp_split *f, const insn *i) {
    return !f->at_barrier && f->next->body == i->body && f->next->flags == i->flags;
}

/* Lanes of waiting splits at i's operation whose members are all there too. */
static uint32_t lanes_together(const warp *w, const insn *i) {
    uint32_t together = FULL, before;
    do {
        before = together;
        together = 0;
        for (const warp_split *f = w->waiting; f; f = f->link)
            if (same_operation(f, i) && !(f->waits_for & w->alive & ~before) &&
                !(f->active & ~before))
                together |= f->active;
    } while (together != before);
    return together;
}

static bool settle(warp *w, const insn *i) {
    const uint32_t together = lanes_together(w, i);
    if (together) meet(w, i, together);
    return together != 0;
}

const insn *exec_collective(warp *w, const insn *i) {
    uint32_t outside;
    const uint32_t members = all_members(w, i, &outside);
    if (outside) {
        const int lane = first_lane(outside);
        return warp_fault(w, i, SMK_LAUNCH, outside,
                          "the thread's lane %d is not in its own member mask 0x%08x", lane,
                          U32(w, i->imm)[lane]);
    }
    if (!(members & w->alive & ~w->active)) {
        i->body(w, i);
        return i + 1;
    }
    const insn *next = split_wait(w, i, false, members);
    settle(w, i);
    return next ? next : split_switch(w);
}

void collective_lanes_left(warp *w) {
    for (const warp_split *f = w->waiting; f;)
        f = !f->at_barrier && settle(w, f->next) ? w->waiting : f->link;
}
