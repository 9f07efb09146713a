/* Texels in memory, as the four 32-bit words of r, g, b, a that instructions read and write. */
#ifndef EMU_TEXEL_H
#define EMU_TEXEL_H

#include "../../core/texture.h"

typedef struct texel {
    uint32_t word[SMK_TEXTURE_CHANNELS];
} texel;

/* Integers are extended, or converted to floats if the texture is read as normalized_float; float16
 * is converted to float32. Channels that the texture lacks are 0, and a is 1. */
texel texel_read(const smk_texture *t, const unsigned char *from);
texel texel_border(const smk_texture *t);

/* sust.p: words are converted to the surface's type, and the excess ones dropped. */
void texel_write(const smk_texture *t, unsigned char *to, const uint32_t words[]);

#endif
