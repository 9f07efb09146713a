/* Reads the parameters of an entry, by which a call's arguments are laid out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu.h"
#include "../core/interrupt.h"
#include "machine/machine.h"
#include "ptx/ptx.h"

static char kind_of(ptx_type type) {
    switch (type) {
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_TF32:
    case PTX_F64: return 'f';
    case PTX_S8:
    case PTX_S16:
    case PTX_S32:
    case PTX_S64: return 'i';
    case PTX_U8:
    case PTX_U16:
    case PTX_U32:
    case PTX_U64: return 'u';
    default: return 'b';
    }
}

/* "a, b, c, and 7 more": as many names as fit. */
static void list_entries(const ptx_module *module, char *out, size_t size) {
    size_t used = 0;
    uint32_t n_left = 0;
    const char *separator = "";
    out[0] = 0;
    for (uint32_t i = 0; i < module->n_functions; i++) {
        const ptx_function *f = module->functions[i];
        if (!f->is_entry || f->is_declaration) continue;
        size_t length = strlen(f->name) + strlen(separator);
        if (used + length + sizeof ", and 4294967295 more" > size) {
            n_left++;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", separator, f->name);
        separator = ", ";
    }
    if (n_left) snprintf(out + used, size - used, "%sand %u more", separator, n_left);
}

static smk_code find_entry(const ptx_module *module, const char *name, const ptx_function **out,
                           smk_status *status) {
    char entries[2048];
    uint32_t n_entries = 0;
    *out = NULL;
    for (uint32_t i = 0; i < module->n_functions; i++) {
        const ptx_function *f = module->functions[i];
        if (!f->is_entry || f->is_declaration) continue;
        n_entries++;
        if (!name || strcmp(f->name, name) == 0) *out = f;
    }
    if (n_entries == 0) return smk_fail(status, SMK_VALUE, "the PTX has no kernel (no .entry)");
    list_entries(module, entries, sizeof entries);
    if (!name && n_entries > 1)
        return smk_fail(status, SMK_VALUE, "the PTX has several kernels; name one of: %s", entries);
    if (!*out)
        return smk_fail(status, SMK_VALUE, "the PTX has no kernel '%.500s'; it has: %s", name,
                        entries);
    return SMK_OK;
}

static bool reads_workspace(const ptx_function *f) {
    for (uint32_t k = 0; k < f->n_instructions; k++)
        for (uint32_t n = 0; n < f->instructions[k].n_operands; n++) {
            const ptx_operand *o = &f->instructions[k].operands[n];
            if (o->kind == PTX_SPECIAL &&
                (o->special == PTX_SPECIAL_ENVREG1 || o->special == PTX_SPECIAL_ENVREG2))
                return true;
        }
    return false;
}

/* Whether the kernel, or a device function of its module, synchronises the grid as cooperative
 * groups do. */
static bool is_cooperative(const ptx_module *module, const ptx_function *entry) {
    bool reads = reads_workspace(entry);
    for (uint32_t k = 0; k < module->n_functions; k++)
        reads |= !module->functions[k]->is_entry && reads_workspace(module->functions[k]);
    return reads;
}

static uint32_t max_threads(const ptx_function *f) {
    const uint32_t *limit = f->required_threads[0] ? f->required_threads : f->max_threads;
    uint64_t threads = limit[0];
    for (int k = 1; k < 3; k++)
        threads *= limit[k] ? limit[k] : 1;
    return threads && threads < MAX_THREADS ? (uint32_t)threads : MAX_THREADS;
}

static smk_code make_signature(const ptx_module *module, const ptx_function *f, emu_signature *out,
                               smk_status *status) {
    *out = (emu_signature){0};
    if (strlen(f->name) >= sizeof out->entry)
        return smk_fail(status, SMK_VALUE, "the kernel's name has %zu characters; at most %zu",
                        strlen(f->name), sizeof out->entry - 1);
    out->parameters = calloc(f->n_parameters + 1u, sizeof *out->parameters);
    out->offsets = calloc(f->n_parameters + 1u, sizeof *out->offsets);
    if (!out->parameters || !out->offsets)
        return smk_fail_memory(status, f->n_parameters * sizeof *out->parameters, "parameters");
    strcpy(out->entry, f->name);
    out->n_parameters = f->n_parameters;
    out->args_bytes = (size_t)f->parameters_bytes;
    out->static_shared_bytes = (size_t)f->shared_bytes;
    out->max_threads = max_threads(f);
    out->local_bytes = (size_t)f->local_bytes;
    out->cooperative = is_cooperative(module, f);
    out->live_registers = f->frame_bytes / ptx_slot_bytes(PTX_B32);
    for (uint32_t i = 0; i < f->n_parameters; i++) {
        const ptx_variable *v = f->parameters[i];
        out->parameters[i] = (emu_parameter){.offset = (uint32_t)v->offset,
                                             .size = (uint32_t)v->size,
                                             .scalar_size = ptx_type_size[v->type],
                                             .kind = kind_of(v->type)};
        out->offsets[i] = (uint32_t)v->offset;
    }
    return SMK_OK;
}

smk_code emu_signature_read(const char *ptx, size_t size, const char *name,
                            int (*poll)(void *poll_arg), void *poll_arg, emu_signature *out,
                            smk_status *status) {
    ptx_module *module = NULL;
    const ptx_function *f;
    *out = (emu_signature){0};
    interrupt_poller poller = interrupt_start(poll, poll_arg, NULL);
    smk_code code = ptx_parse(ptx, size, &poller, &module, status);
    if (code == SMK_OK) code = find_entry(module, name, &f, status);
    if (code == SMK_OK) code = make_signature(module, f, out, status);
    ptx_free(module);
    return code;
}

smk_code emu_signatures_read(const char *ptx, size_t size,
                             void (*each)(void *context, const emu_signature *), void *context,
                             smk_status *status) {
    ptx_module *module = NULL;
    emu_signature signature;
    interrupt_poller poller = interrupt_start(NULL, NULL, NULL);
    smk_code code = ptx_parse(ptx, size, &poller, &module, status);
    for (uint32_t k = 0; code == SMK_OK && k < module->n_functions; k++) {
        const ptx_function *f = module->functions[k];
        if (!f->is_entry || f->is_declaration) continue;
        code = make_signature(module, f, &signature, status);
        if (code == SMK_OK) each(context, &signature);
        emu_signature_free(&signature);
    }
    ptx_free(module);
    return code;
}

smk_code emu_module_signature(const emu_module *module, const char *name, emu_signature *out,
                              smk_status *status) {
    const ptx_function *f;
    *out = (emu_signature){0};
    if (find_entry(module->ptx, name, &f, status)) return status->code;
    return make_signature(module->ptx, f, out, status);
}

void emu_signature_free(emu_signature *signature) {
    free(signature->parameters);
    free(signature->offsets);
    *signature = (emu_signature){0};
}
