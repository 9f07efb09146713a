/* Which operands an instruction reads and which it writes: by position and opcode, as PTX defines. */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

/* These only write their first operand. Sorted. Not here: wgmma, whose accumulators are also sources,
 * and anything that is unknown; of these the first operand counts as read and written, which keeps
 * its register alive longer than need be and is never wrong. */
static const char *const writes_first[] = {
    "abs", "activemask", "add", "addc", "alloca", "and", "atom", "bfe", "bfi",
    "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos", "createpolicy", "cvt",
    "cvta", "div", "dp2a", "dp4a", "elect", "ex2", "fma", "fns", "getctarank",
    "isspacep", "istypep", "ld", "ldmatrix", "ldu", "lg2", "lop3", "mad", "mad24",
    "madc", "mapa", "match", "max", "mbarrier", "min", "mma", "mov", "movmatrix",
    "mul", "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "redux",
    "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shfl", "shl",
    "shr", "sin", "slct", "sqrt", "stacksave", "sub", "subc", "suld", "szext",
    "tanh", "testp", "tex", "tld4", "txq", "vote", "wmma", "xor",
};

/* These only read their first operand, although it can be a register. */
static const char *const reads_first[] = {"bar", "barrier", "brx", "call", "nanosleep", "stackrestore"};

static int compare(const void *opcode, const void *row) {
    return strcmp(opcode, *(const char *const *)row);
}

#define LISTED(opcode, list)                                                                       \
    (bsearch(opcode, list, sizeof(list) / sizeof *(list), sizeof *(list), compare) != NULL)

/* bar.red gives the threads' answer, call its results. */
static bool only_reads_first(const ptx_instruction *in) {
    if (!LISTED(in->opcode, reads_first)) return false;
    if (in->opcode[0] == 'c') return in->operands[0].kind != PTX_VECTOR;
    for (uint32_t i = 0; i < in->n_modifiers; i++)
        if (strcmp(in->modifiers[i], "red") == 0) return false;
    return true;
}

bool ptx_operand_is_destination(const ptx_instruction *in, uint32_t k) {
    if (k != 0 || in->n_operands == 0) return false;
    ptx_operand_kind kind = in->operands[0].kind;
    if (kind != PTX_REGISTER && kind != PTX_VECTOR && kind != PTX_SINK) return false;
    return !only_reads_first(in);
}

bool ptx_operand_is_source(const ptx_instruction *in, uint32_t k) {
    if (!ptx_operand_is_destination(in, k)) return true;
    return !LISTED(in->opcode, writes_first) && strcmp(in->opcode, "call") != 0;
}
