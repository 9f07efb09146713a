/* gemm and transpose of host arrays: host-device pipelines that write into the result's memory. */
#include "../pipeline/pipeline.h"
#include "../cuda/gpu.h"
#include "request.h"
#include "result_memory.h"

/* The array that the pipelines write. */
typedef struct target {
    PyArrayObject *out;   /* a view of the caller's `out`; NULL: none */
    PyArrayObject *array; /* `out`, or a new array */
    bool is_out;
} target;

static bool overlaps(PyArrayObject *out, const operand *input) {
    const char *begin = PyArray_BYTES(out), *other = input->buffer.host;
    return begin < other + input->buffer.bytes && other < begin + PyArray_NBYTES(out);
}

/* Blocks of the result are written while others are computed, so `out` must not overlap inputs. */
static bool can_be_target(const request *r, PyArrayObject *out) {
    if (!PyArray_CHKFLAGS(out, NPY_ARRAY_CARRAY) || PyArray_ISBYTESWAPPED(out) ||
        !PyArray_EquivTypes(PyArray_DESCR(out), r->descr)) {
        return false;
    }
    for (int i = 0; i < r->n_inputs; i++)
        if (overlaps(out, &r->inputs[i])) return false;
    return true;
}

static int choose_target(request *r, bool reads_result, target *t) {
    if (r->call->out) {
        t->out = request_hold_out(r);
        if (t->out == NULL) return -1;
        if (can_be_target(r, t->out)) {
            t->array = (PyArrayObject *)Py_NewRef(t->out);
            t->is_out = true;
            return 0;
        }
    }
    Py_INCREF(r->descr);
    t->array = result_memory_array(r->descr, r->ndim, r->dims);
    return t->array == NULL || (reads_result && PyArray_CopyInto(t->array, t->out) < 0) ? -1 : 0;
}

/* *memory: bytes of device memory that a pipeline may use, at most max_memory. If the arrays take
 * more than 1/16 of all memory, most of the free memory; smaller ones need no query. */
static int memory_of(const module_state *state, const request *r, int ordinal, size_t wanted,
                     size_t *memory) {
    enum { LARGE_PART = 16 };
    const size_t most = r->call->max_memory;
    smk_status status = {0};
    gpu_info info;
    if (r->on.emulated) {
        *memory = most;
        return 0;
    }
    if (gpu_describe(ordinal, &info, &status)) {
        raise_status(state, &status);
        return -1;
    }
    *memory = info.memory_bytes;
    if (wanted > info.memory_bytes / LARGE_PART && gpu_memory(ordinal, memory, &status)) {
        raise_status(state, &status);
        return -1;
    }
    if (most && most < *memory) *memory = most;
    return 0;
}

/* ---- parts of a problem, one per GPU ---- */

typedef struct parts {
    int n;
    int ordinals[CALL_MAX_DEVICES];
    smk_pipeline_plan plans[CALL_MAX_DEVICES];
    smk_pipeline pipelines[CALL_MAX_DEVICES];
} parts;

/* Reduces the problem to part i of n. A batch is split along its first dimension, a single product
 * along M or N, whichever is larger. Returns the number of parts, at most n. */
static int take_part(smk_gemm *p, smk_pipeline_query *q, int i, int n) {
    enum { TILE_ROWS = 128 }; /* of the largest tiles */
    const bool batch = p->batch.n > 0, rows = p->M >= p->N;
    int64_t *size = batch ? &p->batch.size[0] : rows ? &p->M : &p->N;
    const int64_t unit = batch ? 1 : TILE_ROWS, units = (*size + unit - 1) / unit;
    const int64_t even = (units + n - 1) / n * unit;
    const int64_t each = batch ? even : smk_pipeline_part(q->variant, p->M, p->N, *size, even);
    const int64_t first = each * i;
    const int64_t batch_strides[3] = {p->a.batch[0], p->b.batch[0], p->c.batch[0]};
    const int64_t row_strides[3] = {p->a.ld, 0, p->c.ld};
    const int64_t column_strides[3] = {0, p->b.step, 1};
    const int64_t *strides = batch ? batch_strides : rows ? row_strides : column_strides;
    const int count = (int)((*size + each - 1) / each);
    for (int o = 0; o < 3; o++)
        q->host[o] += first * strides[o] * q->dtype->itemsize;
    *size = *size - first < each ? *size - first : each;
    return count;
}

static int plan_part(module_state *state, const request *r, const smk_pipeline_query *whole, int i,
                     parts *all) {
    smk_status status = {0};
    smk_pipeline_query query = *whole;
    smk_code code;
    if (r->call->op == SMK_TRANSPOSE) {
        all->n = 1;
        code = smk_pipeline_plan_transpose(&query, &r->transpose, &all->plans[i], &status);
    } else {
        smk_gemm part = r->gemm;
        query.split = r->plan.split;
        query.seconds = all->n > 1 ? 0 : r->seconds; /* several buses: not predicted */
        if (all->n > 1) all->n = take_part(&part, &query, i, r->call->n_devices);
        code = smk_pipeline_plan_gemm(&query, &part, &all->plans[i], &status);
    }
    if (code) raise_status(state, &status);
    return code ? -1 : 0;
}

static int plan_parts(module_state *state, const request *r, PyArrayObject *result, parts *all) {
    smk_pipeline_query query = {.variant = r->variant, .dtype = r->dtype, .values = r->values};
    size_t wanted = (size_t)PyArray_NBYTES(result);
    for (int i = 0; i < r->n_inputs; i++) {
        query.host[i] = (char *)r->inputs[i].buffer.host + r->inputs[i].matrix.offset;
        wanted += r->inputs[i].buffer.bytes;
    }
    query.host[r->n_inputs] = PyArray_BYTES(result);
    all->n = r->call->n_devices ? r->call->n_devices : 1;
    for (int i = 0; i < all->n; i++) {
        all->ordinals[i] = r->call->n_devices ? r->call->devices[i] : r->on.ordinal;
        if (memory_of(state, r, all->ordinals[i], wanted, &query.memory) ||
            plan_part(state, r, &query, i, all)) {
            return -1;
        }
        const smk_pipeline_plan *plan = &all->plans[i];
        all->pipelines[i] = (smk_pipeline){.buffers = plan->buffers,
                                           .n_buffers = SMK_PIPELINE_BUFFERS,
                                           .tasks = plan->tasks,
                                           .n_tasks = plan->n_tasks,
                                           .resident = plan->resident,
                                           .stream = r->stream};
    }
    return 0;
}

PyObject *request_run_pipeline(module_state *state, request *r) {
    const bool reads_result = r->call->op == SMK_GEMM && r->call->beta != 0.0;
    target t = {0};
    PyObject *image_owner = NULL, *result = NULL;
    smk_image image;
    parts *all = PyMem_Calloc(1, sizeof *all);

    if (all == NULL) return PyErr_NoMemory();
    if (choose_target(r, reads_result, &t)) goto done;
    if (PyArray_SIZE(t.array) > 0) {
        if (plan_parts(state, r, t.array, all) ||
            variant_image(state, r->variant, r->dtype, r->values, r->on.emulated, r->clusters,
                          &image, &image_owner)) {
            goto done;
        }
        for (int i = 0; i < all->n; i++)
            all->pipelines[i].image = image;
        if (device_run_pipelines(state, r->on.emulated ? NULL : all->ordinals, all->pipelines,
                                 all->n, r->call->progress)) {
            goto done;
        }
        Py_BEGIN_ALLOW_THREADS result_memory_tidy();
        Py_END_ALLOW_THREADS
    }
    if (t.is_out) {
        result = Py_NewRef(r->call->out);
    } else if (r->call->out == NULL) {
        result = PyArray_Return(t.array); /* steals */
        t.array = NULL;
    } else if (PyArray_CopyInto(t.out, t.array) == 0) {
        result = Py_NewRef(r->call->out);
    }

done:
    for (int i = 0; i < CALL_MAX_DEVICES; i++)
        smk_pipeline_plan_free(&all->plans[i]);
    PyMem_Free(all);
    Py_XDECREF(image_owner);
    Py_XDECREF(t.array);
    Py_XDECREF(t.out);
    return result;
}
