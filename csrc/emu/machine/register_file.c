/* Frames: allocates them, and sets the values of their constants and special registers. */
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "../base/device.h"

/* Sets all lanes of a slot; bytes: per lane. */
static void fill(unsigned char *slot, uint32_t bytes, uint64_t value) {
    switch (bytes) {
    case 2:
        for (int l = 0; l < LANES; l++)
            ((uint16_t *)slot)[l] = (uint16_t)value;
        break;
    case 4:
        for (int l = 0; l < LANES; l++)
            ((uint32_t *)slot)[l] = (uint32_t)value;
        break;
    case 8:
        for (int l = 0; l < LANES; l++)
            ((uint64_t *)slot)[l] = value;
        break;
    default: /* 16: an immediate has 64 bits, so the high half is 0 */
        for (int l = 0; l < LANES; l++) {
            ((uint64_t *)slot)[2 * l] = value;
            ((uint64_t *)slot)[2 * l + 1] = 0;
        }
    }
}

static void set_lane(unsigned char *slot, uint32_t bytes, int lane, uint64_t value) {
    memcpy(slot + (size_t)lane * bytes, &value, bytes);
}

/* What clocks and timers read: the warp instructions that the block has executed so far, and the
 * nanoseconds of its waits. All warps of a block read one time, and no time depends on the host. */
static uint64_t block_time(const warp *w) {
    return w->block->time + (w->clock - w->slice_start);
}

static uint64_t rounded_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/* The value of a special register or slot_kind that is the same in all lanes of the warp. */
static uint64_t uniform_value(const warp *w, const frame *f, unsigned kind) {
    const block *b = w->block;
    const launch *l = b->launch;
    switch (kind) {
    case PTX_SPECIAL_NTID_X: return l->block[0];
    case PTX_SPECIAL_NTID_Y: return l->block[1];
    case PTX_SPECIAL_NTID_Z: return l->block[2];
    case PTX_SPECIAL_CTAID_X: return b->index[0];
    case PTX_SPECIAL_CTAID_Y: return b->index[1];
    case PTX_SPECIAL_CTAID_Z: return b->index[2];
    case PTX_SPECIAL_NCTAID_X: return l->grid[0];
    case PTX_SPECIAL_NCTAID_Y: return l->grid[1];
    case PTX_SPECIAL_NCTAID_Z: return l->grid[2];
    case PTX_SPECIAL_CLUSTERID_X: return b->index[0] / l->cluster[0];
    case PTX_SPECIAL_CLUSTERID_Y: return b->index[1] / l->cluster[1];
    case PTX_SPECIAL_CLUSTERID_Z: return b->index[2] / l->cluster[2];
    case PTX_SPECIAL_NCLUSTERID_X: return l->grid[0] / l->cluster[0];
    case PTX_SPECIAL_NCLUSTERID_Y: return l->grid[1] / l->cluster[1];
    case PTX_SPECIAL_NCLUSTERID_Z: return l->grid[2] / l->cluster[2];
    case PTX_SPECIAL_CLUSTER_CTAID_X: return b->index[0] % l->cluster[0];
    case PTX_SPECIAL_CLUSTER_CTAID_Y: return b->index[1] % l->cluster[1];
    case PTX_SPECIAL_CLUSTER_CTAID_Z: return b->index[2] % l->cluster[2];
    case PTX_SPECIAL_CLUSTER_CTARANK: return b->rank;
    case PTX_SPECIAL_CLUSTER_NCTARANK: return l->cluster_blocks;
    case PTX_SPECIAL_CLUSTER_NCTAID_X: return l->cluster[0];
    case PTX_SPECIAL_CLUSTER_NCTAID_Y: return l->cluster[1];
    case PTX_SPECIAL_CLUSTER_NCTAID_Z: return l->cluster[2];
    case PTX_SPECIAL_WARPID: return w->index;
    case PTX_SPECIAL_NWARPID: return MAX_WARPS;
    case PTX_SPECIAL_SMID: return b->linear % EMU_MULTIPROCESSORS;
    case PTX_SPECIAL_NSMID: return EMU_MULTIPROCESSORS;
    case PTX_SPECIAL_CLOCK: return (uint32_t)block_time(w);
    case PTX_SPECIAL_CLOCK_HI: return block_time(w) >> 32;
    case PTX_SPECIAL_CLOCK64:
    case PTX_SPECIAL_GLOBALTIMER: return block_time(w);
    case PTX_SPECIAL_GLOBALTIMER_LO: return (uint32_t)block_time(w);
    case PTX_SPECIAL_GLOBALTIMER_HI: return block_time(w) >> 32;
    case PTX_SPECIAL_DYNAMIC_SMEM_SIZE: return l->dynamic_shared_bytes;
    case PTX_SPECIAL_TOTAL_SMEM_SIZE: return rounded_up(l->shared_bytes, SHARED_UNIT);
    case PTX_SPECIAL_AGGR_SMEM_SIZE:
        return rounded_up(l->shared_bytes, SHARED_UNIT) + RESERVED_SHARED_BYTES;
    case PTX_SPECIAL_RESERVED_SMEM_OFFSET_BEGIN:
    case PTX_SPECIAL_RESERVED_SMEM_OFFSET_0: return l->reserved_shared_at;
    case PTX_SPECIAL_RESERVED_SMEM_OFFSET_1:
        return l->reserved_shared_at + RESERVED_SHARED_PARTITION;
    case PTX_SPECIAL_RESERVED_SMEM_OFFSET_CAP:
    case PTX_SPECIAL_RESERVED_SMEM_OFFSET_END: return l->reserved_shared_at + RESERVED_SHARED_BYTES;
    case SLOT_LOCAL_BASE: return REGION_BASE(REGION_LOCAL) + f->local_base;
    case SLOT_SHARED_BASE: return WINDOW_BASE(b->rank);
    case SLOT_DYNAMIC_SHARED: return WINDOW_BASE(b->rank) + l->dynamic_shared_at;
    case PTX_SPECIAL_IS_EXPLICIT_CLUSTER: return l->explicit_cluster;
    /* The grid's workspace: cooperative groups synchronise a grid by its second word. */
    case PTX_SPECIAL_ENVREG1: return (l->cooperative ? REGION_BASE(REGION_GRID) : 0) >> 32;
    case PTX_SPECIAL_ENVREG2: return (uint32_t)(l->cooperative ? REGION_BASE(REGION_GRID) : 0);
    case PTX_SPECIAL_CURRENT_GRAPH_EXEC: return l->graph;
    default: return 0; /* GRIDID, ZERO */
    }
}

/* The value of a special register that differs between lanes; false: it is uniform. */
static bool lane_value(const warp *w, unsigned kind, uint32_t lane, uint64_t *value) {
    const uint32_t *shape = w->block->launch->block;
    const uint32_t thread = w->index * LANES + lane;
    const uint32_t bit = 1u << lane;
    switch (kind) {
    case PTX_SPECIAL_TID_X: *value = thread % shape[0]; break;
    case PTX_SPECIAL_TID_Y: *value = thread / shape[0] % shape[1]; break;
    case PTX_SPECIAL_TID_Z: *value = thread / shape[0] / shape[1]; break;
    case PTX_SPECIAL_LANEID: *value = lane; break;
    case PTX_SPECIAL_LANEMASK_EQ: *value = bit; break;
    case PTX_SPECIAL_LANEMASK_LT: *value = bit - 1; break;
    case PTX_SPECIAL_LANEMASK_LE: *value = bit | (bit - 1); break;
    case PTX_SPECIAL_LANEMASK_GT: *value = ~(bit | (bit - 1)); break;
    case PTX_SPECIAL_LANEMASK_GE: *value = ~(bit - 1); break;
    default: return false;
    }
    return true;
}

bool special_is_time(unsigned kind) {
    switch (kind) {
    case PTX_SPECIAL_CLOCK:
    case PTX_SPECIAL_CLOCK_HI:
    case PTX_SPECIAL_CLOCK64:
    case PTX_SPECIAL_GLOBALTIMER:
    case PTX_SPECIAL_GLOBALTIMER_LO:
    case PTX_SPECIAL_GLOBALTIMER_HI: return true;
    default: return false;
    }
}

/* The FILL_ bit of a special register or slot_kind. */
static unsigned changes_by(unsigned kind) {
    if (special_is_time(kind)) return FILL_TIME;
    switch (kind) {
    case PTX_SPECIAL_CTAID_X:
    case PTX_SPECIAL_CTAID_Y:
    case PTX_SPECIAL_CTAID_Z:
    case PTX_SPECIAL_CLUSTERID_X:
    case PTX_SPECIAL_CLUSTERID_Y:
    case PTX_SPECIAL_CLUSTERID_Z:
    case PTX_SPECIAL_CLUSTER_CTAID_X:
    case PTX_SPECIAL_CLUSTER_CTAID_Y:
    case PTX_SPECIAL_CLUSTER_CTAID_Z:
    case PTX_SPECIAL_SMID: return FILL_BLOCK;
    default: return FILL_REST;
    }
}

void frame_fill(const warp *w, frame *f, unsigned which) {
    for (uint32_t k = 0; k < f->program->n_specials; k++) {
        const special_slot *s = &f->program->specials[k];
        if (!(which & changes_by(s->kind))) continue;
        uint64_t value;
        if (!lane_value(w, s->kind, 0, &value)) {
            fill(f->slots + s->offset, s->bytes,
                 uniform_value(w, f, s->kind) + (uint64_t)s->addend);
            continue;
        }
        for (uint32_t lane = 0; lane < LANES; lane++) {
            lane_value(w, s->kind, lane, &value);
            set_lane(f->slots + s->offset, s->bytes, (int)lane, value);
        }
    }
}

const insn *exec_read_time(warp *w, const insn *i) {
    frame_fill(w, w->split->frame, FILL_TIME);
    return i + 1;
}

/* ---- frames ---- */

frame *frame_acquire(warp *w, const program *p, uint64_t local_base, uint32_t depth) {
    /* The free list may be long. It starts with the frame released last, so look at the first
     * few. */
    enum { MAX_LOOK = 64 };
    block *b = w->block;
    frame **link = &b->free_frames;
    for (int left = MAX_LOOK; *link && (*link)->program != p && left; left--)
        link = &(*link)->next_free;
    frame *f = *link && (*link)->program == p ? *link : NULL;
    if (f) {
        *link = f->next_free;
    } else {
        const size_t bytes = p->frame_bytes;
        f = block_charge(b, sizeof *f + bytes) ? malloc(sizeof *f) : NULL;
        if (!f) return NULL;
        unsigned char *const slots = guarded_arena_alloc(&b->registers, bytes);
        *f = (frame){.program = p, .slots = slots};
        if (!slots) {
            free(f);
            return NULL;
        }
        f->next_allocated = b->all_frames;
        b->all_frames = f;
        /* Uninitialized registers hold NaNs, like uninitialized shared memory. */
        for (size_t at = 0; at < bytes; at += sizeof(uint16_t))
            memcpy(slots + at, &(uint16_t){POISON}, sizeof(uint16_t));
        for (uint32_t k = 0; k < p->n_constants; k++)
            fill(f->slots + p->constants[k].offset, p->constants[k].bytes, p->constants[k].bits);
    }
    f->local_base = local_base;
    f->depth = depth;
    frame_fill(w, f, FILL_BLOCK | FILL_REST);
    return f;
}

void frame_release(block *b, frame *f) {
    f->next_free = b->free_frames;
    b->free_frames = f;
}

bool local_reserve(warp *w, uint64_t bytes) {
    local_memory *local = w->local;
    if (bytes <= local->size) return true;
    /* At least doubles the size, so that a deep recursion copies each byte about once. */
    const uint64_t twice = 2 * local->size < MAX_LOCAL_BYTES ? 2 * local->size : MAX_LOCAL_BYTES;
    const uint64_t size = ((bytes > twice ? bytes : twice) + 255) & ~(uint64_t)255;
    const uint64_t before = local->size * LANES;
    unsigned char *larger =
        block_charge(w->block, size * LANES - before) ? guarded_alloc(size * LANES) : NULL;
    if (!larger) return false;
    if (before) memcpy(larger, local->bytes, (size_t)before);
    for (uint64_t at = before; at < size * LANES; at += sizeof(uint16_t))
        memcpy(larger + at, &(uint16_t){POISON}, sizeof(uint16_t));
    guarded_free(local->bytes, before);
    *local = (local_memory){larger, size};
    return true;
}
