/* The heap of malloc and free in kernels: one per module, of the size that CUDA gives it, kept from
 * launch to launch as on a GPU. All functions may be called from several host threads at once.
 *
 * Memory is used again as late as possible, and every access is checked against what is allocated:
 * so the use of freed memory is an error, not a wrong result.
 */
#ifndef EMU_HEAP_H
#define EMU_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAP_BYTES = 8 << 20 }; /* cudaLimitMallocHeapSize, by default */

typedef struct heap heap;

heap *heap_new(void); /* NULL: out of memory */
void heap_free(heap *h);

/* The offset of `bytes` of uninitialized memory, a multiple of 16. False: there is no room. */
bool heap_allocate(heap *h, uint64_t bytes, uint64_t *offset);

/* NULL: done. Else what is wrong with the offset, to follow "free of 0x1234: ". */
const char *heap_release(heap *h, uint64_t offset);

/* The bytes (at most 16, aligned) at an offset. NULL: not all of them are allocated. */
unsigned char *heap_reach(heap *h, uint64_t offset, uint32_t bytes);
/* Whether all bytes are in the allocation that starts at an offset. */
bool heap_holds(heap *h, uint64_t offset, uint64_t bytes);
/* Says why heap_reach returned NULL. */
void heap_describe(heap *h, uint64_t offset, char *out, size_t size);

#endif
