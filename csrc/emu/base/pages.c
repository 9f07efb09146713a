/* See pages.h. */
#include "pages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "size.h"

size_t page_bytes(void) {
    static size_t bytes;
    size_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (!known) __atomic_store_n(&bytes, known = (size_t)sysconf(_SC_PAGESIZE), __ATOMIC_RELAXED);
    return known;
}

#ifdef __wasm__

enum { BLOCK_ALIGN = 256 };

unsigned char *pages_map_guarded(size_t bytes) {
    unsigned char *pages = aligned_alloc(BLOCK_ALIGN, bytes);
    return pages ? memset(pages, 0, bytes) : NULL;
}

void pages_unmap_guarded(unsigned char *pages, size_t bytes) {
    (void)bytes;
    free(pages);
}

bool pages_are_mapped(uint64_t address) {
    (void)address;
    return false; /* there are no pointers of a host program */
}

void *zeros_new(uint64_t bytes) {
    return calloc(1, size_from(bytes));
}

void zeros_free(void *zeros, uint64_t bytes) {
    (void)bytes;
    free(zeros);
}

#else
#include <sys/mman.h>

unsigned char *pages_map_guarded(size_t bytes) {
    const size_t page = page_bytes();
    unsigned char *all =
        mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    if (!mprotect(all + page, bytes, PROT_READ | PROT_WRITE)) return all + page;
    munmap(all, bytes + 2 * page);
    return NULL;
}

void pages_unmap_guarded(unsigned char *pages, size_t bytes) {
    const size_t page = page_bytes();
    munmap(pages - page, bytes + 2 * page);
}

bool pages_are_mapped(uint64_t address) {
    const uintptr_t page = (uintptr_t)address & ~(uintptr_t)(page_bytes() - 1);
    return !msync((void *)page, 1, MS_ASYNC); /* fails with ENOMEM where nothing is mapped */
}

enum { LARGE = 2 * 1024 * 1024 }; /* a huge page of x86-64 */

/* calloc would clear memory that it reuses; it serves small arrays. */
void *zeros_new(uint64_t bytes) {
    if (bytes < LARGE) return calloc(1, bytes);
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    /* An epoch is read before it is written. With small pages that takes two page faults, and the
     * second one interrupts the other host threads. */
    madvise(pages, bytes, MADV_HUGEPAGE);
    return pages;
}

void zeros_free(void *zeros, uint64_t bytes) {
    if (bytes < LARGE)
        free(zeros);
    else if (zeros)
        munmap(zeros, bytes);
}

#endif
