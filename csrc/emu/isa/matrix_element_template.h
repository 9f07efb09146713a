/* Conversion between fragments' registers and arrays. */
#include "matrix.h"

/* ---- floating point: significand and exponent ---- */

ALWAYS_INLINE void split_as(float_format format, bool has_infinity, const uint32_t *bits,
                            uint32_t count, float *significand, int32_t *exponent) {
    const uint32_t top = (1u << format.exponent) - 1;
    const int32_t bias = (1 << (format.exponent - 1)) - 1;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t mantissa = bits[k] & ((1u << format.mantissa) - 1);
        const uint32_t biased = bits[k] >> format.mantissa & top;
        const uint32_t sign = (bits[k] & format.sign) != 0 ? 0x80000000 : 0;
        const float whole = f32_of_bits(0x3f800000 | mantissa << (23 - format.mantissa));
        const float x = biased ? whole : whole - 1;
        const bool special = has_infinity ? biased == top : (bits[k] & format.nan) == format.nan;
        const uint32_t infinity_or_nan = mantissa ? NAN_F32 : 0x7f800000;
        const uint32_t magnitude = special ? infinity_or_nan : bits_of_f32(x);
        significand[k] = f32_of_bits(magnitude | sign);
        exponent[k] = x == 0 ? ZERO_EXPONENT : (int32_t)(biased ? biased : 1) - bias;
    }
}

static void split_elements(matrix_element e, const uint32_t *bits, uint32_t count,
                           float *significand, int32_t *exponent) {
    switch (e) {
    case ELEMENT_F16: split_as(format_f16, true, bits, count, significand, exponent); break;
    case ELEMENT_BF16: split_as(format_bf16, true, bits, count, significand, exponent); break;
    case ELEMENT_TF32: split_as(format_tf32, true, bits, count, significand, exponent); break;
    case ELEMENT_E4M3: split_as(format_e4m3, false, bits, count, significand, exponent); break;
    case ELEMENT_E5M2: split_as(format_e5m2, true, bits, count, significand, exponent); break;
    default: split_as(format_f32, true, bits, count, significand, exponent); break;
    }
}

/* ---- integers ---- */

static void extend_elements(matrix_element e, const uint32_t *bits, uint32_t count, int32_t *out) {
    const uint32_t unused = 32 - element_bits(e);
    const bool is_signed = e == ELEMENT_S8 || e == ELEMENT_S4;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t top = bits[k] << unused;
        out[k] = is_signed ? (int32_t)top >> unused : (int32_t)(top >> unused);
    }
}

/* ---- registers ---- */

/* Element `which` of a register, in all lanes. For tf32, hardware reads the upper 19 bits. */
ALWAYS_INLINE void take_elements(matrix_element e, const uint32_t *words, uint32_t which,
                                 uint32_t *bits) {
    const uint32_t size = element_bits(e);
    const uint32_t shift = e == ELEMENT_TF32 ? 13 : which * size;
    const uint32_t mask = size < 32 ? (1u << size) - 1 : ~0u;
    EACH_LANE bits[lane] = words[lane] >> shift & mask;
}

/* Unpacks a fragment's elements, as bits, to their positions in the array. */
static void unpack_bits(const warp *w, const uint32_t *slots, const fragment_layout *layout,
                        matrix_element e, uint32_t *out) {
    uint32_t bits[2][LANES];
    for (uint32_t r = 0; r < layout->n_distinct; r++) {
        const uint32_t *words = U32(w, slots[r]);
        const uint16_t *at = layout->index[r];
        if (layout->per_register == 1) {
            take_elements(e, words, 0, bits[0]);
            for (int lane = 0; lane < LANES; lane++)
                out[at[lane]] = bits[0][lane];
        }
        for (uint32_t which = 0; which + 1 < layout->per_register; which += 2) {
            uint32_t *pairs = out + layout_offset(layout, which);
            take_elements(e, words, which, bits[0]);
            take_elements(e, words, which + 1, bits[1]);
            for (int lane = 0; lane < LANES; lane++) {
                pairs[at[lane]] = bits[0][lane];
                pairs[at[lane] + layout->element_step] = bits[1][lane];
            }
        }
    }
}

static void unpack_f64(const warp *w, const uint32_t *slots, const fragment_layout *layout,
                       double *out) {
    for (uint32_t r = 0; r < layout->n_distinct; r++)
        for (int lane = 0; lane < LANES; lane++)
            out[layout->index[r][lane]] = F64(w, slots[r])[lane];
}

static void pack_words(warp *w, const uint32_t *slots, const fragment_layout *layout,
                       const uint32_t *bits) {
    for (uint32_t r = 0; r < layout->n_registers; r++) {
        uint32_t *d = U32(w, slots[r]);
        const uint16_t *at = layout->index[r % layout->n_distinct];
        for (int lane = 0; lane < LANES; lane++)
            d[lane] = layout->per_register == 1
                          ? bits[at[lane]]
                          : packed_u16x2(bits[at[lane]], bits[at[lane] + layout->element_step]);
    }
}

static void pack_f64(warp *w, const uint32_t *slots, const fragment_layout *layout,
                     const double *value) {
    for (uint32_t r = 0; r < layout->n_registers; r++)
        for (int lane = 0; lane < LANES; lane++)
            F64(w, slots[r])[lane] = value[layout->index[r][lane]];
}
