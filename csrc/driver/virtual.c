/* Virtual memory: ranges of addresses, and memory that is mapped in them.
 *
 * A range is an allocation (MEMORY_RANGE). Memory is a file without a name, of which a part is
 * mapped in the range's host memory. The rest of a range reads as zeros. All of it counts as
 * written, as the same memory can be mapped at several addresses. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { GRANULARITY = 2 << 20 };

struct physical {
    handle head;
    int file;
    size_t bytes;
    unsigned references;
};

typedef struct CUmemAllocationProp {
    int type, requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

static CUresult check_properties(const CUmemAllocationProp *p) {
    enum { PINNED = 1, DEVICE = 1 };
    if (!p || p->type != PINNED || !p->location.type) return CUDA_ERROR_INVALID_VALUE;
    if (p->requestedHandleTypes || p->location.type != DEVICE) {
        report_unsupported(
            "memory that is shared with other processes or on the host (cuMemCreate)");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return p->location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

static CUresult granularity(size_t *out, const CUmemAllocationProp *p, unsigned option) {
    if (!out || option > 1) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = check_properties(p);
    if (!result) *out = GRANULARITY;
    return result;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *p,
                                              unsigned option) {
    DRIVER_CALL(cuMemGetAllocationGranularity, NEED_INIT, granularity(out, p, option));
}

/* ---- ranges ---- */

static CUresult reserve(CUdeviceptr *out, size_t bytes, size_t alignment, uint64_t flags) {
    size_t offset;
    if (!out || !bytes || bytes % GRANULARITY || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = memory_new(MEMORY_RANGE, bytes, 0, out);
    if (!result) memory_set_complete(memory_find(*out, &offset));
    return result;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment,
                                    CUdeviceptr wish, unsigned long long flags) {
    (void)wish; /* a hint */
    DRIVER_CALL(cuMemAddressReserve, NEED_INIT, reserve(out, bytes, alignment, flags));
}

/* The range that has these bytes. */
static allocation *range_of(CUdeviceptr address, size_t bytes, size_t *offset) {
    allocation *a = memory_find(address, offset);
    return a && a->kind == MEMORY_RANGE && bytes && bytes <= a->bytes - *offset ? a : NULL;
}

static CUresult free_range(CUdeviceptr address, size_t bytes) {
    size_t offset;
    const allocation *a = range_of(address, bytes, &offset);
    if (!a || offset || bytes != a->bytes) return CUDA_ERROR_INVALID_VALUE;
    memory_drop_window(address);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
    DRIVER_CALL(cuMemAddressFree, NEED_INIT, free_range(address, bytes));
}

/* ---- memory ---- */

static CUresult create(struct physical **out, size_t bytes, const CUmemAllocationProp *p,
                       uint64_t flags) {
    if (!out || !bytes || bytes % GRANULARITY || flags) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = check_properties(p);
    if (result) return result;
    if (bytes > device_memory() - memory_in_use()) return CUDA_ERROR_OUT_OF_MEMORY;
    struct physical *m = handle_new(HANDLE_PHYSICAL, sizeof *m);
    if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
    m->head.context = NULL;
    m->file = memfd_create("smemkern", MFD_CLOEXEC);
    if (m->file < 0 || ftruncate(m->file, (off_t)bytes)) {
        if (m->file >= 0) close(m->file);
        handle_free(m, HANDLE_PHYSICAL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->bytes = bytes;
    m->references = 1;
    *out = m;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemCreate(struct physical **out, size_t bytes, const CUmemAllocationProp *p,
                            unsigned long long flags) {
    DRIVER_CALL(cuMemCreate, NEED_INIT, create(out, bytes, p, flags));
}

/* What is mapped stays mapped: the mapping keeps the file. */
static CUresult release(struct physical *m) {
    if (!handle_is(m, HANDLE_PHYSICAL)) return CUDA_ERROR_INVALID_VALUE;
    if (--m->references) return CUDA_SUCCESS;
    close(m->file);
    handle_free(m, HANDLE_PHYSICAL);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemRelease(struct physical *m) {
    DRIVER_CALL(cuMemRelease, NEED_INIT, release(m));
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t from, struct physical *m,
                    uint64_t flags) {
    size_t offset;
    const allocation *a = range_of(address, bytes, &offset);
    if (!handle_is(m, HANDLE_PHYSICAL) || !a || flags || offset % GRANULARITY ||
        bytes % GRANULARITY || from % GRANULARITY || from > m->bytes || bytes > m->bytes - from)
        return CUDA_ERROR_INVALID_VALUE;
    void *at = mmap(a->host + offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                    m->file, (off_t)from);
    return at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t from, struct physical *m,
                         unsigned long long flags) {
    DRIVER_CALL(cuMemMap, NEED_INIT, map(address, bytes, from, m, flags));
}

static CUresult unmap(CUdeviceptr address, size_t bytes) {
    size_t offset;
    const allocation *a = range_of(address, bytes, &offset);
    if (!a || offset % GRANULARITY || bytes % GRANULARITY) return CUDA_ERROR_INVALID_VALUE;
    void *at = mmap(a->host + offset, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
    DRIVER_CALL(cuMemUnmap, NEED_INIT, unmap(address, bytes));
}

/* CUmemAccessDesc: a location, and flags: 0 none, 1 read, 3 read and write */
static CUresult set_access(CUdeviceptr address, size_t bytes, const int (*access)[3], size_t n) {
    size_t offset;
    if (!range_of(address, bytes, &offset) || !access || !n) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < n; k++) {
        if (access[k][1]) return CUDA_ERROR_INVALID_DEVICE;
        if (access[k][2] != 0 && access[k][2] != 1 && access[k][2] != 3)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const int (*access)[3],
                               size_t n) {
    DRIVER_CALL(cuMemSetAccess, NEED_INIT, set_access(address, bytes, access, n));
}

static CUresult get_access(unsigned long long *flags, const CUmemLocation *location,
                           CUdeviceptr address) {
    size_t offset;
    if (!flags || !location || !range_of(address, 1, &offset)) return CUDA_ERROR_INVALID_VALUE;
    *flags = 3;
    return location->id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                               CUdeviceptr address) {
    DRIVER_CALL(cuMemGetAccess, NEED_INIT, get_access(flags, location, address));
}

static CUresult properties(CUmemAllocationProp *out, struct physical *m) {
    if (!out || !handle_is(m, HANDLE_PHYSICAL)) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmemAllocationProp){.type = 1, .location = {1, 0}};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
                                                       struct physical *m) {
    DRIVER_CALL(cuMemGetAllocationPropertiesFromHandle, NEED_INIT, properties(out, m));
}
