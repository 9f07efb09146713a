/* The structs of DLPack's ABI, declared here instead of including its header
 * (https://dmlc.github.io/dlpack).
 *
 * There are two ways to get a dl_tensor:
 * - obj.__dlpack__(stream=..., max_version=...) returns a capsule that owns the tensor and its
 *   memory. It also makes the stream wait for the producer's stream. Producers that support
 *   DLPack 1 return a DL_CAPSULE_VERSIONED, whose flags tell whether the tensor is read-only.
 * - type(obj).__dlpack_c_exchange_api__ is a capsule with C functions, which fill a dl_tensor
 *   without calling Python and return the library's current stream (DLPack 1.3; PyTorch 2.11 has
 *   it).
 */
#ifndef SMK_DLPACK_H
#define SMK_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_COMPLEX = 5, DL_BOOL = 6 };

typedef struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
} dl_type;

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dims;
    dl_type type;
    int64_t *shape, *strides; /* strides in elements; NULL: C order */
    uint64_t byte_offset;
} dl_tensor;

enum { DL_MAJOR = 1, DL_MINOR = 3 }; /* the version that we support */
enum { DL_READ_ONLY = 1 };
#define DL_CAPSULE           "dltensor"
#define DL_CAPSULE_VERSIONED "dltensor_versioned"

typedef struct dl_versioned {
    uint32_t major, minor;
    void *manager, *deleter;
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

enum { DL_EXCHANGE_MAJOR = 1 };
#define DL_EXCHANGE_CAPSULE "dlpack_exchange_api"

typedef struct dl_exchange {
    uint32_t major, minor;
    const struct dl_exchange *older; /* of another major version */
    void (*allocate)(void);          /* this and the next two: not used here */
    void (*tensor_of_object)(void);
    void (*object_of_tensor)(void);
    /* Fills *out from an object; *out borrows its memory. -1 with a Python exception. May be
     * NULL. */
    int (*describe)(void *object, dl_tensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} dl_exchange;

#endif
