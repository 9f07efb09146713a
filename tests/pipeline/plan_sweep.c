/* Plans products and transposes for every variant, in less and less memory, and checks that no two
 * tasks of a pipeline race. Prints a line per variant: pipelines; those that reuse memory; of these
 * those with prepacked operands; tasks of all pipelines; a digest of the tasks. */
#include <stdio.h>
#include <stdlib.h>

#include "task_order.h"

enum { PARTS = 16 };

static const int64_t shapes[][3] = {
    /* M, N, K */
    {1000, 1900, 40}, {400, 700, 1100}, {2100, 3100, 3},
    {129, 3000, 200}, {2500, 1, 60},    {700, 650, 0},
};

typedef struct tally {
    int pipelines, reusing, prepacked;
    size_t tasks;
    uint64_t digest;
} tally;

static int64_t round_up(int64_t n) {
    return (n + 31) / 32 * 32;
}

/* Rows or columns with a gap between them. */
static smk_matrix matrix(int64_t rows, int64_t columns, bool column_major) {
    return column_major ? (smk_matrix){.ld = 1, .step = round_up(rows)}
                        : (smk_matrix){.ld = round_up(columns), .step = 1};
}

static void fold(tally *t, uint64_t number) {
    t->digest = (t->digest ^ number) * 1099511628211u;
    t->digest ^= t->digest >> 29;
}

static void fold_tasks(tally *t, const smk_pipeline_plan *plan) {
    for (size_t i = 0; i < SMK_PIPELINE_BUFFERS; i++)
        fold(t, plan->buffers[i].bytes);
    for (size_t i = 0; i < plan->n_tasks; i++) {
        const smk_task *task = &plan->tasks[i];
        const smk_rectangle *r = &task->rectangle;
        fold(t, (uint64_t)task->kind << 32 | (uint32_t)task->compute_stream);
        for (int k = 0; k < task->n_after; k++)
            fold(t, task->after[k]);
        if (!task->job)
            fold(t, (uintptr_t)r->host), fold(t, (uint64_t)r->host_pitch), fold(t, r->buffer),
                fold(t, r->offset), fold(t, r->pitch), fold(t, r->width), fold(t, r->height);
    }
    t->tasks += plan->n_tasks;
}

static void check(const smk_pipeline_query *q, smk_pipeline_plan *plan, smk_code code,
                  const smk_status *status, tally *t) {
    if (code && code != SMK_MEMORY) {
        fprintf(stderr, "%s\n", status->message);
        abort();
    }
    if (code == SMK_OK) {
        const smk_buffer *prepacked = &plan->buffers[SMK_PIPELINE_PREPACKED];
        size_t bytes = 0;
        for (size_t i = 0; i < SMK_PIPELINE_BUFFERS; i++)
            bytes += plan->buffers[i].bytes;
        if (bytes > q->memory) {
            fprintf(stderr, "%s: %zu bytes, and %zu may be used\n", q->variant->name, bytes,
                    q->memory);
            abort();
        }
        task_order_check(plan, q->variant, q->dtype->itemsize);
        fold_tasks(t, plan);
        t->pipelines++;
        t->reusing += !plan->resident;
        t->prepacked += !plan->resident && prepacked[0].bytes + prepacked[1].bytes > 0;
    }
    smk_pipeline_plan_free(plan);
}

static void plan_product(smk_pipeline_query *q, const int64_t *shape, int form, size_t memory,
                         tally *t) {
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    const smk_gemm g = {.M = m,
                        .N = n,
                        .K = k,
                        .a = matrix(m, k, form & 1),
                        .b = matrix(k, n, form & 2),
                        .c = matrix(m, n, false),
                        .alpha = 1,
                        .beta = form & 4 ? 0.5 : 0,
                        .multiprocessors = 132};
    smk_status status = {0};
    smk_pipeline_plan plan = {0};
    q->split = form & 4 ? 4 : 1;
    q->seconds = form & 1 ? 1e-9 : form & 2 ? 1e-11 * (double)(m * n) : 0;
    q->memory = memory;
    check(q, &plan, smk_pipeline_plan_gemm(q, &g, &plan, &status), &status, t);
}

static void plan_transpose(smk_pipeline_query *q, const int64_t *shape, int form, size_t memory,
                           tally *t) {
    const smk_transpose g = {.rows = shape[0],
                             .cols = shape[1],
                             .x = matrix(shape[0], shape[1], form & 1),
                             .y = matrix(shape[1], shape[0], form & 2),
                             .multiprocessors = 132};
    smk_status status = {0};
    smk_pipeline_plan plan = {0};
    q->memory = memory;
    check(q, &plan, smk_pipeline_plan_transpose(q, &g, &plan, &status), &status, t);
}

static void plan_shape(smk_pipeline_query *q, const int64_t *shape, tally *t) {
    char *const host = (char *)((uintptr_t)1 << 46); /* never accessed */
    const bool gemm = q->variant->op == SMK_GEMM;
    const int64_t m = shape[0], n = shape[1], k = gemm ? shape[2] : 0;
    const size_t bytes = (size_t)(((gemm ? 1 : 2) * m * n + m * k + k * n) * q->dtype->itemsize);
    for (int o = 0; o < SMK_MAX_OPERANDS; o++)
        q->host[o] = host + ((size_t)o << 40);
    for (int form = 0; form < 8; form++) {
        size_t memory[PARTS];
        int n_memory = 0;
        for (size_t part = (size_t)form % 3 + 1; part <= PARTS; part += 3)
            memory[n_memory++] = bytes * part / PARTS;
        memory[n_memory++] = 8 * bytes + (64 << 20);
        for (int i = 0; i < n_memory; i++)
            (gemm ? plan_product : plan_transpose)(q, shape, form, memory[i], t);
    }
}

int main(void) {
    for (size_t r = 0; r < smk_n_variants; r++) {
        const smk_variant *variant = &smk_variants[r];
        tally t = {0};
        for (int d = 0; variant->op != SMK_PROBE && d < variant->n_dtypes; d++) {
            int64_t values[SMK_MAX_PARAMS];
            smk_status status = {0};
            smk_pipeline_query q = {
                .variant = variant, .dtype = &variant->dtypes[d], .values = values};
            if (smk_variant_values(variant, q.dtype->itemsize, NULL, NULL, 0, values, &status))
                abort();
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                plan_shape(&q, shapes[s], &t);
        }
        if (t.pipelines)
            printf("%s %s: %d %d %d %zu %016llx\n", smk_op_names[variant->op], variant->name,
                   t.pipelines, t.reusing, t.prepacked, t.tasks, (unsigned long long)t.digest);
    }
    return 0;
}
