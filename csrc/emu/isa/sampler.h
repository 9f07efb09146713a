/* What a texture gives at given coordinates: address modes, filtering, cube faces. */
#ifndef EMU_SAMPLER_H
#define EMU_SAMPLER_H

#include "../machine/machine.h"
#include "texel.h"

/* Coordinates of one lane; `integer` is of x, y, z where the instruction's type is .s32. */
typedef struct sample_point {
    union {
        float x[SMK_TEXTURE_RANK];
        int32_t integer[SMK_TEXTURE_RANK];
    };
    int32_t offset[SMK_TEXTURE_RANK]; /* texels that are added */
    uint32_t layer;
} sample_point;

texel sample_float(const bound_texture *t, const sample_point *p);
/* Outside is 0, whatever the address mode; or clamped. */
texel sample_integer(const bound_texture *t, const sample_point *p, bool clamp);
/* tld4: one channel of the four texels that a linear filter in two dimensions would weigh. */
texel sample_gather(const bound_texture *t, const sample_point *p, uint32_t channel);

#endif
