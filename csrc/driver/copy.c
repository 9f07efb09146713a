/* Copies in 1 to 3 dimensions, and memset. A call that reads or writes outside of an allocation
 * returns CUDA_ERROR_INVALID_VALUE, and is recorded. */
#include <string.h>

#include "driver.h"

static const size_t MAX_BYTES = (size_t)1 << 46;

/* One side of a copy: an address, and how rows and slices follow each other. */
typedef struct side {
    unsigned type; /* CU_MEMORYTYPE_ */
    CUdeviceptr address;
    size_t x, y, z, pitch, height;
} side;

static bool is_device(const side *s) {
    size_t offset;
    if (s->type == CU_MEMORYTYPE_DEVICE) return true;
    return memory_is_device(s->address) || memory_find(s->address, &offset);
}

/* The host address of `bytes` of a side from `at` on; NULL: the access is invalid. */
static unsigned char *reach(const side *s, size_t at, size_t bytes, bool write) {
    if (!is_device(s)) return (unsigned char *)(uintptr_t)s->address + at;
    return memory_reach(s->address + at, bytes, write, write ? "the destination" : "the source");
}

/* Whether all offsets of a side are in a range in which start_of cannot overflow. */
static bool is_in_range(const side *s, size_t width, size_t height, size_t depth) {
    const size_t sizes[] = {s->x, s->y, s->z, s->pitch, s->height, width, height, depth};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (sizes[k] > MAX_BYTES) return false;
    size_t rows, bytes;
    return !__builtin_mul_overflow(s->z + depth, s->height, &rows) &&
           !__builtin_add_overflow(rows, s->y + height, &rows) &&
           !__builtin_mul_overflow(rows, s->pitch, &bytes) && bytes <= MAX_BYTES;
}

static size_t start_of(const side *s, size_t row, size_t slice) {
    return ((s->z + slice) * s->height + s->y + row) * s->pitch + s->x;
}

/* Reports a copy to the host of bytes that nothing has written. */
static void check_written(const side *from, size_t at, size_t bytes, const side *to) {
    size_t offset;
    if (!is_device(from) || is_device(to) || memory_is_written(from->address + at, bytes)) return;
    report_misuse("unwritten-copy", memory_find(from->address, &offset),
                  "%s copies bytes to the host that were never written", driver_call());
}

static CUresult copy(const side *from, const side *to, size_t width, size_t height, size_t depth) {
    if (!width || !height || !depth) return CUDA_SUCCESS;
    if (!from->address || !to->address || !is_in_range(from, width, height, depth) ||
        !is_in_range(to, width, height, depth))
        return CUDA_ERROR_INVALID_VALUE;
    const size_t last_from = start_of(from, height - 1, depth - 1);
    const size_t last_to = start_of(to, height - 1, depth - 1);
    const size_t first_from = start_of(from, 0, 0), first_to = start_of(to, 0, 0);
    unsigned char *in = reach(from, first_from, last_from + width - first_from, false);
    unsigned char *out = reach(to, first_to, last_to + width - first_to, true);
    if (!in || !out) return CUDA_ERROR_INVALID_VALUE;
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            const size_t at = start_of(from, y, z), there = start_of(to, y, z);
            memmove(out + (there - first_to), in + (at - first_from), width);
            const bool known = !is_device(from) || memory_is_written(from->address + at, width);
            if (known) memory_set_written(to->address + there, width);
        }
    check_written(from, first_from, width, to);
    return CUDA_SUCCESS;
}

static CUresult copy_bytes(unsigned to_type, CUdeviceptr to, unsigned from_type, CUdeviceptr from,
                           size_t bytes, CUstream stream) {
    if (!stream_is(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const side source = {.type = from_type, .address = from};
    const side target = {.type = to_type, .address = to};
    const CUresult result = copy(&source, &target, bytes, 1, 1);
    launch_flush_printed();
    return result;
}

#define HOST(pointer)   CU_MEMORYTYPE_UNIFIED, (CUdeviceptr)(uintptr_t)(pointer)
#define DEVICE(address) CU_MEMORYTYPE_DEVICE, (address)
#define ANY(address)    CU_MEMORYTYPE_UNIFIED, (address)

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpy, NEED_CONTEXT, copy_bytes(ANY(to), ANY(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_CALL(cuMemcpyAsync, NEED_CONTEXT, copy_bytes(ANY(to), ANY(from), bytes, stream));
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    DRIVER_CALL(cuMemcpyHtoD, NEED_CONTEXT, copy_bytes(DEVICE(to), HOST(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL(cuMemcpyHtoDAsync, NEED_CONTEXT, copy_bytes(DEVICE(to), HOST(from), bytes, stream));
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpyDtoH, NEED_CONTEXT, copy_bytes(HOST(to), DEVICE(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_CALL(cuMemcpyDtoHAsync, NEED_CONTEXT, copy_bytes(HOST(to), DEVICE(from), bytes, stream));
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpyDtoD, NEED_CONTEXT, copy_bytes(DEVICE(to), DEVICE(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL(cuMemcpyDtoDAsync, NEED_CONTEXT,
                copy_bytes(DEVICE(to), DEVICE(from), bytes, stream));
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes, CUstream stream) {
    if (!handle_is(to_context, HANDLE_CONTEXT) || !handle_is(from_context, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_bytes(DEVICE(to), DEVICE(from), bytes, stream);
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                             CUcontext from_context, size_t bytes) {
    DRIVER_CALL(cuMemcpyPeer, NEED_CONTEXT,
                copy_peer(to, to_context, from, from_context, bytes, NULL));
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream) {
    DRIVER_CALL(cuMemcpyPeerAsync, NEED_CONTEXT,
                copy_peer(to, to_context, from, from_context, bytes, stream));
}

/* ---- 2 and 3 dimensions ---- */

static bool side_of(unsigned type, const void *host, CUdeviceptr device, side *out) {
    out->type = type;
    out->address = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_is(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        report_unsupported("copies from and to a CUarray");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    side from = {.x = c->srcXInBytes, .y = c->srcY, .z = c->srcZ};
    side to = {.x = c->dstXInBytes, .y = c->dstY, .z = c->dstZ};
    if (!side_of(c->srcMemoryType, c->srcHost, c->srcDevice, &from) ||
        !side_of(c->dstMemoryType, c->dstHost, c->dstDevice, &to))
        return CUDA_ERROR_INVALID_VALUE;
    from.pitch = c->srcPitch ? c->srcPitch : c->srcXInBytes + c->WidthInBytes;
    to.pitch = c->dstPitch ? c->dstPitch : c->dstXInBytes + c->WidthInBytes;
    from.height = c->srcHeight ? c->srcHeight : c->srcY + c->Height;
    to.height = c->dstHeight ? c->dstHeight : c->dstY + c->Height;
    const bool has_rows = c->Height > 1 || c->Depth > 1;
    if (has_rows && (from.pitch < c->srcXInBytes + c->WidthInBytes ||
                     to.pitch < c->dstXInBytes + c->WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (c->Depth > 1 && (from.height < c->srcY + c->Height || to.height < c->dstY + c->Height))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy(&from, &to, c->WidthInBytes, c->Height, c->Depth);
    launch_flush_printed();
    return result;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D same = {.srcXInBytes = c->srcXInBytes,
                                .srcY = c->srcY,
                                .srcMemoryType = c->srcMemoryType,
                                .srcHost = c->srcHost,
                                .srcDevice = c->srcDevice,
                                .srcPitch = c->srcPitch,
                                .dstXInBytes = c->dstXInBytes,
                                .dstY = c->dstY,
                                .dstMemoryType = c->dstMemoryType,
                                .dstHost = c->dstHost,
                                .dstDevice = c->dstDevice,
                                .dstPitch = c->dstPitch,
                                .WidthInBytes = c->WidthInBytes,
                                .Height = c->Height,
                                .Depth = 1};
    return copy_3d(&same, stream);
}

EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) {
    DRIVER_CALL(cuMemcpy2D, NEED_CONTEXT, copy_2d(c, NULL));
}

EXPORT CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c) {
    DRIVER_CALL(cuMemcpy2DUnaligned, NEED_CONTEXT, copy_2d(c, NULL));
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
    DRIVER_CALL(cuMemcpy2DAsync, NEED_CONTEXT, copy_2d(c, stream));
}

EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) {
    DRIVER_CALL(cuMemcpy3D, NEED_CONTEXT, copy_3d(c, NULL));
}

EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
    DRIVER_CALL(cuMemcpy3DAsync, NEED_CONTEXT, copy_3d(c, stream));
}

/* ---- memset ---- */

static CUresult set(CUdeviceptr to, size_t pitch, const void *value, size_t value_bytes,
                    size_t width, size_t height, CUstream stream) {
    if (!stream_is(stream)) return CUDA_ERROR_INVALID_HANDLE;
    size_t rows;
    if (width > MAX_BYTES || height > MAX_BYTES || pitch > MAX_BYTES ||
        __builtin_mul_overflow(height, pitch, &rows) || rows > MAX_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (to % value_bytes || (height > 1 && (pitch < width * value_bytes || pitch % value_bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!width || !height) return CUDA_SUCCESS;
    const size_t row = width * value_bytes;
    unsigned char *out = memory_reach(to, (height - 1) * pitch + row, true, "the destination");
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++)
            memcpy(out + y * pitch + x * value_bytes, value, value_bytes);
        memory_set_written(to + y * pitch, row);
    }
    return CUDA_SUCCESS;
}

#define MEMSET(bits, type)                                                                         \
    EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t n) {                   \
        DRIVER_CALL(cuMemsetD##bits, NEED_CONTEXT, set(to, 0, &value, sizeof value, n, 1, NULL));  \
    }                                                                                              \
    EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t n,                   \
                                           CUstream stream) {                                      \
        DRIVER_CALL(cuMemsetD##bits##Async, NEED_CONTEXT,                                          \
                    set(to, 0, &value, sizeof value, n, 1, stream));                               \
    }                                                                                              \
    EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, \
                                           size_t height) {                                        \
        DRIVER_CALL(cuMemsetD2D##bits, NEED_CONTEXT,                                               \
                    set(to, pitch, &value, sizeof value, width, height, NULL));                    \
    }                                                                                              \
    EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value,             \
                                             size_t width, size_t height, CUstream stream) {       \
        DRIVER_CALL(cuMemsetD2D##bits##Async, NEED_CONTEXT,                                        \
                    set(to, pitch, &value, sizeof value, width, height, stream));                  \
    }

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)
