/* Capture of streams: their work becomes nodes of a graph. Streams that wait for an event of a
 * captured stream join the capture. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED, N_MODES };
enum { STATUS_NONE, STATUS_ACTIVE, STATUS_INVALIDATED };

struct capture {
    struct capture *next;
    uint64_t number;
    CUgraph graph;
    bool owned; /* the graph was made for the capture */
    int mode;
    bool invalid;
    const void *thread; /* that began it: the address of its mode */
    CUstream origin, *streams;
    size_t n_streams;
};

static capture *captures;
static _Thread_local int thread_mode = GLOBAL;

/* ---- streams ---- */

/* The per-thread stream has a place of its own; the legacy one cannot be captured. */
static graph_place *place_of(CUstream s) {
    static _Thread_local graph_place per_thread;
    if ((uintptr_t)s == 2) return &per_thread;
    return handle_is(s, HANDLE_STREAM) ? &s->captured : NULL;
}

static void clear(graph_place *p) {
    free(p->after);
    *p = (graph_place){0};
}

static void remove_capture(capture *c) {
    capture **link = &captures;
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    free(c->streams);
    free(c);
}

/* A stream that ends before its capture takes the capture with it. */
void stream_free(CUstream s) {
    for (capture *c = captures, *next; c; c = next) {
        next = c->next;
        if (c->origin != s) continue;
        if (c->owned) graph_free(c->graph);
        remove_capture(c);
    }
    clear(&s->captured);
    handle_free(s, HANDLE_STREAM);
}

void event_free(CUevent e) {
    clear(&e->captured);
    handle_free(e, HANDLE_EVENT);
}

void event_forget_capture(CUevent e) {
    clear(&e->captured);
}

static capture *numbered(uint64_t number) {
    capture *c = captures;
    while (c && c->number != number)
        c = c->next;
    return number ? c : NULL;
}

static capture *of_place(graph_place *p) {
    capture *c = p ? numbered(p->capture) : NULL;
    if (p && !c) clear(p); /* it has ended */
    return c;
}

/* Adds the nodes to those that a place comes after. */
static CUresult add_after(graph_place *p, uint64_t number, CUgraphNode const *nodes, size_t n) {
    CUgraphNode *larger = realloc(p->after, (p->n + n + 1) * sizeof *larger);
    if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
    p->after = larger;
    p->capture = number;
    for (size_t k = 0; k < n; k++) {
        bool known = false;
        for (size_t i = 0; i < p->n; i++)
            known |= p->after[i] == nodes[k];
        if (!known) p->after[p->n++] = nodes[k];
    }
    return CUDA_SUCCESS;
}

static CUresult set_after(graph_place *p, uint64_t number, CUgraphNode const *nodes, size_t n) {
    p->n = 0;
    return add_after(p, number, nodes, n);
}

/* ---- what other calls ask ---- */

static CUresult invalidate(capture *c, CUresult result) {
    c->invalid = true;
    return result;
}

/* The legacy stream waits for all streams that are not made otherwise, also for captured ones. */
static CUresult check_legacy(void) {
    enum { NON_BLOCKING = 1 };
    for (capture *c = captures; c; c = c->next)
        for (size_t k = 0; k < c->n_streams; k++) {
            const CUstream s = c->streams[k];
            if ((uintptr_t)s > 2 && handle_is(s, HANDLE_STREAM) && !(s->flags & NON_BLOCKING))
                return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        }
    return CUDA_SUCCESS;
}

CUresult capture_of(CUstream stream, capture **out) {
    *out = NULL;
    if ((uintptr_t)stream <= 1) return check_legacy();
    capture *c = of_place(place_of(stream));
    if (c && c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *out = c;
    return CUDA_SUCCESS;
}

CUresult capture_check_unsafe(void) {
    if (thread_mode == RELAXED) return CUDA_SUCCESS;
    for (capture *c = captures; c; c = c->next) {
        const bool all = c->mode == GLOBAL && thread_mode == GLOBAL;
        if (c->mode != RELAXED && (all || c->thread == &thread_mode))
            return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    return CUDA_SUCCESS;
}

CUresult capture_check_wait(CUstream stream) {
    for (capture *c = captures; c && (uintptr_t)stream <= 1; c = c->next)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    capture *c = of_place(place_of(stream));
    return c ? invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult capture_check_event(CUevent e) {
    capture *c = of_place(&e->captured);
    return c ? invalidate(c, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}

/* ---- what a captured stream does ---- */

CUresult capture_add(capture *c, CUstream stream, work *w) {
    graph_place *p = place_of(stream);
    CUgraphNode node;
    const CUresult result = graph_add(c->graph, p->after, p->n, w, &node);
    return result ? invalidate(c, result) : set_after(p, c->number, &node, 1);
}

CUresult capture_record(capture *c, CUstream stream, CUevent e) {
    const graph_place *p = place_of(stream);
    return set_after(&e->captured, c->number, p->after, p->n);
}

static CUresult join(capture *c, CUstream stream) {
    for (size_t k = 0; k < c->n_streams; k++)
        if (c->streams[k] == stream) return CUDA_SUCCESS;
    CUstream *larger = realloc(c->streams, (c->n_streams + 1) * sizeof *larger);
    if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
    c->streams = larger;
    c->streams[c->n_streams++] = stream;
    return CUDA_SUCCESS;
}

CUresult capture_wait(CUstream stream, CUevent e, bool *done) {
    capture *from = of_place(&e->captured), *into;
    CUresult result = capture_of(stream, &into);
    *done = from || into;
    if (result || !*done) return result;
    if (!from) return invalidate(into, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (from->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if ((uintptr_t)stream <= 1) return invalidate(from, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (into && into != from) {
        invalidate(into, CUDA_SUCCESS);
        return invalidate(from, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    result = join(from, stream);
    return result ? result
                  : add_after(place_of(stream), from->number, e->captured.after, e->captured.n);
}

/* ---- begin and end ---- */

static CUresult begin(CUstream s, int mode, CUgraph graph, const CUgraphNode *after, size_t n) {
    static uint64_t last;
    graph_place *p = place_of(s);
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (mode < 0 || mode >= N_MODES) return CUDA_ERROR_INVALID_VALUE;
    if (!p) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (of_place(p)) return CUDA_ERROR_ILLEGAL_STATE;
    for (size_t k = 0; k < n; k++)
        if (!after || !handle_is(after[k], HANDLE_NODE) || after[k]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    capture *c = calloc(1, sizeof *c);
    if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
    c->owned = !graph;
    c->graph = graph ? graph : graph_new();
    c->mode = mode;
    c->thread = &thread_mode;
    c->origin = s;
    c->number = ++last;
    if (!c->graph || join(c, s) || set_after(p, c->number, after, n)) {
        if (c->owned && c->graph) graph_free(c->graph);
        free(c->streams);
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->next = captures;
    captures = c;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, int mode) {
    DRIVER_CALL_IN(context_of(s), cuStreamBeginCapture, begin(s, mode, NULL, NULL, 0));
}

EXPORT CUresult cuStreamBeginCapture(CUstream s) {
    DRIVER_CALL_IN(context_of(s), cuStreamBeginCapture, begin(s, GLOBAL, NULL, NULL, 0));
}

EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream s, CUgraph graph, const CUgraphNode *after,
                                            const CUgraphEdgeData *edges, size_t n, int mode) {
    (void)edges;
    DRIVER_CALL_IN(context_of(s), cuStreamBeginCaptureToGraph,
                   handle_is(graph, HANDLE_GRAPH) ? begin(s, mode, graph, after, n)
                                                  : CUDA_ERROR_INVALID_VALUE);
}

/* Whether some stream has a node at its end that no node comes after: its work is lost to the
 * origin. */
static bool is_unjoined(const capture *c) {
    const graph_place *end = place_of(c->origin);
    for (size_t k = 0; k < c->n_streams; k++) {
        graph_place *p = place_of(c->streams[k]);
        if (!p || p == end || p->capture != c->number) continue;
        for (size_t i = 0; i < p->n; i++) {
            bool followed = false;
            for (size_t j = 0; j < end->n; j++)
                followed |= end->after[j] == p->after[i];
            for (size_t j = 0; j < c->graph->n && !followed; j++)
                followed = node_needs(c->graph->nodes[j], p->after[i]);
            if (!followed) return true;
        }
    }
    return false;
}

static CUresult finish(CUstream s, CUgraph *out) {
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    capture *c = of_place(place_of(s));
    if (!out && (!c || c->owned)) return CUDA_ERROR_INVALID_VALUE;
    if (out) *out = NULL;
    if (!c) return CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s) return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (c->mode != RELAXED && c->thread != &thread_mode)
        return invalidate(c, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    const CUresult result = c->invalid       ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                            : is_unjoined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                             : CUDA_SUCCESS;
    if (!result && out) *out = c->graph;
    if (result && c->owned) graph_free(c->graph);
    remove_capture(c);
    return result;
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *out) {
    DRIVER_CALL_IN(context_of(s), cuStreamEndCapture, finish(s, out));
}

bool capture_uses(const struct graph *g) {
    for (const capture *c = captures; c; c = c->next)
        if (c->graph == g) return true;
    for (size_t k = 0; k < g->n && captures; k++)
        if (capture_uses_work(&g->nodes[k]->work)) return true;
    return false;
}

bool capture_uses_work(work *w) {
    CUgraph *inner;
    for (size_t k = work_graphs(w, &inner); k--;)
        if (capture_uses(inner[k])) return true;
    return false;
}

void capture_forget(const struct graph *g) {
    for (capture *c = captures; c; c = c->next)
        if (c->graph == g) {
            c->graph = NULL;
            c->owned = false;
            c->invalid = true;
        }
}

/* ---- questions ---- */

typedef struct capture_info {
    int *status;
    uint64_t *number;
    CUgraph *graph;
    CUgraphNode **after;
    const CUgraphEdgeData **edges;
    size_t *n;
} capture_info;

static CUresult tell(CUstream s, capture_info out) {
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out.status) return CUDA_ERROR_INVALID_VALUE;
    graph_place *p = place_of(s);
    const capture *c = of_place(p);
    *out.status = !c ? STATUS_NONE : c->invalid ? STATUS_INVALIDATED : STATUS_ACTIVE;
    if (!p) return captures ? check_legacy() : CUDA_SUCCESS;
    if (out.number) *out.number = c ? c->number : 0;
    if (out.graph) *out.graph = c ? c->graph : NULL;
    if (out.after) *out.after = c ? p->after : NULL;
    if (out.edges) *out.edges = NULL;
    if (out.n) *out.n = c ? p->n : 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamIsCapturing(CUstream s, int *status) {
    DRIVER_CALL_IN(context_of(s), cuStreamIsCapturing, tell(s, (capture_info){.status = status}));
}

EXPORT CUresult cuStreamGetCaptureInfo(CUstream s, int *status, uint64_t *number) {
    DRIVER_CALL_IN(context_of(s), cuStreamGetCaptureInfo,
                   tell(s, (capture_info){.status = status, .number = number}));
}

EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream s, int *status, uint64_t *number, CUgraph *graph,
                                          CUgraphNode **after, size_t *n) {
    DRIVER_CALL_IN(context_of(s), cuStreamGetCaptureInfo,
                   tell(s, (capture_info){status, number, graph, after, NULL, n}));
}

EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream s, int *status, uint64_t *number, CUgraph *graph,
                                          CUgraphNode **after, const CUgraphEdgeData **edges,
                                          size_t *n) {
    DRIVER_CALL_IN(context_of(s), cuStreamGetCaptureInfo,
                   tell(s, (capture_info){status, number, graph, after, edges, n}));
}

static CUresult update(CUstream s, const CUgraphNode *nodes, size_t n, unsigned flags) {
    enum { ADD, SET };
    if (!stream_is(s)) return CUDA_ERROR_INVALID_HANDLE;
    graph_place *p = place_of(s);
    const capture *c = of_place(p);
    if (!c) return CUDA_ERROR_ILLEGAL_STATE;
    if (c->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > SET || (n && !nodes)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < n; k++)
        if (!handle_is(nodes[k], HANDLE_NODE) || nodes[k]->graph != c->graph)
            return CUDA_ERROR_INVALID_VALUE;
    return flags == SET ? set_after(p, c->number, nodes, n) : add_after(p, c->number, nodes, n);
}

EXPORT CUresult cuStreamUpdateCaptureDependencies(CUstream s, CUgraphNode *nodes, size_t n,
                                                  unsigned flags) {
    DRIVER_CALL_IN(context_of(s), cuStreamUpdateCaptureDependencies, update(s, nodes, n, flags));
}

EXPORT CUresult cuStreamUpdateCaptureDependencies_v2(CUstream s, CUgraphNode *nodes,
                                                     const CUgraphEdgeData *edges, size_t n,
                                                     unsigned flags) {
    (void)edges;
    DRIVER_CALL_IN(context_of(s), cuStreamUpdateCaptureDependencies, update(s, nodes, n, flags));
}

static CUresult exchange(int *mode) {
    if (!mode || *mode < 0 || *mode >= N_MODES) return CUDA_ERROR_INVALID_VALUE;
    const int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    DRIVER_CALL(cuThreadExchangeStreamCaptureMode, NEED_INIT, exchange(mode));
}
