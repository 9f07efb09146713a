/* Tensor copies in tile mode: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and
 * cp.async.bulk.prefetch.tensor. bulk.c says when they take effect. im2col modes are not supported.
 */
#include <string.h>

#include "bulk.h"
#include "../machine/machine.h"
#include "../base/lanes.h"
#include "mbarrier.h"
#include "memory.h"
#include "tensor_map.h"

typedef struct tensor_form {
    bulk_kind kind;
    decoded_address map, shared, barrier;
    uint32_t rank;
    uint32_t start[TILE_RANK]; /* frame offsets */
    ptx_space space;           /* of shared memory, and of a load's mbarrier */
    bool multicast;
    uint32_t mask;      /* frame offset */
    const char *reduce; /* the operation's name; NULL: none */
} tensor_form;

/* The reduction for the type in the tensor map. .and, .or and .xor use its untyped (.b)
 * counterpart. */
static atomic_reduction find_reduction(const char *name, smk_tensor_type type) {
    static const ptx_type types[][2] = {
        [SMK_TENSOR_UINT8] = {PTX_U8, PTX_B8},         [SMK_TENSOR_UINT16] = {PTX_U16, PTX_B16},
        [SMK_TENSOR_UINT32] = {PTX_U32, PTX_B32},      [SMK_TENSOR_INT32] = {PTX_S32, PTX_B32},
        [SMK_TENSOR_UINT64] = {PTX_U64, PTX_B64},      [SMK_TENSOR_INT64] = {PTX_S64, PTX_B64},
        [SMK_TENSOR_FLOAT16] = {PTX_F16, PTX_B16},     [SMK_TENSOR_FLOAT32] = {PTX_F32, PTX_B32},
        [SMK_TENSOR_FLOAT64] = {PTX_F64, PTX_B64},     [SMK_TENSOR_BFLOAT16] = {PTX_BF16, PTX_B16},
        [SMK_TENSOR_FLOAT32_FTZ] = {PTX_F32, PTX_B32}, [SMK_TENSOR_TFLOAT32] = {PTX_F32, PTX_B32}};
    const atomic_reduction typed = atomic_find_reduction(name, types[type][0], false);
    if (typed.combine || smk_tensor_type_is_float(type)) return typed;
    return atomic_find_reduction(name, types[type][1], false);
}

/* Rules that the PTX ISA does not state. An H200 (driver 580) raises an illegal instruction. */
static bool check_start(warp *w, const insn *i, int lane, const tile *t, bool load) {
    if (t->start[0] * t->element_bytes % TILE_CHUNK) {
        warp_fault(
            w, i, SMK_LAUNCH, 1u << lane,
            "a tensor copy begins at the innermost coordinate %lld, which is %lld bytes into "
            "the row; on a GPU this offset must be a multiple of %d bytes",
            (long long)t->start[0], (long long)(t->start[0] * t->element_bytes), TILE_CHUNK);
        return false;
    }
    for (uint32_t d = 0; !load && d < t->rank; d++)
        if (t->start[d] < 0) {
            warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                       "a tensor copy out of shared memory begins at coordinate %lld of "
                       "dimension %u (0: the innermost); on a GPU only loads may begin below 0",
                       (long long)t->start[d], d);
            return false;
        }
    return true;
}

static bool build_copy(warp *w, const insn *i, int lane, bulk_place *place, bulk_copy *spec) {
    const tensor_form *f = i->extra;
    int64_t start[TILE_RANK];
    smk_tensor_type type;
    const bool load = f->kind == BULK_LOAD;
    const uint64_t shared = decoded_lane_address(w, &f->shared, lane);
    for (uint32_t d = 0; d < f->rank; d++)
        start[d] = S32(w, f->start[d])[lane];
    if (!tensor_map_open(w, i, lane, decoded_lane_address(w, &f->map, lane), f->rank, start,
                         &spec->tile, &type))
        return false;
    if (!check_start(w, i, lane, &spec->tile, load)) return false;
    spec->bytes = tile_bytes(&spec->tile);
    if (shared % TILE_LINE) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "a tensor copy's box in shared memory begins at 0x%llx; it must begin at a "
                   "multiple of %d",
                   (unsigned long long)WINDOW_OFFSET(shared), TILE_LINE);
        return false;
    }
    if (f->reduce) {
        spec->reduction = find_reduction(f->reduce, type);
        if (!spec->reduction.combine) {
            warp_fault(w, i, SMK_LAUNCH, 1u << lane, "a tensor of %s cannot be reduced by .%s",
                       smk_tensor_type_name(type), f->reduce);
            return false;
        }
    }
    *place = (bulk_place){.space = f->space,
                          .shared = shared,
                          .barrier = load ? decoded_lane_address(w, &f->barrier, lane) : 0,
                          .multicast = f->multicast,
                          .ranks = f->multicast ? U16(w, f->mask)[lane] : 0};
    return bulk_locate(w, i, lane, *place, spec);
}

static const insn *exec_tensor(warp *w, const insn *i) {
    const tensor_form *f = i->extra;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        bulk_copy spec = {.kind = f->kind};
        bulk_place place;
        if (!build_copy(w, i, lane, &place, &spec) || !bulk_issue(w, i, lane, &place, &spec))
            return NULL;
    }
    return i + 1;
}

static const insn *exec_prefetch(warp *w, const insn *i) {
    const tensor_form *f = i->extra;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const int64_t start[TILE_RANK] = {0};
        tile ignored;
        smk_tensor_type type;
        if (!tensor_map_open(w, i, lane, decoded_lane_address(w, &f->map, lane), f->rank, start,
                             &ignored, &type))
            return NULL;
    }
    return i + 1;
}

/* ---- decoding ---- */

static uint32_t take_rank(decoder *dc) {
    static const char *const ranks[] = {"1d", "2d", "3d", "4d", "5d"};
    for (uint32_t k = 0; k < TILE_RANK; k++)
        if (decode_take(dc, ranks[k])) return k + 1;
    return 0;
}

/* Decodes [map, {x, y, ...}]. */
static bool take_tensor(decoder *dc, const ptx_operand *o, tensor_form *f) {
    f->rank = take_rank(dc);
    decode_take(dc, "tile");
    if (!f->rank || !decode_address(dc, o, &f->map) || o->n_items != 1 ||
        o->items[0].kind != PTX_VECTOR || o->items[0].n_items != f->rank)
        return false;
    for (uint32_t d = 0; d < f->rank; d++)
        f->start[d] = decode_source(dc, &o->items[0].items[d], PTX_S32);
    return true;
}

static bool take_load(decoder *dc, const ptx_operand *o, uint32_t n, tensor_form *f) {
    f->multicast = decode_take(dc, "multicast::cluster");
    if (n != 3u + f->multicast || !decode_take(dc, "global") || !take_tensor(dc, &o[1], f) ||
        !decode_address(dc, &o[0], &f->shared) || !decode_address(dc, &o[2], &f->barrier))
        return false;
    if (f->multicast) f->mask = decode_source(dc, &o[3], PTX_U16);
    const bool cluster = decode_take(dc, "shared::cluster");
    f->space = cluster ? PTX_SHARED_CLUSTER : PTX_SHARED;
    return cluster || (!f->multicast && decode_take(dc, "shared::cta"));
}

static bool take_store(decoder *dc, const ptx_operand *o, uint32_t n, tensor_form *f) {
    f->space = PTX_SHARED;
    return n == 2 && decode_take(dc, "bulk_group") && decode_take(dc, "global") &&
           decode_take(dc, "shared::cta") && take_tensor(dc, &o[0], f) &&
           decode_address(dc, &o[1], &f->shared);
}

static exec_fn select_copy(decoder *dc, const ptx_instruction *p, insn *out, const char *reduce) {
    tensor_form *f = decode_alloc(dc, sizeof *f);
    const uint32_t n = bulk_take_hints(dc, p);
    const bool load = decode_take(dc, "mbarrier::complete_tx::bytes");
    f->kind = load ? BULK_LOAD : BULK_STORE;
    f->reduce = reduce;
    if (!(load ? take_load : take_store)(dc, p->operands, n, f) || (load && reduce)) return NULL;
    out->width = TILE_CHUNK;
    out->count = 1;
    out->extra = f;
    return exec_tensor;
}

exec_fn tensor_copy_select(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_copy(dc, p, out, NULL);
}

exec_fn tensor_reduce_select(decoder *dc, const ptx_instruction *p, insn *out) {
    static const char *const operations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
    for (size_t k = 0; k < sizeof operations / sizeof *operations; k++)
        if (decode_take(dc, operations[k])) return select_copy(dc, p, out, operations[k]);
    return NULL;
}

exec_fn tensor_prefetch_select(decoder *dc, const ptx_instruction *p, insn *out) {
    tensor_form *f = decode_alloc(dc, sizeof *f);
    if (!decode_take(dc, "L2") || !decode_take(dc, "global") || bulk_take_hints(dc, p) != 1 ||
        !take_tensor(dc, &p->operands[0], f))
        return NULL;
    out->extra = f;
    return exec_prefetch;
}
