/* Which operands an instruction reads and which it writes: by position and opcode, as PTX defines.
 */
#include <stdlib.h>
#include <string.h>

#include "ptx.h"

/* Two lists of opcodes that only write their first operand; both sorted. In neither: wgmma, whose
 * accumulators are also sources, and anything unknown; of these the first operand counts as read
 * and written, which keeps its register alive longer than need be and is never wrong. */

/* A lane's result depends on nothing but that lane's sources. */
static const char *const lane_by_lane[] = {
    "abs",   "add", "and",  "bfe",   "bfi",  "bfind", "brev",  "clz",  "cnot", "copysign",
    "cos",   "cvt", "div",  "dp2a",  "dp4a", "ex2",   "fma",   "lg2",  "lop3", "mad",
    "mad24", "max", "min",  "mov",   "mul",  "mul24", "neg",   "not",  "or",   "popc",
    "prmt",  "rcp", "rem",  "rsqrt", "sad",  "selp",  "set",   "setp", "shf",  "shl",
    "shr",   "sin", "slct", "sqrt",  "sub",  "tanh",  "testp", "xor",
};

static const char *const writes_first[] = {
    "activemask", "addc", "alloca",     "atom",     "bmsk",     "createpolicy", "cvta",
    "elect",      "fns",  "getctarank", "isspacep", "istypep",  "ld",           "ldmatrix",
    "ldu",        "madc", "mapa",       "match",    "mbarrier", "mma",          "movmatrix",
    "redux",      "shfl", "stacksave",  "subc",     "suld",     "szext",        "tex",
    "tld4",       "txq",  "vote",       "wmma",
};

/* These only read their first operand, although it can be a register. */
static const char *const reads_first[] = {"bar",  "barrier",   "brx",
                                          "call", "nanosleep", "stackrestore"};

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
    return !LISTED(in->opcode, writes_first) && !LISTED(in->opcode, lane_by_lane) &&
           strcmp(in->opcode, "call") != 0;
}

bool ptx_may_write_in_place(const ptx_instruction *in) {
    return !in->guarded && in->n_operands > 0 && in->operands[0].kind == PTX_REGISTER &&
           !in->operands[0].pair && LISTED(in->opcode, lane_by_lane);
}
