/* Counts what the hardware would count: requests, wavefronts, sectors, warp instructions, barriers.
 *
 * While a launch runs, an instruction counts into its own place of tables of its function; sites and
 * opcodes are put together from the tables only when the run is over. What a request costs is worked out
 * once for each pattern (pattern.h).
 */
#include <stdlib.h>
#include <string.h>

#include "atomic_cost.h"
#include "banks.h"
#include "cp_async_cg_cost.h"
#include "counts_table.h"
#include "../base/lanes.h"
#include "ptxas_vectorize.h"

/* ---- while the launch runs ---- */

static void free_function(function_counts *f) {
    for (uint32_t k = 0; f->tallies && k < f->function->n_instructions; k++) {
        free(f->tallies[k].shared);
        free(f->tallies[k].global);
    }
    free(f->tallies);
    free(f->executed);
    free(f);
}

static function_counts *find(counts *c, const ptx_function *function) {
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
    return f && f->function == function ? f : find(c, function);
}

static tally *tally_at(counts *c, tally **place) {
    if (!*place) *place = calloc(1, sizeof **place);
    c->out_of_memory |= !*place;
    return *place;
}

static emu_executed *on_executed(void *state, const ptx_function *function) {
    const function_counts *f = counts_of(state, function);
    return f ? f->executed : NULL;
}

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

/* Atomics and copies: lanes count, not words. */
static uint32_t serial_cost(const emu_request *r, const uint64_t *address) {
    if (r->operation == EMU_ATOMIC)
        return atomic_wavefronts(r->ptx, (atomic_form)r->machine->atomic, address, r->active,
                                 r->width);
    if (!has(r->ptx, "cg"))
        return banks_copy_wavefronts(address, r->source, r->active, r->reading, r->width);
    /* Zeros come from nowhere and are written as L1 would write them. */
    return cp_async_cg_wavefronts(address, r->source, r->active & r->reading) +
           banks_serial_wavefronts(address, r->active & ~r->reading, r->width);
}

typedef struct cost {
    uint32_t units; /* wavefronts, sectors */
    uint32_t ideal;
    uint32_t machine; /* of the access that the machine makes of it */
} cost;

static cost cost_of_shared(const emu_request *r) {
    cost c;
    /* Rows of ldmatrix and stmatrix, and chunks of wgmma, go eight at a time and never merge. */
    const bool load = r->operation == EMU_LOAD;
    uint64_t address[LANES];
    if (r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE) {
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = l * r->width; /* each lane in a bank of its own */
        c.units = serial_cost(r, r->address);
        c.ideal = serial_cost(r, address);
        if (c.ideal > c.units) c.ideal = c.units;
    } else {
        banks_request(r->address, r->active, r->width, load, &c.units, &c.ideal);
    }
    c.machine = c.units;
    if (r->machine->width) {
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = r->address[l] + (uint64_t)r->machine->shift;
        c.machine = banks_wavefronts(address, r->active, r->machine->width, load);
    }
    return c;
}

static cost cost_of_global(const emu_request *r) {
    const uint32_t sectors = sectors_touched(r->address, r->active, r->width);
    return (cost){sectors, sectors_ideal(r->address, r->active, r->width), 0};
}

/* What a request costs beyond its pattern depends on this of its base: where it stands in a word of
 * shared memory (16 bytes: the widest access), a sector of global memory, or, of copies and atomics,
 * a line. */
static uint64_t kind_of(const emu_request *r) {
    const bool is_shared = r->space == PTX_SHARED;
    const bool in_line = r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE;
    const uint64_t period = is_shared && in_line ? 128 : is_shared ? 16 : 32;
    const uint64_t phase = r->address[__builtin_ctz(r->active)] & (period - 1);
    return 1 | (uint64_t)is_shared << 1 | (uint64_t)r->operation << 8 | (uint64_t)r->width << 16 |
           phase << 24 | (uint64_t)r->machine->width << 32 |
           (uint64_t)(uint8_t)r->machine->shift << 40;
}

/* The pattern of the whole request; of a copy that of both sides. */
static pattern *pattern_of(counts *c, const emu_request *r, pattern *last, bool *known) {
    uint64_t of = 0;
    if (r->operation == EMU_COPY_ASYNC_WRITE || r->operation == EMU_ATOMIC)
        of = (uint64_t)(uintptr_t)r->ptx;
    if (r->reading) {
        enum { SOURCE = 1 << 2, LINE = 128 };
        const uint64_t kind = SOURCE | (r->source[__builtin_ctz(r->reading)] & (LINE - 1)) << 24;
        const pattern *source = c->find(c->patterns, r->source, r->reading, kind, of, NULL, known);
        if (!source) return NULL;
        of = source->number;
    }
    return c->find(c->patterns, r->address, r->active, kind_of(r), of, last, known);
}

static cost known_cost(counts *c, const emu_request *r, pattern **last) {
    bool known = false;
    pattern *p = *last = pattern_of(c, r, *last, &known);
    if (known) return (cost){p->value[0], p->value[1], p->value[2]};
    const cost found = r->space == PTX_SHARED ? cost_of_shared(r) : cost_of_global(r);
    if (p) {
        p->value[0] = found.units;
        p->value[1] = found.ideal;
        p->value[2] = found.machine;
    }
    return found;
}

/* One address, or a row of neighbours: without conflict. Wide accesses go in groups, two of which merge
 * if a load has one address (banks.h). */
static uint32_t wavefronts_of_row(const emu_request *r, uint32_t width) {
    const uint32_t groups = width <= 4 ? 1 : width / 4;
    return groups > 1 && r->operation == EMU_LOAD && r->step == 0 ? groups / 2 : groups;
}

static cost cost_of(counts *c, const emu_request *r, pattern **at) {
    const bool even = r->step != ~(uint64_t)0;
    if (r->space == PTX_GLOBAL) {
        if (!even) return known_cost(c, r, at);
        const uint64_t first = r->address[0], last = r->address[LANES - 1] + r->width - 1;
        return (cost){(uint32_t)(last / 32 - first / 32) + 1,
                      r->step ? (LANES * r->width + 31) / 32 : 1, 0};
    }
    const uint32_t machine = r->machine->width;
    if (!even || (machine && r->step) || r->operation == EMU_ATOMIC ||
        r->operation == EMU_COPY_ASYNC_WRITE)
        return known_cost(c, r, at);
    const uint32_t units = wavefronts_of_row(r, r->width);
    return (cost){units, units, machine ? wavefronts_of_row(r, machine) : units};
}

static void note_worst(tally *t, const emu_request *r, uint32_t units) {
    t->worst = units;
    smk_request *worst = &t->worst_request;
    memcpy(worst->address, r->address, sizeof worst->address);
    memcpy(worst->block, r->block, sizeof worst->block);
    worst->active = r->active;
    worst->warp = r->warp;
}

static void on_memory(void *state, const emu_request *r) {
    counts *c = state;
    if (r->space != PTX_SHARED && r->space != PTX_GLOBAL) return;
    function_counts *f = counts_of(c, r->function);
    if (!f) return;
    const bool is_shared = r->space == PTX_SHARED;
    tallies *at = &f->tallies[r->index];
    tally *t = tally_at(c, is_shared ? &at->shared : &at->global);
    if (!t) return;
    const cost now = r->filled ? (cost){r->filled, r->filled, 0} : cost_of(c, r, &at->last);
    t->requests++;
    t->wavefronts += now.units;
    t->ideal += now.ideal;
    t->bytes += count_lanes(r->active) * (uint64_t)r->width;
    if (now.units > t->worst && r->active) note_worst(t, r, now.units);
    if (r->width) t->width = r->width;
    t->operation = r->operation;
    if (is_shared && !r->machine->joined) { /* as ptxas has it: not at all, or wider */
        t->machine_requests++;
        t->machine_wavefronts += now.machine;
    }
}

static void on_barrier(void *state, const ptx_instruction *ptx, uint32_t warp, uint32_t barrier,
                       bool complete) {
    (void)ptx, (void)warp, (void)barrier, (void)complete;
    ((counts *)state)->barriers++;
}

/* ---- threads ---- */

counts *counts_new(void) {
    counts *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->find = cost_cache_find_for_cpu();
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
    if (from->width) into->width = from->width; /* sectors of zeros have none */
    into->operation = from->operation;
}

/* Takes it over where there is none yet. */
static void merge_into(tally **into, tally **from) {
    if (*into && *from) {
        tally_merge(*into, *from);
    } else if (*from) {
        *into = *from;
        *from = NULL;
    }
}

static void on_join(void *self, void *state) {
    counts *all = self, *part = state;
    for (const function_counts *f = part->functions; f; f = f->next) {
        function_counts *into = counts_of(all, f->function);
        for (uint32_t k = 0; into && k < f->function->n_instructions; k++) {
            into->executed[k].warps += f->executed[k].warps;
            into->executed[k].lanes += f->executed[k].lanes;
            merge_into(&into->tallies[k].shared, &f->tallies[k].shared);
            merge_into(&into->tallies[k].global, &f->tallies[k].global);
        }
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
                          .executed = on_executed,
                          .barrier = on_barrier};
}
