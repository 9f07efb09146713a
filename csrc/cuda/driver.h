/* The part of the CUDA driver API that smemkern uses. Declared here instead of in cuda.h, so that
 * the package builds without the toolkit's headers.
 *
 * Functions are looked up by name and by the CUDA version that introduced the signature below.
 * Newer drivers still return that signature.
 */
#ifndef SMK_CUDA_DRIVER_H
#define SMK_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "../core/status.h"

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st *CUarray;
typedef struct CUtexref_st *CUtexref;
typedef struct CUsurfref_st *CUsurfref;
typedef unsigned long long CUtexObject, CUsurfObject;

/* Results that the code compares with; errors.c lists the others. */
typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600
} CUresult;

typedef enum CUdevice_attribute {
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
} CUdevice_attribute;

typedef enum CUfunction_attribute {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5, /* virtual architecture it was compiled for: 90 */
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
} CUfunction_attribute;

typedef enum CUpointer_attribute {
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2, /* CUmemorytype; fails for memory unknown to the driver */
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9
} CUpointer_attribute;

typedef enum CUmemorytype {
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    CU_MEMORYTYPE_ARRAY = 3
} CUmemorytype;

/* A 2-D copy. Of source and destination, only the fields of their memory type are read. */
typedef struct CUDA_MEMCPY2D {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    void *srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    void *dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

/* One side of a 3-D copy: host or device memory by rows, or an array. */
typedef struct copy_side {
    size_t x_bytes, y, z, level;
    CUmemorytype kind;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    void *reserved;
    size_t pitch, height;
} copy_side;

typedef struct CUDA_MEMCPY3D {
    copy_side src, dst;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef enum CUarray_format {
    CU_AD_FORMAT_UNSIGNED_INT8 = 1,
    CU_AD_FORMAT_UNSIGNED_INT16 = 2,
    CU_AD_FORMAT_UNSIGNED_INT32 = 3,
    CU_AD_FORMAT_SIGNED_INT8 = 8,
    CU_AD_FORMAT_SIGNED_INT16 = 9,
    CU_AD_FORMAT_SIGNED_INT32 = 10,
    CU_AD_FORMAT_HALF = 16,
    CU_AD_FORMAT_FLOAT = 32
} CUarray_format;

/* Height 0: 1-D, or layers of it. Depth 0: 1-D or 2-D; else planes, layers, or faces of cubes. */
typedef struct CUDA_ARRAY3D_DESCRIPTOR {
    size_t Width, Height, Depth;
    CUarray_format Format;
    unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef enum CUresourcetype {
    CU_RESOURCE_TYPE_ARRAY = 0,
    CU_RESOURCE_TYPE_LINEAR = 2
} CUresourcetype;

/* What a texture or surface object reads. */
typedef struct CUDA_RESOURCE_DESC {
    CUresourcetype resType;
    union {
        CUarray array;
        struct {
            CUdeviceptr address;
            CUarray_format format;
            unsigned channels;
            size_t bytes;
        } linear;
        int reserved[32];
    } res;
    unsigned flags;
} CUDA_RESOURCE_DESC;

typedef enum CUaddress_mode {
    CU_TR_ADDRESS_MODE_WRAP = 0,
    CU_TR_ADDRESS_MODE_CLAMP = 1,
    CU_TR_ADDRESS_MODE_MIRROR = 2,
    CU_TR_ADDRESS_MODE_BORDER = 3
} CUaddress_mode;

typedef struct CUDA_TEXTURE_DESC {
    CUaddress_mode addressMode[3];
    int filterMode; /* 0 point, 1 linear */
    unsigned flags, maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
    int reserved[12];
} CUDA_TEXTURE_DESC;

typedef enum CUjit_option {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
} CUjit_option;

typedef enum CUmemPool_attribute {
    CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3, /* int */
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4,                 /* uint64_t, like those below */
    CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT = 5,
    CU_MEMPOOL_ATTR_USED_MEM_CURRENT = 7
} CUmemPool_attribute;

typedef struct CUmemPoolProps {
    int alloc_type;
    int handle_types;
    int location_type;
    int location_id;
    void *security_attributes;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

/* Access of a device to a pool's memory. */
typedef struct CUmemAccessDesc {
    int location_type;
    int location_id;
    int flags;
} CUmemAccessDesc;

typedef enum CUlaunchAttributeID {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
} CUlaunchAttributeID;

typedef struct CUlaunchAttribute {
    CUlaunchAttributeID id;
    char padding[4];
    union {
        int allowed; /* programmaticStreamSerializationAllowed, cooperative */
        unsigned cluster[3];
        char bytes[64];
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned n_attributes;
} CUlaunchConfig;

enum {
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_STREAM_WAIT_VALUE_GEQ = 0,
    CUDA_ARRAY3D_LAYERED = 1,
    CUDA_ARRAY3D_SURFACE_LDST = 2,
    CUDA_ARRAY3D_CUBEMAP = 4,
    CUDA_ARRAY3D_TEXTURE_GATHER = 8,
    CU_TRSA_OVERRIDE_FORMAT = 1,
    CU_TRSF_READ_AS_INTEGER = 1,
    CU_TRSF_NORMALIZED_COORDINATES = 2
};

/* X(function, version of the signature, arguments) */
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit, 2000, (unsigned flags))                                                              \
    X(cuDriverGetVersion, 2020, (int *version))                                                    \
    X(cuGetErrorName, 6000, (CUresult result, const char **name))                                  \
    X(cuGetErrorString, 6000, (CUresult result, const char **text))                                \
    X(cuDeviceGetCount, 2000, (int *count))                                                        \
    X(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                         \
    X(cuDeviceGetName, 2000, (char *name, int size, CUdevice device))                              \
    X(cuDeviceTotalMem, 3020, (size_t *bytes, CUdevice device))                                    \
    X(cuDeviceGetAttribute, 2000, (int *value, CUdevice_attribute attribute, CUdevice device))     \
    X(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                      \
    X(cuCtxPushCurrent, 4000, (CUcontext context))                                                 \
    X(cuCtxPopCurrent, 4000, (CUcontext * context))                                                \
    X(cuMemGetInfo, 3020, (size_t *free, size_t *total))                                           \
    X(cuMemAlloc, 3020, (CUdeviceptr * address, size_t bytes))                                     \
    X(cuMemFree, 3020, (CUdeviceptr address))                                                      \
    X(cuMemHostAlloc, 2020, (void **memory, size_t bytes, unsigned flags))                         \
    X(cuMemFreeHost, 2000, (void *memory))                                                         \
    X(cuMemHostRegister, 6050, (void *memory, size_t bytes, unsigned flags))                       \
    X(cuMemHostUnregister, 4000, (void *memory))                                                   \
    X(cuPointerGetAttributes, 7000,                                                                \
      (unsigned n, CUpointer_attribute *attributes, void **values, CUdeviceptr address))           \
    X(cuPointerGetAttribute, 4000,                                                                 \
      (void *value, CUpointer_attribute attribute, CUdeviceptr address))                           \
    X(cuMemPoolCreate, 11020, (CUmemoryPool * pool, const CUmemPoolProps *props))                  \
    X(cuMemPoolDestroy, 11020, (CUmemoryPool pool))                                                \
    X(cuMemPoolSetAttribute, 11020,                                                                \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolGetAttribute, 11020,                                                                \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolSetAccess, 11020, (CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t n))   \
    X(cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t bytes))                                   \
    X(cuMemAllocFromPoolAsync, 11020,                                                              \
      (CUdeviceptr * address, size_t bytes, CUmemoryPool pool, CUstream stream))                   \
    X(cuMemFreeAsync, 11020, (CUdeviceptr address, CUstream stream))                               \
    X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))  \
    X(cuMemcpyDtoHAsync, 3020, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))        \
    X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))  \
    X(cuMemcpy2DAsync, 3020, (const CUDA_MEMCPY2D *copy, CUstream stream))                         \
    X(cuStreamCreate, 2000, (CUstream * stream, unsigned flags))                                   \
    X(cuStreamDestroy, 4000, (CUstream stream))                                                    \
    X(cuStreamQuery, 2000, (CUstream stream))                                                      \
    X(cuStreamSynchronize, 2000, (CUstream stream))                                                \
    X(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags))                   \
    X(cuStreamWriteValue32, 11070,                                                                 \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags))                      \
    X(cuStreamWaitValue32, 11070,                                                                  \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned flags))                      \
    X(cuThreadExchangeStreamCaptureMode, 10010, (int *mode))                                       \
    X(cuEventCreate, 2000, (CUevent * event, unsigned flags))                                      \
    X(cuEventDestroy, 4000, (CUevent event))                                                       \
    X(cuEventRecord, 2000, (CUevent event, CUstream stream))                                       \
    X(cuEventQuery, 2000, (CUevent event))                                                         \
    X(cuEventElapsedTime, 2000, (float *milliseconds, CUevent start, CUevent stop))                \
    X(cuModuleLoadDataEx, 2010,                                                                    \
      (CUmodule * module, const void *image, unsigned n_options, CUjit_option *options,            \
       void **values))                                                                             \
    X(cuModuleUnload, 2000, (CUmodule module))                                                     \
    X(cuModuleGetFunction, 2000, (CUfunction * function, CUmodule module, const char *name))       \
    X(cuFuncGetAttribute, 2020, (int *value, CUfunction_attribute attribute, CUfunction function)) \
    X(cuFuncSetAttribute, 9000, (CUfunction function, CUfunction_attribute attribute, int value))  \
    X(cuLaunchKernelEx, 11060,                                                                     \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))

/* NULL if the driver lacks them. Their callers report what is not possible then. */
#define OPTIONAL_DRIVER_FUNCTIONS(X)                                                               \
    X(cuMemcpy3DAsync, 3020, (const CUDA_MEMCPY3D *copy, CUstream stream))                         \
    X(cuArray3DCreate, 3020, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *description))        \
    X(cuArrayDestroy, 2000, (CUarray array))                                                       \
    X(cuTexObjectCreate, 5000,                                                                     \
      (CUtexObject * object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture, \
       const void *view))                                                                          \
    X(cuTexObjectDestroy, 5000, (CUtexObject object))                                              \
    X(cuSurfObjectCreate, 5000, (CUsurfObject * object, const CUDA_RESOURCE_DESC *resource))       \
    X(cuSurfObjectDestroy, 5000, (CUsurfObject object))                                            \
    X(cuModuleGetTexRef, 2000, (CUtexref * reference, CUmodule module, const char *name))          \
    X(cuModuleGetSurfRef, 3000, (CUsurfref * reference, CUmodule module, const char *name))        \
    X(cuTexRefSetArray, 2000, (CUtexref reference, CUarray array, unsigned flags))                 \
    X(cuTexRefSetAddress, 3020,                                                                    \
      (size_t *offset, CUtexref reference, CUdeviceptr address, size_t bytes))                     \
    X(cuTexRefSetFormat, 2000, (CUtexref reference, CUarray_format format, int channels))          \
    X(cuTexRefSetAddressMode, 2000, (CUtexref reference, int dimension, CUaddress_mode mode))      \
    X(cuTexRefSetFilterMode, 2000, (CUtexref reference, int mode))                                 \
    X(cuTexRefSetFlags, 2000, (CUtexref reference, unsigned flags))                                \
    X(cuTexRefSetBorderColor, 8000, (CUtexref reference, float *color))                            \
    X(cuSurfRefSetArray, 3000, (CUsurfref reference, CUarray array, unsigned flags))               \
    X(cuTensorMapEncodeTiled, 12000,                                                               \
      (void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,                   \
       const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,        \
       int swizzle, int l2_promotion, int fill))

typedef struct driver {
#define X(function, version, arguments) CUresult(*function) arguments;
    DRIVER_FUNCTIONS(X)
    OPTIONAL_DRIVER_FUNCTIONS(X)
#undef X
    int version; /* 13000 for 13.0 */
    int n_devices;
} driver;

/* The driver, which the first call in a process opens and initialises. NULL, with the reason in
 * status, if there is none, or if this process was forked from one that had used it. */
const driver *driver_open(smk_status *status);

#endif
