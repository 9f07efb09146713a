/* Sums the counters of counts.c by site and by opcode.
 *
 * A site is a source line with its inlining callers, an operation and a width. Several
 * instructions may belong to one site. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/stable_sort.h"
#include "counts_table.h"
#include "flops.h"
#include "../ptx/ptx.h"

typedef struct site {
    smk_site site; /* the members that identify it */
    tally *counted;
    smk_instruction_count *instruction; /* NULL: not reported */
} site;

static int compare_names(const char *a, const char *b) {
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_positions(const smk_position *a, const smk_position *b) {
    const int by_file = compare_names(a->file, b->file);
    return by_file ? by_file : (a->line > b->line) - (a->line < b->line);
}

static int compare_sites(const void *left, const void *right) {
    const site *a = left, *b = right;
    const smk_site *s = &a->site, *t = &b->site;
    int order =
        compare_positions(&(smk_position){s->file, s->line}, &(smk_position){t->file, t->line});
    if (!order) order = t->shared - s->shared;
    if (!order) order = (int)s->access - (int)t->access;
    if (!order) order = (int)a->counted->operation - (int)b->counted->operation;
    if (!order) order = s->width - t->width;
    if (!order) order = s->n_callers - t->n_callers;
    for (int k = 0; !order && k < s->n_callers; k++)
        order = compare_positions(&s->callers[k], &t->callers[k]);
    return order;
}

static int compare_opcodes(const void *left, const void *right) {
    return strcmp(((const smk_opcode_count *)left)->opcode,
                  ((const smk_opcode_count *)right)->opcode);
}

static smk_access remote(smk_access access) {
    return access == SMK_LOAD    ? SMK_REMOTE_LOAD
           : access == SMK_STORE ? SMK_REMOTE_STORE
                                 : SMK_REMOTE_ATOMIC;
}

static site site_of(smk_trace *out, const ptx_instruction *p, tally *t, bool shared) {
    static const struct {
        smk_access access;
        int direction;
    } operations[] = {
        [EMU_LOAD] = {SMK_LOAD, SMK_READ},
        [EMU_STORE] = {SMK_STORE, SMK_WRITE},
        [EMU_ATOMIC] = {SMK_ATOMIC, SMK_READ | SMK_WRITE},
        [EMU_COPY_ASYNC_READ] = {SMK_COPY_ASYNC, SMK_READ},
        [EMU_COPY_ASYNC_WRITE] = {SMK_COPY_ASYNC, SMK_WRITE},
        [EMU_LDMATRIX] = {SMK_LDMATRIX, SMK_READ},
        [EMU_STMATRIX] = {SMK_STMATRIX, SMK_WRITE},
        [EMU_STORE_ASYNC] = {SMK_STORE, SMK_WRITE},
        [EMU_TEXTURE_READ] = {SMK_TEXTURE, SMK_READ},
        [EMU_BULK_READ] = {SMK_BULK, SMK_READ},
        [EMU_BULK_WRITE] = {SMK_BULK, SMK_WRITE},
        [EMU_MATRIX_READ] = {SMK_MATRIX, SMK_READ},
    };
    smk_site s = {.file = ptx_keep_text(out, p->file),
                  .line = (int)(p->file ? p->line : p->ptx_line),
                  .shared = shared,
                  .access = operations[t->operation].access,
                  .direction = operations[t->operation].direction,
                  .width = (int)t->width};
    const ptx_position *caller = p->file && p->position ? p->position->caller : NULL;
    for (; caller && s.n_callers < SMK_MAX_CALLERS; caller = caller->caller)
        s.callers[s.n_callers++] =
            (smk_position){ptx_keep_text(out, caller->file), (int)caller->line};
    return (site){s, t, NULL};
}

static smk_instruction_count instruction_of(smk_trace *out, const function_counts *f, uint32_t k) {
    const tally *t = f->tallies[k].shared;
    smk_instruction_count i = {.function = ptx_keep_text(out, f->function->name),
                               .ptx_line = (int)f->function->instructions[k].ptx_line,
                               .warps = f->executed[k].warps,
                               .site = -1};
    if (t && t->wider) {
        i.requests = t->requests;
        memcpy(i.wider, t->wider->cost, sizeof i.wider);
    }
    return i;
}

static smk_opcode_count opcode_of(const ptx_instruction *p, const emu_executed *executed) {
    smk_opcode_count out = {.warps = executed->warps, .lanes = executed->lanes};
    out.flops = flops_of(p, executed->warps, executed->lanes);
    size_t n = (size_t)snprintf(out.opcode, sizeof out.opcode, "%s", p->opcode);
    for (uint32_t k = 0; k < p->n_modifiers && n < sizeof out.opcode; k++)
        n += (size_t)snprintf(out.opcode + n, sizeof out.opcode - n, ".%s", p->modifiers[k]);
    return out;
}

/* Merges equal neighbours of a sorted array. Returns how many sites remain. */
static size_t fold_sites(site *sites, size_t n, smk_site *out) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        if (k && !compare_sites(&sites[kept - 1], &sites[k]))
            tally_merge(sites[kept - 1].counted, sites[k].counted);
        else
            sites[kept++] = sites[k];
        if (sites[k].instruction) sites[k].instruction->site = (int64_t)kept - 1;
    }
    for (size_t k = 0; k < kept; k++) {
        const tally *t = sites[k].counted;
        out[k] = sites[k].site;
        out[k].requests = t->requests;
        out[k].wavefronts = t->wavefronts;
        out[k].ideal = t->ideal;
        out[k].worst = t->worst;
        out[k].worst_request = t->worst_request;
        out[k].bytes = t->bytes;
        out[k].machine_requests = t->machine_requests;
        out[k].machine_wavefronts = t->machine_wavefronts;
        out[k].machine_ideal = t->machine_ideal;
    }
    return kept;
}

static size_t fold_opcodes(smk_opcode_count *opcodes, size_t n) {
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
        if (kept && !compare_opcodes(&opcodes[kept - 1], &opcodes[k])) {
            opcodes[kept - 1].warps += opcodes[k].warps;
            opcodes[kept - 1].lanes += opcodes[k].lanes;
            opcodes[kept - 1].flops += opcodes[k].flops;
        } else {
            opcodes[kept++] = opcodes[k];
        }
    return kept;
}

/* Merges the tallies in place, so it can be called only once. */
smk_code counts_report(counts *c, smk_trace *out, smk_status *status) {
    size_t n_instructions = 0, n = 0;
    for (const function_counts *f = c->functions; f; f = f->next)
        n_instructions += f->function->n_instructions;
    site *found = calloc(3 * n_instructions + 1, sizeof *found);
    out->sites = calloc(3 * n_instructions + 1, sizeof *out->sites);
    out->opcodes = calloc(n_instructions + 1, sizeof *out->opcodes);
    if (c->by_instruction)
        out->instructions = calloc(n_instructions + 1, sizeof *out->instructions);
    if (!found || !out->sites || !out->opcodes || (c->by_instruction && !out->instructions) ||
        c->out_of_memory) {
        free(found);
        return smk_fail_memory(status, 3 * n_instructions * sizeof *out->sites,
                               "counts of a trace");
    }
    for (function_counts *f = c->functions; f; f = f->next)
        for (uint32_t k = 0; k < f->function->n_instructions; k++) {
            const ptx_instruction *p = &f->function->instructions[k];
            const tallies *t = &f->tallies[k];
            if (!f->executed[k].warps) continue;
            if (t->shared) found[n++] = site_of(out, p, t->shared, true);
            if (c->by_instruction) {
                smk_instruction_count *i = &out->instructions[out->n_instructions++];
                *i = instruction_of(out, f, k);
                if (t->shared && t->shared->wider) found[n - 1].instruction = i;
            }
            if (t->remote) {
                found[n] = site_of(out, p, t->remote, true);
                found[n].site.access = remote(found[n].site.access);
                n++;
            }
            if (t->global) found[n++] = site_of(out, p, t->global, false);
            const smk_opcode_count opcode = opcode_of(p, &f->executed[k]);
            out->opcodes[out->n_opcodes++] = opcode;
            out->warp_instructions += opcode.warps;
            out->flops += opcode.flops;
        }
    out->barriers = c->barriers;
    stable_sort(found, n, sizeof *found, compare_sites);
    stable_sort(out->opcodes, out->n_opcodes, sizeof *out->opcodes, compare_opcodes);
    out->n_sites = fold_sites(found, n, out->sites);
    out->n_opcodes = fold_opcodes(out->opcodes, out->n_opcodes);
    free(found);
    return SMK_OK;
}
