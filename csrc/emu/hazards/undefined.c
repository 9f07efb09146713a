/* Values that nobody wrote, on their way from loads to stores.
 *
 * A load of such a value is a finding where it is used. If the registers of the load are only
 * copied (ptx_register.is_copied), it is not used yet: as in memcheck, the copy is as undefined as
 * its origin. So padding of a struct, or the fourth word of three, may be copied.
 *
 * For each warp there is a list of the registers that hold undefined bytes now. In nearly all runs
 * it is empty, and nothing else is done. Loads and mov give registers new values; a store looks its
 * values up, and its granules remember the load that is their origin (shadow.undefined). Reads of
 * them are reads of what nobody wrote. What no launch can use, such as the result of a call, has
 * been used when the launch ends.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "detector.h"
#include "../base/lanes.h"

enum { WORD_BYTES = 4 };

/* A register of a warp that holds undefined bytes in some lanes. */
typedef struct undefined_register {
    const unsigned char *slot; /* in the warp's frame */
    uint32_t lanes;
    uint16_t bytes[LANES]; /* by lane: which ones */
    undefined_origin origin[LANES];
} undefined_register;

typedef struct undefined_registers {
    undefined_register *items;
    uint32_t n, capacity;
} undefined_registers;

bool undefined_init(detector *d) {
    d->undefined = calloc((size_t)d->n_members * d->launch->n_warps, sizeof *d->undefined);
    return d->undefined != NULL;
}

void undefined_free(detector *d) {
    for (size_t k = 0; d->undefined && k < (size_t)d->n_members * d->launch->n_warps; k++)
        free(d->undefined[k].items);
    free(d->undefined);
}

/* ---- registers ---- */

static undefined_registers *registers_of(const detector *d, uint32_t member, uint32_t warp) {
    return &d->undefined[(size_t)member * d->launch->n_warps + warp];
}

void undefined_begin_block(detector *d) {
    for (uint32_t warp = 0; d->n_undefined && warp < d->launch->n_warps; warp++) {
        undefined_registers *all = registers_of(d, (uint32_t)(d->running - d->members), warp);
        d->n_undefined -= all->n;
        all->n = 0;
    }
}

static undefined_register *find(const undefined_registers *all, const unsigned char *slot) {
    for (uint32_t k = 0; k < all->n; k++)
        if (all->items[k].slot == slot) return &all->items[k];
    return NULL;
}

static undefined_register *find_or_add(detector *d, undefined_registers *all,
                                       const unsigned char *slot) {
    undefined_register *found = find(all, slot);
    if (found) return found;
    if (all->n == all->capacity) {
        const uint32_t capacity = all->capacity ? 2 * all->capacity : 4;
        undefined_register *larger = realloc(all->items, capacity * sizeof *larger);
        if (!larger) {
            d->out_of_memory = true;
            return NULL;
        }
        all->items = larger;
        all->capacity = capacity;
    }
    d->n_undefined++;
    found = &all->items[all->n++];
    found->slot = slot;
    found->lanes = 0;
    return found;
}

static void set_bytes(detector *d, undefined_registers *all, const unsigned char *slot,
                      uint32_t lane, uint32_t bytes, undefined_origin origin) {
    undefined_register *r = bytes ? find_or_add(d, all, slot) : NULL;
    if (!r) return;
    r->lanes |= 1u << lane;
    r->bytes[lane] = (uint16_t)bytes;
    r->origin[lane] = origin;
}

/* The lanes get another value. */
static void forget(detector *d, undefined_registers *all, const unsigned char *slot,
                   uint32_t lanes) {
    undefined_register *r = find(all, slot);
    if (!r) return;
    r->lanes &= ~lanes;
    if (r->lanes) return;
    *r = all->items[--all->n];
    d->n_undefined--;
}

static uint32_t bytes_of(const undefined_registers *all, const unsigned char *slot, uint32_t lane,
                         undefined_origin *origin) {
    const undefined_register *r = find(all, slot);
    if (!r || !(r->lanes >> lane & 1)) return 0;
    *origin = r->origin[lane];
    return r->bytes[lane];
}

/* ---- operands ---- */

/* The elements of a vector, or the operand itself. */
static uint32_t count_items(const ptx_operand *o) {
    return o->kind == PTX_VECTOR ? o->n_items : 1;
}

/* Where element k of the operand is; NULL: in no register whose values are only copied. */
static const unsigned char *slot_of(const ptx_function *f, const unsigned char *registers,
                                    const ptx_operand *o, uint32_t k) {
    const ptx_operand *item = o->kind == PTX_VECTOR ? &o->items[k] : o;
    if (item->kind != PTX_REGISTER || !f->registers[item->reg].is_copied) return NULL;
    return registers + f->registers[item->reg].slot;
}

static uint32_t first_bytes(uint32_t n) {
    return n < 32 ? (1u << n) - 1 : ~0u;
}

/* ---- loads, stores and mov ---- */

/* Of a narrow signed element all bytes above have the sign. */
static uint32_t extended(const ptx_instruction *p, uint32_t bytes, uint32_t width) {
    const uint32_t is_signed = 1u << PTX_S8 | 1u << PTX_S16 | 1u << PTX_S32;
    const bool sign = p->types & is_signed && bytes >> (width - 1) & 1;
    return sign ? (bytes | ~first_bytes(width)) & 0xffff : bytes;
}

void undefined_loaded(detector *d, const emu_request *r, uint32_t lane, uint32_t bytes,
                      undefined_origin origin) {
    undefined_registers *all = registers_of(d, r->member, r->warp);
    const ptx_operand *to = &r->ptx->operands[0];
    const uint32_t n = count_items(to), width = r->width / n;
    for (uint32_t k = 0; k < n; k++) {
        const unsigned char *slot = slot_of(r->function, r->registers, to, k);
        const uint32_t own = bytes >> k * width & first_bytes(width);
        if (slot) set_bytes(d, all, slot, lane, extended(r->ptx, own, width), origin);
    }
}

uint32_t undefined_stored(const detector *d, const emu_request *r, uint32_t lane,
                          undefined_origin *origin) {
    const undefined_registers *all = registers_of(d, r->member, r->warp);
    const ptx_operand *from = &r->ptx->operands[1];
    const uint32_t n = count_items(from), width = r->width / n;
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < n; k++) {
        const unsigned char *slot = slot_of(r->function, r->registers, from, k);
        if (slot) bytes |= (bytes_of(all, slot, lane, origin) & first_bytes(width)) << k * width;
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

static void report_load(detector *d, undefined_origin origin) {
    findings_add(&d->found, (finding){.kind = SMK_HAZARD_UNINITIALISED,
                                      .op = detector_op(d, origin.load),
                                      .address = origin.address,
                                      .width = WORD_BYTES,
                                      .count = 1});
}

void undefined_request(detector *d, const emu_request *r) {
    if (r->ptx->op == PTX_OP_ld) {
        const ptx_operand *to = &r->ptx->operands[0];
        for (uint32_t k = 0; k < count_items(to); k++) {
            const unsigned char *slot = slot_of(r->function, r->registers, to, k);
            if (slot) forget(d, registers_of(d, r->member, r->warp), slot, r->active);
        }
    } else if (r->space != PTX_SHARED && r->space != PTX_GLOBAL && undefined_is_stored(d, r)) {
        for (uint32_t left = r->active; left; left &= left - 1) {
            undefined_origin origin;
            if (undefined_stored(d, r, (uint32_t)first_lane(left), &origin)) report_load(d, origin);
        }
    }
}

void undefined_moved(detector *d, const emu_move *m) {
    undefined_registers *all = registers_of(d, m->member, m->warp);
    const ptx_instruction *p = m->ptx;
    const ptx_operand *to = &p->operands[0], *from = &p->operands[1];
    const uint32_t elements = p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : 1;
    if (!all->n || !p->types) return;
    const uint32_t width = elements * ptx_type_size[__builtin_ctz(p->types)];
    uint32_t bytes[LANES] = {0};
    undefined_origin origin[LANES];
    for (uint32_t k = 0, n = count_items(from); k < n; k++) {
        const unsigned char *slot = slot_of(m->function, m->registers, from, k);
        for (uint32_t left = slot ? m->active : 0; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)first_lane(left);
            const uint32_t own = bytes_of(all, slot, lane, &origin[lane]) & first_bytes(width / n);
            bytes[lane] |= own << k * (width / n);
        }
    }
    for (uint32_t k = 0, n = count_items(to); k < n; k++) {
        const unsigned char *slot = slot_of(m->function, m->registers, to, k);
        if (slot) forget(d, all, slot, m->active);
        for (uint32_t left = slot ? m->active : 0; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)first_lane(left);
            set_bytes(d, all, slot, lane, bytes[lane] >> k * (width / n) & first_bytes(width / n),
                      origin[lane]);
        }
    }
}

/* ---- memory ---- */

undefined_origin undefined_origin_of(const detector *d, const shadow *s, uint64_t granule,
                                     epoch now) {
    const epoch copy = undefined_copy(d, s, granule);
    return copy ? (undefined_origin){copy, s->undefined_from[granule]}
                : (undefined_origin){now, s->base + (granule << s->shift)};
}

void undefined_set(detector *d, shadow *s, uint64_t granule, undefined_origin origin) {
    if (!s->undefined && !shadow_add_undefined(d, s)) return;
    s->undefined[granule] = origin.load;
    s->undefined_from[granule] = origin.address;
}

/* ---- when the launch has ended ---- */

static bool is_race(smk_hazard_kind kind) {
    return kind == SMK_HAZARD_RAW || kind == SMK_HAZARD_WAR || kind == SMK_HAZARD_WAW ||
           kind == SMK_HAZARD_ASYNC_READ || kind == SMK_HAZARD_ASYNC_WRITE;
}

/* Whether the instruction is in a race: it may have read before a write that the program has. */
static bool races(const hazards *h, const ptx_instruction *p) {
    for (size_t k = 0; k < h->found.n; k++) {
        const finding *f = &h->found.items[k];
        if (is_race(f->kind) && (f->op.ptx == p || f->other.ptx == p)) return true;
    }
    return false;
}

/* Findings about values that a race has left undefined. The race is one, too. */
static void drop_races(hazards *h) {
    for (size_t k = 0; k < h->found.n; k++) {
        finding *f = &h->found.items[k];
        if (f->kind == SMK_HAZARD_UNINITIALISED && f->other.ptx &&
            (races(h, f->op.ptx) || races(h, f->other.ptx)))
            f->count = 0;
    }
}

/* Whether all bytes of the word are copies. */
static bool is_copied_word(const shadow *s, uint64_t word) {
    const uint64_t first = word * WORD_BYTES;
    for (uint64_t at = first; at < first + WORD_BYTES && at < s->bytes; at++)
        if (!s->undefined[at >> s->shift]) return false;
    return true;
}

/* The words of the buffer hold copies. */
static void note_words(const hazards *h, const shadow *s, unsigned char *words) {
    const ptx_instruction *last = NULL;
    unsigned char number = 0;
    for (uint64_t word = 0; word * WORD_BYTES < s->bytes; word++) {
        if (!is_copied_word(s, word)) continue;
        const epoch load = s->undefined[word * WORD_BYTES >> s->shift];
        const ptx_instruction *p = h->sites.sites[epoch_site(load)].ptx;
        if (p != last)
            number = races(h, p) ? 0 : h->job->copied_by(p->file, p->file ? p->line : p->ptx_line);
        last = p;
        if (number) words[word] = number;
    }
}

static void report_granules(hazards *h, const detector *d, const shadow *s) {
    for (uint64_t k = 0; k < shadow_granules(s); k++) {
        const epoch load = s->undefined[k];
        if (!load || races(h, h->sites.sites[epoch_site(load)].ptx)) continue;
        findings_add(&h->found, (finding){.kind = SMK_HAZARD_UNINITIALISED,
                                          .op = detector_op(d, load),
                                          .address = s->undefined_from[k],
                                          .width = 1u << s->shift,
                                          .count = 1});
    }
}

void undefined_note(hazards *h) {
    const launch *l = h->launch;
    drop_races(h);
    if (atomic_load(&l->stop) || h->full) return;
    for (const detector *d = h->joined; d; d = d->next)
        for (uint32_t k = REGION_GLOBAL; k < l->n_regions; k++) {
            const shadow *s = &d->regions[k];
            if (!s->undefined || k == REGION_HEAP) continue; /* of malloc: nothing follows it */
            unsigned char *words = unwritten_words_to_set(h, k);
            if (words)
                note_words(h, s, words);
            else
                report_granules(h, d, s);
        }
}
