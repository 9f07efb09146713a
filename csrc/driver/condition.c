/* Nodes of graphs with a condition: a number that kernels set, and the graphs that run by it. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

/* It lives as long as the process, as executable graphs outlive the graph that it was made for. */
struct condition {
    handle head;
    unsigned value, at_launch;
    bool is_assigned; /* at_launch, at each launch */
};

static CUresult create(uint64_t *out, CUgraph g, unsigned at_launch, unsigned flags) {
    enum { ASSIGN_DEFAULT = 1 };
    if (!out || !handle_is(g, HANDLE_GRAPH) || flags > ASSIGN_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    struct condition *c = handle_new(HANDLE_CONDITION, sizeof *c);
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    c->head.context = NULL;
    c->at_launch = at_launch;
    c->is_assigned = flags == ASSIGN_DEFAULT;
    *out = (uintptr_t)c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphConditionalHandleCreate(uint64_t *out, CUgraph g, CUcontext context,
                                               unsigned at_launch, unsigned flags) {
    (void)context;
    DRIVER_CALL(cuGraphConditionalHandleCreate, NEED_INIT, create(out, g, at_launch, flags));
}

CUresult condition_set(uint64_t handle, unsigned value) {
    struct condition *c = (struct condition *)(uintptr_t)handle;
    if (!handle_is(c, HANDLE_CONDITION)) {
        report_misuse("condition", NULL, "a kernel sets the condition 0x%llx, which does not exist",
                      (unsigned long long)handle);
        return CUDA_ERROR_LAUNCH_FAILED;
    }
    c->value = value;
    return CUDA_SUCCESS;
}

void conditions_reset(CUgraph g) {
    for (size_t k = 0; k < g->n; k++) {
        work *w = &g->nodes[k]->work;
        struct condition *c = w->kind == WORK_CONDITIONAL ? w->of.conditional.condition : NULL;
        if (c && c->is_assigned) c->value = c->at_launch;
        CUgraph *inner;
        for (size_t i = work_graphs(w, &inner); i--;)
            conditions_reset(inner[i]);
    }
}

/* ---- nodes ---- */

void conditional_free(conditional_work *c) {
    for (unsigned k = 0; k < c->n; k++)
        graph_free(c->bodies[k]);
    free(c->bodies);
    *c = (conditional_work){0};
}

/* Adds a body to c, which has place for it. */
static CUresult add_body(conditional_work *c, CUgraph body) {
    if (!body) return CUDA_ERROR_OUT_OF_MEMORY;
    body->owned = true;
    c->bodies[c->n++] = body;
    return CUDA_SUCCESS;
}

CUresult conditional_make(CUDA_CONDITIONAL_NODE_PARAMS *p, work *out) {
    enum { MAX_BODIES = 1 << 16 };
    struct condition *condition = (struct condition *)(uintptr_t)p->handle;
    if (!handle_is(condition, HANDLE_CONDITION) || p->type > RUN_SWITCH || !p->size ||
        p->size > MAX_BODIES || (p->type == RUN_IF && p->size > 2) ||
        (p->type == RUN_WHILE && p->size > 1))
        return CUDA_ERROR_INVALID_VALUE;
    conditional_work c = {
        .condition = condition, .type = p->type, .bodies = calloc(p->size, sizeof(CUgraph))};
    CUresult result = c.bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    while (!result && c.n < p->size)
        result = add_body(&c, graph_new());
    if (result) {
        conditional_free(&c);
        return result;
    }
    p->phGraph_out = c.bodies;
    *out = (work){.kind = WORK_CONDITIONAL, .of.conditional = c};
    return CUDA_SUCCESS;
}

CUresult conditional_clone(const conditional_work *from, conditional_work *out) {
    conditional_work c = *from;
    c.n = 0;
    c.bodies = calloc(from->n, sizeof(CUgraph));
    CUresult result = c.bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    while (!result && c.n < from->n) {
        CUgraph body = NULL;
        result = graph_clone(from->bodies[c.n], &body);
        if (!result) result = add_body(&c, body);
    }
    if (result)
        conditional_free(&c);
    else
        *out = c;
    return result;
}

static bool has_failed(void) {
    return context_current() && context_current()->error;
}

CUresult conditional_run(const conditional_work *c) {
    const unsigned value = c->condition->value;
    CUresult result = CUDA_SUCCESS;
    switch (c->type) {
    case RUN_IF:
        if (value) return graph_run(c->bodies[0]);
        return c->n > 1 ? graph_run(c->bodies[1]) : CUDA_SUCCESS;
    case RUN_WHILE:
        while (c->condition->value && !result && !has_failed())
            result = graph_run(c->bodies[0]);
        return result;
    default: return value < c->n ? graph_run(c->bodies[value]) : CUDA_SUCCESS;
    }
}
