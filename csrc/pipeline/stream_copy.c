/* To a stage: DMA reads of cache lines that are modified in a core's private cache run at 2/3 of
 * the bus's rate. So threads write past the caches (non-temporal stores): about 8 GB/s per core.
 * Each byte then makes three trips to memory. Large calls are limited by that. They demote lines to
 * the shared cache as soon as they are written (`cldemote`, if the processor has it), and the
 * device reads them there: 4 GB/s per core.
 *
 * From a stage: an ordinary store to a line that is in no cache first reads the line. So threads
 * write past the caches here too.
 */
#include "stream_copy.h"

#include <string.h>

typedef void row_copy(char *to, const char *from, size_t bytes);

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <stdatomic.h>
#include <stdint.h>

static void copy_nontemporal(char *to, const char *from, size_t bytes) {
    enum { VECTORS = 4 };
    __m128i vectors[VECTORS];
    const size_t offset = -(uintptr_t)to % sizeof *vectors, head = offset < bytes ? offset : bytes;
    memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= sizeof vectors;
         to += sizeof vectors, from += sizeof vectors, bytes -= sizeof vectors) {
        memcpy(vectors, from, sizeof vectors);
        for (int i = 0; i < VECTORS; i++)
            _mm_stream_si128((__m128i *)(void *)to + i, vectors[i]);
    }
    memcpy(to, from, bytes);
}

static void copy_demoting(char *to, const char *from, size_t bytes) {
    enum { CACHE_LINE = 64, STEP = 4096 }; /* bytes */
    for (size_t done = 0; done < bytes; done += STEP) {
        const size_t left = bytes - done, n = left < STEP ? left : STEP;
        memcpy(to + done, from + done, n);
        for (size_t i = 0; i < n; i += CACHE_LINE)
            __asm__ volatile("cldemote %0" : : "m"(to[done + i]));
    }
}

/* The choice is cached: cpuid takes microseconds in a virtual machine. */
static row_copy *copy_sparing_memory(void) {
    enum { LEAF = 7, CLDEMOTE = 1 << 25 };
    static row_copy *_Atomic cached;
    row_copy *copy = atomic_load_explicit(&cached, memory_order_relaxed);
    unsigned a, b, c = 0, d;
    if (copy) return copy;
    const bool has_cldemote = __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && c & CLDEMOTE;
    copy = has_cldemote ? copy_demoting : copy_nontemporal;
    atomic_store_explicit(&cached, copy, memory_order_relaxed);
    return copy;
}

static void make_visible(void) { /* non-temporal stores are weakly ordered */
    _mm_sfence();
}
#else
static void copy_nontemporal(char *to, const char *from, size_t bytes) {
    memcpy(to, from, bytes);
}

static row_copy *copy_sparing_memory(void) {
    return copy_nontemporal;
}

static void make_visible(void) {}
#endif

static void copy_rows(byte_rows to, byte_rows from, size_t width, size_t height, row_copy *copy) {
    enum { MIN_WIDTH = 512 }; /* bytes; shorter rows are not worth it */
    for (size_t i = 0; i < height; i++) {
        char *target = to.first + (ptrdiff_t)i * to.pitch;
        const char *source = from.first + (ptrdiff_t)i * from.pitch;
        if (width < MIN_WIDTH)
            memcpy(target, source, width);
        else
            copy(target, source, width);
    }
    make_visible();
}

void copy_rows_to_stage(byte_rows stage, byte_rows from, size_t width, size_t height,
                        bool memory_bound) {
    copy_rows(stage, from, width, height, memory_bound ? copy_sparing_memory() : copy_nontemporal);
}

void copy_rows_from_stage(byte_rows to, byte_rows stage, size_t width, size_t height) {
    copy_rows(to, stage, width, height, copy_nontemporal);
}
