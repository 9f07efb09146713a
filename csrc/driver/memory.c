/* Allocations and their addresses.
 *
 * Allocation k is buffer k of every launch, at emu_buffer_address(k): its address never changes,
 * and kernels find it from whatever structure they read it. Addresses of device memory are beyond
 * those of host processes (47 bits), so a host access is a fault, as with a GPU. Pinned and
 * managed memory is mapped at its own emulated address, so host and kernels use one pointer. About
 * a hundred such allocations have a region each; all others share one (host_region.c).
 *
 * A number is used again only after many others have been, so that most uses of freed memory are
 * found.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

enum {
#ifdef __aarch64__
    HOST_BITS = 48, /* of the addresses of a host process */
#else
    HOST_BITS = 47,
#endif
    MIN_HOST_SHIFT = 4, /* 1 / 16 of them: below are the program and its heap */
    MAX_ALLOCATIONS = 1 << 20,
    QUARANTINE = 256,
    WORD_BYTES = 4,
    PAGE = 4096,
    LARGE = 8 << 20
};
static const size_t MAX_FILLED = 64u << 20; /* larger allocations begin as zeros */

static struct {
    allocation *items;
    size_t n, capacity;
    size_t first_device; /* the first number beyond the host's addresses */
    size_t freed;        /* allocations of device memory that are freed and not used again */
    size_t oldest;       /* where the search for one begins */
    size_t bytes;        /* of device and managed memory in use */
} memory;

allocation *memory_at(size_t k) {
    return k < memory.n && memory.items[k].used ? &memory.items[k] : NULL;
}

size_t memory_count(void) {
    return memory.n;
}

size_t memory_in_use(void) {
    return memory.bytes;
}

bool memory_host_sees(void) {
    for (size_t k = 0; k < memory.n; k++) {
        const allocation *a = &memory.items[k];
        if (a->live && (a->address || a->shared || a->kind == MEMORY_REGISTERED ||
                        !memory_is_device(emu_buffer_address(k))))
            return true;
    }
    return false;
}

CUdeviceptr memory_address(const allocation *a) {
    return a->address ? a->address : emu_buffer_address((size_t)(a - memory.items));
}

/* The live or freed allocation that an address belongs to; NULL: none. */
static allocation *at_address(CUdeviceptr address, uint64_t *offset) {
    size_t inside = 0;
    if (host_region_has(address)) {
        const int64_t number = host_region_number(address, &inside);
        allocation *a = number < 0 ? NULL : memory_at((size_t)number);
        *offset = inside;
        return a && a->address == address - inside ? a : NULL;
    }
    const int64_t k = emu_buffer_of(address, offset);
    allocation *a = k < 0 ? NULL : memory_at((size_t)k);
    return a && !a->address ? a : NULL;
}

const allocation *memory_of_hazard(const smk_hazard *h, int64_t *number, int64_t *offset) {
    uint64_t inside = 0;
    if (h->buffer < 0) return NULL;
    const allocation *a =
        at_address(emu_buffer_address((size_t)h->buffer) + (uint64_t)h->offset, &inside);
    if (!a) a = memory_at((size_t)h->buffer);
    *number = a && a->address ? a - memory.items : h->buffer;
    *offset = a && a->address ? (int64_t)inside : h->offset;
    return a;
}

bool memory_is_device(CUdeviceptr address) {
    bool constant;
    uint64_t offset;
    return address >> HOST_BITS || emu_is_variable_address(address, &constant, &offset);
}

/* ---- numbers ---- */

static bool grow(size_t n) {
    if (n > MAX_ALLOCATIONS) return false;
    if (n > memory.capacity) {
        const size_t capacity = n * 2;
        allocation *larger = realloc(memory.items, capacity * sizeof *larger);
        if (!larger) return false;
        memset(larger + memory.capacity, 0, (capacity - memory.capacity) * sizeof *larger);
        memory.items = larger;
        memory.capacity = capacity;
    }
    if (n > memory.n) memory.n = n;
    return true;
}

/* A number beyond the host's addresses. False: there is none. */
static bool device_number(size_t *out) {
    if (!memory.first_device)
        while (!(emu_buffer_address(memory.first_device) >> HOST_BITS))
            memory.first_device++;
    if (memory.n < memory.first_device && !grow(memory.first_device)) return false;
    const size_t places = memory.n - memory.first_device;
    for (size_t k = 0; memory.freed > QUARANTINE && k < places; k++) {
        const size_t at = memory.first_device + (memory.oldest + k) % places;
        if (memory.items[at].live || memory.items[at].reserved) continue;
        memory.oldest = at + 1 - memory.first_device;
        memory.freed--;
        *out = at;
        return true;
    }
    *out = memory.n;
    return grow(memory.n + 1);
}

/* Memory that is mapped at its own emulated address, in a region of its own. NULL: all are
 * taken. */
static void *map_at_number(size_t bytes, size_t *out) {
    for (size_t k = 0; !(emu_buffer_address(k + 1) >> HOST_BITS); k++) {
        const CUdeviceptr address = emu_buffer_address(k);
        if (address >> (HOST_BITS - MIN_HOST_SHIFT) == 0 || (memory_at(k) && memory_at(k)->live))
            continue;
        void *wanted = (void *)(uintptr_t)address;
        void *at = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (at == wanted && grow(k + 1)) {
            *out = k;
            return at;
        }
        if (at != MAP_FAILED) munmap(at, bytes);
    }
    return NULL;
}

/* One region is kept for allocations beyond the number of regions. */
static void *map_at_address(size_t bytes, size_t *number, CUdeviceptr *address) {
    static bool started;
    size_t k;
    if (!started) {
        void *base = map_at_number(PAGE, &k);
        if (base) host_region_start(base, PAGE);
        started = true;
    }
    void *host = map_at_number(bytes, number);
    if (host || !device_number(number)) return host;
    host = host_region_take(bytes, *number);
    *address = (uintptr_t)host;
    return host;
}

/* ---- allocation ---- */

static bool on_device(memory_kind kind) {
    return kind == MEMORY_DEVICE || kind == MEMORY_MANAGED || kind == MEMORY_ARRAY;
}

static void begin(size_t k, memory_kind kind, void *host, size_t bytes, unsigned flags) {
    allocation *a = &memory.items[k];
    *a = (allocation){.live = true,
                      .used = true,
                      .kind = kind,
                      .host = host,
                      .bytes = bytes,
                      .flags = flags,
                      .context = context_current(),
                      .allocated = report_frames()};
    snprintf(a->call, sizeof a->call, "%s", driver_call());
    if (on_device(kind)) memory.bytes += bytes;
}

static void *map_anywhere(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return NULL;
    /* Blocks are far from each other, so with small pages most requests miss the host's TLB. */
    if (bytes >= LARGE) madvise(at, bytes, MADV_HUGEPAGE);
    return at;
}

static void set_unwritten(allocation *a) {
    if (a->bytes <= MAX_FILLED && a->kind != MEMORY_RANGE)
        memset(a->host, 0xff, a->bytes); /* a float reads as NaN */
    a->written = map_anywhere((a->bytes + WORD_BYTES - 1) / WORD_BYTES);
}

CUresult memory_new(memory_kind kind, size_t bytes, unsigned flags, CUdeviceptr *out) {
    CUdeviceptr address = 0;
    size_t k;
    if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
    const bool is_device = kind != MEMORY_PINNED && kind != MEMORY_MANAGED;
    if (bytes >= emu_buffer_address(1) - emu_buffer_address(0)) return CUDA_ERROR_OUT_OF_MEMORY;
    if (on_device(kind) && bytes > device_memory() - memory.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    void *host = is_device ? map_anywhere(mapped) : map_at_address(mapped, &k, &address);
    if (!host || (is_device && !device_number(&k))) {
        if (host) munmap(host, mapped);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    begin(k, kind, host, bytes, flags);
    allocation *a = &memory.items[k];
    a->mapped = address ? 0 : mapped;
    a->address = address;
    if (is_device) set_unwritten(a);
    *out = memory_address(a);
    return CUDA_SUCCESS;
}

CUresult memory_window(memory_kind kind, void *host, size_t bytes, unsigned flags,
                       CUdeviceptr *out) {
    size_t k;
    if (!device_number(&k)) return CUDA_ERROR_OUT_OF_MEMORY;
    begin(k, kind, host, bytes, flags);
    *out = memory_address(&memory.items[k]);
    return CUDA_SUCCESS;
}

static void end(allocation *a) {
    if (a->written) munmap(a->written, (a->bytes + WORD_BYTES - 1) / WORD_BYTES);
    if (a->mapped) munmap(a->host, a->mapped);
    if (a->address) host_region_give(a->address);
    ipc_forget(a);
    managed_forget(a);
    if (on_device(a->kind)) memory.bytes -= a->bytes;
    if ((size_t)(a - memory.items) >= memory.first_device && !a->reserved) memory.freed++;
    a->live = false;
    a->host = a->written = NULL;
    a->freed = report_frames();
}

CUresult memory_reserve(size_t bytes, CUdeviceptr *out) {
    size_t offset;
    const CUresult result = memory_new(MEMORY_DEVICE, bytes, 0, out);
    if (result) return result;
    allocation *a = memory_find(*out, &offset);
    a->reserved = true;
    end(a);
    return CUDA_SUCCESS;
}

CUresult memory_revive(CUdeviceptr address) {
    uint64_t offset;
    const int64_t k = emu_buffer_of(address, &offset);
    allocation *a = k < 0 ? NULL : memory_at((size_t)k);
    if (!a || !a->reserved) return CUDA_ERROR_INVALID_VALUE;
    if (a->live) end(a);
    if (a->bytes > device_memory() - memory.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    const size_t mapped = a->mapped;
    void *host = map_anywhere(mapped);
    if (!host) return CUDA_ERROR_OUT_OF_MEMORY;
    begin((size_t)k, MEMORY_DEVICE, host, a->bytes, 0);
    a->reserved = true;
    a->mapped = mapped;
    set_unwritten(a);
    return CUDA_SUCCESS;
}

allocation *memory_find(CUdeviceptr address, size_t *offset) {
    uint64_t at;
    allocation *a = at_address(address, &at);
    *offset = (size_t)at;
    return a && a->live && at < a->bytes ? a : NULL;
}

CUcontext memory_context(CUdeviceptr address) {
    size_t offset;
    driver_lock();
    const allocation *a = memory_find(address, &offset);
    CUcontext c = a ? a->context : NULL;
    driver_unlock();
    return c;
}

CUresult memory_free(CUdeviceptr address, bool host) {
    uint64_t offset;
    if (!address) return CUDA_SUCCESS;
    allocation *a = at_address(address, &offset);
    if (a && !a->live && !offset) {
        report_misuse("double-free", a, "%s frees memory that is free already", driver_call());
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool is_kind =
        a && (host ? a->kind == MEMORY_PINNED && !a->pooled
                   : a->kind == MEMORY_DEVICE || a->kind == MEMORY_MANAGED || a->pooled);
    if (!a || !a->live || offset || !is_kind) {
        report_misuse(
            "invalid-free", a && a->live ? a : NULL, "%s frees an address that %s", driver_call(),
            a && a->live && offset < a->bytes
                ? offset ? "is inside of an allocation, not at its start" : "another call allocated"
                : "no call has allocated");
        return CUDA_ERROR_INVALID_VALUE;
    }
    end(a);
    return CUDA_SUCCESS;
}

void memory_drop_window(CUdeviceptr address) {
    size_t offset;
    allocation *a = memory_find(address, &offset);
    if (a) end(a);
}

static allocation *registered(const unsigned char *host, size_t bytes) {
    for (size_t k = 0; k < memory.n; k++) {
        allocation *a = &memory.items[k];
        if (a->live && a->kind == MEMORY_REGISTERED && host < a->host + a->bytes &&
            a->host < host + bytes)
            return a;
    }
    return NULL;
}

allocation *memory_registered(const void *host) {
    return registered(host, 1);
}

bool memory_is_registered(const void *host, size_t bytes) {
    return registered(host, bytes) != NULL;
}

void memory_release_all(const struct context *context) {
    for (size_t k = 0; k < memory.n; k++) {
        allocation *a = &memory.items[k];
        if (!a->live || a->context != context || a->kind == MEMORY_VARIABLES) continue;
        report_leak(a);
        end(a);
    }
}

/* ---- access ---- */

/* Variables of the module that ran last, by the addresses that kernels use. */
static CUdeviceptr of_variables(CUdeviceptr address) {
    bool constant;
    uint64_t offset;
    CUmodule m = module_last();
    if (!m || !emu_is_variable_address(address, &constant, &offset)) return address;
    const CUdeviceptr window = constant ? m->constants : m->globals;
    return window ? window + offset : address;
}

unsigned char *memory_reach(CUdeviceptr address, size_t bytes, bool write, const char *role) {
    uint64_t offset;
    const allocation *a = at_address(of_variables(address), &offset);
    const char *verb = write ? "writes" : "reads";
    if (!a) {
        report_misuse("invalid-address", NULL,
                      "%s %s %zu bytes at %s 0x%llx, which no call has "
                      "allocated",
                      driver_call(), verb, bytes, role, (unsigned long long)address);
        return NULL;
    }
    if (!a->live) {
        report_misuse("use-after-free", a, "%s %s %zu bytes of memory that is free", driver_call(),
                      verb, bytes);
        return NULL;
    }
    if (offset > a->bytes || bytes > a->bytes - offset) {
        report_misuse("copy-out-of-bounds", a,
                      "%s %s bytes %llu to %llu of an allocation of %zu bytes", driver_call(), verb,
                      (unsigned long long)offset, (unsigned long long)(offset + bytes) - 1,
                      a->bytes);
        return NULL;
    }
    return a->host + offset;
}

void memory_set_written(CUdeviceptr address, size_t bytes) {
    size_t offset;
    allocation *a = memory_find(of_variables(address), &offset);
    if (!a || !a->written || !bytes) return;
    const size_t first = offset / WORD_BYTES, last = (offset + bytes - 1) / WORD_BYTES;
    memset(a->written + first, 1, last - first + 1);
}

unsigned char memory_word(CUdeviceptr address, size_t bytes) {
    size_t offset;
    const allocation *a = memory_find(of_variables(address), &offset);
    if (!a || !a->written || !bytes) return 1;
    const unsigned char *words = a->written + offset / WORD_BYTES;
    const size_t n = (offset + bytes - 1) / WORD_BYTES - offset / WORD_BYTES + 1;
    if (words[0] != 1) return words[0];
    if (!memcmp(words, words + 1, n - 1)) return 1;
    while (*words == 1)
        words++;
    return *words;
}

bool memory_is_written(CUdeviceptr address, size_t bytes) {
    return memory_word(address, bytes) == 1;
}

unsigned char *memory_begin_written(size_t k) {
    allocation *a = memory_at(k);
    /* Of memory that the host or another process sees, and of ranges, all counts as written. */
    if (!a || !a->live || a->shared || !(a->kind == MEMORY_DEVICE || a->kind == MEMORY_ARRAY))
        return NULL;
    const size_t words = (a->bytes + WORD_BYTES - 1) / WORD_BYTES;
    if (!a->written) {
        a->written = map_anywhere(words);
        if (a->written) memset(a->written, 1, words);
    }
    return a->written;
}

/* Words of which only a part is copied count as before, unless that part is written. */
void memory_copy_written(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    size_t at, there;
    const allocation *source = memory_find(of_variables(from), &at);
    const allocation *target = memory_find(of_variables(to), &there);
    if (!source || memory_is_written(from, bytes)) {
        memory_set_written(to, bytes);
        return;
    }
    if (!target || at % WORD_BYTES != there % WORD_BYTES) return;
    unsigned char *words = memory_begin_written((size_t)(target - memory.items));
    const unsigned char *known = source->written;
    for (size_t done = 0, n; words && done < bytes; done += n) {
        const size_t inside = (at + done) % WORD_BYTES;
        n = WORD_BYTES - inside < bytes - done ? WORD_BYTES - inside : bytes - done;
        const unsigned char word = known[(at + done) / WORD_BYTES];
        if (n == WORD_BYTES || word == 1) words[(there + done) / WORD_BYTES] = word;
    }
}

void memory_set_variables(allocation *a) {
    if (on_device(a->kind)) memory.bytes -= a->bytes;
    a->kind = MEMORY_VARIABLES;
}

void memory_set_complete(allocation *a) {
    if (a->written) munmap(a->written, (a->bytes + WORD_BYTES - 1) / WORD_BYTES);
    a->written = NULL;
}
