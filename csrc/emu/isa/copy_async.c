/* cp.async and its groups.
 *
 * A copy reads global memory at issue, and writes shared memory only at the wait that covers its
 * group. A kernel that forgets to wait sees the old contents, which in fresh shared memory are
 * NaNs. Hardware may read at any time in between. Reading at issue reports faults on the right
 * line, and only a kernel that races with its own copy can tell the difference.
 *
 * Groups are per thread. So each copy records, per lane, how many groups the lane had committed
 * before.
 */
#include "copy_async.h"

#include <stdlib.h>
#include <string.h>

#include "../machine/machine.h"
#include "../base/lanes.h"
#include "memory.h"

/* insn.extra. In the insn itself: a, wide, imm are the destination's address, width is the size in
 * bytes. */
typedef struct copy_form {
    decoded_address source;
    bool has_size, has_ignore, ignore_negated;
    /* frame offsets: the number of bytes to read (the rest becomes zeros), and a predicate that
     * means to read nothing */
    uint32_t size, ignore;
} copy_form;

/* Copies in flight per warp. Beyond that the oldest completes early, which PTX allows. */
enum { MAX_PENDING = 1 << 16 };

/* ---- the queues of a block's warps ---- */

bool copy_queues_new(block *b) {
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        copy_queue *queue = aligned_alloc(64, sizeof *queue);
        if (!queue) return false;
        memset(queue, 0, sizeof *queue);
        b->warps[k].copies = queue;
    }
    return true;
}

void copy_queues_clear(block *b) {
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        copy_queue *queue = b->warps[k].copies;
        memset(queue->committed, 0, sizeof queue->committed);
        memset(queue->bulk_committed, 0, sizeof queue->bulk_committed);
        queue->first = queue->n = 0;
    }
}

void copy_queues_free(block *b) {
    for (uint32_t k = 0; k < b->launch->n_warps; k++) {
        copy_queue *queue = b->warps[k].copies;
        if (queue) free(queue->pending);
        free(queue);
    }
}

static pending_copy *nth(copy_queue *queue, uint32_t n) {
    return &queue->pending[(queue->first + n) & (queue->capacity - 1)];
}

static void write_lane(const pending_copy *copy, int lane) {
    memcpy(copy->to[lane], copy->data[lane], copy->bytes);
}

static void complete_oldest(copy_queue *queue) {
    const pending_copy *copy = nth(queue, 0);
    for (uint32_t lanes = copy->lanes; lanes; lanes &= lanes - 1)
        write_lane(copy, first_lane(lanes));
    queue->first = (queue->first + 1) & (queue->capacity - 1);
    queue->n--;
}

static pending_copy *append(warp *w) {
    copy_queue *queue = w->copies;
    if (queue->n == MAX_PENDING) complete_oldest(queue);
    if (queue->n == queue->capacity) {
        const uint32_t capacity = queue->capacity ? 2 * queue->capacity : 16;
        const size_t bytes = capacity * sizeof(pending_copy);
        pending_copy *larger = block_charge(w->block, bytes) ? aligned_alloc(64, bytes) : NULL;
        if (!larger) return NULL;
        for (uint32_t k = 0; k < queue->n; k++)
            larger[k] = *nth(queue, k);
        free(queue->pending);
        queue->pending = larger;
        queue->first = 0;
        queue->capacity = capacity;
    }
    return nth(queue, queue->n++);
}

/* ---- cp.async ---- */

static uint32_t source_bytes(const warp *w, const insn *i, int lane) {
    const copy_form *form = i->extra;
    if (form->has_ignore && !PRED(w, form->ignore)[lane] == form->ignore_negated) return 0;
    return form->has_size ? U32(w, form->size)[lane] : i->width;
}

static uint32_t source_addresses(const warp *w, const insn *i, lanes_u64 out,
                                 uint32_t bytes[LANES]) {
    uint32_t reading = 0;
    for (int lane = 0; lane < LANES; lane++) {
        out[lane] = decoded_lane_address(w, &((const copy_form *)i->extra)->source, lane);
        bytes[lane] = source_bytes(w, i, lane);
        if (bytes[lane]) reading |= 1u << lane;
    }
    return reading & w->active;
}

static bool read_source(warp *w, const insn *i, int lane, unsigned char *to) {
    const uint64_t address = decoded_lane_address(w, &((const copy_form *)i->extra)->source, lane);
    const uint32_t bytes = source_bytes(w, i, lane), width = i->width;
    memset(to, 0, width);
    if (!bytes) return true;
    if (bytes > width) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "cp.async copies %u bytes, but its source size is %u; it must be at most %u",
                   width, bytes, width);
        return false;
    }
    if (bytes == width || address % width) {
        const unsigned char *from = lane_reach(w, i, PTX_GLOBAL, lane, address, width, false);
        if (from) memcpy(to, from, bytes);
        return from != NULL;
    }
    /* byte by byte, because bytes that are not read need not be accessible */
    for (uint32_t k = 0; k < bytes; k++) {
        const unsigned char *from = lane_reach(w, i, PTX_GLOBAL, lane, address + k, 1, false);
        if (!from) return false;
        to[k] = *from;
    }
    return true;
}

static const insn *exec_copy(warp *w, const insn *i) {
    pending_copy *copy = append(w);
    if (!copy) return warp_fault(w, i, SMK_MEMORY, w->active, "out of memory: a pending cp.async");
    copy->lanes = w->active;
    copy->bytes = i->width;
    copy->clock = w->clock;
    memcpy(copy->group, w->copies->committed, sizeof copy->group);
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        copy->to[lane] =
            lane_reach(w, i, PTX_SHARED, lane, lane_address(w, i, lane), i->width, true);
        if (!copy->to[lane] || !read_source(w, i, lane, copy->data[lane])) return NULL;
    }
    return i + 1;
}

static const insn *exec_observed_copy(warp *w, const insn *i) {
    lanes_u64 address, source;
    uint32_t bytes[LANES];
    observe_addresses(w, i, address);
    const uint32_t reading = source_addresses(w, i, source, bytes);
    const insn *next = i->unobserved(w, i);
    if (!next) return NULL;
    if (reading) observe_copy_source(w, i, source, reading, bytes);
    observe_copy(w, i, address, source, reading);
    return next;
}

/* ---- groups ---- */

static const insn *exec_commit(warp *w, const insn *i) {
    for (int l = 0; l < LANES; l++)
        w->copies->committed[l] += w->mask[l] & 1;
    return i + 1;
}

static void report_done(const warp *w, const insn *i, const pending_copy *copy, uint32_t lanes) {
    lanes_u64 offset = {0};
    if (!w->block->observer) return;
    for (uint32_t left = lanes; left; left &= left - 1) {
        const int lane = first_lane(left);
        offset[lane] = (uint64_t)(copy->to[lane] - w->block->shared);
    }
    observe_event(w, (emu_sync){.kind = EMU_COPY_DONE,
                                .ptx = i->ptx,
                                .lanes = lanes,
                                .owner = w->block->member,
                                .address = offset,
                                .width = copy->bytes});
}

/* Completes the active lanes' copies, except those of each lane's last insn.imm groups (-1: all
 * copies). */
static const insn *exec_wait(warp *w, const insn *i) {
    copy_queue *queue = w->copies;
    if (queue->n > LANES && !block_goes_on(w->block)) return NULL;
    for (uint32_t k = 0; k < queue->n; k++) {
        pending_copy *copy = nth(queue, k);
        uint32_t done = 0;
        for (uint32_t lanes = copy->lanes & w->active; lanes; lanes &= lanes - 1) {
            const int lane = first_lane(lanes);
            const uint64_t last = (uint64_t)copy->group[lane] + (uint64_t)i->imm;
            if (i->imm >= 0 && last >= queue->committed[lane]) continue;
            write_lane(copy, lane);
            done |= 1u << lane;
        }
        copy->lanes &= ~done;
        if (done) report_done(w, i, copy, done);
    }
    while (queue->n && !nth(queue, 0)->lanes) {
        queue->first = (queue->first + 1) & (queue->capacity - 1);
        queue->n--;
    }
    return i + 1;
}

void copy_async_complete(warp *w, const insn *instruction, int lane, uint64_t clock) {
    for (uint32_t k = 0; k < w->copies->n; k++) {
        pending_copy *copy = nth(w->copies, k);
        if (copy->clock > clock || !(copy->lanes >> lane & 1)) continue;
        write_lane(copy, lane);
        copy->lanes &= ~(1u << lane);
        report_done(w, instruction, copy, 1u << lane);
    }
}

/* ---- decoding ---- */

static exec_fn select_copy(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const hints[] = {"ca",     "cg",      "shared",   "shared::cta",
                                        "global", "L2::64B", "L2::128B", "L2::256B"};
    for (size_t k = 0; k < sizeof hints / sizeof *hints; k++)
        decode_take(dc, hints[k]);
    const uint32_t policy = decode_take(dc, "L2::cache_hint");
    const uint32_t n = p->n_operands - policy;
    copy_form *form = decode_alloc(dc, sizeof *form);
    decoded_address to;
    if (n < 3 || n > 4 || !decode_address(dc, &p->operands[0], &to) ||
        !decode_address(dc, &p->operands[1], &form->source) || p->operands[2].kind != PTX_IMMEDIATE)
        return NULL;
    const uint64_t width = p->operands[2].bits;
    if (width != 4 && width != 8 && width != 16) return NULL;
    if (n == 4) {
        const ptx_operand *last = &p->operands[3];
        form->has_ignore = decode_register_type(dc, last) == PTX_PRED;
        form->has_size = !form->has_ignore;
        form->ignore_negated = last->negated;
        if (form->has_ignore)
            form->ignore = decode_source(dc, last, PTX_PRED);
        else
            form->size = decode_source(dc, last, PTX_U32);
    }
    out->a = to.slot, out->wide = to.wide, out->imm = to.imm;
    out->width = (uint8_t)width;
    out->count = 1;
    out->space = PTX_SHARED;
    out->operation = EMU_COPY_ASYNC_WRITE;
    out->extra = form;
    out->unobserved = exec_copy;
    return exec_observed_copy;
}

exec_fn copy_async_select(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "commit_group")) return exec_commit;
    if (decode_take(dc, "wait_all")) {
        out->imm = -1;
        return exec_wait;
    }
    if (!decode_take(dc, "wait_group")) return select_copy(dc, p, out);
    if (p->n_operands != 1 || p->operands[0].kind != PTX_IMMEDIATE) return NULL;
    out->imm = (int64_t)p->operands[0].bits;
    return out->imm >= 0 ? exec_wait : NULL;
}
