/* Plans products of every row of the table in less and less memory, and checks that no two of their steps race. Prints how
 * many flows there were, in how many blocks made room for others, and in how many of these something was kept. */
#include <stdio.h>
#include <stdlib.h>

#include "flow_order.h"

enum { PARTS = 16 };

static const int64_t shapes[][3] = {
    /* M, N, K */
    {1000, 1900, 40}, {400, 700, 1100}, {2100, 3100, 3},
    {129, 3000, 200}, {2500, 1, 60},    {700, 650, 0},
};

typedef struct tally {
    int flows, in_turns, kept;
} tally;

static int64_t round_up(int64_t n) {
    return (n + 31) / 32 * 32;
}

/* Rows beside each other, with a gap, or columns. */
static smk_matrix matrix(int64_t rows, int64_t columns, bool across) {
    return across ? (smk_matrix){.ld = 1, .step = round_up(rows)}
                  : (smk_matrix){.ld = round_up(columns), .step = 1};
}

static void plan_one(smk_flow_question *q, const smk_gemm *g, int64_t bytes, tally *t) {
    smk_status status = {0};
    smk_flow_plan plan = {0};
    q->memory = (size_t)bytes;
    const smk_code code = smk_plan_flow_gemm(q, g, &plan, &status);
    if (code == SMK_OK) {
        const size_t kept =
            plan.buffers[plan.n_buffers - 1].bytes + plan.buffers[plan.n_buffers - 2].bytes;
        size_t of_all = 0;
        for (size_t i = 0; i < plan.n_buffers; i++)
            of_all += plan.buffers[i].bytes;
        if (of_all > q->memory) {
            fprintf(stderr, "%s: %zu bytes, and %zu may be used\n", q->row->name, of_all,
                    q->memory);
            abort();
        }
        flow_order_check(&plan, q->row, q->dtype->itemsize);
        t->flows++;
        t->in_turns += !plan.resident;
        t->kept += !plan.resident && kept;
    } else if (code != SMK_MEMORY) {
        fprintf(stderr, "%s\n", status.message);
        abort();
    }
    smk_flow_plan_free(&plan);
}

static void plan_shape(smk_flow_question *q, const int64_t *shape, tally *t) {
    char *const host = (char *)((uintptr_t)1 << 46); /* never read */
    for (int o = 0; o < SMK_MAX_OPERANDS; o++)
        q->host[o] = host + ((size_t)o << 40);
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    const int64_t bytes = (m * k + k * n + m * n) * q->dtype->itemsize;
    for (int form = 0; form < 8; form++) {
        const smk_gemm g = {.M = m,
                            .N = n,
                            .K = k,
                            .a = matrix(m, k, form & 1),
                            .b = matrix(k, n, form & 2),
                            .c = matrix(m, n, false),
                            .alpha = 1,
                            .beta = form & 4 ? 0.5 : 0,
                            .multiprocessors = 132};
        q->split = 1 + form / 4 % 2 * 3;
        for (int part = form % 3 + 1; part <= PARTS; part += 3)
            plan_one(q, &g, bytes * part / PARTS, t);
        plan_one(q, &g, 8 * bytes + (64 << 20), t);
    }
}

int main(void) {
    tally t = {0};
    for (size_t r = 0; r < smk_n_rows; r++) {
        const smk_row *row = &smk_rows[r];
        for (int d = 0; row->op == SMK_GEMM && d < row->n_dtypes; d++) {
            int64_t values[SMK_MAX_PARAMS];
            smk_status status = {0};
            smk_flow_question q = {.row = row, .dtype = &row->dtypes[d], .values = values};
            if (smk_row_values(row, q.dtype->itemsize, NULL, NULL, 0, values, &status)) abort();
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                plan_shape(&q, shapes[s], &t);
        }
    }
    printf("%d %d %d\n", t.flows, t.in_turns, t.kept);
    return 0;
}
