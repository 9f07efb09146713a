#include "device_runtime.h"

#include <stdlib.h>
#include <string.h>

#include "../base/stable_sort.h"
#include "block.h"
#include "heap.h"

/* A cudaError_t; FAULT: warp_fault has been called. */
enum { FAULT = -1, SUCCESS = 0, INVALID_VALUE = 1, MEMORY_ALLOCATION = 2 };
enum { TAIL_LAUNCH = 3 }; /* cudaStreamTailLaunch */
enum { MAX_CHILDREN = 1 << 20 };

/* What __cudaCDP2GetParameterBufferV2 was given. It is in the heap, before the parameters that the
 * kernel then stores. As a kernel can overwrite it, everything is checked when it is used. */
typedef struct pending {
    uint64_t mark, function;
    uint32_t grid[3], block[3], shared, unused;
    uint64_t reserved[2];
} pending;
static const uint64_t PENDING_MARK = 0x6c61756e63686573;

/* ---- children ---- */

static const insn *refuse(warp *w, const insn *i) {
    const ptx_operand *o = i->ptx->operands; /* the results, or the function */
    return warp_fault(w, i, SMK_UNSUPPORTED, w->active,
                      "call of %s, a function of CUDA's device runtime, which %s",
                      o[o->kind == PTX_VECTOR].function->name,
                      w->block->launch->children ? "is not supported"
                                                 : "only `smemkern run` supports");
}

/* Takes `args`. */
static int add_child(warp *w, const insn *i, int lane, smk_child child, void *args) {
    launch *l = w->block->launch;
    smk_children *all = l->children;
    bool added = false;
    child.launch.args = args;
    child.block = w->block->linear;
    pthread_mutex_lock(&l->lock);
    if (all->n == all->room && all->n < MAX_CHILDREN) {
        smk_child *larger = realloc(all->items, (2 * all->room + 16) * sizeof *larger);
        if (larger) {
            all->items = larger;
            all->room = 2 * all->room + 16;
        }
    }
    if (all->n < all->room) {
        all->items[all->n++] = child;
        added = true;
    }
    pthread_mutex_unlock(&l->lock);
    if (added) return SUCCESS;
    free(args);
    warp_fault(w, i, SMK_MEMORY, 1u << lane, "more than %d launches from one kernel", MAX_CHILDREN);
    return FAULT;
}

static int by_block(const void *a, const void *b) {
    const uint64_t x = ((const smk_child *)a)->block, y = ((const smk_child *)b)->block;
    return (x > y) - (x < y);
}

void device_runtime_end_launch(launch *l, size_t first) {
    smk_children *all = l->children;
    if (all && all->n > first)
        stable_sort(all->items + first, all->n - first, sizeof *all->items, by_block);
}

/* ---- launches ---- */

static bool is_size(const uint32_t size[3], uint64_t max) {
    return size[0] && size[1] && size[2] && (uint64_t)size[0] * size[1] <= max &&
           (uint64_t)size[0] * size[1] * size[2] <= max;
}

/* __cudaCDP2GetParameterBufferV2(kernel, grid, block, shared bytes): 0 if it cannot be launched. */
static const insn *exec_parameters(warp *w, const insn *i) {
    const emu_module *m = w->block->launch->module;
    if (!w->block->launch->children) return refuse(w, i);
    if (!provided_reserve_result(w, i)) return NULL;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        pending p = {.mark = PENDING_MARK, .function = provided_argument(w, i, lane, 0)};
        const ptx_function *f = function_at(m->ptx, p.function);
        uint64_t offset, address = 0;
        provided_read(w, i, lane, 1, p.grid, sizeof p.grid);
        provided_read(w, i, lane, 2, p.block, sizeof p.block);
        p.shared = (uint32_t)provided_argument(w, i, lane, 3);
        if (f && f->is_entry && !f->is_declaration && is_size(p.grid, UINT64_MAX >> 1) &&
            is_size(p.block, MAX_THREADS) &&
            heap_allocate(m->heap, sizeof p + f->parameters_bytes, &offset)) {
            memcpy(heap_reach(m->heap, offset, 16), &p, sizeof p);
            address = REGION_BASE(REGION_HEAP) + offset + sizeof p;
        }
        provided_return(w, lane, &address, sizeof address);
    }
    return i + 1;
}

/* __cudaCDP2LaunchDeviceV2(parameters, stream) */
static int launch_child(warp *w, const insn *i, int lane) {
    const emu_module *m = w->block->launch->module;
    const uint64_t address = provided_argument(w, i, lane, 0),
                   stream = provided_argument(w, i, lane, 1);
    const uint64_t offset = REGION_OFFSET(address) - sizeof(pending);
    const unsigned char *at =
        REGION_OF(address) == REGION_HEAP ? heap_reach(m->heap, offset, 16) : NULL;
    pending p = {0};
    if (at && heap_holds(m->heap, offset, sizeof p)) memcpy(&p, at, sizeof p);
    const ptx_function *f = p.mark == PENDING_MARK ? function_at(m->ptx, p.function) : NULL;
    if (!f || !f->is_entry || f->is_declaration ||
        !heap_holds(m->heap, offset, sizeof p + f->parameters_bytes))
        return INVALID_VALUE;
    void *args = malloc((size_t)f->parameters_bytes + 1);
    if (!args) {
        warp_fault(w, i, SMK_MEMORY, 1u << lane, "out of memory: the launch of %s", f->name);
        return FAULT;
    }
    memcpy(args, at + sizeof p, (size_t)f->parameters_bytes);
    heap_release(m->heap, offset);
    smk_child child = {.kind = SMK_CHILD_LAUNCH,
                       .tail = stream == TAIL_LAUNCH,
                       .launch = {.entry = f->name, .shared_bytes = p.shared},
                       .bytes = f->parameters_bytes};
    memcpy(child.launch.grid, p.grid, sizeof p.grid);
    memcpy(child.launch.block, p.block, sizeof p.block);
    return add_child(w, i, lane, child, args);
}

/* ---- copies ---- */

/* Arguments: to, from or the value, bytes, ..., and number `stream`: the stream. */
static int add_transfer(warp *w, const insn *i, int lane, smk_child_kind kind, uint32_t stream) {
    const smk_child child = {.kind = kind,
                             .tail = provided_argument(w, i, lane, stream) == TAIL_LAUNCH,
                             .to = provided_argument(w, i, lane, 0),
                             .from = provided_argument(w, i, lane, 1),
                             .bytes = provided_argument(w, i, lane, 2)};
    return add_child(w, i, lane, child, NULL);
}

/* __cudaCDP2MemcpyAsync(to, from, bytes, kind, stream) */
static int copy_async(warp *w, const insn *i, int lane) {
    return add_transfer(w, i, lane, SMK_CHILD_COPY, 4);
}

/* __cudaCDP2MemsetAsync(to, value, bytes, stream) */
static int set_async(warp *w, const insn *i, int lane) {
    return add_transfer(w, i, lane, SMK_CHILD_SET, 3);
}

/* cudaGraphSetConditional(handle, value) */
static const insn *exec_set_condition(warp *w, const insn *i) {
    if (!w->block->launch->children) return refuse(w, i);
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const smk_child child = {.kind = SMK_CHILD_CONDITION,
                                 .to = provided_argument(w, i, lane, 0),
                                 .from = provided_argument(w, i, lane, 1)};
        if (add_child(w, i, lane, child, NULL) == FAULT) return NULL;
    }
    return i + 1;
}

/* cudaGraphLaunch(graph, stream) */
static int launch_graph(warp *w, const insn *i, int lane) {
    launch *l = w->block->launch;
    smk_child child = {.kind = SMK_CHILD_GRAPH,
                       .to = provided_argument(w, i, lane, 0),
                       .from = provided_argument(w, i, lane, 1)};
    pthread_mutex_lock(&l->lock);
    child.bytes = l->ask_graph(child.to, child.from);
    pthread_mutex_unlock(&l->lock);
    return add_child(w, i, lane, child, NULL) == FAULT ? FAULT
           : child.bytes                               ? INVALID_VALUE
                                                       : SUCCESS;
}

/* ---- handles, memory, questions ---- */

/* Stores to where the lane's argument 0 points. */
static int store(warp *w, const insn *i, int lane, const void *value, uint32_t bytes) {
    unsigned char *to =
        lane_reach(w, i, PTX_GENERIC, lane, provided_argument(w, i, lane, 0), bytes, true);
    if (!to) return FAULT;
    memcpy(to, value, bytes);
    return SUCCESS;
}

/* Streams and events need no state, as children run one after the other. */
static int create_handle(warp *w, const insn *i, int lane) {
    static _Atomic uint64_t last = 1u << 16;
    const uint64_t handle = ++last;
    return store(w, i, lane, &handle, sizeof handle);
}

static int succeed(warp *w, const insn *i, int lane) {
    (void)w, (void)i, (void)lane;
    return SUCCESS;
}

static int get_device(warp *w, const insn *i, int lane) {
    return store(w, i, lane, &(int32_t){0}, sizeof(int32_t));
}

static int count_devices(warp *w, const insn *i, int lane) {
    return store(w, i, lane, &(int32_t){1}, sizeof(int32_t));
}

/* __cudaCDP2Malloc(pointer, bytes) */
static int allocate(warp *w, const insn *i, int lane) {
    uint64_t offset;
    heap *h = w->block->launch->module->heap;
    if (!heap_allocate(h, provided_argument(w, i, lane, 1), &offset)) return MEMORY_ALLOCATION;
    offset += REGION_BASE(REGION_HEAP);
    return store(w, i, lane, &offset, sizeof offset);
}

static int release(warp *w, const insn *i, int lane) {
    const uint64_t address = provided_argument(w, i, lane, 0);
    heap *h = w->block->launch->module->heap;
    if (!address) return SUCCESS;
    return REGION_OF(address) == REGION_HEAP && !heap_release(h, REGION_OFFSET(address))
               ? SUCCESS
               : INVALID_VALUE;
}

/* ---- calls ---- */

typedef int lane_function(warp *w, const insn *i, int lane);

/* A function that returns a cudaError_t. */
static const insn *each_lane(warp *w, const insn *i, lane_function *f) {
    if (!w->block->launch->children) return refuse(w, i);
    if (!provided_reserve_result(w, i)) return NULL;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const int32_t error = f(w, i, lane);
        if (error == FAULT) return NULL;
        provided_return(w, lane, &error, sizeof error);
    }
    return i + 1;
}

/* Behind __cudaCDP2: name, parameters, what a lane does. */
#define FUNCTIONS(X)                                                                               \
    X(LaunchDeviceV2, "88", launch_child)                                                          \
    X(MemcpyAsync, "88848", copy_async)                                                            \
    X(MemsetAsync, "8488", set_async)                                                              \
    X(StreamCreateWithFlags, "84", create_handle)                                                  \
    X(StreamDestroy, "8", succeed)                                                                 \
    X(StreamWaitEvent, "884", succeed)                                                             \
    X(EventCreateWithFlags, "84", create_handle)                                                   \
    X(EventRecord, "88", succeed)                                                                  \
    X(EventRecordWithFlags, "884", succeed)                                                        \
    X(EventDestroy, "8", succeed)                                                                  \
    X(GetLastError, "", succeed)                                                                   \
    X(PeekAtLastError, "", succeed)                                                                \
    X(GetDevice, "8", get_device)                                                                  \
    X(GetDeviceCount, "8", count_devices)                                                          \
    X(Malloc, "88", allocate)                                                                      \
    X(Free, "8", release)

#define HANDLER(name, parameters, each)                                                            \
    static const insn *exec_##name(warp *w, const insn *i) {                                       \
        return each_lane(w, i, each);                                                              \
    }
FUNCTIONS(HANDLER)

#define ROW(name, parameters, each) {#name, parameters, "4", exec_##name},
static const provided_function functions[] = {
    FUNCTIONS(ROW){"GetParameterBufferV2", "8dd4", "8", exec_parameters}, {0}};
static const provided_function conditional = {"cudaGraphSetConditional", "84", "",
                                              exec_set_condition};
static const insn *exec_graph(warp *w, const insn *i) {
    return each_lane(w, i, launch_graph);
}
static const provided_function graph = {"cudaGraphLaunch", "88", "4", exec_graph};
static const provided_function others = {NULL, NULL, NULL, refuse};

static const char prefix[] = "__cudaCDP2", suffix[] = "_ptsz";

/* Whether `name` is `wanted`, or its form for per-thread default streams. */
static bool is_function(const char *name, const char *wanted) {
    const size_t n = strlen(wanted);
    return !strncmp(name, wanted, n) && (!name[n] || !strcmp(name + n, suffix));
}

const provided_function *device_runtime_find(const char *name) {
    if (!strcmp(name, conditional.name)) return &conditional;
    if (!strcmp(name, graph.name)) return &graph;
    if (!strncmp(name, "cuda", 4)) return &others;
    if (strncmp(name, prefix, sizeof prefix - 1)) return NULL;
    for (const provided_function *p = functions; p->name; p++)
        if (is_function(name + sizeof prefix - 1, p->name)) return p;
    return &others;
}

bool device_runtime_needs_heap(const ptx_module *module) {
    return ptx_find_function(module, "__cudaCDP2GetParameterBufferV2") ||
           ptx_find_function(module, "__cudaCDP2Malloc") ||
           ptx_find_function(module, "__cudaCDP2Free");
}
