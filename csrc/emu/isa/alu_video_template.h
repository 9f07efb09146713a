/* The video instructions that nvcc still emits (for __vabsdiffu4, __vsadu2, ...): absolute
 * differences of the bytes or halves of two words, packed into a word or, with .add, added to c.
 */
#include "alu.h"

/* Byte or half k of the word, sign- or zero-extended. */
static inline int32_t extract_element(uint32_t word, int k, int bits, bool is_signed) {
    const uint32_t raised = word << (32 - bits * (k + 1));
    return is_signed ? (int32_t)raised >> (32 - bits) : (int32_t)(raised >> (32 - bits));
}

enum { VIDEO_A_SIGNED = 1, VIDEO_B_SIGNED = 2, VIDEO_ADD = 4 };

static inline uint32_t absolute_differences(uint32_t a, uint32_t b, uint32_t c, uint32_t flags,
                                            int bits) {
    uint32_t packed = 0, sum = c;
    for (int k = 0; k < 32 / bits; k++) {
        const int32_t left = extract_element(a, k, bits, flags & VIDEO_A_SIGNED);
        const int32_t right = extract_element(b, k, bits, flags & VIDEO_B_SIGNED);
        const uint32_t difference = (uint32_t)(left > right ? left - right : right - left);
        packed |= (difference & ((1u << bits) - 1)) << bits * k;
        sum += difference;
    }
    return flags & VIDEO_ADD ? sum : packed;
}

LANEWISE(vabsdiff2_u32, u32, u32, u32, u32, absolute_differences(a, b, c, flags, 16))
LANEWISE(vabsdiff4_u32, u32, u32, u32, u32, absolute_differences(a, b, c, flags, 8))

/* All bytes or halves, in order: masks and selectors are not supported. The sign of the destination
 * matters only with .sat, which is not supported either. */
static exec_fn select_vabsdiff(decoder *dc, const ptx_instruction *p, insn *out, exec_fn exec) {
    const ptx_type d = decode_take_type(dc), a = decode_take_type(dc), b = decode_take_type(dc);
    if (d != PTX_U32 || (a != PTX_U32 && a != PTX_S32) || (b != PTX_U32 && b != PTX_S32))
        return NULL;
    if (decode_take(dc, "add")) out->flags |= VIDEO_ADD;
    if (a == PTX_S32) out->flags |= VIDEO_A_SIGNED;
    if (b == PTX_S32) out->flags |= VIDEO_B_SIGNED;
    return alu_operands(dc, p, out, d, a, b, PTX_U32, PTX_NO_TYPE) ? exec : NULL;
}

static exec_fn select_vabsdiff2(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_vabsdiff(dc, p, out, vabsdiff2_u32);
}

static exec_fn select_vabsdiff4(decoder *dc, const ptx_instruction *p, insn *out) {
    return select_vabsdiff(dc, p, out, vabsdiff4_u32);
}
