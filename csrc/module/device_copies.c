/* Plans a copy as a transpose whose output view has its axes swapped. The transpose variant that
 * takes any strides then selects the axes along which to read and to write. For the purpose of the
 * copies see device_copies.h. */
#include "device_copies.h"

typedef struct device_copy {
    smk_buffer array; /* the array's own memory */
    int packed;       /* index of the buffer with the packed copy */
    copy_time time;
    smk_plan plan;
    smk_image image;
    PyObject *image_owner;
    smk_pointer pointers[2];
    smk_job job;
} device_copy;

struct device_copies {
    int n;
    device_copy all[CALL_MAX_COPIES];
};

static const smk_dtype *dtype_of(const smk_variant *variant, npy_intp itemsize) {
    int i = 0;
    while (i + 1 < variant->n_dtypes && variant->dtypes[i].itemsize != itemsize)
        i++;
    return &variant->dtypes[i];
}

/* Copies `from` to `to`. Broadcast batch dimensions (stride 0) are copied once. */
static smk_transpose problem_of(const operand *from, const operand *to) {
    const int n = from->ndim - 2;
    smk_transpose p = {.rows = from->dims[n],
                       .cols = from->dims[n + 1],
                       .batch.n = n,
                       .x = from->matrix,
                       .y = to->matrix};
    p.y.ld = to->matrix.step;
    p.y.step = to->matrix.ld;
    for (int d = 0; d < n; d++) {
        const bool repeated = from->matrix.batch[d] == 0 || to->matrix.batch[d] == 0;
        p.batch.size[d] = repeated && from->dims[d] > 0 ? 1 : from->dims[d];
    }
    return p;
}

static int plan_copy(module_state *state, const operand *from, const operand *to, npy_intp itemsize,
                     device_copy *copy) {
    const smk_variant *variant = smk_variant_find_any_strides(SMK_TRANSPOSE);
    const smk_dtype *dtype = dtype_of(variant, itemsize);
    const smk_transpose problem = problem_of(from, to);
    int64_t values[SMK_MAX_PARAMS];
    smk_status status = {0};
    if (smk_variant_values(variant, dtype->itemsize, NULL, NULL, 0, values, &status) ||
        smk_plan_transpose(variant, dtype, values, &problem, &copy->plan, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return variant_image(state, variant, dtype, values, false, false, &copy->image,
                         &copy->image_owner);
}

int device_copies_add(module_state *state, request *r, const operand *array, const operand *packed,
                      int buffer, copy_time time) {
    if (r->copies == NULL && (r->copies = PyMem_Calloc(1, sizeof *r->copies)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    device_copy *copy = &r->copies->all[r->copies->n++];
    copy->array = array->buffer;
    copy->packed = buffer;
    copy->time = time;
    return plan_copy(state, time == COPY_BEFORE ? array : packed,
                     time == COPY_BEFORE ? packed : array, PyArray_ITEMSIZE(array->array), copy);
}

/* The copy as a job on the buffers of `job`. `array`: the index of the array's own buffer. */
static smk_job *make_job(device_copy *copy, const smk_job *job, int array) {
    const smk_plan *plan = &copy->plan;
    for (size_t i = 0; i < plan->n_pointers; i++) {
        const bool is_x = plan->pointers[i].buffer == 0;
        const int buffer = is_x == (copy->time == COPY_BEFORE) ? array : copy->packed;
        copy->pointers[i] = (smk_pointer){plan->pointers[i].arg_offset, (uint32_t)buffer};
    }
    copy->job = *job;
    copy->job.image = copy->image;
    copy->job.pointers = copy->pointers;
    copy->job.n_pointers = plan->n_pointers;
    copy->job.args_bytes = plan->args_bytes;
    copy->job.parameters = plan->parameters;
    copy->job.n_parameters = plan->n_parameters;
    copy->job.tensor_maps = NULL;
    copy->job.n_tensor_maps = 0;
    copy->job.launches = plan->launches;
    copy->job.n_launches = plan->n_launches;
    return &copy->job;
}

smk_job *device_copies_link(request *r, smk_job *job, smk_buffer *buffers) {
    struct device_copies *copies = r->copies;
    const int n = copies ? copies->n : 0, at = (int)job->n_buffers;
    smk_job *first = job;
    for (int i = 0; i < n; i++)
        buffers[job->n_buffers++] = copies->all[i].array;
    for (int i = n - 1; i >= 0; i--) {
        device_copy *copy = &copies->all[i];
        if (copy->plan.n_launches == 0) continue;
        smk_job *own = make_job(copy, job, at + i);
        own->next = copy->time == COPY_BEFORE ? first : NULL;
        if (copy->time == COPY_BEFORE)
            first = own;
        else
            job->next = own;
    }
    return first;
}

void device_copies_clear(request *r) {
    for (int i = 0; r->copies && i < r->copies->n; i++) {
        smk_plan_free(&r->copies->all[i].plan);
        Py_XDECREF(r->copies->all[i].image_owner);
    }
    PyMem_Free(r->copies);
    r->copies = NULL;
}
