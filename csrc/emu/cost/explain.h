/* Words: why a request to shared memory costs what it costs, and what a layout without the conflict
 * would be; why two accesses race, and what would order them.
 *
 * Each function writes English sentences to `out`, cut at `size` bytes and always terminated;
 * EXPLAIN_SIZE bytes are enough. The text has no line breaks, so that the reader wraps it.
 */
#ifndef EMU_EXPLAIN_H
#define EMU_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../core/hazard.h"
#include "../observe/observer.h"
#include "layouts.h"

enum { EXPLAIN_SIZE = 1536 };

/* A shared array, as the source declares it. */
typedef struct explain_array {
    const char *name;   /* "tile"; NULL: not known */
    uint64_t at, bytes; /* its place in the block's shared memory */
    uint32_t element;   /* bytes of an element: 1, 2, 4, 8 or 16; 0: not known */
    uint64_t cols;      /* elements from one row to the next; 0: an array of one dimension */
    uint64_t rows;      /* from one plane to the next; 0: at most two dimensions */
} explain_array;

/* A request, and what it was counted to cost. */
typedef struct explain_request {
    emu_operation operation;
    const uint64_t *address; /* by lane: offsets in the block's shared memory */
    uint32_t active, width;  /* lanes; bytes per lane */
    uint32_t wavefronts, ideal;
    bool is_remote;             /* to the shared memory of other blocks */
    const explain_array *array; /* where its addresses are; NULL: not known */
} explain_request;

/* The last name of a mangled one: "tile" for "_ZZ6kernelPfE4tile". A name that is not mangled stays
 * as it is. Returns its length; *name is changed to where it begins. */
size_t explain_plain_name(const char **name);

/* The element at a byte offset in the array, as the source writes it: "tile[1][0]". Where the
 * array's elements are not known, they are taken to be as wide as the type in the text of the
 * instruction that accesses it, and at least `width` bytes: "tile[32]". text: may be NULL. */
size_t explain_element(const explain_array *array, int64_t at, uint32_t width, const char *text,
                       char *out, size_t size);

/* Sets the operation, and whether it is remote, from its name in a trace or a recording: "load",
 * "copy_async", "remote_store". False: there are no words for it. */
bool explain_operation(const char *name, explain_request *out);

/* Which lanes access which words of which bank, and how many wavefronts that takes. For example:
 * "2 lanes read 4 bytes each of tile: 2 wavefronts, 1 is ideal. Lanes 0 and 16 read rows 0 and 16
 * of column 0: words 0 and 512, both in bank 0." Returns the number of bytes, as snprintf does. */
size_t explain_conflict(const explain_request *request, char *out, size_t size);

/* The layout of smemkern.banks.suggest for these requests, which are all to `array`, and its price.
 * *best: that layout (NULL: not wanted). Returns 0 and writes nothing if the array's elements are
 * not known, or if the requests are not accesses to whole elements in one row each. */
size_t explain_layout(const explain_array *array, const explain_request *requests, size_t n,
                      bank_choice *best, char *out, size_t size);

/* Who accesses what in a hazard, and what does not order it: the sentence of `smemkern check`.
 * `where`: the element ("shared tile[33]", "argument 2, element (3, 5)"); "" if there is none. */
size_t explain_hazard(const smk_hazard *hazard, const char *where, char *out, size_t size);

/* What would cure it, as "a __syncthreads() that all threads of the block reach, between ... and
 * ...". Returns 0 if the kind has no cure to name. */
size_t explain_cure(const smk_hazard *hazard, char *out, size_t size);

#endif
