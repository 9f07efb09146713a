/* Copies in 1 to 3 dimensions, and memset. A call that reads or writes outside of an allocation
 * returns CUDA_ERROR_INVALID_VALUE, and is recorded. */
#include <string.h>

#include "work.h"

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
    char origin[512];
    if (!is_device(from) || is_device(to)) return;
    const unsigned char word = memory_word(from->address + at, bytes);
    if (word == 1) return;
    origin_describe(word, origin, sizeof origin);
    report_misuse("unwritten-copy", memory_find(from->address, &offset),
                  "%s copies bytes to the host that were never written%s", driver_call(), origin);
}

/* Where both sides begin in the host's memory; false: an access is invalid. */
static bool reach_both(const side *from, const side *to, size_t width, size_t height, size_t depth,
                       unsigned char **in, unsigned char **out) {
    if (!from->address || !to->address || !is_in_range(from, width, height, depth) ||
        !is_in_range(to, width, height, depth))
        return false;
    const size_t last_from = start_of(from, height - 1, depth - 1);
    const size_t last_to = start_of(to, height - 1, depth - 1);
    const size_t first_from = start_of(from, 0, 0), first_to = start_of(to, 0, 0);
    *in = reach(from, first_from, last_from + width - first_from, false);
    *out = reach(to, first_to, last_to + width - first_to, true);
    return *in && *out;
}

static CUresult copy(const side *from, const side *to, size_t width, size_t height, size_t depth) {
    unsigned char *in, *out;
    if (!width || !height || !depth) return CUDA_SUCCESS;
    if (!reach_both(from, to, width, height, depth, &in, &out)) return CUDA_ERROR_INVALID_VALUE;
    const size_t first_from = start_of(from, 0, 0), first_to = start_of(to, 0, 0);
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < height; y++) {
            const size_t at = start_of(from, y, z), there = start_of(to, y, z);
            memmove(out + (there - first_to), in + (at - first_from), width);
            if (is_device(from))
                memory_copy_written(to->address + there, from->address + at, width);
            else
                memory_set_written(to->address + there, width);
        }
    check_written(from, first_from, width, to);
    return CUDA_SUCCESS;
}

/* ---- sides ---- */

static bool address_of(unsigned type, const void *host, CUdeviceptr device, side *out) {
    out->type = type;
    out->address = type == CU_MEMORYTYPE_HOST ? (CUdeviceptr)(uintptr_t)host : device;
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
           type == CU_MEMORYTYPE_UNIFIED;
}

/* The part of an array that a copy accesses must be inside of it. */
static bool array_side(CUarray array, const CUDA_MEMCPY3D *c, side *out) {
    if (!handle_is(array, HANDLE_ARRAY)) return false;
    const CUDA_ARRAY3D_DESCRIPTOR *d = &array->descriptor;
    const size_t height = d->Height ? d->Height : 1, depth = d->Depth ? d->Depth : 1;
    out->type = CU_MEMORYTYPE_DEVICE;
    out->address = array->address;
    out->pitch = d->Width * smk_texel_bytes(&array->form);
    out->height = height;
    return c->WidthInBytes <= out->pitch && out->x <= out->pitch - c->WidthInBytes &&
           c->Height <= height && out->y <= height - c->Height && c->Depth <= depth &&
           out->z <= depth - c->Depth;
}

static bool set_pitch(const CUDA_MEMCPY3D *c, size_t pitch, size_t height, side *out) {
    if (out->pitch) return true; /* an array */
    out->pitch = pitch ? pitch : out->x + c->WidthInBytes;
    out->height = height ? height : out->y + c->Height;
    return !((c->Height > 1 || c->Depth > 1) && out->pitch < out->x + c->WidthInBytes) &&
           !(c->Depth > 1 && out->height < out->y + c->Height);
}

static bool sides_of(const CUDA_MEMCPY3D *c, side *from, side *to) {
    *from = (side){.x = c->srcXInBytes, .y = c->srcY, .z = c->srcZ};
    *to = (side){.x = c->dstXInBytes, .y = c->dstY, .z = c->dstZ};
    const bool found = (c->srcMemoryType == CU_MEMORYTYPE_ARRAY
                            ? array_side(c->srcArray, c, from)
                            : address_of(c->srcMemoryType, c->srcHost, c->srcDevice, from)) &&
                       (c->dstMemoryType == CU_MEMORYTYPE_ARRAY
                            ? array_side(c->dstArray, c, to)
                            : address_of(c->dstMemoryType, c->dstHost, c->dstDevice, to));
    return found && set_pitch(c, c->srcPitch, c->srcHeight, from) &&
           set_pitch(c, c->dstPitch, c->dstHeight, to);
}

CUresult copy_check(const CUDA_MEMCPY3D *c) {
    side from, to;
    return sides_of(c, &from, &to) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult copy_reach(const CUDA_MEMCPY3D *c) {
    side from, to;
    unsigned char *in, *out;
    if (!sides_of(c, &from, &to)) return CUDA_ERROR_INVALID_VALUE;
    const bool is_empty = !c->WidthInBytes || !c->Height || !c->Depth;
    return is_empty || reach_both(&from, &to, c->WidthInBytes, c->Height, c->Depth, &in, &out)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

const unsigned char *copy_source(const CUDA_MEMCPY3D *c) {
    side from, to;
    sides_of(c, &from, &to);
    return reach(&from, start_of(&from, 0, 0), c->WidthInBytes, false);
}

CUresult copy_run(const CUDA_MEMCPY3D *c) {
    side from, to;
    if (!sides_of(c, &from, &to)) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = copy(&from, &to, c->WidthInBytes, c->Height, c->Depth);
    launch_flush_printed();
    return result;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    work w = {.kind = WORK_COPY, .of.copy = *c};
    const CUresult result = copy_check(c);
    return stream_is(stream) ? result ? result : work_submit(stream, &w)
                             : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- 1 dimension ---- */

static CUresult copy_bytes(unsigned to_type, CUdeviceptr to, unsigned from_type, CUdeviceptr from,
                           size_t bytes, CUstream stream) {
    const CUDA_MEMCPY3D c = {.srcMemoryType = from_type,
                             .srcDevice = from,
                             .dstMemoryType = to_type,
                             .dstDevice = to,
                             .WidthInBytes = bytes,
                             .Height = 1,
                             .Depth = 1};
    return copy_3d(&c, stream);
}

#define HOST(pointer)   CU_MEMORYTYPE_UNIFIED, (CUdeviceptr)(uintptr_t)(pointer)
#define DEVICE(address) CU_MEMORYTYPE_DEVICE, (address)
#define ANY(address)    CU_MEMORYTYPE_UNIFIED, (address)

EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpy, NEED_CONTEXT, copy_bytes(ANY(to), ANY(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpyAsync,
                   copy_bytes(ANY(to), ANY(from), bytes, stream));
}

/* Copies in any order, each with the attributes whose range of numbers it is in: hints, which have
 * no effect here. The legacy default stream is not allowed. */
static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
                           size_t n, const void *attributes, const size_t *first,
                           size_t n_attributes, CUstream stream) {
    if (!to || !from || !bytes || !n || !attributes || !first || !n_attributes ||
        n_attributes > n || first[0] || (uintptr_t)stream <= 1)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 1; k < n_attributes; k++)
        if (first[k] <= first[k - 1] || first[k] >= n) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    for (size_t k = 0; k < n && !result; k++)
        result = copy_bytes(ANY(to[k]), ANY(from[k]), bytes[k], stream);
    return result;
}

EXPORT CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                                      void *attributes, size_t *first, size_t n_attributes,
                                      CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpyBatchAsync,
                   copy_batch(to, from, bytes, n, attributes, first, n_attributes, stream));
}

/* `failed` is set by an error that is of one copy; all others set it to the largest number. */
EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n,
                                   void *attributes, size_t *first, size_t n_attributes,
                                   size_t *failed, CUstream stream) {
    const CUresult result =
        cuMemcpyBatchAsync_v2(to, from, bytes, n, attributes, first, n_attributes, stream);
    if (result && failed) *failed = SIZE_MAX;
    return result;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
    DRIVER_CALL(cuMemcpyHtoD, NEED_CONTEXT, copy_bytes(DEVICE(to), HOST(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpyHtoDAsync,
                   copy_bytes(DEVICE(to), HOST(from), bytes, stream));
}

EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpyDtoH, NEED_CONTEXT, copy_bytes(HOST(to), DEVICE(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpyDtoHAsync,
                   copy_bytes(HOST(to), DEVICE(from), bytes, stream));
}

EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpyDtoD, NEED_CONTEXT, copy_bytes(DEVICE(to), DEVICE(from), bytes, NULL));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpyDtoDAsync,
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
    DRIVER_CALL_IN(context_of(stream), cuMemcpyPeerAsync,
                   copy_peer(to, to_context, from, from_context, bytes, stream));
}

/* ---- arrays of 1 dimension ---- */

/* `type` is that of the side that is no array. */
static CUresult copy_array(unsigned type, CUarray to_array, CUdeviceptr to, CUarray from_array,
                           CUdeviceptr from, size_t to_offset, size_t from_offset, size_t bytes,
                           CUstream stream) {
    const CUDA_MEMCPY3D c = {.srcMemoryType = from_array ? CU_MEMORYTYPE_ARRAY : type,
                             .srcArray = from_array,
                             .srcDevice = from,
                             .srcXInBytes = from_offset,
                             .dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : type,
                             .dstArray = to_array,
                             .dstDevice = to,
                             .dstXInBytes = to_offset,
                             .WidthInBytes = bytes,
                             .Height = 1,
                             .Depth = 1};
    return to_array || from_array ? copy_3d(&c, stream) : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
    DRIVER_CALL(cuMemcpyDtoA, NEED_CONTEXT,
                copy_array(CU_MEMORYTYPE_DEVICE, to, 0, NULL, from, offset, 0, bytes, NULL));
}

EXPORT CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
    DRIVER_CALL(cuMemcpyAtoD, NEED_CONTEXT,
                copy_array(CU_MEMORYTYPE_DEVICE, NULL, to, from, 0, 0, offset, bytes, NULL));
}

EXPORT CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes) {
    DRIVER_CALL(
        cuMemcpyHtoA, NEED_CONTEXT,
        copy_array(CU_MEMORYTYPE_UNIFIED, to, 0, NULL, (uintptr_t)from, offset, 0, bytes, NULL));
}

EXPORT CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes) {
    DRIVER_CALL(
        cuMemcpyAtoH, NEED_CONTEXT,
        copy_array(CU_MEMORYTYPE_UNIFIED, NULL, (uintptr_t)to, from, 0, 0, offset, bytes, NULL));
}

EXPORT CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                                size_t bytes) {
    DRIVER_CALL(cuMemcpyAtoA, NEED_CONTEXT,
                to && from ? copy_array(CU_MEMORYTYPE_UNIFIED, to, 0, from, 0, to_offset,
                                        from_offset, bytes, NULL)
                           : CUDA_ERROR_INVALID_HANDLE);
}

EXPORT CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL_IN(
        context_of(stream), cuMemcpyHtoAAsync,
        copy_array(CU_MEMORYTYPE_UNIFIED, to, 0, NULL, (uintptr_t)from, offset, 0, bytes, stream));
}

EXPORT CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes,
                                     CUstream stream) {
    DRIVER_CALL_IN(
        context_of(stream), cuMemcpyAtoHAsync,
        copy_array(CU_MEMORYTYPE_UNIFIED, NULL, (uintptr_t)to, from, 0, 0, offset, bytes, stream));
}

/* ---- 2 and 3 dimensions ---- */

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY3D same = {.srcXInBytes = c->srcXInBytes,
                                .srcY = c->srcY,
                                .srcMemoryType = c->srcMemoryType,
                                .srcHost = c->srcHost,
                                .srcDevice = c->srcDevice,
                                .srcArray = c->srcArray,
                                .srcPitch = c->srcPitch,
                                .dstXInBytes = c->dstXInBytes,
                                .dstY = c->dstY,
                                .dstMemoryType = c->dstMemoryType,
                                .dstHost = c->dstHost,
                                .dstDevice = c->dstDevice,
                                .dstArray = c->dstArray,
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
    DRIVER_CALL_IN(context_of(stream), cuMemcpy2DAsync, copy_2d(c, stream));
}

EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) {
    DRIVER_CALL(cuMemcpy3D, NEED_CONTEXT, copy_3d(c, NULL));
}

EXPORT CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpy3DAsync, copy_3d(c, stream));
}

/* CUDA_MEMCPY3D_PEER is a CUDA_MEMCPY3D whose reserved pointers are contexts. */
static CUresult copy_3d_peer(const CUDA_MEMCPY3D *c, CUstream stream) {
    if (!c) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(c->reserved0, HANDLE_CONTEXT) || !handle_is(c->reserved1, HANDLE_CONTEXT))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_3d(c, stream);
}

EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D *c) {
    DRIVER_CALL(cuMemcpy3DPeer, NEED_CONTEXT, copy_3d_peer(c, NULL));
}

EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D *c, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemcpy3DPeerAsync, copy_3d_peer(c, stream));
}

/* ---- memset ---- */

CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *s) {
    size_t rows;
    if (s->elementSize != 1 && s->elementSize != 2 && s->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->width > MAX_BYTES || s->height > MAX_BYTES || s->pitch > MAX_BYTES ||
        __builtin_mul_overflow(s->height, s->pitch, &rows) || rows > MAX_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    const bool has_rows = s->height > 1;
    return s->dst % s->elementSize ||
                   (has_rows && (s->pitch < s->width * s->elementSize || s->pitch % s->elementSize))
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

CUresult set_run(const CUDA_MEMSET_NODE_PARAMS *s) {
    const CUresult result = set_check(s);
    if (result || !s->width || !s->height) return result;
    const size_t row = s->width * s->elementSize;
    unsigned char *out =
        memory_reach(s->dst, (s->height - 1) * s->pitch + row, true, "the destination");
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    for (size_t y = 0; y < s->height; y++) {
        for (size_t x = 0; x < s->width; x++)
            memcpy(out + y * s->pitch + x * s->elementSize, &s->value, s->elementSize);
        memory_set_written(s->dst + y * s->pitch, row);
    }
    return CUDA_SUCCESS;
}

static CUresult set(CUdeviceptr to, size_t pitch, unsigned value, unsigned value_bytes,
                    size_t width, size_t height, CUstream stream) {
    work w = {.kind = WORK_SET, .of.set = {to, pitch, value, value_bytes, width, height}};
    const CUresult result = set_check(&w.of.set);
    return stream_is(stream) ? result ? result : work_submit(stream, &w)
                             : CUDA_ERROR_INVALID_HANDLE;
}

#define MEMSET(bits, type)                                                                         \
    EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr to, type value, size_t n) {                   \
        DRIVER_CALL(cuMemsetD##bits, NEED_CONTEXT, set(to, 0, value, sizeof value, n, 1, NULL));   \
    }                                                                                              \
    EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr to, type value, size_t n,                   \
                                           CUstream stream) {                                      \
        DRIVER_CALL_IN(context_of(stream), cuMemsetD##bits##Async,                                 \
                       set(to, 0, value, sizeof value, n, 1, stream));                             \
    }                                                                                              \
    EXPORT CUresult cuMemsetD2D##bits##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, \
                                           size_t height) {                                        \
        DRIVER_CALL(cuMemsetD2D##bits, NEED_CONTEXT,                                               \
                    set(to, pitch, value, sizeof value, width, height, NULL));                     \
    }                                                                                              \
    EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr to, size_t pitch, type value,             \
                                             size_t width, size_t height, CUstream stream) {       \
        DRIVER_CALL_IN(context_of(stream), cuMemsetD2D##bits##Async,                               \
                       set(to, pitch, value, sizeof value, width, height, stream));                \
    }

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)
