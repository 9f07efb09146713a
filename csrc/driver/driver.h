/* libcuda.so.1 on the emulator: the driver API for programs that `smemkern run` starts.
 *
 *     calls.def          the table of calls: names, versions, functions
 *     missing.def        the names of all other calls, which return CUDA_ERROR_NOT_SUPPORTED
 *     api_*.c            the exported functions: checks, then one call of what follows
 *     proc_address.c     cuGetProcAddress, and the functions of missing.def
 *     export_tables.c    cuGetExportTable: what the runtime (cudart) takes beside the API
 *     runtime_check.c    the runtime's question whether this driver is complete
 *     state.c            the lock, the device, contexts, handles
 *     memory.c           allocations and their addresses
 *     host_region.c      a region for many pinned and managed allocations
 *     copy.c             copies in 1 to 3 dimensions, memset
 *     fatbin.c, zstd.c, lz4.c    the PTX of a fat binary
 *     module.c           modules, libraries, functions
 *     link.c             the linker: PTX in, PTX out
 *     work.h, work.c     what is queued on a stream: it runs, or is captured
 *     queue.c            --shuffle: work that waits until the program waits for it
 *     array.c, mipmap.c, texture.c   arrays, textures and surfaces
 *     tensor_map.c       tensor maps
 *     virtual.c          ranges of addresses, and memory that is mapped there
 *     ipc.c              memory and events of several processes
 *     managed.c          advice about managed memory
 *     graph.c, capture.c graphs, and streams that are captured
 *     device_graph.c     graphs that kernels launch
 *     launch.c           launches on the emulator
 *     background.c       a kernel that goes on after its launch call
 *     watch.c            progress of a kernel on a terminal, and Ctrl-C
 *     report.c           the records that Python reads
 *
 * Calls are executed when they are made, one after the other, or with --shuffle at waits. That is
 * one of the orders that streams and events allow. A kernel that can wait for the host may go on
 * after its call. A lock makes calls of several threads take
 * turns.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <stdbool.h>

#include "cuda_types.h"
#include "../core/json.h"
#include "../emu/emu.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAX_FRAMES = 24 };

/* The return addresses of a call, innermost first. */
typedef struct frames {
    void *at[MAX_FRAMES];
    int n;
} frames;

/* ---- state.c ---- */

typedef enum handle_kind {
    HANDLE_CONTEXT,
    HANDLE_MODULE,
    HANDLE_FUNCTION,
    HANDLE_STREAM,
    HANDLE_EVENT,
    HANDLE_POOL,
    HANDLE_LINKER,
    HANDLE_ARRAY,
    HANDLE_MIPMAP,
    HANDLE_TEXTURE,
    HANDLE_GRAPH,
    HANDLE_NODE,
    HANDLE_GRAPH_EXEC,
    HANDLE_USER_OBJECT,
    HANDLE_PHYSICAL,
    HANDLE_CONDITION
} handle_kind;

/* The first member of each object that a program has a handle of. */
typedef struct handle {
    struct handle *next; /* in its bucket */
    handle_kind kind;
    struct context *context;
} handle;

typedef struct storage_entry { /* context-local storage of the runtime */
    struct storage_entry *next;
    void *key, *value;
    void (*destroy)(struct context *context, void *key, void *value);
} storage_entry;

struct context {
    handle head;
    unsigned flags;
    bool primary;
    unsigned retained;      /* of the primary context */
    CUresult error;         /* of a kernel: all later calls return it */
    size_t limits[16];      /* CUlimit */
    storage_entry *storage; /* of the runtime */
    uint64_t id;
};

/* A place in a graph that is being captured: after these nodes. */
typedef struct graph_place {
    uint64_t capture; /* its number; 0: none */
    struct node **after;
    size_t n;
} graph_place;

struct stream {
    handle head;
    unsigned flags;
    int priority;
    uint64_t id;
    graph_place captured; /* what its next node comes after */
};

enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, EVENT_ALL_FLAGS = 7 };

struct event {
    handle head;
    unsigned flags;
    bool recorded;
    bool opened; /* it is another process's */
    double seconds;
    uint64_t task; /* of queue.c: its last record; 0: none */
    graph_place captured;
};

/* What a call needs before it runs. */
typedef enum need { NEED_NOTHING, NEED_INIT, NEED_CONTEXT } need;

/* Takes the lock, unless it fails; then the call returns the result and nothing else. */
CUresult driver_enter(need what, const char *call);
CUresult driver_leave(CUresult result);

/* The lock's place, without a call: for the thread of background.c. */
void driver_lock(void);
void driver_unlock(void);
/* With the lock: no call runs until it is false again. */
void driver_set_busy(bool busy);
/* With the lock: whether no longer busy after so many seconds at most. */
bool driver_wait_idle(int seconds);
bool driver_is_outermost(void);
/* Whether this thread is in a function of the program that the driver calls. Returns what was. */
bool driver_set_host_function(bool inside);
/* Waits for a kernel that goes on. */
void driver_finish(void);

/* The body of an exported function: `expression` if the call can run. */
#define DRIVER_CALL(name, what, expression)                                                        \
    do {                                                                                           \
        CUresult result_ = driver_enter(what, #name);                                              \
        if (result_) return result_;                                                               \
        result_ = (expression);                                                                    \
        return driver_leave(result_);                                                              \
    } while (0)

/* The same for a call that names an object, such as a stream: if the thread has no current context,
 * the call runs in the one of that object, as with an H200's driver. */
#define DRIVER_CALL_IN(context, name, expression)                                                  \
    do {                                                                                           \
        const bool lent_ = context_lend(context);                                                  \
        CUresult result_ = driver_enter(NEED_CONTEXT, #name);                                      \
        if (!result_) result_ = driver_leave(expression);                                          \
        if (lent_) context_take_back();                                                            \
        return result_;                                                                            \
    } while (0)

/* Zeros of `bytes`, with a live handle; NULL: out of memory. */
void *handle_new(handle_kind kind, size_t bytes);
bool handle_is(const void *object, handle_kind kind);
void handle_free(void *object, handle_kind kind);

CUcontext context_current(void);
CUresult context_set_current(CUcontext context);
/* The context that a handle was made in, also without the lock. NULL: none, or no handle. */
CUcontext context_of(const void *object);
/* Makes a context the current one if there is none. False: there is one, or `context` is NULL. */
bool context_lend(CUcontext context);
void context_take_back(void);
CUcontext context_primary(void);
bool stream_is(CUstream stream);
const char *driver_call(void); /* the name of the running call */
/* Calls are made in another's name from now on. Returns the one before. */
const char *driver_set_call(const char *call);
/* A call that is not supported, which is reported once. */
CUresult driver_missing(const char *name, bool *reported);
int device_attribute(int attribute);
const char *device_name(void);
size_t device_memory(void);
CUuuid device_uuid(void);
CUresult cuDriverGetVersion(int *version);
double driver_seconds(void);

/* ---- memory.c ---- */

typedef enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_PINNED,
    MEMORY_MANAGED,
    MEMORY_REGISTERED, /* the program's own host memory */
    MEMORY_VARIABLES,  /* of a module */
    MEMORY_ARRAY,      /* the texels of a CUarray */
    MEMORY_RANGE,      /* of virtual addresses */
    MEMORY_OPENED      /* another process's */
} memory_kind;

struct pool {
    handle head;
    uint64_t threshold;
    memory_kind kind;
};

/* An allocation. Its number k is that of a buffer of every launch, so kernels find it at
 * emu_buffer_address(k) from whatever structure they read the address. */
typedef struct allocation {
    bool live, used; /* used: it is or was an allocation */
    bool reserved;   /* for a graph: its number stays its own */
    bool pooled;     /* cuMemFreeAsync frees it, also if it is pinned */
    memory_kind kind;
    CUdeviceptr address; /* in the shared region; 0: that of the number */
    unsigned char *host;
    size_t bytes;
    size_t mapped;          /* bytes of the mapping; 0: not ours to unmap */
    unsigned char *written; /* by 4-byte word, as in smk_job; NULL: all is written */
    unsigned flags;
    struct shared_memory *shared; /* ipc.c; NULL: other processes do not see it */
    struct page_advice *advice;   /* managed.c: of each page; NULL: none */
    struct context *context;
    char call[32];
    frames allocated, freed;
} allocation;

CUresult memory_new(memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *out);
/* A window on memory of others. */
CUresult memory_window(memory_kind kind, void *host, size_t bytes, unsigned flags,
                       CUdeviceptr *out);
CUresult memory_free(CUdeviceptr address, bool host);
/* The address of device memory that graphs allocate and free when they run. */
CUresult memory_reserve(size_t bytes, CUdeviceptr *out);
CUresult memory_revive(CUdeviceptr address);
void memory_drop_window(CUdeviceptr address);
/* The live allocation that an address is in; NULL: none. */
allocation *memory_find(CUdeviceptr address, size_t *offset);
/* The context of its allocation, also without the lock. NULL: none. */
CUcontext memory_context(CUdeviceptr address);
allocation *memory_at(size_t k);
size_t memory_count(void); /* one more than the largest k */
CUdeviceptr memory_address(const allocation *a);
allocation *memory_registered(const void *host);
/* Whether some of these bytes are registered. */
bool memory_is_registered(const void *host, size_t bytes);
/* The `bytes` at a device address, or NULL, having recorded what is wrong. */
unsigned char *memory_reach(CUdeviceptr address, size_t bytes, bool write, const char *role);
/* Whether an address is the emulator's, and not one of the host's own. */
bool memory_is_device(CUdeviceptr address);
void memory_set_written(CUdeviceptr address, size_t bytes);
bool memory_is_written(CUdeviceptr address, size_t bytes);
/* Of the first word that is not written, the number in allocation.written; 1: all are. */
unsigned char memory_word(CUdeviceptr address, size_t bytes);
/* What has been written of `bytes` that are copied; */
void memory_copy_written(CUdeviceptr to, CUdeviceptr from, size_t bytes);
/* Copies of what nobody wrote: gives allocation k its `written`, all 1. NULL: it can have none. */
unsigned char *memory_begin_written(size_t k);
/* The allocation of a hazard's buffer, and the offset in it; NULL: none. */
const allocation *memory_of_hazard(const smk_hazard *h, int64_t *number, int64_t *offset);
void memory_release_all(const struct context *context);
size_t memory_in_use(void);
/* Whether there is memory that kernels share with the host's own code, or with other processes. */
bool memory_host_sees(void);
/* It holds a module's variables, which count as the module's and not as an allocation's. */
void memory_set_variables(allocation *a);
/* All of it counts as written from now on. */
void memory_set_complete(allocation *a);

/* ---- ipc.c ---- */

/* Whether other processes can open it. */
bool ipc_is_possible(const allocation *a);
/* It ends here; what other processes map stays. */
void ipc_forget(allocation *a);

/* ---- managed.c ---- */

/* The memory ends. */
void managed_forget(allocation *a);

/* ---- origin.c ---- */

/* The kernel that runs, whose lines get numbers. */
void origin_begin(const char *kernel);
unsigned char origin_number(const char *file, uint32_t line); /* smk_job.copied_by */
/* Who copied it, as the end of a sentence; empty: nobody. */
void origin_describe(unsigned char number, char *out, size_t size);

/* ---- host_region.c ---- */

/* The region begins at `base`, of which `mapped` bytes are mapped. */
void host_region_start(unsigned char *base, size_t mapped);
/* Place for allocation `number`; NULL: there is none. */
unsigned char *host_region_take(size_t bytes, size_t number);
void host_region_give(CUdeviceptr address);
bool host_region_has(CUdeviceptr address);
/* The allocation that an address of the region is in or shortly after; -1: none. */
int64_t host_region_number(CUdeviceptr address, size_t *offset);
/* What launches see of it. False: it is not used. */
bool host_region_buffer(unsigned char **host, size_t *bytes);

/* ---- link.c ---- */

/* Several texts of PTX as one: `bytes` without the NUL; `files` is the highest number of a file. */
typedef struct joined_ptx {
    char *text;
    size_t bytes;
    uint32_t files;
} joined_ptx;

/* Adds a text, without its head if it is not the first. On failure t is as it was. */
CUresult ptx_join(joined_ptx *t, const char *ptx);

/* ---- fatbin.c ---- */

/* The PTX in a module's image: text, a fat binary, or the wrapper that nvcc puts around one. *ptx
 * is from malloc. The message says what is missing. */
bool image_is_wrapped(const void *image);
bool image_is_text(const void *image);
CUresult image_ptx(const void *image, char **ptx, size_t *bytes, char *message, size_t size);

/* ---- module.c ---- */

struct function {
    handle head;
    struct module *module;
    emu_signature signature;
    uint32_t max_dynamic_shared;
    int carveout, cluster[3], cache;
    bool non_portable_cluster; /* clusters of more than 8 blocks are allowed */
    uint64_t launches;         /* so far */
    bool of_library;           /* it was asked for as a kernel of a library */
    int examined;              /* by --kernel; -1: not known yet */
};

struct module {
    handle head;
    emu_module *loaded;
    int target;                     /* of its PTX: 80 */
    char *missing;                  /* why it has no kernels; NULL: it has those of its PTX */
    bool of_object;                 /* nvcc put it into an object, which the runtime loads */
    bool of_text;                   /* the image was PTX itself */
    CUdeviceptr globals, constants; /* windows on its variables; 0: none */
    struct function **functions;
    size_t n_functions;
    uint64_t id;
};

CUresult module_new(const void *image, CUmodule *out);
CUresult library_new(const void *image, CUlibrary *out);
CUresult module_read(const char *file, CUmodule *out);
/* The result of either for a module. As on a GPU its text must not be for a newer one; fat binaries
 * may have newer PTX beside machine code. A library is loaded with any. */
CUresult module_for_device(CUresult result, CUmodule *out);
/* A file's bytes, with a NUL behind them. From malloc; NULL: it cannot be read. */
char *module_file(const char *name, size_t *bytes);
CUresult module_drop(CUmodule module);
CUresult module_function(CUmodule module, const char *name, CUfunction *out);
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *address, size_t *bytes);
CUresult function_attribute(CUfunction f, int attribute, int *out);
CUresult function_set_attribute(CUfunction f, int attribute, int value);
/* Variables of the module that ran last: kernels name them by addresses that all modules share. */
CUmodule module_last(void);
void module_ran(CUmodule module);

/* ---- launch.c ---- */

CUresult launch(CUfunction f, const CUlaunchConfig *config, void **params, void **extra);
CUresult launch_occupancy(CUfunction f, int threads, size_t dynamic_shared, int *blocks);
void launch_flush_printed(void);

/* ---- queue.c ---- */

/* Before a call that waits for all work. */
void queue_before(const char *call);
void queue_end(void);

/* ---- watch.c: one launch at a time ---- */

/* Makes the job end at Ctrl-C, and shows its progress. */
void watch_begin(smk_job *job, const char *kernel);
void watch_end(void);
/* Whether the host's own code goes on beside the launch. */
void watch_set_apart(bool apart);
/* The signal that ended a launch, which the caller hands to the program; 0: none. */
int watch_take_signal(void);
/* Does that. Call it without the lock. */
void watch_deliver(void);

/* ---- report.c ---- */

void report_start(void);
void report_end(void);
frames report_frames(void);
/* Records name these callers from now on; NULL: those that are on the stack. */
void report_on_behalf(const frames *callers);
/* The next number of a generator. */
uint64_t report_draw(uint64_t *state);
void report_frames_json(json *j, const frames *f);
/* What a program did wrong; `a` may be NULL. */
void report_misuse(const char *kind, const allocation *a, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void report_allocation(json *j, const allocation *a);
/* Memory that is live when its context ends. */
void report_leak(const allocation *a);
void report_unsupported(const char *call);
void report_write(json *j); /* one record, as a line; frees it */
void report_trace(json *j, const smk_trace *trace);
bool report_wanted(void);

enum { CHECK_NOTHING, CHECK_COUNTS, CHECK_HAZARDS };
int report_check(void);
/* Whether a kernel of this name is to be examined: mangled, or as C++ writes it. */
bool report_examines(const char *kernel);
/* Draws the blocks of a grid that are to be traced, ascending; the caller frees them. NULL: all. */
uint64_t *report_sample(uint64_t blocks, size_t *n);
uint64_t report_launch_limit(void);

#endif
