/* Counts what a profiler would: requests, wavefronts, sectors, warp instructions, barriers.
 *
 * During a launch each instruction has its own counters in a table of its function. After the run
 * counts_report.c sums them by source line and by opcode. The cost of a request is computed once
 * per access pattern (cost_cache.h).
 */
#include <stdlib.h>
#include <string.h>

#include "counts_table.h"
#include "../base/lanes.h"
#include "ptxas_vectorize.h"

/* ---- during a launch ---- */

static void free_tally(tally *t) {
    if (t) free(t->wider);
    free(t);
}

static void free_function(function_counts *f) {
    for (uint32_t k = 0; f->tallies && k < f->function->n_instructions; k++) {
        free_tally(f->tallies[k].shared);
        free_tally(f->tallies[k].remote);
        free_tally(f->tallies[k].global);
    }
    free(f->tallies);
    free(f->executed);
    free(f);
}

static function_counts *find_function(counts *c, const ptx_function *function) {
    function_counts **link = &c->functions;
    while (*link && (*link)->function != function)
        link = &(*link)->next;
    function_counts *f = *link;
    if (!f) {
        f = calloc(1, sizeof *f);
        if (f) {
            f->function = function;
            f->executed = calloc(function->n_instructions + 1, sizeof *f->executed);
            f->tallies = calloc(function->n_instructions + 1, sizeof *f->tallies);
        }
        if (!f || !f->executed || !f->tallies) {
            if (f) free_function(f);
            c->out_of_memory = true;
            return NULL;
        }
    } else {
        *link = f->next;
    }
    f->next = c->functions;
    return c->functions = f;
}

static function_counts *counts_of(counts *c, const ptx_function *function) {
    function_counts *f = c->functions;
    return f && f->function == function ? f : find_function(c, function);
}

static tally *tally_at(counts *c, tally **slot) {
    if (!*slot) *slot = calloc(1, sizeof **slot);
    c->out_of_memory |= !*slot;
    return *slot;
}

static emu_executed *on_executed(void *state, const ptx_function *function) {
    const function_counts *f = counts_of(state, function);
    return f ? f->executed : NULL;
}

/* The cost depends on the pattern, on the operation and widths, and on the base address modulo 16
 * in shared memory (the widest access), 32 in global memory (a sector), or 128 for cp.async and
 * atomics on shared memory (a row of all banks). */
static uint64_t pattern_kind(const emu_request *r) {
    const bool is_shared = r->space == PTX_SHARED;
    const bool in_line = r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE;
    const uint64_t period = is_shared && in_line ? 128 : is_shared ? 16 : 32;
    const uint64_t phase = r->address[__builtin_ctz(r->active)] & (period - 1);
    return 1 | (uint64_t)is_shared << 1 | (uint64_t)r->operation << 8 | (uint64_t)r->width << 16 |
           phase << 24 | (uint64_t)r->machine->width << 32 |
           (uint64_t)(uint8_t)r->machine->shift << 40;
}

/* The pattern of a request. For atomics and cp.async its context is the instruction, whose
 * modifiers matter, and for cp.async that reads also the pattern of its source addresses. */
static pattern *find_pattern(counts *c, const emu_request *r, pattern *last, bool *known) {
    uint64_t context = 0;
    if (r->operation == EMU_COPY_ASYNC_WRITE || r->operation == EMU_ATOMIC)
        context = (uint64_t)(uintptr_t)r->ptx;
    if (r->reading) {
        enum { SOURCE = 1 << 2, LINE = 128 };
        const uint64_t kind = SOURCE | (r->source[__builtin_ctz(r->reading)] & (LINE - 1)) << 24;
        const pattern *source =
            c->lookup(c->patterns, r->source, r->reading, kind, context, NULL, known);
        if (!source) return NULL;
        context = source->id;
    }
    return c->lookup(c->patterns, r->address, r->active, pattern_kind(r), context, last, known);
}

static request_cost cached_cost(counts *c, const emu_request *r, pattern **last) {
    bool known = false;
    pattern *p = *last = find_pattern(c, r, *last, &known);
    if (known) return (request_cost){p->value[0], p->value[1], p->value[2], p->value[3]};
    const request_cost found = request_cost_of(r);
    if (p) {
        p->value[0] = found.actual;
        p->value[1] = found.ideal;
        p->value[2] = found.machine;
        p->value[3] = found.machine_ideal;
    }
    return found;
}

/* Wavefronts of 32 lanes with one address or with consecutive ones: one per group of lanes.
 * Groups of a wide load from one address merge in pairs (banks.h). */
static uint32_t conflict_free_wavefronts(const emu_request *r, uint32_t width) {
    const uint32_t groups = width <= 4 ? 1 : width / 4;
    return groups > 1 && r->operation == EMU_LOAD && r->step == 0 ? groups / 2 : groups;
}

static request_cost cost_of(counts *c, const emu_request *r, pattern **at) {
    const bool evenly_spaced = r->step != ~(uint64_t)0 && r->operation != EMU_TEXTURE_READ;
    if (r->space == PTX_GLOBAL) {
        if (!evenly_spaced) return cached_cost(c, r, at);
        const uint64_t first = r->address[0], last = r->address[LANES - 1] + r->width - 1;
        return (request_cost){(uint32_t)(last / 32 - first / 32) + 1,
                              r->step ? (LANES * r->width + 31) / 32 : 1, 0, 0};
    }
    const uint32_t machine = r->machine->width;
    if (!evenly_spaced || (machine && r->step) || r->operation == EMU_ATOMIC ||
        r->operation == EMU_COPY_ASYNC_WRITE)
        return cached_cost(c, r, at);
    const uint32_t actual = conflict_free_wavefronts(r, r->width);
    const uint32_t joined = machine ? conflict_free_wavefronts(r, machine) : actual;
    return (request_cost){actual, actual, joined, joined};
}

static void record_worst(tally *t, const emu_request *r, uint32_t actual) {
    t->worst = actual;
    smk_request *worst = &t->worst_request;
    memcpy(worst->address, r->address, sizeof worst->address);
    memcpy(worst->block, r->block, sizeof worst->block);
    worst->active = r->active;
    worst->warp = r->warp;
}

/* Of equal ones the request of the first warp of the first block is kept, whichever ran first:
 * after a barrier the last warp that arrived does. */
static bool is_worse(const tally *t, const emu_request *r, uint32_t actual) {
    if (actual != t->worst) return actual > t->worst && r->active;
    const smk_request *worst = &t->worst_request;
    return r->active && r->warp < worst->warp &&
           !memcmp(r->block, worst->block, sizeof worst->block);
}

/* The same request as wider accesses. */
static void record_wider(counts *c, tally *t, const emu_request *r) {
    if (r->operation != EMU_LOAD && r->operation != EMU_STORE) return;
    if (!t->wider) t->wider = calloc(1, sizeof *t->wider);
    if (t->wider)
        wider_access_record(t->wider, r);
    else
        c->out_of_memory = true;
}

/* Counts an instruction's accesses to one block, as an addition to those to other blocks. */
static void record_remote(counts *c, tally *t, const emu_request *r) {
    remote_access *at = &c->remote;
    if (!remote_access_continues(at, r)) {
        t->requests++;
        t->machine_requests++;
    }
    const request_cost now = remote_access_add(at, r);
    t->wavefronts += (uint64_t)(int32_t)now.actual;
    t->ideal += (uint64_t)(int32_t)now.ideal;
    t->machine_wavefronts += (uint64_t)(int32_t)now.actual;
    t->machine_ideal += (uint64_t)(int32_t)now.ideal;
    t->bytes += count_lanes(r->active) * (uint64_t)r->width;
    at->is_worst |= at->wavefronts > t->worst;
    if (at->is_worst) {
        emu_request all = *r;
        all.address = at->offset;
        all.active = at->active;
        record_worst(t, &all, at->wavefronts);
    }
    t->width = r->width;
    t->operation = r->operation;
}

static tally *tally_of(counts *c, tallies *at, const emu_request *r) {
    if (request_is_remote(r)) return tally_at(c, &at->remote);
    return tally_at(c, r->space == PTX_SHARED ? &at->shared : &at->global);
}

static void on_request(void *state, const emu_request *r) {
    counts *c = state;
    if (!request_is_counted(r)) return;
    function_counts *f = counts_of(c, r->function);
    if (!f) return;
    const bool is_shared = r->space == PTX_SHARED, remote = request_is_remote(r);
    tallies *at = &f->tallies[r->index];
    tally *t = tally_of(c, at, r);
    if (!t) return;
    if (remote && r->operation != EMU_STORE_ASYNC) {
        record_remote(c, t, r);
        return;
    }
    const bool rare = remote || r->filled || r->multicast.receivers;
    const request_cost now = rare ? request_cost_of(r) : cost_of(c, r, &at->last);
    t->requests++;
    t->wavefronts += now.actual;
    t->ideal += now.ideal;
    t->bytes += count_lanes(r->active) * (uint64_t)r->width;
    if (is_worse(t, r, now.actual)) record_worst(t, r, now.actual);
    if (r->width) t->width = r->width;
    t->operation = r->operation;
    /* The machine code has this access, perhaps wider. */
    if (is_shared && (remote || !r->machine->merged)) {
        t->machine_requests++;
        t->machine_wavefronts += now.machine;
        t->machine_ideal += now.machine_ideal;
    }
    if (is_shared && !remote && c->by_instruction) record_wider(c, t, r);
}

static void on_barrier(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                       bool complete) {
    (void)ptx, (void)warp, (void)barrier, (void)complete;
    ((counts *)state)->barriers++;
}

/* ---- host threads ---- */

counts *counts_new(bool by_instruction) {
    counts *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->by_instruction = by_instruction;
    c->lookup = cost_cache_find_for_cpu();
    c->patterns = calloc(1, sizeof *c->patterns);
    if (c->patterns) return c;
    free(c);
    return NULL;
}

void counts_free(counts *c) {
    for (function_counts *f = c ? c->functions : NULL, *next; f; f = next) {
        next = f->next;
        free_function(f);
    }
    if (c) free(c->patterns);
    free(c);
}

static void *on_fork(void *self) {
    return counts_new(((const counts *)self)->by_instruction);
}

/* A total order of requests with equal cost, so that the reported one does not depend on the
 * timing of host threads: by block, then warp, then addresses (the same block of two launches). */
static bool is_before(const smk_request *a, const smk_request *b) {
    for (int k = 2; k >= 0; k--)
        if (a->block[k] != b->block[k]) return a->block[k] < b->block[k];
    if (a->warp != b->warp) return a->warp < b->warp;
    return memcmp(a->address, b->address, sizeof a->address) < 0;
}

void tally_merge(tally *into, const tally *from) {
    if (!from->requests) return;
    if (from->worst > into->worst ||
        (from->worst == into->worst && is_before(&from->worst_request, &into->worst_request))) {
        into->worst = from->worst;
        into->worst_request = from->worst_request;
    }
    into->requests += from->requests;
    into->wavefronts += from->wavefronts;
    into->ideal += from->ideal;
    into->bytes += from->bytes;
    into->machine_requests += from->machine_requests;
    into->machine_wavefronts += from->machine_wavefronts;
    into->machine_ideal += from->machine_ideal;
    if (from->width) into->width = from->width; /* a request of `filled` sectors has width 0 */
    into->operation = from->operation;
}

/* Moves what `into` does not have yet. */
static void merge_into(tally **into, tally **from) {
    if (*into && *from) {
        tally_merge(*into, *from);
        if ((*into)->wider && (*from)->wider) {
            wider_access_merge((*into)->wider, (*from)->wider);
        } else if ((*from)->wider) {
            (*into)->wider = (*from)->wider;
            (*from)->wider = NULL;
        }
    } else if (*from) {
        *into = *from;
        *from = NULL;
    }
}

static void on_join(void *self, void *state) {
    counts *all = self, *worker = state;
    for (const function_counts *f = worker->functions; f; f = f->next) {
        function_counts *into = counts_of(all, f->function);
        for (uint32_t k = 0; into && k < f->function->n_instructions; k++) {
            into->executed[k].warps += f->executed[k].warps;
            into->executed[k].lanes += f->executed[k].lanes;
            merge_into(&into->tallies[k].shared, &f->tallies[k].shared);
            merge_into(&into->tallies[k].remote, &f->tallies[k].remote);
            merge_into(&into->tallies[k].global, &f->tallies[k].global);
        }
    }
    all->barriers += worker->barriers;
    all->out_of_memory |= worker->out_of_memory;
    counts_free(worker);
}

emu_observer counts_observer(counts *c) {
    return (emu_observer){.self = c,
                          .fork = on_fork,
                          .join = on_join,
                          .memory = on_request,
                          .executed = on_executed,
                          .barrier = on_barrier};
}
