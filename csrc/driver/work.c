/* Work: runs now, or becomes a node of the graph that its stream captures. */
#include "work.h"

#include <stdlib.h>
#include <string.h>

static CUresult record_event(CUevent e) {
    if (!handle_is(e, HANDLE_EVENT)) return CUDA_ERROR_INVALID_HANDLE;
    e->recorded = true;
    e->seconds = driver_seconds();
    return CUDA_SUCCESS;
}

static CUresult call_host(const CUDA_HOST_NODE_PARAMS *h) {
    launch_flush_printed();
    const bool before = driver_set_host_function(true);
    h->fn(h->userData);
    driver_set_host_function(before);
    return CUDA_SUCCESS;
}

CUresult work_run(const work *w) {
    switch (w->kind) {
    case WORK_KERNEL: return launch_kernel(&w->of.kernel);
    case WORK_COPY: return copy_run(&w->of.copy);
    case WORK_SET: return set_run(&w->of.set);
    case WORK_HOST: return call_host(&w->of.host);
    case WORK_GRAPH: return graph_run(w->of.graph);
    case WORK_CONDITIONAL: return conditional_run(&w->of.conditional);
    case WORK_RECORD: return record_event(w->of.event);
    case WORK_ALLOC: return memory_revive(w->of.memory.address);
    case WORK_FREE: return memory_free(w->of.memory.address, false);
    default: return CUDA_SUCCESS; /* what a wait waits for has run */
    }
}

void work_free(work *w) {
    if (w->kind == WORK_KERNEL) free((void *)w->of.kernel.launch.args);
    if (w->kind == WORK_GRAPH) graph_free(w->of.graph);
    if (w->kind == WORK_CONDITIONAL) conditional_free(&w->of.conditional);
    w->kind = WORK_EMPTY;
}

size_t work_graphs(work *w, CUgraph **out) {
    *out = w->kind == WORK_CONDITIONAL ? w->of.conditional.bodies : &w->of.graph;
    return w->kind == WORK_CONDITIONAL ? w->of.conditional.n : w->kind == WORK_GRAPH;
}

CUresult work_clone(const work *from, work *out) {
    work w = *from;
    if (w.kind == WORK_GRAPH) {
        const CUresult result = graph_clone(from->of.graph, &w.of.graph);
        if (result) return result;
        w.of.graph->owned = true;
    }
    if (w.kind == WORK_CONDITIONAL) {
        const CUresult result = conditional_clone(&from->of.conditional, &w.of.conditional);
        if (result) return result;
    }
    if (w.kind == WORK_KERNEL) {
        unsigned char *args = malloc(w.of.kernel.args_bytes + 1);
        if (!args) return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(args, from->of.kernel.launch.args, w.of.kernel.args_bytes);
        w.of.kernel.launch.args = args;
    }
    *out = w;
    return CUDA_SUCCESS;
}

CUresult work_submit(CUstream stream, work *w) {
    capture *into = NULL;
    CUresult result = stream_is(stream) ? capture_of(stream, &into) : CUDA_ERROR_INVALID_HANDLE;
    if (!result && into) return capture_add(into, stream, w);
    if (!result)
        result = queue_wanted()         ? queue_submit(stream, w)
                 : background_wanted(w) ? background_run(w)
                                        : work_run(w);
    work_free(w);
    return result;
}
