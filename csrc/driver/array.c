/* Arrays: memory for textures and surfaces. */
#include <string.h>

#include "work.h"

static const struct {
    unsigned format;
    smk_texel_type type;
} formats[] = {{0x01, SMK_TEXEL_UINT8},   {0x02, SMK_TEXEL_UINT16}, {0x03, SMK_TEXEL_UINT32},
               {0x08, SMK_TEXEL_INT8},    {0x09, SMK_TEXEL_INT16},  {0x0a, SMK_TEXEL_INT32},
               {0x10, SMK_TEXEL_FLOAT16}, {0x20, SMK_TEXEL_FLOAT32}};

bool texel_type_of(unsigned format, smk_texel_type *out) {
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (formats[k].format == format) {
            *out = formats[k].type;
            return true;
        }
    return false;
}

/* A format that is not one of CUDA's, or one that only graphics has. */
static CUresult wrong_format(unsigned format) {
    enum { FIRST_OF_GRAPHICS = 0x50 };
    if (format < FIRST_OF_GRAPHICS) return CUDA_ERROR_INVALID_VALUE;
    report_unsupported("arrays of planes and of compressed or normalized texels");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Depth is the number of layers, of faces, or of faces of all layers. */
CUresult array_form(const CUDA_ARRAY3D_DESCRIPTOR *d, smk_texture *out) {
    enum { ALL_FLAGS = 0x1ff, SPARSE = 0x40, DEFERRED = 0x80 };
    smk_texture t = {.channels = d->NumChannels, .layers = 1};
    smk_status status = {0};
    if (d->Width > UINT32_MAX || d->Height > UINT32_MAX || d->Depth > UINT32_MAX || !d->Width ||
        d->Flags > ALL_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->Flags & (SPARSE | DEFERRED)) {
        report_unsupported("sparse and deferred arrays");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!texel_type_of(d->Format, &t.type)) return wrong_format(d->Format);
    t.layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    t.cubemap = d->Flags & CUDA_ARRAY3D_CUBEMAP;
    const bool flat = t.layered || t.cubemap;
    t.rank = d->Depth && !flat ? 3 : d->Height ? 2 : 1;
    t.size[0] = (uint32_t)d->Width;
    t.size[1] = (uint32_t)d->Height;
    t.size[2] = (uint32_t)d->Depth;
    if (flat && (!d->Depth || (t.cubemap && d->Depth % SMK_CUBE_FACES)))
        return CUDA_ERROR_INVALID_VALUE;
    if (flat) t.layers = (uint32_t)d->Depth / (t.cubemap ? SMK_CUBE_FACES : 1);
    *out = t;
    return smk_texture_check(&t, &status) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    smk_texture form;
    CUdeviceptr address;
    if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = array_form(d, &form);
    if (!result) result = capture_check_unsafe();
    if (!result) result = memory_new(MEMORY_ARRAY, smk_texture_bytes(&form), 0, &address);
    if (result) return result;
    CUarray a = handle_new(HANDLE_ARRAY, sizeof *a);
    if (!a) {
        memory_drop_window(address);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    a->descriptor = *d;
    a->form = form;
    a->address = address;
    *out = a;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    DRIVER_CALL(cuArray3DCreate, NEED_CONTEXT, create(out, d));
}

static CUresult create_flat(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d) {
    if (!d) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR same = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
    return create(out, &same);
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d) {
    DRIVER_CALL(cuArrayCreate, NEED_CONTEXT, create_flat(out, d));
}

static CUresult destroy(CUarray a) {
    if (!handle_is(a, HANDLE_ARRAY) || a->mipmap) return CUDA_ERROR_INVALID_HANDLE;
    memory_drop_window(a->address);
    handle_free(a, HANDLE_ARRAY);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArrayDestroy(CUarray a) {
    DRIVER_CALL(cuArrayDestroy, NEED_CONTEXT, destroy(a));
}

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray a) {
    if (!handle_is(a, HANDLE_ARRAY)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = a->descriptor;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray a) {
    DRIVER_CALL(cuArray3DGetDescriptor, NEED_CONTEXT, describe(out, a));
}

static CUresult describe_flat(CUDA_ARRAY_DESCRIPTOR *out, CUarray a) {
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = describe(&d, a);
    if (!result) *out = (CUDA_ARRAY_DESCRIPTOR){d.Width, d.Height, d.Format, d.NumChannels};
    return result;
}

EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray a) {
    DRIVER_CALL(cuArrayGetDescriptor, NEED_CONTEXT, describe_flat(out, a));
}

/* CUDA_ARRAY_MEMORY_REQUIREMENTS: bytes, alignment, and 4 reserved words */
CUresult array_requirements(size_t *out, const smk_texture *form, CUdevice device) {
    enum { ALIGNMENT = 65536 };
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    out[0] = (smk_texture_bytes(form) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    out[1] = ALIGNMENT;
    return CUDA_SUCCESS;
}

static CUresult requirements(size_t *out, CUarray a, CUdevice device) {
    if (!handle_is(a, HANDLE_ARRAY)) return CUDA_ERROR_INVALID_HANDLE;
    return array_requirements(out, &a->form, device);
}

EXPORT CUresult cuArrayGetMemoryRequirements(size_t *out, CUarray a, CUdevice device) {
    DRIVER_CALL(cuArrayGetMemoryRequirements, NEED_CONTEXT, requirements(out, a, device));
}

static CUresult linear_width(size_t *out, unsigned format, unsigned channels, CUdevice device) {
    enum { MAX_TEXELS = 1 << 28 };
    smk_texel_type type;
    if (device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out || !texel_type_of(format, &type) || (channels != 1 && channels != 2 && channels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    *out = MAX_TEXELS;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *out, unsigned format, unsigned channels,
                                                   CUdevice device) {
    DRIVER_CALL(cuDeviceGetTexture1DLinearMaxWidth, NEED_INIT,
                linear_width(out, format, channels, device));
}
