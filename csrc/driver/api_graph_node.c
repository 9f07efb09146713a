/* Calls about nodes of graphs. All calls that add a node or change one make a CUgraphNodeParams of
 * what they are given; `make` turns it into work. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

typedef CUgraphNodeParams params;

/* ---- parameters and work ---- */

static CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS *k, work *out) {
    const CUlaunchConfig c = {.gridDimX = k->gridDimX,
                              .gridDimY = k->gridDimY,
                              .gridDimZ = k->gridDimZ,
                              .blockDimX = k->blockDimX,
                              .blockDimY = k->blockDimY,
                              .blockDimZ = k->blockDimZ,
                              .sharedMemBytes = k->sharedMemBytes};
    const CUresult result = launch_prepare(k->func ? k->func : k->kern, &c, k->kernelParams,
                                           k->kernelParams ? NULL : k->extra, out);
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult make_copy(const CUDA_MEMCPY3D *c, work *out) {
    *out = (work){.kind = WORK_COPY, .of.copy = *c};
    return c->WidthInBytes && c->Height && c->Depth ? copy_check(c) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_set(const CUDA_MEMSET_NODE_PARAMS *s, work *out) {
    *out = (work){.kind = WORK_SET, .of.set = *s};
    return s->width && s->height ? set_check(s) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_child(CUgraph child, work *out) {
    if (!handle_is(child, HANDLE_GRAPH)) return CUDA_ERROR_INVALID_VALUE;
    work w = {.kind = WORK_GRAPH, .of.graph = child};
    return work_clone(&w, out);
}

static CUresult make_event(work_kind kind, CUevent e, work *out) {
    *out = (work){.kind = kind, .of.event = e};
    return handle_is(e, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *a, work *out) {
    const CUresult result = memory_reserve(a->bytesize, &a->dptr);
    *out = (work){.kind = WORK_ALLOC, .of.memory = {a->dptr, a->bytesize}};
    return result;
}

static CUresult make_free(CUdeviceptr address, work *out) {
    uint64_t offset;
    *out = (work){.kind = WORK_FREE, .of.memory = {address, 0}};
    const int64_t k = emu_buffer_of(address, &offset);
    return k >= 0 && memory_at((size_t)k) && !offset ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make(params *p, work *out) {
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return make_kernel(&p->of.kernel, out);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return make_copy(&p->of.copy.copyParams, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: return make_set(&p->of.set, out);
    case CU_GRAPH_NODE_TYPE_HOST:
        *out = (work){.kind = WORK_HOST, .of.host = p->of.host};
        return p->of.host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH: return make_child(p->of.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY: *out = (work){.kind = WORK_EMPTY}; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return make_event(WORK_WAIT, p->of.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return make_event(WORK_RECORD, p->of.event, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return make_alloc(&p->of.alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return make_free(p->of.dptr, out);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return conditional_make(&p->of.conditional, out);
    default: break;
    }
    if (p->type > 13) return CUDA_ERROR_INVALID_VALUE;
    report_unsupported("nodes of external semaphores and of batches");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUgraphNodeType type_of(const struct node *n) {
    static const CUgraphNodeType types[] = {[WORK_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,
                                            [WORK_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
                                            [WORK_COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
                                            [WORK_SET] = CU_GRAPH_NODE_TYPE_MEMSET,
                                            [WORK_HOST] = CU_GRAPH_NODE_TYPE_HOST,
                                            [WORK_GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
                                            [WORK_CONDITIONAL] = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                            [WORK_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                            [WORK_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                            [WORK_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                            [WORK_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE};
    return types[n->work.kind];
}

/* Pointers to the arguments, which stay valid with the node. */
static void **pointers_of(CUgraphNode n) {
    const kernel_work *k = &n->work.of.kernel;
    const emu_signature *s = &k->function->signature;
    free(n->pointers);
    n->pointers = calloc(s->n_parameters + 1, sizeof *n->pointers);
    for (size_t i = 0; n->pointers && i < s->n_parameters; i++)
        n->pointers[i] = (char *)k->launch.args + s->parameters[i].offset;
    return n->pointers;
}

static CUresult read_kernel(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *out) {
    const kernel_work *k = &n->work.of.kernel;
    const smk_launch *l = &k->launch;
    if (!handle_is(k->function, HANDLE_FUNCTION)) return CUDA_ERROR_INVALID_VALUE;
    void **pointers = pointers_of(n);
    const bool of_library = k->function->of_library;
    *out = (CUDA_KERNEL_NODE_PARAMS){.func = of_library ? NULL : k->function,
                                     .gridDimX = l->grid[0],
                                     .gridDimY = l->grid[1],
                                     .gridDimZ = l->grid[2],
                                     .blockDimX = l->block[0],
                                     .blockDimY = l->block[1],
                                     .blockDimZ = l->block[2],
                                     .sharedMemBytes = (unsigned)l->shared_bytes,
                                     .kernelParams = pointers,
                                     .kern = of_library ? k->function : NULL};
    return pointers ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* What a node of this type was made of. */
static CUresult read(CUgraphNode n, CUgraphNodeType type, params *out) {
    if (!handle_is(n, HANDLE_NODE) || type_of(n) != type) return CUDA_ERROR_INVALID_VALUE;
    const work *w = &n->work;
    *out = (params){.type = type};
    switch (w->kind) {
    case WORK_KERNEL: return read_kernel(n, &out->of.kernel);
    case WORK_COPY: out->of.copy.copyParams = w->of.copy; break;
    case WORK_SET: out->of.set = w->of.set; break;
    case WORK_HOST: out->of.host = w->of.host; break;
    case WORK_GRAPH: out->of.graph = w->of.graph; break;
    case WORK_RECORD:
    case WORK_WAIT: out->of.event = w->of.event; break;
    case WORK_ALLOC: out->of.alloc.bytesize = w->of.memory.bytes; /* fall through */
    case WORK_FREE: break;
    default: break;
    }
    if (w->kind == WORK_ALLOC) {
        out->of.alloc.poolProps = (CUmemPoolProps){.allocType = 1, .location = {1, 0}};
        out->of.alloc.dptr = w->of.memory.address;
    }
    if (w->kind == WORK_FREE) out->of.dptr = w->of.memory.address;
    return CUDA_SUCCESS;
}

/* ---- adding and changing ---- */

static CUresult check_needs(CUgraph g, const CUgraphNode *needs, size_t n) {
    if (!handle_is(g, HANDLE_GRAPH) || (n && !needs)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < n; k++)
        if (!handle_is(needs[k], HANDLE_NODE) || needs[k]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult add(CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n, params *p) {
    work w;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_needs(g, needs, n);
    if (!result) result = make(p, &w);
    return result ? result : graph_add(g, needs, n, &w, out);
}

static CUresult set(CUgraphNode n, params *p) {
    work w;
    if (!handle_is(n, HANDLE_NODE) || !p || type_of(n) != p->type) return CUDA_ERROR_INVALID_VALUE;
    if (capture_uses_work(&n->work)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = make(p, &w);
    if (result) return result;
    work_free(&n->work);
    n->work = w;
    return CUDA_SUCCESS;
}

static CUgraphNode find_in_exec(CUgraphExec e, CUgraphNode original) {
    return handle_is(e, HANDLE_GRAPH_EXEC) ? graph_find_clone(e->graph, original) : NULL;
}

static CUresult set_exec(CUgraphExec e, CUgraphNode original, params *p) {
    return set(find_in_exec(e, original), p);
}

#define NODE_ARGUMENTS CUgraphNode *out, CUgraph g, const CUgraphNode *needs, size_t n

EXPORT CUresult cuGraphAddNode(NODE_ARGUMENTS, params *p) {
    DRIVER_CALL(cuGraphAddNode, NEED_INIT, add(out, g, needs, n, p));
}

/* Edges with data ask for more overlap; all of a node comes after all of another here. */
EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph g, const CUgraphNode *needs,
                                  const CUgraphEdgeData *edges, size_t n, params *p) {
    (void)edges;
    DRIVER_CALL(cuGraphAddNode, NEED_INIT, add(out, g, needs, n, p));
}

EXPORT CUresult cuGraphNodeSetParams(CUgraphNode n, params *p) {
    DRIVER_CALL(cuGraphNodeSetParams, NEED_INIT, set(n, p));
}

EXPORT CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode n, params *p) {
    DRIVER_CALL(cuGraphExecNodeSetParams, NEED_INIT, set_exec(e, n, p));
}

/* Parameters of the given bytes at the member `of` of a CUgraphNodeParams. NULL: there are none. */
static params *wrap(params *p, CUgraphNodeType type, const void *from, size_t bytes, void *to) {
    p->type = type;
    if (!from) return NULL;
    memcpy(to, from, bytes);
    return p;
}

static CUresult unwrap(CUgraphNode n, CUgraphNodeType type, params *p, const void *from,
                       size_t bytes, void *out) {
    const CUresult result = out ? read(n, type, p) : CUDA_ERROR_INVALID_VALUE;
    if (!result) memcpy(out, from, bytes);
    return result;
}

/* The four calls of a type of nodes: add, get, set, and set in an executable graph. `more` are
 * parameters that have no meaning here. */
#define NODE_CALLS(type, member, params_type, bytes, Add, Get, Set, SetExec, more)                 \
    EXPORT CUresult cuGraph##Add(NODE_ARGUMENTS, const params_type *given more) {                  \
        params p = {0};                                                                            \
        DRIVER_CALL(cuGraph##Add, NEED_INIT,                                                       \
                    add(out, g, needs, n, wrap(&p, type, given, bytes, &p.of.member)));            \
    }                                                                                              \
    EXPORT CUresult cuGraph##Get(CUgraphNode node, params_type *out) {                             \
        params p = {0};                                                                            \
        DRIVER_CALL(cuGraph##Get, NEED_INIT, unwrap(node, type, &p, &p.of.member, bytes, out));    \
    }                                                                                              \
    EXPORT CUresult cuGraph##Set(CUgraphNode node, const params_type *given) {                     \
        params p = {0};                                                                            \
        DRIVER_CALL(cuGraph##Set, NEED_INIT,                                                       \
                    set(node, wrap(&p, type, given, bytes, &p.of.member)));                        \
    }                                                                                              \
    EXPORT CUresult cuGraphExec##SetExec(CUgraphExec e, CUgraphNode node,                          \
                                         const params_type *given more) {                          \
        params p = {0};                                                                            \
        DRIVER_CALL(cuGraphExec##SetExec, NEED_INIT,                                               \
                    set_exec(e, node, wrap(&p, type, given, bytes, &p.of.member)));                \
    }

#define NOTHING_MORE
#define CONTEXT_MORE , CUcontext Context __attribute__((unused))

enum { KERNEL_V1_BYTES = offsetof(CUDA_KERNEL_NODE_PARAMS, kern) };

NODE_CALLS(CU_GRAPH_NODE_TYPE_KERNEL, kernel, CUDA_KERNEL_NODE_PARAMS, KERNEL_V1_BYTES,
           AddKernelNode, KernelNodeGetParams, KernelNodeSetParams, KernelNodeSetParams,
           NOTHING_MORE)
NODE_CALLS(CU_GRAPH_NODE_TYPE_KERNEL, kernel, CUDA_KERNEL_NODE_PARAMS,
           sizeof(CUDA_KERNEL_NODE_PARAMS), AddKernelNode_v2, KernelNodeGetParams_v2,
           KernelNodeSetParams_v2, KernelNodeSetParams_v2, NOTHING_MORE)
NODE_CALLS(CU_GRAPH_NODE_TYPE_MEMCPY, copy.copyParams, CUDA_MEMCPY3D, sizeof(CUDA_MEMCPY3D),
           AddMemcpyNode, MemcpyNodeGetParams, MemcpyNodeSetParams, MemcpyNodeSetParams,
           CONTEXT_MORE)
NODE_CALLS(CU_GRAPH_NODE_TYPE_MEMSET, set, CUDA_MEMSET_NODE_PARAMS, sizeof(CUDA_MEMSET_NODE_PARAMS),
           AddMemsetNode, MemsetNodeGetParams, MemsetNodeSetParams, MemsetNodeSetParams,
           CONTEXT_MORE)
NODE_CALLS(CU_GRAPH_NODE_TYPE_HOST, host, CUDA_HOST_NODE_PARAMS, sizeof(CUDA_HOST_NODE_PARAMS),
           AddHostNode, HostNodeGetParams, HostNodeSetParams, HostNodeSetParams, NOTHING_MORE)

/* Of events and child graphs the parameter itself is given. */
#define HANDLE_CALLS(node_type, member, handle_type, Add, Get, SetExec)                            \
    EXPORT CUresult cuGraph##Add(NODE_ARGUMENTS, handle_type given) {                              \
        params p = {.type = node_type, .of.member = given};                                        \
        DRIVER_CALL(cuGraph##Add, NEED_INIT, add(out, g, needs, n, &p));                           \
    }                                                                                              \
    EXPORT CUresult cuGraph##Get(CUgraphNode node, handle_type *out) {                             \
        params p = {0};                                                                            \
        DRIVER_CALL(cuGraph##Get, NEED_INIT,                                                       \
                    unwrap(node, node_type, &p, &p.of.member, sizeof(handle_type), out));          \
    }                                                                                              \
    EXPORT CUresult cuGraphExec##SetExec(CUgraphExec e, CUgraphNode node, handle_type given) {     \
        params p = {.type = node_type, .of.member = given};                                        \
        DRIVER_CALL(cuGraphExec##SetExec, NEED_INIT, set_exec(e, node, &p));                       \
    }

HANDLE_CALLS(CU_GRAPH_NODE_TYPE_GRAPH, graph, CUgraph, AddChildGraphNode, ChildGraphNodeGetGraph,
             ChildGraphNodeSetParams)
HANDLE_CALLS(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, CUevent, AddEventRecordNode,
             EventRecordNodeGetEvent, EventRecordNodeSetEvent)
HANDLE_CALLS(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, CUevent, AddEventWaitNode, EventWaitNodeGetEvent,
             EventWaitNodeSetEvent)

static CUresult set_event(CUgraphNode n, CUgraphNodeType type, CUevent e) {
    params p = {.type = type, .of.event = e};
    return set(n, &p);
}

EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode n, CUevent e) {
    DRIVER_CALL(cuGraphEventRecordNodeSetEvent, NEED_INIT,
                set_event(n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e));
}

EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode n, CUevent e) {
    DRIVER_CALL(cuGraphEventWaitNodeSetEvent, NEED_INIT,
                set_event(n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e));
}

EXPORT CUresult cuGraphAddEmptyNode(NODE_ARGUMENTS) {
    params p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    DRIVER_CALL(cuGraphAddEmptyNode, NEED_INIT, add(out, g, needs, n, &p));
}

static CUresult add_alloc(NODE_ARGUMENTS, CUDA_MEM_ALLOC_NODE_PARAMS *given) {
    params p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    if (!given) return CUDA_ERROR_INVALID_VALUE;
    p.of.alloc = *given;
    const CUresult result = add(out, g, needs, n, &p);
    if (!result) given->dptr = p.of.alloc.dptr;
    return result;
}

EXPORT CUresult cuGraphAddMemAllocNode(NODE_ARGUMENTS, CUDA_MEM_ALLOC_NODE_PARAMS *given) {
    DRIVER_CALL(cuGraphAddMemAllocNode, NEED_CONTEXT, add_alloc(out, g, needs, n, given));
}

EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out) {
    params p = {0};
    DRIVER_CALL(cuGraphMemAllocNodeGetParams, NEED_INIT,
                unwrap(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &p, &p.of.alloc, sizeof *out, out));
}

EXPORT CUresult cuGraphAddMemFreeNode(NODE_ARGUMENTS, CUdeviceptr address) {
    params p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .of.dptr = address};
    DRIVER_CALL(cuGraphAddMemFreeNode, NEED_INIT, add(out, g, needs, n, &p));
}

EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out) {
    params p = {0};
    DRIVER_CALL(cuGraphMemFreeNodeGetParams, NEED_INIT,
                unwrap(node, CU_GRAPH_NODE_TYPE_MEM_FREE, &p, &p.of.dptr, sizeof *out, out));
}

/* ---- attributes of kernel nodes ---- */

static CUresult attribute(CUgraphNode n, unsigned id, void *value, bool is_set) {
    if (!handle_is(n, HANDLE_NODE) || n->work.kind != WORK_KERNEL || !value)
        return CUDA_ERROR_INVALID_VALUE;
    smk_launch *l = &n->work.of.kernel.launch;
    CUlaunchAttribute a = {.id = id};
    if (is_set) {
        memcpy(&a.value, value, sizeof a.value);
        return launch_attribute(&a, l);
    }
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) a.value.cooperative = l->cooperative;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
        memcpy(&a.value.clusterDim, l->cluster, sizeof a.value.clusterDim);
    memcpy(value, &a.value, sizeof a.value);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, unsigned id, void *value) {
    DRIVER_CALL(cuGraphKernelNodeGetAttribute, NEED_INIT, attribute(n, id, value, false));
}

EXPORT CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, unsigned id, const void *value) {
    DRIVER_CALL(cuGraphKernelNodeSetAttribute, NEED_INIT, attribute(n, id, (void *)value, true));
}

static CUresult copy_attributes(CUgraphNode to, CUgraphNode from) {
    if (!handle_is(to, HANDLE_NODE) || to->work.kind != WORK_KERNEL ||
        !handle_is(from, HANDLE_NODE) || from->work.kind != WORK_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    to->work.of.kernel.launch.cooperative = from->work.of.kernel.launch.cooperative;
    memcpy(to->work.of.kernel.launch.cluster, from->work.of.kernel.launch.cluster,
           sizeof to->work.of.kernel.launch.cluster);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
    DRIVER_CALL(cuGraphKernelNodeCopyAttributes, NEED_INIT, copy_attributes(to, from));
}

/* ---- other properties ---- */

static CUresult type_number(CUgraphNode n, unsigned *out) {
    if (!handle_is(n, HANDLE_NODE) || !out) return CUDA_ERROR_INVALID_VALUE;
    *out = type_of(n);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetType(CUgraphNode n, unsigned *out) {
    DRIVER_CALL(cuGraphNodeGetType, NEED_INIT, type_number(n, out));
}

static CUresult enable(CUgraphExec e, CUgraphNode original, unsigned enabled) {
    CUgraphNode n = find_in_exec(e, original);
    if (!n || enabled > 1) return CUDA_ERROR_INVALID_VALUE;
    if (n->work.kind != WORK_KERNEL && n->work.kind != WORK_COPY && n->work.kind != WORK_SET)
        return CUDA_ERROR_INVALID_VALUE;
    n->disabled = !enabled;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode original, unsigned enabled) {
    DRIVER_CALL(cuGraphNodeSetEnabled, NEED_INIT, enable(e, original, enabled));
}

static CUresult is_enabled(CUgraphExec e, CUgraphNode original, unsigned *enabled) {
    const struct node *n = find_in_exec(e, original);
    if (!n || !enabled) return CUDA_ERROR_INVALID_VALUE;
    *enabled = !n->disabled;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode original, unsigned *enabled) {
    DRIVER_CALL(cuGraphNodeGetEnabled, NEED_INIT, is_enabled(e, original, enabled));
}
