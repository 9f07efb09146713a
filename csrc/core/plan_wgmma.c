/* Plans rows whose kernels read A and B by TMA (kernels/include/wgmma_gemm.cuh,
 * gemm_tma.cu). A plan has up to 3 launches:
 *
 *     <entry>_pack      packs operands that TMA cannot read in place or that are scaled; finds the
 *                       largest element of each column of B if the product splits B into terms
 *     <entry>           the product; _a, _b, _ab: A, B, both are MN-major
 *     <entry>_reduce    split-K: sums the K ranges (plan_split.c)
 *
 * All of them take gemm_args, wgmma_args and the tensor maps of A, B and C. With split-K the
 * partial sums have C's tensor map.
 */
#include "plan_parts.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "../kernels/args.h"

enum { SWIZZLE_BYTES = 128, SLOT_ALIGN = 256, WORKSPACE = 3, PREPACKED = 4 };
enum { PANEL_MORE = 4096 }; /* bytes of shared memory of a block that packs panels, besides them */

typedef struct arguments {
    gemm_args gemm;
    wgmma_args wgmma;
    _Alignas(SMK_TENSOR_MAP_ALIGN) unsigned char maps[SMK_MAX_MAPS][SMK_TENSOR_MAP_BYTES];
} arguments;

/* A or B as the kernel reads it: a "row" is a row of A or a column of B, along K. With b_by_rows
 * it is a row of B, and `k` stands for N. Strides in elements. */
typedef struct operand {
    int index;  /* 0: the kernel's A, 1: its B */
    int buffer; /* the same; exchanged if the product is that of the transposes */
    const smk_matrix *matrix;
    int64_t rows, k, row_stride, k_stride;
    int64_t tile;          /* rows per TMA box */
    int64_t deep;          /* k per TMA box, of an MN-major tile */
    int64_t sharing;       /* blocks that share tiles, and copy equal parts of them */
    smk_tensor_type type;  /* element type that TMA loads */
    int element;           /* its bytes */
    int terms;             /* that TMA loads per element; 1: the matrix's own bits */
    bool scaled;           /* it is packed, times the power of two of its row */
    bool accepts_mn_major; /* the kernel reads MN-major tiles */
    bool in_place;         /* TMA reads the matrix itself; else a packed copy */
    bool mn_major;         /* what TMA reads is MN-major */
} operand;

typedef struct builder {
    const smk_variant *variant;
    smk_plan *plan;
    const smk_gemm *problem;
    const batch_iterator *batch;
    arguments *args;
    int element;       /* bytes per element in shared memory ... */
    int itemsize;      /* ... and in the matrices */
    int64_t workspace; /* bytes so far */
    ring_form form;
} builder;

static void add_pointer(builder *w, size_t arg_offset, uint32_t buffer) {
    w->plan->pointers[w->plan->n_pointers++] = (smk_pointer){(uint32_t)arg_offset, buffer};
}

/* Points an argument to byte `at` of the workspace or of a buffer for prepacked operands. The
 * argument holds `at` until the device adds the buffer's address. */
static void add_pointer_into(builder *w, uint32_t buffer, long long *pointer, int64_t at) {
    *pointer = at;
    add_pointer(w, (size_t)((unsigned char *)pointer - (unsigned char *)w->args), buffer);
}

/* ---- tensor maps ---- */

/* Fills tensor map `index` of the arguments, for a tensor at byte `at` of a buffer. Sizes are
 * innermost first; strides are those of the two outer dimensions, in bytes. */
static void add_map(builder *w, int index, uint32_t buffer, int64_t at, smk_tensor_type type,
                    const int64_t size[3], const int64_t stride[2], const uint32_t box[2]) {
    const uint32_t row = box[0] * smk_tensor_type_bytes(type);
    const size_t offset = offsetof(arguments, maps) + (size_t)index * SMK_TENSOR_MAP_BYTES;
    *(long long *)(void *)w->args->maps[index] = at;
    add_pointer(w, offset, buffer);
    w->plan->maps[w->plan->n_maps++] = (smk_tensor_map){
        .arg_offset = (uint32_t)offset,
        .type = type,
        .rank = 3,
        .size = {(uint64_t)size[0], (uint64_t)size[1], (uint64_t)size[2]},
        .stride = {smk_tensor_type_bytes(type), (uint64_t)stride[0], (uint64_t)stride[1]},
        .box = {box[0], box[1], 1},
        .step = {1, 1, 1},
        /* A result's box has rows of 64 bytes if it is of 16 bits. An operand's has 128, or less in
         * rows that are 128 bytes apart. */
        .swizzle = index < 2 || row == SWIZZLE_BYTES ? SMK_SWIZZLE_128B : SMK_SWIZZLE_64B};
}

/* Matrices of an operand per launch; 1 if it is broadcast. */
static int64_t matrices_of(const batch_iterator *it, int index) {
    const int64_t z = batch_z_size(it) < MAX_GRID_Z ? batch_z_size(it) : MAX_GRID_Z;
    return batch_z_stride(it, index) ? z : 1;
}

static bool is_multiple(const batch_iterator *it, int index, int64_t elements) {
    for (int d = 0; d < it->n; d++)
        if (it->stride[index][d] % elements) return false;
    return true;
}

/* Whether TMA can access the matrices: each row, and each matrix of the batch, begins at a
 * multiple of 16 bytes. */
static bool tma_can_access(const batch_iterator *it, int index, const smk_matrix *m, int64_t rows,
                           int64_t stride, int element) {
    const int64_t unit = TMA_ALIGN / element;
    return m->offset % TMA_ALIGN == 0 && is_multiple(it, index, unit) &&
           (rows == 1 || (stride > 0 && stride % unit == 0)) && batch_z_stride(it, index) >= 0;
}

/* ---- operands ---- */

/* Chooses how TMA reads an operand. wgmma reads 32-bit operands from shared memory only if they
 * are K-major. One goes through registers instead, where it is rounded or split, so it may be
 * MN-major: B, or the first of wgmma_tf32.cuh. */
static void choose_layout(const builder *w, operand *s, int itemsize) {
    const smk_wgmma *kind = &w->variant->wgmma;
    const int index = kind->columns ? 0 : 1; /* of one that goes through registers */
    const bool registers =
        s->index == index && itemsize == 4 && !kind->b_by_rows && !wgmma_packs_b(kind, itemsize);
    const bool k_major = s->k_stride == 1 || s->k == 1;
    s->type = registers ? SMK_TENSOR_FLOAT32 : kind->operand;
    s->terms = registers ? 1 : kind->terms;
    s->element = (int)smk_tensor_type_bytes(s->type);
    s->accepts_mn_major = registers || itemsize == 2;
    s->mn_major = s->accepts_mn_major && !k_major && (s->row_stride == 1 || s->rows == 1);
    s->scaled = wgmma_scales(kind, itemsize) && !registers;
    s->in_place =
        !s->scaled && (k_major || s->mn_major) &&
        (k_major ? tma_can_access(w->batch, s->buffer, s->matrix, s->rows, s->row_stride, itemsize)
                 : tma_can_access(w->batch, s->buffer, s->matrix, s->k, s->k_stride, itemsize));
    /* A packed copy keeps the layout of its matrix, unless its rows would be mostly padding. */
    s->mn_major &= s->in_place || (!s->scaled && s->rows >= PACK_TILE);
}

/* Boxes of an MN-major tile have 128 bytes of its lines, or all of fewer columns, for each of
 * `deep` k. */
static void box_of(const operand *s, uint32_t box[2]) {
    const int64_t wide = SWIZZLE_BYTES / s->element;
    box[0] = (uint32_t)(s->mn_major && s->tile < wide && s->element == 2 ? s->tile : wide);
    box[1] = (uint32_t)((s->mn_major ? s->deep : s->tile) / s->sharing);
    if (box[1] > MOST_BOX_ROWS) box[1] /= 2;
}

/* Bytes that the boxes of a stage copy, of all blocks that share it. */
static int64_t stage_bytes_of(const operand *s) {
    uint32_t box[2];
    if (s->k == 0) return 0;
    box_of(s, box);
    const int64_t rows = s->mn_major ? s->deep : s->tile;
    return (s->mn_major ? round_up(s->tile, box[0]) : box[0]) * rows * s->element;
}

static void map_in_place(builder *w, const operand *s) {
    uint32_t box[2];
    box_of(s, box);
    const int64_t inner = s->mn_major ? s->rows : s->k, outer = s->mn_major ? s->k : s->rows;
    const int64_t stride = s->mn_major ? s->k_stride : s->row_stride;
    const int64_t pitch = outer > 1 ? stride * s->element : round_up(inner * s->element, TMA_ALIGN);
    const int64_t z = batch_z_stride(w->batch, s->buffer) * s->element;
    add_map(w, s->index, (uint32_t)s->buffer, 0, s->type,
            (int64_t[]){inner, outer, matrices_of(w->batch, s->buffer)},
            (int64_t[]){pitch, z ? z : pitch}, box);
}

static int64_t panel_bytes(int64_t rows, int64_t k) {
    return k / 8 * PANEL_WORDS(rows) * (int64_t)sizeof(float);
}

/* k of a panel that fit into the shared memory of one of so many blocks of a multiprocessor, in
 * whole tiles. */
static int64_t kept_by(int64_t rows, int64_t blocks) {
    return (MOST_SHARED / blocks - PANEL_MORE) / panel_bytes(rows, PACK_TILE) * PACK_TILE;
}

/* How clusters pack MN-major rows that are scaled, a panel each: in so many ranges, if a cluster
 * can have them, that all multiprocessors have blocks, and that these keep what they read. Panels
 * are thinner if there would be fewer blocks than multiprocessors. */
static void plan_panels(const operand *s, int64_t batch, int64_t multiprocessors,
                        wgmma_operand *out) {
    const int64_t tiles = ceil_div(s->k, PACK_TILE), most = min_i64(tiles, MAX_CLUSTER);
    const int64_t rows =
        ceil_div(s->rows, LARGEST_ROWS) * batch * most < multiprocessors ? PANEL_FEW : LARGEST_ROWS;
    const int64_t panels = ceil_div(s->rows, rows);
    const int64_t wanted = max_i64(ceil_div(PACK_RESIDENT * multiprocessors, panels * batch),
                                   ceil_div(s->k, kept_by(rows, PACK_RESIDENT)));
    const int64_t ranges = min_i64(wanted, most);
    const int64_t resident =
        multiprocessors ? ceil_div(panels * batch * ranges, multiprocessors) : 1;
    out->panel = (int)rows;
    out->range = (int)(ceil_div(tiles, ranges) * PACK_TILE);
    out->kept = (int)min_i64(out->range, kept_by(rows, min_i64(resident, PACK_RESIDENT)));
}

/* Plans the prepacking of an operand: room, in a buffer of its own or in the workspace, and the
 * arguments of the prepacking kernels. */
static void plan_prepack(builder *w, const operand *s, wgmma_operand *out) {
    const smk_prepacked *room = &w->problem->prepack.prepacked[s->buffer];
    const int64_t inner = s->mn_major ? s->rows : s->k, outer = s->mn_major ? s->k : s->rows;
    const int64_t step = SWIZZLE_BYTES / w->element; /* elements of K */
    const int64_t pitch = round_up(inner, step), z = matrices_of(w->batch, s->buffer);
    const int64_t words = s->rows * (int64_t)sizeof(unsigned) * (w->variant->wgmma.guarded ? 2 : 1);
    const int64_t chunks = ceil_div(s->k, LARGEST_K);
    const int64_t warps = ceil_div(s->rows, PACK_ROWS);
    const bool scales = wgmma_scales(&w->variant->wgmma, w->itemsize);
    int64_t slot = 0, largest = 0;
    out->row_stride = s->row_stride;
    out->k_stride = s->k_stride;
    out->pitch = pitch;
    out->by_rows = s->k_stride == 1 || s->k == 1;
    out->across = s->mn_major;
    out->chunks = s->scaled || out->by_rows ? 1 : (int)chunks;
    if (!s->in_place) {
        const int64_t chunk = PACK_PIECES * (16 / w->itemsize); /* elements that a warp packs */
        const int64_t chunks_per_row = s->scaled ? 1 : ceil_div(inner, chunk);
        slot = round_up(s->terms * outer * pitch * s->element, SLOT_ALIGN);
        const bool by_blocks = s->k > LARGEST_K; /* pack a scaled row each, else warps do */
        const bool few = !s->scaled && inner * w->itemsize <= PACK_SHORT;
        const int64_t rows = few ? PACK_THREADS / PACK_FEW : PACK_ROWS; /* per block */
        if (s->scaled && !out->by_rows) plan_panels(s, z, w->problem->multiprocessors, out);
        out->packing = (int)(out->panel ? ceil_div(s->rows, out->panel)
                             : out->by_rows && s->scaled && by_blocks ? s->rows
                             : out->by_rows || s->mn_major
                                 ? ceil_div(outer * chunks_per_row, rows)
                                 : ceil_div(s->rows, PACK_TILE) * ceil_div(s->k, PACK_TILE));
    }
    if (scales) {
        largest = slot;
        slot = round_up(slot + words * out->chunks, SLOT_ALIGN);
        out->searching = s->scaled      ? 0 /* what packs a row finds it */
                         : out->by_rows ? (int)warps
                                        : (int)(ceil_div(s->rows, LARGEST_ROWS) * chunks);
    }
    out->batch = batch_z_stride(w->batch, s->buffer) ? slot : 0;
    const bool reusable = slot * z <= room->bytes;
    const uint32_t buffer = reusable ? (uint32_t)(PREPACKED + s->buffer) : WORKSPACE;
    const int64_t at = reusable ? room->offset : w->workspace;
    if (!s->in_place) add_pointer_into(w, buffer, &out->packed, at);
    if (scales) add_pointer_into(w, buffer, &out->largest, at + largest);
    if (reusable ? room->made : w->problem->prepack.only) out->packing = out->searching = 0;
    if (!s->in_place) {
        uint32_t box[2];
        box_of(s, box);
        add_map(w, s->index, buffer, at, s->type, (int64_t[]){inner, s->terms * outer, z},
                (int64_t[]){pitch * s->element, slot}, box);
    }
    if (reusable)
        w->plan->prepacked_bytes[s->buffer] = (size_t)(slot * z);
    else
        w->workspace += slot * z;
}

/* ---- the plan ---- */

/* The kernels count and index with ints. */
static smk_code check_sizes(const smk_variant *variant, const smk_gemm *p, smk_status *status) {
    const int64_t max_size = INT32_MAX / (2 * PACK_TILE) - 1;
    if (p->M <= max_size && p->N <= max_size && p->K <= max_size &&
        ceil_div(p->M, PACK_TILE) * ceil_div(p->K, PACK_TILE) <= INT32_MAX &&
        ceil_div(p->N, PACK_TILE) * ceil_div(p->K, PACK_TILE) <= INT32_MAX)
        return SMK_OK;
    return smk_fail(status, SMK_VALUE,
                    "gemm variant '%s': M, N and K may be %" PRId64 " at most, not %" PRId64
                    ", %" PRId64 ", %" PRId64 "; take another variant, or split the arrays",
                    variant->name, max_size, p->M, p->N, p->K);
}

static smk_tensor_type type_of(const smk_dtype *dtype) {
    int type = 0;
    while (type < SMK_N_TENSOR_TYPES - 1 &&
           strcmp(smk_tensor_type_name((smk_tensor_type)type), dtype->name))
        type++;
    return (smk_tensor_type)type;
}

static void plan_operands(builder *w, const smk_gemm *p, const smk_dtype *dtype,
                          const smk_geometry *g, operand operands[2]) {
    wgmma_args *args = &w->args->wgmma;
    const int64_t step = SWIZZLE_BYTES / w->element; /* elements of K */
    const bool by_rows = w->variant->wgmma.b_by_rows;
    operands[0] = (operand){.index = 0,
                            .matrix = &p->a,
                            .rows = p->M,
                            .k = p->K,
                            .row_stride = p->a.ld,
                            .k_stride = p->a.step,
                            .sharing = 1,
                            .tile = g->output_tile[0]};
    operands[1] = (operand){.index = 1,
                            .buffer = 1,
                            .matrix = &p->b,
                            .rows = by_rows ? p->K : p->N,
                            .k = by_rows ? p->N : p->K,
                            .row_stride = by_rows ? p->b.ld : p->b.step,
                            .k_stride = by_rows ? p->b.step : p->b.ld,
                            .sharing = 1,
                            .tile = by_rows ? step : g->output_tile[1]};
    if (w->form.swapped) { /* C^T = B^T A^T */
        const operand a = operands[0];
        operands[0] = operands[1];
        operands[1] = a;
        operands[0].index = 0;
        operands[1].index = 1;
    }
    operands[0].sharing = w->form.multicast_a;
    operands[1].sharing = w->form.multicast;
    /* A guarded row's stage of fp16 is two of tf32, which are loaded by the same boxes. */
    operands[0].deep = operands[1].deep = w->variant->wgmma.guarded ? step / 2 : step;
    args->steps = (int)ceil_div(p->K, step);
    for (int i = 0; i < 2; i++) {
        wgmma_operand *out = i ? &args->b : &args->a;
        out->rows = (int)operands[i].rows;
        out->k = (int)operands[i].k;
        if (p->K == 0) continue;
        choose_layout(w, &operands[i], dtype->itemsize);
        if (operands[i].in_place) map_in_place(w, &operands[i]);
        if (!operands[i].in_place || wgmma_scales(&w->variant->wgmma, w->itemsize))
            plan_prepack(w, &operands[i], out);
    }
}

/* Kernels of wgmma_fp32.cuh store partial sums by TMA, as they store C: the whole batch of one K
 * range after the other. */
static void map_partial_sums(builder *w, const smk_gemm *p) {
    const gemm_args *args = &w->args->gemm;
    const int64_t pitch = args->part_pitch * (int64_t)sizeof(float);
    w->args->wgmma.store_boxes = 1;
    add_map(w, 2, WORKSPACE, args->parts, SMK_TENSOR_FLOAT32,
            (int64_t[]){args->part_pitch, p->M, args->split * matrices_of(w->batch, 2)},
            (int64_t[]){pitch, p->M * pitch}, (uint32_t[]){32, 32});
}

static void map_result(builder *w, const smk_gemm *p, const smk_dtype *dtype) {
    const int itemsize = dtype->itemsize;
    if (w->args->gemm.split > 1) {
        if (itemsize == 4 && !w->variant->wgmma.columns) map_partial_sums(w, p);
        return;
    }
    if (p->N * itemsize % TMA_ALIGN) return; /* TMA stores whole chunks, past a row's end too */
    if (w->form.thin || !tma_can_access(w->batch, 2, &p->c, p->M, p->c.ld, itemsize)) return;
    const int64_t pitch = (p->M > 1 ? p->c.ld : p->N) * itemsize;
    const int64_t z = batch_z_stride(w->batch, 2) * itemsize;
    /* As wgmma_tiles.cuh stores it, or wgmma_fp32.cuh. */
    const bool swapped = w->form.swapped || !w->variant->wgmma.columns;
    const uint32_t box[] = {swapped && itemsize == 2 ? 64 : 32, swapped ? 32 : 64};
    w->args->wgmma.store_boxes = 1;
    add_map(w, 2, 2, 0, type_of(dtype), (int64_t[]){p->N, p->M, matrices_of(w->batch, 2)},
            (int64_t[]){pitch, z ? z : pitch}, box);
}

/* Where a product's blocks can count all tiles of the batch in 31 bits, they do; else each has the
 * matrix of its blockIdx.z. */
static void loop_over_batch(builder *w, const smk_gemm *p, const smk_geometry *g, launch_shape *s) {
    const int64_t rows = ceil_div(p->M, g->output_tile[0]);
    const int64_t z = batch_z_size(w->batch) < MAX_GRID_Z ? batch_z_size(w->batch) : MAX_GRID_Z;
    const int64_t tiles = rows * ceil_div(p->N, g->output_tile[1]) * w->args->gemm.split;
    if (!w->variant->wgmma.columns || z <= 1 || tiles > MAX_GRID_X / z) return;
    s->kernels[0].loops_over_batch = true;
    s->batches_offset = offsetof(arguments, wgmma.batches);
}

/* Lists the work of the product's blocks, and sets their number: persistent blocks balance the
 * tiles over the multiprocessors. Narrow tiles at the right edge cost less than full ones, so they
 * are not worth another wave and do not count. */
static void list_work(const builder *w, const operand operands[2], const smk_gemm *p,
                      const smk_geometry *g, kernel *product) {
    const bool swapped = w->form.swapped;
    const int64_t tile_rows = g->output_tile[swapped], tile_columns = g->output_tile[!swapped];
    const int64_t m = swapped ? p->N : p->M, n = swapped ? p->M : p->N;
    /* The tiles of blocks that share some are a rectangle, and count as one. */
    const int64_t multicast = w->form.multicast, multicast_a = w->form.multicast_a;
    const int64_t group_rows = tile_rows * multicast, sharing = ring_sharing(w->form);
    const int64_t band = max_i64(1, TILE_ORDER_ROWS / group_rows);
    const int64_t columns = ceil_div(n, tile_columns * multicast_a), down = ceil_div(m, group_rows);
    const bool narrow = w->form.thin || (!w->form.clustered && multicast_a == 1 &&
                                         ring_is_narrow(w->itemsize, n, tile_columns));
    const int64_t across = columns - narrow, split = w->args->gemm.split;
    const int64_t matrices = product->loops_over_batch ? batch_z_size(w->batch) : 1;
    /* A cluster takes all ranges of a tile as one item. */
    const int64_t parts = product->cluster ? 1 : split, ranges = parts * matrices;
    const int64_t steps = w->args->wgmma.steps;
    const int64_t tiles = down * columns * ranges, full = down * across * ranges;
    const int64_t resident =
        w->variant->wgmma.columns ? ring_blocks(tile_rows, tiles * sharing, p->multiprocessors) : 1;
    const int64_t room = max_i64(
        1, (int64_t)ring_room((double)sharing, (double)resident, (double)p->multiprocessors));
    w->args->gemm.tiles = tile_list_of(down, across, band, steps, split);
    w->args->wgmma.moves_a = w->args->gemm.batch_a ? -1 : 0;
    w->args->wgmma.moves_b = w->args->gemm.batch_b ? -1 : 0;
    w->args->wgmma.list = (work_list){.items = (int)tiles,
                                      .split = (int)parts,
                                      .ranges = (int)ranges,
                                      .by_down = divisor_of(down),
                                      .by_split = divisor_of(parts)};
    if (w->variant->wgmma.columns) {
        /* Rows of an MN-major B's tile have 64 columns. */
        const int64_t wide = operands[1].mn_major ? 64 : 1;
        const int64_t tile[] = {tile_rows, round_up(tile_columns, wide)};
        product->shared_bytes = resident > 1 ? RING_BYTES_OF_TWO : RING_BYTES;
        w->args->wgmma.columns = (int)tile_columns;
        w->args->wgmma.stage_bytes =
            (int)(stage_bytes_of(&operands[0]) + stage_bytes_of(&operands[1]));
        w->args->wgmma.multicast = (int)multicast;
        w->args->wgmma.multicast_a = (int)multicast_a;
        w->args->wgmma.share_a =
            (int)((operands[0].mn_major ? operands[0].deep : tile_rows) / multicast_a);
        const int64_t copied = operands[1].mn_major ? operands[1].deep : tile_columns;
        w->args->wgmma.share = (int)(copied / multicast);
        const int64_t summed = swapped ? tile_columns : 64; /* rows of C of a warpgroup */
        const int64_t added_parts = product->cluster ? split : 1;
        const int64_t added = ceil_div(summed, added_parts);
        w->args->wgmma.parts = (int)added_parts;
        w->args->wgmma.added = (int)added;
        w->args->wgmma.swapped = swapped;
        w->args->wgmma.stages =
            (int)ring_stages(w->form, tile, added, added_parts, (int64_t)product->shared_bytes);
    }
    const int64_t counted = w->form.thin ? tiles : full;
    const int64_t groups = counted <= room ? (tiles < room ? tiles : room)
                                           : ceil_div(counted, ceil_div(counted, room));
    const int64_t each = product->cluster ? split : 1;
    product->blocks = (uint32_t)((product->cluster ? tiles : groups) * each * sharing);
    if (each * sharing > 1) product->cluster = (uint32_t)(each * sharing);
    w->args->wgmma.list.at_once = (int)(product->blocks / max_i64(1, product->cluster));
}

static const char *product_of(const builder *w, const operand operands[2], const smk_geometry *g) {
    const smk_wgmma *kind = &w->variant->wgmma;
    const bool a = operands[0].mn_major, b = operands[1].mn_major;
    for (int i = 0; i < SMK_MAX_WIDTHS && kind->by_columns[i].columns; i++)
        if (kind->by_columns[i].columns == g->output_tile[!w->form.swapped])
            return kind->by_columns[i].products[w->form.swapped][a];
    return (w->form.thin        ? kind->thin
            : w->form.clustered ? kind->summed
            : w->form.swapped   ? kind->swapped
                                : kind->products)[a][b];
}

/* The launch that packs operands. If clusters pack rows of one, all blocks are in such clusters,
 * and other work, which is counted in blocks, is divided among them. */
static kernel packing_of(builder *w, const char *entry) {
    wgmma_operand *both[] = {&w->args->wgmma.a, &w->args->wgmma.b};
    int64_t ranks = 1, clusters = 0, bytes = PACK_TILE * (PACK_TILE + 1) * w->itemsize;
    for (int i = 0; i < 2; i++) {
        if (!both[i]->packing || !both[i]->panel) continue;
        ranks = max_i64(ranks, ceil_div(both[i]->k, both[i]->range));
        bytes = max_i64(bytes, panel_bytes(both[i]->panel, both[i]->kept));
    }
    for (int i = 0; i < 2; i++) {
        if (!both[i]->panel) both[i]->packing = (int)ceil_div(both[i]->packing, ranks);
        both[i]->searching = (int)ceil_div(both[i]->searching, ranks);
        clusters += (int64_t)both[i]->packing + both[i]->searching;
    }
    return (kernel){.entry = entry,
                    .blocks = (uint32_t)(clusters * ranks),
                    .threads = {PACK_THREADS, 1, 1},
                    .cluster = ranks > 1 ? (uint32_t)ranks : 0,
                    .shared_bytes = (size_t)bytes};
}

/* Inserts the prepacking kernel before the product, which is the only kernel of `s` so far. */
static void add_kernels(builder *w, const operand operands[2], const smk_gemm *p,
                        const smk_geometry *g, launch_shape *s) {
    const smk_wgmma *kind = &w->variant->wgmma;
    kernel product = s->kernels[0];
    product.entry = product_of(w, operands, g);
    list_work(w, operands, p, g, &product);
    s->n_kernels = 0;
    const kernel pack = packing_of(w, kind->pack);
    if (pack.blocks) s->kernels[s->n_kernels++] = pack;
    if (!p->prepack.only) s->kernels[s->n_kernels++] = product;
}

/* With these strides from one row (of A; column of B) to the next, and along K. */
static ring_operand of_strides(int64_t row_stride, int64_t k_stride, int64_t itemsize) {
    return ring_operand_of(k_stride != 1 && row_stride == 1,
                           (k_stride == 1 ? row_stride : k_stride) * itemsize);
}

/* Packed copies that products of several blocks share have one layout: that of the swapped form. */
static void choose_form_of_shared(const smk_variant *variant, const smk_prepack *p,
                                  int64_t *values) {
    if (p->for_blocks && variant->wgmma.by_columns[0].columns)
        values[smk_variant_param(variant, "swapped")] = RING_TRANSPOSES;
}

smk_code plan_wgmma(const smk_variant *variant, const smk_dtype *dtype, const int64_t *given,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status) {
    const smk_matrix *matrices[] = {&problem->a, &problem->b, &problem->c};
    const batch_iterator batch = batch_fold(&problem->batch, matrices, 3);
    const int64_t z = batch_z_size(&batch) < MAX_GRID_Z ? batch_z_size(&batch) : MAX_GRID_Z;
    int64_t values[SMK_MAX_PARAMS];
    memcpy(values, given, sizeof values[0] * (size_t)variant->n_params);
    choose_form_of_shared(variant, &problem->prepack, values);
    const int64_t sizes[] = {problem->M, problem->N, problem->K};
    ring_choose(variant, dtype, values, sizes, z,
                (ring_operand[]){of_strides(problem->a.ld, problem->a.step, dtype->itemsize),
                                 of_strides(problem->b.step, problem->b.ld, dtype->itemsize)},
                problem->multiprocessors);
    const ring_form form = ring_form_of(variant, values);
    smk_geometry geometry = geometry_of(variant, dtype, values, 0);
    arguments args = {.gemm = plan_gemm_args(problem, &batch), .wgmma.batches = 1};
    smk_gemm splitting = *problem;
    splitting.clusters &= ring_in_cluster(variant, values, sizes, z, problem->multiprocessors);
    if (form.thin)
        geometry.output_tile[1] =
            ring_thin_columns(problem->M < problem->N ? problem->M : problem->N);
    if (form.swapped) {
        const int64_t rows = geometry.output_tile[0];
        geometry.output_tile[0] = geometry.output_tile[1];
        geometry.output_tile[1] = rows;
        const long long batch_a = args.gemm.batch_a;
        args.gemm.batch_a = args.gemm.batch_b;
        args.gemm.batch_b = batch_a;
    }
    builder w = {.variant = variant,
                 .plan = plan,
                 .problem = problem,
                 .batch = &batch,
                 .args = &args,
                 .element = (int)smk_tensor_type_bytes(variant->wgmma.operand),
                 .itemsize = dtype->itemsize,
                 .form = form};
    operand operands[2];
    launch_shape s;
    *plan = (smk_plan){.args_bytes = sizeof args,
                       .parameters = {offsetof(arguments, gemm), offsetof(arguments, wgmma)},
                       .n_parameters = 2 + SMK_MAX_MAPS};
    for (size_t i = 0; i < SMK_MAX_MAPS; i++)
        plan->parameters[2 + i] = (uint32_t)(offsetof(arguments, maps) + i * SMK_TENSOR_MAP_BYTES);
    if (check_sizes(variant, problem, status) ||
        launch_shape_init(variant, dtype, &geometry, problem->M, problem->N, &s, status))
        return status->code;
    if (s.n_kernels == 0) return SMK_OK;
    const split_output output = {plan, &args.gemm, offsetof(arguments, gemm)};
    if (split_plan(variant, dtype, &geometry, values, &splitting, &batch, SWIZZLE_BYTES / w.element,
                   output, &s, status))
        return status->code;
    w.form.clustered = s.kernels[0].cluster > 0;
    w.workspace = (int64_t)plan->workspace;
    add_pointer(&w, offsetof(arguments, gemm.A), form.swapped);
    add_pointer(&w, offsetof(arguments, gemm.B), !form.swapped);
    add_pointer(&w, offsetof(arguments, gemm.C), 2);
    plan_operands(&w, problem, dtype, &geometry, operands);
    map_result(&w, problem, dtype);
    loop_over_batch(&w, problem, &geometry, &s);
    add_kernels(&w, operands, problem, &geometry, &s);
    if (!problem->prepack.only) split_add_reduce(variant, dtype, &args.gemm, &s);
    plan->workspace = (size_t)w.workspace;
    return plan_launches(plan, &s, &batch, matrices, &args, status);
}
