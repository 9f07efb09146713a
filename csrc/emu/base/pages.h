/* Memory from the system, in pages; the only file that knows whether it can be protected. */
#ifndef EMU_PAGES_H
#define EMU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t page_bytes(void);

/* Maps `bytes` (a multiple of page_bytes) of zeros between two inaccessible pages. WebAssembly has
 * no page protection: there the blocks have no such pages beside them. NULL: out of memory. */
unsigned char *pages_map_guarded(size_t bytes);
void pages_unmap_guarded(unsigned char *pages, size_t bytes);

/* Whether the process has memory at an address. */
bool pages_are_mapped(uint64_t address);

/* Zeros for large sparse arrays: the system provides a page on first access. NULL: out of
 * memory. */
void *zeros_new(uint64_t bytes);
void zeros_free(void *zeros, uint64_t bytes);

#endif
