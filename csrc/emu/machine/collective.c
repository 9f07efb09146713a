/* Gathers the lanes of a warp-collective instruction.
 *
 * Nearly always all members are active in one split, and the operation runs at once. If some are
 * in other splits, the split waits. When the last member arrives, the operands of all are copied
 * to a temporary frame, the operation runs there once, and its results are copied back to each
 * split. Lanes that have exited are not waited for.
 */
#include "collective.h"

#include <string.h>

#include "block.h"
#include "../base/lanes.h"

/* The union of the active lanes' member masks, and the active lanes that are not in their own
 * mask. */
static uint32_t members_of(const warp *w, const insn *i, uint32_t *outside) {
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

static operand_slots operand_slots_of(const insn *i) {
    return (operand_slots){{i->a, i->b, i->c, (uint32_t)i->imm, i->d, i->e}};
}

static void copy_operands(unsigned char *gathered_frame, const warp_split *s, int first, int last,
                          bool gather) {
    const operand_slots slots = operand_slots_of(s->next);
    for (int k = first; k < last; k++) {
        const size_t bytes = k == 0 && s->next->flags & COLLECTIVE_WIDE ? 8 : 4;
        for (uint32_t lanes = s->active; lanes; lanes &= lanes - 1) {
            const size_t at = (size_t)first_lane(lanes) * bytes;
            unsigned char *own = s->frame->slots + slots.at[k] + at;
            unsigned char *gathered = gathered_frame + k * OPERAND_BYTES + at;
            memcpy(gather ? gathered : own, gather ? own : gathered, bytes);
        }
    }
}

/* Runs the operation once for the waiting splits of these lanes, and resumes them. */
static void run_gathered(warp *w, const insn *i, uint32_t lanes) {
    unsigned char gathered_frame[OPERANDS * OPERAND_BYTES] __attribute__((aligned(64))) = {0};
    unsigned char *const frame = w->frame;
    const uint32_t active = w->active;
    insn gathered = *i;
    gathered.a = 0, gathered.b = OPERAND_BYTES, gathered.c = 2 * OPERAND_BYTES,
    gathered.imm = 3 * OPERAND_BYTES;
    gathered.d = FIRST_RESULT * OPERAND_BYTES, gathered.e = (FIRST_RESULT + 1) * OPERAND_BYTES;
    for (const warp_split *s = w->waiting; s; s = s->link)
        if (s->active & lanes) copy_operands(gathered_frame, s, 0, FIRST_RESULT, true);
    w->frame = gathered_frame;
    warp_set_active(w, lanes);
    i->body(w, &gathered);
    w->frame = frame;
    warp_set_active(w, active);
    for (warp_split *s = w->waiting, *next; s; s = next) {
        next = s->link;
        if (!(s->active & lanes)) continue;
        copy_operands(gathered_frame, s, FIRST_RESULT, OPERANDS, false);
        split_resume(w, s, s->next + 1);
    }
}

static bool same_operation(const warp_split *s, const insn *i) {
    return s->wait == WAIT_LANES && s->next->body == i->body && s->next->flags == i->flags;
}

/* Lanes of splits that wait at i's operation and whose members all wait there as well: the fixed
 * point of dropping splits with a missing member. */
static uint32_t complete_lanes(const warp *w, const insn *i) {
    uint32_t lanes = FULL, before;
    do {
        before = lanes;
        lanes = 0;
        for (const warp_split *s = w->waiting; s; s = s->link)
            if (same_operation(s, i) && !(s->waits_for & w->alive & ~before) &&
                !(s->active & ~before))
                lanes |= s->active;
    } while (lanes != before);
    return lanes;
}

/* Runs the operation for the lanes that are complete; false: there are none. */
static bool run_if_complete(warp *w, const insn *i) {
    const uint32_t lanes = complete_lanes(w, i);
    if (lanes) run_gathered(w, i, lanes);
    return lanes != 0;
}

const insn *exec_collective(warp *w, const insn *i) {
    uint32_t outside;
    const uint32_t members = members_of(w, i, &outside);
    if (outside) {
        const int lane = first_lane(outside);
        return warp_fault(w, i, SMK_LAUNCH, outside, "lane %d is not in its own member mask 0x%08x",
                          lane, U32(w, i->imm)[lane]);
    }
    if (!(members & w->alive & ~w->active)) {
        i->body(w, i);
        return i + 1;
    }
    const insn *next = split_wait(w, i, WAIT_LANES, members);
    run_if_complete(w, i);
    return next ? next : split_switch(w);
}

void collective_lanes_left(warp *w) {
    for (const warp_split *s = w->waiting; s;)
        s = s->wait == WAIT_LANES && run_if_complete(w, s->next) ? w->waiting : s->link;
}
