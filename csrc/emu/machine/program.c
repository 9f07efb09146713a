/* Loaded modules: parsed PTX, the module's variables, and the programs decoded so far. */
#include "program.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../base/arena.h"
#include "../base/guarded.h"
#include "device_runtime.h"
#include "heap.h"
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
    if (v->init) memcpy(block + v->offset, v->init, (size_t)v->size);
    for (uint32_t k = 0; k < v->n_relocations; k++) {
        const uint64_t address = initial_address(&v->relocations[k]);
        memcpy(block + v->offset + v->relocations[k].at, &address, sizeof address);
    }
}

/* ---- modules ---- */

smk_code module_load(const struct instruction_set *isa, const char *key, const char *text,
                     size_t size, interrupt_poller *poller, emu_module **out, smk_status *status) {
    smk_code code;
    emu_module *m = calloc(1, sizeof *m);
    if (!m) return smk_fail_memory(status, sizeof *m, "a PTX module");
    m->isa = isa;
    pthread_mutex_init(&m->lock, NULL);
    code = ptx_parse(text, size, poller, &m->ptx, status);
    if (code) goto fail;
    m->key = key ? strdup(key) : NULL;
    m->globals = guarded_zeros(m->ptx->global_bytes);
    m->constants = guarded_zeros(m->ptx->const_bytes);
    for (int k = 0; k < 2; k++)
        m->decoded[k] = calloc(m->ptx->n_functions + 1u, sizeof *m->decoded[k]);
    const bool allocates = ptx_find_function(m->ptx, "malloc") || device_runtime_needs_heap(m->ptx);
    if (allocates && !(m->heap = heap_new())) {
        code = smk_fail_memory(status, HEAP_BYTES, "the heap of malloc");
        goto fail;
    }
    if (!m->globals || !m->constants || (key && !m->key) || !m->decoded[0] || !m->decoded[1]) {
        code = smk_fail_memory(status, m->ptx->global_bytes + m->ptx->const_bytes,
                               "variables of a PTX module");
        goto fail;
    }
    for (uint32_t k = 0; k < m->ptx->n_variables; k++) {
        const ptx_variable *v = m->ptx->variables[k];
        if (v->space == PTX_GLOBAL) initialise(v, m->globals);
        if (v->space == PTX_CONST) initialise(v, m->constants);
    }
    m->bytes = (m->heap ? HEAP_BYTES : 0) + arena_bytes(m->ptx->arena) +
               (size_t)m->ptx->global_bytes + (size_t)m->ptx->const_bytes +
               2 * sizeof *m->decoded[0] * m->ptx->n_functions;
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
    free(p->vectorized);
    free(p->constants);
    free(p->specials);
    free(p);
}

static void programs_free(program *first) {
    for (program *p = first, *next; p; p = next) {
        next = p->next;
        program_free(p);
    }
}

void module_free(emu_module *m) {
    if (!m) return;
    programs_free(m->programs);
    free(m->decoded[0]);
    free(m->decoded[1]);
    heap_free(m->heap);
    pthread_mutex_destroy(&m->lock);
    if (m->ptx) {
        if (!m->globals_moved) guarded_free(m->globals, m->ptx->global_bytes);
        guarded_free(m->constants, m->ptx->const_bytes);
        ptx_free(m->ptx);
    }
    free(m->key);
    free(m);
}

/* ---- programs ---- */

static bool waits(const ptx_module *module, const ptx_function *entry) {
    bool any = ptx_waits(entry);
    for (uint32_t k = 0; k < module->n_functions && !any; k++)
        any = !module->functions[k]->is_entry && ptx_waits(module->functions[k]);
    return any;
}

program *program_find(program_set *set, const ptx_function *function) {
    const uint32_t number = function->number;
    program *p = atomic_load(&set->module->decoded[set->observed][number]);
    if (!p) p = set->by_function[number];
    if (p) return p;
    p = calloc(1, sizeof *p);
    if (!p) return NULL;
    *p = (program){.function = function,
                   .module = set->module,
                   .observed = set->observed,
                   .waits = function->is_entry && waits(set->module->ptx, function),
                   .next = set->created};
    set->created = p;
    set->by_function[number] = p;
    if (!function->is_declaration) {
        p->next_undecoded = set->undecoded;
        set->undecoded = p;
    }
    return p;
}

/* Moves the decoded programs to the module. If another thread has decoded a function in the
 * meantime, both programs stay, because other programs may point to either. Lookups find the one
 * published first. */
static void publish(program_set *set) {
    emu_module *m = set->module;
    pthread_mutex_lock(&m->lock);
    while (set->created) {
        program *p = set->created;
        program *none = NULL;
        set->created = p->next;
        p->next = m->programs;
        m->programs = p;
        atomic_compare_exchange_strong(&m->decoded[p->observed][p->function->number], &none, p);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Decodes the function and, as decoding finds them, all its callees. After a failure all of them
 * are freed, so that the next launch fails in the same way. */
const program *program_get(emu_module *module, const ptx_function *function, bool observed,
                           interrupt_poller *poller, smk_status *status) {
    const program *published = atomic_load(&module->decoded[observed][function->number]);
    if (published) return published;
    program_set set = {.module = module, .observed = observed, .poller = poller};
    set.by_function = calloc(module->ptx->n_functions + 1u, sizeof(program *));
    const program *requested = set.by_function ? program_find(&set, function) : NULL;
    smk_code code = requested ? SMK_OK : smk_fail_memory(status, sizeof *requested, "decoded PTX");
    for (program *p; !code && (p = set.undecoded);) {
        set.undecoded = p->next_undecoded;
        code = decode_function(p, &set, status);
    }
    if (code)
        programs_free(set.created);
    else
        publish(&set);
    free(set.by_function);
    return code ? NULL : requested;
}
