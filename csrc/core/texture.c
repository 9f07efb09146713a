/* Checks textures. Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability" (sizes); CUDA driver API, cuTexObjectCreate. */
#include "texture.h"

static const struct {
    const char *name;
    uint32_t bytes;
    char kind;
} types[] = {
#define X(type, name, bytes, kind) {name, bytes, kind},
    SMK_TEXEL_TYPES(X)
#undef X
};

uint32_t smk_texel_type_bytes(smk_texel_type type) {
    return types[type].bytes;
}
char smk_texel_type_kind(smk_texel_type type) {
    return types[type].kind;
}
const char *smk_texel_type_name(smk_texel_type type) {
    return types[type].name;
}

static uint64_t bytes_of_one(const smk_texture *t) {
    uint64_t rows = (uint64_t)t->layers * (t->cubemap ? SMK_CUBE_FACES : 1);
    for (uint32_t d = 1; d < t->rank; d++)
        rows *= t->size[d];
    return (rows - 1) * smk_texture_row_bytes(t) + (uint64_t)t->size[0] * smk_texel_bytes(t);
}

uint32_t smk_texture_max_levels(const smk_texture *t) {
    uint32_t largest = 1, n = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->size[d] > largest) largest = t->size[d];
    while (largest >>= 1)
        n++;
    return n;
}

smk_texture smk_texture_level(const smk_texture *t, uint32_t level, uint64_t *offset) {
    enum { ALIGNMENT = 16 }; /* of a texel */
    smk_texture one = *t;
    one.levels = 1;
    *offset = 0;
    for (uint32_t k = 0; k < level; k++) {
        *offset = (*offset + bytes_of_one(&one) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        for (uint32_t d = 0; d < t->rank; d++)
            if (one.size[d] > 1) one.size[d] /= 2;
    }
    return one;
}

uint64_t smk_texture_bytes(const smk_texture *t) {
    uint64_t offset;
    const smk_texture last = smk_texture_level(t, smk_texture_levels(t) - 1, &offset);
    return offset + bytes_of_one(&last);
}

/* Largest sizes, x first. One dimension without layers may be linear memory, which is larger than
 * an array. */
static const uint32_t *size_limits(const smk_texture *t) {
    static const uint32_t line[] = {1u << 28}, plane[] = {131072, 65536},
                          box[] = {16384, 16384, 16384}, layered[] = {32768, 32768};
    if (t->layered || t->cubemap) return layered;
    return t->rank == 1 ? line : t->rank == 2 ? plane : box;
}

static smk_code check_size(const smk_texture *t, smk_status *status) {
    enum { MAX_LAYERS = 2048, MAX_CUBES = 2046 / SMK_CUBE_FACES };
    if (t->rank < 1 || t->rank > SMK_TEXTURE_RANK || ((t->layered || t->cubemap) && t->rank > 2))
        return smk_fail(status, SMK_VALUE,
                        "a texture has 1 to 3 dimensions, each layer 1 or 2, not %u", t->rank);
    if (t->cubemap && (t->rank != 2 || t->size[0] != t->size[1]))
        return smk_fail(status, SMK_VALUE, "the faces of a cubemap must be square");
    const uint32_t *limit = size_limits(t);
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->size[d] < 1 || t->size[d] > limit[d])
            return smk_fail(status, SMK_VALUE,
                            "a texture of %u texels along %c; here it must have 1 to %u",
                            t->size[d], 'x' + (int)d, limit[d]);
    const uint32_t layers = t->cubemap ? MAX_CUBES : MAX_LAYERS;
    if (t->layers < 1 || (t->layered ? t->layers > layers : t->layers != 1))
        return smk_fail(status, SMK_VALUE, "a texture of %u layers; it must have 1 to %u",
                        t->layers, t->layered ? layers : 1);
    return SMK_OK;
}

smk_code smk_texture_check(const smk_texture *t, smk_status *status) {
    if ((unsigned)t->type >= SMK_N_TEXEL_TYPES)
        return smk_fail(status, SMK_VALUE, "no such type of texels");
    if (t->channels != 1 && t->channels != 2 && t->channels != 4)
        return smk_fail(status, SMK_VALUE, "a texel has 1, 2 or 4 channels, not %u", t->channels);
    for (uint32_t d = 0; d < SMK_TEXTURE_RANK; d++)
        if ((unsigned)t->address[d] >= SMK_N_ADDRESS_MODES)
            return smk_fail(status, SMK_VALUE, "no such address mode");
    if (check_size(t, status)) return status->code;
    if (t->levels > smk_texture_max_levels(t) ||
        (t->levels > 1 && (t->row_bytes || !t->normalized)))
        return smk_fail(status, SMK_VALUE,
                        "a mipmap has 1 to %u levels here, normalized coordinates, and no gaps "
                        "between rows",
                        smk_texture_max_levels(t));
    const bool integer = types[t->type].kind != 'f', small = types[t->type].bytes < 4;
    if (t->normalized_float && !(integer && small))
        return smk_fail(status, SMK_VALUE,
                        "read=\"normalized_float\" is for integers of 8 or 16 bits, not for %s",
                        types[t->type].name);
    if ((t->linear || t->linear_levels) && integer && !t->normalized_float)
        return smk_fail(status, SMK_VALUE,
                        "filter=\"linear\" is for floats; read %s with read=\"normalized_float\"%s",
                        types[t->type].name,
                        small ? "" : ", which 32-bit integers do not have: use filter=\"point\"");
    return SMK_OK;
}
