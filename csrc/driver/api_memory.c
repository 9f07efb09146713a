/* Calls about memory. Copies are in copy.c. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2, PITCH_UNIT = 512 };

/* ---- allocation ---- */

static CUresult allocate(memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *out) {
    const CUresult result = capture_check_unsafe();
    return result ? result : memory_new(kind, bytes, flags, out);
}

static CUresult release(CUdeviceptr address, bool host) {
    const CUresult result = capture_check_unsafe();
    return result ? result : memory_free(address, host);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    DRIVER_CALL(cuMemAlloc, NEED_CONTEXT, allocate(MEMORY_DEVICE, bytes, 0, out));
}

static CUresult alloc_pitch(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                            unsigned element) {
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
    if (*pitch < width || height > SIZE_MAX / *pitch) return CUDA_ERROR_INVALID_VALUE;
    return allocate(MEMORY_DEVICE, *pitch * height, 0, out);
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                   unsigned element) {
    DRIVER_CALL(cuMemAllocPitch, NEED_CONTEXT, alloc_pitch(out, pitch, width, height, element));
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    DRIVER_CALL_IN(memory_context(address), cuMemFree, release(address, false));
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
    DRIVER_CALL(cuMemAllocManaged, NEED_CONTEXT,
                flags != ATTACH_GLOBAL && flags != ATTACH_HOST
                    ? CUDA_ERROR_INVALID_VALUE
                    : allocate(MEMORY_MANAGED, bytes, flags, out));
}

static CUresult alloc_host(void **out, size_t bytes, unsigned flags) {
    CUdeviceptr address;
    if (!out || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    *out = NULL;
    if (!bytes) return CUDA_SUCCESS;
    const CUresult result = allocate(MEMORY_PINNED, bytes, flags, &address);
    if (!result) *out = (void *)(uintptr_t)address;
    return result;
}

EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes) {
    DRIVER_CALL(cuMemAllocHost, NEED_CONTEXT, alloc_host(out, bytes, 0));
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    DRIVER_CALL(cuMemHostAlloc, NEED_CONTEXT, alloc_host(out, bytes, flags));
}

EXPORT CUresult cuMemFreeHost(void *address) {
    const CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
    DRIVER_CALL_IN(memory_context(at), cuMemFreeHost, release(at, true));
}

/* Whether all pages of a range are mapped in the process. */
static bool is_mapped(const void *host, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)host / page * page;
    const uintptr_t end = (uintptr_t)host + bytes;
    return end > (uintptr_t)host && !msync((void *)first, end - first, MS_ASYNC);
}

static CUresult register_host(void *host, size_t bytes, unsigned flags) {
    CUdeviceptr address;
    if (!host || !bytes || flags > 15 || !is_mapped(host, bytes)) return CUDA_ERROR_INVALID_VALUE;
    if (memory_is_registered(host, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return memory_window(MEMORY_REGISTERED, host, bytes, flags, &address);
}

EXPORT CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned flags) {
    DRIVER_CALL(cuMemHostRegister, NEED_CONTEXT, register_host(host, bytes, flags));
}

static CUresult unregister_host(void *host) {
    size_t offset;
    const allocation *a = memory_registered(host);
    if (!host || (a ? a->host != host : memory_find((CUdeviceptr)(uintptr_t)host, &offset) != NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (!a) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    memory_drop_window(memory_address(a));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *host) {
    DRIVER_CALL(cuMemHostUnregister, NEED_CONTEXT, unregister_host(host));
}

/* The allocation that a host pointer is in, and the device's address of it. */
static const allocation *host_allocation(const void *host, CUdeviceptr *address) {
    size_t offset;
    const allocation *a = memory_registered(host);
    *address = a ? memory_address(a) + (size_t)((const unsigned char *)host - a->host)
                 : (CUdeviceptr)(uintptr_t)host;
    if (!a && (a = memory_find(*address, &offset)) && a->kind != MEMORY_PINNED) return NULL;
    return a;
}

static CUresult device_pointer(CUdeviceptr *out, void *host, unsigned flags) {
    CUdeviceptr address;
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    if (!host_allocation(host, &address)) return CUDA_ERROR_INVALID_VALUE;
    *out = address;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *host, unsigned flags) {
    DRIVER_CALL(cuMemHostGetDevicePointer, NEED_CONTEXT, device_pointer(out, host, flags));
}

static CUresult host_flags(unsigned *flags, void *host) {
    CUdeviceptr address;
    const allocation *a = host_allocation(host, &address);
    if (!flags || !a) return CUDA_ERROR_INVALID_VALUE;
    *flags = a->flags | 2; /* all of it is mapped for the device */
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *host) {
    DRIVER_CALL(cuMemHostGetFlags, NEED_CONTEXT, host_flags(flags, host));
}

static CUresult get_info(size_t *available, size_t *total) {
    if (total) *total = device_memory();
    if (available) *available = device_memory() - memory_in_use();
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    DRIVER_CALL(cuMemGetInfo, NEED_CONTEXT, get_info(available, total));
}

static CUresult get_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    size_t offset;
    const allocation *a = memory_find(address, &offset);
    if (!a) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = address - offset;
    if (bytes) *bytes = a->bytes;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address) {
    DRIVER_CALL(cuMemGetAddressRange, NEED_CONTEXT, get_range(base, bytes, address));
}

/* ---- attributes of pointers ---- */

enum {
    POINTER_CONTEXT = 1,
    POINTER_MEMORY_TYPE,
    POINTER_DEVICE,
    POINTER_HOST,
    POINTER_SYNC_MEMOPS = 6,
    POINTER_BUFFER_ID,
    POINTER_IS_MANAGED,
    POINTER_ORDINAL,
    POINTER_LEGACY_IPC,
    POINTER_RANGE_START,
    POINTER_RANGE_SIZE,
    POINTER_MAPPED,
    POINTER_HANDLE_TYPES,
    POINTER_GPUDIRECT,
    POINTER_ACCESS_FLAGS,
    POINTER_POOL
};

/* The value of an attribute, and its bytes; 0: there is no such attribute. `a` may be NULL. */
static size_t pointer_value(const allocation *a, CUdeviceptr address, int attribute,
                            uint64_t *value) {
    static const allocation none = {.bytes = 0};
    const CUdeviceptr base = a ? memory_address(a) : 0;
    if (!a) a = &none;
    const bool on_host = a->kind == MEMORY_PINNED || a->kind == MEMORY_REGISTERED;
    switch (attribute) {
    case POINTER_CONTEXT: *value = (uintptr_t)a->context; return sizeof(void *);
    case POINTER_MEMORY_TYPE:
        *value = on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return sizeof(int);
    case POINTER_DEVICE: *value = address; return sizeof(CUdeviceptr);
    case POINTER_HOST:
        *value = on_host || a->kind == MEMORY_MANAGED ? (uintptr_t)a->host + (address - base) : 0;
        return sizeof(void *);
    case POINTER_BUFFER_ID: *value = base; return sizeof(uint64_t);
    case POINTER_IS_MANAGED: *value = a->kind == MEMORY_MANAGED; return sizeof(int);
    case POINTER_ORDINAL: *value = 0; return sizeof(int);
    case POINTER_RANGE_START: *value = base; return sizeof(void *);
    case POINTER_RANGE_SIZE: *value = a->bytes; return sizeof(size_t);
    case POINTER_MAPPED: *value = 1; return sizeof(int);
    case POINTER_ACCESS_FLAGS: *value = 3; return sizeof(int);
    case POINTER_LEGACY_IPC: *value = ipc_is_possible(a); return sizeof(int);
    case POINTER_SYNC_MEMOPS:
    case POINTER_GPUDIRECT: *value = 0; return sizeof(int);
    case POINTER_HANDLE_TYPES:
    case POINTER_POOL: *value = 0; return sizeof(uint64_t);
    default: return 0;
    }
}

static const allocation *pointed(CUdeviceptr *address) {
    size_t offset;
    const allocation *a = memory_find(*address, &offset);
    if (a || memory_is_device(*address)) return a;
    a = memory_registered((const void *)(uintptr_t)*address);
    if (a) *address = memory_address(a) + (*address - (uintptr_t)a->host);
    return a;
}

static CUresult pointer_attribute(void *out, int attribute, CUdeviceptr address) {
    uint64_t value = 0;
    const allocation *a = pointed(&address);
    if (!out || !a) return CUDA_ERROR_INVALID_VALUE;
    const size_t bytes = pointer_value(a, address, attribute, &value);
    if (!bytes || (attribute == POINTER_HOST && !value)) return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &value, bytes);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttribute(void *out, int attribute, CUdeviceptr address) {
    DRIVER_CALL(cuPointerGetAttribute, NEED_INIT, pointer_attribute(out, attribute, address));
}

/* Attributes of an address that is not CUDA's are zeros. */
static CUresult pointer_attributes(unsigned n, const int *attributes, void **out,
                                   CUdeviceptr address) {
    const allocation *a = pointed(&address);
    if (!attributes || !out || !n) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned k = 0; k < n; k++) {
        uint64_t value = 0;
        const size_t bytes = pointer_value(a, address, attributes[k], &value);
        if (!bytes || !out[k]) return CUDA_ERROR_INVALID_VALUE;
        if (!a) value = attributes[k] == POINTER_ORDINAL ? (uint64_t)-2 : 0;
        memcpy(out[k], &value, bytes);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuPointerGetAttributes(unsigned n, int *attributes, void **out,
                                       CUdeviceptr address) {
    DRIVER_CALL(cuPointerGetAttributes, NEED_INIT, pointer_attributes(n, attributes, out, address));
}
