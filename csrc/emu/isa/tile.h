/* The global side of a bulk copy: a box of a tensor, which is processed row by row.
 *
 * A tensor has up to five dimensions, the innermost first, and contiguous innermost elements. A
 * plain copy of bytes is a one-dimensional box with elements of 16 bytes. In shared memory a box is
 * dense, in 16-byte chunks that the swizzle permutes within their line of 128 bytes. It xors bits
 * 4, 5, 6 of a chunk's address with bits 7, 8, 9: one, two or three of them for a span of 32, 64 or
 * 128 bytes. Source: PTX ISA, "Tensors" and "Swizzling modes".
 */
#ifndef EMU_TILE_H
#define EMU_TILE_H

#include "atomics.h"
#include "../machine/machine.h"

enum { TILE_RANK = 5, TILE_CHUNK = 16, TILE_LINE = 128, TILE_SECTOR = 32 };

typedef struct tile {
    ptx_space space;  /* of address: global, or shared for copies within it */
    uint64_t address; /* of the element at coordinates 0 */
    uint32_t rank, element_bytes;
    uint32_t count[TILE_RANK]; /* elements of the box per dimension */
    uint32_t step[TILE_RANK];  /* distance between them, in elements of the tensor; step[0] is 1 */
    int64_t start[TILE_RANK];
    /* Of the tensor. A load fills what is outside; a store skips it, but for the rest of a row's
     * last chunk. */
    uint64_t size[TILE_RANK];
    uint64_t stride[TILE_RANK]; /* bytes; stride[0] is not used */
    uint32_t span;              /* bytes of the swizzle; 0: none */
    uint64_t fill;              /* bits of an element outside the tensor */
    /* Converts loaded elements; NULL: no conversion. */
    void (*after_load)(unsigned char *data, uint32_t bytes);
} tile;

uint32_t tile_bytes(const tile *t);

/* The offset in shared memory of byte `at` of the dense box, before the swizzle: rows shorter than
 * the swizzle's span lie a span apart, and what is between them is not accessed. */
static inline uint64_t tile_offset(const tile *t, uint64_t at) {
    const uint64_t row = t->count[0] * t->element_bytes;
    return t->span > row ? at / row * t->span + at % row : at;
}

/* Bytes of shared memory from the box's first to its last, and what is between. */
static inline uint64_t tile_extent(const tile *t, uint64_t bytes) {
    const uint64_t row = t->count[0] * t->element_bytes;
    return t->span > row ? bytes / row * t->span : bytes;
}

/* The shared-memory address of the 16-byte chunk at byte `at` of the dense box. */
static inline uint64_t tile_chunk(const tile *t, uint64_t shared, uint32_t at) {
    const uint64_t plain = shared + tile_offset(t, at);
    const uint64_t lines = t->span ? t->span / TILE_CHUNK - 1 : 0;
    return plain ^ (plain / TILE_LINE & lines) * TILE_CHUNK;
}

/* Read the box into data, or write data into the box: plainly, or by a reduction. False after a
 * fault, which is reported at i and lane. */
bool tile_read(warp *w, const insn *i, int lane, const tile *t, unsigned char *data);
bool tile_write(warp *w, const insn *i, int lane, const tile *t, const unsigned char *data,
                const atomic_reduction *reduction);

/* Reports the box's accesses to the tensor to the observer. receivers: the blocks that a multicast
 * writes to; else 0. */
void tile_report(const warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                 emu_operation operation, uint32_t receivers);
/* Reports the accesses to shared memory of a box of `bytes` that is there at `shared`. */
void tile_report_shared(const warp *w, const insn *i, int lane, const tile *t, uint64_t shared,
                        uint32_t bytes, emu_operation operation);

#endif
