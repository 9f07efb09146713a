/* Shared by the planners: batch folding, and launches for a whole batch. */
#ifndef SMK_PLAN_PARTS_H
#define SMK_PLAN_PARTS_H

#include "../kernels/args.h"
#include "integers.h"
#include "plan.h"

enum { MAX_GRID_X = 0x7fffffff, MAX_GRID_Z = 65535, MAX_KERNELS = 4 };

/* The operands' batch dimensions. Adjacent ones are folded if, in every operand, a single stride
 * describes them. */
typedef struct batch_iterator {
    int n_operands;
    int n; /* dimensions after folding */
    int z; /* the dimension that becomes blockIdx.z; -1: n is 0 */
    int64_t size[SMK_MAX_BATCH];
    int64_t stride[SMK_MAX_OPERANDS][SMK_MAX_BATCH];
    int64_t total;
} batch_iterator;

batch_iterator batch_fold(const smk_batch *batch, const smk_matrix *const *operands,
                          int n_operands);
int64_t batch_z_size(const batch_iterator *it);
int64_t batch_z_stride(const batch_iterator *it, int operand);

/* One kernel of a plan; gridDim.z is the batch, unless its blocks go over the batch themselves. */
typedef struct kernel {
    const char *entry;
    uint32_t blocks, threads[3];
    uint32_t cluster; /* blocks; 0: none */
    size_t shared_bytes;
    bool loops_over_batch;
} kernel;

/* Kernels that run in this order for each chunk of the batch. */
typedef struct launch_shape {
    kernel kernels[MAX_KERNELS];
    int n_kernels;
    int itemsize;
    bool overlaps; /* each kernel waits for the previous launch itself */
    int batches_per_block;
    size_t batches_offset; /* of the launch's batch count, a long long in the arguments; 0: none */
} launch_shape;

/* The variant's launch geometry. n: K of a gemm, length of x of a probe, else 0. */
smk_geometry geometry_of(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                         int64_t n);

/* The variant's main kernel, with one block per tile of a rows x cols result. */
smk_code launch_shape_init(const smk_variant *variant, const smk_dtype *dtype,
                           const smk_geometry *g, int64_t rows, int64_t cols, launch_shape *out,
                           smk_status *status);

/* Fills plan->launches: every index of the dimensions other than z, times all chunks of z. `args`
 * has plan->args_bytes; pointers to an operand are advanced to the launch's first batch. */
smk_code plan_launches(smk_plan *plan, const launch_shape *s, const batch_iterator *it,
                       const smk_matrix *const *operands, const void *args, smk_status *status);

/* A plan for kernels whose only parameter is gemm_args. */
smk_plan plan_of_gemm(void);

/* All fields except the pointers. */
gemm_args plan_gemm_args(const smk_gemm *problem, const batch_iterator *it);

/* Of numbers below 2^31. */
divisor divisor_of(int64_t d);

/* `band`: rows of tiles in a band. `steps` of K in `split` ranges. */
tile_list tile_list_of(int64_t down, int64_t across, int64_t band, int64_t steps, int64_t split);

static inline double least(double a, double b) {
    return a < b ? a : b;
}

static inline double most(double a, double b) {
    return a > b ? a : b;
}

/* ---- plan_split.c: split-K ---- */

enum { STEP_BYTES = 128 /* of K per step, of each row and column of a tile */ };
enum { MOST_SHARED = 232448 /* bytes of shared memory of a block, on chips with clusters */ };

typedef struct split_query {
    int64_t tiles;       /* of the result, for all batches of a launch */
    int64_t steps;       /* of K */
    double step_clocks;  /* of the products of a step, by a block */
    double step_bytes;   /* of its tiles */
    double step_latency; /* clocks per step that its copies take at least, however few they are */
    double range_bytes;  /* partial sums of one K range */
    double tile_bytes;   /* partial sums of a tile */
    int64_t resident;    /* blocks that fit on a multiprocessor */
    int64_t multiprocessors;
    bool clusters; /* can add the ranges of a tile */
} split_query;

/* `sizes`: M, N, K. `step`: elements of K per iteration of the kernel's main loop. `aligned`: rows
 * of A and B begin and end at multiples of 16 bytes. `clusters`: the device has them. */
split_query split_query_of(const smk_variant *variant, const smk_dtype *dtype,
                           const smk_geometry *geometry, const int64_t *values,
                           const int64_t sizes[3], int64_t batch, int64_t step, bool aligned,
                           int64_t multiprocessors, bool clusters);

/* The number of K ranges with the shortest predicted time; at most `steps`. 1 if the tiles alone
 * fill the device. */
int64_t split_choose(const split_query *q);

/* The most blocks of a cluster that all chips with clusters have. */
enum { MAX_CLUSTER = 8 };

/* MB of operands and results, of an H200's 50 MB of L2, from which on products take longer. */
enum { IN_L2 = 30 };

/* How many clusters of so many blocks run at once, a block per multiprocessor; whether all do. */
double split_most_clusters(int64_t blocks, double multiprocessors);
bool split_clusters_fit(int64_t blocks, double clusters, double multiprocessors);

/* Shared memory that a kernel by mma.sync needs besides, to add so many ranges in a cluster. */
int64_t split_cluster_bytes(const smk_dtype *dtype, const smk_geometry *g, int64_t split);

/* Whether the blocks of a tile add so many ranges themselves, as a cluster. */
bool split_in_cluster(const split_query *q, int64_t split);

/* A plan's gemm_args, and their byte offset in its arguments. */
typedef struct split_output {
    smk_plan *plan;
    gemm_args *args;
    size_t args_offset;
} split_output;

/* Splits K into ranges of whole steps: parameter "split" of them, or split_choose's number.
 * Multiplies the blocks of the only kernel of `s`, appends the partial sums to the workspace, and
 * fills in the arguments. */
smk_code split_plan(const smk_variant *variant, const smk_dtype *dtype, const smk_geometry *g,
                    const int64_t *values, const smk_gemm *p, const batch_iterator *it,
                    int64_t step, split_output out, launch_shape *s, smk_status *status);

/* Appends the kernel that sums the K ranges, if there is more than one. */
void split_add_reduce(const smk_variant *variant, const smk_dtype *dtype, const gemm_args *args,
                      launch_shape *s);

/* ---- plan_ring.c: kernels with any number of columns (kernels/include/wgmma_tiles.cuh) ---- */

enum {
    TMA_ALIGN = 16,    /* bytes */
    LINE_BYTES = 128,  /* of global memory */
    SECTOR_BYTES = 32, /* a quarter of a line */
    RING_BYTES = MOST_SHARED,
    RING_BYTES_OF_TWO = 115712 /* shared memory; if two blocks share it */
};

/* Values of the parameter "swapped". */
enum { RING_CHOOSES, RING_AS_GIVEN, RING_TRANSPOSES };

/* What ring_choose() has set in `values`. Swapped: the product of the transposes. Thin: all of few
 * columns, or of few rows and then swapped, are a tile. Clustered: the blocks of a tile add its
 * ranges of K. Multicast: how many blocks, below each other, share B's tiles; multicast_a: how
 * many, side by side, A's. */
typedef struct ring_form {
    bool swapped, thin, clustered;
    int64_t multicast, multicast_a;
} ring_form;

/* Blocks of a cluster that share tiles; 1: none do. */
static inline int64_t ring_sharing(ring_form form) {
    return form.multicast * form.multicast_a;
}

/* Whether its kernel is one of wgmma_thin.cuh. */
static inline bool ring_is_small(ring_form form) {
    return form.thin || form.clustered;
}

ring_form ring_form_of(const smk_variant *variant, const int64_t *values);

/* The most blocks that share a tile, and the most of a cluster that share some. */
enum { RING_MOST_MULTICAST = 4, RING_MOST_SHARING = 8 };

/* How many clusters of so many blocks, which share tiles, run at once on this many multiprocessors:
 * `resident` blocks on each. */
double ring_room(double sharing, double resident, double multiprocessors);

/* Stages that fit into a block's ring. `parts`: blocks of a cluster that add their sums, `share`
 * rows of each warpgroup each; 1: none do. */
int64_t ring_stages(ring_form form, const int64_t tile[2], int64_t share, int64_t parts,
                    int64_t shared_bytes);

/* Persistent blocks per multiprocessor: two of 64 rows, one of which stores its tile while the
 * other multiplies, if there are more tiles than multiprocessors. */
int64_t ring_blocks(int64_t rows, int64_t tiles, int64_t multiprocessors);

/* Whether the last column of tiles has at most half of the others' columns, and takes less time
 * then: in 16 bits. */
bool ring_is_narrow(int64_t itemsize, int64_t n, int64_t columns);

/* What TMA reads: the matrix, or its packed copy. */
typedef struct ring_operand {
    bool mn_major;
    bool packed;       /* TMA cannot read the matrix in place */
    int64_t alignment; /* bytes that the places of its rows are multiples of */
} ring_operand;

/* Of a matrix whose rows (of B: columns) are so many bytes apart, or their elements if it is
 * MN-major. */
ring_operand ring_operand_of(bool mn_major, int64_t pitch);

/* Those of contiguous matrices. sizes: M, N, K. Not aligned: TMA cannot read one of them, by its
 * size; or neither, if sizes do not say which. */
void ring_operands(const int64_t sizes[3], const bool k_major[2], int64_t itemsize, bool aligned,
                   ring_operand out[2]);

/* The columns of a tile that has all n, as wgmma has them. */
int64_t ring_thin_columns(int64_t n);

/* Whether the blocks of a tile add the ranges of K themselves, as a cluster, once ring_choose() has
 * set `values`. */
bool ring_in_cluster(const smk_variant *variant, const int64_t *values, const int64_t sizes[3],
                     int64_t batch, int64_t multiprocessors);

/* A product whose tiles have `rows` x `columns`, and its K ranges. Columns THIN_UNIT: thin.
 * Swapped: sizes and operands are those of the product of the transposes. */
typedef struct ring_work {
    int64_t itemsize;
    double m, n, k, steps, batch, multiprocessors;
    double rows, columns, ranges, multicast, multicast_a;
    ring_operand operands[2];
    bool swapped;
    double packing; /* microseconds of the launch that packs operands, the same for all tiles */
} ring_work;

enum {
    RING_CALL,      /* 1 */
    RING_TILES,     /* of a block, one after the other */
    RING_STEPS,     /* of a block, of K, in tens */
    RING_BYTES_IN,  /* copied to a multiprocessor with all tiles, MB */
    RING_BYTES_OUT, /* the same, of all blocks, from L2: MB per multiprocessor */
    RING_PARTS,     /* 1: K has several ranges, and a second launch adds their sums */
    RING_SUMS,      /* bytes of these, in 100 KB per multiprocessor */
    RING_CLUSTER,   /* 1: clusters add them */
    RING_OPERANDS,  /* bytes of A and B, in 10 MB */
    RING_SHARE,     /* of the multiprocessors that have a block */
    RING_LONGER,    /* the larger of 3/4 of RING_BYTES_IN and RING_BYTES_OUT */
    RING_RESULT,    /* bytes of C, in 10 MB */
    RING_FAR,       /* bytes of A, B and C that do not stay in L2, in 10 MB */
    RING_SWAPPED,   /* 1: C is stored transposed */
    RING_ZEROS,     /* of RING_BYTES_IN: what TMA writes for rows and columns that do not exist */
    RING_ODD,       /* of RING_BYTES_IN: rows that do not begin at whole sectors */
    RING_BUSY,      /* RING_BYTES_IN times RING_SHARE */
    RING_ODD_C,     /* RING_RESULT, if C's rows do not begin at whole sectors */
    RING_TERMS,
    /* What the trees know besides (plan_ring_trees.c). */
    RING_ROWS = RING_TERMS, /* of a tile, and its columns */
    RING_COLUMNS,
    RING_RANGES,    /* of K */
    RING_MULTICAST, /* blocks that share a tile of B, and one of A */
    RING_MULTICAST_A,
    RING_ACROSS_A, /* 1: A is MN-major; and B */
    RING_ACROSS_B,
    RING_M, /* of the product, or that of the transposes */
    RING_N,
    RING_K,
    RING_BATCH,
    RING_BLOCKS,    /* tiles, and ranges of K of them, per multiprocessor */
    RING_DEPTH,     /* steps of K of each range */
    RING_ROWS_FILL, /* rows of all tiles per row of C, and columns */
    RING_COLUMNS_FILL,
    RING_LINES_A, /* of 128 bytes, of each 128 bytes of a row that are copied, and of B's */
    RING_LINES_B,
    RING_FACTS
};

/* The product of the transposes. */
void ring_swap(ring_work *work);

/* How many multiprocessors have a block: up to half of them, up to all, or some more than one. */
typedef enum ring_load { RING_HALF, RING_WHOLE, RING_WAVES, RING_LOADS } ring_load;

/* The terms of the predicted time. */
ring_load ring_terms(const ring_work *work, double out[RING_TERMS]);

/* The facts that are no terms, from out[RING_TERMS] on. */
void ring_other_facts(const ring_work *work, double out[RING_FACTS]);

/* What a launch counts that packs operands (kernels/include/wgmma_pack.cuh). */
enum {
    PACK_CALL,        /* 1: there is one */
    PACK_SHORT_LINES, /* of up to PACK_SHORT bytes, in thousands */
    PACK_LINES,       /* longer ones, in thousands */
    PACK_LINE_BYTES,  /* of all lines, in MB */
    PACK_TILES,       /* of PACK_TILE x PACK_TILE, that are transposed, in thousands */
    PACK_TILE_BYTES,  /* of what they hold, in MB */
    PACK_TERMS
};

void ring_pack_terms(const ring_work *work, double out[PACK_TERMS]);

/* Chooses the columns of tiles, the number of K ranges, whether to swap, and how many blocks share
 * tiles, where `values` has 0 for them. sizes: M, N, K. Returns the microseconds that the
 * product should take; 0, and no change, for other variants. */
double ring_choose(const smk_variant *variant, const smk_dtype *dtype, int64_t *values,
                   const int64_t sizes[3], int64_t batch, const ring_operand operands[2],
                   int64_t multiprocessors);

/* ---- plan_ring_trees.c ---- */

/* How many times as long as the sums of their terms products take, by facts[.][product]. */
enum { RING_NEAR = 16 };
void ring_trees(int64_t itemsize, float facts[RING_FACTS][RING_NEAR], double out[RING_NEAR]);

/* ---- plan_lately.c: a choice takes 5 to some tens of microseconds, as long as many a product.
 * Programs repeat their calls. ---- */

/* Of a choice: all that it depends on, as words, so that it has no padding, from the variant's
 * number to its parameters; and what was chosen. */
enum { LATELY_WORDS = 10 + SMK_MAX_PARAMS };
typedef struct chosen_lately {
    int64_t key[LATELY_WORDS];
    int64_t values[SMK_MAX_PARAMS];
    double time; /* predicted */
} chosen_lately;

/* This thread's place for a key. Not known: the caller has to set values and time. */
chosen_lately *lately(const int64_t key[LATELY_WORDS], bool *known);

/* ---- plan_skinny.c ---- */

typedef struct skinny_query {
    bool few_columns;    /* B is the thin operand */
    int64_t thin, thick; /* rows of A or columns of B */
    int64_t k, batch, multiprocessors;
    bool k_major; /* the thick operand */
    bool aligned; /* its rows, or columns, begin at multiples of 16 bytes */
} skinny_query;

/* With the sizes alone. */
static inline skinny_query skinny_query_of(int64_t m, int64_t n, int64_t k) {
    const bool few_columns = n < m;
    return (skinny_query){.few_columns = few_columns,
                          .thin = few_columns ? n : m,
                          .thick = few_columns ? m : n,
                          .k = k};
}

/* Whether the thick operand lies along K, by the orders of A and B. */
static inline bool skinny_is_along(const skinny_query *q, const bool k_major[2]) {
    return q->thick == 1 || (q->k > 1 && k_major[!q->few_columns]);
}

/* Kernel and block tile of a skinny product, and its number of K ranges. */
typedef struct skinny_tiling {
    const char *kernel;
    int64_t threads[2], strip; /* of a block; rows or columns of the thick operand */
    int64_t tile[2], shared_bytes, split;
    double time; /* predicted, in microseconds; 0: not known */
} skinny_tiling;

skinny_tiling skinny_tiling_of(const smk_variant *variant, const smk_dtype *dtype,
                               const int64_t *values, const skinny_query *q);

smk_code plan_skinny(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                     const smk_gemm *problem, smk_plan *plan, smk_status *status);

/* ---- plan_gemv.c ---- */

/* Terms of the time of gemm_gemv. */
enum {
    GEMV_CALL,
    GEMV_SECOND,    /* 1: there is a second launch */
    GEMV_PASSES,    /* of loads, one after another */
    GEMV_WARPS,     /* of the busiest multiprocessor, in hundreds */
    GEMV_VECTORS,   /* that they read, one per lane */
    GEMV_BYTES,     /* of the matrix, in tens of MB */
    GEMV_SHORT,     /* the same, the more the shorter the rows are that a warp reads at once */
    GEMV_ODD,       /* the same, of rows that begin anywhere: by one more sector each */
    GEMV_FAR,       /* bytes beyond those in L2 */
    GEMV_FAR_SHORT, /* ... */
    GEMV_PARTS,     /* of K, that are added, in hundreds */
    GEMV_SUMS,      /* of all parts, in hundreds of thousands */
    GEMV_TERMS,
    GEMV_FORMS = 512 /* at most */
};

/* Threads along a row, and of a block; K ranges. In what is given, 0: to be chosen. */
typedef struct gemv_form {
    int64_t lanes, threads, split;
} gemv_form;

/* All that come into question; their number. */
int gemv_forms(const skinny_query *q, int64_t itemsize, gemv_form given,
               gemv_form forms[GEMV_FORMS]);

void gemv_terms(const skinny_query *q, int64_t itemsize, gemv_form form, double out[GEMV_TERMS]);

/* Microseconds. */
double gemv_predict(const skinny_query *q, int64_t itemsize, gemv_form form);

skinny_tiling gemv_tiling_of(const smk_variant *variant, const smk_dtype *dtype,
                             const int64_t *values, const skinny_query *q);

/* ---- plan_wgmma.c ---- */

/* Whether rows of A and columns of B are multiplied by powers of two: operands of two terms, or of
 * one narrower than the matrix's elements. */
static inline bool wgmma_scales(const smk_wgmma *kind, int64_t itemsize) {
    return kind->terms == 2 ||
           (kind->terms == 1 && (int64_t)smk_tensor_type_bytes(kind->operand) < itemsize);
}

/* Whether B is packed as A is. Otherwise the product itself scales it, in registers. */
static inline bool wgmma_packs_b(const smk_wgmma *kind, int64_t itemsize) {
    return kind->terms == 1 && wgmma_scales(kind, itemsize);
}

smk_code plan_wgmma(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status);

/* plan_ozaki.c */
smk_code plan_ozaki(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status);

#endif
