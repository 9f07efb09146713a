/* Instructions that compute with addresses: cvta, isspacep, mapa, getctarank. */
#include "../machine/machine.h"

/* ---- cvta ----
 *
 * A .shared address has no region (spaces.h): cvta adds it, cvta.to removes it. In all
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
        return space == PTX_SHARED || space == PTX_SHARED_CLUSTER ? exec_to_shared
                                                                  : exec_to_generic;
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
        const bool own = !i->flags || WINDOW_OF(a[l]) == w->block->rank;
        const bool is = i->imm == REGION_NONE ? global : id == (uint64_t)i->imm && own;
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
    out->flags = space == PTX_SHARED; /* .shared::cta: the block's own */
    return exec_isspacep;
}

/* ---- mapa, getctarank ---- */

static uint64_t lane_operand(const warp *w, const insn *i, int lane) {
    return i->wide ? U64(w, i->a)[lane] : U32(w, i->a)[lane];
}

/* flags: the addresses are of .shared::cluster, else generic. */
static bool check_shared(warp *w, const insn *i, int lane, uint64_t address) {
    if (REGION_OF(address) == (i->flags ? REGION_NONE : REGION_SHARED)) return true;
    warp_fault(w, i, SMK_LAUNCH, 1u << lane, "0x%llx is not an address in shared memory",
               (unsigned long long)address);
    return false;
}

static const insn *exec_mapa(warp *w, const insn *i) {
    const uint32_t n = w->block->launch->cluster_blocks;
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_operand(w, i, lane);
        const uint32_t rank = U32(w, i->b)[lane];
        if (rank >= n)
            return warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                              "mapa names block %u of the cluster, whose ranks are 0 to %u", rank,
                              n - 1);
        if (!check_shared(w, i, lane, address)) return NULL;
        const uint64_t there =
            REGION_BASE(REGION_OF(address)) + WINDOW_BASE(rank) + WINDOW_OFFSET(address);
        if (i->wide)
            U64(w, i->d)[lane] = there;
        else
            U32(w, i->d)[lane] = (uint32_t)there;
    }
    return i + 1;
}

static bool take_shared_type(decoder *dc, insn *out, ptx_type *type) {
    *type = decode_take_type(dc);
    out->wide = *type == PTX_U64;
    out->flags = decode_take(dc, "shared::cluster") || !out->wide;
    return *type == PTX_U64 || *type == PTX_U32;
}

static exec_fn select_mapa(decoder *dc, const ptx_instruction *p, insn *out) {
    ptx_type type;
    if (!take_shared_type(dc, out, &type) || p->n_operands != 3) return NULL;
    out->d = decode_destination(dc, &p->operands[0], type);
    out->a = decode_source(dc, &p->operands[1], type);
    out->b = decode_source(dc, &p->operands[2], PTX_U32);
    return exec_mapa;
}

static const insn *exec_rank(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
        const int lane = first_lane(lanes);
        const uint64_t address = lane_operand(w, i, lane);
        if (!check_shared(w, i, lane, address)) return NULL;
        U32(w, i->d)[lane] = (uint32_t)WINDOW_OF(address);
    }
    return i + 1;
}

static exec_fn select_getctarank(decoder *dc, const ptx_instruction *p, insn *out) {
    ptx_type type;
    if (!take_shared_type(dc, out, &type) || p->n_operands != 2) return NULL;
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
