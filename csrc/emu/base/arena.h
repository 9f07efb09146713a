/* Memory that is given back all at once: a parsed module lives in one arena, and so does what is
 * needed only while parsing. Nothing in it is freed singly, so no path out of the parser can leak.
 */
#ifndef EMU_ARENA_H
#define EMU_ARENA_H

#include <stddef.h>

typedef struct ptx_arena ptx_arena;

ptx_arena *arena_new(void); /* NULL if out of memory */
void arena_free(ptx_arena *arena);
size_t arena_bytes(const ptx_arena *arena); /* that it has asked for */

/* count * size bytes of zeros, aligned to 16; NULL if out of memory. Never NULL for 0 bytes. */
void *arena_alloc(ptx_arena *arena, size_t count, size_t size);

/* A NUL-terminated copy. */
char *arena_string(ptx_arena *arena, const char *text, size_t length);

#endif
