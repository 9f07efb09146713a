/* What a block is: which lines of the host's memory, how they lie in a slot of the device's, and how the product
 * or transpose of such blocks is planned. */
#include "blocks.h"
#include "../../core/plan_parts.h"

enum {
    PITCH = 16,    /* lines begin at multiples of this, as TMA and 16-byte copies ask ... */
    PAD_FROM = 128 /* ... from such a width on: padding short lines would cost more than it gains */
};

/* ---- a rectangle of a matrix ---- */

typedef struct part {
    int64_t first_row, rows, first_column, columns;
} part;

/* Its lines are rows or columns, whichever have the neighbours. It lies in a slot that has room for `slot`, a part
 * of the same matrix that it is in. */
static block_layout place_part(const smk_matrix *m, char *host, int itemsize, part p, part slot) {
    const bool across = m->ld == 1 && (m->step != 1 || slot.columns == 1);
    const int64_t width = (across ? p.rows : p.columns) * itemsize;
    const int64_t room = (across ? slot.rows : slot.columns) * itemsize;
    const int64_t pitch = room < PAD_FROM ? room : round_up(room, PITCH);
    const int64_t from_line = across && slot.columns > 1 ? m->step : m->ld;
    const int64_t apart = pitch > itemsize ? pitch / itemsize : 1;
    const int64_t down = p.first_row - slot.first_row, right = p.first_column - slot.first_column;
    const int64_t offset =
        across ? right * pitch + down * itemsize : down * pitch + right * itemsize;
    return (block_layout){
        .rectangle = {.host = host + (p.first_row * m->ld + p.first_column * m->step) * itemsize,
                      .host_pitch = (ptrdiff_t)(from_line * itemsize),
                      .offset = (size_t)offset,
                      .pitch = (size_t)pitch,
                      .width = (size_t)width,
                      .lines = (size_t)(across ? p.columns : p.rows)},
        .matrix = {.offset = offset,
                   .ld = across ? 1 : apart,
                   .step = across && slot.columns > 1 ? apart : 1}};
}

/* The bytes that `group` of a batch span, from the lowest element to the end of the highest. */
static block_layout place_group(const smk_matrix *m, const smk_batch *batch, char *host,
                                int itemsize, part p, int64_t first, int64_t n) {
    int64_t low = 0, high = 0;
    const int64_t sizes[2] = {p.rows, p.columns}, strides[2] = {m->ld, m->step};
    for (int d = 0; d < batch->n + 2; d++) {
        const int64_t size = d == 0 ? n : d < batch->n ? batch->size[d] : sizes[d - batch->n];
        const int64_t stride = d < batch->n ? m->batch[d] : strides[d - batch->n];
        if (size == 0) return (block_layout){.matrix = *m};
        *((size - 1) * stride < 0 ? &low : &high) += (size - 1) * stride;
    }
    block_layout result = {.rectangle = {.host = host + (first * m->batch[0] + low) * itemsize,
                                         .width = (size_t)((high - low + 1) * itemsize),
                                         .lines = 1},
                           .matrix = *m};
    result.rectangle.pitch = result.rectangle.width;
    result.matrix.offset = -low * itemsize;
    return result;
}

static int64_t group_first(const blocks *all, int64_t group) {
    return group * all->size[0];
}

static int64_t group_size(const blocks *all, const smk_batch *batch, int64_t group) {
    return min_i64(all->size[0], batch->size[0] - group_first(all, group));
}

/* ---- blocks within a matrix ---- */

int64_t blocks_of_matrix(const blocks *all, int operand) {
    const bool both = all->n_operands == 2 || operand == 2;
    return both ? all->count[0] * all->count[1] : all->count[operand];
}

/* From the host's first matrix of a batch to the one that the block is of. */
static char *host_of(const blocks *all, const smk_matrix *m, const smk_batch *batch, int operand,
                     int64_t block) {
    int64_t index = block / blocks_of_matrix(all, operand), offset = 0;
    for (int d = batch->n - 1; d >= 0 && index; d--) {
        offset += index % batch->size[d] * m->batch[d];
        index /= batch->size[d];
    }
    return all->question->host[operand] + offset * all->question->dtype->itemsize;
}

/* ---- products ---- */

/* Blocks from that one on: a run of them in the dimension of the panel. */
static part gemm_part(const smk_gemm *p, const blocks *all, int operand, int64_t block,
                      int64_t run) {
    block %= blocks_of_matrix(all, operand);
    const int64_t i = operand == 2 ? block / all->count[1] : operand == 0 ? block : 0;
    const int64_t j = operand == 2 ? block % all->count[1] : operand == 1 ? block : 0;
    const int64_t high = all->size[0] * (all->panel == 0 ? run : 1);
    const int64_t wide = all->size[1] * (all->panel == 1 ? run : 1);
    const part rows = {i * all->size[0], min_i64(high, p->M - i * all->size[0]), 0, p->K};
    const part columns = {0, p->K, j * all->size[1], min_i64(wide, p->N - j * all->size[1])};
    return operand == 0 ? rows
           : operand == 1
               ? columns
               : (part){rows.first_row, rows.rows, columns.first_column, columns.columns};
}

/* What a slot has room for, as a part that begins where the slot's first block is. */
static part gemm_slot(const smk_gemm *p, const blocks *all, int operand, int64_t block, part own) {
    if (operand != all->panel) return own;
    part first = gemm_part(p, all, operand, 0, all->stay);
    block %= blocks_of_matrix(all, operand);
    *(operand ? &first.first_column : &first.first_row) =
        (block - block % all->stay) * (operand ? all->size[1] : all->size[0]);
    return first;
}

static const smk_matrix *gemm_matrix(const smk_gemm *p, int operand) {
    return operand == 0 ? &p->a : operand == 1 ? &p->b : &p->c;
}

block_layout block_layout_gemm(const blocks *all, int operand, int64_t block, int64_t run) {
    const smk_gemm *p = all->problem;
    const smk_pipeline_query *q = all->question;
    const smk_matrix *m = gemm_matrix(p, operand);
    if (all->matrices) {
        const part own = gemm_part(p, all, operand, block, run);
        return place_part(m, host_of(all, m, &p->batch, operand, block), q->dtype->itemsize, own,
                          gemm_slot(p, all, operand, block, own));
    }
    const part whole = {0, operand == 1 ? p->K : p->M, 0, operand == 0 ? p->K : p->N};
    return place_group(m, &p->batch, q->host[operand], q->dtype->itemsize, whole,
                       group_first(all, block), group_size(all, &p->batch, block));
}

smk_code block_plan_gemm(const blocks *all, const unit *u, const smk_matrix *matrices,
                         const smk_prepack *prepack, smk_plan *out, smk_status *status) {
    const smk_pipeline_query *q = all->question;
    smk_gemm own = *(const smk_gemm *)all->problem;
    if (!all->matrices) {
        own.batch.size[0] = group_size(all, &own.batch, u->blocks[2]);
    } else {
        own.batch.n = 0;
        const part c = gemm_part(all->problem, all, 2, u->blocks[2], u->run);
        own.M = c.rows;
        own.N = c.columns;
    }
    own.a = matrices[0];
    own.b = matrices[1];
    own.c = matrices[2];
    own.prepack = *prepack;
    return smk_plan_gemm(q->row, q->dtype, q->values, &own, out, status);
}

/* ---- transposes ---- */

static part transpose_part(const smk_transpose *p, const blocks *all, int operand, int64_t block) {
    block %= blocks_of_matrix(all, operand);
    const int64_t i = block / all->count[1], j = block % all->count[1];
    const part x = {i * all->size[0], min_i64(all->size[0], p->rows - i * all->size[0]),
                    j * all->size[1], min_i64(all->size[1], p->cols - j * all->size[1])};
    return operand == 0 ? x : (part){x.first_column, x.columns, x.first_row, x.rows};
}

block_layout block_layout_transpose(const blocks *all, int operand, int64_t block, int64_t run) {
    (void)run; /* there is no panel */
    const smk_transpose *p = all->problem;
    const smk_pipeline_query *q = all->question;
    const smk_matrix *m = operand ? &p->y : &p->x;
    if (all->matrices) {
        const part own = transpose_part(p, all, operand, block);
        return place_part(m, host_of(all, m, &p->batch, operand, block), q->dtype->itemsize, own,
                          own);
    }
    const part whole = {0, operand ? p->cols : p->rows, 0, operand ? p->rows : p->cols};
    return place_group(m, &p->batch, q->host[operand], q->dtype->itemsize, whole,
                       group_first(all, block), group_size(all, &p->batch, block));
}

smk_code block_plan_transpose(const blocks *all, const unit *u, const smk_matrix *matrices,
                              const smk_prepack *prepack, smk_plan *out, smk_status *status) {
    (void)prepack; /* nothing */
    const smk_pipeline_query *q = all->question;
    smk_transpose own = *(const smk_transpose *)all->problem;
    if (!all->matrices) {
        own.batch.size[0] = group_size(all, &own.batch, u->blocks[1]);
    } else {
        own.batch.n = 0;
        const part x = transpose_part(all->problem, all, 0, u->blocks[0]);
        own.rows = x.rows;
        own.cols = x.columns;
    }
    own.x = matrices[0];
    own.y = matrices[1];
    return smk_plan_transpose(q->row, q->dtype, q->values, &own, out, status);
}
