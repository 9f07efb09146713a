/* Reuses the memory of large results of device "cuda": a freed array's memory is kept for the next
 * result.
 *
 * A fresh page costs a page fault and is zeroed before it is written. 16 threads write fresh memory
 * at half the speed of used memory, which is slower than PCIe delivers. Kept memory is marked
 * MADV_FREE, so Linux takes it back under memory pressure, and keeping it costs other
 * processes nothing.
 *
 * Memory is pinned when it is reused: then the copy engines write results directly to their place,
 * and no CPU core has to copy. Pinned memory cannot be MADV_FREE, so its size is bounded, and
 * empty_cache() frees it. To unpin memory the driver waits for all work of the GPUs. Freeing an
 * array must not wait, so surplus pinned memory is unpinned at the end of the next call.
 *
 * A fork shares pages copy-on-write. Older Linux kernels then give a new page to whoever writes
 * first, also to the parent, while the copy engines would continue to write to the old page. So
 * memory that was pinned before a fork is pinned again.
 *
 * The memory is given to NumPy by PyDataMem_SetHandler, so such arrays own their data and can be
 * resized.
 */
#include "result_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cuda/gpu.h"

enum {
    MIN_BYTES = 128 << 10, /* smaller results use malloc */
    HUGE_PAGE = 2 << 20,
    MAX_KEPT = 8,   /* blocks */
    MEMORY_PART = 8 /* at most 1/8 of the machine's memory is kept */
};

typedef struct block {
    void *memory;
    size_t bytes; /* of the mapping */
    bool pinned;
    unsigned forks; /* value of the global `forks` when it was pinned */
    struct block *next;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* Blocks of existing arrays: free and realloc find a block, and its size, here. */
static block *used;
static block *kept; /* the most recently freed first */
static size_t pinned_bytes;
static unsigned forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void) {
    pthread_mutex_lock(&mutex);
}

static void after_fork(void) {
    forks++;
    pthread_mutex_unlock(&mutex);
}

static void register_fork_handlers(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- pages ---- */

static size_t max_bytes(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) / MEMORY_PART * (size_t)sysconf(_SC_PAGESIZE);
}

static void unpin(block *b) {
    if (!b->pinned) return;
    gpu_unpin(b->memory);
    b->pinned = false;
    pthread_mutex_lock(&mutex);
    pinned_bytes -= b->bytes;
    pthread_mutex_unlock(&mutex);
}

static void pin(block *b) {
    pthread_once(&once, register_fork_handlers);
    pthread_mutex_lock(&mutex);
    const bool stale = b->forks != forks;
    pthread_mutex_unlock(&mutex);
    if (b->pinned && !stale) return;
    unpin(b);
    pthread_mutex_lock(&mutex);
    b->pinned = pinned_bytes + b->bytes <= max_bytes();
    pinned_bytes += b->pinned ? b->bytes : 0;
    b->forks = forks;
    pthread_mutex_unlock(&mutex);
    if (b->pinned && !gpu_pin(b->memory, b->bytes)) {
        b->pinned = false;
        pthread_mutex_lock(&mutex);
        pinned_bytes -= b->bytes;
        pthread_mutex_unlock(&mutex);
    }
}

static size_t round_up(size_t bytes) {
    const size_t unit = bytes < HUGE_PAGE / 2 ? (size_t)sysconf(_SC_PAGESIZE) : HUGE_PAGE;
    return (bytes + unit - 1) / unit * unit;
}

/* Aligned to huge pages, so that Linux can use them. */
static void *map(size_t bytes) {
    char *memory =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    const size_t before = (size_t)(-(uintptr_t)memory % HUGE_PAGE);
    if (before) munmap(memory, before);
    munmap(memory + before + bytes, HUGE_PAGE - before);
    madvise(memory + before, bytes, MADV_HUGEPAGE);
    return memory + before;
}

/* Removes a block from the list: the one at `memory`, or if that is NULL one of exactly `bytes`.
 * NULL: not found. */
static block *take(block **list, const void *memory, size_t bytes) {
    while (*list && (memory ? (*list)->memory != memory : (*list)->bytes != bytes))
        list = &(*list)->next;
    block *found = *list;
    if (found) *list = found->next;
    return found;
}

static void destroy(block *list) {
    while (list) {
        block *gone = list;
        list = gone->next;
        unpin(gone);
        munmap(gone->memory, gone->bytes);
        free(gone);
    }
}

/* Whether that much memory is available. Linux overcommits: a larger mapping would succeed, and the
 * OOM killer would end the process when it is written. */
static bool is_available(size_t bytes) {
    enum { CHECK_FROM_BYTES = 1 << 28 };
    unsigned long long kilobytes = 0;
    char line[128];
    FILE *file = bytes < CHECK_FROM_BYTES ? NULL : fopen("/proc/meminfo", "r");
    bool known = false;
    while (file && !known && fgets(line, sizeof line, file))
        known = sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1;
    if (file) fclose(file);
    return !known || bytes / 1024 < kilobytes;
}

static block *make(size_t bytes) {
    if (!is_available(bytes)) return NULL;
    block *made = calloc(1, sizeof *made);
    if (made && (made->memory = map(bytes)) == NULL) {
        free(made);
        made = NULL;
    }
    if (made) made->bytes = bytes;
    return made;
}

static void *allocate(size_t bytes) {
    const size_t wanted = round_up(bytes);
    pthread_mutex_lock(&mutex);
    block *own = take(&kept, NULL, wanted);
    pthread_mutex_unlock(&mutex);
    if (own)
        pin(own);
    else if ((own = make(wanted)) == NULL)
        return NULL;
    pthread_mutex_lock(&mutex);
    own->next = used;
    used = own;
    pthread_mutex_unlock(&mutex);
    return own->memory;
}

/* Removes the oldest kept blocks beyond the bounds and returns them as a list. Pinned blocks only
 * if pinned_too. */
static block *surplus(bool pinned_too) {
    const size_t limit = max_bytes();
    size_t total = 0;
    int n = 0;
    block *rest = NULL;
    pthread_mutex_lock(&mutex);
    for (block **link = &kept; *link;) {
        block *b = *link;
        total += b->bytes;
        if ((++n <= MAX_KEPT && total <= limit) || (b->pinned && !pinned_too)) {
            link = &b->next;
            continue;
        }
        *link = b->next;
        b->next = rest;
        rest = b;
    }
    pthread_mutex_unlock(&mutex);
    return rest;
}

static void keep(block *own) {
    if (!own->pinned && madvise(own->memory, own->bytes, MADV_FREE)) {
        destroy(own);
        return;
    }
    pthread_mutex_lock(&mutex);
    own->next = kept;
    kept = own;
    pthread_mutex_unlock(&mutex);
    destroy(surplus(false));
}

void result_memory_tidy(void) {
    destroy(surplus(true));
}

size_t result_memory_trim(void) {
    size_t bytes = 0;
    pthread_mutex_lock(&mutex);
    block *gone = kept;
    kept = NULL;
    pthread_mutex_unlock(&mutex);
    for (const block *b = gone; b; b = b->next)
        bytes += b->bytes;
    destroy(gone);
    return bytes;
}

/* ---- NumPy's memory handler ---- */

static void *numpy_malloc(void *Py_UNUSED(context), size_t bytes) {
    return bytes < MIN_BYTES ? malloc(bytes) : allocate(bytes);
}

static void *numpy_calloc(void *context, size_t n, size_t size) {
    void *memory = numpy_malloc(context, n * size); /* NumPy computes this product too */
    return memory ? memset(memory, 0, n * size) : NULL;
}

static void numpy_free(void *Py_UNUSED(context), void *memory, size_t Py_UNUSED(bytes)) {
    pthread_mutex_lock(&mutex);
    block *own = memory ? take(&used, memory, 0) : NULL;
    pthread_mutex_unlock(&mutex);
    if (own) {
        own->next = NULL;
        keep(own);
    } else {
        free(memory);
    }
}

static void *numpy_realloc(void *context, void *memory, size_t bytes) {
    size_t before = 0;
    pthread_mutex_lock(&mutex);
    for (const block *b = used; b && before == 0; b = b->next)
        before = b->memory == memory ? b->bytes : 0;
    pthread_mutex_unlock(&mutex);
    if (before == 0) return realloc(memory, bytes);
    void *moved = numpy_malloc(context, bytes);
    if (moved) {
        memcpy(moved, memory, bytes < before ? bytes : before);
        numpy_free(context, memory, before);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "smemkern_results",
    .version = 1,
    .allocator = {NULL, numpy_malloc, numpy_calloc, numpy_realloc, numpy_free}};

PyArrayObject *result_memory_array(PyArray_Descr *descr, int ndim, const npy_intp *dims) {
    PyObject *own = PyCapsule_New(&handler, "mem_handler", NULL);
    PyObject *before = own ? PyDataMem_SetHandler(own) : NULL;
    Py_XDECREF(own);
    if (before == NULL) {
        Py_DECREF(descr);
        return NULL;
    }
    PyArrayObject *made = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, ndim, dims,
                                                                NULL, NULL, 0, NULL);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *ours = PyDataMem_SetHandler(before);
    if (ours == NULL)
        Py_CLEAR(made);
    else
        PyErr_Restore(type, value, traceback);
    Py_XDECREF(ours);
    Py_DECREF(before);
    return made;
}
