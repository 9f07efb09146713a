/* Values that nobody wrote, on their way from loads to stores.
 *
 * A load of such a value is a finding where it is used. Bytes of its registers that are only copied
 * (ptx_register.used has the others) are not used yet: as in memcheck, the copy is as undefined as
 * its origin. So padding of a struct, or the fourth word of three, may be copied.
 *
 * A warp has a list of the registers that hold undefined bytes now, and one of the words of its
 * threads' local memory. In nearly all runs both are empty, and nothing else is done. Loads and mov
 * give registers new values; a store looks its values up. Granules of shared and global memory
 * remember the load that is their origin (undefined_copies.c).
 */
#include <stdlib.h>

#include "detector.h"
#include "../base/lanes.h"

enum { WORD_BYTES = 4 };

/* A register of a warp, or a word of local memory, that holds undefined bytes in some lanes. */
typedef struct undefined_value {
    uint64_t at; /* of a register: where it is in the host's memory; of a word: its number */
    uint32_t lanes;
    uint16_t bytes[LANES]; /* by lane: which ones */
    undefined_origin origin[LANES];
} undefined_value;

typedef struct undefined_values {
    undefined_value *items;
    uint32_t n, capacity;
} undefined_values;

typedef struct undefined_warp {
    undefined_values registers, words;
} undefined_warp;

bool undefined_init(detector *d) {
    d->undefined = calloc((size_t)d->n_members * d->launch->n_warps, sizeof *d->undefined);
    return d->undefined != NULL;
}

void undefined_free(detector *d) {
    for (size_t k = 0; d->undefined && k < (size_t)d->n_members * d->launch->n_warps; k++) {
        free(d->undefined[k].registers.items);
        free(d->undefined[k].words.items);
    }
    free(d->undefined);
}

static undefined_warp *warp_of(const detector *d, uint32_t member, uint32_t warp) {
    return &d->undefined[(size_t)member * d->launch->n_warps + warp];
}

void undefined_begin_block(detector *d) {
    for (uint32_t k = 0; d->n_undefined && k < d->launch->n_warps; k++) {
        undefined_warp *w = warp_of(d, (uint32_t)(d->running - d->members), k);
        d->n_undefined -= w->registers.n + w->words.n;
        w->registers.n = w->words.n = 0;
    }
}

/* ---- values ---- */

static undefined_value *find(const undefined_values *all, uint64_t at) {
    for (uint32_t k = 0; k < all->n; k++)
        if (all->items[k].at == at) return &all->items[k];
    return NULL;
}

static undefined_value *find_or_add(detector *d, undefined_values *all, uint64_t at) {
    undefined_value *found = find(all, at);
    if (found) return found;
    if (all->n == all->capacity) {
        const uint32_t capacity = all->capacity ? 2 * all->capacity : 4;
        undefined_value *larger = realloc(all->items, capacity * sizeof *larger);
        if (!larger) {
            d->out_of_memory = true;
            return NULL;
        }
        all->items = larger;
        all->capacity = capacity;
    }
    d->n_undefined++;
    found = &all->items[all->n++];
    found->at = at;
    found->lanes = 0;
    return found;
}

/* The lanes get a value that is defined. */
static void forget(detector *d, undefined_values *all, uint64_t at, uint32_t lanes) {
    undefined_value *v = find(all, at);
    if (!v) return;
    v->lanes &= ~lanes;
    if (v->lanes) return;
    *v = all->items[--all->n];
    d->n_undefined--;
}

/* The lane gets a value of which these bytes are undefined, or none. */
static void set_bytes(detector *d, undefined_values *all, uint64_t at, uint32_t lane,
                      uint32_t bytes, undefined_origin origin) {
    undefined_value *v = bytes ? find_or_add(d, all, at) : NULL;
    if (!bytes) forget(d, all, at, 1u << lane);
    if (!v) return;
    v->lanes |= 1u << lane;
    v->bytes[lane] = (uint16_t)bytes;
    v->origin[lane] = origin;
}

/* The undefined bytes of a lane's value, and their origin if there are any. */
static uint32_t bytes_of(const undefined_values *all, uint64_t at, uint32_t lane,
                         undefined_origin *origin) {
    const undefined_value *v = find(all, at);
    if (!v || !(v->lanes >> lane & 1)) return 0;
    *origin = v->origin[lane];
    return v->bytes[lane];
}

static uint32_t first_bytes(uint32_t n) {
    return n < 32 ? (1u << n) - 1 : ~0u;
}

/* ---- registers ---- */

/* Where element k of the operand is; 0: in no register with bytes that are only copied. */
static uint64_t place_of(const ptx_function *f, const unsigned char *registers,
                         const ptx_operand *o, uint32_t k) {
    const ptx_operand *item = ptx_item(o, k);
    if (item->kind != PTX_REGISTER || f->registers[item->reg].used == PTX_ALL_USED) return 0;
    return (uintptr_t)registers + f->registers[item->reg].slot;
}

/* Of a narrow signed element all bytes above have the sign. */
static uint32_t extended(const ptx_instruction *p, uint32_t bytes, uint32_t width) {
    const uint32_t is_signed = 1u << PTX_S8 | 1u << PTX_S16 | 1u << PTX_S32;
    const bool sign = p->types & is_signed && bytes >> (width - 1) & 1;
    return sign ? (bytes | ~first_bytes(width)) & 0xffff : bytes;
}

void undefined_loaded(detector *d, const emu_request *r, uint32_t lane, uint32_t bytes,
                      undefined_origin origin) {
    undefined_values *all = &warp_of(d, r->member, r->warp)->registers;
    const ptx_operand *to = &r->ptx->operands[0];
    const uint32_t n = ptx_count_items(to), width = r->width / n;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t at = place_of(r->function, r->registers, to, k);
        const uint32_t own = bytes >> k * width & first_bytes(width);
        if (at && own) set_bytes(d, all, at, lane, extended(r->ptx, own, width), origin);
    }
}

uint32_t undefined_stored(const detector *d, const emu_request *r, uint32_t lane,
                          undefined_origin *origin) {
    const undefined_values *all = &warp_of(d, r->member, r->warp)->registers;
    const ptx_operand *from = &r->ptx->operands[1];
    const uint32_t n = ptx_count_items(from), width = r->width / n;
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t at = place_of(r->function, r->registers, from, k);
        if (at) bytes |= (bytes_of(all, at, lane, origin) & first_bytes(width)) << k * width;
    }
    return bytes;
}

bool undefined_is_stored(const detector *d, const emu_request *r) {
    undefined_origin origin;
    uint32_t bytes = 0;
    if (!undefined_is_copied(r)) return false;
    for (uint32_t left = r->active; left && !bytes; left &= left - 1)
        bytes = undefined_stored(d, r, (uint32_t)first_lane(left), &origin);
    return bytes != 0;
}

/* A load gives its registers other values. */
static void forget_loaded(detector *d, const emu_request *r) {
    undefined_values *all = &warp_of(d, r->member, r->warp)->registers;
    const ptx_operand *to = &r->ptx->operands[0];
    for (uint32_t k = 0; k < ptx_count_items(to); k++) {
        const uint64_t at = place_of(r->function, r->registers, to, k);
        if (at) forget(d, all, at, r->active);
    }
}

void undefined_moved(detector *d, const emu_move *m) {
    undefined_values *all = &warp_of(d, m->member, m->warp)->registers;
    const ptx_instruction *p = m->ptx;
    const ptx_operand *to = &p->operands[0], *from = &p->operands[1];
    const uint32_t elements = p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : 1;
    if (!all->n || !p->types) return;
    const uint32_t bytes = elements * ptx_type_size[__builtin_ctz(p->types)];
    const uint32_t n_from = ptx_count_items(from), n_to = ptx_count_items(to);
    for (uint32_t left = m->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        undefined_origin origin = {0};
        uint32_t undefined = 0, width = bytes / n_from;
        for (uint32_t k = 0; k < n_from; k++) {
            const uint64_t at = place_of(m->function, m->registers, from, k);
            if (at)
                undefined |= (bytes_of(all, at, lane, &origin) & first_bytes(width)) << k * width;
        }
        width = bytes / n_to;
        for (uint32_t k = 0; k < n_to; k++) {
            const uint64_t at = place_of(m->function, m->registers, to, k);
            if (at)
                set_bytes(d, all, at, lane, undefined >> k * width & first_bytes(width), origin);
        }
    }
}

/* ---- local memory ---- */

/* The undefined ones of a lane's `width` bytes at an offset, and the origin of the first. */
static uint32_t local_bytes(const undefined_values *words, uint32_t lane, uint64_t offset,
                            uint32_t width, undefined_origin *origin) {
    uint32_t bytes = 0;
    for (uint32_t k = 0; words->n && k < width; k++) {
        const uint64_t at = offset + k;
        undefined_origin own;
        if (!(bytes_of(words, at / WORD_BYTES, lane, &own) >> at % WORD_BYTES & 1)) continue;
        if (!bytes) *origin = own;
        bytes |= 1u << k;
    }
    return bytes;
}

/* The lane writes `width` bytes there, of which these are undefined. */
static void set_local(detector *d, undefined_values *words, uint32_t lane, uint64_t offset,
                      uint32_t width, uint32_t bytes, undefined_origin origin) {
    for (uint32_t k = 0; (words->n || bytes) && k < width; k++) {
        const uint64_t at = offset + k;
        const uint32_t bit = 1u << at % WORD_BYTES;
        undefined_origin kept = origin;
        const uint32_t others = bytes_of(words, at / WORD_BYTES, lane, &kept) & ~bit;
        const bool now = bytes >> k & 1;
        set_bytes(d, words, at / WORD_BYTES, lane, others | (now ? bit : 0), now ? origin : kept);
    }
}

/* The value that this load read is used. */
static void report_load(detector *d, undefined_origin origin) {
    findings_add(&d->found, (finding){.kind = SMK_HAZARD_UNINITIALISED,
                                      .op = detector_op(d, origin.load),
                                      .address = origin.address,
                                      .width = WORD_BYTES,
                                      .count = 1,
                                      .of_copy = true});
}

/* A thread's own memory is no place to report: what the original load read is used. */
static void access_local(detector *d, const emu_request *r, const site *accessed_by,
                         uint32_t lane) {
    undefined_values *words = &warp_of(d, r->member, r->warp)->words;
    const uint64_t offset = r->address[lane];
    undefined_origin origin = {0};
    if (undefined_is_copied(r)) {
        const uint32_t stored = undefined_stored(d, r, lane, &origin);
        set_local(d, words, lane, offset, r->width, stored, origin);
        return;
    }
    const uint32_t bytes = local_bytes(words, lane, offset, r->width, &origin);
    if (bytes & ~accessed_by->copied) report_load(d, origin);
    if (bytes & accessed_by->copied)
        undefined_loaded(d, r, lane, bytes & accessed_by->copied, origin);
    if (r->operation != EMU_LOAD) set_local(d, words, lane, offset, r->width, 0, origin);
}

void undefined_request(detector *d, const emu_request *r, const site *accessed_by) {
    if (r->ptx->op == PTX_OP_ld) forget_loaded(d, r);
    for (uint32_t left = r->space == PTX_LOCAL ? r->active : 0; left; left &= left - 1)
        access_local(d, r, accessed_by, (uint32_t)first_lane(left));
}

void undefined_printed(detector *d, const emu_sync *event) {
    const undefined_values *words = &warp_of(d, event->member, event->warp)->words;
    const uint32_t lane = (uint32_t)first_lane(event->lanes);
    undefined_origin origin;
    if (local_bytes(words, lane, event->address[0], event->width, &origin)) report_load(d, origin);
}
