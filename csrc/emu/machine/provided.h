/* Functions that the CUDA driver provides: a call runs a handler in place of PTX. */
#ifndef EMU_PROVIDED_H
#define EMU_PROVIDED_H

#include "insn.h"

typedef struct provided_function {
    const char *name;
    const char *parameters, *results; /* a digit: so many bytes; d: a dim3 */
    exec_fn handler;
} provided_function;

/* Copies the first `bytes` of a lane's argument k, as it was passed in a call site. */
void provided_read(const warp *w, const insn *i, int lane, uint32_t k, void *out, size_t bytes);
/* The lane's argument k, a scalar of at most 8 bytes. */
uint64_t provided_argument(const warp *w, const insn *i, int lane, uint32_t k);

/* To be called before provided_return. False: out of memory; warp_fault has been called. */
bool provided_reserve_result(warp *w, const insn *i);
/* The lane's result: at most 8 bytes. */
void provided_return(warp *w, int lane, const void *result, size_t bytes);

#endif
