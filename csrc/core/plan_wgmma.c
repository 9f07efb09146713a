/* Plans the rows whose kernels read A and B by TMA (kernels/wgmma_gemm.cuh, gemm_tma.cu): up to four launches.
 *
 *     <entry>_largest   of two parts: the largest of each row of an A that has its neighbours in other rows
 *     <entry>_pack      the operands that TMA cannot read as they are, or that come in parts; the largest of
 *                       each column of a B that is split later
 *     <entry>           the product; _a, _b, _ab: of operands that are read where they are, across K
 *     <entry>_reduce    of a product in parts of K: plan_split.c
 *
 * All take gemm_args, wgmma_args and the tensor maps of A, B and C, or of the parts in its place.
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "../kernels/args.h"

enum { TMA_ALIGN = 16, SWIZZLE_BYTES = 128, SLOT_ALIGN = 256, WORKSPACE = 3, KEPT = 4 };

typedef struct arguments {
    gemm_args gemm;
    wgmma_args wgmma;
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char maps[SMK_MAX_MAPS][SMK_TENSOR_MAP_BYTES];
} arguments;

/* One of A and B as the tensor core wants it: rows of K. Strides in elements. A row of the table may want B by
 * its own rows: then `k` runs along N. */
typedef struct side {
    int index; /* operand and buffer */
    const smk_matrix *matrix;
    int64_t rows, k, row_stride, k_stride;
    int64_t tile;         /* rows of a box */
    smk_tensor_type type; /* of what TMA loads */
    int element;          /* its bytes */
    int parts;            /* 1: its bits are the matrix's */
    bool may_cross;       /* the kernel reads tiles whose rows run across K */
    bool in_place;        /* TMA reads it where it is; else it is packed */
    bool across;          /* a row of what TMA reads runs across K */
} side;

typedef struct work {
    const smk_row *row;
    smk_plan *plan;
    const smk_gemm *problem;
    const walk *walk;
    arguments *args;
    int element;  /* bytes of what the tensor core reads ... */
    int itemsize; /* ... and of the matrices' elements */
    int64_t size; /* of the workspace so far */
} work;

static int64_t round_up(int64_t n, int64_t to) {
    return ceil_div(n, to) * to;
}

static void point(work *w, size_t arg_offset, uint32_t buffer) {
    w->plan->pointers[w->plan->n_pointers++] = (smk_pointer){(uint32_t)arg_offset, buffer};
}

/* A place in the workspace or in what is kept, as a pointer of the arguments: its value there, until the device adds
 * the buffer's address. */
static void point_into(work *w, uint32_t buffer, long long *pointer, int64_t at) {
    *pointer = at;
    point(w, (size_t)((unsigned char *)pointer - (unsigned char *)w->args), buffer);
}

/* ---- tensor maps ---- */

/* The map at place `index` of the arguments, of a tensor that begins `at` bytes into a buffer. Sizes and
 * strides from the inside out; outer strides in bytes. */
static void add_map(work *w, int index, uint32_t buffer, int64_t at, smk_tensor_type type,
                    const int64_t size[3], const int64_t stride[2], const uint32_t box[2]) {
    const size_t offset = offsetof(arguments, maps) + (size_t)index * SMK_TENSOR_MAP_BYTES;
    *(long long *)(void *)w->args->maps[index] = at;
    point(w, offset, buffer);
    w->plan->maps[w->plan->n_maps++] = (smk_tensor_map){
        .arg_offset = (uint32_t)offset,
        .type = type,
        .rank = 3,
        .size = {(uint64_t)size[0], (uint64_t)size[1], (uint64_t)size[2]},
        .stride = {smk_tensor_type_bytes(type), (uint64_t)stride[0], (uint64_t)stride[1]},
        .box = {box[0], box[1], 1},
        .step = {1, 1, 1},
        .swizzle = SMK_SWIZZLE_128B};
}

/* How many matrices of an operand a launch sees. */
static int64_t depth(const walk *w, int operand) {
    const int64_t z = walk_z_size(w) < MAX_GRID_Z ? walk_z_size(w) : MAX_GRID_Z;
    return walk_z_stride(w, operand) ? z : 1;
}

static bool is_multiple(const walk *w, int operand, int64_t elements) {
    for (int d = 0; d < w->n; d++)
        if (w->stride[operand][d] % elements) return false;
    return true;
}

/* TMA wants every row, and every matrix of a batch, to begin at a multiple of 16 bytes. */
static bool boxes_reach(const walk *w, int operand, const smk_matrix *m, int64_t rows,
                        int64_t stride, int element) {
    const int64_t unit = TMA_ALIGN / element;
    return m->offset % TMA_ALIGN == 0 && is_multiple(w, operand, unit) &&
           (rows == 1 || (stride > 0 && stride % unit == 0)) && walk_z_stride(w, operand) >= 0;
}

/* ---- operands ---- */

/* B of a matrix of 32-bit elements passes through registers, which split it; what stays in shared memory has
 * to lie along K there. */
static void place_side(const work *w, side *s, int itemsize) {
    const smk_wgmma *kind = &w->row->wgmma;
    const bool registers = s->index == 1 && itemsize == 4 && !kind->b_by_rows;
    const bool along = s->k_stride == 1 || s->k == 1;
    s->type = registers ? SMK_TENSOR_FLOAT32 : kind->operand;
    s->parts = registers ? 1 : kind->parts;
    s->element = (int)smk_tensor_type_bytes(s->type);
    s->may_cross = registers || itemsize == 2;
    s->across = s->may_cross && !along && (s->row_stride == 1 || s->rows == 1);
    s->in_place =
        s->parts == 1 && (along || s->across) &&
        (along ? boxes_reach(w->walk, s->index, s->matrix, s->rows, s->row_stride, itemsize)
               : boxes_reach(w->walk, s->index, s->matrix, s->k, s->k_stride, itemsize));
    /* A copy lies as its matrix does, unless its rows would be mostly padding. */
    s->across &= s->in_place || (s->parts == 1 && s->rows >= PACK_TILE);
}

static void map_in_place(work *w, const side *s) {
    const int64_t inner = s->across ? s->rows : s->k, outer = s->across ? s->k : s->rows;
    const int64_t stride = s->across ? s->k_stride : s->row_stride;
    const int64_t pitch = outer > 1 ? stride * s->element : round_up(inner * s->element, TMA_ALIGN);
    const int64_t z = walk_z_stride(w->walk, s->index) * s->element;
    const uint32_t step = (uint32_t)(SWIZZLE_BYTES / w->element); /* of K */
    add_map(
        w, s->index, (uint32_t)s->index, 0, s->type,
        (int64_t[]){inner, outer, depth(w->walk, s->index)}, (int64_t[]){pitch, z ? z : pitch},
        (uint32_t[]){(uint32_t)(SWIZZLE_BYTES / s->element), s->across ? step : (uint32_t)s->tile});
}

/* Room for what is made of the operand, and what the kernels before have to know. */
static void prepare(work *w, const side *s, wgmma_operand *out) {
    const smk_kept *kept = &w->problem->making.kept[s->index];
    const int64_t inner = s->across ? s->rows : s->k, outer = s->across ? s->k : s->rows;
    const int64_t step = SWIZZLE_BYTES / w->element; /* of K */
    const int64_t pitch = round_up(inner, step), z = depth(w->walk, s->index);
    const int64_t words = s->rows * (int64_t)sizeof(unsigned);
    const int64_t chunks = ceil_div(s->k, LARGEST_K);
    const int64_t warps = ceil_div(s->rows, PACK_ROWS);
    const bool of_a = s->index == 0, scales = w->row->wgmma.parts == 2;
    int64_t slot = 0, largest = 0, partial = 0;
    out->row_stride = s->row_stride;
    out->k_stride = s->k_stride;
    out->pitch = pitch;
    out->by_rows = s->k_stride == 1 || s->k == 1;
    out->across = s->across;
    out->chunks = of_a || out->by_rows ? 1 : (int)chunks;
    if (!s->in_place) {
        const int64_t share = PACK_PIECES * (16 / w->itemsize);
        const int64_t shares = s->parts == 2 ? 1 : ceil_div(inner, share);
        slot = round_up(s->parts * outer * pitch * s->element, SLOT_ALIGN);
        out->packing = (int)(out->by_rows || s->across
                                 ? ceil_div(outer * shares, PACK_ROWS)
                                 : ceil_div(s->rows, PACK_TILE) * ceil_div(s->k, PACK_TILE));
    }
    if (scales) {
        largest = slot;
        slot = round_up(slot + words * out->chunks, SLOT_ALIGN);
        out->searching = !out->by_rows ? (int)(ceil_div(s->rows, LARGEST_ROWS) * chunks)
                         : of_a        ? 0 /* the warp that packs a row does it */
                                       : (int)warps;
        if (!out->by_rows && of_a) {
            partial = slot;
            slot = round_up(slot + words * chunks, SLOT_ALIGN);
        }
    }
    out->batch = walk_z_stride(w->walk, s->index) ? slot : 0;
    const bool keeps = slot * z <= kept->bytes;
    const uint32_t buffer = keeps ? (uint32_t)(KEPT + s->index) : WORKSPACE;
    const int64_t at = keeps ? kept->offset : w->size;
    if (!s->in_place) point_into(w, buffer, &out->packed, at);
    if (scales) point_into(w, buffer, &out->largest, at + largest);
    if (partial) point_into(w, buffer, &out->partial, at + partial);
    if (keeps ? kept->made : w->problem->making.only) out->packing = out->searching = 0;
    if (!s->in_place)
        add_map(w, s->index, buffer, at, s->type, (int64_t[]){inner, s->parts * outer, z},
                (int64_t[]){pitch * s->element, slot},
                (uint32_t[]){(uint32_t)(SWIZZLE_BYTES / s->element),
                             (uint32_t)(s->across ? step : s->tile)});
    if (keeps)
        w->plan->kept[s->index] = (size_t)(slot * z);
    else
        w->size += slot * z;
}

/* ---- the plan ---- */

/* Coordinates and counts of the kernel are ints. */
static smk_code check_sizes(const smk_row *row, const smk_gemm *p, smk_status *status) {
    const int64_t most = INT32_MAX / (2 * PACK_TILE) - 1;
    if (p->M <= most && p->N <= most && p->K <= most &&
        ceil_div(p->M, PACK_TILE) * ceil_div(p->K, PACK_TILE) <= INT32_MAX &&
        ceil_div(p->N, PACK_TILE) * ceil_div(p->K, PACK_TILE) <= INT32_MAX)
        return SMK_OK;
    return smk_fail(status, SMK_VALUE,
                    "gemm variant '%s': M, N and K may be %" PRId64 " at most, not %" PRId64
                    ", %" PRId64 ", %" PRId64 "; take another variant, or split the arrays",
                    row->name, most, p->M, p->N, p->K);
}

static smk_tensor_type type_of(const smk_dtype *dtype) {
    int type = 0;
    while (type < SMK_N_TENSOR_TYPES - 1 &&
           strcmp(smk_tensor_type_name((smk_tensor_type)type), dtype->name))
        type++;
    return (smk_tensor_type)type;
}

static void place_operands(work *w, const smk_gemm *p, const smk_dtype *dtype,
                           const smk_geometry *g, side sides[2]) {
    wgmma_args *args = &w->args->wgmma;
    const int64_t step = SWIZZLE_BYTES / w->element; /* of K */
    const bool by_rows = w->row->wgmma.b_by_rows;
    sides[0] = (side){.index = 0,
                      .matrix = &p->a,
                      .rows = p->M,
                      .k = p->K,
                      .row_stride = p->a.ld,
                      .k_stride = p->a.step,
                      .tile = g->output_tile[0]};
    sides[1] = (side){.index = 1,
                      .matrix = &p->b,
                      .rows = by_rows ? p->K : p->N,
                      .k = by_rows ? p->N : p->K,
                      .row_stride = by_rows ? p->b.ld : p->b.step,
                      .k_stride = by_rows ? p->b.step : p->b.ld,
                      .tile = by_rows ? step : g->output_tile[1]};
    args->steps = (int)ceil_div(p->K, step);
    for (int i = 0; i < 2; i++) {
        wgmma_operand *operand = i ? &args->b : &args->a;
        operand->rows = (int)sides[i].rows;
        operand->k = (int)sides[i].k;
        if (p->K == 0) continue;
        place_side(w, &sides[i], dtype->itemsize);
        if (sides[i].in_place) map_in_place(w, &sides[i]);
        if (!sides[i].in_place || w->row->wgmma.parts == 2) prepare(w, &sides[i], operand);
    }
}

/* The sums of a product of 32-bit elements in parts leave as C does: part after part of the batch. */
static void place_parts(work *w, const smk_gemm *p) {
    const gemm_args *args = &w->args->gemm;
    const int64_t pitch = args->part_pitch * (int64_t)sizeof(float);
    w->args->wgmma.store_boxes = 1;
    add_map(w, 2, WORKSPACE, args->parts, SMK_TENSOR_FLOAT32,
            (int64_t[]){args->part_pitch, p->M, args->split * depth(w->walk, 2)},
            (int64_t[]){pitch, p->M * pitch}, (uint32_t[]){32, 32});
}

static void place_result(work *w, const smk_gemm *p, const smk_dtype *dtype) {
    const int itemsize = dtype->itemsize;
    if (w->args->gemm.split > 1) {
        if (itemsize == 4) place_parts(w, p);
        return;
    }
    if (!boxes_reach(w->walk, 2, &p->c, p->M, p->c.ld, itemsize)) return;
    const int64_t pitch = p->M > 1 ? p->c.ld * itemsize : round_up(p->N * itemsize, TMA_ALIGN);
    const int64_t z = walk_z_stride(w->walk, 2) * itemsize;
    w->args->wgmma.store_boxes = 1;
    add_map(
        w, 2, 2, 0, type_of(dtype), (int64_t[]){p->N, p->M, depth(w->walk, 2)},
        (int64_t[]){pitch, z ? z : pitch},
        (uint32_t[]){(uint32_t)(SWIZZLE_BYTES / itemsize), (uint32_t)(SWIZZLE_BYTES / itemsize)});
}

/* Blocks that share the tiles evenly. Of those at the right edge that are narrow the product makes only what there is:
 * they are no reason for another wave. */
static uint32_t share_tiles(const work *w, const smk_gemm *p, const smk_geometry *g,
                            uint32_t tiles) {
    const int64_t rest = p->N % g->output_tile[1];
    const bool narrow = w->itemsize == 2 && rest > 0 && rest <= WGMMA_NARROW;
    const int64_t across = ceil_div(p->N, g->output_tile[1]);
    const int64_t wide = narrow && across > 1 ? tiles / across * (across - 1) : tiles;
    return wide <= p->multiprocessors
               ? (uint32_t)(tiles < p->multiprocessors ? tiles : p->multiprocessors)
               : (uint32_t)ceil_div(wide, ceil_div(wide, p->multiprocessors));
}

/* The kernels before the row's own, which is all that `s` has so far. */
static void add_kernels(const work *w, const side sides[2], const smk_gemm *p,
                        const smk_geometry *g, shape *s) {
    const smk_wgmma *kind = &w->row->wgmma;
    const wgmma_operand *a = &w->args->wgmma.a, *b = &w->args->wgmma.b;
    kernel product = s->kernels[0];
    product.entry = kind->products[sides[0].across][sides[1].across];
    product.blocks = share_tiles(w, p, g, product.blocks);
    s->n_kernels = 0;
    const int64_t packing = (int64_t)a->packing + b->packing + b->searching;
    if (a->searching)
        s->kernels[s->n_kernels++] = (kernel){.entry = kind->largest,
                                              .blocks = (uint32_t)a->searching,
                                              .threads = {PACK_THREADS, 1, 1}};
    if (packing)
        s->kernels[s->n_kernels++] = (kernel){
            .entry = kind->pack, .blocks = (uint32_t)packing, .threads = {PACK_THREADS, 1, 1}};
    if (!p->making.only) s->kernels[s->n_kernels++] = product;
}

smk_code plan_wgmma(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_geometry geometry = geometry_of(row, dtype, values, 0);
    const smk_matrix *operands[] = {&problem->a, &problem->b, &problem->c};
    const walk folded = walk_fold(&problem->batch, operands, 3);
    arguments args = {.gemm = plan_gemm_args(problem, &folded)};
    work w = {.row = row,
              .plan = plan,
              .problem = problem,
              .walk = &folded,
              .args = &args,
              .element = (int)smk_tensor_type_bytes(row->wgmma.operand),
              .itemsize = dtype->itemsize};
    side sides[2];
    shape s;
    *plan = (smk_plan){.args_bytes = sizeof args,
                       .parameters = {offsetof(arguments, gemm), offsetof(arguments, wgmma)},
                       .n_parameters = 2 + SMK_MAX_MAPS};
    for (size_t i = 0; i < SMK_MAX_MAPS; i++)
        plan->parameters[2 + i] = (uint32_t)(offsetof(arguments, maps) + i * SMK_TENSOR_MAP_BYTES);
    if (check_sizes(row, problem, status) ||
        shape_make(row, dtype, &geometry, problem->M, problem->N, &s, status))
        return status->code;
    if (s.n_kernels == 0) return SMK_OK;
    const split_place place = {plan, &args.gemm, offsetof(arguments, gemm)};
    if (split_plan(row, dtype, values, problem, &folded, SWIZZLE_BYTES / w.element, place, &s,
                   status))
        return status->code;
    w.size = (int64_t)plan->workspace;
    point(&w, offsetof(arguments, gemm.A), 0);
    point(&w, offsetof(arguments, gemm.B), 1);
    point(&w, offsetof(arguments, gemm.C), 2);
    place_operands(&w, problem, dtype, &geometry, sides);
    place_result(&w, problem, dtype);
    add_kernels(&w, sides, problem, &geometry, &s);
    if (!problem->making.only) split_add_reduce(row, dtype, &args.gemm, &s);
    plan->workspace = (size_t)w.size;
    return plan_launches(plan, &s, &folded, operands, &args, status);
}
