/* A decoded instruction, and access to its operands in the register file.
 *
 * A handler runs one instruction for all active lanes and returns the next one. Every operand is
 * a 32-lane vector at a byte offset of the warp's frame. Immediates and special registers have
 * frame slots too, so handlers need not distinguish kinds of operands. A guard (@%p) is a wrapper
 * around the handler.
 */
#ifndef EMU_INSN_H
#define EMU_INSN_H

#include "../base/lanes.h"
#include "../ptx/ptx.h"

typedef struct warp warp;
typedef struct insn insn;
typedef const insn *(*exec_fn)(warp *w, const insn *i);

struct insn {
    exec_fn exec; /* the handler */
    exec_fn body; /* if exec is a wrapper (exec_guarded, exec_collective): the handler inside */
    uint32_t d, a, b, c, e; /* frame offsets: destination, sources */
    uint32_t guard;
    bool guard_negated;
    uint8_t width;              /* memory: bytes of an element */
    uint8_t count;              /* memory: elements of a vector access */
    uint8_t flags;              /* as the select function defines */
    uint8_t space;              /* memory: a ptx_space */
    uint8_t operation;          /* memory: an emu_operation */
    uint8_t wide;               /* memory: whether address a has 64 bits per lane */
    int64_t imm;                /* address offset, lane mask, ...: as the select function defines */
    const insn *target;         /* branches */
    const insn *reconverge;     /* reconvergence point; NULL: none before the exit */
    const uint32_t *list;       /* frame offsets of further operands */
    const void *extra;          /* from decode_alloc; as the select function defines */
    exec_fn unobserved;         /* the plain handler, if exec reports to the observer; else NULL */
    uint32_t index;             /* of the PTX instruction in its function; observers index by it */
    const ptx_instruction *ptx; /* NULL: a hidden instruction (decode.c) */
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
