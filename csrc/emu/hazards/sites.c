/* Sites: instructions, numbered for epochs, with the memory ordering that their modifiers
 * specify. */
#include <stdlib.h>
#include <string.h>

#include "detector.h"

static const uint64_t acquires = PTX_HAS_ACQUIRE | PTX_HAS_ACQ_REL;
static const uint64_t releases = PTX_HAS_RELEASE | PTX_HAS_ACQ_REL;

/* Whether observers get the value that it stores: not that of sust.p, which converts it. */
static bool stores_known_value(const ptx_instruction *p) {
    return p->op == PTX_OP_st || p->op == PTX_OP_stmatrix ||
           (p->op == PTX_OP_sust && p->n_modifiers && strcmp(p->modifiers[0], "b") == 0);
}

/* Volatile and mmio operations are relaxed ones with system scope (PTX ISA, "Operation types",
 * "Volatile operation"). The scope of atomics without one is .gpu. */
static hb_scope scope_of(const ptx_instruction *p) {
    if (p->has & PTX_HAS_CTA) return SCOPE_CTA;
    if (p->has & PTX_HAS_CLUSTER) return SCOPE_CLUSTER;
    return p->has & (PTX_HAS_SYS | PTX_HAS_VOLATILE | PTX_HAS_MMIO) ? SCOPE_SYS : SCOPE_GPU;
}

/* A membar is a fence.sc. A proxy fence orders proxies only, unless it acquires or releases. */
hb_ordering site_ordering(const ptx_instruction *p) {
    const bool proxy = p->has & PTX_HAS_PROXY;
    const bool sc = !proxy && (p->has & PTX_HAS_SC || ptx_facts(p)->sync == SYNC_MEMBAR);
    return (hb_ordering){.scope = scope_of(p),
                         .acquires = sc || p->has & acquires,
                         .releases = sc || p->has & releases,
                         .sc = sc};
}

static bool is_transposed(const ptx_instruction *p) {
    for (uint32_t k = 0; p->op == PTX_OP_stmatrix && k < p->n_modifiers; k++)
        if (strcmp(p->modifiers[k], "trans") == 0) return true;
    return false;
}

/* The elements of a vector are accesses of their own. */
static uint32_t count_elements(const ptx_instruction *p) {
    return p->has & PTX_HAS_V2 ? 2 : p->has & PTX_HAS_V4 ? 4 : p->has & PTX_HAS_V8 ? 8 : 1;
}

static enum access_path path_of(const ptx_instruction *p) {
    switch (p->op) {
    case PTX_OP_suld:
    case PTX_OP_sust:
    case PTX_OP_sured: return PATH_SURFACE;
    case PTX_OP_tex:
    case PTX_OP_tld4: return PATH_TEXTURE;
    default: return PATH_POINTER;
    }
}

/* site.copied of an ld. */
static uint32_t copied_bytes(const ptx_function *f, const ptx_instruction *p) {
    enum { MAX_BYTES = 32 };
    if (p->op != PTX_OP_ld || !p->types || !p->n_operands) return 0;
    const ptx_operand *to = &p->operands[0];
    const uint32_t width = ptx_type_size[__builtin_ctz(p->types)], n = count_elements(p);
    if (width * n > MAX_BYTES) return 0;
    uint32_t copied = 0;
    for (uint32_t k = 0; k < n; k++) {
        const ptx_operand *item = n == 1                                      ? to
                                  : to->kind == PTX_VECTOR && k < to->n_items ? &to->items[k]
                                                                              : NULL;
        const uint32_t all = (1u << width) - 1;
        uint32_t used = item && item->kind == PTX_SINK ? 0 : all;
        if (item && item->kind == PTX_REGISTER) used = f->registers[item->reg].used;
        /* What a load sets above its bytes is their sign. */
        copied |= (used & ~all ? 0 : all & ~used) << k * width;
    }
    return copied;
}

static site classify(const ptx_function *f, const ptx_instruction *p) {
    const bool atomic = ptx_facts(p)->sync == SYNC_ATOMIC || p->has & PTX_HAS_REDUCE;
    const bool strong =
        p->has & (acquires | releases | PTX_HAS_VOLATILE | PTX_HAS_RELAXED | PTX_HAS_MMIO);
    return (site){.ptx = p,
                  .access_kind = atomic   ? ATOMIC
                                 : strong ? STRONG
                                          : WEAK,
                  .ordering = site_ordering(p),
                  .elements = count_elements(p),
                  .stores = stores_known_value(p),
                  .transposed = is_transposed(p),
                  .bulk = p->op == PTX_OP_cp && p->has & PTX_HAS_BULK,
                  .path = (uint8_t)path_of(p),
                  .copied = copied_bytes(f, p)};
}

/* Whether it synchronises less than the whole block: any synchronisation except __syncthreads. */
static bool is_fine_grained(const ptx_instruction *p) {
    switch (ptx_facts(p)->sync) {
    case SYNC_FENCE:
    case SYNC_MEMBAR:
    case SYNC_MBARRIER:
    case SYNC_WGMMA: return true;
    case SYNC_BARRIER: break;
    default: return p->has & (PTX_HAS_MBARRIER | PTX_HAS_BULK | acquires | releases);
    }
    if (p->has & (PTX_HAS_WARP | PTX_HAS_ARRIVE | PTX_HAS_CLUSTER)) return true;
    const bool reduces = p->has & PTX_HAS_RED;
    const ptx_operand *number = &p->operands[reduces ? 1 : 0]; /* after the result */
    const uint32_t n = p->n_operands - (reduces ? 2 : 0);
    return n != 1 || number->kind != PTX_IMMEDIATE || number->bits != 0;
}

/* Whether it synchronises blocks with each other. */
static bool is_between_blocks(const ptx_instruction *p) {
    const ptx_sync sync = ptx_facts(p)->sync;
    if (sync == SYNC_MEMBAR) return !(p->has & PTX_HAS_CTA);
    if (sync == SYNC_FENCE && p->has & (PTX_HAS_PROXY | PTX_HAS_MBARRIER_INIT)) return false;
    const bool orders = sync == SYNC_FENCE || p->has & (acquires | releases);
    return orders && sync != SYNC_MBARRIER && !(p->has & (PTX_HAS_CTA | PTX_HAS_CLUSTER));
}

bool sites_read(site_table *t, const ptx_module *module, const ptx_function *entry) {
    *t = (site_table){0};
    uint64_t n = 1;
    for (uint32_t k = 0; k < module->n_functions; k++)
        n += module->functions[k]->n_instructions;
    t->n = n < EPOCH_SITE_MASK ? (uint32_t)n : EPOCH_SITE_MASK;
    t->sites = calloc(t->n, sizeof *t->sites);
    t->functions = calloc(module->n_functions + 1, sizeof *t->functions);
    t->first_site = calloc(module->n_functions + 1, sizeof *t->first_site);
    if (!t->sites || !t->functions || !t->first_site) return false;
    uint32_t next = 1;
    for (uint32_t k = 0; k < module->n_functions; k++) {
        const ptx_function *f = module->functions[k];
        if (f->is_entry && f != entry) continue;
        if (f->n_instructions > t->n - next) continue; /* more sites than an epoch can number */
        t->functions[t->n_functions] = f;
        t->first_site[t->n_functions++] = next;
        for (uint32_t i = 0; i < f->n_instructions; i++) {
            t->sites[next++] = classify(f, &f->instructions[i]);
            t->several_paths |= path_of(&f->instructions[i]) != PATH_POINTER;
            t->has_cas |= (f->instructions[i].has & PTX_HAS_CAS) != 0;
            t->fine_grained |= is_fine_grained(&f->instructions[i]);
            t->sequential |= is_between_blocks(&f->instructions[i]);
        }
    }
    return true;
}

void sites_free(site_table *t) {
    free(t->sites);
    free(t->functions);
    free(t->first_site);
    *t = (site_table){0};
}
