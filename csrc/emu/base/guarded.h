/* Memory that a kernel's instructions compute on: registers, shared and local memory, parameters, variables.
 *
 * It is never a neighbour of anything else that the process keeps. Each block of it is a mapping of its own
 * between two pages that nothing can touch, and its end is the end of a page but for the alignment. So an
 * access past it that the emulator failed to refuse ends the process and reads nothing.
 *
 * The checked build (EMU_CHECKED, in tests/fuzz and benchmarks/sanitized.py) fills what alignment leaves over
 * with a canary, and looks at it when the block is given back.
 */
#ifndef EMU_GUARDED_H
#define EMU_GUARDED_H

#include <stdbool.h>
#include <stddef.h>

enum { GUARDED_ALIGN = 256 };

/* Unspecified contents. NULL: out of memory. Of 0 bytes: not NULL, and nothing is mapped. */
void *guarded_alloc(size_t bytes);
void *guarded_zeros(size_t bytes);
/* bytes as they were asked for; p may be NULL. */
void guarded_free(void *p, size_t bytes);

/* Mappings are kept for the next launch, a few small ones; this unmaps them. */
void guarded_trim(void);

/* Many blocks that are given back together. */
typedef struct guarded_arena {
    struct guarded_chunk *chunks;
} guarded_arena;

enum { GUARDED_ARENA_ALIGN = 64 };

void *guarded_arena_alloc(guarded_arena *arena, size_t bytes);
void guarded_arena_free(guarded_arena *arena);

#endif
