/* Tensor maps, in the emulator's own encoding of the 128 bytes of a CUtensorMap.
 *
 * A kernel may copy a map, make one (tensor_map_edit.c) or fabricate one. So each use checks it by
 * the rules that apply on the host, and every access through it is checked against the launch's
 * memory like any other.
 */
#include "tensor_map.h"

#include <string.h>

#define MAGIC 0x70616d5f6b6d73ull

typedef struct encoded_map {
    uint64_t magic, address;
    uint64_t stride[SMK_TENSOR_RANK];
    uint64_t size[SMK_TENSOR_RANK];
    uint16_t box[SMK_TENSOR_RANK];
    uint8_t step[SMK_TENSOR_RANK];
    uint8_t type, rank, swizzle, fill_nan;
} encoded_map;

_Static_assert(sizeof(encoded_map) <= SMK_TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

void tensor_map_encode(const smk_tensor_map *map, uint64_t address,
                       unsigned char out[SMK_TENSOR_MAP_BYTES]) {
    encoded_map e;
    memset(&e, 0, sizeof e);
    e.magic = MAGIC;
    e.address = address;
    e.type = (uint8_t)map->type;
    e.rank = (uint8_t)map->rank;
    e.swizzle = (uint8_t)map->swizzle;
    e.fill_nan = map->fill_nan;
    for (uint32_t d = 0; d < map->rank; d++) {
        e.size[d] = map->size[d];
        e.stride[d] = map->stride[d];
        e.box[d] = (uint16_t)map->box[d];
        e.step[d] = (uint8_t)map->step[d];
    }
    memset(out, 0, SMK_TENSOR_MAP_BYTES);
    memcpy(out, &e, sizeof e);
}

/* ---- tensormap.replace ---- */

static uint64_t at_most(uint64_t value, uint64_t max) {
    return value < max ? value : max;
}

/* The types of tensormap.replace have other numbers than CUtensorMapDataType. Those that the
 * emulator does not have become an invalid one. */
static uint8_t replaced_type(uint64_t value) {
    static const uint8_t types[] = {SMK_TENSOR_UINT8,   SMK_TENSOR_UINT16,   SMK_TENSOR_UINT32,
                                    SMK_TENSOR_INT32,   SMK_TENSOR_UINT64,   SMK_TENSOR_INT64,
                                    SMK_TENSOR_FLOAT16, SMK_TENSOR_FLOAT32,  SMK_TENSOR_FLOAT32_FTZ,
                                    SMK_TENSOR_FLOAT64, SMK_TENSOR_BFLOAT16, SMK_TENSOR_TFLOAT32};
    return value < sizeof types ? types[value] : SMK_N_TENSOR_TYPES;
}

void tensor_map_replace(unsigned char map[SMK_TENSOR_MAP_BYTES], tensor_map_field field, uint32_t d,
                        uint64_t value) {
    encoded_map e;
    memcpy(&e, map, sizeof e);
    e.magic = MAGIC;
    switch (field) {
    case TENSOR_MAP_ADDRESS: e.address = value; break;
    case TENSOR_MAP_RANK: e.rank = (uint8_t)at_most(value, SMK_TENSOR_RANK) + 1; break;
    case TENSOR_MAP_BOX: e.box[d] = (uint16_t)at_most(value, UINT16_MAX); break;
    case TENSOR_MAP_SIZE: e.size[d] = value; break;
    case TENSOR_MAP_STRIDE: e.stride[d + 1] = value; break;
    case TENSOR_MAP_STEP: e.step[d] = (uint8_t)at_most(value, UINT8_MAX); break;
    case TENSOR_MAP_TYPE: e.type = replaced_type(value); break;
    case TENSOR_MAP_SWIZZLE: e.swizzle = (uint8_t)at_most(value, SMK_N_SWIZZLES); break;
    case TENSOR_MAP_FILL: e.fill_nan = value != 0; break;
    case TENSOR_MAP_NOTHING: break;
    }
    memcpy(map, &e, sizeof e);
}

/* ---- use ---- */

static uint64_t nan_bits(smk_tensor_type type) {
    switch (type) {
    case SMK_TENSOR_FLOAT64: return 0x7fffffffffffffff;
    case SMK_TENSOR_FLOAT32:
    case SMK_TENSOR_FLOAT32_FTZ:
    case SMK_TENSOR_TFLOAT32: return 0x7fffffff;
    default: return 0x7fff;
    }
}

/* ---- TFLOAT32 loads ----
 *
 * Elements are rounded to nearest, ties to even, also subnormal ones. Every NaN becomes the same
 * NaN. FLOAT32_FTZ changes nothing. Measured on an H100: validation/tensor_rounding.py. */

static uint32_t round_tf32(uint32_t x) {
    const uint32_t magnitude = x & 0x7fffffff, odd = x >> 13 & 1;
    if (magnitude > 0x7f800000) return 0x7fffe000;
    return magnitude == 0x7f800000 ? x : (x + 0xfff + odd) & 0xffffe000;
}

static void round_to_tf32(unsigned char *data, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += sizeof(uint32_t)) {
        uint32_t x;
        memcpy(&x, data + at, sizeof x);
        x = round_tf32(x);
        memcpy(data + at, &x, sizeof x);
    }
}

bool tensor_map_open(warp *w, const insn *i, int lane, uint64_t address, uint32_t rank,
                     const int64_t *start, tile *out, smk_tensor_type *type) {
    unsigned char bytes[SMK_TENSOR_MAP_BYTES];
    encoded_map e;
    for (uint32_t at = 0; at < sizeof bytes; at += TILE_CHUNK) {
        const unsigned char *from =
            lane_reach(w, i, PTX_GENERIC, lane, address + at, TILE_CHUNK, false);
        if (!from) return false;
        memcpy(bytes + at, from, TILE_CHUNK);
    }
    memcpy(&e, bytes, sizeof e);
    if (e.magic != MAGIC || address % SMK_TENSOR_MAP_ALIGN) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "there is no tensor map at 0x%llx; pass a smemkern.TensorMap to a parameter "
                   "`const __grid_constant__ CUtensorMap` and use its address",
                   (unsigned long long)address);
        return false;
    }
    smk_status status = {0};
    smk_tensor_map map = {.type = (smk_tensor_type)e.type,
                          .rank = e.rank,
                          .swizzle = (smk_swizzle)e.swizzle,
                          .fill_nan = e.fill_nan};
    for (uint32_t d = 0; d < SMK_TENSOR_RANK; d++) {
        map.size[d] = e.size[d], map.stride[d] = e.stride[d];
        map.box[d] = e.box[d], map.step[d] = e.step[d];
    }
    if (smk_tensor_map_check(&map, &status)) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane, "%s", status.message);
        return false;
    }
    if (e.address % TILE_CHUNK) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "the tensor map's address 0x%llx is not a multiple of %d",
                   (unsigned long long)e.address, TILE_CHUNK);
        return false;
    }
    if (map.rank != rank) {
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "a copy of %u dimensions uses a tensor map of %u dimensions", rank, map.rank);
        return false;
    }
    *type = map.type;
    *out = (tile){.space = PTX_GLOBAL,
                  .address = e.address,
                  .rank = rank,
                  .element_bytes = smk_tensor_type_bytes(map.type),
                  .span = map.swizzle ? (uint32_t)TILE_CHUNK << map.swizzle : 0,
                  .fill = map.fill_nan ? nan_bits(map.type) : 0,
                  .after_load = map.type == SMK_TENSOR_TFLOAT32 ? round_to_tf32 : NULL};
    for (uint32_t d = 0; d < rank; d++) {
        out->count[d] = (map.box[d] + map.step[d] - 1) / map.step[d];
        out->step[d] = map.step[d];
        out->start[d] = start[d];
        out->size[d] = map.size[d];
        out->stride[d] = map.stride[d];
    }
    return true;
}
