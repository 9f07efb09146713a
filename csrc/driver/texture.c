/* Texture and surface objects. A handle is a number that the emulator looks up; see
 * core/texture.h. */
#include <stdlib.h>
#include <string.h>

#include "work.h"

typedef struct texture {
    handle head;
    struct texture *next, **link;
    smk_texture form; /* without its place in memory */
    CUdeviceptr address;
    CUarray array; /* NULL: its texels are in linear memory */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampling;
} texture;

static texture *first;

/* ---- what a launch gets ---- */

/* Sets the place of the texels. False: the memory is gone. */
static bool place(const texture *t, smk_texture *out) {
    size_t offset;
    const allocation *a = memory_find(t->address, &offset);
    *out = t->form;
    if (!a || smk_texture_bytes(out) > a->bytes - offset) return false;
    out->buffer = (uint32_t)emu_buffer_of(t->address, &out->offset);
    return true;
}

smk_texture *textures_list(size_t *n) {
    size_t room = 0;
    *n = 0;
    for (const texture *t = first; t; t = t->next)
        room++;
    smk_texture *list = room ? calloc(room, sizeof *list) : NULL;
    for (const texture *t = first; list && t; t = t->next)
        *n += place(t, &list[*n]);
    return list;
}

/* ---- resources ---- */

static CUresult of_array(CUarray array, texture *t) {
    if (!array) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(array, HANDLE_ARRAY)) return CUDA_ERROR_INVALID_HANDLE;
    t->form = array->form;
    t->array = array;
    t->address = array->address;
    return CUDA_SUCCESS;
}

static CUresult of_memory(CUdeviceptr address, unsigned format, unsigned channels, size_t width,
                          size_t height, size_t pitch, texture *t) {
    enum { TEXTURE_ALIGNMENT = 14, PITCH_ALIGNMENT = 51 }; /* CUdevice_attribute */
    const unsigned of_texels = (unsigned)device_attribute(TEXTURE_ALIGNMENT);
    const unsigned of_pitch = (unsigned)device_attribute(PITCH_ALIGNMENT);
    smk_status status = {0};
    smk_texture *f = &t->form;
    *f = (smk_texture){.channels = channels, .layers = 1, .rank = height ? 2 : 1};
    if (!texel_type_of(format, &f->type) || (of_texels && address % of_texels) ||
        width > UINT32_MAX || height > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    f->size[0] = (uint32_t)width;
    f->size[1] = (uint32_t)height;
    if (smk_texture_check(f, &status)) return CUDA_ERROR_INVALID_VALUE;
    if (height &&
        (pitch < width * smk_texel_bytes(f) || (of_pitch && pitch % of_pitch) || pitch >> 40))
        return CUDA_ERROR_INVALID_VALUE;
    f->row_bytes = height ? pitch : 0;
    t->address = address;
    return memory_reach(address, smk_texture_bytes(f), false, "the texture")
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult read_resource(const CUDA_RESOURCE_DESC *r, texture *t) {
    smk_texel_type type;
    if (r->flags) return CUDA_ERROR_INVALID_VALUE;
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY: return of_array(r->res.array.hArray, t);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        return mipmap_form(r->res.mipmap.hMipmappedArray, &t->form, &t->address);
    case CU_RESOURCE_TYPE_LINEAR: {
        const unsigned channels = r->res.linear.numChannels;
        if (!texel_type_of(r->res.linear.format, &type) || !channels || channels > 4)
            return CUDA_ERROR_INVALID_VALUE;
        const size_t width =
            r->res.linear.sizeInBytes / ((size_t)smk_texel_type_bytes(type) * channels);
        return of_memory(r->res.linear.devPtr, r->res.linear.format, channels, width, 0, 0, t);
    }
    case CU_RESOURCE_TYPE_PITCH2D:
        if (!r->res.pitch2D.height) return CUDA_ERROR_INVALID_VALUE;
        return of_memory(r->res.pitch2D.devPtr, r->res.pitch2D.format, r->res.pitch2D.numChannels,
                         r->res.pitch2D.width, r->res.pitch2D.height, r->res.pitch2D.pitchInBytes,
                         t);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- sampling ---- */

static smk_address_mode address_mode(unsigned mode) {
    static const smk_address_mode modes[] = {SMK_ADDRESS_WRAP, SMK_ADDRESS_CLAMP,
                                             SMK_ADDRESS_MIRROR, SMK_ADDRESS_BORDER};
    return mode < 4 ? modes[mode] : SMK_N_ADDRESS_MODES;
}

static CUresult read_levels(const CUDA_TEXTURE_DESC *d, smk_texture *f) {
    if (!(d->flags & CU_TRSF_NORMALIZED_COORDINATES)) return CUDA_ERROR_INVALID_VALUE;
    if (d->maxAnisotropy > 1) {
        report_unsupported("anisotropic filters of mipmapped arrays");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    f->linear_levels = d->mipmapFilterMode;
    f->level_bias = d->mipmapLevelBias;
    f->min_level = d->minMipmapLevelClamp;
    f->max_level = d->maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

/* Texels in linear memory have no modes: they are read by their index. */
static CUresult read_sampling(const CUDA_TEXTURE_DESC *d, smk_texture *f, bool linear_memory) {
    smk_status status = {0};
    const bool small = smk_texel_type_bytes(f->type) < 4 && smk_texel_type_kind(f->type) != 'f';
    if (d->filterMode > 1 || d->mipmapFilterMode > 1) return CUDA_ERROR_INVALID_VALUE;
    if (d->flags & CU_TRSF_SRGB) {
        report_unsupported("textures of sRGB texels");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    f->normalized_float = small && !(d->flags & CU_TRSF_READ_AS_INTEGER);
    if (linear_memory) return CUDA_SUCCESS;
    const CUresult result = f->levels ? read_levels(d, f) : CUDA_SUCCESS;
    if (result) return result;
    for (int k = 0; k < SMK_TEXTURE_RANK; k++)
        f->address[k] = address_mode(d->addressMode[k]);
    f->linear = d->filterMode;
    f->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
    memcpy(f->border, d->borderColor, sizeof f->border);
    return smk_texture_check(f, &status) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* ---- objects ---- */

static texture *find(uint64_t object, bool surface) {
    texture *t = first;
    while (t && !(t->form.handle == object && t->form.surface == surface))
        t = t->next;
    return t;
}

static CUresult keep(const texture *made, uint64_t *out) {
    static uint64_t last;
    texture *t = handle_new(HANDLE_TEXTURE, sizeof *t);
    if (!t) return CUDA_ERROR_OUT_OF_MEMORY;
    const handle head = t->head;
    *t = *made;
    t->head = head;
    t->form.handle = SMK_TEXTURE_HANDLE | ++last << 4;
    t->form.arg_offset = SMK_NO_ARGUMENT;
    t->next = first;
    t->link = &first;
    if (first) first->link = &t->next;
    first = t;
    *out = t->form.handle;
    return CUDA_SUCCESS;
}

void texture_drop(void *object) {
    texture *t = object;
    *t->link = t->next;
    if (t->next) t->next->link = t->link;
    handle_free(t, HANDLE_TEXTURE);
}

static CUresult create(CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *d,
                       const CUDA_RESOURCE_VIEW_DESC *view) {
    if (!out || !r || !d) return CUDA_ERROR_INVALID_VALUE;
    if (view && view->format) {
        report_unsupported("views of textures");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    texture t = {.resource = *r, .sampling = *d};
    CUresult result = read_resource(r, &t);
    if (!result) result = read_sampling(d, &t.form, r->resType == CU_RESOURCE_TYPE_LINEAR);
    return result ? result : keep(&t, out);
}

EXPORT CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource,
                                  const CUDA_TEXTURE_DESC *sampling,
                                  const CUDA_RESOURCE_VIEW_DESC *view) {
    DRIVER_CALL(cuTexObjectCreate, NEED_CONTEXT, create(out, resource, sampling, view));
}

static CUresult create_surface(CUsurfObject *out, const CUDA_RESOURCE_DESC *r) {
    if (!out || !r || r->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    texture t = {.resource = *r};
    const CUresult result = read_resource(r, &t);
    if (result) return result;
    if (!(t.array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST)) return CUDA_ERROR_INVALID_VALUE;
    t.form.surface = true;
    return keep(&t, out);
}

EXPORT CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource) {
    DRIVER_CALL(cuSurfObjectCreate, NEED_CONTEXT, create_surface(out, resource));
}

static CUresult destroy(uint64_t object, bool surface) {
    texture *t = find(object, surface);
    if (!object) return CUDA_SUCCESS;
    if (!t) return CUDA_ERROR_INVALID_VALUE;
    texture_drop(t);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectDestroy(CUtexObject object) {
    DRIVER_CALL(cuTexObjectDestroy, NEED_CONTEXT, destroy(object, false));
}

EXPORT CUresult cuSurfObjectDestroy(CUsurfObject object) {
    DRIVER_CALL(cuSurfObjectDestroy, NEED_CONTEXT, destroy(object, true));
}

/* A view that a texture does not have is zeros. */
static CUresult describe(uint64_t object, bool surface, CUDA_RESOURCE_DESC *resource,
                         CUDA_TEXTURE_DESC *sampling, CUDA_RESOURCE_VIEW_DESC *view) {
    const texture *t = find(object, surface);
    if (!t || (!resource && !sampling && !view)) return CUDA_ERROR_INVALID_VALUE;
    if (resource) *resource = t->resource;
    if (sampling) *sampling = t->sampling;
    if (view) *view = (CUDA_RESOURCE_VIEW_DESC){0};
    return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject object) {
    DRIVER_CALL(cuTexObjectGetResourceDesc, NEED_CONTEXT, describe(object, false, out, NULL, NULL));
}

EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject object) {
    DRIVER_CALL(cuTexObjectGetTextureDesc, NEED_CONTEXT, describe(object, false, NULL, out, NULL));
}

EXPORT CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject object) {
    DRIVER_CALL(cuTexObjectGetResourceViewDesc, NEED_CONTEXT,
                describe(object, false, NULL, NULL, out));
}

EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject object) {
    DRIVER_CALL(cuSurfObjectGetResourceDesc, NEED_CONTEXT, describe(object, true, out, NULL, NULL));
}
