/* createpolicy. The emulator has no caches to guide, and the PTX ISA calls the value opaque: it is
 * 0 here. */
#include "../machine/machine.h"
#include "../base/lanes.h"

static const insn *exec_policy(warp *w, const insn *i) {
    for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1)
        U64(w, i->d)[first_lane(lanes)] = 0;
    return i + 1;
}

/* L2::evict_last.L2::evict_first: the priority of some accesses, and that of the others. */
static bool take_priorities(decoder *dc) {
    static const char *const primary[] = {"L2::evict_last", "L2::evict_normal", "L2::evict_first",
                                          "L2::evict_unchanged"};
    static const char *const secondary[] = {"L2::evict_first", "L2::evict_unchanged"};
    bool found = false;
    for (size_t k = 0; k < sizeof primary / sizeof *primary && !found; k++)
        found = decode_take(dc, primary[k]);
    for (size_t k = 0; k < sizeof secondary / sizeof *secondary; k++)
        if (decode_take(dc, secondary[k])) break;
    return found;
}

static bool take_fraction(decoder *dc, const ptx_instruction *p) {
    if (!take_priorities(dc) || p->n_operands > 2) return false;
    if (p->n_operands == 2) decode_source(dc, &p->operands[1], PTX_F32);
    return true;
}

static bool take_range(decoder *dc, const ptx_instruction *p) {
    decoded_address start;
    decode_take(dc, "global");
    if (!take_priorities(dc) || p->n_operands != 4) return false;
    decode_source(dc, &p->operands[2], PTX_U32);
    decode_source(dc, &p->operands[3], PTX_U32);
    return decode_address(dc, &p->operands[1], &start);
}

static bool take_property(decoder *dc, const ptx_instruction *p) {
    if (!decode_take(dc, "L2") || p->n_operands != 2) return false;
    decode_source(dc, &p->operands[1], PTX_B64);
    return true;
}

static exec_fn select_createpolicy(decoder *dc, const ptx_instruction *p, insn *out) {
    const bool valid = decode_take(dc, "fractional") ? take_fraction(dc, p)
                       : decode_take(dc, "range") ? take_range(dc, p)
                                                  : decode_take(dc, "cvt") && take_property(dc, p);
    if (!valid || !p->n_operands || decode_take_type(dc) != PTX_B64) return NULL;
    out->d = decode_destination(dc, &p->operands[0], PTX_B64);
    return exec_policy;
}

opcode_table cache_policy_opcodes = {[PTX_OP_createpolicy] = select_createpolicy};
