/* The opcode cp: asynchronous copies of every kind. */
#include "bulk.h"
#include "copy_async.h"

static exec_fn select_bulk(decoder *dc, const ptx_instruction *p, insn *out) {
    const exec_fn group = bulk_select_group(dc, p, out);
    if (group) return group;
    const bool prefetch = decode_take(dc, "prefetch");
    if (decode_take(dc, "tensor"))
        return (prefetch ? tensor_prefetch_select : tensor_copy_select)(dc, p, out);
    return (prefetch ? bulk_prefetch_select : bulk_select)(dc, p, out);
}

static exec_fn select_reduce(decoder *dc, const ptx_instruction *p, insn *out) {
    if (!decode_take(dc, "async") || !decode_take(dc, "bulk")) return NULL;
    return (decode_take(dc, "tensor") ? tensor_reduce_select : bulk_reduce_select)(dc, p, out);
}

static exec_fn select_cp(decoder *dc, const ptx_instruction *p, insn *out) {
    if (decode_take(dc, "reduce")) return select_reduce(dc, p, out);
    if (!decode_take(dc, "async")) return NULL;
    if (decode_take(dc, "mbarrier")) return bulk_select_arrival(dc, p, out);
    return (decode_take(dc, "bulk") ? select_bulk : copy_async_select)(dc, p, out);
}

opcode_table copy_opcodes = {[PTX_OP_cp] = select_cp};
