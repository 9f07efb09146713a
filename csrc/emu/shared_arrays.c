/* The arrays that a kernel's blocks have in shared memory, as the PTX declares them. */
#include <string.h>

#include "../core/interrupt.h"
#include "emu.h"
#include "machine/machine.h"
#include "ptx/ptx.h"

typedef struct reader {
    emu_array_hook *each;
    void *context;
    uint64_t dynamic_at, dynamic_bytes;
} reader;

/* Compilers declare arrays as bytes, which says nothing of their elements. */
static void read_variables(const reader *r, ptx_variable *const *variables, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const ptx_variable *v = variables[k];
        const bool is_dynamic = v->external && v->size == 0;
        if (v->space != PTX_SHARED) continue;
        const explain_array array = {
            .name = v->name,
            .at = v->external ? r->dynamic_at : v->offset,
            .bytes = is_dynamic ? r->dynamic_bytes : v->size,
            .element = v->type == PTX_B8 ? 0 : ptx_type_size[v->type],
            .cols = v->columns,
            .rows = v->rows,
        };
        r->each(r->context, &array);
    }
}

smk_code emu_shared_arrays_read(const char *ptx, size_t size, const char *entry,
                                uint64_t dynamic_bytes, emu_array_hook *each, void *context,
                                smk_status *status) {
    ptx_module *m = NULL;
    interrupt_poller poller = interrupt_start(NULL, NULL, NULL);
    const smk_code code = ptx_parse(ptx, size, &poller, &m, status);
    const ptx_function *kernel = code || !entry ? NULL : ptx_find_function(m, entry);
    reader r = {each, context, 0, dynamic_bytes};
    if (kernel) r.dynamic_at = launch_dynamic_shared_at(m, kernel);
    if (!code) read_variables(&r, m->variables, m->n_variables);
    for (uint32_t k = 0; !code && k < m->n_functions; k++) {
        const ptx_function *f = m->functions[k];
        if (!entry || f == kernel || !f->is_entry) read_variables(&r, f->variables, f->n_variables);
    }
    ptx_free(m);
    return code;
}
