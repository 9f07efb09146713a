/* Counts what the hardware would count: requests, wavefronts, sectors, warp instructions, barriers.
 *
 * While a launch runs, an instruction counts into its own cell of a table of its function; sites and
 * opcodes are put together from the tables only when the run is over.
 */
#include "counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atomic_cost.h"
#include "banks.h"
#include "bypass.h"
#include "widen.h"

enum { LANES = 32, FULL = 0xffffffff };

typedef struct tally {
    uint64_t requests, wavefronts, ideal, worst;
    uint64_t machine_requests, machine_wavefronts; /* after ptxas joined loads: widen.h */
    uint32_t width;
    smk_access access;
} tally;

typedef struct cell {
    const ptx_instruction *ptx; /* NULL: never run */
    uint64_t warps;
    tally shared, global;
} cell;

typedef struct function_counts {
    struct function_counts *next;
    const ptx_function *function;
    widened *widened;
    uint32_t n;
    cell cells[];
} function_counts;

struct counts {
    function_counts *functions; /* the one used last is first */
    uint64_t barriers;
    bool out_of_memory;
};

/* ---- while the launch runs ---- */

static function_counts *find(counts *c, const ptx_function *function) {
    function_counts **link = &c->functions;
    while (*link && (*link)->function != function)
        link = &(*link)->next;
    function_counts *f = *link;
    if (!f) {
        f = calloc(1, sizeof *f + function->n_instructions * sizeof *f->cells);
        if (f) f->widened = widen_loads(function);
        if (!f || !f->widened) {
            free(f);
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
    (void)active;
    cell *at = cell_of(state, function, index);
    if (!at) return;
    at->ptx = ptx;
    at->warps++;
}

/* A full warp whose lanes are evenly spaced by `step`. */
static bool is_regular(const emu_request *r, uint64_t step) {
    uint64_t odd = r->active ^ FULL;
    for (uint64_t l = 0; l < LANES; l++)
        odd |= r->address[l] ^ (r->address[0] + l * step);
    return !odd;
}

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], modifier) == 0) return true;
    return false;
}

/* Atomics and copies: lanes count, not words. */
static uint32_t serial_cost(const emu_request *r, const uint64_t *address) {
    if (r->operation == EMU_ATOMIC) return atomic_wavefronts(r->ptx, address, r->active, r->width);
    if (!has(r->ptx, "cg"))
        return banks_copy_wavefronts(address, r->source, r->active, r->reading, r->width);
    /* Zeros come from nowhere and are written as L1 would write them. */
    return bypass_wavefronts(address, r->source, r->active & r->reading) +
           banks_serial_wavefronts(address, r->active & ~r->reading, r->width);
}

static void count_shared(const emu_request *r, uint32_t *cost, uint32_t *ideal) {
    if (r->operation == EMU_ATOMIC || r->operation == EMU_COPY_ASYNC_WRITE) {
        uint64_t apart[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            apart[l] = l * r->width; /* each lane in a bank of its own */
        *cost = serial_cost(r, r->address);
        *ideal = serial_cost(r, apart);
        if (*ideal > *cost) *ideal = *cost;
        return;
    }
    const bool load = r->operation == EMU_LOAD;
    const uint32_t step = (uint32_t)(r->address[1] - r->address[0]);
    if ((step == 0 || step == r->width) && is_regular(r, step)) {
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
    const uint64_t first = r->address[0], step = r->address[1] - first;
    if ((step == 0 || step == r->width) && is_regular(r, step)) {
        const uint64_t last = r->address[LANES - 1] + r->width - 1;
        *cost = (uint32_t)(last / 32 - first / 32) + 1;
        *ideal = step ? (LANES * r->width + 31) / 32 : 1;
        return;
    }
    *cost = sectors_touched(r->address, r->active, r->width);
    *ideal = sectors_ideal(r->address, r->active, r->width);
}

/* As ptxas has it: not at all, or wider. */
static void add_machine(tally *t, const emu_request *r, const widened *as, uint32_t cost) {
    if (as->joined) return;
    t->machine_requests++;
    if (as->width) {
        uint64_t address[LANES];
        for (uint32_t l = 0; l < LANES; l++)
            address[l] = r->address[l] + (uint64_t)as->shift;
        cost = banks_wavefronts(address, r->active, as->width, true);
    }
    t->machine_wavefronts += cost;
}

static void add(tally *t, const emu_request *r, uint32_t cost, uint32_t ideal) {
    static const smk_access access[] = {[EMU_LOAD] = SMK_LOAD,
                                        [EMU_STORE] = SMK_STORE,
                                        [EMU_ATOMIC] = SMK_ATOMIC,
                                        [EMU_COPY_ASYNC_READ] = SMK_COPY_ASYNC,
                                        [EMU_COPY_ASYNC_WRITE] = SMK_COPY_ASYNC,
                                        [EMU_LDMATRIX] = SMK_LDMATRIX,
                                        [EMU_STMATRIX] = SMK_STMATRIX,
                                        [EMU_BULK_READ] = SMK_BULK,
                                        [EMU_BULK_WRITE] = SMK_BULK,
                                        [EMU_MATRIX_READ] = SMK_MATRIX};
    t->requests++;
    t->wavefronts += cost;
    t->ideal += ideal;
    if (cost > t->worst) t->worst = cost;
    t->width = r->width;
    t->access = access[r->operation];
}

static void on_memory(void *state, const emu_request *r) {
    uint32_t cost, ideal;
    if (r->space != PTX_SHARED && r->space != PTX_GLOBAL) return;
    cell *at = cell_of(state, r->function, r->index);
    if (!at) return;
    if (r->space == PTX_SHARED) {
        count_shared(r, &cost, &ideal);
        add(&at->shared, r, cost, ideal);
        add_machine(&at->shared, r, &((counts *)state)->functions->widened[r->index], cost);
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

static void on_block(void *state, const uint32_t block[3], bool begin) {
    (void)state, (void)block, (void)begin;
}

/* ---- threads ---- */

counts *counts_new(void) {
    return calloc(1, sizeof(counts));
}

void counts_free(counts *c) {
    for (function_counts *f = c ? c->functions : NULL, *next; f; f = next) {
        next = f->next;
        free(f->widened);
        free(f);
    }
    free(c);
}

static void *on_fork(void *self) {
    (void)self;
    return counts_new();
}

static void merge(tally *into, const tally *from) {
    if (!from->requests) return;
    into->requests += from->requests;
    into->wavefronts += from->wavefronts;
    into->ideal += from->ideal;
    into->machine_requests += from->machine_requests;
    into->machine_wavefronts += from->machine_wavefronts;
    if (from->worst > into->worst) into->worst = from->worst;
    into->width = from->width;
    into->access = from->access;
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
            merge(&into->shared, &from->shared);
            merge(&into->global, &from->global);
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
                          .barrier = on_barrier,
                          .block = on_block};
}

/* ---- the report ---- */

static int compare_names(const char *a, const char *b) {
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_sites(const void *left, const void *right) {
    const smk_site *a = left, *b = right;
    const int by_file = compare_names(a->file, b->file);
    if (by_file) return by_file;
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    if (a->shared != b->shared) return b->shared - a->shared;
    if (a->access != b->access) return (int)a->access - (int)b->access;
    return a->width - b->width;
}

static int compare_opcodes(const void *left, const void *right) {
    return strcmp(((const smk_opcode_count *)left)->opcode,
                  ((const smk_opcode_count *)right)->opcode);
}

static smk_site site_of(const cell *at, const tally *t, bool shared) {
    const ptx_instruction *p = at->ptx;
    return (smk_site){.file = p->file ? ptx_intern(p->file, strlen(p->file)) : NULL,
                      .line = (int)(p->file ? p->line : p->ptx_line),
                      .shared = shared,
                      .access = t->access,
                      .width = (int)t->width,
                      .requests = t->requests,
                      .wavefronts = t->wavefronts,
                      .ideal = t->ideal,
                      .worst = t->worst,
                      .machine_requests = t->machine_requests,
                      .machine_wavefronts = t->machine_wavefronts};
}

static smk_opcode_count opcode_of(const cell *at) {
    smk_opcode_count out = {.warps = at->warps};
    size_t n = (size_t)snprintf(out.opcode, sizeof out.opcode, "%s", at->ptx->opcode);
    for (uint32_t k = 0; k < at->ptx->n_modifiers && n < sizeof out.opcode; k++)
        n += (size_t)snprintf(out.opcode + n, sizeof out.opcode - n, ".%s", at->ptx->modifiers[k]);
    return out;
}

/* Equal neighbours of a sorted array become one. */
static size_t fold_sites(smk_site *sites, size_t n) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (!kept || compare_sites(&sites[kept - 1], &sites[k])) {
            sites[kept++] = sites[k];
            continue;
        }
        smk_site *into = &sites[kept - 1];
        into->requests += sites[k].requests;
        into->wavefronts += sites[k].wavefronts;
        into->ideal += sites[k].ideal;
        into->machine_requests += sites[k].machine_requests;
        into->machine_wavefronts += sites[k].machine_wavefronts;
        if (sites[k].worst > into->worst) into->worst = sites[k].worst;
    }
    return kept;
}

static size_t fold_opcodes(smk_opcode_count *opcodes, size_t n) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
        if (kept && !compare_opcodes(&opcodes[kept - 1], &opcodes[k]))
            opcodes[kept - 1].warps += opcodes[k].warps;
        else
            opcodes[kept++] = opcodes[k];
    return kept;
}

smk_code counts_report(const counts *c, smk_trace *out, smk_status *status) {
    size_t n_cells = 0;
    for (const function_counts *f = c->functions; f; f = f->next)
        n_cells += f->n;
    smk_site *sites = calloc(2 * n_cells + 1, sizeof *sites);
    smk_opcode_count *opcodes = calloc(n_cells + 1, sizeof *opcodes);
    if (!sites || !opcodes || c->out_of_memory) {
        free(sites);
        free(opcodes);
        return smk_fail_memory(status, 2 * n_cells * sizeof *sites, "counts of a trace");
    }
    *out = (smk_trace){.sites = sites, .opcodes = opcodes, .barriers = c->barriers};
    for (const function_counts *f = c->functions; f; f = f->next)
        for (uint32_t k = 0; k < f->n; k++) {
            const cell *at = &f->cells[k];
            if (!at->ptx) continue;
            if (at->shared.requests) sites[out->n_sites++] = site_of(at, &at->shared, true);
            if (at->global.requests) sites[out->n_sites++] = site_of(at, &at->global, false);
            opcodes[out->n_opcodes++] = opcode_of(at);
            out->warp_instructions += at->warps;
        }
    qsort(sites, out->n_sites, sizeof *sites, compare_sites);
    qsort(opcodes, out->n_opcodes, sizeof *opcodes, compare_opcodes);
    out->n_sites = fold_sites(sites, out->n_sites);
    out->n_opcodes = fold_opcodes(opcodes, out->n_opcodes);
    return SMK_OK;
}
