/* Counts what the hardware would count: requests, wavefronts, sectors, warp instructions, barriers.
 *
 * While a launch runs, an instruction counts into its own cell of a table of its function; sites and
 * opcodes are put together from the tables only when the run is over.
 */
#include <stdlib.h>
#include <string.h>

#include "atomic_cost.h"
#include "banks.h"
#include "bypass.h"
#include "counts_table.h"
#include "widen.h"

enum { LANES = 32 };

/* ---- while the launch runs ---- */

static void free_table(function_counts *f) {
    if (!f) return;
    free(f->widened);
    free(f->atomic_forms);
    free(f);
}

static function_counts *find(counts *c, const ptx_function *function) {
    function_counts **link = &c->functions;
    while (*link && (*link)->function != function)
        link = &(*link)->next;
    function_counts *f = *link;
    if (!f) {
        f = calloc(1, sizeof *f + function->n_instructions * sizeof *f->cells);
        if (f) f->widened = widen_accesses(function);
        if (f) f->atomic_forms = atomic_forms(function);
        if (!f || !f->widened || !f->atomic_forms) {
            free_table(f);
            c->out_of_memory = true;
            return NULL;
        }
        f->function = function;
        f->n = function->n_instructions;
    } else {
        *link = f->next;
    }
    f->next = c->functions;
    return c->functions = f;
}

static cell *cell_of(counts *c, const ptx_function *function, uint32_t index) {
    function_counts *f = c->functions;
    if (!f || f->function != function) f = find(c, function);
    return f ? &f->cells[index] : NULL;
}

static void on_instruction(void *state, const ptx_function *function, const ptx_instruction *ptx,
                           uint32_t index, uint32_t active) {
    cell *at = cell_of(state, function, index);
    if (!at) return;
    at->ptx = ptx;
    at->warps++;
    at->lanes += (uint32_t)__builtin_popcount(active);
}

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

/* Atomics and copies: lanes count, not words. */
static uint32_t serial_cost(const emu_request *r, atomic_form form, const uint64_t *address) {
    if (r->operation == EMU_ATOMIC)
        return atomic_wavefronts(r->ptx, form, address, r->active, r->width);
    if (!has(r->ptx, "cg"))
        return banks_copy_wavefronts(address, r->source, r->active, r->reading, r->width);
    /* Zeros come from nowhere and are written as L1 would write them. */
    return bypass_wavefronts(address, r->source, r->active & r->reading) +
           banks_serial_wavefronts(address, r->active & ~r->reading, r->width);
}

static void count_shared(const emu_request *r, atomic_form form, uint32_t *cost, uint32_t *ideal) {
    if (r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE) {
        uint64_t apart[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            apart[l] = l * r->width; /* each lane in a bank of its own */
        *cost = serial_cost(r, form, r->address);
        *ideal = serial_cost(r, form, apart);
        if (*ideal > *cost) *ideal = *cost;
        return;
    }
    /* Rows of ldmatrix and stmatrix, and chunks of wgmma, go eight at a time and never merge. */
    const bool load = r->operation == EMU_LOAD;
    const uint64_t step = r->step;
    if (step != ~(uint64_t)0) {
        /* One address, or a row of neighbours: without conflict. Wide accesses go in groups, two of
         * which merge if a load has one address (banks.h). */
        const uint32_t groups = r->width <= 4 ? 1 : r->width / 4;
        *cost = groups > 1 && load && step == 0 ? groups / 2 : groups;
        *ideal = *cost;
        return;
    }
    banks_request(r->address, r->active, r->width, load, cost, ideal);
}

static void count_global(const emu_request *r, uint32_t *cost, uint32_t *ideal) {
    if (r->filled) {
        *cost = *ideal = r->filled;
        return;
    }
    const uint64_t first = r->address[0], step = r->step;
    if (step != ~(uint64_t)0) {
        const uint64_t last = r->address[LANES - 1] + r->width - 1;
        *cost = (uint32_t)(last / 32 - first / 32) + 1;
        *ideal = step ? (LANES * r->width + 31) / 32 : 1;
        return;
    }
    *cost = sectors_touched(r->address, r->active, r->width);
    *ideal = sectors_ideal(r->address, r->active, r->width);
}

static void note_worst(tally *t, const emu_request *r, uint32_t cost) {
    t->worst = cost;
    smk_request *worst = &t->worst_request;
    memcpy(worst->address, r->address, sizeof worst->address);
    memcpy(worst->block, r->block, sizeof worst->block);
    worst->active = r->active;
    worst->warp = r->warp;
}

/* As ptxas has it: not at all, or wider. */
static void add_machine(tally *t, const emu_request *r, const widened *as, uint32_t cost) {
    if (as->joined) return;
    t->machine_requests++;
    if (as->width) {
        uint64_t address[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = r->address[l] + (uint64_t)as->shift;
        cost = banks_wavefronts(address, r->active, as->width, r->operation == EMU_LOAD);
    }
    t->machine_wavefronts += cost;
}

static void add(tally *t, const emu_request *r, uint32_t cost, uint32_t ideal) {
    t->requests++;
    t->wavefronts += cost;
    t->ideal += ideal;
    t->bytes += (uint32_t)__builtin_popcount(r->active) * (uint64_t)r->width;
    if (cost > t->worst && r->active) note_worst(t, r, cost);
    if (r->width) t->width = r->width;
    t->operation = r->operation;
}

static void on_memory(void *state, const emu_request *r) {
    uint32_t cost, ideal;
    if (r->space != PTX_SHARED && r->space != PTX_GLOBAL) return;
    cell *at = cell_of(state, r->function, r->index);
    if (!at) return;
    if (r->space == PTX_SHARED) {
        const function_counts *f = ((counts *)state)->functions;
        count_shared(r, (atomic_form)f->atomic_forms[r->index], &cost, &ideal);
        add(&at->shared, r, cost, ideal);
        add_machine(&at->shared, r, &f->widened[r->index], cost);
    } else {
        count_global(r, &cost, &ideal);
        add(&at->global, r, cost, ideal);
    }
}

static void on_barrier(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                       bool complete) {
    (void)ptx, (void)warp, (void)barrier, (void)complete;
    ((counts *)state)->barriers++;
}

/* ---- threads ---- */

counts *counts_new(void) {
    return calloc(1, sizeof(counts));
}

void counts_free(counts *c) {
    for (function_counts *f = c ? c->functions : NULL, *next; f; f = next) {
        next = f->next;
        free_table(f);
    }
    free(c);
}

static void *on_fork(void *self) {
    (void)self;
    return counts_new();
}

/* Which of two requests of equal cost stands for both must not depend on which host thread was
 * faster: that of the lower block; of equal blocks of two launches, the lower addresses. */
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
    into->width = from->width;
    into->operation = from->operation;
}

static void on_join(void *self, void *state) {
    counts *all = self, *part = state;
    for (const function_counts *f = part->functions; f; f = f->next)
        for (uint32_t k = 0; k < f->n; k++) {
            const cell *from = &f->cells[k];
            if (!from->ptx) continue;
            cell *into = cell_of(all, f->function, k);
            if (!into) break;
            into->ptx = from->ptx;
            into->warps += from->warps;
            into->lanes += from->lanes;
            tally_merge(&into->shared, &from->shared);
            tally_merge(&into->global, &from->global);
        }
    all->barriers += part->barriers;
    all->out_of_memory |= part->out_of_memory;
    counts_free(part);
}

emu_observer counts_observer(counts *c) {
    return (emu_observer){.self = c,
                          .fork = on_fork,
                          .join = on_join,
                          .memory = on_memory,
                          .instruction = on_instruction,
                          .barrier = on_barrier};
}
