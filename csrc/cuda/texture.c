/* Textures and surfaces on a GPU. Handles are known only when the objects exist, so the emulator's
 * handles, which are unique numbers, stand for them in arguments, structs and arrays until then.
 */
#include "texture.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"

typedef struct entry {
    const smk_texture *form;   /* the job's */
    CUdeviceptr texels;        /* in the buffer */
    CUarray array;             /* NULL: linear memory */
    unsigned long long object; /* 0: none yet */
    bool surface;
} entry;

/* A handle in a buffer. */
typedef struct place {
    uint32_t buffer;
    size_t at;
    size_t entry;
} place;

struct texture_set {
    CUmodule module;
    const smk_job *job; /* of these two nothing is read when the set is destroyed */
    const CUdeviceptr *addresses;
    entry *entries;
    size_t n_entries;
    place *places;
    size_t n_places;
};

static const CUarray_format formats[] = {
    [SMK_TEXEL_UINT8] = CU_AD_FORMAT_UNSIGNED_INT8,   [SMK_TEXEL_INT8] = CU_AD_FORMAT_SIGNED_INT8,
    [SMK_TEXEL_UINT16] = CU_AD_FORMAT_UNSIGNED_INT16, [SMK_TEXEL_INT16] = CU_AD_FORMAT_SIGNED_INT16,
    [SMK_TEXEL_UINT32] = CU_AD_FORMAT_UNSIGNED_INT32, [SMK_TEXEL_INT32] = CU_AD_FORMAT_SIGNED_INT32,
    [SMK_TEXEL_FLOAT16] = CU_AD_FORMAT_HALF,          [SMK_TEXEL_FLOAT32] = CU_AD_FORMAT_FLOAT,
};

static const CUaddress_mode modes[] = {
    [SMK_ADDRESS_CLAMP] = CU_TR_ADDRESS_MODE_CLAMP,
    [SMK_ADDRESS_BORDER] = CU_TR_ADDRESS_MODE_BORDER,
    [SMK_ADDRESS_WRAP] = CU_TR_ADDRESS_MODE_WRAP,
    [SMK_ADDRESS_MIRROR] = CU_TR_ADDRESS_MODE_MIRROR,
};

/* ---- which memory ---- */

/* What the kernel reads. Of 1-D textures: tex.1d with integer coordinates (tex1Dfetch) reads linear
 * memory, with float coordinates an array. */
typedef struct texture_reads {
    bool line_by_integer, line_by_float;
    bool gathers; /* tld4, for which arrays need a flag */
} texture_reads;

static bool begins(const char *text, const char *with) {
    return !strncmp(text, with, strlen(with));
}

/* In this kernel and in functions, not in other kernels of the module. */
static texture_reads find_reads(const char *ptx, const char *entry) {
    texture_reads found = {0};
    bool counts = true;
    for (const char *at = ptx; (at = strpbrk(at, ".t")); at++) {
        if (begins(at, ".func")) {
            counts = true;
        } else if (begins(at, ".entry")) {
            const char *name = at + strlen(".entry");
            name += strspn(name, " \t\r\n");
            const size_t n = strcspn(name, " \t\r\n(");
            counts = n == strlen(entry) && begins(name, entry);
        } else if (counts && begins(at, "tex.1d.")) {
            const size_t n = strcspn(at, " \t\r\n[{;");
            const bool integer = n > 4 && !memcmp(at + n - 4, ".s32", 4);
            *(integer ? &found.line_by_integer : &found.line_by_float) = true;
        } else if (counts && begins(at, "tld4.")) {
            found.gathers = true;
        }
    }
    return found;
}

static bool is_line(const smk_texture *t) {
    return t->rank == 1 && !t->layered && !t->surface;
}

static smk_code choose_memory(const smk_texture *t, texture_reads reads, bool *linear,
                              smk_status *status) {
    enum { MAX_ARRAY = 131072 };
    *linear = is_line(t) && reads.line_by_integer;
    if (!is_line(t)) return SMK_OK;
    if (reads.line_by_integer && reads.line_by_float)
        return smk_fail(status, SMK_VALUE,
                        "the kernel reads 1-D textures by integer coordinates (tex1Dfetch) and by "
                        "float coordinates (tex1D): on a GPU the former are in linear memory and "
                        "the latter in arrays. Use one of them, or device=\"emu\"");
    if (!*linear && t->size[0] > MAX_ARRAY)
        return smk_fail(status, SMK_VALUE,
                        "a 1-D texture of %u texels, read by float coordinates; on a GPU it has "
                        "at most %d, unless it is read by integer coordinates (tex1Dfetch)",
                        t->size[0], MAX_ARRAY);
    return SMK_OK;
}

/* ---- arrays ---- */

/* Planes, layers, or faces of cubes; 1 if there is one. */
static size_t depth_of(const smk_texture *t) {
    const size_t faces = t->cubemap ? SMK_CUBE_FACES : 1;
    return faces * t->layers * (t->rank > 2 ? t->size[2] : 1);
}

static smk_code make_array(device *d, entry *e, bool gathers, smk_status *status) {
    enum { MAX_GATHER = 32768 };
    const smk_texture *t = e->form;
    CUDA_ARRAY3D_DESCRIPTOR description = {
        .Width = t->size[0],
        .Height = t->rank > 1 ? t->size[1] : 0,
        .Depth = t->rank > 2 || t->layered || t->cubemap ? depth_of(t) : 0,
        .Format = formats[t->type],
        .NumChannels = t->channels,
        .Flags = (t->layered ? CUDA_ARRAY3D_LAYERED : 0u) |
                 (t->cubemap ? CUDA_ARRAY3D_CUBEMAP : 0u) |
                 (t->surface ? CUDA_ARRAY3D_SURFACE_LDST : 0u),
    };
    if (gathers && t->rank == 2 && !t->cubemap && !t->surface && t->size[0] <= MAX_GATHER &&
        t->size[1] <= MAX_GATHER)
        description.Flags |= CUDA_ARRAY3D_TEXTURE_GATHER;
    const CUresult result = d->cu->cuArray3DCreate(&e->array, &description);
    if (!result) return SMK_OK;
    e->array = NULL;
    return device_fail(d, result, SMK_VALUE, status,
                       "cuArray3DCreate of a %s of %s, %zu x %zu x %zu texels of %u channels",
                       t->surface ? "surface" : "texture", smk_texel_type_name(t->type),
                       description.Width, description.Height, description.Depth, t->channels);
}

/* Between the buffer's memory and the array. */
static smk_code copy_texels(device *d, const entry *e, bool back, CUstream stream,
                            smk_status *status) {
    const smk_texture *t = e->form;
    const size_t row = (size_t)t->size[0] * smk_texel_bytes(t);
    const size_t height = t->rank > 1 ? t->size[1] : 1;
    const copy_side memory = {
        .kind = CU_MEMORYTYPE_DEVICE, .device = e->texels, .pitch = row, .height = height};
    const copy_side array = {.kind = CU_MEMORYTYPE_ARRAY, .array = e->array};
    const CUDA_MEMCPY3D copy = {.src = back ? array : memory,
                                .dst = back ? memory : array,
                                .WidthInBytes = row,
                                .Height = height,
                                .Depth = depth_of(t)};
    const CUresult result = d->cu->cuMemcpy3DAsync(&copy, stream);
    return result ? device_fail(d, result, SMK_ERROR, status, "cuMemcpy3DAsync of a texture")
                  : SMK_OK;
}

/* ---- objects ---- */

static CUDA_TEXTURE_DESC describe_sampling(const smk_texture *t) {
    CUDA_TEXTURE_DESC out = {.filterMode = t->linear};
    for (int k = 0; k < SMK_TEXTURE_RANK; k++)
        out.addressMode[k] = modes[t->address[k]];
    if (smk_texel_type_kind(t->type) != 'f' && !t->normalized_float)
        out.flags |= CU_TRSF_READ_AS_INTEGER;
    if (t->normalized) out.flags |= CU_TRSF_NORMALIZED_COORDINATES;
    memcpy(out.borderColor, t->border, sizeof out.borderColor);
    return out;
}

static smk_code make_object(device *d, entry *e, smk_status *status) {
    const smk_texture *t = e->form;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array = e->array};
    if (!e->array) {
        resource.resType = CU_RESOURCE_TYPE_LINEAR;
        resource.res.linear.address = e->texels;
        resource.res.linear.format = formats[t->type];
        resource.res.linear.channels = t->channels;
        resource.res.linear.bytes = smk_texture_bytes(t);
    }
    const CUDA_TEXTURE_DESC sampling = describe_sampling(t);
    const CUresult result = t->surface
                                ? d->cu->cuSurfObjectCreate(&e->object, &resource)
                                : d->cu->cuTexObjectCreate(&e->object, &resource, &sampling, NULL);
    if (!result) return SMK_OK;
    e->object = 0;
    return device_fail(d, result, SMK_VALUE, status, "%s of %u-dimensional texels of %s",
                       t->surface ? "cuSurfObjectCreate" : "cuTexObjectCreate", t->rank,
                       smk_texel_type_name(t->type));
}

/* ---- references: variables of the module ---- */

static CUresult bind_texture(device *d, const entry *e, CUtexref reference) {
    const driver *cu = d->cu;
    const smk_texture *t = e->form;
    CUDA_TEXTURE_DESC sampling = describe_sampling(t);
    size_t offset;
    CUresult result =
        e->array ? cu->cuTexRefSetArray(reference, e->array, CU_TRSA_OVERRIDE_FORMAT)
                 : cu->cuTexRefSetAddress(&offset, reference, e->texels, smk_texture_bytes(t));
    if (!result) result = cu->cuTexRefSetFormat(reference, formats[t->type], (int)t->channels);
    for (int k = 0; k < SMK_TEXTURE_RANK && !result; k++)
        result = cu->cuTexRefSetAddressMode(reference, k, sampling.addressMode[k]);
    if (!result) result = cu->cuTexRefSetFilterMode(reference, sampling.filterMode);
    if (!result) result = cu->cuTexRefSetFlags(reference, sampling.flags);
    if (!result) result = cu->cuTexRefSetBorderColor(reference, sampling.borderColor);
    return result;
}

static smk_code bind_reference(device *d, const entry *e, CUmodule module, smk_status *status) {
    const driver *cu = d->cu;
    const smk_texture *t = e->form;
    const char *call = t->surface ? "cuModuleGetSurfRef" : "cuModuleGetTexRef";
    CUtexref texture;
    CUsurfref surface;
    if (!cu->cuModuleGetTexRef || !cu->cuModuleGetSurfRef || !cu->cuTexRefSetArray ||
        !cu->cuTexRefSetAddress || !cu->cuTexRefSetFormat || !cu->cuTexRefSetAddressMode ||
        !cu->cuTexRefSetFilterMode || !cu->cuTexRefSetFlags || !cu->cuTexRefSetBorderColor ||
        !cu->cuSurfRefSetArray)
        return smk_fail(
            status, SMK_DRIVER_TOO_OLD,
            "the NVIDIA driver lacks cuModuleGetTexRef or a function that goes with it, "
            "which bind variables of PTX (.texref, .surfref) such as \"%s\": pass the "
            "texture as an argument, or use device=\"emu\"",
            t->reference);
    CUresult result = t->surface ? cu->cuModuleGetSurfRef(&surface, module, t->reference)
                                 : cu->cuModuleGetTexRef(&texture, module, t->reference);
    if (result == CUDA_ERROR_NOT_FOUND)
        return smk_fail(status, SMK_VALUE,
                        "the PTX has no .texref or .surfref variable '%s' (%s: "
                        "CUDA_ERROR_NOT_FOUND)",
                        t->reference, call);
    if (!result && t->surface) result = cu->cuSurfRefSetArray(surface, e->array, 0);
    if (!result && !t->surface) result = bind_texture(d, e, texture);
    if (!result) return SMK_OK;
    return device_fail(d, result, SMK_VALUE, status, "%s and binding of \"%s\"", call,
                       t->reference);
}

/* ---- handles in buffers ---- */

static const entry *entry_of(const texture_set *set, uint64_t handle) {
    for (size_t i = 0; i < set->n_entries; i++)
        if (set->entries[i].form->handle == handle) return &set->entries[i];
    return NULL;
}

static smk_code add_place(texture_set *set, size_t buffer, size_t at, const entry *e,
                          smk_status *status) {
    if ((set->n_places & (set->n_places - 1)) == 0) { /* full: a power of two */
        const size_t bytes = (set->n_places ? 2 * set->n_places : 1) * sizeof *set->places;
        place *grown = realloc(set->places, bytes);
        if (!grown) return smk_fail_memory(status, bytes, "handles of textures");
        set->places = grown;
    }
    set->places[set->n_places++] = (place){(uint32_t)buffer, at, (size_t)(e - set->entries)};
    return SMK_OK;
}

/* Textures that are neither an argument nor a variable of the module: the kernel reads their
 * handles from a struct or an array. */
static bool has_stored_handles(const smk_job *job) {
    for (size_t i = 0; i < job->n_textures; i++)
        if (job->textures[i].arg_offset == SMK_NO_ARGUMENT && !job->textures[i].reference)
            return true;
    return false;
}

static smk_code find_places(texture_set *set, smk_status *status) {
    const smk_job *job = set->job;
    for (size_t b = 0; b < job->n_buffers && has_stored_handles(job); b++) {
        const smk_buffer *buffer = &job->buffers[b];
        for (size_t at = 0; (buffer->access & SMK_IN) && at + 8 <= buffer->bytes; at += 8) {
            uint64_t word;
            memcpy(&word, (const char *)buffer->host + at, sizeof word);
            if ((word & SMK_TEXTURE_HANDLE) != SMK_TEXTURE_HANDLE) continue;
            const entry *e = entry_of(set, word);
            if (e && add_place(set, b, at, e, status)) return status->code;
        }
    }
    return SMK_OK;
}

/* ---- the set ---- */

/* A surface is an array of its own, so no other argument can see what is written to it. */
static bool shares_memory(const smk_job *job, const smk_texture *t) {
    for (size_t i = 0; i < job->n_pointers; i++)
        if (job->pointers[i].buffer == t->buffer) return true;
    for (size_t i = 0; i < job->n_tensor_maps; i++)
        if (job->tensor_maps[i].in_buffer && job->tensor_maps[i].tensor_buffer == t->buffer)
            return true;
    for (size_t i = 0; i < job->n_textures; i++)
        if (&job->textures[i] != t && job->textures[i].buffer == t->buffer) return true;
    return false;
}

static smk_code check(const smk_job *job, const smk_texture *t, smk_status *status) {
    if (t->surface && shares_memory(job, t))
        return smk_fail(status, SMK_VALUE,
                        "a Surface's array overlaps that of another argument; on a GPU a surface "
                        "has memory of its own: pass a copy, or use device=\"emu\"");
    return SMK_OK;
}

static smk_code make_entry(device *d, texture_set *set, const smk_texture *t, texture_reads reads,
                           smk_status *status) {
    entry *e = &set->entries[set->n_entries++];
    bool linear;
    *e = (entry){.form = t, .texels = set->addresses[t->buffer] + t->offset, .surface = t->surface};
    if (check(set->job, t, status) || choose_memory(t, reads, &linear, status)) return status->code;
    if (!linear && make_array(d, e, reads.gathers, status)) return status->code;
    if (t->reference) return bind_reference(d, e, set->module, status);
    return make_object(d, e, status);
}

static bool has_textures(const driver *cu) {
    return cu->cuArray3DCreate && cu->cuArrayDestroy && cu->cuMemcpy3DAsync &&
           cu->cuTexObjectCreate && cu->cuTexObjectDestroy && cu->cuSurfObjectCreate &&
           cu->cuSurfObjectDestroy;
}

smk_code texture_set_make(device *d, const smk_job *job, CUmodule module,
                          const CUdeviceptr *addresses, texture_set **out, smk_status *status) {
    *out = NULL;
    if (!job->n_textures) return SMK_OK;
    if (!has_textures(d->cu))
        return smk_fail(status, SMK_DRIVER_TOO_OLD,
                        "the NVIDIA driver lacks functions for textures: use device=\"emu\"");
    texture_set *set = calloc(1, sizeof *set);
    if (!set) return smk_fail_memory(status, sizeof *set, "textures");
    *out = set;
    set->module = module;
    set->job = job;
    set->addresses = addresses;
    set->entries = calloc(job->n_textures, sizeof *set->entries);
    if (!set->entries)
        return smk_fail_memory(status, job->n_textures * sizeof *set->entries, "textures");
    const texture_reads reads = find_reads(job->image.data, job->launches[0].entry);
    for (size_t i = 0; i < job->n_textures; i++)
        if (make_entry(d, set, &job->textures[i], reads, status)) return status->code;
    return find_places(set, status);
}

void texture_set_bind(const texture_set *set, unsigned char *args) {
    for (size_t i = 0; set && i < set->n_entries; i++) {
        const smk_texture *t = set->entries[i].form;
        if (t->arg_offset != SMK_NO_ARGUMENT)
            memcpy(args + t->arg_offset, &set->entries[i].object, sizeof set->entries[i].object);
    }
    for (size_t at = 0; set && at + 8 <= set->job->args_bytes && has_stored_handles(set->job);
         at += 8) {
        uint64_t word;
        memcpy(&word, args + at, sizeof word);
        const entry *e = entry_of(set, word);
        if (e) memcpy(args + at, &e->object, sizeof e->object);
    }
}

smk_code texture_set_copy_in(device *d, const texture_set *set, CUstream stream,
                             smk_status *status) {
    for (size_t i = 0; set && i < set->n_entries; i++)
        if (set->entries[i].array && copy_texels(d, &set->entries[i], false, stream, status))
            return status->code;
    for (size_t i = 0; set && i < set->n_places; i++) {
        const place *p = &set->places[i];
        const unsigned long long *object = &set->entries[p->entry].object;
        const CUresult result = d->cu->cuMemcpyHtoDAsync(set->addresses[p->buffer] + p->at, object,
                                                         sizeof *object, stream);
        if (result)
            return device_fail(d, result, SMK_ERROR, status,
                               "cuMemcpyHtoDAsync of a texture's handle");
    }
    return SMK_OK;
}

smk_code texture_set_copy_out(device *d, const texture_set *set, CUstream stream,
                              smk_status *status) {
    for (size_t i = 0; set && i < set->n_entries; i++)
        if (set->entries[i].surface && copy_texels(d, &set->entries[i], true, stream, status))
            return status->code;
    return SMK_OK;
}

void texture_set_restore(const texture_set *set) {
    for (size_t i = 0; set && i < set->n_places; i++) {
        const place *p = &set->places[i];
        const entry *e = &set->entries[p->entry];
        const smk_buffer *buffer = &set->job->buffers[p->buffer];
        char *at = (char *)buffer->host + p->at;
        if ((buffer->access & SMK_OUT) && !memcmp(at, &e->object, sizeof e->object))
            memcpy(at, &e->form->handle, sizeof e->form->handle);
    }
}

void texture_set_destroy(device *d, texture_set *set) {
    for (size_t i = 0; set && i < set->n_entries; i++) {
        const entry *e = &set->entries[i];
        if (e->object && e->surface) d->cu->cuSurfObjectDestroy(e->object);
        if (e->object && !e->surface) d->cu->cuTexObjectDestroy(e->object);
        if (e->array) d->cu->cuArrayDestroy(e->array);
    }
    texture_set_forget(set);
}

void texture_set_forget(texture_set *set) {
    if (!set) return;
    free(set->entries);
    free(set->places);
    free(set);
}
