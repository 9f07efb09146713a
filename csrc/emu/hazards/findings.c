/* Findings; see hazards_findings.h. */
#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "../ptx/ptx.h"

/* ---- while the launch runs ---- */

static size_t hash(const finding *f) {
    const uint64_t bits = (uint64_t)(uintptr_t)f->party.ptx * 31 +
                          (uint64_t)(uintptr_t)f->other.ptx * 17 + (uint64_t)f->kind;
    return (size_t)(bits * 0x9e3779b97f4a7c15u >> 24);
}

static bool same(const finding *a, const finding *b) {
    return a->kind == b->kind && a->party.ptx == b->party.ptx && a->other.ptx == b->other.ptx;
}

static uint32_t *place_of(findings *all, const finding *f) {
    size_t at = hash(f) & (all->table_size - 1);
    while (all->table[at] && !same(&all->items[all->table[at] - 1], f))
        at = (at + 1) & (all->table_size - 1);
    return &all->table[at];
}

static bool grow(findings *all) {
    const size_t room = all->room ? 2 * all->room : 32;
    finding *items = realloc(all->items, room * sizeof *items);
    uint32_t *table = calloc(2 * room, sizeof *table);
    if (items) all->items = items;
    if (!items || !table) {
        free(table);
        all->out_of_memory = true;
        return false;
    }
    free(all->table);
    all->room = room;
    all->table = table;
    all->table_size = 2 * room;
    for (size_t k = 0; k < all->n; k++)
        *place_of(all, &all->items[k]) = (uint32_t)k + 1;
    return true;
}

static bool comes_first(const finding *a, const finding *b) {
    for (int k = 2; k >= 0; k--)
        if (a->party.block[k] != b->party.block[k]) return a->party.block[k] < b->party.block[k];
    if (a->party.thread != b->party.thread) return a->party.thread < b->party.thread;
    return a->address < b->address;
}

void findings_add(findings *all, finding f) {
    if (all->n == all->room && !grow(all)) {
        free(f.message);
        return;
    }
    uint32_t *place = place_of(all, &f);
    if (!*place) {
        all->items[all->n++] = f;
        *place = (uint32_t)all->n;
        return;
    }
    finding *known = &all->items[*place - 1];
    f.count += known->count;
    if (comes_first(&f, known)) {
        free(known->message);
        *known = f;
    } else {
        free(f.message);
        known->count = f.count;
    }
}

void findings_free(findings *all) {
    for (size_t k = 0; k < all->n; k++)
        free(all->items[k].message);
    free(all->items);
    free(all->table);
}

/* ---- the report ---- */

static smk_party tell_party(const finding_party *p, const finding_scene *scene) {
    smk_party out = {0};
    const ptx_instruction *ptx = p->ptx;
    if (!scene->block[0]) return out; /* no launch was begun */
    if (ptx) {
        out.file = ptx_keep_text(scene->trace, ptx->file);
        out.line = (int)(ptx->file ? ptx->line : ptx->ptx_line);
        out.text = ptx_keep_text(scene->trace, ptx->text);
    }
    memcpy(out.block, p->block, sizeof out.block);
    out.thread[0] = p->thread % scene->block[0];
    out.thread[1] = p->thread / scene->block[0] % scene->block[1];
    out.thread[2] = p->thread / scene->block[0] / scene->block[1];
    return out;
}

/* The variable of that space that holds the offset. */
static void find_variable(ptx_variable *const *variables, uint32_t n, ptx_space space,
                          const finding_scene *scene, uint64_t offset, smk_hazard *out) {
    for (uint32_t k = 0; k < n; k++) {
        const ptx_variable *v = variables[k];
        const uint64_t at =
            v->external && space == PTX_SHARED ? scene->dynamic_shared_at : v->offset;
        const bool endless = v->external && v->size == 0 && space == PTX_SHARED;
        if (v->space != space || offset < at || (!endless && offset - at >= v->size)) continue;
        if (out->variable && !endless && offset - at > (uint64_t)out->variable_at) continue;
        if (out->variable && endless) continue;
        out->variable = ptx_keep_text(scene->trace, v->name);
        out->variable_at = (int64_t)(offset - at);
    }
}

static void tell_place(const finding *f, const finding_scene *scene, smk_hazard *out) {
    /* What lies a little before a region is meant to be in it. */
    const uint64_t id = REGION_OF(f->address + (REGION_BASE(1) >> 1));
    const uint64_t offset = f->address - REGION_BASE(id);
    const ptx_module *m = scene->module;
    out->buffer = out->argument = -1;
    if (!f->address) return;
    out->offset = (int64_t)offset;
    out->width = (int)f->width;
    if (id == REGION_SHARED) {
        out->space = SMK_SHARED_SPACE;
        for (uint32_t k = 0; k < m->n_functions; k++) {
            const ptx_function *g = m->functions[k];
            if (g == scene->entry || !g->is_entry)
                find_variable(g->variables, g->n_variables, PTX_SHARED, scene, offset, out);
        }
        find_variable(m->variables, m->n_variables, PTX_SHARED, scene, offset, out);
    } else if (id >= REGION_BUFFERS) {
        out->space = SMK_GLOBAL_SPACE;
        out->buffer = (int)(id - REGION_BUFFERS);
    } else if (id == REGION_GLOBAL) {
        out->space = SMK_GLOBAL_SPACE;
        find_variable(m->variables, m->n_variables, PTX_GLOBAL, scene, offset, out);
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

size_t findings_tell(const findings *all, const finding_scene *scene, smk_hazard *out) {
    for (size_t k = 0; k < all->n; k++) {
        const finding *f = &all->items[k];
        out[k] = (smk_hazard){.kind = f->kind,
                              .party = tell_party(&f->party, scene),
                              .other = tell_party(&f->other, scene),
                              .count = f->count,
                              .message = f->message ? strdup(f->message) : NULL};
        tell_place(f, scene, &out[k]);
    }
    qsort(out, all->n, sizeof *out, compare);
    size_t kept = 0;
    for (size_t k = 0; k < all->n; k++)
        if (kept && !compare_lines(&out[kept - 1], &out[k])) {
            out[kept - 1].count += out[k].count;
            free(out[k].message);
        } else {
            out[kept++] = out[k];
        }
    return kept;
}
