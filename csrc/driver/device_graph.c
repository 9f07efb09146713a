/* Graphs that kernels launch (cudaGraphLaunch in device code).
 *
 * Such a launch runs when the launch of its kernel has ended, as all children do (children.c), and
 * before the next node. A sibling launch is no different here, as graphs run one after the other.
 * A tail launch runs when the graph of its kernel is complete; tail launches of that one come
 * before those that are left.
 *
 * Whether a launch is possible is known when the kernel asks, so it gets the error. Those that are
 * not possible become children, too, to be reported. */
#include <stdlib.h>

#include "work.h"

/* Streams that name the way of a launch. */
static const uint64_t TAIL = 1ull << 56, FIRE_AND_FORGET = 2ull << 56, SIBLING = 3ull << 56;

/* As CUDA documents them; the depth is ours. */
enum { MAX_CHILDREN = 120, MAX_TAILS = 255, MAX_DEPTH = 120 };

typedef enum reason {
    POSSIBLE,
    NOT_IN_GRAPH,
    NO_GRAPH,
    NOT_FOR_DEVICE,
    NOT_UPLOADED,
    ALREADY_RUNS,
    WRONG_STREAM,
    TOO_MANY
} reason;

/* A graph that runs, of which a kernel may launch the next one of this list. */
typedef struct running {
    struct running *outer;
    unsigned depth;
    CUgraphExec graph; /* NULL: no longer known */
    unsigned children, asked_tails;
    CUgraphExec *tails; /* the last one comes next */
    size_t n, room;
} running;

static running *current;

static bool is_for_device(CUgraphExec e) {
    return handle_is(e, HANDLE_GRAPH_EXEC) && e->flags & GRAPH_DEVICE_LAUNCH;
}

uint64_t graph_current(void) {
    return current && is_for_device(current->graph) ? (uintptr_t)current->graph : 0;
}

static reason judge(CUgraphExec e, uint64_t stream) {
    if (!current) return NOT_IN_GRAPH;
    if (!handle_is(e, HANDLE_GRAPH_EXEC)) return NO_GRAPH;
    if (!is_for_device(e)) return NOT_FOR_DEVICE;
    if (!e->uploaded) return NOT_UPLOADED;
    if (stream != TAIL && stream != FIRE_AND_FORGET && stream != SIBLING) return WRONG_STREAM;
    const bool is_self = e == current->graph && stream == TAIL;
    if (e->asked || (e->runs && !is_self)) return ALREADY_RUNS;
    const bool full = stream == TAIL
                          ? current->asked_tails >= MAX_TAILS
                          : current->children >= MAX_CHILDREN || current->depth >= MAX_DEPTH;
    return full ? TOO_MANY : POSSIBLE;
}

unsigned graph_ask(uint64_t graph, uint64_t stream) {
    CUgraphExec e = (CUgraphExec)(uintptr_t)graph;
    const reason why = judge(e, stream);
    if (why) return why;
    e->asked = true;
    *(stream == TAIL ? &current->asked_tails : &current->children) += 1;
    return POSSIBLE;
}

void graph_child_drop(const smk_child *c) {
    CUgraphExec e = (CUgraphExec)(uintptr_t)c->to;
    if (!c->bytes && handle_is(e, HANDLE_GRAPH_EXEC)) e->asked = false;
}

static void report(const smk_child *c) {
    static const char *const why[] = {
        [NOT_IN_GRAPH] = "but is not in a graph itself",
        [NO_GRAPH] = "which does not exist",
        [NOT_FOR_DEVICE] = "which was instantiated without cudaGraphInstantiateFlagDeviceLaunch",
        [NOT_UPLOADED] = "which was not uploaded: call cudaGraphUpload first",
        [ALREADY_RUNS] = "which runs, or will run, already",
        [WRONG_STREAM] = "but not to cudaStreamGraphTailLaunch or another stream for graphs",
        [TOO_MANY] = "after as many others as one graph may launch"};
    report_misuse("launch", NULL, "a kernel launches the graph 0x%llx, %s",
                  (unsigned long long)c->to, why[c->bytes]);
}

/* ---- running ---- */

static CUresult add_tail(CUgraphExec e) {
    if (current->n == current->room) {
        const size_t room = 2 * current->room + 8;
        CUgraphExec *larger = realloc(current->tails, room * sizeof *larger);
        if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
        current->tails = larger;
        current->room = room;
    }
    current->tails[current->n++] = e;
    return CUDA_SUCCESS;
}

/* The first of the new tails is to come next. */
static void reverse(CUgraphExec *tails, size_t n) {
    for (size_t k = 0; k < n / 2; k++) {
        CUgraphExec e = tails[k];
        tails[k] = tails[n - 1 - k];
        tails[n - 1 - k] = e;
    }
}

static CUresult error_of_context(void) {
    return context_current() ? context_current()->error : CUDA_SUCCESS;
}

static CUresult run_one(CUgraph g, CUgraphExec e) {
    const size_t before = current->n;
    const bool known = handle_is(e, HANDLE_GRAPH_EXEC);
    current->graph = known ? e : NULL;
    current->children = current->asked_tails = 0;
    if (known) e->runs = true;
    const CUresult result = graph_run_nodes(g);
    if (known) e->runs = false;
    reverse(current->tails + before, current->n - before);
    return result ? result : error_of_context();
}

CUresult graph_run_launched(CUgraph g, CUgraphExec e) {
    running r = {.outer = current, .depth = current ? current->depth + 1 : 0};
    current = &r;
    CUresult result = run_one(g, e);
    while (r.n) {
        CUgraphExec next = r.tails[--r.n];
        next->asked = false;
        if (!result) result = run_one(next->graph, next);
    }
    free(r.tails);
    current = r.outer;
    return result;
}

CUresult graph_child_run(const smk_child *c) {
    CUgraphExec e = (CUgraphExec)(uintptr_t)c->to;
    if (c->bytes) {
        report(c);
        return CUDA_SUCCESS;
    }
    if (c->from == TAIL) return add_tail(e);
    e->asked = false;
    return graph_run_launched(e->graph, e);
}

/* ---- instantiation ---- */

static bool is_reached(unsigned type, const void *host, CUdeviceptr device) {
    size_t offset;
    const CUdeviceptr address = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
    return type != CU_MEMORYTYPE_ARRAY &&
           (memory_find(address, &offset) || memory_registered((const void *)(uintptr_t)address));
}

CUgraphNode graph_unfit_node(CUgraph g) {
    CUgraphNode found = NULL;
    for (size_t k = 0; k < g->n && !found; k++) {
        CUgraphNode n = g->nodes[k];
        const CUDA_MEMCPY3D *c = &n->work.of.copy;
        switch (n->work.kind) {
        case WORK_KERNEL:
        case WORK_SET: break;
        case WORK_GRAPH: found = graph_unfit_node(n->work.of.graph) ? n : NULL; break;
        case WORK_COPY:
            if (!is_reached(c->srcMemoryType, c->srcHost, c->srcDevice) ||
                !is_reached(c->dstMemoryType, c->dstHost, c->dstDevice))
                found = n;
            break;
        default: found = n;
        }
    }
    return found;
}
