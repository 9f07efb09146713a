/* Arguments of a launch that are tensor maps. */
#include <string.h>

#include "session.h"

enum { NUMBERS = 4, UNIT = 16 };

static bool is_count(double x, double max) {
    return x >= 0 && x <= max && x == (double)(uint64_t)x;
}

static smk_code read_dimensions(const double *given, smk_tensor_map *map) {
    static const char *const names[NUMBERS] = {"size", "stride", "box", "element stride"};
    static const double max[NUMBERS] = {0x1p32, 0x1p40, INT32_MAX, INT32_MAX};
    for (uint32_t d = 0; d < map->rank; d++, given += NUMBERS) {
        for (int k = 0; k < NUMBERS; k++)
            if (!is_count(given[k], max[k]))
                return smk_fail(&session.status, SMK_VALUE,
                                "tensor map: the %s of dimension %u from the innermost is %g; it "
                                "must be a whole number",
                                names[k], d, given[k]);
        map->size[d] = (uint64_t)given[0];
        map->stride[d] = (uint64_t)given[1];
        map->box[d] = (uint32_t)given[2];
        map->step[d] = (uint32_t)given[3];
    }
    map->stride[0] = smk_tensor_type_bytes(map->type);
    return SMK_OK;
}

static smk_code read_swizzle(uint32_t bytes, smk_tensor_map *map) {
    for (uint32_t k = SMK_SWIZZLE_32B; k < SMK_N_SWIZZLES && bytes; k++)
        if (bytes == (uint32_t)UNIT << k) map->swizzle = (smk_swizzle)k;
    if (bytes && !map->swizzle)
        return smk_fail(&session.status, SMK_VALUE,
                        "tensor map: a swizzle of %u bytes; it is 0, 32, 64 or 128", bytes);
    return SMK_OK;
}

/* Whether the tensor is inside of its buffer, and where TMA can read it. */
static smk_code check_place(const smk_tensor_map *map, int buffer, double offset) {
    const size_t bytes = lab_buffer_bytes(buffer);
    uint64_t end = smk_tensor_type_bytes(map->type);
    bool inside = true;
    for (uint32_t d = 0; d < map->rank; d++)
        if (map->stride[d] && map->size[d] - 1 > bytes / map->stride[d])
            inside = false;
        else
            end += (map->size[d] - 1) * map->stride[d];
    if (!is_count(offset, 0x1p32) || (uint64_t)offset % UNIT)
        return smk_fail(&session.status, SMK_VALUE,
                        "tensor map: the tensor begins at byte %g of its array; that must be a "
                        "multiple of %d",
                        offset, UNIT);
    if (!inside || end > bytes || (uint64_t)offset > bytes - end)
        return smk_fail(&session.status, SMK_VALUE,
                        "tensor map: the tensor ends after its array of %zu bytes", bytes);
    return SMK_OK;
}

/* The parameter is a map, or a pointer to one in a buffer of its own. */
static smk_code place(uint32_t number, const emu_parameter *p, smk_tensor_map *map, int buffer,
                      uint64_t offset) {
    map->arg_offset = p->offset;
    if (p->size == SMK_TENSOR_MAP_BYTES)
        return session_add_pointer(number, p->offset, buffer, offset);
    const int own = lab_buffer(SMK_TENSOR_MAP_BYTES, SMK_IN);
    if (own < 0) return session.status.code;
    map->in_buffer = true;
    map->buffer = (uint32_t)own;
    map->tensor_buffer = (uint32_t)buffer;
    map->tensor_offset = offset;
    return session_add_pointer(number, p->offset, own, 0);
}

int lab_argument_tensor(uint32_t parameter, int buffer, double offset, const char *type,
                        uint32_t rank, const double *dimensions, uint32_t swizzle, int fill_nan) {
    session_begin();
    smk_tensor_map map = {.rank = rank, .fill_nan = fill_nan};
    const emu_parameter *p = session_parameter(parameter);
    if (!p) return session_end();
    if (p->size != SMK_TENSOR_MAP_BYTES && p->size != sizeof(uint64_t))
        return smk_fail(&session.status, SMK_VALUE,
                        "argument %u is a tensor map, but the kernel's parameter has %u bytes; it "
                        "must be a CUtensorMap, of %d, or a pointer to one",
                        parameter + 1, p->size, SMK_TENSOR_MAP_BYTES);
    if (!lab_buffer_at(buffer))
        return smk_fail(&session.status, SMK_VALUE, "there is no buffer %d", buffer);
    if (!smk_tensor_type_find(type, &map.type))
        return smk_fail(&session.status, SMK_VALUE, "tensor map: there is no type '%.100s'", type);
    if (rank < 1 || rank > SMK_TENSOR_RANK)
        return smk_fail(&session.status, SMK_VALUE,
                        "tensor map: a tensor of %u dimensions; it has 1 to %d", rank,
                        SMK_TENSOR_RANK);
    if (read_dimensions(dimensions, &map) || read_swizzle(swizzle, &map) ||
        smk_tensor_map_check(&map, &session.status) || check_place(&map, buffer, offset) ||
        place(parameter, p, &map, buffer, (uint64_t)offset))
        return session_end();
    session.tensor_maps[session.n_tensor_maps++] = map;
    return session_end();
}
