/* Tensor maps: cuTensorMapEncodeTiled writes the emulator's encoding. */
#include <string.h>

#include "driver.h"

typedef struct tiled {
    unsigned type, rank;
    const uint64_t *size, *stride;
    const uint32_t *box, *step;
    unsigned interleave, swizzle, fill;
} tiled;

static CUresult refuse(const tiled *t) {
    enum { LAST_TYPE = 15, LAST_INTERLEAVE = 2, LAST_SWIZZLE = 6 };
    if (t->type > LAST_TYPE || t->interleave > LAST_INTERLEAVE || t->swizzle > LAST_SWIZZLE)
        return CUDA_ERROR_INVALID_VALUE;
    report_unsupported("tensor maps with interleave, of 4- and 6-bit types, or sm_100's swizzles");
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult encode(CUtensorMap *out, const tiled *t, CUdeviceptr address) {
    enum { ALIGNMENT = 16 };
    smk_tensor_map map = {.rank = t->rank, .fill_nan = t->fill};
    smk_status status = {0};
    if (!out || (uintptr_t)out % SMK_TENSOR_MAP_ALIGN || !address || address % ALIGNMENT ||
        !t->rank || t->rank > SMK_TENSOR_RANK || !t->size || (t->rank > 1 && !t->stride) ||
        !t->box || !t->step || t->fill > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (t->type >= SMK_N_TENSOR_TYPES || t->swizzle >= SMK_N_SWIZZLES || t->interleave)
        return refuse(t);
    map.type = (smk_tensor_type)t->type;
    map.swizzle = (smk_swizzle)t->swizzle;
    for (unsigned d = 0; d < t->rank; d++) {
        map.size[d] = t->size[d];
        map.stride[d] = d ? t->stride[d - 1] : smk_tensor_type_bytes(map.type);
        map.box[d] = t->box[d];
        map.step[d] = t->step[d];
    }
    if (smk_tensor_map_check(&map, &status)) return CUDA_ERROR_INVALID_VALUE;
    emu_encode_tensor_map(&map, address, (unsigned char *)out);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *out, unsigned type, unsigned rank,
                                       void *address, const uint64_t *size, const uint64_t *stride,
                                       const uint32_t *box, const uint32_t *step,
                                       unsigned interleave, unsigned swizzle, unsigned promotion,
                                       unsigned fill) {
    enum { LAST_PROMOTION = 3 };
    const tiled t = {type, rank, size, stride, box, step, interleave, swizzle, fill};
    DRIVER_CALL(cuTensorMapEncodeTiled, NEED_NOTHING,
                promotion > LAST_PROMOTION ? CUDA_ERROR_INVALID_VALUE
                                           : encode(out, &t, (CUdeviceptr)(uintptr_t)address));
}
