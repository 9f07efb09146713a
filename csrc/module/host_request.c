/* A request on arrays in host memory and device "cuda": a flow of blocks, into the result's own memory. */
#include "../core/plan_flow.h"
#include "../cuda/gpu.h"
#include "request.h"

/* Where the result's elements go. */
typedef struct target {
    PyArrayObject *array; /* new, or the caller's out */
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

static int choose_target(const request *r, bool reads_result, target *t) {
    PyArrayObject *out = (PyArrayObject *)r->asked->out;
    if (out && can_be_target(r, out)) {
        *t = (target){(PyArrayObject *)Py_NewRef(out), true};
        return 0;
    }
    Py_INCREF(r->descr);
    t->array = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, r->descr, r->ndim, r->dims,
                                                     NULL, NULL, 0, NULL);
    return t->array == NULL || (reads_result && PyArray_CopyInto(t->array, out) < 0) ? -1 : 0;
}

/* What a flow may use of the device's memory: what the caller says, or most of what is free, which is only
 * asked where it matters. */
static int memory_of(const module_state *state, const request *r, size_t wanted, size_t *memory) {
    enum { PLENTY = 16 };
    smk_status status = {0};
    gpu_info info;
    if (gpu_describe(r->on.ordinal, &info, &status)) {
        raise_status(state, &status);
        return -1;
    }
    *memory = info.memory_bytes;
    if (wanted > info.memory_bytes / PLENTY && gpu_memory(r->on.ordinal, memory, &status)) {
        raise_status(state, &status);
        return -1;
    }
    if (r->asked->max_memory && r->asked->max_memory < *memory) {
        *memory = r->asked->max_memory;
    }
    return 0;
}

static int plan_flow(module_state *state, const request *r, PyArrayObject *result,
                     smk_flow_plan *plan) {
    const bool product = r->asked->op == SMK_GEMM;
    smk_flow_question question = {.row = r->row, .dtype = r->dtype, .values = r->values};
    size_t wanted = (size_t)PyArray_NBYTES(result);
    for (int i = 0; i < r->n_inputs; i++) {
        question.host[i] = (char *)r->inputs[i].buffer.host + r->inputs[i].matrix.offset;
        wanted += r->inputs[i].buffer.bytes;
    }
    question.host[r->n_inputs] = PyArray_BYTES(result);
    if (memory_of(state, r, wanted, &question.memory)) {
        return -1;
    }
    smk_status status = {0};
    if (product ? smk_plan_flow_gemm(&question, &r->gemm, plan, &status)
                : smk_plan_flow_transpose(&question, &r->transpose, plan, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}

PyObject *request_run_flow(module_state *state, request *r) {
    const bool reads_result = r->asked->op == SMK_GEMM && r->asked->beta != 0.0;
    target t = {NULL, false};
    smk_flow_plan plan = {0};
    PyObject *image_owner = NULL, *result = NULL;
    smk_flow flow = {.stream = r->stream};

    if (choose_target(r, reads_result, &t)) {
        goto done;
    }
    if (PyArray_SIZE(t.array) > 0) {
        if (plan_flow(state, r, t.array, &plan) ||
            image_of_row(state, r->row, r->dtype, r->values, false, &flow.image, &image_owner)) {
            goto done;
        }
        flow.buffers = plan.buffers;
        flow.n_buffers = plan.n_buffers;
        flow.steps = plan.steps;
        flow.n_steps = plan.n_steps;
        if (device_run_flow(state, &r->on, &flow)) {
            goto done;
        }
    }
    if (t.is_out || r->asked->out == NULL) {
        result = t.is_out ? Py_NewRef((PyObject *)t.array) : PyArray_Return(t.array);
        t.array = t.is_out ? t.array : NULL;
    } else if (PyArray_CopyInto((PyArrayObject *)r->asked->out, t.array) == 0) {
        result = Py_NewRef(r->asked->out);
    }

done:
    smk_flow_plan_free(&plan);
    Py_XDECREF(image_owner);
    Py_XDECREF(t.array);
    return result;
}
