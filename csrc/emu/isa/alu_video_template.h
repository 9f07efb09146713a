/* The video instructions that nvcc still makes (of __vabsdiffu4, __vsadu2, ...): differences of the
 * bytes or halves of two words, stored side by side or, with .add, summed up onto c. */
#include "alu.h"

/* Lane k of the word, as a signed or unsigned number. */
static inline int32_t part(uint32_t word, int k, int bits, bool is_signed) {
    const uint32_t raised = word << (32 - bits * (k + 1));
    return is_signed ? (int32_t)raised >> (32 - bits) : (int32_t)(raised >> (32 - bits));
}

enum { VIDEO_A_SIGNED = 1, VIDEO_B_SIGNED = 2, VIDEO_ADD = 4 };

static inline uint32_t differences(uint32_t a, uint32_t b, uint32_t c, uint32_t flags, int bits) {
    uint32_t packed = 0, sum = c;
    for (int k = 0; k < 32 / bits; k++) {
        const int32_t left = part(a, k, bits, flags & VIDEO_A_SIGNED);
        const int32_t right = part(b, k, bits, flags & VIDEO_B_SIGNED);
        const uint32_t apart = (uint32_t)(left > right ? left - right : right - left);
        packed |= (apart & ((1u << bits) - 1)) << bits * k;
        sum += apart;
    }
    return flags & VIDEO_ADD ? sum : packed;
}

LANEWISE(vabsdiff2_u32, u32, u32, u32, u32, differences(a, b, c, flags, 16))
LANEWISE(vabsdiff4_u32, u32, u32, u32, u32, differences(a, b, c, flags, 8))

/* The parts of a and b in their order, all of them stored: no masks and selectors. A signed
 * destination would matter to .sat alone, which is not known here. */
static exec_fn video(decoder *dc, const ptx_instruction *p, insn *out, exec_fn exec) {
    const ptx_type d = decode_take_type(dc), a = decode_take_type(dc), b = decode_take_type(dc);
    if (d != PTX_U32 || (a != PTX_U32 && a != PTX_S32) || (b != PTX_U32 && b != PTX_S32))
        return NULL;
    if (decode_take(dc, "add")) out->flags |= VIDEO_ADD;
    if (a == PTX_S32) out->flags |= VIDEO_A_SIGNED;
    if (b == PTX_S32) out->flags |= VIDEO_B_SIGNED;
    return alu_operands(dc, p, out, d, a, b, PTX_U32, PTX_NO_TYPE) ? exec : NULL;
}

static exec_fn select_vabsdiff2(decoder *dc, const ptx_instruction *p, insn *out) {
    return video(dc, p, out, vabsdiff2_u32);
}

static exec_fn select_vabsdiff4(decoder *dc, const ptx_instruction *p, insn *out) {
    return video(dc, p, out, vabsdiff4_u32);
}
