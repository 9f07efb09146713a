/* Textures and surfaces: arrays that kernels sample by coordinates, or access by element. Sizes and
 * coordinates are listed x first. The texels are in the order channels, x, y, z, faces, layers,
 * with a gap after each row at most. Of a mipmap these are the texels of level 0; the other levels
 * are behind it, each half as large as the one before.
 */
#ifndef SMK_TEXTURE_H
#define SMK_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* X(enumerator, name, bytes, kind: 'u' unsigned, 's' signed, 'f' float) */
#define SMK_TEXEL_TYPES(X)                                                                         \
    X(UINT8, "uint8", 1, 'u')                                                                      \
    X(INT8, "int8", 1, 's')                                                                        \
    X(UINT16, "uint16", 2, 'u')                                                                    \
    X(INT16, "int16", 2, 's')                                                                      \
    X(UINT32, "uint32", 4, 'u')                                                                    \
    X(INT32, "int32", 4, 's')                                                                      \
    X(FLOAT16, "float16", 2, 'f')                                                                  \
    X(FLOAT32, "float32", 4, 'f')

typedef enum smk_texel_type {
#define X(type, name, bytes, kind) SMK_TEXEL_##type,
    SMK_TEXEL_TYPES(X)
#undef X
        SMK_N_TEXEL_TYPES
} smk_texel_type;

typedef enum smk_address_mode {
    SMK_ADDRESS_CLAMP,
    SMK_ADDRESS_BORDER,
    SMK_ADDRESS_WRAP,
    SMK_ADDRESS_MIRROR,
    SMK_N_ADDRESS_MODES
} smk_address_mode;

enum { SMK_TEXTURE_RANK = 3, SMK_TEXTURE_CHANNELS = 4, SMK_CUBE_FACES = 6 };

/* Handles of the emulator have these high bits, which no address of a kernel has. */
static const uint64_t SMK_TEXTURE_HANDLE = 0xffff00ull << 40;

enum { SMK_NO_ARGUMENT = 0xffffffff };

typedef struct smk_texture {
    uint64_t handle; /* unique in the process */
    /* Where the kernel finds it: the parameter at this byte offset of the arguments receives the
     * handle, or instructions name this .texref or .surfref of the module (NULL: none). */
    uint32_t arg_offset; /* SMK_NO_ARGUMENT: none */
    const char *reference;
    uint32_t buffer; /* of the job, and ... */
    uint64_t offset; /* ... the first texel's byte in it */

    bool surface; /* else a texture, which is only read */
    smk_texel_type type;
    uint32_t channels; /* 1, 2 or 4 */
    uint32_t rank;     /* 1 to 3, without faces and layers */
    uint32_t size[SMK_TEXTURE_RANK];
    uint64_t row_bytes; /* from a row to the next; 0: rows are contiguous */
    bool cubemap, layered;
    uint32_t layers; /* 1 if not layered */

    smk_address_mode address[SMK_TEXTURE_RANK];
    bool linear;           /* filter; else the nearest texel */
    bool normalized;       /* coordinates from 0 to 1 */
    bool normalized_float; /* 8- and 16-bit integers read as floats of [0, 1] or [-1, 1] */
    float border[SMK_TEXTURE_CHANNELS];

    uint32_t levels;    /* of a mipmap; 0 means 1 */
    bool linear_levels; /* between levels; else the nearest one */
    float level_bias, min_level, max_level;
} smk_texture;

uint32_t smk_texel_type_bytes(smk_texel_type type);
char smk_texel_type_kind(smk_texel_type type);
const char *smk_texel_type_name(smk_texel_type type);

static inline uint32_t smk_texel_bytes(const smk_texture *t) {
    return smk_texel_type_bytes(t->type) * t->channels;
}

static inline uint64_t smk_texture_row_bytes(const smk_texture *t) {
    return t->row_bytes ? t->row_bytes : (uint64_t)t->size[0] * smk_texel_bytes(t);
}

static inline uint32_t smk_texture_levels(const smk_texture *t) {
    return t->levels ? t->levels : 1;
}
/* As many as its size allows. */
uint32_t smk_texture_max_levels(const smk_texture *t);
/* One level as a texture of its own, and where it begins. */
smk_texture smk_texture_level(const smk_texture *t, uint32_t level, uint64_t *offset);

/* From the first to the last texel. */
uint64_t smk_texture_bytes(const smk_texture *t);

/* Checks the rules of cuArray3DCreate and cuTexObjectCreate. Accepts arbitrary field values. */
smk_code smk_texture_check(const smk_texture *t, smk_status *status);

#endif
