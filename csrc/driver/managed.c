/* Advice about managed memory, and prefetches: they have no effect here but to be remembered, page
 * by page, for programs that ask. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096 }; /* ranges are rounded to pages of the host */

/* CUmemLocationType */
enum { NOWHERE, DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT };

/* CUdevice */
enum { THE_DEVICE = 0, CPU = -1, NO_DEVICE = -2 };

/* A location in a byte: its type, or HOST_NUMA and the number of the node. */
typedef uint8_t place;
enum { MAX_NODE = UINT8_MAX - HOST_NUMA };

struct page_advice {
    place prefetched, preferred;
    bool by_device, by_host; /* accessed by */
    bool read_mostly;
};

static bool is_node(int node) {
    char path[64];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
    return node == 0 || (node > 0 && node <= MAX_NODE && !access(path, F_OK));
}

static CUresult place_of(CUmemLocation location, place *out) {
    unsigned node = (unsigned)location.id;
    switch (location.type) {
    case DEVICE: *out = DEVICE; return location.id ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    case HOST: *out = HOST; return CUDA_SUCCESS;
    case HOST_NUMA_CURRENT:
        if (getcpu(NULL, &node)) node = 0;
        break;
    case HOST_NUMA: break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_node((int)node)) return CUDA_ERROR_INVALID_VALUE;
    *out = (place)(HOST_NUMA + node);
    return CUDA_SUCCESS;
}

/* The location that calls before CUDA 12.2 mean by a device. */
static CUmemLocation location_of(CUdevice device) {
    return device == CPU ? (CUmemLocation){HOST, 0} : (CUmemLocation){DEVICE, device};
}

/* ---- pages ---- */

/* The pages of a range of managed memory. */
typedef struct range {
    struct page_advice *first;
    size_t n;
} range;

static size_t pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE;
}

void managed_forget(allocation *a) {
    if (a->advice) munmap(a->advice, pages(a->bytes) * sizeof *a->advice);
    a->advice = NULL;
}

static bool is_managed(const allocation *a) {
    return a->kind == MEMORY_MANAGED ||
           (a->kind == MEMORY_VARIABLES && !memory_is_device(memory_address(a)));
}

static CUresult find_range(CUdeviceptr address, size_t bytes, range *out) {
    size_t offset;
    allocation *a = memory_find(address, &offset);
    if (!a || !is_managed(a) || !bytes || bytes > a->bytes - offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (!a->advice) {
        void *at = mmap(NULL, pages(a->bytes) * sizeof *a->advice, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        a->advice = at;
    }
    *out = (range){a->advice + offset / PAGE, pages(offset + bytes) - offset / PAGE};
    return CUDA_SUCCESS;
}

/* ---- prefetches ---- */

static CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location,
                         CUstream stream) {
    place to;
    range r;
    CUresult result = place_of(location, &to);
    if (!result && !stream_is(stream)) result = CUDA_ERROR_INVALID_HANDLE;
    if (!result) result = find_range(address, bytes, &r);
    for (size_t k = 0; !result && k < r.n; k++)
        r.first[k].prefetched = to;
    return result;
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device,
                                   CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemPrefetchAsync,
                   prefetch(address, bytes, location_of(device), stream));
}

EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                      unsigned flags, CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemPrefetchAsync,
                   flags ? CUDA_ERROR_INVALID_VALUE : prefetch(address, bytes, location, stream));
}

/* Location k is that of the ranges from starts[k] on, up to starts[k + 1]. */
static CUresult prefetch_batch(const CUdeviceptr *addresses, const size_t *bytes, size_t n,
                               const CUmemLocation *locations, const size_t *starts,
                               size_t n_locations, CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    if (!addresses || !bytes || !n || !locations || !starts || !n_locations || n_locations > n ||
        starts[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 1; k < n_locations; k++)
        if (starts[k] <= starts[k - 1] || starts[k] >= n) return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0, at = 0; !result && k < n; k++) {
        at += at + 1 < n_locations && starts[at + 1] == k;
        result = prefetch(addresses[k], bytes[k], locations[at], stream);
    }
    return result;
}

EXPORT CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *bytes, size_t n,
                                        CUmemLocation *locations, size_t *starts,
                                        size_t n_locations, unsigned long long flags,
                                        CUstream stream) {
    DRIVER_CALL_IN(context_of(stream), cuMemPrefetchBatchAsync,
                   flags || !stream ? CUDA_ERROR_INVALID_VALUE
                                    : prefetch_batch(addresses, bytes, n, locations, starts,
                                                     n_locations, stream));
}

/* ---- advice ---- */

/* CUmem_advise */
enum {
    SET_READ_MOSTLY = 1,
    UNSET_READ_MOSTLY,
    SET_PREFERRED,
    UNSET_PREFERRED,
    SET_ACCESSED_BY,
    UNSET_ACCESSED_BY
};

static void advise_page(struct page_advice *p, int advice, place at) {
    switch (advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY: p->read_mostly = advice == SET_READ_MOSTLY; break;
    case SET_PREFERRED: p->preferred = at; break;
    case UNSET_PREFERRED: p->preferred = NOWHERE; break;
    default: *(at == DEVICE ? &p->by_device : &p->by_host) = advice == SET_ACCESSED_BY;
    }
}

static CUresult advise(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location) {
    place at = NOWHERE;
    range r;
    CUresult result = CUDA_SUCCESS;
    if (advice < SET_READ_MOSTLY || advice > UNSET_ACCESSED_BY) return CUDA_ERROR_INVALID_VALUE;
    const bool is_access = advice == SET_ACCESSED_BY || advice == UNSET_ACCESSED_BY;
    if (is_access || advice == SET_PREFERRED) result = place_of(location, &at);
    if (!result && is_access && at > HOST) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) result = find_range(address, bytes, &r);
    for (size_t k = 0; !result && k < r.n; k++)
        advise_page(&r.first[k], advice, at);
    return result;
}

EXPORT CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device) {
    DRIVER_CALL(cuMemAdvise, NEED_CONTEXT, advise(address, bytes, advice, location_of(device)));
}

EXPORT CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice,
                               CUmemLocation location) {
    DRIVER_CALL(cuMemAdvise, NEED_CONTEXT, advise(address, bytes, advice, location));
}

/* ---- questions ---- */

/* CUmem_range_attribute */
enum {
    READ_MOSTLY = 1,
    PREFERRED,
    ACCESSED_BY,
    PREFETCHED,
    PREFERRED_TYPE,
    PREFERRED_ID,
    PREFETCHED_TYPE,
    PREFETCHED_ID
};

/* What is said of all pages of a range. */
static struct page_advice common(const range *r) {
    struct page_advice all = r->first[0];
    for (size_t k = 1; k < r->n; k++) {
        const struct page_advice *p = &r->first[k];
        if (p->prefetched != all.prefetched) all.prefetched = NOWHERE;
        if (p->preferred != all.preferred) all.preferred = NOWHERE;
        all.by_device &= p->by_device;
        all.by_host &= p->by_host;
        all.read_mostly &= p->read_mostly;
    }
    return all;
}

static int device_of(place p) {
    return p == NOWHERE ? NO_DEVICE : p == DEVICE ? THE_DEVICE : CPU;
}

static int type_of(place p) {
    return p < HOST_NUMA ? p : HOST_NUMA;
}

static int id_of(place p) {
    return p < HOST_NUMA ? device_of(p) : p - HOST_NUMA;
}

static void list_accesses(const struct page_advice *all, int *out, size_t n) {
    size_t k = 0;
    if (all->by_device) out[k++] = THE_DEVICE;
    if (all->by_host && k < n) out[k++] = CPU;
    while (k < n)
        out[k++] = NO_DEVICE;
}

static CUresult answer(const struct page_advice *all, int attribute, int *out, size_t bytes) {
    if (attribute < READ_MOSTLY || attribute > PREFETCHED_ID || !out || !bytes ||
        bytes % sizeof *out || (attribute != ACCESSED_BY && bytes != sizeof *out))
        return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case READ_MOSTLY: *out = all->read_mostly; break;
    case PREFERRED: *out = device_of(all->preferred); break;
    case PREFERRED_TYPE: *out = type_of(all->preferred); break;
    case PREFERRED_ID: *out = id_of(all->preferred); break;
    case PREFETCHED: *out = device_of(all->prefetched); break;
    case PREFETCHED_TYPE: *out = type_of(all->prefetched); break;
    case PREFETCHED_ID: *out = id_of(all->prefetched); break;
    default: list_accesses(all, out, bytes / sizeof *out);
    }
    return CUDA_SUCCESS;
}

static CUresult range_attributes(void **out, const size_t *sizes, const int *attributes, size_t n,
                                 CUdeviceptr address, size_t bytes) {
    range r;
    if (!out || !sizes || !attributes || !n) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_range(address, bytes, &r);
    if (result) return result;
    const struct page_advice all = common(&r);
    for (size_t k = 0; !result && k < n; k++)
        result = answer(&all, attributes[k], out[k], sizes[k]);
    return result;
}

EXPORT CUresult cuMemRangeGetAttribute(void *out, size_t size, int attribute, CUdeviceptr address,
                                       size_t bytes) {
    DRIVER_CALL(cuMemRangeGetAttribute, NEED_CONTEXT,
                range_attributes(&out, &size, &attribute, 1, address, bytes));
}

EXPORT CUresult cuMemRangeGetAttributes(void **out, size_t *sizes, int *attributes, size_t n,
                                        CUdeviceptr address, size_t bytes) {
    DRIVER_CALL(cuMemRangeGetAttributes, NEED_CONTEXT,
                range_attributes(out, sizes, attributes, n, address, bytes));
}
