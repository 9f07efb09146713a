/* The fake driver's memory: host memory in blocks, each of them in use, freed on a stream that may
 * still be busy, or held by the one pool.
 */
#include "fake_internal.h"

#include <sys/mman.h>
#include <time.h>

typedef struct block {
    char *memory;
    size_t bytes;
    enum { USED, FREED, HELD } state;
    CUstream freed_on;
    bool pooled;
    struct block *next;
} block;

static block *blocks;

void fake_settle_memory(void) {
    for (block *b = blocks; b; b = b->next) {
        if (b->state != FREED || fake_stream_is_busy(b->freed_on)) continue;
        b->state = HELD;
        fake_cuda.blocks--;
        fake_cuda.used_bytes -= b->bytes;
        fake_cuda.held_bytes += b->bytes;
    }
}

/* Other threads go on. */
static void take_time(void) {
    nanosleep(&(struct timespec){.tv_nsec = fake_cuda.allocation_ms * 1000000L}, NULL);
}

/* Large ones in huge pages: all of the memory is written at once, and half of a short process's
 * time would go into page faults.
 */
static void *new_memory(size_t bytes) {
    enum { HUGE = 2 << 20 };
    if (bytes < HUGE) return malloc(bytes);
    void *memory = aligned_alloc(HUGE, (bytes + HUGE - 1) / HUGE * HUGE);
    if (memory) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes, bool pooled) {
    if (bytes == 0) return fail(INVALID_VALUE);
    block *b = blocks;
    while (b && !(pooled && b->state == HELD && b->bytes == bytes))
        b = b->next;
    if (b) {
        fake_cuda.held_bytes -= bytes;
    } else {
        if (bytes > fake_cuda.total_bytes - fake_cuda.used_bytes - fake_cuda.held_bytes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        b = calloc(1, sizeof *b);
        *b = (block){.memory = new_memory(bytes), .bytes = bytes, .pooled = pooled, .next = blocks};
        blocks = b;
        fake_cuda.fresh_blocks++;
    }
    memset(b->memory, 0xff, bytes); /* floats: NaN */
    b->state = USED;
    fake_cuda.blocks++;
    fake_cuda.used_bytes += bytes;
    *address = (CUdeviceptr)(uintptr_t)b->memory;
    return CUDA_SUCCESS;
}

static block *find_block(CUdeviceptr address, size_t bytes) {
    const char *p = (const char *)(uintptr_t)address;
    for (block *b = blocks; b; b = b->next)
        if (b->state == USED && p >= b->memory && p + bytes <= b->memory + b->bytes) return b;
    return NULL;
}

bool fake_is_allocated(CUdeviceptr address, size_t bytes) {
    return find_block(address, bytes) != NULL;
}

static void forget_block(block *gone) {
    block **link = &blocks;
    while (*link != gone)
        link = &(*link)->next;
    *link = gone->next;
    free(gone->memory);
    free(gone);
}

CUresult cuMemGetInfo(size_t *free, size_t *total) {
    CALL(cuMemGetInfo);
    *free = fake_cuda.total_bytes - fake_cuda.used_bytes - fake_cuda.held_bytes;
    *total = fake_cuda.total_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
    take_time();
    CALL(cuMemAlloc);
    return allocate(address, bytes, false);
}

CUresult cuMemFree(CUdeviceptr address) {
    CALL(cuMemFree);
    block *b = find_block(address, 1);
    if (!b || b->pooled) return fail(INVALID_VALUE);
    fake_cuda.blocks--;
    fake_cuda.used_bytes -= b->bytes;
    forget_block(b);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
    CALL(cuMemPoolCreate);
    *pool = (CUmemoryPool)&blocks;
    return fail(props->alloc_type == 1 && props->location_type == 1 ? 0 : INVALID_VALUE);
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    CALL(cuMemPoolDestroy);
    return fail(pool == (CUmemoryPool)&blocks ? 0 : INVALID_VALUE);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    CALL(cuMemPoolSetAttribute);
    return fail(pool && attribute && value ? 0 : INVALID_VALUE);
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    CALL(cuMemPoolGetAttribute);
    uint64_t used = fake_cuda.used_bytes;
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) used += fake_cuda.held_bytes;
    memcpy(value, &used, sizeof used);
    return fail(pool ? 0 : INVALID_VALUE);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *of_whom, size_t n) {
    CALL(cuMemPoolSetAccess);
    return fail(pool && n == 1 && of_whom->location_type == CU_MEM_LOCATION_TYPE_DEVICE &&
                        of_whom->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && !fake_cuda.no_peers
                    ? 0
                    : INVALID_VALUE);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    CALL(cuMemPoolTrimTo);
    for (block *b = blocks, *next; b; b = next) {
        next = b->next;
        if (b->state != HELD || fake_cuda.held_bytes <= bytes) continue;
        fake_cuda.held_bytes -= b->bytes;
        forget_block(b);
    }
    return fail(pool ? 0 : INVALID_VALUE);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
    take_time();
    CALL(cuMemAllocFromPoolAsync);
    return pool && stream ? allocate(address, bytes, true) : fail(INVALID_VALUE);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    CALL(cuMemFreeAsync);
    block *b = find_block(address, 1);
    if (!b || !b->pooled) return fail(INVALID_VALUE);
    b->state = FREED;
    b->freed_on = stream;
    fake_settle_memory();
    return CUDA_SUCCESS;
}

/* ---- pinned memory of the host ---- */

typedef struct pinned {
    char *memory;
    size_t bytes;
    bool registered; /* somebody else's memory */
    struct pinned *next;
} pinned;

static pinned *all_pinned;
static int registrations;

bool fake_is_pinned(const void *address) {
    const char *p = address;
    for (const pinned *b = all_pinned; b; b = b->next)
        if (p >= b->memory && p < b->memory + b->bytes) return true;
    return false;
}

CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    CALL(cuMemHostAlloc);
    if (!bytes || flags) return fail(INVALID_VALUE);
    pinned *b = calloc(1, sizeof *b);
    *b = (pinned){new_memory(bytes), bytes, false, all_pinned};
    memset(b->memory, 0xff, bytes);
    all_pinned = b;
    fake_cuda.pinned_bytes += bytes;
    *memory = b->memory;
    return CUDA_SUCCESS;
}

static CUresult unpin(void *memory, bool registered) {
    for (pinned **link = &all_pinned; *link; link = &(*link)->next) {
        pinned *b = *link;
        if (b->memory != memory || b->registered != registered) continue;
        *link = b->next;
        fake_cuda.pinned_bytes -= b->bytes;
        if (!registered) free(b->memory);
        free(b);
        return CUDA_SUCCESS;
    }
    return fail(INVALID_VALUE);
}

CUresult cuMemFreeHost(void *memory) {
    CALL(cuMemFreeHost);
    return unpin(memory, false);
}

/* How often somebody else's memory was pinned, for tests that load this library. */
EXPORTED int fake_registrations(void) {
    return registrations;
}

CUresult cuMemHostRegister(void *memory, size_t bytes, unsigned flags) {
    CALL(cuMemHostRegister);
    if (!bytes || flags != CU_MEMHOSTREGISTER_PORTABLE || fake_is_pinned(memory))
        return fail(INVALID_VALUE);
    pinned *b = calloc(1, sizeof *b);
    *b = (pinned){memory, bytes, true, all_pinned};
    all_pinned = b;
    fake_cuda.pinned_bytes += bytes;
    registrations++;
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *memory) {
    CALL(cuMemHostUnregister);
    return unpin(memory, true);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream) {
    CALL(cuMemcpy2DAsync);
    const bool out = copy->dstMemoryType == CU_MEMORYTYPE_HOST;
    const bool in = copy->srcMemoryType == CU_MEMORYTYPE_HOST;
    const size_t last = copy->Height - 1;
    if (!stream || (in && out) || copy->srcPitch < copy->WidthInBytes ||
        copy->dstPitch < copy->WidthInBytes || !copy->Height ||
        (!in && !find_block(copy->srcDevice, last * copy->srcPitch + copy->WidthInBytes)) ||
        (!out && !find_block(copy->dstDevice, last * copy->dstPitch + copy->WidthInBytes)))
        return fail(INVALID_VALUE);
    char *to = out ? copy->dstHost : (char *)(uintptr_t)copy->dstDevice;
    const char *from = in ? copy->srcHost : (const char *)(uintptr_t)copy->srcDevice;
    for (size_t i = 0; i < copy->Height && !fake_stream_is_busy(stream); i++)
        memcpy(to + i * copy->dstPitch, from + i * copy->srcPitch, copy->WidthInBytes);
    *(out  ? &fake_cuda.bytes_out
      : in ? &fake_cuda.bytes_in
           : &fake_cuda.bytes_peer) += copy->Height * copy->WidthInBytes;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CALL(cuMemcpyDtoDAsync);
    if (!stream || !find_block(to, bytes) || !find_block(from, bytes)) return fail(INVALID_VALUE);
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    fake_cuda.bytes_peer += bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    CALL(cuMemcpyHtoDAsync);
    if (!stream || !find_block(to, bytes)) return fail(INVALID_VALUE);
    memcpy((void *)(uintptr_t)to, from, bytes);
    fake_cuda.bytes_in += bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CALL(cuMemcpyDtoHAsync);
    if (!stream || !find_block(from, bytes)) return fail(INVALID_VALUE);
    if (!fake_stream_is_busy(stream)) memcpy(to, (void *)(uintptr_t)from, bytes);
    fake_cuda.bytes_out += bytes;
    return CUDA_SUCCESS;
}
