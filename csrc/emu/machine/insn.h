/* A decoded instruction, and the registers that it works on.
 *
 * A handler runs one instruction for all active lanes and returns the next one. Every operand is a
 * 32-lane vector at a byte offset of the warp's frame: registers, and also immediates and special
 * registers, which decode puts into constant slots of the frame, so that a handler never asks what
 * kind of operand it has. A guard (@%p) is one wrapper handler around the others.
 */
#ifndef EMU_INSN_H
#define EMU_INSN_H

#include "../base/lanes.h"
#include "../ptx/ptx.h"

typedef struct warp warp;
typedef struct insn insn;
typedef const insn *(*exec_fn)(warp *w, const insn *i);

struct insn {
    exec_fn exec;           /* what the loop calls */
    exec_fn body;           /* under a guard: exec is the wrapper, body the instruction itself */
    uint32_t d, a, b, c, e; /* frame offsets: destination, sources */
    uint32_t guard;
    bool guard_negated;
    uint8_t width;          /* memory: bytes of an element */
    uint8_t count;          /* memory: elements of a vector access */
    uint8_t flags;          /* the select function's own */
    uint8_t space;          /* memory: ptx_space, ... */
    uint8_t operation;      /* ... emu_operation, ... */
    uint8_t wide;           /* ... whether address a has 64 bits per lane */
    int64_t imm;            /* address offset, lane mask, ...: the select function's own */
    const insn *target;     /* branches */
    const insn *reconverge; /* NULL: at the exit only */
    const uint32_t *list;   /* frame offsets of further operands */
    const void *extra;      /* the select function's own, from decode_alloc */
    exec_fn unobserved;     /* memory: what exec, a function of observe.h, is around; else NULL */
    uint32_t index;         /* of this instruction in its function: observers count by it */
    const ptx_instruction *ptx; /* NULL: one of decode.c's own */
};

/* ---- frame access ---- */

#define U16(w, offset)  ((uint16_t *)((w)->frame + (offset)))
#define U32(w, offset)  ((uint32_t *)((w)->frame + (offset)))
#define S32(w, offset)  ((int32_t *)((w)->frame + (offset)))
#define F32(w, offset)  ((float *)((w)->frame + (offset)))
#define U64(w, offset)  ((uint64_t *)((w)->frame + (offset)))
#define S64(w, offset)  ((int64_t *)((w)->frame + (offset)))
#define F64(w, offset)  ((double *)((w)->frame + (offset)))
#define PRED(w, offset) ((uint32_t *)((w)->frame + (offset))) /* 0 or ~0 per lane */

#endif
