/* Arena allocator: all blocks of an arena are freed together.
 *
 * A parsed module occupies one arena, the parser's temporary data another. No block is freed on its
 * own, so no error path of the parser can leak.
 */
#ifndef EMU_ARENA_H
#define EMU_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct ptx_arena ptx_arena;

ptx_arena *arena_new(void); /* NULL if out of memory */
void arena_free(ptx_arena *arena);
size_t arena_bytes(const ptx_arena *arena); /* allocated from the system */

/* count * size zeroed bytes, aligned to 16; NULL if out of memory. 0 bytes: not NULL. */
void *arena_alloc(ptx_arena *arena, uint64_t count, size_t size);

/* A NUL-terminated copy. */
char *arena_string(ptx_arena *arena, const char *text, size_t length);

#endif
