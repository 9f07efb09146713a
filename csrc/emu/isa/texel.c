/* Conversion between the types of texels and 32-bit words. */
#include "texel.h"

#include <string.h>

#include "alu_format.h"

static uint32_t word_of_float(double x) {
    return bits_of_f32((float)x);
}

/* An integer of the type, extended to 32 bits. */
static int32_t load_integer(smk_texel_type type, const unsigned char *from) {
    uint16_t two;
    uint32_t four;
    switch (type) {
    case SMK_TEXEL_UINT8: return *from;
    case SMK_TEXEL_INT8: return (int8_t)*from;
    case SMK_TEXEL_UINT16: memcpy(&two, from, sizeof two); return two;
    case SMK_TEXEL_INT16: memcpy(&two, from, sizeof two); return (int16_t)two;
    default: memcpy(&four, from, sizeof four); return (int32_t)four;
    }
}

texel texel_load(const smk_texture *t, const unsigned char *from) {
    texel out = {0};
    for (uint32_t c = 0; c < t->channels; c++, from += smk_texel_type_bytes(t->type)) {
        uint16_t half;
        memcpy(&half, from, t->type == SMK_TEXEL_FLOAT16 ? sizeof half : 0);
        out.word[c] = t->type == SMK_TEXEL_FLOAT16 ? word_of_float(value_f16(half))
                                                   : (uint32_t)load_integer(t->type, from);
    }
    return out;
}

/* The largest integer, which a normalized_float texture reads as 1. */
static int32_t largest(smk_texel_type type) {
    const uint32_t bits = 8 * smk_texel_type_bytes(type) - (smk_texel_type_kind(type) == 's');
    return (int32_t)((1u << bits) - 1);
}

/* An integer's bits of the border's float; with normalized_float the nearest integer, or the lower
 * one of two. */
static uint32_t border_integer(const smk_texture *t, float border) {
    const uint32_t bytes = smk_texel_type_bytes(t->type);
    if (!t->normalized_float) {
        const uint32_t bits = bits_of_f32(border);
        unsigned char memory[sizeof bits];
        memcpy(memory, &bits, sizeof bits);
        return bytes == sizeof bits ? bits : (uint32_t)load_integer(t->type, memory);
    }
    const double lowest = smk_texel_type_kind(t->type) == 's' ? -1 : 0;
    const double inside = border > lowest ? (border < 1 ? border : 1) : lowest;
    return (uint32_t)(int32_t)ceil(inside * largest(t->type) - 0.5);
}

/* What a float texture of that type can hold, rounded towards zero. */
static float border_float(const smk_texture *t, float border) {
    if (t->type != SMK_TEXEL_FLOAT16) return border;
    return value_f16((uint16_t)round_to_format(border, format_f16, ROUND_ZERO, false));
}

texel texel_border(const smk_texture *t) {
    texel out = {0};
    for (uint32_t c = 0; c < t->channels; c++)
        out.word[c] = smk_texel_type_kind(t->type) == 'f'
                          ? bits_of_f32(border_float(t, t->border[c]))
                          : border_integer(t, t->border[c]);
    return out;
}

/* Unsigned integers become 0 to 1, signed ones -1 to 1, where the lowest two values are both -1. */
texel texel_result(const smk_texture *t, texel loaded) {
    if (!t->normalized_float) return loaded;
    for (uint32_t c = 0; c < t->channels; c++) {
        const double x = (int32_t)loaded.word[c] / (double)largest(t->type);
        loaded.word[c] = word_of_float(x < -1 ? -1 : x);
    }
    return loaded;
}

/* ---- stores ---- */

static int64_t clamped(int64_t x, int64_t lowest, int64_t highest) {
    return x < lowest ? lowest : x > highest ? highest : x;
}

static uint32_t stored_bits(smk_texel_type type, uint32_t word) {
    switch (type) {
    case SMK_TEXEL_UINT8: return word > UINT8_MAX ? UINT8_MAX : word;
    case SMK_TEXEL_UINT16: return word > UINT16_MAX ? UINT16_MAX : word;
    case SMK_TEXEL_INT8: return (uint32_t)clamped((int32_t)word, INT8_MIN, INT8_MAX);
    case SMK_TEXEL_INT16: return (uint32_t)clamped((int32_t)word, INT16_MIN, INT16_MAX);
    case SMK_TEXEL_FLOAT16:
        if ((word & 0x7fffffff) > 0x7f800000) /* NaN keeps its high bits */
            return (word >> 16 & 0x8000) | 0x7c00 | (word >> 13 & 0x3ff);
        return round_to_format(f32_of_bits(word), format_f16, ROUND_ZERO, false);
    default: return word;
    }
}

void texel_write(const smk_texture *t, unsigned char *to, const uint32_t words[]) {
    const uint32_t bytes = smk_texel_type_bytes(t->type);
    for (uint32_t c = 0; c < t->channels; c++) {
        const uint32_t bits = stored_bits(t->type, words[c]);
        memcpy(to + c * bytes, &bits, bytes);
    }
}
