/* Sites: instructions by number, and what their modifiers say about order. */
#include <stdlib.h>
#include <string.h>

#include "detector.h"

static bool has(const ptx_instruction *p, const char *modifier) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strcmp(p->modifiers[k], modifier)) return true;
    return false;
}

static bool is(const ptx_instruction *p, const char *opcode) {
    return !strcmp(p->opcode, opcode);
}

static site site_of(const ptx_instruction *p) {
    const bool atomic = is(p, "atom") || is(p, "red") || has(p, "reduce");
    const bool acquire = has(p, "acquire") || has(p, "acq_rel");
    const bool release = has(p, "release") || has(p, "acq_rel");
    const bool strong =
        atomic || acquire || release || has(p, "volatile") || has(p, "relaxed") || has(p, "mmio");
    return (site){.ptx = p,
                  .access_kind = atomic   ? ATOMIC
                                 : strong ? STRONG
                                          : WEAK,
                  .acquires = acquire,
                  .releases = release,
                  .stores = is(p, "st"),
                  .bulk = is(p, "cp") && has(p, "bulk")};
}

/* Barriers of some threads, of a warp, flags: everything but __syncthreads. */
static bool is_fine(const ptx_instruction *p) {
    if (is(p, "bar") || is(p, "barrier")) {
        if (has(p, "warp") || has(p, "arrive") || has(p, "cluster")) return true;
        const uint32_t number = has(p, "red") ? 1 : 0; /* after the result */
        const uint32_t n = p->n_operands - (has(p, "red") ? 2 : 0);
        const ptx_operand *o = &p->operands[number];
        return n != 1 || o->kind != PTX_IMMEDIATE || o->bits != 0;
    }
    return is(p, "mbarrier") || is(p, "wgmma") || is(p, "fence") || is(p, "membar") ||
           has(p, "mbarrier") || has(p, "bulk") || has(p, "acquire") || has(p, "release") ||
           has(p, "acq_rel");
}

/* Orders what one block does with what another does. */
static bool is_between_blocks(const ptx_instruction *p) {
    if (is(p, "membar")) return !has(p, "cta");
    if (is(p, "fence") && (has(p, "proxy") || has(p, "mbarrier_init"))) return false;
    const bool orders =
        is(p, "fence") || has(p, "acquire") || has(p, "release") || has(p, "acq_rel");
    return orders && !is(p, "mbarrier") && !has(p, "cta") && !has(p, "cluster");
}

bool sites_read(site_table *t, const ptx_module *module, const ptx_function *entry) {
    *t = (site_table){0};
    uint64_t n = 1;
    for (uint32_t k = 0; k < module->n_functions; k++)
        n += module->functions[k]->n_instructions;
    t->n = n < EPOCH_SITES ? (uint32_t)n : EPOCH_SITES;
    t->sites = calloc(t->n, sizeof *t->sites);
    t->functions = calloc(module->n_functions + 1, sizeof *t->functions);
    t->base = calloc(module->n_functions + 1, sizeof *t->base);
    if (!t->sites || !t->functions || !t->base) return false;
    uint32_t next = 1;
    for (uint32_t k = 0; k < module->n_functions; k++) {
        const ptx_function *f = module->functions[k];
        if (f->is_entry && f != entry) continue;
        if (f->n_instructions > t->n - next) continue; /* beyond what epochs can name */
        t->functions[t->n_functions] = f;
        t->base[t->n_functions++] = next;
        for (uint32_t i = 0; i < f->n_instructions; i++) {
            t->sites[next++] = site_of(&f->instructions[i]);
            t->fine |= is_fine(&f->instructions[i]);
            t->sequential |= is_between_blocks(&f->instructions[i]);
        }
    }
    return true;
}

void sites_free(site_table *t) {
    free(t->sites);
    free(t->functions);
    free(t->base);
    *t = (site_table){0};
}
