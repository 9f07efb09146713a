/* Instructions that compute with addresses: cvta and isspacep. */
#include "decode.h"
#include "block.h"

/* ---- cvta: only .shared has addresses of its own (spaces.h); other spaces' offsets are completed ---- */

static const insn *exec_to_generic(warp *w, const insn *i) {
    const uint64_t *a = U64(w, i->a);
    uint64_t *d = U64(w, i->d);
    const uint64_t base = (uint64_t)i->imm;
    for (int l = 0; l < LANES; l++) {
        const uint64_t full = REGION_OF(a[l]) ? a[l] : a[l] + base;
        d[l] = w->mask[l] ? full : d[l];
    }
    return i + 1;
}

static const insn *exec_to_shared(warp *w, const insn *i) {
    const uint64_t *a = U64(w, i->a);
    uint64_t *d = U64(w, i->d);
    for (int l = 0; l < LANES; l++) {
        const uint64_t offset = REGION_OF(a[l]) == REGION_SHARED ? REGION_OFFSET(a[l]) : a[l];
        d[l] = w->mask[l] ? offset : d[l];
    }
    return i + 1;
}

static exec_fn select_cvta(decoder *dc, const ptx_instruction *p, insn *out) {
    const bool to = decode_take(dc, "to");
    const ptx_space space = decode_take_space(dc);
    if (!decode_take(dc, "u64") || space == PTX_GENERIC || p->n_operands != 2) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_U64);
    out->a = decode_source(dc, &p->operands[1], PTX_U64);
    if (to) {
        out->imm = 0;
        return space == PTX_SHARED ? exec_to_shared : exec_to_generic;
    }
    out->imm = (int64_t)space_address(space, 0);
    return exec_to_generic;
}

static const insn *exec_isspacep(warp *w, const insn *i) {
    const uint64_t *a = U64(w, i->a);
    uint32_t *d = PRED(w, i->d);
    for (int l = 0; l < LANES; l++) {
        const uint64_t id = REGION_OF(a[l]);
        const bool global = id >= REGION_GLOBAL || id == REGION_NONE;
        const bool is = i->imm == REGION_NONE ? global : id == (uint64_t)i->imm;
        d[l] = w->mask[l] ? 0u - (uint32_t)is : d[l];
    }
    return i + 1;
}

static exec_fn select_isspacep(decoder *dc, const ptx_instruction *p, insn *out) {
    const bool cluster = decode_take(dc, "shared::cluster"); /* a cluster of one */
    const ptx_space space = cluster ? PTX_SHARED : decode_take_space(dc);
    if (space == PTX_GENERIC || p->n_operands != 2) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_PRED);
    out->a = decode_source(dc, &p->operands[1], PTX_U64);
    out->imm = (int64_t)REGION_OF(space_address(space, 0));
    return exec_isspacep;
}

const opcode_row address_opcodes[] = {
    {"cvta", select_cvta},
    {"isspacep", select_isspacep},
    {NULL, NULL},
};
