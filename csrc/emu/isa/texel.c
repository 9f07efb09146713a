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

/* Unsigned integers become 0 to 1, signed ones -1 to 1, where the lowest two values are both -1. */
static uint32_t normalized_word(smk_texel_type type, int32_t value) {
    const uint32_t bits = 8 * smk_texel_type_bytes(type);
    if (smk_texel_type_kind(type) == 'u') return word_of_float(value / (double)((1u << bits) - 1));
    const double x = value / (double)((1u << (bits - 1)) - 1);
    return word_of_float(x < -1 ? -1 : x);
}

static uint32_t load_word(const smk_texture *t, const unsigned char *from) {
    if (t->type == SMK_TEXEL_FLOAT16) {
        uint16_t half;
        memcpy(&half, from, sizeof half);
        return word_of_float(value_f16(half));
    }
    const int32_t value = load_integer(t->type, from);
    return t->normalized_float ? normalized_word(t->type, value) : (uint32_t)value;
}

static uint32_t one(const smk_texture *t) {
    return smk_texel_type_kind(t->type) == 'f' || t->normalized_float ? word_of_float(1) : 1;
}

texel texel_read(const smk_texture *t, const unsigned char *from) {
    texel out = {.word[3] = one(t)};
    for (uint32_t c = 0; c < t->channels; c++)
        out.word[c] = load_word(t, from + c * smk_texel_type_bytes(t->type));
    return out;
}

texel texel_border(const smk_texture *t) {
    texel out = {.word[3] = one(t)};
    for (uint32_t c = 0; c < t->channels; c++)
        out.word[c] = bits_of_f32(t->border[c]);
    return out;
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
        return round_to_format(f32_of_bits(word), format_f16, ROUND_NEAREST, false);
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
