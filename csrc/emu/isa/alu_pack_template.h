/* cvt.pack: two integers clamped to few bits and put side by side, above them the bits of c. */
#include "alu.h"

typedef struct packing {
    uint32_t bits;
    int32_t least, largest;
} packing;

static const insn *cvt_pack(warp *w, const insn *in) {
    const packing *how = in->extra;
    const lane_s32 *pa = LANE_POINTER(s32, w, in->a), *pb = LANE_POINTER(s32, w, in->b);
    const lane_u32 *pc = LANE_POINTER(u32, w, in->c);
    const uint32_t field = (1u << how->bits) - 1;
    lanes_u32 results;
    EACH_LANE {
        const int32_t a = pa[lane] < how->least ? how->least : pa[lane];
        const int32_t b = pb[lane] < how->least ? how->least : pb[lane];
        const uint32_t high = (uint32_t)(a > how->largest ? how->largest : a) & field;
        const uint32_t low = (uint32_t)(b > how->largest ? how->largest : b) & field;
        const uint32_t above = how->bits == 16 ? 0 : pc[lane] << 2 * how->bits;
        results[lane] = above | high << how->bits | low;
    }
    STORE_LANES(u32, w, in->d, results);
    return in + 1;
}

static exec_fn select_cvt_pack(decoder *dc, const ptx_instruction *p, insn *out) {
    static const struct {
        const char *name;
        packing how;
    } forms[] = {
        {"u16", {16, 0, 0xffff}}, {"s16", {16, -0x8000, 0x7fff}},
        {"u8", {8, 0, 0xff}},     {"s8", {8, -0x80, 0x7f}},
        {"u4", {4, 0, 0xf}},      {"s4", {4, -8, 7}},
        {"u2", {2, 0, 3}},        {"s2", {2, -2, 1}},
    };
    if (!decode_take(dc, "sat")) return NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (!decode_take(dc, forms[k].name)) continue;
        const bool has_c = forms[k].how.bits < 16;
        out->extra = &forms[k].how;
        if (decode_take_type(dc) != PTX_S32 || (has_c && decode_take_type(dc) != PTX_B32) ||
            !alu_operands(dc, p, out, PTX_B32, PTX_S32, PTX_S32, has_c ? PTX_B32 : PTX_NO_TYPE,
                          PTX_NO_TYPE))
            return NULL;
        return cvt_pack;
    }
    return NULL;
}
