/* The fake driver's arrays, texture objects and surface objects. Its kernels copy texels. */
#include "fake_internal.h"

struct CUarray_st {
    char *texels;
    size_t row, height, depth;
    unsigned flags;
    int users; /* objects */
};

typedef struct object {
    CUarray array; /* NULL: linear memory */
    char *texels;
    size_t bytes;
    bool surface;
    struct object *next;
} object;

static object *objects;

static size_t texel_bytes(CUarray_format format, unsigned channels) {
    const unsigned width = format == CU_AD_FORMAT_HALF    ? 2
                           : format == CU_AD_FORMAT_FLOAT ? 4
                                                          : 1u << ((format & 7) - 1) % 3;
    return (format & 8 ? 1u << (format - CU_AD_FORMAT_SIGNED_INT8) : width) * channels;
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d) {
    CALL(cuArray3DCreate);
    const bool cubemap = d->Flags & CUDA_ARRAY3D_CUBEMAP, layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    const bool odd = d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4;
    if (!d->Width || odd || (layered && !d->Depth) || (cubemap && d->Depth % 6) ||
        (cubemap && d->Width != d->Height) || (!layered && d->Depth && !d->Height))
        return fail(INVALID_VALUE);
    CUarray made = calloc(1, sizeof *made);
    *made = (struct CUarray_st){.row = d->Width * texel_bytes(d->Format, d->NumChannels),
                                .height = d->Height ? d->Height : 1,
                                .depth = d->Depth ? d->Depth : 1,
                                .flags = d->Flags};
    made->texels = malloc(made->row * made->height * made->depth);
    memset(made->texels, 0xff, made->row * made->height * made->depth);
    *array = made;
    fake_cuda.arrays++;
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array) {
    CALL(cuArrayDestroy);
    if (array->users) return fail(INVALID_VALUE);
    free(array->texels);
    free(array);
    fake_cuda.arrays--;
    return CUDA_SUCCESS;
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *copy, CUstream stream) {
    CALL(cuMemcpy3DAsync);
    const bool in = copy->dst.kind == CU_MEMORYTYPE_ARRAY;
    const copy_side *one = in ? &copy->dst : &copy->src, *memory = in ? &copy->src : &copy->dst;
    const CUarray array = one->array;
    const size_t bytes = copy->WidthInBytes * copy->Height * copy->Depth;
    if (!stream || one->kind != CU_MEMORYTYPE_ARRAY || memory->kind != CU_MEMORYTYPE_DEVICE ||
        copy->WidthInBytes != array->row || copy->Height != array->height ||
        copy->Depth != array->depth || memory->pitch != array->row ||
        memory->height != array->height || !fake_is_allocated(memory->device, bytes))
        return fail(INVALID_VALUE);
    void *texels = (void *)(uintptr_t)memory->device;
    memcpy(in ? array->texels : texels, in ? texels : array->texels, bytes);
    return CUDA_SUCCESS;
}

static CUresult make_object(unsigned long long *out, const CUDA_RESOURCE_DESC *resource,
                            bool surface) {
    object *made = calloc(1, sizeof *made);
    *made = (object){.surface = surface, .next = objects};
    if (resource->resType == CU_RESOURCE_TYPE_ARRAY) {
        made->array = resource->res.array;
        made->texels = made->array->texels;
        made->bytes = made->array->row * made->array->height * made->array->depth;
        made->array->users++;
    } else {
        made->texels = (char *)(uintptr_t)resource->res.linear.address;
        made->bytes = resource->res.linear.bytes;
    }
    objects = made;
    *out = (uintptr_t)made;
    fake_cuda.objects++;
    return CUDA_SUCCESS;
}

static object **find_object(unsigned long long handle, bool surface) {
    object **link = &objects;
    while (*link && ((uintptr_t)*link != handle || (*link)->surface != surface))
        link = &(*link)->next;
    return link;
}

static CUresult destroy_object(unsigned long long handle, bool surface) {
    object **link = find_object(handle, surface), *gone = *link;
    if (!gone) return fail(INVALID_VALUE);
    *link = gone->next;
    if (gone->array) gone->array->users--;
    free(gone);
    fake_cuda.objects--;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectCreate(CUtexObject *made, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *texture, const void *view) {
    CALL(cuTexObjectCreate);
    const bool linear = resource->resType == CU_RESOURCE_TYPE_LINEAR;
    if (view || !texture || resource->flags ||
        (linear && !fake_is_allocated(resource->res.linear.address, resource->res.linear.bytes)))
        return fail(INVALID_VALUE);
    return make_object(made, resource, false);
}

CUresult cuTexObjectDestroy(CUtexObject gone) {
    CALL(cuTexObjectDestroy);
    return destroy_object(gone, false);
}

CUresult cuSurfObjectCreate(CUsurfObject *made, const CUDA_RESOURCE_DESC *resource) {
    CALL(cuSurfObjectCreate);
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY ||
        !(resource->res.array->flags & CUDA_ARRAY3D_SURFACE_LDST))
        return fail(INVALID_VALUE);
    return make_object(made, resource, true);
}

CUresult cuSurfObjectDestroy(CUsurfObject gone) {
    CALL(cuSurfObjectDestroy);
    return destroy_object(gone, true);
}

/* ---- references: every module has a texture "image" and a surface "result" ---- */

static CUarray image, result_array;

CUresult cuModuleGetTexRef(CUtexref *reference, CUmodule module, const char *name) {
    CALL(cuModuleGetTexRef);
    *reference = (CUtexref)&image;
    return !module || strcmp(name, "image") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuModuleGetSurfRef(CUsurfref *reference, CUmodule module, const char *name) {
    CALL(cuModuleGetSurfRef);
    *reference = (CUsurfref)&result_array;
    return !module || strcmp(name, "result") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned flags) {
    CALL(cuTexRefSetArray);
    image = array;
    return fail(reference == (CUtexref)&image && flags == 1 ? 0 : INVALID_VALUE);
}

CUresult cuTexRefSetAddress(size_t *offset, CUtexref reference, CUdeviceptr address, size_t bytes) {
    CALL(cuTexRefSetAddress);
    *offset = 0;
    return fail(reference && fake_is_allocated(address, bytes) ? 0 : INVALID_VALUE);
}

CUresult cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels) {
    CALL(cuTexRefSetFormat);
    return fail(reference && format && channels ? 0 : INVALID_VALUE);
}

CUresult cuTexRefSetAddressMode(CUtexref reference, int dimension, CUaddress_mode mode) {
    CALL(cuTexRefSetAddressMode);
    return fail(reference && dimension < 3 && mode <= CU_TR_ADDRESS_MODE_BORDER ? 0
                                                                                : INVALID_VALUE);
}

CUresult cuTexRefSetFilterMode(CUtexref reference, int mode) {
    CALL(cuTexRefSetFilterMode);
    return fail(reference && mode <= 1 ? 0 : INVALID_VALUE);
}

CUresult cuTexRefSetFlags(CUtexref reference, unsigned flags) {
    CALL(cuTexRefSetFlags);
    return fail(reference && flags <= 3 ? 0 : INVALID_VALUE);
}

CUresult cuTexRefSetBorderColor(CUtexref reference, float *color) {
    CALL(cuTexRefSetBorderColor);
    return fail(reference && color ? 0 : INVALID_VALUE);
}

CUresult cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned flags) {
    CALL(cuSurfRefSetArray);
    result_array = array;
    return fail(reference == (CUsurfref)&result_array && !flags ? 0 : INVALID_VALUE);
}

int fake_sample_references(void **parameters, const unsigned grid[3]) {
    (void)parameters, (void)grid;
    if (!image || !result_array) return ILLEGAL_ADDRESS;
    memcpy(result_array->texels, image->texels, image->row * image->height * image->depth);
    return CUDA_SUCCESS;
}

/* ---- kernels ---- */

/* Texels of the texture to the surface. */
static int copy_texels(const uint64_t handles[2]) {
    const object *from = *find_object(handles[0], false), *to = *find_object(handles[1], true);
    if (!from || !to) return ILLEGAL_ADDRESS;
    memcpy(to->texels, from->texels, from->bytes < to->bytes ? from->bytes : to->bytes);
    return CUDA_SUCCESS;
}

int fake_sample(void **parameters, const unsigned grid[3]) {
    (void)grid;
    const uint64_t handles[2] = {*(uint64_t *)parameters[0], *(uint64_t *)parameters[1]};
    return copy_texels(handles);
}

int fake_sample_struct(void **parameters, const unsigned grid[3]) {
    (void)grid;
    return copy_texels(parameters[0]);
}

int fake_sample_stored(void **parameters, const unsigned grid[3]) {
    (void)grid;
    const uint64_t address = *(uint64_t *)parameters[0];
    if (!fake_is_allocated(address, 16)) return ILLEGAL_ADDRESS;
    return copy_texels((const uint64_t *)(uintptr_t)address);
}
