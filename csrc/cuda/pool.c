/* A driver memory pool (cuMemPool) per device, separate from the pools of other libraries. Compared
 * with a cache of our own on top of cuMemAlloc:
 *
 *   - sizes are exact, so compute-sanitizer detects every byte out of bounds;
 *   - no size classes, whose blocks cannot serve one another;
 *   - memory of an interrupted kernel is freed in stream order, without waiting for the kernel.
 *
 * On devices without memory pools (some virtual GPUs) memory is allocated and freed each time.
 */
#include "pool.h"

/* Unused memory that the pool retains: at most 1/4 of the device's. */
enum { RETAINED_PART = 4 };

static smk_code create_pool(device *d, CUmemoryPool *out, smk_status *status) {
    const driver *cu = d->cu;
    CUmemPoolProps props = {.alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location_type = CU_MEM_LOCATION_TYPE_DEVICE,
                            .location_id = d->info.ordinal};
    CUresult result = cu->cuMemPoolCreate(out, &props);
    if (result) return device_fail(d, result, SMK_ERROR, status, "cuMemPoolCreate");

    /* Off, because the pool would reuse memory of another stream by making the new owner's stream
     * wait for it, and a kernel that never ends would block that stream. */
    int internal_dependencies = 0;
    uint64_t retained = d->info.memory_bytes / RETAINED_PART;
    result = cu->cuMemPoolSetAttribute(*out, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
                                       &internal_dependencies);
    if (!result)
        result = cu->cuMemPoolSetAttribute(*out, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &retained);
    if (!result) return SMK_OK;
    cu->cuMemPoolDestroy(*out);
    return device_fail(d, result, SMK_ERROR, status, "cuMemPoolSetAttribute");
}

static smk_code open_pool(device *d, CUmemoryPool *out, smk_status *status) {
    smk_code code = SMK_OK;
    pthread_mutex_lock(&d->mutex);
    if (!d->pool_opened) {
        int supported = 0;
        CUresult result = d->cu->cuDeviceGetAttribute(
            &supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, d->handle);
        if (result)
            code = device_fail(d, result, SMK_ERROR, status, "cuDeviceGetAttribute(%d)",
                               CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
        else if (supported)
            code = create_pool(d, &d->pool, status);
        d->pool_opened = code == SMK_OK;
    }
    *out = d->pool;
    pthread_mutex_unlock(&d->mutex);
    return code;
}

/* During a stream capture this must fail, so the global capture mode is restored for the call: the
 * memory is freed after the launch, before the graph runs. (Allocations from a pool become part of
 * the graph.) */
static CUresult allocate_without_pool(device *d, CUdeviceptr *address, size_t bytes) {
    device_restore_capture_mode(d, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUresult result = d->cu->cuMemAlloc(address, bytes);
    device_relax_capture_mode(d);
    return result;
}

smk_code pool_allocate(device *d, CUstream stream, size_t bytes, CUdeviceptr *out,
                       smk_status *status) {
    const driver *cu = d->cu;
    CUmemoryPool pool;
    smk_code code = open_pool(d, &pool, status);
    if (code) return code;

    CUresult result = CUDA_SUCCESS;
    CUdeviceptr address = 0;
    for (int attempt = 0; attempt < 2; attempt++) {
        result = pool ? cu->cuMemAllocFromPoolAsync(&address, bytes, pool, stream)
                      : allocate_without_pool(d, &address, bytes);
        if (result != CUDA_ERROR_OUT_OF_MEMORY) break;
        /* The pool's memory may be fragmented: return it to the driver and retry. */
        if (pool) cu->cuMemPoolTrimTo(pool, 0);
    }
    if (!result) {
        *out = address;
        return SMK_OK;
    }
    const char *call = pool ? "cuMemAllocFromPoolAsync" : "cuMemAlloc";
    size_t free = 0, total = 0;
    if (result == CUDA_ERROR_OUT_OF_MEMORY && !cu->cuMemGetInfo(&free, &total))
        return device_fail(d, result, SMK_MEMORY, status,
                           "%s of %zu bytes on device %d (%s), where %zu of %zu bytes are free",
                           call, bytes, d->info.ordinal, d->info.name, free, total);
    return device_fail(d, result, SMK_ERROR, status, "%s of %zu bytes", call, bytes);
}

smk_code pool_free(device *d, CUstream stream, CUdeviceptr address, smk_status *status) {
    CUresult result = d->pool ? d->cu->cuMemFreeAsync(address, stream) : d->cu->cuMemFree(address);
    return result ? device_fail(d, result, SMK_ERROR, status, "%s",
                                d->pool ? "cuMemFreeAsync" : "cuMemFree")
                  : SMK_OK;
}

bool pool_open_to(device *d, int ordinal) {
    const CUmemAccessDesc there = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal,
                                   CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    smk_status ignored = {0};
    CUmemoryPool pool;
    if (ordinal == d->info.ordinal) return true;
    if (ordinal >= 64 || open_pool(d, &pool, &ignored) || !pool) return false;
    pthread_mutex_lock(&d->mutex);
    const uint64_t bit = (uint64_t)1 << ordinal;
    if (!(d->pool_peers & bit) && d->cu->cuMemPoolSetAccess(pool, &there, 1) == CUDA_SUCCESS)
        d->pool_peers |= bit;
    const bool open = d->pool_peers & bit;
    pthread_mutex_unlock(&d->mutex);
    return open;
}

static CUmemoryPool current_pool(device *d) {
    pthread_mutex_lock(&d->mutex);
    CUmemoryPool pool = d->pool;
    pthread_mutex_unlock(&d->mutex);
    return pool;
}

size_t pool_bytes(device *d) {
    CUmemoryPool pool = current_pool(d);
    uint64_t reserved = 0, used = 0;
    if (!pool || d->cu->cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) ||
        d->cu->cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
        return 0;
    return reserved > used ? (size_t)(reserved - used) : 0;
}

smk_code pool_trim(device *d, smk_status *status) {
    CUmemoryPool pool = current_pool(d);
    CUresult result = pool ? d->cu->cuMemPoolTrimTo(pool, 0) : CUDA_SUCCESS;
    return result ? device_fail(d, result, SMK_ERROR, status, "cuMemPoolTrimTo") : SMK_OK;
}
