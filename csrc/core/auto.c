/* Predicted time of a variant: the sum of its terms, each a count from its plan times a cost.
 * They are enough to rank the rows, and few enough to be fitted to some hundreds of runs.
 */
#include "auto.h"

#include <string.h>

#include "plan_parts.h"

static const smk_dtype *dtype_of(const smk_variant *variant, const char *name) {
    for (int i = 0; i < variant->n_dtypes; i++)
        if (!strcmp(variant->dtypes[i].name, name)) return &variant->dtypes[i];
    return NULL;
}

/* Code with instructions of one architecture alone (sm_90a) runs on no other. */
static bool runs_on(const smk_variant *variant, int sm) {
    return sm == 0 || (variant->portable ? sm >= variant->min_sm : sm == variant->min_sm);
}

static bool can_run(const smk_variant *variant, const smk_query *q) {
    return variant->op == q->op && runs_on(variant, q->sm) && smk_strides_of(variant) >= q->strides;
}

/* Residues per element, each of a product of its own; 0: the variant multiplies the elements. */
static int64_t residues_of(const smk_timing *t) {
    return t->variant->ozaki.pack ? t->values[smk_variant_param(t->variant, "moduli")] : 0;
}

/* Elements of K per step; wgmma's operands have a type of their own. */
static int64_t step_of(const smk_timing *t) {
    const smk_wgmma *kind = &t->variant->wgmma;
    return STEP_BYTES /
           (kind->terms ? (int64_t)smk_tensor_type_bytes(kind->operand) : t->dtype->itemsize);
}

/* How the plan tiles the problem. In doubles: a product of three sizes may exceed 64 bits. */
typedef struct tiling {
    double tiles; /* of C, times the batch */
    double size;  /* elements of a tile, relative to the variant's output_tile */
    double lines; /* of a tile's rows and columns, the share that exists */
    double split; /* K ranges */
    bool cluster; /* whose blocks add them */
    double time;  /* predicted microseconds, of kernels that core/plan_ring.c tiles; else 0 */
} tiling;

static bool is_aligned(const smk_query *q) {
    return q->alignment >= SMK_ALIGN_16;
}

static tiling ring_tiling(const smk_timing *t, const smk_query *q) {
    int64_t values[SMK_MAX_PARAMS];
    memcpy(values, t->values, sizeof values);
    const int64_t sizes[] = {q->M, q->N, q->K};
    ring_operand operands[2];
    ring_operands(sizes, q->k_major, t->dtype->itemsize, is_aligned(q), operands);
    const int64_t multiprocessors = q->multiprocessors ? q->multiprocessors : 1;
    const double time =
        ring_choose(t->variant, t->dtype, values, sizes, q->batch, operands, multiprocessors);
    return (tiling){.split = (double)values[smk_variant_param(t->variant, "split")],
                    .cluster =
                        ring_in_cluster(t->variant, values, sizes, q->batch, multiprocessors),
                    .time = time};
}

/* Whether the larger of A and B lies along K: skinny kernels have a code for each order. */
static bool is_along(const smk_query *q) {
    const skinny_query thin = skinny_query_of(q->M, q->N, q->K);
    return skinny_is_along(&thin, q->k_major);
}

/* With tiles of that size, relative to the variant's, and without split-K. */
static tiling tiling_by(const int64_t tile[2], const int64_t declared[2], const smk_query *q) {
    return (tiling){.tiles = (double)ceil_div(q->M, tile[0]) * (double)ceil_div(q->N, tile[1]) *
                             (double)q->batch,
                    .size = (double)(tile[0] * tile[1]) / (double)(declared[0] * declared[1]),
                    .lines = (double)(min_i64(q->M, tile[0]) + min_i64(q->N, tile[1])) /
                             (double)(tile[0] + tile[1]),
                    .split = 1};
}

/* Whether K may be split; not if there are very many tiles. */
static bool may_split(const smk_timing *t, double tiles, const smk_query *q) {
    const bool few = tiles > 0 && tiles < 1e6;
    return t->variant->split.rate && few && q->K && q->multiprocessors;
}

static tiling thin_tiling(const smk_timing *t, const int64_t declared[2], const smk_query *q) {
    skinny_query thin = skinny_query_of(q->M, q->N, q->K);
    thin.batch = q->batch;
    thin.multiprocessors = q->multiprocessors;
    thin.k_major = skinny_is_along(&thin, q->k_major);
    thin.aligned = is_aligned(q);
    const skinny_tiling own = skinny_tiling_of(t->variant, t->dtype, t->values, &thin);
    tiling c = tiling_by(own.tile, declared, q);
    if (may_split(t, c.tiles, q)) c.split = (double)own.split;
    c.time = own.time;
    return c;
}

static tiling tiling_of(const smk_timing *t, const smk_query *q) {
    if (t->variant->wgmma.columns) return ring_tiling(t, q);
    smk_geometry g = {.output_tile = {1, 1}};
    t->variant->geometry(t->values, t->dtype->itemsize, 0, &g);
    if (t->variant->skinny.rows[0]) return thin_tiling(t, g.output_tile, q);
    tiling c = tiling_by(g.output_tile, g.output_tile, q);
    if (residues_of(t)) c.tiles *= (double)residues_of(t);
    if (!may_split(t, c.tiles, q)) return c;
    const split_query query =
        split_query_of(t->variant, t->dtype, &g, t->values, (int64_t[]){q->M, q->N, q->K}, q->batch,
                       step_of(t), is_aligned(q), q->multiprocessors, smk_has_clusters(q->sm));
    const int64_t split = split_choose(&query);
    c.split = (double)split;
    c.cluster = split_in_cluster(&query, split);
    return c;
}

/* Whether the variant packs A, or A and B, for TMA. One warp packs a whole row of K. wgmma reads
 * only K-major 32-bit operands from shared memory. ring_choose() counts what its variants pack. */
static bool packs(const smk_timing *t, const smk_query *q) {
    const smk_wgmma *kind = &t->variant->wgmma;
    const bool readable = is_aligned(q) && (t->dtype->itemsize != 4 || q->k_major[0]);
    if (kind->columns) return false;
    return t->variant->ozaki.pack || wgmma_scales(kind, t->dtype->itemsize) ||
           (kind->terms && !readable);
}

/* Bytes moved per element of A and of B: its read and, if it is packed, the write and the read of
 * the packed copy. With scales, another read finds the largest elements of what is not packed; with
 * residues, one over both finds their scales. */
static void bytes_per_element(const smk_timing *t, const smk_query *q, double out[2]) {
    const smk_wgmma *kind = &t->variant->wgmma;
    const double itemsize = t->dtype->itemsize;
    if (residues_of(t)) {
        out[0] = out[1] = 2 * (itemsize + (double)residues_of(t));
        return;
    }
    const double term = (double)smk_tensor_type_bytes(kind->operand);
    const bool scales = wgmma_scales(kind, t->dtype->itemsize);
    const bool packs_b = wgmma_packs_b(kind, t->dtype->itemsize);
    out[0] = itemsize + (packs(t, q) ? 2 * kind->terms * term : 0);
    out[1] = itemsize + (scales && !packs_b ? itemsize : 0) +
             (packs_b                         ? 2 * term
              : packs(t, q) && !is_aligned(q) ? 2 * itemsize
                                              : 0);
}

enum { RING_TILE = 128 * 128 }; /* elements, to count the results of kernels with any tile */
static const double CLUSTER_PARTS = 0.3; /* of a second launch's time, for a cluster to add parts */

void smk_timing_terms(const smk_timing *t, const smk_query *q, double out[SMK_N_TERMS]) {
    const double m = (double)q->M, n = (double)q->N, k = (double)q->K, batch = (double)q->batch;
    const tiling c = tiling_of(t, q);
    const double multiprocessors = q->multiprocessors > 0 ? q->multiprocessors : 1;
    const double busiest = __builtin_ceil(c.tiles * c.split / multiprocessors);
    const double range = k / c.split / 1024;
    double each[2];
    bytes_per_element(t, q, each);
    const double of_result = (double)(t->dtype->itemsize + 2 * residues_of(t));
    double bytes = m * k * each[0] + k * n * each[1] + m * n * of_result;
    const bool parts = c.split > 1 && !c.cluster;
    if (parts) bytes += 2 * c.split * m * n * (t->dtype->itemsize == 8 ? 8 : 4);
    out[SMK_TERM_CALL] = 1;
    out[SMK_TERM_PARTS] = parts ? 1 : c.cluster ? CLUSTER_PARTS : 0;
    out[SMK_TERM_DEPTH] = packs(t, q) ? k / 1024 : range;
    out[SMK_TERM_TILE] = c.time > 0 ? m * n * batch / RING_TILE / multiprocessors : busiest;
    out[SMK_TERM_STEP] = c.time > 0 ? c.time : busiest * c.size * range;
    out[SMK_TERM_BYTES] = batch * bytes * 1e-6;
    out[SMK_TERM_LINES] = c.time > 0 ? 0 : out[SMK_TERM_STEP] * c.lines;
    out[SMK_TERM_RESULT] = batch * m * n * t->dtype->itemsize * 1e-6;
    out[SMK_TERM_FAR] = out[SMK_TERM_BYTES] > IN_L2 ? out[SMK_TERM_BYTES] - IN_L2 : 0;
    const int layout = 2 * !q->k_major[0] + q->k_major[1];
    out[SMK_TERM_TURNED] = (!q->k_major[0] + !q->k_major[1]) * out[SMK_TERM_DEPTH];
    for (int i = 0; i < 4; i++)
        out[SMK_TERM_LAYOUT + i] = i == layout ? out[SMK_TERM_STEP] : 0;
    out[SMK_TERM_SECTORS] = q->alignment < SMK_ALIGN_32 ? out[SMK_TERM_STEP] : 0;
    out[SMK_TERM_RESULT_SECTORS] =
        q->N * t->dtype->itemsize % SMK_ALIGN_32 ? out[SMK_TERM_RESULT] : 0;
}

bool smk_timing_fits(const smk_timing *t, const smk_query *q) {
    const int64_t side = q->M < q->N ? q->M : q->N;
    const smk_skinny *thin = &t->variant->skinny;
    if (!thin->mma && thin->rows[0] > side) return false; /* its kernels are for more rows */
    if ((t->side && side > t->side) || (q->only && q->only != t->variant)) return false;
    if (t->along >= 0 && t->along != is_along(q)) return false;
    return can_run(t->variant, q) && !strcmp(t->dtype->name, q->dtype) &&
           t->variant->accuracy <= q->accuracy &&
           t->alignment == (q->alignment < SMK_ALIGN_16 ? q->alignment : SMK_ALIGN_16);
}

double smk_timing_predicts(const smk_timing *t, const smk_query *q) {
    double terms[SMK_N_TERMS], sum = 0;
    smk_timing_terms(t, q, terms);
    for (int i = 0; i < SMK_N_TERMS; i++)
        sum += t->cost[i] * terms[i];
    return sum;
}

const smk_timing *smk_fastest(const smk_timing *timings, size_t n, const smk_query *q) {
    const smk_timing *best = NULL;
    double min_time = 0;
    for (size_t i = 0; i < n; i++) {
        if (!smk_timing_fits(&timings[i], q)) continue;
        const double time = smk_timing_predicts(&timings[i], q);
        if (best == NULL || time < min_time) {
            best = &timings[i];
            min_time = time;
        }
    }
    return best;
}

const smk_variant *smk_default_variant(const smk_query *q) {
    const unsigned device = q->sm ? SMK_DEFAULT_CUDA : SMK_DEFAULT_EMU;
    const smk_variant *found = NULL; /* the last one that fits, as variants.toml says */
    for (size_t i = 0; i < smk_n_variants; i++) {
        const smk_variant *variant = &smk_variants[i];
        if (variant->default_on & device && can_run(variant, q) && dtype_of(variant, q->dtype))
            found = variant;
    }
    return found;
}
