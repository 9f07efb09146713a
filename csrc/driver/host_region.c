/* The region that pinned and managed allocations share when no other is left for them.
 *
 * It grows by one slot for each allocation, with a page after it. Slots of freed allocations are
 * used again once there are many of them. To a kernel the whole region is one buffer: an access
 * between its allocations is not found.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "driver.h"

enum { PAGE = 4096, QUARANTINE = 64 };

typedef struct slot {
    size_t offset, bytes;
    size_t number; /* of the allocation that has it, or had it last */
    bool taken;
} slot;

static struct {
    unsigned char *base; /* NULL: there is no region yet */
    size_t end;          /* bytes that are mapped */
    slot *slots;         /* by their offset */
    size_t n, capacity, n_free;
} region;

void host_region_start(unsigned char *base, size_t mapped) {
    region.base = base;
    region.end = mapped;
}

bool host_region_buffer(unsigned char **host, size_t *bytes) {
    *host = region.base;
    *bytes = region.end;
    return region.n > 0;
}

/* The slot that an offset is in, or the page after it. */
static slot *slot_at(size_t offset) {
    size_t low = 0, high = region.n;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if (region.slots[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low < high && region.slots[low].offset <= offset ? &region.slots[low] : NULL;
}

static slot *free_slot(size_t bytes) {
    for (size_t k = 0; k < region.n && region.n_free > QUARANTINE; k++) {
        slot *s = &region.slots[k];
        if (s->taken || s->bytes < bytes || s->bytes / 2 > bytes) continue;
        region.n_free--;
        return s;
    }
    return NULL;
}

static slot *new_slot(size_t bytes) {
    const size_t limit = (size_t)(emu_buffer_address(1) - emu_buffer_address(0));
    if (bytes + PAGE > limit - region.end) return NULL;
    if (region.n == region.capacity) {
        const size_t capacity = region.capacity ? 2 * region.capacity : 64;
        slot *larger = realloc(region.slots, capacity * sizeof *larger);
        if (!larger) return NULL;
        region.slots = larger;
        region.capacity = capacity;
    }
    void *wanted = region.base + region.end;
    void *at = mmap(wanted, bytes + PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != wanted) {
        if (at != MAP_FAILED) munmap(at, bytes + PAGE);
        return NULL;
    }
    slot *s = &region.slots[region.n++];
    *s = (slot){.offset = region.end, .bytes = bytes};
    region.end += bytes + PAGE;
    return s;
}

unsigned char *host_region_take(size_t bytes, size_t number) {
    slot *s = region.base ? free_slot(bytes) : NULL;
    if (!s && region.base) s = new_slot(bytes);
    if (!s) return NULL;
    s->taken = true;
    s->number = number;
    return region.base + s->offset;
}

void host_region_give(CUdeviceptr address) {
    slot *s = slot_at((size_t)(address - (uintptr_t)region.base));
    madvise(region.base + s->offset, s->bytes, MADV_DONTNEED); /* zeros again */
    s->taken = false;
    region.n_free++;
}

bool host_region_has(CUdeviceptr address) {
    const uintptr_t base = (uintptr_t)region.base;
    return region.n && address >= base && address - base < region.end;
}

int64_t host_region_number(CUdeviceptr address, size_t *offset) {
    const slot *s = slot_at((size_t)(address - (uintptr_t)region.base));
    if (!s) return -1;
    *offset = (size_t)(address - (uintptr_t)region.base) - s->offset;
    return (int64_t)s->number;
}
