/* Binds the textures and surfaces of a launch, and looks up their handles. */
#include "texture.h"

#include <stdlib.h>
#include <string.h>

#include "block.h"

static const ptx_variable *find_reference(const ptx_module *module, const char *name) {
    for (uint32_t k = 0; k < module->n_variables; k++)
        if (module->variables[k]->type == PTX_TEXREF && !strcmp(module->variables[k]->name, name))
            return module->variables[k];
    return NULL;
}

static smk_code bind_memory(const launch *l, const smk_job *job, bound_texture *t,
                            smk_status *status) {
    const uint64_t bytes = smk_texture_bytes(t->form), offset = t->form->offset;
    if (t->form->buffer >= job->n_buffers)
        return smk_fail(status, SMK_VALUE, "a texture is in buffer %u of %zu: out of range",
                        t->form->buffer, job->n_buffers);
    const region *r = &l->regions[REGION_BUFFERS + t->form->buffer];
    if (offset > r->size || bytes > r->size - offset || (t->form->surface && !r->writable))
        return smk_fail(status, SMK_VALUE,
                        "a %s of %llu bytes does not fit its buffer of %llu bytes",
                        t->form->surface ? "surface" : "texture", (unsigned long long)bytes,
                        (unsigned long long)r->size);
    t->texels = r->host + offset;
    t->address = REGION_BASE(REGION_BUFFERS + t->form->buffer) + offset;
    return SMK_OK;
}

static smk_code bind_name(const launch *l, const smk_job *job, bound_texture *t,
                          unsigned char *parameters, smk_status *status) {
    const uint64_t handle = t->form->handle;
    const uint32_t at = t->form->arg_offset;
    if (at != SMK_NO_ARGUMENT) {
        if (at + sizeof handle > job->args_bytes)
            return smk_fail(status, SMK_VALUE, "a texture is at byte %u of %zu: out of range", at,
                            job->args_bytes);
        memcpy(parameters + at, &handle, sizeof handle);
    }
    if (!t->form->reference) return SMK_OK;
    const ptx_variable *v = find_reference(l->module->ptx, t->form->reference);
    if (!v)
        return smk_fail(status, SMK_VALUE,
                        "the PTX has no .texref or .surfref variable '%.200s' to bind a texture to",
                        t->form->reference);
    t->variable = REGION_BASE(REGION_GLOBAL) + v->offset;
    return SMK_OK;
}

smk_code textures_bind(launch *l, const smk_job *job, unsigned char *parameters,
                       smk_status *status) {
    if (!job->n_textures) return SMK_OK;
    bound_texture *bound = calloc(job->n_textures, sizeof *bound);
    if (!bound) return smk_fail_memory(status, job->n_textures * sizeof *bound, "textures");
    l->textures = bound;
    l->n_textures = (uint32_t)job->n_textures;
    for (uint32_t k = 0; k < l->n_textures; k++) {
        bound[k].form = &job->textures[k];
        if (bind_memory(l, job, &bound[k], status) ||
            bind_name(l, job, &bound[k], parameters, status))
            return status->code;
    }
    return SMK_OK;
}

void textures_free(launch *l) {
    free(l->textures);
}

/* ---- during a launch ---- */

/* A parameter .texref, named by an instruction: its handle is in the parameters. */
static uint64_t dereference(const launch *l, uint64_t handle) {
    const region *r = &l->regions[REGION_PARAM];
    const uint64_t offset = REGION_OFFSET(handle);
    if (REGION_OF(handle) == REGION_PARAM && r->size >= sizeof handle &&
        offset <= r->size - sizeof handle)
        memcpy(&handle, r->host + offset, sizeof handle);
    return handle;
}

static const char *reference_at(const ptx_module *module, uint64_t address) {
    for (uint32_t k = 0; k < module->n_variables; k++) {
        const ptx_variable *v = module->variables[k];
        if (v->type == PTX_TEXREF && v->space == PTX_GLOBAL &&
            address == REGION_BASE(REGION_GLOBAL) + v->offset)
            return v->name;
    }
    return NULL;
}

static void fail_lookup(warp *w, const insn *i, int lane, uint64_t handle,
                        const bound_texture *other) {
    const char *name = reference_at(w->block->launch->module->ptx, handle);
    const bool surface = i->ptx->opcode[0] == 's'; /* suld, sust, sured, suq */
    const char *type = surface ? "Surface" : "Texture", *what = surface ? "surface" : "texture";
    if (other)
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "the kernel accesses a %s, but was given a smemkern.%s; pass a smemkern.%s",
                   what, other->form->surface ? "Surface" : "Texture", type);
    else if (name)
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "the reference '%.200s' is not bound; call the kernel with "
                   "textures={\"%.200s\": smemkern.%s(...)}",
                   name, name, type);
    else
        warp_fault(w, i, SMK_LAUNCH, 1u << lane,
                   "this launch has no %s with the handle 0x%llx; pass a smemkern.%s to a 64-bit "
                   "parameter",
                   what, (unsigned long long)handle, type);
}

const bound_texture *texture_find(warp *w, const insn *i, int lane, uint64_t handle, bool surface) {
    const launch *l = w->block->launch;
    const uint64_t found = dereference(l, handle);
    const bound_texture *other = NULL;
    for (uint32_t k = 0; k < l->n_textures; k++) {
        const bound_texture *t = &l->textures[k];
        if (found != t->form->handle && !(t->variable && found == t->variable)) continue;
        if (t->form->surface == surface) return t;
        other = t;
    }
    fail_lookup(w, i, lane, found, other);
    return NULL;
}
