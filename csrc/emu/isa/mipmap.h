/* Samples of textures that may have several levels. */
#ifndef EMU_MIPMAP_H
#define EMU_MIPMAP_H

#include "sampler.h"

/* One level as a texture, whose form is in *form. */
bound_texture texture_level(const bound_texture *t, uint32_t level, smk_texture *form);
/* tex.base (level 0) and tex.level */
texel sample_mipmap(const bound_texture *t, const sample_point *p, float level);
/* tex.grad: the coordinates' steps to the next sample along x and along y. */
texel sample_gradients(const bound_texture *t, const sample_point *p,
                       const float step[2][SMK_TEXTURE_RANK]);

#endif
