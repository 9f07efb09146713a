/* st.async and red.async: a thread's store to, or reduction of, another block's shared memory,
 * which completes on an mbarrier of that block. It takes effect like a bulk load (bulk_queue.c). */
#include <string.h>

#include "bulk.h"
#include "../base/lanes.h"
#include "memory.h"

typedef struct async_form {
    decoded_address to, barrier;
    uint32_t n, width; /* elements, and their bytes */
    uint32_t value[4]; /* frame offsets */
    atomic_reduction reduction;
} async_form;

/* *written: the offset in shared memory that the lane writes to. */
static bool issue(warp *w, const insn *i, int lane, uint64_t *written) {
    const async_form *f = i->extra;
    const bulk_place place = {.space = PTX_SHARED_CLUSTER,
                              .shared = decoded_lane_address(w, &f->to, lane),
                              .barrier = decoded_lane_address(w, &f->barrier, lane)};
    bulk_copy spec = {.kind = BULK_LOAD, .bytes = f->n * f->width, .reduction = f->reduction};
    if (!bulk_locate(w, i, lane, place, &spec)) return false;
    bulk_copy *copy = bulk_append(w, i, lane, &spec);
    if (!copy) return false;
    for (uint32_t k = 0; k < f->n; k++)
        memcpy(copy->data + k * f->width, w->frame + f->value[k] + (size_t)lane * f->width,
               f->width);
    *written = spec.shared;
    if (w->block->observer) {
        lanes_u64 address = {[0] = spec.owner->window + spec.shared};
        observe_bulk(w, i, lane, PTX_SHARED, EMU_BULK_WRITE, spec.bytes, address, 1, 0,
                     (emu_multicast){0});
    }
    return true;
}

static const insn *exec_store_async(warp *w, const insn *i) {
    const async_form *f = i->extra;
    lanes_u64 written = {0};
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1)
        if (!issue(w, i, first_lane(lanes), &written[first_lane(lanes)])) return NULL;
    if (w->block->observer)
        observe_access(w, i, PTX_SHARED, EMU_STORE_ASYNC, f->n * f->width, written, w->active);
    return i + 1;
}

/* [to], value, [barrier] */
static exec_fn take_operands(decoder *dc, const ptx_instruction *p, insn *out, async_form *f,
                             ptx_type type) {
    const ptx_operand *o = p->operands, *value = &o[1];
    const bool vector = p->n_operands > 1 && value->kind == PTX_VECTOR;
    const ptx_operand *items = vector ? value->items : value;
    if (p->n_operands != 3 || !decode_address(dc, &o[0], &f->to) ||
        !decode_address(dc, &o[2], &f->barrier) || (vector ? value->n_items : 1) != f->n)
        return NULL;
    f->width = ptx_type_size[type];
    if (f->width * f->n > TILE_CHUNK) return NULL;
    for (uint32_t k = 0; k < f->n; k++)
        f->value[k] = decode_source(dc, &items[k], type);
    out->width = (uint8_t)f->width;
    out->count = 1;
    out->extra = f;
    return exec_store_async;
}

static bool take_completion(decoder *dc) {
    decode_take(dc, "shared::cluster");
    return decode_take(dc, "mbarrier::complete_tx::bytes");
}

static exec_fn select_st_async(decoder *dc, const ptx_instruction *p, insn *out) {
    async_form *f = decode_alloc(dc, sizeof *f);
    if (!decode_take(dc, "async") || !take_completion(dc)) return NULL;
    decode_take(dc, "weak");
    f->n = decode_take(dc, "v2") ? 2 : decode_take(dc, "v4") ? 4 : 1;
    const ptx_type type = decode_take_type(dc);
    if (type == PTX_NO_TYPE || type == PTX_PRED ||
        (ptx_type_size[type] != 4 && ptx_type_size[type] != 8))
        return NULL;
    return take_operands(dc, p, out, f, type);
}

static exec_fn select_red_async(decoder *dc, const ptx_instruction *p, insn *out) {
    async_form *f = decode_alloc(dc, sizeof *f);
    if (!decode_take(dc, "async") || !take_completion(dc)) return NULL;
    if (decode_take(dc, "relaxed")) decode_take(dc, "cluster");
    ptx_type type;
    f->n = 1;
    f->reduction = atomic_take_reduction(dc, true, &type);
    return f->reduction.combine ? take_operands(dc, p, out, f, type) : NULL;
}

opcode_table store_async_opcodes = {
    [PTX_OP_st] = select_st_async,
    [PTX_OP_red] = select_red_async,
};
