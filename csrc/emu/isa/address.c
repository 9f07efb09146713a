/* Instructions that compute with addresses: cvta, isspacep, mapa, getctarank. */
#include "../machine/machine.h"

/* ---- cvta ----
 *
 * A .shared address is a plain offset (spaces.h): cvta adds its region, cvta.to removes it. In all
 * other spaces it equals the generic address; a bare offset gets its region added. */

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
    const ptx_space space = decode_take_space(dc);
    if (space == PTX_GENERIC || p->n_operands != 2) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_PRED);
    out->a = decode_source(dc, &p->operands[1], PTX_U64);
    out->imm = (int64_t)REGION_OF(space_address(space, 0));
    return exec_isspacep;
}

/* ---- clusters have one block, of rank 0: mapa returns its operand, getctarank returns 0 ---- */

static bool find_nonzero_rank(const warp *w, const insn *i, uint32_t *lane) {
    const uint32_t *rank = U32(w, i->b);
    for (uint32_t left = w->active; left; left &= left - 1) {
        *lane = (uint32_t)first_lane(left);
        if (rank[*lane]) return true;
    }
    return false;
}

static const insn *exec_mapa(warp *w, const insn *i) {
    uint32_t lane;
    if (find_nonzero_rank(w, i, &lane))
        return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                          "mapa names block %u of the cluster; the emulator runs clusters of one "
                          "block, whose rank is 0",
                          U32(w, i->b)[lane]);
    for (int l = 0; l < LANES; l++) {
        if (!w->mask[l]) continue;
        if (i->wide)
            U64(w, i->d)[l] = U64(w, i->a)[l];
        else
            U32(w, i->d)[l] = U32(w, i->a)[l];
    }
    return i + 1;
}

static exec_fn select_mapa(decoder *dc, const ptx_instruction *p, insn *out) {
    /* Without it the addresses are generic; the result is the same. */
    decode_take(dc, "shared::cluster");
    const ptx_type type = decode_take_type(dc);
    if ((type != PTX_U32 && type != PTX_U64) || p->n_operands != 3) return NULL;
    out->wide = type == PTX_U64;
    out->d = decode_destination(dc, &p->operands[0], type);
    out->a = decode_source(dc, &p->operands[1], type);
    out->b = decode_source(dc, &p->operands[2], PTX_U32);
    return exec_mapa;
}

static const insn *exec_rank(warp *w, const insn *i) {
    for (int l = 0; l < LANES; l++)
        if (w->mask[l]) U32(w, i->d)[l] = 0;
    return i + 1;
}

static exec_fn select_getctarank(decoder *dc, const ptx_instruction *p, insn *out) {
    decode_take(dc, "shared::cluster");
    const ptx_type type = decode_take_type(dc);
    if ((type != PTX_U32 && type != PTX_U64) || p->n_operands != 2) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_U32);
    out->a = decode_source(dc, &p->operands[1], type);
    return exec_rank;
}

opcode_table address_opcodes = {
    [PTX_OP_cvta] = select_cvta,
    [PTX_OP_isspacep] = select_isspacep,
    [PTX_OP_mapa] = select_mapa,
    [PTX_OP_getctarank] = select_getctarank,
};
