/* Graphs: nodes of work, and which of them come after which. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

/* ---- user objects ---- */

struct user_object {
    handle head;
    void *value;
    CUhostFn destroy;
    uint64_t references;
};

typedef struct graph_object { /* references that a graph has */
    struct graph_object *next;
    CUuserObject object;
    uint64_t references;
} graph_object;

CUresult object_new(CUuserObject *out, void *value, CUhostFn destroy, unsigned references) {
    if (!out || !destroy || !references) return CUDA_ERROR_INVALID_VALUE;
    CUuserObject o = handle_new(HANDLE_USER_OBJECT, sizeof *o);
    if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
    o->value = value;
    o->destroy = destroy;
    o->references = references;
    *out = o;
    return CUDA_SUCCESS;
}

CUresult object_retain(CUuserObject o, unsigned n) {
    if (!handle_is(o, HANDLE_USER_OBJECT) || !n) return CUDA_ERROR_INVALID_VALUE;
    o->references += n;
    return CUDA_SUCCESS;
}

CUresult object_release(CUuserObject o, uint64_t n) {
    if (!handle_is(o, HANDLE_USER_OBJECT) || !n || n > o->references)
        return CUDA_ERROR_INVALID_VALUE;
    o->references -= n;
    if (o->references) return CUDA_SUCCESS;
    const CUhostFn destroy = o->destroy;
    void *value = o->value;
    handle_free(o, HANDLE_USER_OBJECT);
    const bool before = driver_set_host_function(true);
    destroy(value);
    driver_set_host_function(before);
    return CUDA_SUCCESS;
}

static graph_object **object_of(CUgraph g, CUuserObject o) {
    graph_object **link = &g->objects;
    while (*link && (*link)->object != o)
        link = &(*link)->next;
    return link;
}

/* `move`: the caller gives the references away. */
CUresult graph_retain(CUgraph g, CUuserObject o, uint64_t n, bool move) {
    if (!handle_is(g, HANDLE_GRAPH) || !handle_is(o, HANDLE_USER_OBJECT) || !n ||
        (move && n > o->references))
        return CUDA_ERROR_INVALID_VALUE;
    graph_object **link = object_of(g, o);
    if (!*link) *link = calloc(1, sizeof **link);
    if (!*link) return CUDA_ERROR_OUT_OF_MEMORY;
    (*link)->object = o;
    (*link)->references += n;
    if (!move) o->references += n;
    return CUDA_SUCCESS;
}

CUresult graph_release(CUgraph g, CUuserObject o, uint64_t n) {
    if (!handle_is(g, HANDLE_GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    graph_object **link = object_of(g, o), *found = *link;
    if (!found || !n || n > found->references) return CUDA_ERROR_INVALID_VALUE;
    found->references -= n;
    if (!found->references) {
        *link = found->next;
        free(found);
    }
    return object_release(o, n);
}

/* ---- nodes ---- */

CUgraph graph_new(void) {
    CUgraph g = handle_new(HANDLE_GRAPH, sizeof *g);
    if (g) g->head.context = NULL;
    return g;
}

static void free_node(CUgraphNode n) {
    work_free(&n->work);
    free(n->needs);
    free(n->pointers);
    handle_free(n, HANDLE_NODE);
}

void graph_free(CUgraph g) {
    capture_forget(g);
    while (g->n)
        free_node(g->nodes[--g->n]);
    while (g->objects)
        graph_release(g, g->objects->object, g->objects->references);
    free(g->nodes);
    handle_free(g, HANDLE_GRAPH);
}

bool node_needs(const struct node *to, const struct node *from) {
    for (size_t k = 0; k < to->n_needs; k++)
        if (to->needs[k] == from) return true;
    return false;
}

CUresult graph_connect(CUgraphNode from, CUgraphNode to) {
    if (!handle_is(from, HANDLE_NODE) || !handle_is(to, HANDLE_NODE) || from->graph != to->graph ||
        from == to || node_needs(to, from))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode *larger = realloc(to->needs, (to->n_needs + 1) * sizeof *larger);
    if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
    to->needs = larger;
    to->needs[to->n_needs++] = from;
    return CUDA_SUCCESS;
}

CUresult graph_disconnect(CUgraphNode from, CUgraphNode to) {
    if (!handle_is(to, HANDLE_NODE)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < to->n_needs; k++)
        if (to->needs[k] == from) {
            to->needs[k] = to->needs[--to->n_needs];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult append(CUgraph g, CUgraphNode node) {
    CUgraphNode *larger = realloc(g->nodes, (g->n + 1) * sizeof *larger);
    if (!larger) return CUDA_ERROR_OUT_OF_MEMORY;
    g->nodes = larger;
    node->graph = g;
    node->at = g->n;
    g->nodes[g->n++] = node;
    return CUDA_SUCCESS;
}

CUresult graph_add(CUgraph g, const CUgraphNode *needs, size_t n, work *w, CUgraphNode *out) {
    CUgraphNode node = handle_new(HANDLE_NODE, sizeof *node);
    CUresult result = node ? append(g, node) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        if (node) handle_free(node, HANDLE_NODE);
        work_free(w);
        return result;
    }
    node->head.context = NULL;
    node->work = *w;
    for (size_t k = 0; k < n && !result; k++)
        result = graph_connect(needs[k], node);
    if (result)
        graph_remove(node);
    else if (out)
        *out = node;
    return result;
}

void graph_remove(CUgraphNode node) {
    CUgraph g = node->graph;
    for (size_t k = 0; k < g->n; k++)
        graph_disconnect(node, g->nodes[k]);
    memmove(&g->nodes[node->at], &g->nodes[node->at + 1],
            (g->n - node->at - 1) * sizeof(CUgraphNode));
    g->n--;
    for (size_t k = node->at; k < g->n; k++)
        g->nodes[k]->at = k;
    free_node(node);
}

/* ---- clones ---- */

static CUresult clone_into(CUgraph g, CUgraph to) {
    CUresult result = CUDA_SUCCESS;
    for (size_t k = 0; k < g->n && !result; k++) {
        work w;
        CUgraphNode node = NULL;
        result = work_clone(&g->nodes[k]->work, &w);
        if (!result) result = graph_add(to, NULL, 0, &w, &node);
        if (result) break;
        node->original = g->nodes[k];
        node->disabled = g->nodes[k]->disabled;
    }
    for (size_t k = 0; k < g->n && !result; k++)
        for (size_t i = 0; i < g->nodes[k]->n_needs && !result; i++)
            result = graph_connect(to->nodes[g->nodes[k]->needs[i]->at], to->nodes[k]);
    for (const graph_object *o = g->objects; o && !result; o = o->next)
        result = graph_retain(to, o->object, o->references, false);
    return result;
}

CUresult graph_clone(CUgraph g, CUgraph *out) {
    CUgraph to = graph_new();
    if (!to) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = clone_into(g, to);
    if (result) {
        graph_free(to);
        return result;
    }
    to->original = g;
    *out = to;
    return CUDA_SUCCESS;
}

CUgraphNode graph_find_clone(CUgraph g, const struct node *original) {
    for (size_t k = 0; k < g->n; k++) {
        CUgraphNode node = g->nodes[k];
        if (node->original == original) return node;
        CUgraph *inner;
        for (size_t i = work_graphs(&node->work, &inner); i--;) {
            CUgraphNode inside = graph_find_clone(inner[i], original);
            if (inside) return inside;
        }
    }
    return NULL;
}

/* ---- order ---- */

static bool is_ready(const struct node *n, const bool *done) {
    for (size_t k = 0; k < n->n_needs; k++)
        if (!done[n->needs[k]->at]) return false;
    return true;
}

/* Calls each(node) for all nodes, each after those that it needs: in the order of the graph where
 * that is possible. A graph with a circle is invalid. */
static CUresult in_order(CUgraph g, CUresult (*each)(CUgraphNode node)) {
    bool *done = calloc(g->n + 1, sizeof *done);
    size_t left = g->n;
    CUresult result = done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    while (left && !result) {
        const size_t before = left;
        for (size_t k = 0; k < g->n && !result; k++) {
            if (done[k] || !is_ready(g->nodes[k], done)) continue;
            result = each(g->nodes[k]);
            done[k] = true;
            left--;
        }
        if (left == before) result = CUDA_ERROR_INVALID_VALUE;
    }
    free(done);
    return result;
}

static CUresult check_node(CUgraphNode node) {
    CUgraph *inner;
    CUresult result = CUDA_SUCCESS;
    for (size_t k = work_graphs(&node->work, &inner); k-- && !result;)
        result = graph_check(inner[k]);
    return result;
}

CUresult graph_check(CUgraph g) {
    return in_order(g, check_node);
}

static CUresult run_node(CUgraphNode node) {
    CUresult result = node->disabled ? CUDA_SUCCESS : work_run(&node->work);
    /* After a kernel's fault nothing more runs. */
    if (!result && context_current()) result = context_current()->error;
    return result;
}

CUresult graph_run_nodes(CUgraph g) {
    return in_order(g, run_node);
}

CUresult graph_run(CUgraph g) {
    if (g->launched) conditions_reset(g);
    const CUresult result = g->launched ? graph_run_launched(g, g->launched) : graph_run_nodes(g);
    /* As a single kernel's, its fault is what later calls return. */
    return result && context_current() && result == context_current()->error ? CUDA_SUCCESS
                                                                             : result;
}

/* ---- updates ---- */

static bool same_needs(const struct node *a, const struct node *b) {
    if (a->n_needs != b->n_needs) return false;
    for (size_t k = 0; k < a->n_needs; k++)
        if (!node_needs(b, b->graph->nodes[a->needs[k]->at])) return false;
    return true;
}

/* Sets *why and *node where the graphs, or those in their nodes, differ in their shape. */
static void compare(CUgraph to, CUgraph from, unsigned *why, CUgraphNode *node) {
    enum { TOPOLOGY = 2, TYPE = 3 };
    if (to->n != from->n) *why = TOPOLOGY;
    for (size_t k = 0; k < to->n && !*why; k++) {
        CUgraphNode a = to->nodes[k], b = from->nodes[k];
        CUgraph *inner, *inner_from;
        const size_t n = work_graphs(&a->work, &inner), n_from = work_graphs(&b->work, &inner_from);
        if (a->work.kind != b->work.kind || n != n_from) *why = TYPE;
        if (!same_needs(b, a)) *why = TOPOLOGY;
        if (*why) *node = b;
        for (size_t i = 0; i < n && !*why; i++)
            compare(inner[i], inner_from[i], why, node);
    }
}

static CUresult copy_work(CUgraph to, CUgraph from) {
    CUresult result = CUDA_SUCCESS;
    for (size_t k = 0; k < to->n && !result; k++) {
        work w, *old = &to->nodes[k]->work, *given = &from->nodes[k]->work;
        CUgraph *inner, *inner_from;
        const size_t n = work_graphs(old, &inner);
        work_graphs(given, &inner_from);
        for (size_t i = 0; i < n && !result; i++)
            result = copy_work(inner[i], inner_from[i]);
        if (n || result || (result = work_clone(given, &w))) continue;
        work_free(old);
        *old = w;
    }
    return result;
}

/* Makes the nodes of `to` those of `from`, which must have the same shape. */
CUresult graph_update(CUgraph to, CUgraph from, unsigned *why, CUgraphNode *node) {
    *node = NULL;
    compare(to, from, why, node);
    return *why ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : copy_work(to, from);
}
