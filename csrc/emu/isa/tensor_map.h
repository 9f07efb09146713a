/* The emulator's own encoding of tensor maps; see tensor_map.c. */
#ifndef EMU_TENSOR_MAP_H
#define EMU_TENSOR_MAP_H

#include "../../core/tensor_map.h"
#include "tile.h"

void tensor_map_encode(const smk_tensor_map *map, uint64_t address,
                       unsigned char out[SMK_TENSOR_MAP_BYTES]);

/* Decodes the tensor map at a generic address of the lane. Sets *out to its box at coordinates
 * `start`. False after a fault. */
bool tensor_map_open(warp *w, const insn *i, int lane, uint64_t address, uint32_t rank,
                     const int64_t *start, tile *out, smk_tensor_type *type);

#endif
