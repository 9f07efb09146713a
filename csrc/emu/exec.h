/* What a warp does: decoded instructions over a frame of 32-lane registers.
 *
 * A handler runs one instruction for all active lanes and returns the next one. Every operand is a
 * 32-lane vector at a byte offset of the warp's frame: registers, and also immediates and special
 * registers, which decode puts into constant slots of the frame, so that a handler never asks what
 * kind of operand it has. A guard (@%p) is one wrapper handler around the others.
 *
 * The instruction files (alu_*.c, memory.c, control.c, ...) each offer a table of opcode rows. A row's
 * select function takes the modifiers it understands; decode refuses an instruction that has one left
 * over, so an instruction is either understood whole or named in an error.
 */
#ifndef EMU_EXEC_H
#define EMU_EXEC_H

#include "ptx.h"

enum { LANES = 32, FULL = 0xffffffff };

typedef uint16_t lanes_u16[LANES] __attribute__((aligned(64)));
typedef uint32_t lanes_u32[LANES] __attribute__((aligned(64)));
typedef uint64_t lanes_u64[LANES] __attribute__((aligned(64)));

typedef struct warp warp;
typedef struct insn insn;
typedef const insn *(*exec_fn)(warp *w, const insn *i);

struct insn {
    exec_fn exec;           /* what the loop calls */
    exec_fn body;           /* under a guard: exec is the wrapper, body the instruction itself */
    uint32_t d, a, b, c, e; /* frame offsets: destination, sources */
    uint32_t guard;
    bool guard_negated;
    uint8_t width;              /* memory: bytes of an element */
    uint8_t count;              /* memory: elements of a vector access */
    uint8_t flags;              /* the select function's own */
    uint8_t space;              /* memory: ptx_space, ... */
    uint8_t operation;          /* ... emu_operation, ... */
    uint8_t wide;               /* ... whether address a has 64 bits a lane */
    int64_t imm;                /* address offset, lane mask, ...: the select function's own */
    const insn *target;         /* branches */
    const insn *reconverge;     /* NULL: at the exit only */
    const uint32_t *list;       /* frame offsets of further operands */
    const void *extra;          /* the select function's own, from decode_alloc */
    exec_fn observed;           /* memory: the handler, for observe.c */
    uint32_t index;             /* of this instruction in its function: observers count by it */
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
#define PRED(w, offset) ((uint32_t *)((w)->frame + (offset))) /* 0 or ~0 a lane */

struct warp {
    unsigned char *frame;
    uint32_t active; /* lanes that run this instruction, as bits ... */
    lanes_u32 mask;  /* ... and as 0 or ~0 a lane; kept equal by warp_set_active */
    struct block *block;
    uint32_t index;            /* in the block */
    struct fragment *fragment; /* the group of lanes that runs now (warp.c) */
    uint64_t clock;            /* instructions run so far */
    lanes_u32 carry;           /* CC.CF of add.cc, addc, ...: 0 or 1 a lane */
    /* The rest belongs to warp.c and sync.c; block.h says what it means. */
    struct fragment *ready, *waiting;
    uint32_t alive;
    uint32_t polls;
    bool polled;
    bool yielded; /* its last slice ended in fragment_yield */
    struct {
        const insn *at; /* NULL: never */
        int lane;
        uint64_t offset; /* of the object, in shared memory */
    } refused;           /* who last asked an mbarrier in vain */
    struct copy_queue *copies;
    struct local_memory *local;
};

void warp_set_active(warp *w, uint32_t active);

/* A write to d only in active lanes: a handler writes d[l] for all l when w->active == FULL and
 * d[l] where w->mask[l] otherwise. alu.h wraps this in one macro; nothing else writes registers. */

/* A run-time fault (address out of bounds, trap, ...): fills the launch's status with kernel, source
 * line, block, thread (the first lane set in lanes) and the sentence; stops the launch. Return its value. */
const insn *warp_fault(warp *w, const insn *i, smk_code code, uint32_t lanes, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));

/* ---- decoding ---- */

typedef struct decoder decoder; /* decode.c */

/* A select function: look at p's modifiers and operands, fill out, return the handler; NULL if this
 * form is not known (decode then raises UnsupportedInstructionError with p's text and line). */
typedef exec_fn (*select_fn)(decoder *dc, const ptx_instruction *p, insn *out);

typedef struct opcode_row {
    const char *opcode;
    select_fn select;
} opcode_row;

/* Each ends with a row of NULLs; isa.c knows them all. */
extern const opcode_row alu_opcodes[];     /* alu_*.c: arithmetic, compare, convert, mov */
extern const opcode_row memory_opcodes[];  /* memory.c: ld st */
extern const opcode_row control_opcodes[]; /* control.c: bra ret exit trap ... */

/* Takes a modifier if it is there, untaken. */
bool decode_take(decoder *dc, const char *modifier);
/* Takes the next untaken type; PTX_NO_TYPE if there is none. */
ptx_type decode_take_type(decoder *dc);
/* A register's type as declared, or that of an address's register; PTX_NO_TYPE if there is none. */
ptx_type decode_register_type(decoder *dc, const ptx_operand *o);
/* Frame offset of an operand that is read; constants are made. A register's slot must have the type's
 * size. */
uint32_t decode_source(decoder *dc, const ptx_operand *o, ptx_type type);
/* Frame offset of an operand that is written; a sink gets a scratch slot. */
uint32_t decode_destination(decoder *dc, const ptx_operand *o, ptx_type type);
/* The same value in all lanes. */
uint32_t decode_constant(decoder *dc, uint64_t bits, ptx_type type);
/* Zeros that live as long as the program. Running out of memory is noted in dc; up to DECODE_SMALL bytes
 * the result is never NULL all the same. */
enum { DECODE_SMALL = 4096 };
void *decode_alloc(decoder *dc, size_t bytes);

#endif
