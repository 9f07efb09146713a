/* Guarded memory for everything that emulated instructions access: registers, shared and local
 * memory, parameters, variables.
 *
 * Each block is its own mapping between two inaccessible guard pages. It ends at a page boundary,
 * up to alignment. If the emulator fails to reject an out-of-bounds access, the access faults
 * instead of reading other data of the process.
 *
 * The checked build (EMU_CHECKED, used by tests/fuzz and validation/sanitized.py) fills the
 * alignment padding with canary bytes and checks them when the block is freed.
 */
#ifndef EMU_GUARDED_H
#define EMU_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GUARDED_ALIGN = 256 };

/* Uninitialised contents. NULL: out of memory. 0 bytes: not NULL, and nothing is mapped. */
void *guarded_alloc(uint64_t bytes);
void *guarded_zeros(uint64_t bytes);
/* `bytes` must equal the allocation's size; p may be NULL. */
void guarded_free(void *p, uint64_t bytes);

/* A few small mappings are cached for the next launch; this unmaps them. */
void guarded_trim(void);

/* Blocks that are freed together. */
typedef struct guarded_arena {
    struct guarded_chunk *chunks;
} guarded_arena;

enum { GUARDED_ARENA_ALIGN = 64 };

void *guarded_arena_alloc(guarded_arena *arena, size_t bytes);
void guarded_arena_free(guarded_arena *arena);

#endif
