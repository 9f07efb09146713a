/* Plain reads whose value a compare-and-swap (CAS) then checks, as in the first line of
 *
 *     old = *p;
 *     do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);
 *
 * The read is not ordered with the CAS of other threads. It is benign: if the value is out of date,
 * the thread's own CAS fails. A load is such a read if, after each of its executions, its thread's
 * next access to these bytes is a CAS of the same bytes. Its races with atomics of the same width
 * become findings of kind cas-read, which are no hazards. A race with a plain write stays a race.
 */
#include <stdlib.h>

#include "detector.h"
#include "../base/lanes.h"

/* A thread remembers this many plain reads; the oldest one then counts as not followed by a CAS. */
enum { MAX_PENDING = 4, MAX_CAS_BYTES = 8 };

typedef struct pending_read {
    uint64_t address; /* 0: none */
    uint32_t bytes, site;
} pending_read;

struct cas_reads {
    pending_read (*pending)[MAX_PENDING]; /* by thread, the latest first */
    uint8_t *unconfirmed;                 /* by site: some execution was not followed by a CAS */
};

bool cas_reads_init(detector *d) {
    const site_table *t = &d->hazards->sites;
    if (!t->has_cas) return true;
    d->cas_reads = calloc(1, sizeof *d->cas_reads);
    if (!d->cas_reads) return false;
    d->cas_reads->pending =
        calloc((size_t)d->n_members * d->launch->n_warps, LANES * sizeof *d->cas_reads->pending);
    d->cas_reads->unconfirmed = calloc(t->n, 1);
    return d->cas_reads->pending && d->cas_reads->unconfirmed;
}

void cas_reads_free(detector *d) {
    if (!d->cas_reads) return;
    free(d->cas_reads->pending);
    free(d->cas_reads->unconfirmed);
    free(d->cas_reads);
}

static bool is_cas(const ptx_instruction *p) {
    return p->op == PTX_OP_atom && p->has & PTX_HAS_CAS;
}

/* Bytes of an instruction on one element of one type; 0: it has another form. */
static uint32_t scalar_bytes(const ptx_instruction *p) {
    const bool has_one_type = p->types && !(p->types & (p->types - 1));
    if (!has_one_type || p->has & (PTX_HAS_V2 | PTX_HAS_V4)) return 0;
    return ptx_type_size[__builtin_ctz(p->types)];
}

/* ---- while blocks run ---- */

/* Removes the thread's pending reads of these bytes. The access confirms them if it is a CAS. */
static void settle(cas_reads *c, pending_read *pending, uint64_t address, uint32_t bytes,
                   bool cas) {
    int kept = 0;
    for (int k = 0; k < MAX_PENDING && pending[k].address; k++) {
        const pending_read p = pending[k];
        if (p.address >= address + bytes || address >= p.address + p.bytes)
            pending[kept++] = p;
        else if (!cas || p.address != address || p.bytes != bytes)
            c->unconfirmed[p.site] = 1;
    }
    for (; kept < MAX_PENDING; kept++)
        pending[kept].address = 0;
}

static void add(cas_reads *c, pending_read *pending, pending_read read) {
    const pending_read oldest = pending[MAX_PENDING - 1];
    if (oldest.address) c->unconfirmed[oldest.site] = 1;
    for (int k = MAX_PENDING - 1; k; k--)
        pending[k] = pending[k - 1];
    pending[0] = read;
}

/* By thread of the running block. */
static pending_read (*running_pending(const detector *d)) [MAX_PENDING] {
    const size_t threads = (size_t)d->launch->n_warps * LANES;
    return d->cas_reads->pending + (size_t)(d->running - d->members) * threads;
}

void cas_reads_request(detector *d, const emu_request *r, uint32_t site) {
    cas_reads *c = d->cas_reads;
    if (!c || r->operation > EMU_ATOMIC) return;
    const bool cas = is_cas(r->ptx), is_shared = r->space == PTX_SHARED;
    const bool plain_read = r->operation == EMU_LOAD && scalar_bytes(r->ptx) == r->width &&
                            r->width <= MAX_CAS_BYTES &&
                            d->hazards->sites.sites[site].access_kind == WEAK;
    for (uint32_t left = r->active; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)first_lane(left);
        const uint64_t address = r->address[lane] + (is_shared ? shared_object(r->owner) : 0);
        const uint64_t id = REGION_OF(address);
        pending_read *pending = running_pending(d)[r->warp * LANES + lane];
        settle(c, pending, address, r->width, cas);
        const bool writable =
            is_shared || (id < d->launch->n_regions && d->launch->regions[id].writable);
        if (plain_read && writable) add(c, pending, (pending_read){address, r->width, site});
    }
}

void cas_reads_end_block(detector *d) {
    cas_reads *c = d->cas_reads;
    for (uint32_t t = 0; c && t < d->launch->n_warps * LANES; t++)
        for (int k = 0; k < MAX_PENDING; k++) {
            pending_read *p = &running_pending(d)[t][k];
            if (p->address) c->unconfirmed[p->site] = 1;
            p->address = 0;
        }
}

/* ---- when the launch has ended ---- */

static uint32_t site_of(const site_table *t, const ptx_instruction *p) {
    for (uint32_t k = 0; k < t->n_functions; k++) {
        const ptx_function *f = t->functions[k];
        if (p >= f->instructions && p < f->instructions + f->n_instructions)
            return t->first_site[k] + (uint32_t)(p - f->instructions);
    }
    return 0;
}

/* Whether the instruction is a plain load that a CAS always confirmed. */
static bool is_confirmed(const hazards *h, const ptx_instruction *load) {
    const uint32_t site = site_of(&h->sites, load);
    if (!site || load->op != PTX_OP_ld || h->sites.sites[site].access_kind != WEAK) return false;
    for (const detector *d = h->joined; d; d = d->next)
        if (d->cas_reads->unconfirmed[site]) return false;
    return true;
}

void cas_reads_classify(hazards *h) {
    for (size_t k = h->n_found_before; h->sites.has_cas && k < h->found.n; k++) {
        finding *f = &h->found.items[k];
        if (f->kind != SMK_HAZARD_RAW && f->kind != SMK_HAZARD_WAR) continue;
        const finding_op read = f->kind == SMK_HAZARD_RAW ? f->op : f->other;
        const finding_op write = f->kind == SMK_HAZARD_RAW ? f->other : f->op;
        if (!read.ptx || !write.ptx || ptx_facts(write.ptx)->sync != SYNC_ATOMIC ||
            !scalar_bytes(read.ptx) || scalar_bytes(read.ptx) != scalar_bytes(write.ptx) ||
            !is_confirmed(h, read.ptx))
            continue;
        f->kind = SMK_HAZARD_CAS_READ;
        f->op = read;
        f->other = write;
    }
}
