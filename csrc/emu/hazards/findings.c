/* Findings; see findings.h. */
#include "../base/stable_sort.h"
#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "../ptx/ptx.h"

/* ---- while the launch runs ---- */

static size_t hash(const finding *f) {
    const uint64_t bits = (uint64_t)(uintptr_t)f->op.ptx * 31 +
                          (uint64_t)(uintptr_t)f->other.ptx * 17 + (uint64_t)f->kind;
    return (size_t)(bits * 0x9e3779b97f4a7c15u >> 24);
}

static bool is_same(const finding *a, const finding *b) {
    return a->kind == b->kind && a->op.ptx == b->op.ptx && a->other.ptx == b->other.ptx;
}

static uint32_t *slot_of(findings *all, const finding *f) {
    size_t at = hash(f) & (all->table_size - 1);
    while (all->table[at] && !is_same(&all->items[all->table[at] - 1], f))
        at = (at + 1) & (all->table_size - 1);
    return &all->table[at];
}

static bool grow(findings *all) {
    const size_t capacity = all->capacity ? 2 * all->capacity : 32;
    finding *items = realloc(all->items, capacity * sizeof *items);
    uint32_t *table = calloc(2 * capacity, sizeof *table);
    if (items) all->items = items;
    if (!items || !table) {
        free(table);
        all->out_of_memory = true;
        return false;
    }
    free(all->table);
    all->capacity = capacity;
    all->table = table;
    all->table_size = 2 * capacity;
    for (size_t k = 0; k < all->n; k++)
        *slot_of(all, &all->items[k]) = (uint32_t)k + 1;
    return true;
}

/* By block, thread and address. */
static bool comes_before(const finding *a, const finding *b) {
    for (int k = 2; k >= 0; k--)
        if (a->op.block[k] != b->op.block[k]) return a->op.block[k] < b->op.block[k];
    if (a->op.thread != b->op.thread) return a->op.thread < b->op.thread;
    return a->address < b->address;
}

void findings_add(findings *all, finding f) {
    if (all->now) f.step = *all->now;
    if (all->n == all->capacity && !grow(all)) {
        free(f.message);
        return;
    }
    uint32_t *slot = slot_of(all, &f);
    if (!*slot) {
        all->items[all->n++] = f;
        *slot = (uint32_t)all->n;
        return;
    }
    finding *earlier = &all->items[*slot - 1];
    f.count += earlier->count;
    if (comes_before(&f, earlier)) {
        free(earlier->message);
        *earlier = f;
    } else {
        free(f.message);
        earlier->count = f.count;
    }
}

void findings_free(findings *all) {
    for (size_t k = 0; k < all->n; k++)
        free(all->items[k].message);
    free(all->items);
    free(all->table);
}

/* ---- the report ---- */

static smk_party describe_op(const finding_op *p, const finding_context *context) {
    smk_party out = {0};
    const ptx_instruction *ptx = p->ptx;
    if (!context->block[0]) return out; /* no launch so far */
    if (ptx) {
        out.file = ptx_keep_text(context->trace, ptx->file);
        out.line = (int)(ptx->file ? ptx->line : ptx->ptx_line);
        out.ptx_line = (int)ptx->ptx_line;
        out.text = ptx_keep_text(context->trace, ptx->text);
        const ptx_position *caller = ptx->position ? ptx->position->caller : NULL;
        for (; caller && out.n_callers < SMK_MAX_CALLERS; caller = caller->caller)
            out.callers[out.n_callers++] =
                (smk_position){ptx_keep_text(context->trace, caller->file), (int)caller->line};
    }
    memcpy(out.block, p->block, sizeof out.block);
    out.thread[0] = p->thread % context->block[0];
    out.thread[1] = p->thread / context->block[0] % context->block[1];
    out.thread[2] = p->thread / context->block[0] / context->block[1];
    return out;
}

/* Sets out->variable to the variable of that space that contains the offset. */
static void find_variable(ptx_variable *const *variables, uint32_t n, ptx_space space,
                          const finding_context *context, uint64_t offset, smk_hazard *out) {
    for (uint32_t k = 0; k < n; k++) {
        const ptx_variable *v = variables[k];
        const uint64_t at =
            v->external && space == PTX_SHARED ? context->dynamic_shared_at : v->offset;
        const bool unsized = v->external && v->size == 0 && space == PTX_SHARED;
        if (v->space != space || offset < at || (!unsized && offset - at >= v->size)) continue;
        if (out->variable && !unsized && offset - at > (uint64_t)out->variable_at) continue;
        if (out->variable && unsized) continue;
        out->variable = ptx_keep_text(context->trace, v->name);
        out->variable_at = (int64_t)(offset - at);
    }
}

static void describe_location(const finding *f, const finding_context *context, smk_hazard *out) {
    /* An address shortly below a region is taken for an access before that region's start. */
    const uint64_t id = REGION_OF(f->address + (REGION_BASE(1) >> 1));
    const uint64_t offset = f->address - REGION_BASE(id);
    const ptx_module *m = context->module;
    out->buffer = out->argument = -1;
    if (!f->address) return;
    out->offset = (int64_t)offset;
    out->width = (int)f->width;
    if (id == REGION_SHARED) {
        out->space = SMK_SHARED_SPACE;
        for (uint32_t k = 0; k < m->n_functions; k++) {
            const ptx_function *g = m->functions[k];
            if (g == context->entry || !g->is_entry)
                find_variable(g->variables, g->n_variables, PTX_SHARED, context, offset, out);
        }
        find_variable(m->variables, m->n_variables, PTX_SHARED, context, offset, out);
    } else if (id >= REGION_BUFFERS) {
        out->space = SMK_GLOBAL_SPACE;
        out->buffer = (int)(id - REGION_BUFFERS);
    } else if (id == REGION_GLOBAL) {
        out->space = SMK_GLOBAL_SPACE;
        find_variable(m->variables, m->n_variables, PTX_GLOBAL, context, offset, out);
    } else {
        out->space = SMK_OTHER_SPACE;
    }
}

static int compare_names(const char *a, const char *b) {
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_lines(const smk_hazard *a, const smk_hazard *b) {
    int by = compare_names(a->party.file, b->party.file);
    if (!by) by = (a->party.line > b->party.line) - (a->party.line < b->party.line);
    if (!by) by = (int)a->kind - (int)b->kind;
    if (!by) by = compare_names(a->other.file, b->other.file);
    if (!by) by = (a->other.line > b->other.line) - (a->other.line < b->other.line);
    if (!by) by = (int)a->space - (int)b->space;
    return by;
}

static int compare(const void *left, const void *right) {
    const smk_hazard *a = left, *b = right;
    int by = compare_lines(a, b);
    for (int k = 2; k >= 0 && !by; k--)
        by = (a->party.block[k] > b->party.block[k]) - (a->party.block[k] < b->party.block[k]);
    for (int k = 2; k >= 0 && !by; k--)
        by = (a->party.thread[k] > b->party.thread[k]) - (a->party.thread[k] < b->party.thread[k]);
    if (!by) by = (a->offset > b->offset) - (a->offset < b->offset);
    return by;
}

size_t findings_report(const findings *all, const finding_context *context, smk_hazard *out) {
    size_t n = 0;
    for (size_t k = 0; k < all->n; k++) {
        const finding *f = &all->items[k];
        if (!f->count) continue;
        out[n] = (smk_hazard){.kind = f->kind,
                              .party = describe_op(&f->op, context),
                              .other = describe_op(&f->other, context),
                              .count = f->count,
                              .step = f->step,
                              .message = f->message ? strdup(f->message) : NULL};
        describe_location(f, context, &out[n++]);
    }
    stable_sort(out, n, sizeof *out, compare);
    size_t kept = 0;
    for (size_t k = 0; k < n; k++)
        if (kept && !compare_lines(&out[kept - 1], &out[k])) {
            out[kept - 1].count += out[k].count;
            free(out[k].message);
        } else {
            out[kept++] = out[k];
        }
    return kept;
}
