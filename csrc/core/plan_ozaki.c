/* Plans rows that multiply by residues (kernels/library/gemm_ozaki2.cu). Launches:
 *
 *     <entry>_scale     finds the scales of all rows of A and columns of B
 *     <entry>_pack      residues of A and B, int8 planes in the workspace
 *     <entry>           the products of the planes, reduced to bytes
 *     <entry>_combine   C from its residues
 *
 * The planes take a byte per modulus and element of A, B and C. If that is more than the
 * parameter `workspace`, A's rows, B's columns and K are cut into blocks, which use the same
 * workspace in turn: the last three launches run for each block of C, and packing and products for
 * each block of K. Of a batch as many matrices are computed by a launch as fit.
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../kernels/ozaki_args.h"

enum { SLOT_ALIGN = 256, WORKSPACE = 3, MAX_STEP_KERNELS = 4 };
/* Blocks of C are cut to MIN_BLOCK rows and columns first, then K to MIN_K, then C to a tile. */
enum { MIN_BLOCK = 2048, MIN_K = 512 };

typedef struct arguments {
    gemm_args gemm;
    ozaki_args ozaki;
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char maps[SMK_MAX_MAPS][SMK_TENSOR_MAP_BYTES];
} arguments;

/* Sizes of a block, and the layout of its planes in bytes. */
typedef struct blocking {
    int64_t m, n, k, z;                /* z: matrices of the batch */
    int64_t moduli, a_z, b_z;          /* planes per element; matrices of A, of B in a block */
    int64_t k_pitch, c_pitch;          /* from row to row */
    int64_t a_plane, b_plane, c_plane; /* per modulus */
    int64_t a, b, c, a_exponents, b_exponents, end; /* in the workspace */
} blocking;

typedef struct builder {
    const smk_variant *variant;
    const smk_gemm *problem;
    const batch_iterator *batch;
    const smk_geometry *geometry;
    blocking blocks;
    smk_plan *plan;
    arguments args; /* of the block that is planned */
} builder;

/* The exponents of so many rows, in whole vectors. */
static int64_t exponents_of(int64_t rows) {
    return round_up(rows, OZAKI_COMBINE_COLUMNS);
}

/* ---- blocks ---- */

static void place_planes(const smk_gemm *p, blocking *b) {
    b->k_pitch = round_up(b->k, OZAKI_STEP);
    b->c_pitch = round_up(b->n, OZAKI_GROUP);
    b->a_plane = b->m * b->k_pitch;
    b->b_plane = round_up(b->n, OZAKI_GROUP) * b->k_pitch;
    b->c_plane = b->m * b->c_pitch;
    b->a = 0;
    b->b = b->a + round_up(b->moduli * b->a_plane * b->a_z, SLOT_ALIGN);
    b->c = b->b + round_up(b->moduli * b->b_plane * b->b_z, SLOT_ALIGN);
    b->a_exponents = b->c + round_up(b->moduli * b->c_plane * b->z, SLOT_ALIGN);
    b->b_exponents =
        b->a_exponents + round_up(exponents_of(p->M) * b->a_z * (int64_t)sizeof(int), SLOT_ALIGN);
    b->end =
        b->b_exponents + round_up(exponents_of(p->N) * b->b_z * (int64_t)sizeof(int), SLOT_ALIGN);
}

/* Bytes of the planes of one matrix. A double, because it may exceed 64 bits. */
static double bytes_of(const blocking *b) {
    const double m = (double)b->m, n = (double)b->n, k = (double)b->k;
    return (double)b->moduli * (m * k + n * k + m * n);
}

static int64_t value_of(const builder *w, const int64_t *values, const char *param) {
    return values[smk_variant_param(w->variant, param)];
}

static int64_t half_of(int64_t size, int64_t unit) {
    return round_up(ceil_div(size, 2), unit);
}

static blocking choose_blocks(const builder *w, const int64_t *values) {
    const smk_gemm *p = w->problem;
    const int64_t *tile = w->geometry->output_tile;
    const double max_bytes = (double)value_of(w, values, "workspace") * (1 << 20);
    blocking b = {.m = p->M, .n = p->N, .k = p->K, .moduli = value_of(w, values, "moduli")};
    if (b.k > OZAKI_MAX_K) b.k = round_up(ceil_div(b.k, ceil_div(b.k, OZAKI_MAX_K)), OZAKI_STEP);
    while (bytes_of(&b) > max_bytes)
        if (b.m >= b.n && b.m > MIN_BLOCK)
            b.m = half_of(b.m, tile[0]);
        else if (b.n > MIN_BLOCK)
            b.n = half_of(b.n, tile[1]);
        else if (b.k > MIN_K)
            b.k = half_of(b.k, OZAKI_STEP);
        else if (b.m > tile[0])
            b.m = half_of(b.m, tile[0]);
        else if (b.n > tile[1])
            b.n = half_of(b.n, tile[1]);
        else
            break;
    const double one = bytes_of(&b);
    const int64_t z = min_i64(batch_z_size(w->batch), MAX_GRID_Z / b.moduli);
    b.z = one * (double)z <= max_bytes ? z : one < max_bytes ? (int64_t)(max_bytes / one) : 1;
    b.a_z = batch_z_stride(w->batch, 0) ? b.z : 1;
    b.b_z = batch_z_stride(w->batch, 1) ? b.z : 1;
    place_planes(p, &b);
    return b;
}

/* ---- the plan's pointers and tensor maps, which all blocks share ---- */

static void add_pointer(builder *w, const void *pointer, uint32_t buffer) {
    const size_t at = (size_t)((const unsigned char *)pointer - (const unsigned char *)&w->args);
    w->plan->pointers[w->plan->n_pointers++] = (smk_pointer){(uint32_t)at, buffer};
}

static void add_pointer_into(builder *w, long long *pointer, int64_t at) {
    *pointer = at;
    add_pointer(w, pointer, WORKSPACE);
}

/* Planes of rows x columns bytes; boxes of box_rows rows of 128 bytes. */
static void add_map(builder *w, int index, int64_t at, int64_t columns, int64_t rows,
                    int64_t planes, int64_t box_rows) {
    const size_t offset = offsetof(arguments, maps) + (size_t)index * SMK_TENSOR_MAP_BYTES;
    *(long long *)(void *)w->args.maps[index] = at;
    add_pointer(w, w->args.maps[index], WORKSPACE);
    w->plan->maps[w->plan->n_maps++] =
        (smk_tensor_map){.arg_offset = (uint32_t)offset,
                         .type = SMK_TENSOR_UINT8,
                         .rank = 3,
                         .size = {(uint64_t)columns, (uint64_t)rows, (uint64_t)planes},
                         .stride = {1, (uint64_t)columns, (uint64_t)(columns * rows)},
                         .box = {OZAKI_STEP, (uint32_t)box_rows, 1},
                         .step = {1, 1, 1},
                         .swizzle = SMK_SWIZZLE_128B};
}

static void plan_operand(builder *w, ozaki_operand *out, int index, int64_t planes,
                         int64_t exponents) {
    const blocking *b = &w->blocks;
    const smk_matrix *matrix = index ? &w->problem->b : &w->problem->a;
    const bool batched = batch_z_stride(w->batch, index) != 0;
    add_pointer_into(w, &out->planes, planes);
    add_pointer_into(w, &out->exponent, exponents);
    out->row_stride = index ? matrix->step : matrix->ld;
    out->k_stride = index ? matrix->ld : matrix->step;
    out->plane = index ? b->b_plane : b->a_plane;
    out->all_rows = index ? w->problem->N : w->problem->M;
    out->batch_planes = batched ? b->moduli * out->plane : 0;
    out->batch_exponents = batched ? exponents_of(out->all_rows) : 0;
    out->pitch = (int)b->k_pitch;
    out->by_rows = out->k_stride == 1 || w->problem->K == 1;
    out->scaling = (int)ceil_div(out->all_rows, OZAKI_SCALE_ROWS);
}

static void plan_shared(builder *w) {
    const blocking *b = &w->blocks;
    ozaki_args *o = &w->args.ozaki;
    add_pointer(w, &w->args.gemm.A, 0);
    add_pointer(w, &w->args.gemm.B, 1);
    add_pointer(w, &w->args.gemm.C, 2);
    if (w->problem->K == 0) return;
    plan_operand(w, &o->a, 0, b->a, b->a_exponents);
    plan_operand(w, &o->b, 1, b->b, b->b_exponents);
    add_pointer_into(w, &o->c, b->c);
    o->c_plane = b->c_plane;
    o->c_batch = b->moduli * b->c_plane;
    o->c_pitch = (int)b->c_pitch;
    w->plan->workspace = (size_t)b->end;
    if (!w->variant->ozaki.tma) return;
    add_map(w, 0, b->a, b->k_pitch, b->m, b->moduli * b->a_z, w->geometry->output_tile[0]);
    add_map(w, 1, b->b, b->k_pitch, round_up(b->n, OZAKI_GROUP), b->moduli * b->b_z,
            w->geometry->output_tile[1]);
    add_map(w, 2, b->c, b->c_pitch, b->m, b->moduli * b->z, w->geometry->output_tile[0] / 2);
}

/* ---- launches ---- */

/* A block: where it begins, and the matrices of the batch. */
typedef struct block {
    int64_t m, n, k, z;
    int64_t base[SMK_MAX_OPERANDS]; /* elements from an operand's first matrix to this launch's */
} block;

static int64_t element_size(void) {
    return (int64_t)sizeof(double);
}

/* Arguments of a block, over those that all share. */
static arguments block_args(const builder *w, const block *at) {
    const blocking *b = &w->blocks;
    const smk_gemm *p = w->problem;
    arguments args = w->args;
    ozaki_args *o = &args.ozaki;
    args.gemm.M = min_i64(b->m, p->M - at->m);
    args.gemm.N = min_i64(b->n, p->N - at->n);
    args.gemm.A = p->a.offset + (at->base[0] + at->m * p->a.ld) * element_size();
    args.gemm.B = p->b.offset + (at->base[1] + at->n * p->b.step) * element_size();
    args.gemm.C = p->c.offset + (at->base[2] + at->m * p->c.ld + at->n) * element_size();
    o->a.exponent += at->m * (int64_t)sizeof(int);
    o->b.exponent += at->n * (int64_t)sizeof(int);
    o->a.rows = (int)args.gemm.M;
    o->b.rows = (int)args.gemm.N;
    o->first_k = (int)at->k;
    o->k = (int)min_i64(b->k, p->K - at->k);
    o->batches = (int)min_i64(b->z, batch_z_size(w->batch) - at->z);
    return args;
}

/* Blocks that pack an operand's `rows` rows. */
static int64_t packing_blocks(const ozaki_operand *o, int64_t rows) {
    const int64_t warps = OZAKI_PACK_THREADS / 32;
    return ceil_div(o->by_rows ? rows * ceil_div(o->pitch, 32 * OZAKI_PACK_K_MAJOR)
                               : ceil_div(rows, OZAKI_PACK_ROWS) * (o->pitch / OZAKI_PACK_K),
                    warps);
}

/* Appends a launch; plan->launches has room. */
static smk_launch *add_launch(builder *w, const char *entry, int64_t blocks, int64_t z,
                              int64_t threads, const arguments *args) {
    smk_launch *launch = &w->plan->launches[w->plan->n_launches];
    *launch = (smk_launch){.entry = entry,
                           .grid = {(uint32_t)blocks, 1, (uint32_t)z},
                           .block = {(uint32_t)threads, 1, 1},
                           .overlaps = w->plan->n_launches > 0,
                           .args = args};
    w->plan->n_launches++;
    return launch;
}

/* Persistent blocks, which take the tiles of all planes. */
static void add_product(builder *w, int64_t m, int64_t n, int64_t z, const arguments *args) {
    const int64_t *tile = w->geometry->output_tile;
    const int64_t tiles = ceil_div(m, tile[0]) * ceil_div(n, tile[1]) * w->blocks.moduli * z;
    add_launch(w, w->variant->entry, min_i64(tiles, w->problem->multiprocessors), 1,
               w->geometry->threads[0], args)
        ->shared_bytes = (size_t)w->geometry->shared_bytes;
}

/* The launches of a block. */
static void add_block(builder *w, const block *at, arguments *args) {
    const blocking *b = &w->blocks;
    const smk_ozaki *kernels = &w->variant->ozaki;
    ozaki_args *o = &args->ozaki;
    const int64_t z = o->batches, m = args->gemm.M, n = args->gemm.N;
    if (w->problem->K > 0) {
        if (at->m == 0 && at->n == 0 && at->k == 0)
            add_launch(w, kernels->scale, o->a.scaling + o->b.scaling, z, 32 * OZAKI_SCALE_ROWS,
                       args);
        /* B's columns stay packed for the blocks of A's rows. */
        const bool packed = at->m > 0 && b->k >= w->problem->K;
        o->a.packing = (int)packing_blocks(&o->a, m);
        o->b.packing = packed ? 0 : (int)packing_blocks(&o->b, round_up(n, OZAKI_GROUP));
        add_launch(w, kernels->pack, o->a.packing + o->b.packing, z, OZAKI_PACK_THREADS, args);
        add_product(w, m, n, z, args);
    }
    if (at->k + b->k >= w->problem->K)
        add_launch(w, kernels->combine,
                   ceil_div(m * ceil_div(n, OZAKI_COMBINE_COLUMNS), OZAKI_COMBINE_THREADS), z,
                   OZAKI_COMBINE_THREADS, args);
}

/* All blocks of the matrices of a launch. */
static void add_blocks(builder *w, block at, arguments **args) {
    const smk_gemm *p = w->problem;
    const blocking *b = &w->blocks;
    for (at.n = 0; at.n < p->N; at.n += b->n)
        for (at.m = 0; at.m < p->M; at.m += b->m) {
            at.k = 0;
            do {
                **args = block_args(w, &at);
                add_block(w, &at, (*args)++);
                at.k += b->k;
            } while (at.k < p->K);
        }
}

/* Each index of the batch's dimensions, those folded into z in chunks. */
static smk_code add_batches(builder *w, smk_status *status) {
    const batch_iterator *it = w->batch;
    const blocking *b = &w->blocks;
    const smk_gemm *p = w->problem;
    const int64_t z_size = batch_z_size(it);
    const double blocks = (double)ceil_div(p->M, b->m) * (double)ceil_div(p->N, b->n) *
                          (double)(p->K ? ceil_div(p->K, b->k) : 1);
    const double n = blocks * (double)(it->total / z_size) * (double)ceil_div(z_size, b->z);
    const double bytes = n * (sizeof(arguments) + MAX_STEP_KERNELS * sizeof(smk_launch));
    arguments *args = bytes < 1e9 ? calloc((size_t)n, sizeof *args) : NULL;
    w->plan->launches =
        args ? calloc((size_t)n * MAX_STEP_KERNELS, sizeof *w->plan->launches) : NULL;
    w->plan->args = (unsigned char *)args;
    if (w->plan->launches == NULL) {
        smk_plan_free(w->plan);
        return smk_fail_memory(status, (size_t)bytes,
                               "the launches of a batch; make it contiguous to have one launch");
    }
    int64_t index[SMK_MAX_BATCH] = {0};
    for (int64_t outer = 0; outer < it->total / z_size; outer++) {
        block at = {0};
        for (int o = 0; o < it->n_operands; o++)
            for (int d = 0; d < it->n; d++)
                at.base[o] += index[d] * it->stride[o][d];
        for (at.z = 0; at.z < z_size; at.z += b->z) {
            add_blocks(w, at, &args);
            for (int o = 0; o < it->n_operands; o++)
                at.base[o] += b->z * batch_z_stride(it, o);
        }
        for (int d = it->n - 1; d >= 0; d--) {
            if (d != it->z && ++index[d] < it->size[d]) break;
            index[d] = 0;
        }
    }
    return SMK_OK;
}

/* The kernels count rows, steps and tiles with ints. */
static smk_code check_sizes(const builder *w, smk_status *status) {
    const smk_gemm *p = w->problem;
    const int64_t max_size = 1 << 30;
    const double tiles = (double)ceil_div(w->blocks.m, w->geometry->output_tile[0]) *
                         (double)ceil_div(w->blocks.n, w->geometry->output_tile[1]);
    if (p->M <= max_size && p->N <= max_size && p->K <= max_size &&
        tiles * (double)(w->blocks.moduli * w->blocks.z) < (double)MAX_GRID_X)
        return SMK_OK;
    return smk_fail(status, SMK_VALUE,
                    "gemm variant '%s': M, N and K may be %" PRId64 " at most, not %" PRId64
                    ", %" PRId64 ", %" PRId64 "; take another variant, or split the arrays",
                    w->variant->name, max_size, p->M, p->N, p->K);
}

smk_code plan_ozaki(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_geometry geometry = geometry_of(variant, dtype, values, 0);
    const smk_matrix *matrices[] = {&problem->a, &problem->b, &problem->c};
    const batch_iterator batch = batch_fold(&problem->batch, matrices, 3);
    builder w = {.variant = variant,
                 .problem = problem,
                 .batch = &batch,
                 .geometry = &geometry,
                 .plan = plan,
                 .args = {.gemm = plan_gemm_args(problem, &batch)}};
    *plan = (smk_plan){.args_bytes = sizeof(arguments),
                       .parameters = {offsetof(arguments, gemm), offsetof(arguments, ozaki)},
                       .n_parameters = 2 + SMK_MAX_MAPS};
    for (size_t i = 0; i < SMK_MAX_MAPS; i++)
        plan->parameters[2 + i] = (uint32_t)(offsetof(arguments, maps) + i * SMK_TENSOR_MAP_BYTES);
    if (problem->M == 0 || problem->N == 0 || batch.total == 0) return SMK_OK;
    w.blocks = choose_blocks(&w, values);
    const int lead = smk_variant_param(variant, "lead");
    w.args.ozaki.lead = lead < 0 ? 0 : (int)values[lead];
    if (check_sizes(&w, status)) return status->code;
    plan_shared(&w);
    return add_batches(&w, status);
}
