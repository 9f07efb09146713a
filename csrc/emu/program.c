/* Loaded modules: parsed text, the module's variables in memory, and programs decoded so far. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "guarded.h"
#include "spaces.h"

enum { FUNCTION_SPACING = 16 };

struct allocation {
    struct allocation *next;
};

uint64_t function_address(const ptx_function *function) {
    return function->number
               ? REGION_BASE(REGION_CODE) + (uint64_t)function->number * FUNCTION_SPACING
               : 0;
}

const ptx_function *function_at(const ptx_module *module, uint64_t address) {
    const uint64_t offset = REGION_OFFSET(address);
    const uint64_t number = offset / FUNCTION_SPACING;
    if (REGION_OF(address) != REGION_CODE || offset % FUNCTION_SPACING || !number ||
        number > module->n_functions)
        return NULL;
    return module->functions[number - 1];
}

/* ---- variables ---- */

static uint64_t initial_address(const struct ptx_relocation *r) {
    if (r->function) return function_address(r->function) + (uint64_t)r->addend;
    const ptx_variable *v = r->variable;
    const uint64_t offset = v->offset + (uint64_t)r->addend;
    switch (v->space) {
    case PTX_GLOBAL: return REGION_BASE(REGION_GLOBAL) + offset;
    case PTX_CONST: return REGION_BASE(REGION_CONST) + offset;
    case PTX_SHARED: return offset + (r->generic ? REGION_BASE(REGION_SHARED) : 0);
    default: return offset;
    }
}

static void initialise(const ptx_variable *v, unsigned char *block) {
    if (v->init) memcpy(block + v->offset, v->init, v->size);
    for (uint32_t k = 0; k < v->n_relocations; k++) {
        const uint64_t address = initial_address(&v->relocations[k]);
        memcpy(block + v->offset + v->relocations[k].at, &address, sizeof address);
    }
}

/* ---- modules ---- */

smk_code module_load(const char *key, const char *text, size_t size, emu_module **out,
                     smk_status *status) {
    smk_code code;
    emu_module *m = calloc(1, sizeof *m);
    if (!m) return smk_fail_memory(status, sizeof *m, "a PTX module");
    pthread_mutex_init(&m->lock, NULL);
    code = ptx_parse(text, size, &m->ptx, status);
    if (code) goto fail;
    m->key = key ? strdup(key) : NULL;
    m->globals = guarded_zeros(m->ptx->global_bytes);
    m->constants = guarded_zeros(m->ptx->const_bytes);
    m->program_of = calloc(m->ptx->n_functions + 1, sizeof *m->program_of);
    if (!m->globals || !m->constants || !m->program_of || (key && !m->key)) {
        code = smk_fail_memory(status, m->ptx->global_bytes + m->ptx->const_bytes,
                               "variables of a PTX module");
        goto fail;
    }
    for (uint32_t k = 0; k < m->ptx->n_variables; k++) {
        const ptx_variable *v = m->ptx->variables[k];
        if (v->space == PTX_GLOBAL) initialise(v, m->globals);
        if (v->space == PTX_CONST) initialise(v, m->constants);
    }
    m->bytes = arena_bytes(m->ptx->arena) + m->ptx->global_bytes + m->ptx->const_bytes;
    *out = m;
    return SMK_OK;
fail:
    module_free(m);
    return code;
}

static void program_free(program *p) {
    for (struct allocation *a = p->allocations, *next; a; a = next) {
        next = a->next;
        free(a);
    }
    free(p->code);
    free(p->widened);
    free(p->constants);
    free(p->specials);
    free(p);
}

void module_free(emu_module *m) {
    if (!m) return;
    for (program *p = m->programs, *next; p; p = next) {
        next = p->next;
        program_free(p);
    }
    free(m->program_of);
    pthread_mutex_destroy(&m->lock);
    if (m->ptx) {
        guarded_free(m->globals, m->ptx->global_bytes);
        guarded_free(m->constants, m->ptx->const_bytes);
        ptx_free(m->ptx);
    }
    free(m->key);
    free(m);
}

/* ---- programs ---- */

program *program_find(emu_module *module, const ptx_function *function, bool observed) {
    program **place = &module->program_of[function->number - 1][observed];
    if (*place) return *place;
    program *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    *p = (program){.function = function, .module = module, .observed = observed};
    p->next = module->programs;
    module->programs = p;
    if (!function->is_declaration) {
        p->next_undecoded = module->undecoded;
        module->undecoded = p;
    }
    return *place = p;
}

/* Decoding finds callees: decode until nothing is left. Programs of a failed attempt are thrown away, so that
 * the next launch fails in the same way. */
const program *program_get(emu_module *module, const ptx_function *function, bool observed,
                           smk_status *status) {
    pthread_mutex_lock(&module->lock);
    program *const before = module->programs;
    program *wanted = program_find(module, function, observed);
    smk_code code = wanted ? SMK_OK : smk_fail_memory(status, sizeof *wanted, "decoded PTX");
    for (program *p; !code && (p = module->undecoded);) {
        module->undecoded = p->next_undecoded;
        code = decode_function(p, status);
    }
    module->undecoded = NULL;
    while (code && module->programs != before) {
        program *p = module->programs;
        module->programs = p->next;
        module->program_of[p->function->number - 1][p->observed] = NULL;
        program_free(p);
    }
    pthread_mutex_unlock(&module->lock);
    return code ? NULL : wanted;
}
