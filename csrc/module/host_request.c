/* A request on arrays in host memory as a flow of blocks, into the result's own memory. */
#include "../pipeline/pipeline.h"
#include "../cuda/gpu.h"
#include "request.h"
#include "result_memory.h"

/* Where the result's elements go. */
typedef struct target {
    PyArrayObject *out;   /* a view of the caller's; NULL: none */
    PyArrayObject *array; /* new, or that view */
    bool is_out;
} target;

static bool overlaps(PyArrayObject *out, const operand *input) {
    const char *begin = PyArray_BYTES(out), *other = input->buffer.host;
    return begin < other + input->buffer.bytes && other < begin + PyArray_NBYTES(out);
}

/* Blocks of the result are written while others are still computed, so out must be apart from the inputs. */
static bool can_be_target(const request *r, PyArrayObject *out) {
    if (!PyArray_CHKFLAGS(out, NPY_ARRAY_CARRAY) || PyArray_ISBYTESWAPPED(out)) {
        return false;
    }
    for (int i = 0; i < r->n_inputs; i++) {
        if (overlaps(out, &r->inputs[i])) {
            return false;
        }
    }
    return true;
}

static int choose_target(request *r, bool reads_result, target *t) {
    if (r->asked->out) {
        t->out = request_hold_out(r);
        if (t->out == NULL) {
            return -1;
        }
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

/* What a flow may use of the device's memory: what the caller says, or most of what is free, which is only
 * asked where it matters. */
static int memory_of(const module_state *state, const request *r, int ordinal, size_t wanted,
                     size_t *memory) {
    enum { PLENTY = 16 };
    const size_t most = r->asked->max_memory;
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
    if (wanted > info.memory_bytes / PLENTY && gpu_memory(ordinal, memory, &status)) {
        raise_status(state, &status);
        return -1;
    }
    if (most && most < *memory) {
        *memory = most;
    }
    return 0;
}

/* ---- a problem's parts, one a GPU ---- */

typedef struct parts {
    int n;
    int ordinals[CALL_MAX_DEVICES];
    smk_pipeline_plan plans[CALL_MAX_DEVICES];
    smk_pipeline flows[CALL_MAX_DEVICES];
} parts;

/* Moves the problem to its part i of n, and says how many there are: of a batch, of rows, or of columns,
 * whichever are more. */
static int take_part(smk_gemm *p, smk_pipeline_query *q, int i, int n) {
    enum { UNIT = 128 }; /* rows of the largest tiles */
    const bool batch = p->batch.n > 0, rows = p->M >= p->N;
    int64_t *size = batch ? &p->batch.size[0] : rows ? &p->M : &p->N;
    const int64_t unit = batch ? 1 : UNIT, units = (*size + unit - 1) / unit;
    const int64_t share = (units + n - 1) / n * unit;
    const int64_t each = batch ? share : smk_pipeline_part(q->row, p->M, p->N, *size, share);
    const int64_t first = each * i;
    const int64_t tasks[3] = {batch  ? p->a.batch[0]
                              : rows ? p->a.ld
                                     : 0,
                              batch  ? p->b.batch[0]
                              : rows ? 0
                                     : p->b.step,
                              batch  ? p->c.batch[0]
                              : rows ? p->c.ld
                                     : 1};
    const int count = (int)((*size + each - 1) / each);
    for (int o = 0; o < 3; o++) {
        q->host[o] += first * tasks[o] * q->dtype->itemsize;
    }
    *size = *size - first < each ? *size - first : each;
    return count;
}

static int plan_part(module_state *state, const request *r, const smk_pipeline_query *whole, int i,
                     parts *all) {
    smk_status status = {0};
    smk_pipeline_query question = *whole;
    smk_code code;
    if (r->asked->op == SMK_TRANSPOSE) {
        all->n = 1;
        code = smk_pipeline_plan_transpose(&question, &r->transpose, &all->plans[i], &status);
    } else {
        smk_gemm part = r->gemm;
        question.split = r->plan.split;
        question.seconds = all->n > 1 ? 0 : r->seconds; /* else operands come by several buses */
        if (all->n > 1) {
            all->n = take_part(&part, &question, i, r->asked->n_devices);
        }
        code = smk_pipeline_plan_gemm(&question, &part, &all->plans[i], &status);
    }
    if (code) {
        raise_status(state, &status);
    }
    return code ? -1 : 0;
}

static int plan_parts(module_state *state, const request *r, PyArrayObject *result, parts *all) {
    smk_pipeline_query question = {.row = r->row, .dtype = r->dtype, .values = r->values};
    size_t wanted = (size_t)PyArray_NBYTES(result);
    for (int i = 0; i < r->n_inputs; i++) {
        question.host[i] = (char *)r->inputs[i].buffer.host + r->inputs[i].matrix.offset;
        wanted += r->inputs[i].buffer.bytes;
    }
    question.host[r->n_inputs] = PyArray_BYTES(result);
    all->n = r->asked->n_devices ? r->asked->n_devices : 1;
    for (int i = 0; i < all->n; i++) {
        all->ordinals[i] = r->asked->n_devices ? r->asked->devices[i] : r->on.ordinal;
        if (memory_of(state, r, all->ordinals[i], wanted, &question.memory) ||
            plan_part(state, r, &question, i, all)) {
            return -1;
        }
        const smk_pipeline_plan *plan = &all->plans[i];
        all->flows[i] = (smk_pipeline){.buffers = plan->buffers,
                                       .n_buffers = SMK_PIPELINE_BUFFERS,
                                       .tasks = plan->tasks,
                                       .n_tasks = plan->n_tasks,
                                       .resident = plan->resident,
                                       .stream = r->stream};
    }
    return 0;
}

PyObject *request_run_pipeline(module_state *state, request *r) {
    const bool reads_result = r->asked->op == SMK_GEMM && r->asked->beta != 0.0;
    target t = {0};
    PyObject *image_owner = NULL, *result = NULL;
    smk_image image;
    parts *all = PyMem_Calloc(1, sizeof *all);

    if (all == NULL) {
        return PyErr_NoMemory();
    }
    if (choose_target(r, reads_result, &t)) {
        goto done;
    }
    if (PyArray_SIZE(t.array) > 0) {
        if (plan_parts(state, r, t.array, all) ||
            image_of_row(state, r->row, r->dtype, r->values, r->on.emulated, &image,
                         &image_owner)) {
            goto done;
        }
        for (int i = 0; i < all->n; i++) {
            all->flows[i].image = image;
        }
        if (device_run_pipelines(state, r->on.emulated ? NULL : all->ordinals, all->flows, all->n,
                                 r->asked->progress)) {
            goto done;
        }
        Py_BEGIN_ALLOW_THREADS result_memory_tidy();
        Py_END_ALLOW_THREADS
    }
    if (t.is_out) {
        result = Py_NewRef(r->asked->out);
    } else if (r->asked->out == NULL) {
        result = PyArray_Return(t.array); /* steals */
        t.array = NULL;
    } else if (PyArray_CopyInto(t.out, t.array) == 0) {
        result = Py_NewRef(r->asked->out);
    }

done:
    for (int i = 0; i < CALL_MAX_DEVICES; i++) {
        smk_pipeline_plan_free(&all->plans[i]);
    }
    PyMem_Free(all);
    Py_XDECREF(image_owner);
    Py_XDECREF(t.array);
    Py_XDECREF(t.out);
    return result;
}
