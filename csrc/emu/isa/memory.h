/* ld and st: what memory_template.h (frequent forms, fast) and memory_any.c (every form) share.
 *
 * insn: the address is slot a (64 bits per lane if wide, else 32) plus imm. `count` elements of
 * `width` bytes are in the registers at frame offsets list[0..count), with c bytes per lane: a
 * register may be wider than its element. d is list[0].
 */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include "../machine/machine.h"

/* insn.flags. Strong operations are volatile, relaxed, acquire, ... */
enum { MEMORY_SIGNED = 1, MEMORY_STRONG = 2 };
enum { MAX_VECTOR = 8, MAX_VECTOR_BYTES = 32 };

const insn *load_any(warp *w, const insn *i);
const insn *store_any(warp *w, const insn *i);

/* Decodes an ld (operation EMU_LOAD) or st; false if the form is not supported. */
bool memory_decode(decoder *dc, const ptx_instruction *p, insn *out, uint8_t operation);

static inline uint64_t lane_address(const warp *w, const insn *i, int lane) {
    return i->wide ? U64(w, i->a)[lane] + (uint64_t)i->imm
                   : (uint32_t)(U32(w, i->a)[lane] + (uint32_t)i->imm);
}

/* As lane_address, for instructions with several address operands. */
static inline uint64_t decoded_lane_address(const warp *w, const decoded_address *at, int lane) {
    return at->wide ? U64(w, at->slot)[lane] + (uint64_t)at->imm
                    : (uint32_t)(U32(w, at->slot)[lane] + (uint32_t)at->imm);
}

#endif
