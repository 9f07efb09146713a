/* Computes what each task of a pipeline reads and writes, from its rectangle or its kernels'
 * arguments, and which tasks have ended when it begins, from its queue and its dependencies. */
#include "task_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../csrc/kernels/args.h"

enum { MAX_TASKS = 1500, MAX_REGIONS = 6 };

/* Rows of bytes in a buffer. */
typedef struct region {
    int64_t buffer, offset, pitch, width, height;
    bool written;
} region;

typedef struct access {
    region regions[MAX_REGIONS];
    int n;
} access;

/* ---- what a task accesses ---- */

static void add(access *a, region r) {
    if (r.width > 0 && r.height > 0) a->regions[a->n++] = r;
}

/* One of the strides is 1, or the matrix is a single row or column. */
static region matrix(int64_t buffer, int64_t offset, int64_t rows, int64_t columns, int64_t ld,
                     int64_t step, int itemsize) {
    const bool column_major = ld == 1 && step != 1;
    const int64_t inner = column_major ? rows : columns, outer = column_major ? columns : rows;
    const int64_t pitch = (column_major ? step : ld) * itemsize;
    return (region){buffer, offset, pitch, inner * itemsize, outer, false};
}

/* Whether the job only prepacks operands. */
static bool only_prepacks(const smk_variant *variant, const smk_job *job) {
    for (size_t i = 0; i < job->n_launches; i++)
        if (!variant->wgmma.pack || strcmp(job->launches[i].entry, variant->wgmma.pack))
            return false;
    return true;
}

/* The offset of the prepacked operand in its buffer. */
static int64_t prepacked_offset(const smk_plan *plan, uint32_t buffer) {
    int64_t min = INT64_MAX;
    for (size_t i = 0; i < plan->n_pointers; i++) {
        long long at;
        memcpy(&at, plan->args + plan->pointers[i].arg_offset, sizeof at);
        if (plan->pointers[i].buffer == buffer && at < min) min = at;
    }
    return min;
}

static access of_product(const smk_plan *plan, const smk_variant *variant, const smk_job *job,
                         int stream, int itemsize) {
    access a = {.n = 0};
    if (job->n_launches == 0) return a;
    const gemm_args *g = (const void *)(plan->args + plan->parameters[0]);
    const bool prepacks = only_prepacks(variant, job);
    bool reads[2] = {!prepacks, !prepacks};
    const wgmma_args *w = (const void *)(plan->args + plan->parameters[1]);
    const bool swapped = variant->wgmma.pack && w->swapped; /* the kernel's A is B's transpose */
    for (int o = 0; o < 2 && variant->wgmma.pack; o++) {
        const wgmma_operand *s = (o == 1) != swapped ? &w->b : &w->a;
        const bool made = s->packing || s->searching;
        reads[o] |= made;
        if (plan->prepacked_bytes[o])
            add(&a,
                (region){SMK_PIPELINE_PREPACKED + o,
                         prepacked_offset(plan, (uint32_t)(SMK_PIPELINE_PREPACKED + o)), INT32_MAX,
                         (int64_t)plan->prepacked_bytes[o], made || !prepacks, made});
    }
    if (plan->workspace)
        add(&a, (region){SMK_PIPELINE_WORKSPACES + stream, 0, INT32_MAX, (int64_t)plan->workspace,
                         1, true});
    const int64_t at_a = swapped ? g->B : g->A, at_b = swapped ? g->A : g->B;
    if (reads[0]) add(&a, matrix(0, at_a, g->M, g->K, g->lda, g->step_a, itemsize));
    if (reads[1]) add(&a, matrix(1, at_b, g->K, g->N, g->ldb, g->step_b, itemsize));
    region c = matrix(2, g->C, g->M, g->N, g->ldc, 1, itemsize);
    c.written = true;
    if (!prepacks) add(&a, c);
    return a;
}

static access of_transpose(const smk_plan *plan, const smk_job *job, int itemsize) {
    access a = {.n = 0};
    if (job->n_launches == 0) return a;
    const transpose_args *t = (const void *)(plan->args + plan->parameters[0]);
    add(&a, matrix(0, t->x, t->rows, t->cols, t->ldx, t->step_x, itemsize));
    region y = matrix(1, t->y, t->cols, t->rows, t->ldy, t->step_y, itemsize);
    y.written = true;
    add(&a, y);
    return a;
}

static access of_compute(const smk_plan *plan, const smk_variant *variant, const smk_task *task,
                         int itemsize) {
    return variant->op == SMK_GEMM
               ? of_product(plan, variant, task->job, task->compute_stream, itemsize)
               : of_transpose(plan, task->job, itemsize);
}

static access of_copy(const smk_task *task) {
    const smk_rectangle *r = &task->rectangle;
    access a = {.n = 0};
    add(&a, (region){r->buffer, (int64_t)r->offset, (int64_t)r->pitch, (int64_t)r->width,
                     (int64_t)r->height, task->kind == SMK_COPY_IN});
    return a;
}

static int64_t end_of(const region *p) {
    return p->offset + (p->height - 1) * p->pitch + p->width;
}

/* Whether they share bytes, and one is written. Blocks side by side interleave, but share none. */
static bool conflict(const region *p, const region *q) {
    if (p->buffer != q->buffer || !(p->written || q->written)) return false;
    if (p->offset >= end_of(q) || q->offset >= end_of(p)) return false;
    if (p->pitch != q->pitch || p->height == 1 || q->height == 1) return true;
    const int64_t from = p->offset % p->pitch, to = q->offset % q->pitch;
    return from < to + q->width && to < from + p->width;
}

/* ---- order ---- */

typedef struct order {
    size_t n, words;
    uint64_t *before; /* per task, a bit set: the tasks that have ended when it begins */
} order;

static bool is_before(const order *o, size_t earlier, size_t later) {
    return o->before[later * o->words + earlier / 64] >> earlier % 64 & 1;
}

static void add_order(order *o, size_t earlier, size_t later) {
    for (size_t w = 0; w < o->words; w++)
        o->before[later * o->words + w] |= o->before[earlier * o->words + w];
    o->before[later * o->words + earlier / 64] |= (uint64_t)1 << earlier % 64;
}

/* Queues run in list order, except copies in of a resident pipeline: peers may do some of them. */
static order order_of(const smk_pipeline_plan *plan) {
    order o = {.n = plan->n_tasks, .words = plan->n_tasks / 64 + 1};
    size_t last[SMK_COMPUTE_STREAMS + 2];
    memset(last, 0xff, sizeof last);
    o.before = calloc(o.n * o.words + 1, sizeof *o.before);
    for (size_t i = 0; i < o.n; i++) {
        const smk_task *task = &plan->tasks[i];
        const size_t queue = task->kind == SMK_COMPUTE
                                 ? (size_t)task->compute_stream
                                 : SMK_COMPUTE_STREAMS + (task->kind == SMK_COPY_OUT);
        const bool any_order = task->kind == SMK_COPY_IN && plan->resident;
        for (int k = 0; k < task->n_after; k++)
            add_order(&o, task->after[k], i);
        if (last[queue] != SIZE_MAX && !any_order) add_order(&o, last[queue], i);
        last[queue] = i;
    }
    return o;
}

void task_order_check(const smk_pipeline_plan *plan, const smk_variant *variant, int itemsize) {
    if (plan->n_tasks > MAX_TASKS) return;
    access *all = calloc(plan->n_tasks + 1, sizeof *all);
    const order o = order_of(plan);
    size_t next = 0;
    for (size_t i = 0; i < plan->n_tasks; i++) {
        const smk_task *task = &plan->tasks[i];
        all[i] = task->kind == SMK_COMPUTE
                     ? of_compute(&plan->plans[next++], variant, task, itemsize)
                     : of_copy(task);
        for (int p = 0; p < all[i].n; p++)
            if ((size_t)end_of(&all[i].regions[p]) >
                plan->buffers[all[i].regions[p].buffer].bytes) {
                fprintf(stderr, "task %zu leaves buffer %d\n", i, (int)all[i].regions[p].buffer);
                abort();
            }
    }
    for (size_t i = 0; i < plan->n_tasks; i++)
        for (size_t j = 0; j < i; j++)
            for (int p = 0; p < all[i].n && !is_before(&o, j, i); p++)
                for (int q = 0; q < all[j].n; q++)
                    if (conflict(&all[i].regions[p], &all[j].regions[q])) {
                        fprintf(stderr, "tasks %zu and %zu race in buffer %d\n", j, i,
                                (int)all[i].regions[p].buffer);
                        abort();
                    }
    free(o.before);
    free(all);
}
