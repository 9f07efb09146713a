/* Texels in memory, as the four 32-bit words of r, g, b, a that instructions read and write. */
#ifndef EMU_TEXEL_H
#define EMU_TEXEL_H

#include "../../core/texture.h"

typedef struct texel {
    uint32_t word[SMK_TEXTURE_CHANNELS];
} texel;

/* Integers extended to 32 bits, or bits of float32. Channels that the texture lacks are 0. */
texel texel_load(const smk_texture *t, const unsigned char *from);
texel texel_border(const smk_texture *t);

/* What an instruction reads for a loaded texel: integers of normalized_float become floats. */
texel texel_result(const smk_texture *t, texel loaded);

/* sust.p: words are converted to the surface's type, and the excess ones dropped. */
void texel_write(const smk_texture *t, unsigned char *to, const uint32_t words[]);

#endif
