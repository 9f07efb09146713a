/* What the files that plan flows share. */
#ifndef SMK_PIPELINE_BLOCKS_H
#define SMK_PIPELINE_BLOCKS_H

#include "plan.h"

static inline int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static inline int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* Seconds that bytes take on the bus, as expected where ways to cut a problem are compared: an H200's. */
static inline double seconds_on_bus(double bytes) {
    return bytes / 54e9;
}

enum { NONE = -1 };

/* Blocks of an operand: lines of bytes in host memory, and how they lie in a slot. */
typedef struct block_layout {
    smk_rectangle
        rectangle; /* but for the buffer; its offset, like the matrix's, is within the slot */
    smk_matrix matrix;
} block_layout;

/* Numbers of blocks; the last one is the result's. Where there is a panel, `run` of its blocks from that one on, and as
 * many of the result. */
typedef struct unit {
    int64_t blocks[SMK_MAX_OPERANDS];
    int64_t run;
    bool keeps; /* what it makes of A and B, for the next units of just these blocks */
} unit;

typedef struct blocks {
    const smk_pipeline_query *question;
    const void *problem;
    int n_operands;
    bool reads_result;
    block_layout (*place)(const struct blocks *all, int operand, int64_t block, int64_t run);
    smk_code (*plan)(const struct blocks *all, const unit *u, const smk_matrix *matrices,
                     const smk_prepack *prepack, smk_plan *out, smk_status *status);
    int64_t
        matrices; /* of a batch that is cut within its matrices, one after the other; 0: a block is
                                       a group of them */
    bool repeats[SMK_MAX_OPERANDS]; /* all matrices of the operand are one */
    int64_t slot_bytes[SMK_MAX_OPERANDS];
    int64_t kept_bytes
        [2]; /* of each slot of A and B, or place of a panel; 0: each product makes its own */
    int64_t size
        [2]; /* of a block of the result, along M and N; of a transpose's x, along its rows and columns */
    int64_t count[2]; /* blocks along those; along the first dimension of a batch */
    int lanes;        /* units that run at the same time */
    int panel; /* the operand of a product, A or B, whose blocks lie side by side in one slot ... */
    int64_t stay; /* ... so many: block i of a matrix at place i % stay. NONE: each has its own */
} blocks;

/* ---- plan_flow_places.c: for `place` and `plan` ---- */

/* How many blocks a matrix of the operand has. Those of the next matrix of a batch are numbered on. */
int64_t blocks_of_matrix(const blocks *all, int operand);

block_layout block_layout_gemm(const blocks *all, int operand, int64_t block, int64_t run);
smk_code block_plan_gemm(const blocks *all, const unit *u, const smk_matrix *matrices,
                         const smk_prepack *prepack, smk_plan *out, smk_status *status);
block_layout block_layout_transpose(const blocks *all, int operand, int64_t block, int64_t run);
smk_code block_plan_transpose(const blocks *all, const unit *u, const smk_matrix *matrices,
                              const smk_prepack *prepack, smk_plan *out, smk_status *status);

/* ---- plan_flow_sizes.c ---- */

enum { MIN_BLOCK_ROWS = 128 /* of a block; fewer would waste tiles */ };

typedef struct schedule {
    unit *units;
    int64_t n;
} schedule;

/* Of a slot for it. */
int64_t block_layout_bytes(const block_layout *p);

/* Slots are as large as their largest place, which is the first. */
void block_size_slots(blocks *all, int64_t run);
void block_count(blocks *all, int64_t rows, int64_t columns, int64_t block_rows,
                 int64_t block_columns);

/* Bytes of the workspaces of such units; and of what is kept of each slot of A and B, where it is no more than `most`. */
smk_code block_size_scratch(blocks *all, int64_t run, const int64_t most[2], int64_t *workspace,
                            smk_status *status);

/* Of all matrices of the batch. */
int64_t schedule_n_products(const blocks *all);

/* For so many units at most; `units` are to be freed. */
smk_code schedule_init(schedule *order, int64_t most, smk_status *status);
void schedule_append(schedule *order, unit u);

/* The product of blocks i of A and j of B, of the batch's matrix of that number. */
void schedule_product(schedule *order, const blocks *all, int64_t matrix, int64_t i, int64_t j,
                      int64_t run, bool keeps);

/* SMK_MEMORY: so many bytes would do. */
smk_code pipeline_refuse_memory(const blocks *all, int64_t needed, smk_status *status);

/* ---- plan_flow_turns.c ---- */

/* A product, or the matrices of a batch one after the other, in less memory than one of them takes. */
smk_code out_of_core_gemm(blocks *all, const smk_gemm *p, smk_pipeline_plan *out,
                          smk_status *status);

/* ---- plan_flow.c ---- */

/* Units in that order, each operand with so many slots; a panel's are its places. */
smk_code pipeline_build(const blocks *all, const schedule *order, const int64_t *slots_of,
                        smk_pipeline_plan *out, smk_status *status);

#endif
