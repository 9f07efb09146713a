/* In: lines that a core has just changed the device gets from that core, at two thirds of the bus's rate. So they are
 * written past the caches, a core some 8 GB/s. Each byte then passes memory three times, which is what large calls wait
 * for: these hand lines to the shared cache as soon as they are written (`cldemote`, where the processor has it), and the
 * device finds them there. A core does 4 GB/s so.
 *
 * Out: to change lines that are in no cache is to read them first. So they are written past the caches.
 */
#include "stream_copy.h"

#include <string.h>

typedef void line_copy(char *to, const char *from, size_t bytes);

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <stdatomic.h>
#include <stdint.h>

enum { CACHE_LINE = 64, DEMOTED_AT_ONCE = 4096 }; /* bytes */

static void copy_past(char *to, const char *from, size_t bytes) {
    enum { AT_ONCE = 4 };
    __m128i vectors[AT_ONCE];
    const size_t offset = -(uintptr_t)to % sizeof *vectors, head = offset < bytes ? offset : bytes;
    memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= sizeof vectors;
         to += sizeof vectors, from += sizeof vectors, bytes -= sizeof vectors) {
        memcpy(vectors, from, sizeof vectors);
        for (int i = 0; i < AT_ONCE; i++)
            _mm_stream_si128((__m128i *)(void *)to + i, vectors[i]);
    }
    memcpy(to, from, bytes);
}

static void copy_demoted(char *to, const char *from, size_t bytes) {
    for (size_t done = 0; done < bytes; done += DEMOTED_AT_ONCE) {
        const size_t left = bytes - done, n = left < DEMOTED_AT_ONCE ? left : DEMOTED_AT_ONCE;
        memcpy(to + done, from + done, n);
        for (size_t i = 0; i < n; i += CACHE_LINE)
            __asm__ volatile("cldemote %0" : : "m"(to[done + i]));
    }
}

/* Asked once: in a virtual machine `cpuid` takes microseconds. */
static line_copy *copy_sparing(void) {
    enum { LEAF = 7, CLDEMOTE = 1 << 25 };
    static line_copy *_Atomic known;
    line_copy *copy = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a, b, c = 0, d;
    if (copy) return copy;
    copy = __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && c & CLDEMOTE ? copy_demoted : copy_past;
    atomic_store_explicit(&known, copy, memory_order_relaxed);
    return copy;
}

static void finish(void) { /* what was written past the caches, before anyone is told of it */
    _mm_sfence();
}
#else
static void copy_past(char *to, const char *from, size_t bytes) {
    memcpy(to, from, bytes);
}

static line_copy *copy_sparing(void) {
    return copy_past;
}

static void finish(void) {}
#endif

static void copy_lines(lines to, lines from, size_t width, size_t n, line_copy *copy) {
    enum { LEAST = 512 }; /* bytes of a line that are worth it */
    for (size_t i = 0; i < n; i++) {
        char *target = to.at + (ptrdiff_t)i * to.pitch;
        const char *source = from.at + (ptrdiff_t)i * from.pitch;
        if (width < LEAST)
            memcpy(target, source, width);
        else
            copy(target, source, width);
    }
    finish();
}

void copy_rows_to_stage(lines stage, lines from, size_t width, size_t n, bool spare_memory) {
    copy_lines(stage, from, width, n, spare_memory ? copy_sparing() : copy_past);
}

void copy_rows_from_stage(lines to, lines stage, size_t width, size_t n) {
    copy_lines(to, stage, width, n, copy_past);
}
