/* Memory of large results of device "cuda", kept when an array dies so that the next result has it.
 *
 * A fresh page costs a fault and is cleared before it is written: 16 threads write fresh memory at half the
 * speed of used memory, and slower than the bus delivers. What is kept is offered to the system (MADV_FREE),
 * which takes it without a word when somebody else needs it: so keeping it costs nobody anything.
 *
 * Memory that is used again is worth pinning: from then on the copy engines write results where they belong, and no
 * core has to. Pinned memory cannot be offered to the system, so there is a bound, and empty_cache(). To unpin it the
 * driver waits for all that the GPUs are at, which an array's end must not: what is too much of it goes at the end of
 * the next call.
 *
 * A fork shares pages until somebody writes. Older systems then give the writer a new page, the parent too, and
 * the copy engines would go on to write to the old one. So what was pinned before a fork is pinned anew.
 *
 * NumPy is told by its own means (PyDataMem_SetHandler): such arrays own their data, and can be resized.
 */
#include "result_memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cuda/gpu.h"

enum {
    LEAST_BYTES = 128 << 10, /* less is malloc's */
    HUGE_PAGE = 2 << 20,
    MOST_KEPT = 8,
    MEMORY_PART = 8 /* of the machine's memory, at most, is kept */
};

typedef struct block {
    void *memory;
    size_t bytes; /* mapped */
    bool pinned;
    unsigned forks; /* so many there had been when it was pinned */
    struct block *next;
} block;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static block *used; /* by arrays: NumPy frees, and reallocates, without saying how much */
static block *kept; /* the latest first */
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

static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* ---- pages ---- */

static size_t most_bytes(void) {
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
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&mutex);
    const bool stale = b->forks != forks;
    pthread_mutex_unlock(&mutex);
    if (b->pinned && !stale) return;
    unpin(b);
    pthread_mutex_lock(&mutex);
    b->pinned = pinned_bytes + b->bytes <= most_bytes();
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

/* On whole huge pages, so that the system can give those. */
static void *map(size_t bytes) {
    char *memory =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    const size_t before = (size_t)(-(uintptr_t)memory % HUGE_PAGE);
    if (before) {
        munmap(memory, before);
    }
    munmap(memory + before + bytes, HUGE_PAGE - before);
    madvise(memory + before, bytes, MADV_HUGEPAGE);
    return memory + before;
}

/* Takes the block out of its list, by address or, without one, by size; NULL: there is none. */
static block *take(block **list, const void *memory, size_t bytes) {
    while (*list && (memory ? (*list)->memory != memory : (*list)->bytes != bytes)) {
        list = &(*list)->next;
    }
    block *found = *list;
    if (found) {
        *list = found->next;
    }
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

/* The system promises more memory than it has, and ends a process that takes it at its word. */
static bool is_there(size_t bytes) {
    enum { WORTH_ASKING = 1 << 28 };
    unsigned long long kilobytes = 0;
    char line[128];
    FILE *file = bytes < WORTH_ASKING ? NULL : fopen("/proc/meminfo", "r");
    bool known = false;
    while (file && !known && fgets(line, sizeof line, file)) {
        known = sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1;
    }
    if (file) {
        fclose(file);
    }
    return !known || bytes / 1024 < kilobytes;
}

static block *make(size_t bytes) {
    if (!is_there(bytes)) {
        return NULL;
    }
    block *made = calloc(1, sizeof *made);
    if (made && (made->memory = map(bytes)) == NULL) {
        free(made);
        made = NULL;
    }
    if (made) {
        made->bytes = bytes;
    }
    return made;
}

static void *allocate(size_t bytes) {
    const size_t wanted = round_up(bytes);
    pthread_mutex_lock(&mutex);
    block *own = take(&kept, NULL, wanted);
    pthread_mutex_unlock(&mutex);
    if (own) {
        pin(own);
    } else if ((own = make(wanted)) == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&mutex);
    own->next = used;
    used = own;
    pthread_mutex_unlock(&mutex);
    return own->memory;
}

/* Takes what is beyond the bounds, the oldest, out of the list. */
static block *surplus(bool pinned_too) {
    const size_t most = most_bytes();
    size_t total = 0;
    int n = 0;
    block *rest = NULL;
    pthread_mutex_lock(&mutex);
    for (block **link = &kept; *link;) {
        block *b = *link;
        total += b->bytes;
        if ((++n <= MOST_KEPT && total <= most) || (b->pinned && !pinned_too)) {
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
    for (const block *b = gone; b; b = b->next) {
        bytes += b->bytes;
    }
    destroy(gone);
    return bytes;
}

/* ---- as NumPy calls it ---- */

static void *numpy_malloc(void *Py_UNUSED(context), size_t bytes) {
    return bytes < LEAST_BYTES ? malloc(bytes) : allocate(bytes);
}

static void *numpy_calloc(void *context, size_t n, size_t size) {
    void *memory = numpy_malloc(context, n * size); /* which NumPy has multiplied before */
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
    for (const block *b = used; b && before == 0; b = b->next) {
        before = b->memory == memory ? b->bytes : 0;
    }
    pthread_mutex_unlock(&mutex);
    if (before == 0) {
        return realloc(memory, bytes);
    }
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
    if (ours == NULL) {
        Py_CLEAR(made);
    } else {
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(ours);
    Py_DECREF(before);
    return made;
}
