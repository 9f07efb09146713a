/* Checks tensor maps, for both devices. Source: CUDA driver API, "Tensor Map Object Managment". */
#include "tensor_map.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
    bool is_float;
} types[] = {
#define X(type, name, bytes, is_float) {name, bytes, is_float},
    SMK_TENSOR_TYPES(X)
#undef X
};

enum { MAX_BOX = 256, MAX_STEP = 8, UNIT = 16 };

uint32_t smk_tensor_type_bytes(smk_tensor_type type) {
    return types[type].bytes;
}
bool smk_tensor_type_is_float(smk_tensor_type type) {
    return types[type].is_float;
}
const char *smk_tensor_type_name(smk_tensor_type type) {
    return types[type].name;
}

bool smk_tensor_type_find(const char *name, smk_tensor_type *out) {
    if (strcmp(name, "int8") == 0) name = "uint8";
    if (strcmp(name, "int16") == 0) name = "uint16";
    for (unsigned type = 0; type < SMK_N_TENSOR_TYPES; type++) {
        if (strcmp(name, types[type].name)) continue;
        *out = (smk_tensor_type)type;
        return true;
    }
    return false;
}

static smk_code check_dimension(const smk_tensor_map *map, uint32_t d, smk_status *status) {
    if (map->size[d] < 1 || map->size[d] > 1ull << 32)
        return smk_fail(status, SMK_VALUE,
                        "tensor map: dimension %u from the innermost has %llu elements; it must "
                        "have 1 to 2^32",
                        d, (unsigned long long)map->size[d]);
    if (map->box[d] < 1 || map->box[d] > MAX_BOX)
        return smk_fail(status, SMK_VALUE,
                        "tensor map: the box has %u elements in dimension %u from the innermost; "
                        "it must have 1 to %d",
                        map->box[d], d, MAX_BOX);
    if (map->step[d] < 1 || map->step[d] > MAX_STEP || (d == 0 && map->step[d] != 1))
        return smk_fail(status, SMK_VALUE,
                        "tensor map: the element stride of dimension %u from the innermost is %u; "
                        "it must be 1 to %d, and 1 in the innermost",
                        d, map->step[d], MAX_STEP);
    if (d > 0 && (map->stride[d] % UNIT || map->stride[d] >= 1ull << 40))
        return smk_fail(status, SMK_VALUE,
                        "tensor map: the elements of dimension %u from the innermost are %llu "
                        "bytes apart; that must be a multiple of %d below 2^40 (pad the rows)",
                        d, (unsigned long long)map->stride[d], UNIT);
    return SMK_OK;
}

smk_code smk_tensor_map_check(const smk_tensor_map *map, smk_status *status) {
    if ((unsigned)map->type >= SMK_N_TENSOR_TYPES || (unsigned)map->swizzle >= SMK_N_SWIZZLES)
        return smk_fail(status, SMK_VALUE, "tensor map: no such element type or swizzle");
    if (map->rank < 1 || map->rank > SMK_TENSOR_RANK)
        return smk_fail(status, SMK_VALUE, "tensor map: a tensor of %u dimensions; it has 1 to %d",
                        map->rank, SMK_TENSOR_RANK);
    for (uint32_t d = 0; d < map->rank; d++)
        if (check_dimension(map, d, status)) return status->code;
    const uint32_t inner = map->box[0] * types[map->type].bytes;
    if (inner % UNIT)
        return smk_fail(status, SMK_VALUE,
                        "tensor map: the box's innermost dimension has %u bytes (%u of %s); it "
                        "must be a multiple of %d",
                        inner, map->box[0], types[map->type].name, UNIT);
    const uint32_t span = map->swizzle ? UNIT << map->swizzle : 0;
    if (span && inner > span)
        return smk_fail(status, SMK_VALUE,
                        "tensor map: the box's innermost dimension has %u bytes, more than the "
                        "%u bytes of the swizzle",
                        inner, span);
    if (map->fill_nan && !types[map->type].is_float)
        return smk_fail(status, SMK_VALUE, "tensor map: %s has no NaN to fill with",
                        types[map->type].name);
    return SMK_OK;
}
