/* Decoding: what a select function asks of decode.c and decode_operand.c.
 *
 * The instruction files (isa/, and control, call, barrier here) each offer a table of opcode rows. A row's
 * select function takes the modifiers it understands; decode refuses an instruction that has one left
 * over, so an instruction is either understood whole or named in an error.
 */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "program.h"
#include "spaces.h"

typedef struct decoder decoder; /* decoder.h */

/* A select function: look at p's modifiers and operands, fill out, return the handler; NULL if this
 * form is not known (decode then raises UnsupportedInstructionError with p's text and line). */
typedef exec_fn (*select_fn)(decoder *dc, const ptx_instruction *p, insn *out);

/* By opcode; NULL: not this file's. */
typedef const select_fn opcode_table[PTX_N_OPCODES];

extern opcode_table barrier_opcodes, call_opcodes, control_opcodes;

/* ---- modifiers ---- */

/* Takes a modifier if it is there, untaken. */
bool decode_take(decoder *dc, const char *modifier);
/* Takes the next untaken type; PTX_NO_TYPE if there is none. */
ptx_type decode_take_type(decoder *dc);
/* The modifiers .global, .shared{::cta}, ...; PTX_GENERIC if there is none. */
ptx_space decode_take_space(decoder *dc);

/* ---- operands ---- */

/* A register's type as declared, or that of an address's register; PTX_NO_TYPE if there is none. */
ptx_type decode_register_type(decoder *dc, const ptx_operand *o);
/* Frame offset of an operand that is read; constants are made. A register's slot must have the type's
 * size. */
uint32_t decode_source(decoder *dc, const ptx_operand *o, ptx_type type);
/* Frame offset of an operand that is written; a sink gets a scratch slot. */
uint32_t decode_destination(decoder *dc, const ptx_operand *o, ptx_type type);
/* The same value in all lanes. */
uint32_t decode_constant(decoder *dc, uint64_t bits, ptx_type type);
/* Frame slot of a value that each frame has for itself (program.h, enum slot_kind). */
uint32_t decode_special(decoder *dc, unsigned kind, uint32_t bytes, int64_t addend);

/* The operand's address: a frame slot, whose elements are 64 bits if wide, plus imm. */
typedef struct decoded_address {
    uint32_t slot;
    bool wide;
    int64_t imm;
} decoded_address;

bool decode_address(decoder *dc, const ptx_operand *o, decoded_address *out);

/* Where a parameter, result or variable of the function lies: in local memory (true) or in the
 * region of kernel parameters, at *offset. */
bool decode_in_local(decoder *dc, const ptx_variable *v, uint64_t *offset);

/* Zeros that live as long as the program. Running out of memory is noted in dc; up to DECODE_SMALL bytes
 * the result is never NULL all the same. */
enum { DECODE_SMALL = 4096 };
void *decode_alloc(decoder *dc, size_t bytes);

/* ---- control ---- */

/* The instruction reads its guard itself (branches). */
void decode_own_guard(decoder *dc);

/* The instruction may stop or split its lanes, so a guard must not be wrapped around it: decode jumps
 * over it where the guard does not hold. */
void decode_not_predicable(decoder *dc);

/* The instruction is not valid PTX: says why. Returns NULL, as a select function then does. */
exec_fn decode_refuse(decoder *dc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A hidden instruction that stands behind this one. */
void decode_follow(decoder *dc, insn follow);

/* A branch to an instruction; valid in insn.target and in lists from decode_targets (NULL: out of
 * memory). */
const insn *decode_target(decoder *dc, uint32_t index);
const insn *decode_reconvergence_point(decoder *dc); /* of the lanes that diverge here */
const insn **decode_targets(decoder *dc, uint32_t n);

const ptx_function *decode_caller(decoder *dc);
const program *decode_callee(decoder *dc, const ptx_function *function);

#endif
