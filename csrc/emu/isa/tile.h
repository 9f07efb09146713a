/* The global side of a bulk copy: a box of a tensor, whose rows are walked one by one.
 *
 * A tensor has up to five dimensions, the innermost first, and its innermost elements are neighbours. A
 * plain copy of bytes is a box of one dimension whose elements have 16 bytes. In shared memory a box lies
 * dense, in 16-byte chunks that the swizzle moves within their line of 128 bytes: bits 4, 5, 6 of a
 * chunk's address are xored with bits 7, 8, 9, as many of them as the span of 32, 64 or 128 bytes has.
 * Source: PTX ISA, "Tensors" and "Swizzling modes".
 */
#ifndef EMU_TILE_H
#define EMU_TILE_H

#include "atomics.h"
#include "../machine/machine.h"

enum { TILE_RANK = 5, TILE_CHUNK = 16, TILE_LINE = 128, TILE_SECTOR = 32 };

typedef struct tile {
    ptx_space space;  /* of address: global, or shared for copies within it */
    uint64_t address; /* of the element with all coordinates 0 */
    uint32_t rank, element_bytes;
    uint32_t count[TILE_RANK]; /* of the box's elements */
    uint32_t step[TILE_RANK];  /* from one to the next, in elements; step[0] is 1 */
    int64_t start[TILE_RANK];
    uint64_t size[TILE_RANK];   /* of the tensor: what is outside is filled or left out */
    uint64_t stride[TILE_RANK]; /* bytes; stride[0] is not used */
    uint32_t span;              /* of the swizzle in bytes; 0: none */
    uint64_t fill;              /* bits of an element that is outside */
    void (*loaded)(unsigned char *image,
                   uint32_t bytes); /* what a load makes of it; NULL: nothing */
} tile;

uint32_t tile_bytes(const tile *t);

/* Where the 16-byte chunk that begins `at` bytes into the dense box lies in shared memory. */
static inline uint64_t tile_chunk(const tile *t, uint64_t shared, uint32_t at) {
    const uint64_t plain = shared + at;
    const uint64_t lines = t->span ? t->span / TILE_CHUNK - 1 : 0;
    return plain ^ (plain / TILE_LINE & lines) * TILE_CHUNK;
}

/* The box's bytes into image, or image into the box: plainly, or combined with what is there. False after
 * a fault, at i and lane. */
bool tile_read(warp *w, const insn *i, int lane, const tile *t, unsigned char *image);
bool tile_write(warp *w, const insn *i, int lane, const tile *t, const unsigned char *image,
                const atomic_change *change);

/* Tells an observer of the tensor's bytes that the box touches. */
void tile_report(const warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                 emu_operation operation);
/* ... and of `bytes` from an offset of shared memory. */
void tile_report_shared(const warp *w, const insn *i, int lane, uint64_t shared, uint32_t bytes,
                        emu_operation operation);

#endif
