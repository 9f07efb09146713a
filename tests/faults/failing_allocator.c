/* Preloaded: memory that the extension module asks for itself (malloc and its kin, anonymous pages, and
 * threads) can fail at a chosen request, and what it has not given back is counted. Requests by Python,
 * NumPy and the C library are served as ever: a request is the extension's if the call comes from
 * its code.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORTED __attribute__((visibility("default")))
#define CALLER   ((uintptr_t)__builtin_return_address(0))

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* Set by the test: where the extension's code lies, and which of its requests fails (0: none). */
EXPORTED uintptr_t code_begin, code_end;
EXPORTED long requests, fail_request;
EXPORTED long alive; /* the extension's blocks */
EXPORTED bool failed;
EXPORTED uintptr_t failed_at; /* in its code, for addr2line */

enum { TABLE = 1 << 20 };
static void *table[TABLE]; /* of what is alive: open addressing, a gap is (void *)1 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t place_of(const void *p) {
    return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15ull >> 44;
}

static bool is_ours(uintptr_t caller) {
    return caller >= code_begin && caller < code_end;
}

static bool refuse(uintptr_t caller) {
    if (!is_ours(caller) || __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) != fail_request)
        return false;
    failed = true;
    failed_at = caller - code_begin;
    errno = ENOMEM;
    return true;
}

static void *note(void *p, uintptr_t caller) {
    if (!p || !is_ours(caller)) return p;
    pthread_mutex_lock(&lock);
    size_t at = place_of(p);
    while ((uintptr_t)table[at] > 1)
        at = (at + 1) % TABLE;
    table[at] = p;
    alive++;
    pthread_mutex_unlock(&lock);
    return p;
}

static void forget(void *p) {
    if (!p || !alive) return;
    pthread_mutex_lock(&lock);
    for (size_t at = place_of(p); table[at]; at = (at + 1) % TABLE)
        if (table[at] == p) {
            table[at] = (void *)1;
            alive--;
            break;
        }
    pthread_mutex_unlock(&lock);
}

EXPORTED void *malloc(size_t bytes) {
    return refuse(CALLER) ? NULL : note(__libc_malloc(bytes), CALLER);
}

EXPORTED void *calloc(size_t n, size_t bytes) {
    return refuse(CALLER) ? NULL : note(__libc_calloc(n, bytes), CALLER);
}

EXPORTED void *realloc(void *old, size_t bytes) {
    if (refuse(CALLER)) return NULL;
    void *fresh = __libc_realloc(old, bytes);
    if (fresh) forget(old);
    return note(fresh, CALLER);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) {
    return refuse(CALLER) ? NULL : note(__libc_memalign(alignment, bytes), CALLER);
}

EXPORTED char *strdup(const char *text) {
    const size_t bytes = strlen(text) + 1;
    char *copy = refuse(CALLER) ? NULL : note(__libc_malloc(bytes), CALLER);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

EXPORTED void free(void *p) {
    forget(p);
    __libc_free(p);
}

EXPORTED void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset) {
    static void *(*next)(void *, size_t, int, int, int, off_t);
    if (!next) next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
    if (refuse(CALLER)) return MAP_FAILED;
    void *pages = next(where, bytes, protection, flags, file, offset);
    return pages == MAP_FAILED ? pages : note(pages, CALLER);
}

EXPORTED int munmap(void *pages, size_t bytes) {
    static int (*next)(void *, size_t);
    if (!next) next = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
    if (is_ours(CALLER)) forget(pages);
    return next(pages, bytes);
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*start)(void *), void *argument) {
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next) next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_create");
    return refuse(CALLER) ? EAGAIN : next(thread, attributes, start, argument);
}
