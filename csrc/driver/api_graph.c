/* Calls about graphs, executable graphs, and the user objects that they keep. */
#include <stdio.h>
#include <string.h>

#include "work.h"

/* ---- graphs ---- */

static CUresult create(CUgraph *out, unsigned flags) {
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    *out = graph_new();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    DRIVER_CALL(cuGraphCreate, NEED_INIT, create(out, flags));
}

static CUresult destroy(CUgraph g) {
    if (!handle_is(g, HANDLE_GRAPH) || g->owned || capture_uses(g)) return CUDA_ERROR_INVALID_VALUE;
    graph_free(g);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(CUgraph g) {
    DRIVER_CALL(cuGraphDestroy, NEED_INIT, destroy(g));
}

static CUresult clone(CUgraph *out, CUgraph g) {
    return out && handle_is(g, HANDLE_GRAPH) ? graph_clone(g, out) : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphClone(CUgraph *out, CUgraph g) {
    DRIVER_CALL(cuGraphClone, NEED_INIT, clone(out, g));
}

static CUresult find_in_clone(CUgraphNode *out, CUgraphNode original, CUgraph g) {
    if (!out || !handle_is(original, HANDLE_NODE) || !handle_is(g, HANDLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *out = graph_find_clone(g, original);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode original, CUgraph g) {
    DRIVER_CALL(cuGraphNodeFindInClone, NEED_INIT, find_in_clone(out, original, g));
}

static CUresult destroy_node(CUgraphNode n) {
    if (!handle_is(n, HANDLE_NODE) || capture_uses(n->graph) || capture_uses_work(&n->work))
        return CUDA_ERROR_INVALID_VALUE;
    graph_remove(n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroyNode(CUgraphNode n) {
    DRIVER_CALL(cuGraphDestroyNode, NEED_INIT, destroy_node(n));
}

/* ---- lists ---- */

/* A list of nodes, or of pairs of them: `room` at first what the caller has place for, and at the
 * end how many there are. */
typedef struct node_list {
    CUgraphNode *first, *second;
    size_t room, n;
} node_list;

static void list(node_list *l, CUgraphNode first, CUgraphNode second) {
    if (l->n < l->room && l->first) l->first[l->n] = first;
    if (l->n < l->room && l->second) l->second[l->n] = second;
    l->n++;
}

/* Places that are left over are NULL. Without a list the number is asked for. */
static CUresult end_list(node_list *l, size_t *n) {
    const bool asks = !l->first && !l->second;
    for (size_t k = l->n; !asks && k < l->room; k++) {
        if (l->first) l->first[k] = NULL;
        if (l->second) l->second[k] = NULL;
    }
    *n = asks || l->n < l->room ? l->n : l->room;
    return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph g, CUgraphNode *nodes, size_t *n, bool roots) {
    if (!handle_is(g, HANDLE_GRAPH) || !n) return CUDA_ERROR_INVALID_VALUE;
    node_list l = {.first = nodes, .room = *n};
    for (size_t k = 0; k < g->n; k++)
        if (!roots || !g->nodes[k]->n_needs) list(&l, g->nodes[k], NULL);
    return end_list(&l, n);
}

EXPORT CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    DRIVER_CALL(cuGraphGetNodes, NEED_INIT, list_nodes(g, nodes, n, false));
}

EXPORT CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    DRIVER_CALL(cuGraphGetRootNodes, NEED_INIT, list_nodes(g, nodes, n, true));
}

static void clear_edges(CUgraphEdgeData *edges, const size_t *n) {
    if (edges && n) memset(edges, 0, *n * sizeof *edges);
}

static CUresult list_edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                           size_t *n) {
    if (!handle_is(g, HANDLE_GRAPH) || !n || !from != !to) return CUDA_ERROR_INVALID_VALUE;
    node_list l = {.first = from, .second = to, .room = *n};
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->nodes[k]->n_needs; i++)
            list(&l, g->nodes[k]->needs[i], g->nodes[k]);
    end_list(&l, n);
    if (from) clear_edges(edges, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n) {
    DRIVER_CALL(cuGraphGetEdges, NEED_INIT, list_edges(g, from, to, NULL, n));
}

EXPORT CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to,
                                   CUgraphEdgeData *edges, size_t *n) {
    DRIVER_CALL(cuGraphGetEdges, NEED_INIT, list_edges(g, from, to, edges, n));
}

static CUresult neighbours(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *edges, size_t *n,
                           bool before) {
    if (!handle_is(node, HANDLE_NODE) || !n) return CUDA_ERROR_INVALID_VALUE;
    node_list l = {.first = out, .room = *n};
    for (size_t k = 0; before && k < node->n_needs; k++)
        list(&l, node->needs[k], NULL);
    for (size_t k = 0; !before && k < node->graph->n; k++)
        if (node_needs(node->graph->nodes[k], node)) list(&l, node->graph->nodes[k], NULL);
    end_list(&l, n);
    if (out) clear_edges(edges, n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *n) {
    DRIVER_CALL(cuGraphNodeGetDependencies, NEED_INIT, neighbours(node, out, NULL, n, true));
}

EXPORT CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out,
                                              CUgraphEdgeData *edges, size_t *n) {
    DRIVER_CALL(cuGraphNodeGetDependencies, NEED_INIT, neighbours(node, out, edges, n, true));
}

EXPORT CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *n) {
    DRIVER_CALL(cuGraphNodeGetDependentNodes, NEED_INIT, neighbours(node, out, NULL, n, false));
}

EXPORT CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out,
                                                CUgraphEdgeData *edges, size_t *n) {
    DRIVER_CALL(cuGraphNodeGetDependentNodes, NEED_INIT, neighbours(node, out, edges, n, false));
}

static CUresult connect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n,
                        CUresult (*change)(CUgraphNode from, CUgraphNode to)) {
    if (!handle_is(g, HANDLE_GRAPH) || (n && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < n; k++) {
        if (!handle_is(to[k], HANDLE_NODE) || to[k]->graph != g) return CUDA_ERROR_INVALID_VALUE;
        const CUresult result = change(from[k], to[k]);
        if (result) return result;
    }
    return CUDA_SUCCESS;
}

#define CONNECT_CALLS(name, change)                                                                \
    EXPORT CUresult name(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n) {    \
        DRIVER_CALL(name, NEED_INIT, connect(g, from, to, n, change));                             \
    }                                                                                              \
    EXPORT CUresult name##_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,           \
                              const CUgraphEdgeData *edges, size_t n) {                            \
        (void)edges;                                                                               \
        DRIVER_CALL(name, NEED_INIT, connect(g, from, to, n, change));                             \
    }

CONNECT_CALLS(cuGraphAddDependencies, graph_connect)
CONNECT_CALLS(cuGraphRemoveDependencies, graph_disconnect)

/* ---- executable graphs ---- */

static CUresult instantiate(CUgraphExec *out, CUgraph g, uint64_t flags) {
    enum { AUTO_FREE = 1, ALL = 15 };
    if (!out || !handle_is(g, HANDLE_GRAPH) || flags > ALL) return CUDA_ERROR_INVALID_VALUE;
    if (flags & GRAPH_DEVICE_LAUNCH && (flags & AUTO_FREE || !g->n || graph_unfit_node(g)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = graph_check(g);
    if (result) return result;
    CUgraphExec e = handle_new(HANDLE_GRAPH_EXEC, sizeof *e);
    if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
    result = graph_clone(g, &e->graph);
    if (result) {
        handle_free(e, HANDLE_GRAPH_EXEC);
        return result;
    }
    e->head.context = NULL;
    e->graph->owned = true;
    e->flags = flags & ~(uint64_t)GRAPH_UPLOAD;
    e->uploaded = flags & GRAPH_UPLOAD;
    *out = e;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph g, unsigned long long flags) {
    DRIVER_CALL(cuGraphInstantiate, NEED_INIT, instantiate(out, g, flags));
}

static CUresult instantiate_log(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *text,
                                size_t bytes) {
    if (node) *node = NULL;
    if (text && bytes) *text = 0;
    return instantiate(out, g, 0);
}

EXPORT CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *text,
                                   size_t bytes) {
    DRIVER_CALL(cuGraphInstantiate, NEED_INIT, instantiate_log(out, g, node, text, bytes));
}

EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph g, CUgraphNode *node, char *text,
                                      size_t bytes) {
    DRIVER_CALL(cuGraphInstantiate, NEED_INIT, instantiate_log(out, g, node, text, bytes));
}

static CUresult instantiate_params(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
    enum { SUCCESS, ERROR, UNFIT_NODE = 3 };
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    const bool is_for_device = handle_is(g, HANDLE_GRAPH) && p->flags & GRAPH_DEVICE_LAUNCH;
    p->hErrNode_out = is_for_device ? graph_unfit_node(g) : NULL;
    const CUresult result = instantiate(out, g, p->flags);
    p->result_out = p->hErrNode_out ? UNFIT_NODE : result ? ERROR : SUCCESS;
    return result;
}

EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph g,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
    DRIVER_CALL(cuGraphInstantiateWithParams, NEED_INIT, instantiate_params(out, g, p));
}

static CUresult exec_flags(CUgraphExec e, uint64_t *flags) {
    if (!handle_is(e, HANDLE_GRAPH_EXEC) || !flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = e->flags;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecGetFlags(CUgraphExec e, uint64_t *flags) {
    DRIVER_CALL(cuGraphExecGetFlags, NEED_INIT, exec_flags(e, flags));
}

static CUresult destroy_exec(CUgraphExec e) {
    if (!handle_is(e, HANDLE_GRAPH_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    graph_free(e->graph);
    handle_free(e, HANDLE_GRAPH_EXEC);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec e) {
    DRIVER_CALL(cuGraphExecDestroy, NEED_INIT, destroy_exec(e));
}

/* The work is a clone, as a later call may change the executable graph. */
static CUresult launch_exec(CUgraphExec e, CUstream s) {
    work w;
    if (!handle_is(e, HANDLE_GRAPH_EXEC)) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    const work own = {.kind = WORK_GRAPH, .of.graph = e->graph};
    const CUresult result = work_clone(&own, &w);
    if (result) return result;
    w.of.graph->launched = e;
    e->uploaded = true;
    return work_submit(s, &w);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuGraphLaunch, launch_exec(e, s));
}

static CUresult upload(CUgraphExec e, CUstream s) {
    if (!handle_is(e, HANDLE_GRAPH_EXEC) || !stream_is(s)) return CUDA_ERROR_INVALID_VALUE;
    e->uploaded = true;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphUpload(CUgraphExec e, CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuGraphUpload, upload(e, s));
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphNode *node, unsigned *why) {
    if (!handle_is(e, HANDLE_GRAPH_EXEC) || !handle_is(g, HANDLE_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *why = 0;
    return graph_update(e->graph, g, why, node);
}

EXPORT CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *node, unsigned *why) {
    DRIVER_CALL(cuGraphExecUpdate, NEED_INIT,
                node && why ? update(e, g, node, why) : CUDA_ERROR_INVALID_VALUE);
}

static CUresult update_with_result(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *out) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraphExecUpdateResultInfo){0};
    return update(e, g, &out->errorNode, &out->result);
}

EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *out) {
    DRIVER_CALL(cuGraphExecUpdate, NEED_INIT, update_with_result(e, g, out));
}

/* ---- user objects ---- */

EXPORT CUresult cuUserObjectCreate(CUuserObject *out, void *value, CUhostFn destroy,
                                   unsigned references, unsigned flags) {
    enum { NO_DESTRUCTOR_SYNC = 1 };
    DRIVER_CALL(cuUserObjectCreate, NEED_INIT,
                flags == NO_DESTRUCTOR_SYNC ? object_new(out, value, destroy, references)
                                            : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuUserObjectRetain(CUuserObject o, unsigned n) {
    DRIVER_CALL(cuUserObjectRetain, NEED_INIT, object_retain(o, n));
}

EXPORT CUresult cuUserObjectRelease(CUuserObject o, unsigned n) {
    DRIVER_CALL(cuUserObjectRelease, NEED_INIT, object_release(o, n));
}

EXPORT CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned n, unsigned flags) {
    enum { MOVE = 1 };
    DRIVER_CALL(cuGraphRetainUserObject, NEED_INIT,
                flags > MOVE ? CUDA_ERROR_INVALID_VALUE : graph_retain(g, o, n, flags));
}

EXPORT CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned n) {
    DRIVER_CALL(cuGraphReleaseUserObject, NEED_INIT, graph_release(g, o, n));
}

/* ---- pictures ---- */

static CUresult print_dot(CUgraph g, const char *name) {
    static const char *const kinds[] = {"empty",       "kernel", "copy", "set",   "host", "graph",
                                        "conditional", "record", "wait", "alloc", "free"};
    if (!handle_is(g, HANDLE_GRAPH) || !name) return CUDA_ERROR_INVALID_VALUE;
    FILE *file = fopen(name, "w");
    if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(file, "digraph dot {\n");
    for (size_t k = 0; k < g->n; k++) {
        const work *w = &g->nodes[k]->work;
        const bool is_kernel =
            w->kind == WORK_KERNEL && handle_is(w->of.kernel.function, HANDLE_FUNCTION);
        fprintf(file, "n%zu [label=\"%s\"];\n", k,
                is_kernel ? w->of.kernel.function->signature.entry : kinds[w->kind]);
        for (size_t i = 0; i < g->nodes[k]->n_needs; i++)
            fprintf(file, "n%zu -> n%zu;\n", g->nodes[k]->needs[i]->at, k);
    }
    fprintf(file, "}\n");
    return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDebugDotPrint(CUgraph g, const char *name, unsigned flags) {
    (void)flags;
    DRIVER_CALL(cuGraphDebugDotPrint, NEED_INIT, print_dot(g, name));
}
