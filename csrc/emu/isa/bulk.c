/* Bulk copies of bytes: cp.async.bulk, cp.reduce.async.bulk, cp.async.mbarrier.arrive.
 * bulk_queue.c says when they take effect. */
#include "bulk.h"

#include "../base/lanes.h"
#include "../machine/machine.h"
#include "mbarrier.h"
#include "memory.h"

/* ---- cp.async.mbarrier.arrive ---- */

static const insn *exec_arrival(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_address(w, i, lane);
        if (!(i->flags ? mbarrier_check : mbarrier_add_pending)(w, i, lane, PTX_SHARED, address))
            return NULL;
        const bulk_copy spec = {
            .kind = BULK_ARRIVAL, .owner = w->block, .barrier = WINDOW_OFFSET(address)};
        if (!bulk_append(w, i, lane, &spec)) return NULL;
    }
    return i + 1;
}

exec_fn bulk_select_arrival(decoder *dc, const ptx_instruction *p, insn *out) {
    decoded_address at;
    out->flags = decode_take(dc, "noinc");
    decode_take_space(dc);
    if (!decode_take(dc, "arrive") || !decode_take(dc, "b64") || p->n_operands != 1 ||
        !decode_address(dc, &p->operands[0], &at))
        return NULL;
    out->a = at.slot, out->wide = at.wide, out->imm = at.imm;
    return exec_arrival;
}

/* ---- copies of bytes ---- */

typedef struct bulk_form {
    decoded_address to, from, barrier;
    uint32_t size; /* frame offset */
    bulk_kind kind;
    ptx_space from_space, to_space; /* to_space: of a load */
    bool multicast;
    uint32_t mask; /* frame offset */
    atomic_reduction reduction;
} bulk_form;

static const insn *exec_bulk(warp *w, const insn *i) {
    const bulk_form *f = i->extra;
    const bool load = f->kind == BULK_LOAD;
    /* The PTX ISA does not require clusters here, but an H200 (driver 580) raises an illegal
     * instruction without them. */
    if (f->from_space == PTX_SHARED && !w->block->launch->explicit_cluster)
        return warp_fault(
            w, i, SMK_LAUNCH, w->active,
            "a bulk copy from shared memory to the cluster's shared memory in a kernel "
            "without clusters; on a GPU the kernel must be compiled with a cluster "
            "size, at least __cluster_dims__(1, 1, 1)");
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint32_t bytes = U32(w, f->size)[lane];
        const uint64_t to = decoded_lane_address(w, &f->to, lane);
        const uint64_t from = decoded_lane_address(w, &f->from, lane);
        const uint64_t global = load ? from : to, shared = load ? to : from;
        if (bytes % TILE_CHUNK || bytes > MAX_SHARED_BYTES || global % TILE_CHUNK)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                              "a bulk copy of %u bytes between 0x%llx and shared memory at 0x%llx; "
                              "size and addresses must be multiples of %d",
                              bytes, (unsigned long long)global, (unsigned long long)shared,
                              TILE_CHUNK);
        bulk_copy spec = {.kind = f->kind,
                          .bytes = bytes,
                          .reduction = f->reduction,
                          .tile = {.space = load ? f->from_space : PTX_GLOBAL,
                                   .address = global,
                                   .rank = 1,
                                   .element_bytes = TILE_CHUNK,
                                   .count = {bytes / TILE_CHUNK},
                                   .size = {bytes / TILE_CHUNK}}};
        const bulk_place place = {.space = load ? f->to_space : PTX_SHARED,
                                  .shared = shared,
                                  .barrier = load ? decoded_lane_address(w, &f->barrier, lane) : 0,
                                  .multicast = f->multicast,
                                  .ranks = f->multicast ? U16(w, f->mask)[lane] : 0};
        if (!bulk_locate(w, i, lane, place, &spec) || !bulk_issue(w, i, lane, &place, &spec))
            return NULL;
    }
    return i + 1;
}

uint32_t bulk_take_hints(decoder *dc, const ptx_instruction *p) {
    const uint32_t hint = decode_take(dc, "L2::cache_hint");
    return p->n_operands > hint ? p->n_operands - hint : 0;
}

/* Takes .dst.src and the completion mechanism. The latter tells loads (mbarrier) from stores
 * (bulk_group). Loads write shared memory, stores go from .shared::cta to .global. */
static bool take_direction(decoder *dc, bulk_form *f) {
    const bool global = decode_take(dc, "global");
    const bool cluster = decode_take(dc, "shared::cluster");
    const bool cta = decode_take(dc, "shared::cta");
    if (global + cluster + cta != 2) return false;
    const bool load = decode_take(dc, "mbarrier::complete_tx::bytes");
    f->from_space = global ? PTX_GLOBAL : PTX_SHARED;
    f->to_space = cluster ? PTX_SHARED_CLUSTER : PTX_SHARED;
    f->kind = load ? BULK_LOAD : BULK_STORE;
    f->multicast = load && global && cluster && decode_take(dc, "multicast::cluster");
    return load != decode_take(dc, "bulk_group") && (load || (global && cta));
}

exec_fn bulk_select(decoder *dc, const ptx_instruction *p, insn *out) {
    bulk_form *f = decode_alloc(dc, sizeof *f);
    const uint32_t n = bulk_take_hints(dc, p);
    const ptx_operand *o = p->operands;
    if (!take_direction(dc, f) || n != 3u + (f->kind == BULK_LOAD) + f->multicast ||
        !decode_address(dc, &o[0], &f->to) || !decode_address(dc, &o[1], &f->from))
        return NULL;
    f->size = decode_source(dc, &o[2], PTX_U32);
    if (f->kind == BULK_LOAD && !decode_address(dc, &o[3], &f->barrier)) return NULL;
    if (f->multicast) f->mask = decode_source(dc, &o[4], PTX_U16);
    out->width = TILE_CHUNK;
    out->count = 1;
    out->extra = f;
    return exec_bulk;
}

exec_fn bulk_reduce_select(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!bulk_select(dc, p, out)) return NULL;
    bulk_form *f = (bulk_form *)out->extra;
    decode_take(dc, "noftz");
    ptx_type type;
    f->reduction = atomic_take_reduction(dc, f->kind == BULK_LOAD, &type);
    return f->reduction.combine ? exec_bulk : NULL;
}

static const insn *exec_nothing(warp *w, const insn *i) {
    (void)w;
    return i + 1;
}

/* cp.async.bulk.prefetch.L2.global [from], size: no effect. */
exec_fn bulk_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out) {
    decoded_address from;
    (void)out;
    if (!decode_take(dc, "L2") || !decode_take(dc, "global") || bulk_take_hints(dc, p) != 2 ||
        !decode_address(dc, &p->operands[0], &from))
        return NULL;
    decode_source(dc, &p->operands[1], PTX_U32);
    return exec_nothing;
}
