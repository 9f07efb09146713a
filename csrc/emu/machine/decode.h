/* Decoding: the interface of decode.c and decode_operand.c for select functions.
 *
 * The instruction files (isa/, and control, call, barrier here) each have a table of select
 * functions by opcode. A select function consumes the modifiers that it supports. An instruction
 * with a modifier left over is an error that names it, so no modifier is ignored silently.
 */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "program.h"
#include "spaces.h"

typedef struct decoder decoder; /* decoder.h */

/* A select function reads p's modifiers and operands, fills in *out, and returns the handler.
 * NULL: this form is not supported (UnsupportedInstructionError with p's text and line). */
typedef exec_fn (*select_fn)(decoder *dc, const ptx_instruction *p, insn *out);

/* By opcode; NULL: not in this file. */
typedef const select_fn opcode_table[PTX_N_OPCODES];

extern opcode_table barrier_opcodes, call_opcodes, control_opcodes, register_opcodes;

/* ---- modifiers ---- */

/* Consumes a modifier; false if it is absent or already consumed. */
bool decode_take(decoder *dc, const char *modifier);
/* Consumes the next type modifier; PTX_NO_TYPE if there is none. */
ptx_type decode_take_type(decoder *dc);
/* Consumes .global, .shared{::cta}, ...; PTX_GENERIC if there is none. */
ptx_space decode_take_space(decoder *dc);

/* ---- operands ---- */

/* The declared type of the operand's register or address register; PTX_NO_TYPE if it has none. */
ptx_type decode_register_type(decoder *dc, const ptx_operand *o);
/* Frame offset of a source operand. A constant gets a frame slot. A register must have the type's
 * size. */
uint32_t decode_source(decoder *dc, const ptx_operand *o, ptx_type type);
/* Frame offset of a destination operand. A sink (_) gets a scratch slot. */
uint32_t decode_destination(decoder *dc, const ptx_operand *o, ptx_type type);
/* Frame offset of a slot with this value in all lanes. */
uint32_t decode_constant(decoder *dc, uint64_t bits, ptx_type type);

/* An address operand: the elements of a frame slot (64 bits if wide, else 32) plus imm. */
typedef struct decoded_address {
    uint32_t slot;
    bool wide;
    int64_t imm;
} decoded_address;

bool decode_address(decoder *dc, const ptx_operand *o, decoded_address *out);

/* Where a parameter, result or variable of the function is stored, at *offset: in local memory
 * (true) or in the region of kernel parameters (false). */
bool decode_in_local(decoder *dc, const ptx_variable *v, uint64_t *offset);

/* Zeroed memory that is freed with the program. Running out of memory sets dc->out_of_memory. Up
 * to DECODE_SMALL bytes the result is not NULL even then, so callers need not check it. */
enum { DECODE_SMALL = 4096 };
void *decode_alloc(decoder *dc, size_t bytes);

/* ---- control ---- */

/* The handler evaluates the guard itself (branches). */
void decode_own_guard(decoder *dc);

/* The handler may block its lanes or make them diverge, so it cannot run inside exec_guarded.
 * decode emits a branch around it for the lanes whose guard does not hold. */
void decode_not_predicable(decoder *dc);

/* Reports invalid PTX: sets the error's reason. Returns NULL, for the select function to return. */
exec_fn decode_invalid(decoder *dc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Emits a hidden instruction after this one. */
void decode_emit_after(decoder *dc, insn hidden);

/* The target of a branch, by index in the function. It may be stored only in insn.target and
 * insn.reconverge, and in lists from decode_targets (NULL: out of memory): resolved after
 * decoding. */
const insn *decode_target(decoder *dc, uint32_t index);
const insn *decode_reconvergence_point(decoder *dc); /* of lanes that diverge here */
const insn **decode_targets(decoder *dc, uint32_t n);

const ptx_function *decode_caller(decoder *dc);
const program *decode_callee(decoder *dc, const ptx_function *function);

#endif
