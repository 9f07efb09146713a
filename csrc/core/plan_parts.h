/* What the planners share: folding a batch, and launching kernels for all of it. */
#ifndef SMK_PLAN_PARTS_H
#define SMK_PLAN_PARTS_H

#include "../kernels/args.h"
#include "plan.h"

enum { MAX_GRID_X = 0x7fffffff, MAX_GRID_Z = 65535, MAX_KERNELS = 4 };

static inline int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

/* The operands' batch dimensions, folded as far as one stride describes them. */
typedef struct walk {
    int n_operands;
    int n; /* dimensions left; the one that becomes blockIdx.z is `z`, -1: none is left */
    int z;
    int64_t size[SMK_MAX_BATCH];
    int64_t stride[SMK_MAX_OPERANDS][SMK_MAX_BATCH];
    int64_t total;
} walk;

walk walk_fold(const smk_batch *batch, const smk_matrix *const *operands, int n_operands);
int64_t walk_z_size(const walk *w);
int64_t walk_z_stride(const walk *w, int operand);

/* One kernel of a plan; the grid's z is the batch. */
typedef struct kernel {
    const char *entry;
    uint32_t blocks, threads[3];
    size_t shared_bytes;
} kernel;

/* All batches run all of these, in order. */
typedef struct shape {
    kernel kernels[MAX_KERNELS];
    int n_kernels;
    int itemsize;
    bool overlaps; /* each waits for the launch before it */
    int batches_of_block; /* 1: the grid's z is the batch */
    size_t batches_at;    /* where the arguments say how many there are, a long long; 0: nowhere */
} shape;

/* What a row says of a launch; n is a gemm's K, the length of a probe's x, 0 elsewhere. */
smk_geometry geometry_of(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                         int64_t n);

/* The row's own kernel, with a block for each tile of a result of rows x cols. */
smk_code shape_make(const smk_row *row, const smk_dtype *dtype, const smk_geometry *g, int64_t rows,
                    int64_t cols, shape *out, smk_status *status);

/* Fills plan->launches: for every index of the dimensions other than z, all chunks of z. `args` has
 * plan->args_bytes; a pointer to operand o gets that operand's place for the batch added. */
smk_code plan_launches(smk_plan *plan, const shape *s, const walk *w,
                       const smk_matrix *const *operands, const void *args, smk_status *status);

/* A plan of kernels that take gemm_args and nothing else. */
smk_plan plan_of_gemm(void);

/* All but the pointers. */
gemm_args plan_gemm_args(const smk_gemm *problem, const walk *w);

/* ---- plan_split.c: K in parts ---- */

typedef struct split_question {
    int64_t tiles; /* of the result, and of as many batches as a launch has */
    int64_t steps; /* of K */
    double step_clocks;
    double part_bytes; /* the sums of one part */
    int64_t resident;  /* blocks that share a multiprocessor */
    int64_t multiprocessors;
} split_question;

/* `sizes`: M, N, K; `step`: of K, in one turn of the kernel's loop; `aligned`: the operands' rows are. */
split_question split_ask(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                         const int64_t sizes[3], int64_t batch, int64_t step, bool aligned,
                         int64_t multiprocessors);

/* The number of parts that takes the least time: 1 where tiles fill the machine, never more than steps. */
int64_t split_choose(const split_question *q);

/* Where a plan's gemm_args are, and where they begin in its arguments. */
typedef struct split_place {
    smk_plan *plan;
    gemm_args *args;
    size_t at;
} split_place;

/* Cuts K into parts of whole steps, as many as the parameter "split" or the shape says: more blocks for the
 * only kernel of `s`, room for the sums behind plan->workspace, and what the kernels have to know. */
smk_code split_plan(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *p, const walk *w, int64_t step, split_place place, shape *s,
                    smk_status *status);

/* The launch that adds them up, behind the others; none where K is whole. */
void split_add_reduce(const smk_row *row, const smk_dtype *dtype, const gemm_args *args, shape *s);

/* ---- plan_skinny.c ---- */

/* How a product is cut into blocks, by its size and by whether the thick operand's neighbours lie along K. */
typedef struct skinny_cut {
    const char *kernel;
    int64_t threads, tile[2], shared_bytes;
    int64_t resident; /* blocks on a multiprocessor */
} skinny_cut;

skinny_cut skinny_cut_of(const smk_row *row, const smk_dtype *dtype, int64_t m, int64_t n,
                         bool along);

/* The number of parts of K. */
int64_t skinny_split(const skinny_cut *cut, int64_t blocks, int64_t k, int64_t multiprocessors);

smk_code plan_skinny(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                     const smk_gemm *problem, smk_plan *plan, smk_status *status);

/* plan_wgmma.c */
smk_code plan_wgmma(const smk_row *row, const smk_dtype *dtype, const int64_t *values,
                    const smk_gemm *problem, smk_plan *plan, smk_status *status);

#endif
