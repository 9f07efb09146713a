/* The emulator's own encoding of tensor maps; see tensor_map.c. */
#ifndef EMU_TENSOR_MAP_H
#define EMU_TENSOR_MAP_H

#include "../../core/tensor_map.h"
#include "tile.h"

void tensor_map_encode(const smk_tensor_map *map, uint64_t address,
                       unsigned char out[SMK_TENSOR_MAP_BYTES]);

typedef enum tensor_map_field {
    TENSOR_MAP_ADDRESS,
    TENSOR_MAP_RANK,
    TENSOR_MAP_BOX,
    TENSOR_MAP_SIZE,
    TENSOR_MAP_STRIDE,
    TENSOR_MAP_STEP,
    TENSOR_MAP_TYPE,
    TENSOR_MAP_SWIZZLE,
    TENSOR_MAP_FILL,
    TENSOR_MAP_NOTHING
} tensor_map_field;

/* Sets a field, with the values of tensormap.replace. d: of which dimension, for the fields that
 * each dimension has; strides are those of dimension d + 1. The other bytes may be anything. */
void tensor_map_replace(unsigned char map[SMK_TENSOR_MAP_BYTES], tensor_map_field field, uint32_t d,
                        uint64_t value);

/* Decodes the tensor map at a generic address of the lane. Sets *out to its box at coordinates
 * `start`. False after a fault. */
bool tensor_map_open(warp *w, const insn *i, int lane, uint64_t address, uint32_t rank,
                     const int64_t *start, tile *out, smk_tensor_type *type);

#endif
