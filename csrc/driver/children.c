/* Children of launches: what kernels ask for, which runs when their launch has ended.
 *
 * A grid is complete when its children are, and a stream of a grid runs its children in order. So
 * they run one after the other, each with its own children before the next; tail launches come
 * after all others. Other orders are legal between streams, but are not tried. */
#include "work.h"

#include <stdlib.h>

typedef struct stack {
    smk_child *items;
    size_t n;
} stack;

/* Moves the children of a launch to the stack, so that the first one is on top. */
static bool push(stack *s, smk_children *all) {
    smk_child *larger = realloc(s->items, (s->n + all->n + 1) * sizeof *larger);
    if (!larger) return false;
    s->items = larger;
    for (int tail = 1; tail >= 0; tail--)
        for (size_t k = all->n; k--;)
            if (all->items[k].tail == tail) s->items[s->n++] = all->items[k];
    free(all->items);
    *all = (smk_children){0};
    return true;
}

static void drop(smk_child *items, size_t n) {
    for (size_t k = 0; k < n; k++) {
        if (items[k].kind == SMK_CHILD_GRAPH) graph_child_drop(&items[k]);
        free((void *)items[k].launch.args);
    }
    free(items);
}

/* A launch that is not possible does not run. The kernel that asked for it has ended, and sees no
 * error. */
static CUresult run_launch(CUmodule m, const smk_child *c, smk_children *its) {
    CUfunction f;
    const CUresult result = module_function(m, c->launch.entry, &f);
    if (result) return result;
    if (!launch_check(f, &c->launch)) return launch_once(f, &c->launch, its);
    report_misuse("launch", NULL,
                  "a kernel launches %s with a size that the GPU does not have, or more shared "
                  "memory than it may use",
                  c->launch.entry);
    return CUDA_SUCCESS;
}

static CUresult run_copy(const smk_child *c) {
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = c->from,
                                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .dstDevice = c->to,
                                .WidthInBytes = c->bytes,
                                .Height = 1,
                                .Depth = 1};
    return c->bytes ? copy_run(&copy) : CUDA_SUCCESS;
}

static CUresult run_set(const smk_child *c) {
    const CUDA_MEMSET_NODE_PARAMS set = {.dst = c->to,
                                         .value = (unsigned)c->from & 0xff,
                                         .elementSize = 1,
                                         .width = c->bytes,
                                         .height = 1};
    return c->bytes ? set_run(&set) : CUDA_SUCCESS;
}

/* Its kernels may be another module's. */
static CUresult run_graph(CUmodule m, const smk_child *c) {
    const CUresult result = graph_child_run(c);
    module_ran(m);
    return result;
}

static CUresult run_child(CUmodule m, const smk_child *c, smk_children *its) {
    switch (c->kind) {
    case SMK_CHILD_COPY: return run_copy(c);
    case SMK_CHILD_SET: return run_set(c);
    case SMK_CHILD_CONDITION: return condition_set(c->to, (unsigned)c->from);
    case SMK_CHILD_GRAPH: return run_graph(m, c);
    default: return run_launch(m, c, its);
    }
}

CUresult children_run(CUmodule m, smk_children *first) {
    stack s = {0};
    smk_children its = *first;
    CUresult result = CUDA_SUCCESS;
    *first = (smk_children){0};
    while (!result) {
        if (its.n && !push(&s, &its)) result = CUDA_ERROR_OUT_OF_MEMORY;
        if (result || !s.n) break;
        const smk_child c = s.items[--s.n];
        result = run_child(m, &c, &its);
        free((void *)c.launch.args);
    }
    drop(its.items, its.n);
    drop(s.items, s.n);
    return result;
}

void children_drop(smk_children *all) {
    drop(all->items, all->n);
    *all = (smk_children){0};
}
