/* cvt.pack: two integers, clamped to few bits and packed; the bits of c are placed above them. */
#include "alu.h"

typedef struct packing {
    uint32_t bits;
    int32_t min, max;
} packing;

static const insn *cvt_pack(warp *w, const insn *in) {
    const packing *format = in->extra;
    const lane_s32 *pa = LANE_POINTER(s32, w, in->a), *pb = LANE_POINTER(s32, w, in->b);
    const lane_u32 *pc = LANE_POINTER(u32, w, in->c);
    const uint32_t field = (1u << format->bits) - 1;
    lanes_u32 results;
    EACH_LANE {
        const int32_t a = pa[lane] < format->min ? format->min : pa[lane];
        const int32_t b = pb[lane] < format->min ? format->min : pb[lane];
        const uint32_t high = (uint32_t)(a > format->max ? format->max : a) & field;
        const uint32_t low = (uint32_t)(b > format->max ? format->max : b) & field;
        const uint32_t above = format->bits == 16 ? 0 : pc[lane] << 2 * format->bits;
        results[lane] = above | high << format->bits | low;
    }
    STORE_LANES(u32, w, in->d, results);
    return in + 1;
}

static exec_fn select_cvt_pack(decoder *dc, const ptx_instruction *p, insn *out) {
    static const struct {
        const char *name;
        packing format;
    } forms[] = {
        {"u16", {16, 0, 0xffff}}, {"s16", {16, -0x8000, 0x7fff}},
        {"u8", {8, 0, 0xff}},     {"s8", {8, -0x80, 0x7f}},
        {"u4", {4, 0, 0xf}},      {"s4", {4, -8, 7}},
        {"u2", {2, 0, 3}},        {"s2", {2, -2, 1}},
    };
    if (!decode_take(dc, "sat")) return NULL;
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        if (!decode_take(dc, forms[k].name)) continue;
        const bool has_c = forms[k].format.bits < 16;
        out->extra = &forms[k].format;
        if (decode_take_type(dc) != PTX_S32 || (has_c && decode_take_type(dc) != PTX_B32) ||
            !alu_operands(dc, p, out, PTX_B32, PTX_S32, PTX_S32, has_c ? PTX_B32 : PTX_NO_TYPE,
                          PTX_NO_TYPE))
            return NULL;
        return cvt_pack;
    }
    return NULL;
}
