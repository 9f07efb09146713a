/* What instructions on textures and on surfaces share: the texture operand, and its coordinates. */
#ifndef EMU_ISA_TEXTURE_H
#define EMU_ISA_TEXTURE_H

#include "../machine/machine.h"

/* .1d, .2d, ... */
typedef struct geometry {
    const char *name;
    uint8_t rank; /* of coordinates, without the layer */
    bool layered, cubemap;
} geometry;

/* [texture, {coordinates}] */
typedef struct texture_operand {
    const geometry *geometry;
    decoded_address handle;
    uint32_t coordinate[SMK_TEXTURE_RANK]; /* frame offsets */
    uint32_t layer;
} texture_operand;

/* Takes the modifier and the operand. False: not supported. */
bool texture_decode(decoder *dc, const ptx_operand *o, texture_operand *out);

/* The lane's texture, of the instruction's geometry unless that is NULL. NULL: warp_fault has been
 * called. */
const bound_texture *texture_of_lane(warp *w, const insn *i, const texture_operand *o, int lane,
                                     bool surface);

#endif
