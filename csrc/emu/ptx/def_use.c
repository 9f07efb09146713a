/* Def-use: which operands an instruction reads and writes, by opcode and operand position. */
#include "ptx.h"

static bool only_reads_first(const ptx_instruction *in) {
    switch (ptx_facts(in)->operands) {
    case OPERANDS_READS: return true;
    case OPERANDS_CALLS: return in->operands[0].kind != PTX_VECTOR;
    case OPERANDS_REDUCES: return !(in->has & PTX_HAS_RED);
    default: return false;
    }
}

bool ptx_operand_is_destination(const ptx_instruction *in, uint32_t k) {
    if (k != 0 || in->n_operands == 0) return false;
    ptx_operand_kind kind = in->operands[0].kind;
    if (kind != PTX_REGISTER && kind != PTX_VECTOR && kind != PTX_SINK) return false;
    return !only_reads_first(in);
}

bool ptx_operand_is_source(const ptx_instruction *in, uint32_t k) {
    if (!ptx_operand_is_destination(in, k)) return true;
    const ptx_operands operands = ptx_facts(in)->operands;
    return operands == OPERANDS_UPDATES || operands == OPERANDS_REDUCES;
}

bool ptx_may_write_in_place(const ptx_instruction *in) {
    return !in->guarded && in->n_operands > 0 && in->operands[0].kind == PTX_REGISTER &&
           !in->operands[0].pair && ptx_facts(in)->operands == OPERANDS_LANEWISE;
}
