/* Loads and stores: what memory.c (the common forms, fast) and memory_any.c (every form) agree on.
 *
 * insn: address in slot a (64 bits a lane if wide) plus imm; count elements of width bytes, in slots
 * list[0..count) whose elements have c bytes (a register may be wider than what it holds); d is list[0].
 */
#ifndef EMU_MEMORY_H
#define EMU_MEMORY_H

#include "../machine/machine.h"

enum {
    MEMORY_SIGNED = 1,
    MEMORY_STRONG = 2
}; /* insn.flags; strong: volatile, relaxed, acquire ... */
enum { MAX_VECTOR = 8, MAX_VECTOR_BYTES = 32 };

const insn *load_any(warp *w, const insn *i);
const insn *store_any(warp *w, const insn *i);

/* Reads modifiers and operands of ld (operation EMU_LOAD) or st; false if the form is not known. */
bool memory_decode(decoder *dc, const ptx_instruction *p, insn *out, uint8_t operation);

/* The lane's address. */
static inline uint64_t lane_address(const warp *w, const insn *i, int lane) {
    return i->wide ? U64(w, i->a)[lane] + (uint64_t)i->imm
                   : (uint32_t)(U32(w, i->a)[lane] + (uint32_t)i->imm);
}

/* The lane's address, of an instruction that has several. */
static inline uint64_t decoded_lane_address(const warp *w, const decoded_address *at, int lane) {
    return at->wide ? U64(w, at->slot)[lane] + (uint64_t)at->imm
                    : (uint32_t)(U32(w, at->slot)[lane] + (uint32_t)at->imm);
}

#endif
