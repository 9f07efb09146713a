/* Shared by the files that plan pipelines: the problem, its blocks, their device memory, and the
 * order in which they are computed. */
#ifndef SMK_PIPELINE_BLOCKS_H
#define SMK_PIPELINE_BLOCKS_H

#include "../../core/integers.h"
#include "plan.h"
#include "rates.h"

enum { NONE = -1, MIN_BLOCK_ROWS = 128 /* fewer rows or columns would waste tiles */ };

/* What is computed: `gemm` or `transpose`; the other is NULL. The last operand is the result. */
typedef struct block_problem {
    const smk_pipeline_query *query;
    const transfer_rates *rates;
    const smk_gemm *gemm;
    const smk_transpose *transpose;
    const smk_batch *batch;
    const smk_matrix *operands[SMK_MAX_OPERANDS];
    int n_operands;
    int64_t size[2];   /* M and N; rows and columns of x */
    bool reads_result; /* beta is not 0 */
} block_problem;

/* How it is cut: a batch along its first dimension into groups of whole matrices, or each matrix
 * into blocks. Blocks of the batch's next matrix are numbered after those of the previous one. */
typedef struct block_grid {
    int64_t group;    /* matrices per block; 0: each matrix is cut */
    int64_t matrices; /* of the batch, computed one after another, if each is cut */
    /* All groups, or all matrices, use the same blocks of the operand. */
    bool broadcast[SMK_MAX_OPERANDS];
    int64_t size[2], count[2]; /* of the blocks, along problem.size; groups: the whole matrix, 1 */
} block_grid;

/* The device memory of the blocks: slots per operand, and one panel at most, a buffer in which
 * several blocks of A, or of B, are side by side. */
typedef struct block_memory {
    int64_t slot_bytes[SMK_MAX_OPERANDS]; /* of a panel: all of it */
    /* Per slot of A, B, or per block of a panel. 0: not kept for reuse. */
    int64_t prepacked_bytes[2];
    int compute_streams; /* in use: tile tasks that may run at the same time */
    int panel;           /* the operand with the panel, or NONE */
    int64_t panel_slots; /* blocks in the panel; block i of a matrix is at i % panel_slots */
} block_memory;

typedef struct blocking {
    block_problem problem;
    block_grid grid;
    block_memory memory;
} blocking;

/* One product, or transpose, of blocks. With a panel: of `panel_blocks` consecutive blocks of the
 * panel and of the result, from those in `blocks` on. */
typedef struct tile_task {
    int64_t blocks[SMK_MAX_OPERANDS];
    int64_t panel_blocks; /* 1 without a panel */
    bool prepacks; /* uses prepacked A and B that other tile tasks of the same blocks reuse */
} tile_task;

/* ---- blocks.c ---- */

/* A block, or consecutive blocks of a panel, in host memory and in a slot of device memory. Offsets
 * are relative to the slot. */
typedef struct block_layout {
    smk_rectangle rectangle; /* without the buffer */
    smk_matrix matrix;       /* the block as an operand of a kernel */
} block_layout;

block_layout block_layout_of(const blocking *b, int operand, int64_t block, int64_t panel_blocks);

/* Plans the kernels of a tile task. */
smk_code block_plan(const blocking *b, const tile_task *t, const smk_matrix *matrices,
                    const smk_prepack *prepack, smk_plan *out, smk_status *status);

/* Cuts each matrix into blocks of these rows and columns of the result, and sizes the slots. */
void block_cut(blocking *b, int64_t rows, int64_t columns);

/* Sizes the slots: an operand's first block is its largest one. */
void block_size_slots(blocking *b, int64_t panel_blocks);

/* Sets prepacked_bytes (at most max[0], max[1] per tile task). *workspace: bytes of all of them. */
smk_code block_size_scratch(blocking *b, int64_t panel_blocks, const int64_t max[2],
                            int64_t *workspace, smk_status *status);

/* Fails with SMK_MEMORY. `needed`: bytes that would be enough. */
smk_code block_refuse_memory(const blocking *b, int64_t needed, smk_status *status);

/* The order of the tile tasks. */
typedef struct schedule {
    tile_task *tasks; /* the caller frees it */
    int64_t n;
} schedule;

/* Tile tasks: one per block of the result. */
int64_t schedule_n_tasks(const blocking *b);
/* Memory for them. */
smk_code schedule_init(schedule *s, const blocking *b, smk_status *status);

/* Appends the product of block i of A and block j of B of this matrix of the batch. */
void schedule_product(schedule *s, const blocking *b, int64_t matrix, int64_t i, int64_t j,
                      int64_t panel_blocks, bool prepacks);

/* ---- out_of_core.c ---- */

/* A product in less device memory than it takes, or the matrices of a batch one by one. */
smk_code out_of_core_gemm(blocking *b, smk_pipeline_plan *out, smk_status *status);

/* ---- plan.c ---- */

/* Makes the task graph of the tile tasks, in order. `n_slots`: per operand, or in the panel. */
smk_code pipeline_build(const blocking *b, const schedule *order, const int64_t *n_slots,
                        smk_pipeline_plan *out, smk_status *status);

#endif
