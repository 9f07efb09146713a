/* Tensor maps: descriptions of tensors in global memory for TMA copies. The driver, or the
 * emulator, encodes one in the 128 bytes of a CUtensorMap. Dimensions are listed innermost first.
 */
#ifndef SMK_TENSOR_MAP_H
#define SMK_TENSOR_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "status.h"

/* X(enumerator, name, bytes, is floating point); in the order of CUtensorMapDataType */
#define SMK_TENSOR_TYPES(X)                                                                        \
    X(UINT8, "uint8", 1, false)                                                                    \
    X(UINT16, "uint16", 2, false)                                                                  \
    X(UINT32, "uint32", 4, false)                                                                  \
    X(INT32, "int32", 4, false)                                                                    \
    X(UINT64, "uint64", 8, false)                                                                  \
    X(INT64, "int64", 8, false)                                                                    \
    X(FLOAT16, "float16", 2, true)                                                                 \
    X(FLOAT32, "float32", 4, true)                                                                 \
    X(FLOAT64, "float64", 8, true)                                                                 \
    X(BFLOAT16, "bfloat16", 2, true)                                                               \
    X(FLOAT32_FTZ, "float32_ftz", 4, true) /* denormals load as 0 */                               \
    X(TFLOAT32, "tfloat32", 4, true)       /* loads round to tf32 */

typedef enum smk_tensor_type {
#define X(type, name, bytes, is_float) SMK_TENSOR_##type,
    SMK_TENSOR_TYPES(X)
#undef X
        SMK_N_TENSOR_TYPES
} smk_tensor_type;

enum { SMK_TENSOR_RANK = 5, SMK_TENSOR_MAP_BYTES = 128, SMK_TENSOR_MAP_ALIGN = 64 };

/* In the order of CUtensorMapSwizzle. */
typedef enum smk_swizzle {
    SMK_SWIZZLE_NONE,
    SMK_SWIZZLE_32B,
    SMK_SWIZZLE_64B,
    SMK_SWIZZLE_128B,
    SMK_N_SWIZZLES
} smk_swizzle;

typedef struct smk_tensor_map {
    /* The place of the map: byte offset in the arguments. The job also has a pointer at this
     * offset, to the tensor; the device overwrites it with the encoded map. Or, if `in_buffer`, a
     * buffer of SMK_TENSOR_MAP_BYTES with host memory, which the device writes before it uses the
     * buffer. */
    uint32_t arg_offset;
    bool in_buffer;
    uint32_t buffer, tensor_buffer; /* if in_buffer: of the map, and of the tensor ... */
    uint64_t tensor_offset;         /* ... and where in that buffer the tensor begins */
    smk_tensor_type type;
    uint32_t rank;
    uint64_t size[SMK_TENSOR_RANK];
    uint64_t stride[SMK_TENSOR_RANK]; /* bytes; stride[0] is the element's size */
    uint32_t box[SMK_TENSOR_RANK];    /* elements of the tensor that a box spans */
    uint32_t step[SMK_TENSOR_RANK];   /* element stride: a copy takes every step-th element */
    smk_swizzle swizzle;
    bool fill_nan; /* elements outside the tensor read as NaN, not as 0 */
} smk_tensor_map;

uint32_t smk_tensor_type_bytes(smk_tensor_type type);
bool smk_tensor_type_is_float(smk_tensor_type type);
const char *smk_tensor_type_name(smk_tensor_type type);
/* By NumPy's name. TMA has no signed 8- and 16-bit types; they are copied as unsigned ones. False:
 * there is none. */
bool smk_tensor_type_find(const char *name, smk_tensor_type *out);

/* Checks the driver's rules for cuTensorMapEncodeTiled without interleave. Accepts arbitrary field
 * values. */
smk_code smk_tensor_map_check(const smk_tensor_map *map, smk_status *status);

#endif
