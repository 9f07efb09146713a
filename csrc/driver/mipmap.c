/* Mipmapped arrays. All levels are one allocation, as smk_texture has them, and each level is an
 * array in it. */
#include <string.h>

#include "work.h"

enum { MAX_LEVELS = 32 };

struct mipmap {
    handle head;
    smk_texture form;
    CUdeviceptr address;
    CUarray levels[MAX_LEVELS];
};

static bool is_too_large(const smk_texture *t) {
    enum { WIDTH_2D = 73, HEIGHT_2D, WIDTH_1D = 77 };          /* CUdevice_attribute */
    if (t->layered || t->cubemap || t->rank > 2) return false; /* as without levels */
    return t->rank == 1 ? t->size[0] > (unsigned)device_attribute(WIDTH_1D)
                        : t->size[0] > (unsigned)device_attribute(WIDTH_2D) ||
                              t->size[1] > (unsigned)device_attribute(HEIGHT_2D);
}

static void free_handles(struct mipmap *m) {
    for (uint32_t k = 0; k < MAX_LEVELS && m->levels[k]; k++)
        handle_free(m->levels[k], HANDLE_ARRAY);
    handle_free(m, HANDLE_MIPMAP);
}

void mipmap_drop(void *object) {
    free_handles(object);
}

static size_t halved(size_t size, uint32_t level) {
    return size >> level || !size ? size >> level : 1;
}

static CUresult add_level(struct mipmap *m, const CUDA_ARRAY3D_DESCRIPTOR *d, uint32_t level) {
    uint64_t offset;
    CUarray a = handle_new(HANDLE_ARRAY, sizeof *a);
    if (!a) return CUDA_ERROR_OUT_OF_MEMORY;
    a->form = smk_texture_level(&m->form, level, &offset);
    a->form.levels = a->form.normalized = 0; /* as any other array */
    a->address = m->address + offset;
    a->mipmap = m;
    a->descriptor = *d;
    a->descriptor.Width = halved(d->Width, level);
    a->descriptor.Height = halved(d->Height, level);
    if (a->form.rank > 2) a->descriptor.Depth = halved(d->Depth, level);
    m->levels[level] = a;
    return CUDA_SUCCESS;
}

static CUresult create(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned n) {
    smk_texture form;
    CUdeviceptr address;
    if (!out || !d) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = array_form(d, &form);
    if (!result && is_too_large(&form)) result = CUDA_ERROR_INVALID_VALUE;
    if (!result) result = capture_check_unsafe();
    if (result) return result;
    const uint32_t most = smk_texture_max_levels(&form);
    form.levels = n < 1 ? 1 : n > most ? most : n;
    form.normalized = true;
    result = memory_new(MEMORY_ARRAY, smk_texture_bytes(&form), 0, &address);
    if (result) return result;
    struct mipmap *m = handle_new(HANDLE_MIPMAP, sizeof *m);
    if (m) {
        m->form = form;
        m->address = address;
    }
    result = m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t k = 0; !result && k < form.levels; k++)
        result = add_level(m, d, k);
    if (result) {
        memory_drop_window(address);
        if (m) free_handles(m);
        return result;
    }
    *out = m;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d,
                                       unsigned levels) {
    DRIVER_CALL(cuMipmappedArrayCreate, NEED_CONTEXT, create(out, d, levels));
}

static CUresult get_level(CUarray *out, CUmipmappedArray m, unsigned level) {
    if (!handle_is(m, HANDLE_MIPMAP)) return CUDA_ERROR_INVALID_HANDLE;
    if (!out || level >= m->form.levels) return CUDA_ERROR_INVALID_VALUE;
    *out = m->levels[level];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray m, unsigned level) {
    DRIVER_CALL(cuMipmappedArrayGetLevel, NEED_CONTEXT, get_level(out, m, level));
}

static CUresult destroy(CUmipmappedArray m) {
    if (!handle_is(m, HANDLE_MIPMAP)) return CUDA_ERROR_INVALID_HANDLE;
    memory_drop_window(m->address);
    free_handles(m);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray m) {
    DRIVER_CALL(cuMipmappedArrayDestroy, NEED_CONTEXT, destroy(m));
}

static CUresult requirements(size_t *out, CUmipmappedArray m, CUdevice device) {
    if (!handle_is(m, HANDLE_MIPMAP)) return CUDA_ERROR_INVALID_HANDLE;
    return array_requirements(out, &m->form, device);
}

EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(size_t *out, CUmipmappedArray m,
                                                      CUdevice device) {
    DRIVER_CALL(cuMipmappedArrayGetMemoryRequirements, NEED_CONTEXT, requirements(out, m, device));
}

CUresult mipmap_form(CUmipmappedArray m, smk_texture *form, CUdeviceptr *address) {
    if (!m) return CUDA_ERROR_INVALID_VALUE;
    if (!handle_is(m, HANDLE_MIPMAP)) return CUDA_ERROR_INVALID_HANDLE;
    *form = m->form;
    *address = m->address;
    return CUDA_SUCCESS;
}
