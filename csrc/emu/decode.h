/* What the instruction files of control and memory ask of decode.c beyond exec.h. */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "program.h"
#include "spaces.h"

/* The operand's address: a frame slot, whose elements are 64 bits if wide, plus imm. */
typedef struct decoded_address {
    uint32_t slot;
    bool wide;
    int64_t imm;
} decoded_address;

bool decode_address(decoder *dc, const ptx_operand *o, decoded_address *out);

/* The modifiers .global, .shared{::cta}, ...; PTX_GENERIC if there is none. */
ptx_space decode_take_space(decoder *dc);

/* The instruction looks at its guard itself (branches). */
void decode_own_guard(decoder *dc);

/* The instruction may stop or split its lanes, so a guard must not be wrapped around it: decode jumps
 * over it where the guard does not hold. */
void decode_apart(decoder *dc);

/* The instruction is not valid PTX: says why. Returns NULL, as a select function then does. */
exec_fn decode_refuse(decoder *dc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A hidden instruction that stands behind this one. */
void decode_follow(decoder *dc, insn follow);

/* A branch to an instruction; valid in insn.target and in lists from decode_targets (NULL: out of
 * memory). */
const insn *decode_target(decoder *dc, uint32_t index);
const insn *decode_meeting_point(decoder *dc); /* of the lanes that part here */
const insn **decode_targets(decoder *dc, uint32_t n);

const ptx_function *decode_caller(decoder *dc);
const program *decode_callee(decoder *dc, const ptx_function *function);

/* Frame slot of a value that each frame has for itself (program.h, enum slot_kind). */
uint32_t decode_special(decoder *dc, unsigned kind, uint32_t bytes, int64_t addend);

/* Where a parameter, result or variable of the function lies: in local memory (true) or in the
 * region of kernel parameters, at *offset. */
bool decode_in_local(decoder *dc, const ptx_variable *v, uint64_t *offset);

#endif
