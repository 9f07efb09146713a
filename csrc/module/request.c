/* From a call to its result: check, plan, run.
 *
 * The kernels write into an array of our own, never into the caller's `out`: that is copied at the
 * very end. So `out` may overlap the inputs, and nothing partial is in it when a run fails. Arrays on a
 * GPU are used in place (device_request.c).
 */
#include "device_copies.h"

#include "../kernels/args.h"

int request_make(module_state *state, const call *asked, bool emulate, request *out) {
    *out = (request){.asked = asked};
    if (request_find_arrays(state, out, emulate)) {
        return -1;
    }
    out->is_flow = !out->on_device && asked->op != SMK_PROBE &&
                   (!out->on.emulated || (asked->max_memory && !emulate));
    switch (asked->op) {
    case SMK_GEMM: return request_make_gemm(state, out);
    case SMK_TRANSPOSE: return request_make_transpose(state, out);
    default: return request_make_probe(state, out);
    }
}

void request_clear(request *r) {
    for (int i = 0; i < r->n_inputs; i++) {
        operand_clear(&r->inputs[i]);
    }
    operand_clear(&r->result);
    device_copies_clear(r);
    smk_plan_free(&r->plan);
    for (int i = 0; i <= CALL_MAX_INPUTS; i++) {
        device_array_clear(&r->arrays[i]);
        Py_CLEAR(r->holds[i]);
    }
    Py_CLEAR(r->written);
    Py_CLEAR(r->descr);
}

/* The plan on the buffers: inputs, result, workspace. */
static int run_plan(module_state *state, request *r, const smk_buffer *result,
                    const observation *observed) {
    PyObject *image_owner;
    smk_image image;
    if (r->plan.n_launches == 0) {
        return 0;
    }
    if (r->copies && observed->repeat > 0) {
        PyErr_Format(
            PyExc_ValueError,
            "%s variant '%s' copies these views before it reads or writes them, and only its "
            "own kernels are timed; pass cupy.ascontiguousarray(...) or tensor.contiguous()",
            smk_op_names[r->asked->op], r->row->name);
        return -1;
    }
    if (image_of_row(state, r->row, r->dtype, r->values, r->on.emulated, &image, &image_owner)) {
        return -1;
    }
    smk_buffer buffers[CALL_MAX_INPUTS + 2 + CALL_MAX_COPIES];
    for (int i = 0; i < r->n_inputs; i++) {
        buffers[i] = r->inputs[i].buffer;
    }
    buffers[r->n_inputs] = *result;
    buffers[r->n_inputs + 1] = (smk_buffer){NULL, r->plan.workspace, 0};
    smk_job job = {
        .image = image,
        .pointers = r->plan.pointers,
        .n_pointers = r->plan.n_pointers,
        .args_bytes = r->plan.args_bytes,
        .parameters = r->plan.parameters,
        .n_parameters = r->plan.n_parameters,
        .tensor_maps = r->plan.maps,
        .n_tensor_maps = r->plan.n_maps,
        .launches = r->plan.launches,
        .n_launches = r->plan.n_launches,
        .buffers = buffers,
        .n_buffers = (size_t)r->n_inputs + 2,
        .stream = r->stream,
        .after = r->after,
        .n_after = r->n_after,
        .asynchronous = r->on_device && observed->repeat == 0,
        .repeat = observed->repeat,
        .milliseconds = observed->milliseconds,
        .trace = observed->trace,
        .blocks = observed->blocks,
        .n_blocks = observed->n_blocks,
        .hazards = observed->hazards,
    };
    int failed = device_run(state, &r->on, device_copies_link(r, &job, buffers), observed->progress,
                            Py_HUGE_VAL);
    Py_DECREF(image_owner);
    for (size_t i = 0; !failed && observed->trace && i < observed->trace->n_hazards; i++) {
        observed->trace->hazards[i].argument = observed->trace->hazards[i].buffer;
        observed->trace->hazards[i].argument_at = observed->trace->hazards[i].offset;
    }
    return failed;
}

PyArrayObject *request_hold_out(request *r) {
    PyArrayObject *out = array_hold((PyArrayObject *)r->asked->out, &r->holds[r->n_inputs]);
    if (out && request_fits_result(r, out, PyArray_EquivTypes(PyArray_DESCR(out), r->descr))) {
        Py_CLEAR(out); /* code of the caller has run since it was looked at */
    }
    return out;
}

PyObject *request_run(module_state *state, request *r, const observation *observed) {
    if (r->on_device) {
        return run_plan(state, r, &r->result.buffer, observed) ? NULL : request_settle(state, r);
    }
    if (r->is_flow && observed->repeat == 0) {
        return request_run_flow(state, r);
    }
    PyObject *result = NULL;
    bool reads_result = r->in_place || (r->asked->op == SMK_GEMM && r->asked->beta != 0.0);
    Py_INCREF(r->descr);
    PyArrayObject *out = NULL;
    PyArrayObject *fresh = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, r->descr, r->ndim,
                                                                 r->dims, NULL, NULL, 0, NULL);
    if (fresh == NULL || (r->asked->out != NULL && (out = request_hold_out(r)) == NULL)) {
        Py_XDECREF(fresh);
        return NULL;
    }
    const smk_buffer buffer = {PyArray_BYTES(fresh), (size_t)PyArray_NBYTES(fresh),
                               reads_result ? SMK_IN | SMK_OUT : SMK_OUT};
    if ((reads_result && PyArray_CopyInto(fresh, out) < 0) ||
        run_plan(state, r, &buffer, observed)) {
        goto done;
    }
    if (out == NULL) {
        result = PyArray_Return(fresh); /* steals; a 0-d array becomes a scalar, as in NumPy */
        fresh = NULL;
    } else if (PyArray_CopyInto(out, fresh) == 0) {
        result = Py_NewRef(r->asked->out);
    }

done:
    Py_XDECREF(fresh);
    Py_XDECREF(out);
    return result;
}

/* ---- the plan, for tests ---- */

/* The argument struct as a dict; pointers are byte offsets into the buffers. */
static PyObject *describe_args(smk_op op, const void *args) {
    if (op == SMK_GEMM) {
        const gemm_args *g = args;
        return Py_BuildValue("{sLsLsLsLsLsLsLsLsLsLsLsLsLsLsdsdsL}", "A", g->A, "B", g->B, "C",
                             g->C, "M", g->M, "N", g->N, "K", g->K, "lda", g->lda, "ldb", g->ldb,
                             "ldc", g->ldc, "step_a", g->step_a, "step_b", g->step_b, "batch_a",
                             g->batch_a, "batch_b", g->batch_b, "batch_c", g->batch_c, "alpha",
                             g->alpha, "beta", g->beta, "split", g->split);
    }
    if (op == SMK_TRANSPOSE) {
        const transpose_args *t = args;
        return Py_BuildValue(
            "{sLsLsLsLsLsLsLsLsLsLsLs(ii)sisNsisisN}", "x", t->x, "y", t->y, "rows", t->rows,
            "cols", t->cols, "ldx", t->ldx, "step_x", t->step_x, "ldy", t->ldy, "step_y", t->step_y,
            "batch_x", t->batch_x, "batch_y", t->batch_y, "batches", t->batches, "log_tile",
            t->log_rows, t->log_cols, "matrices", t->matrices, "copy", PyBool_FromLong(t->copy),
            "lead", t->lead, "pairs", t->pairs, "boxes", PyBool_FromLong(t->boxes));
    }
    const probe_args *p = args;
    return Py_BuildValue("{sLsLsLsLs(LLLL)}", "x", p->x, "y", p->y, "n_x", p->n_x, "n_y", p->n_y,
                         "runtime", p->runtime[0], p->runtime[1], p->runtime[2], p->runtime[3]);
}

static PyObject *describe_launch(smk_op op, const smk_launch *l) {
    return Py_BuildValue("{sss(III)s(III)snsOsN}", "entry", l->entry, "grid", l->grid[0],
                         l->grid[1], l->grid[2], "block", l->block[0], l->block[1], l->block[2],
                         "shared_bytes", (Py_ssize_t)l->shared_bytes, "overlaps",
                         l->overlaps ? Py_True : Py_False, "args", describe_args(op, l->args));
}

PyObject *request_describe(const request *r) {
    PyObject *launches = PyList_New((Py_ssize_t)r->plan.n_launches);
    for (size_t i = 0; launches && i < r->plan.n_launches; i++) {
        PyObject *launch = describe_launch(r->asked->op, &r->plan.launches[i]);
        if (launch == NULL) {
            Py_CLEAR(launches);
            break;
        }
        PyList_SET_ITEM(launches, (Py_ssize_t)i, launch);
    }
    PyObject *buffers = PyList_New(r->n_inputs);
    for (int i = 0; buffers && i < r->n_inputs; i++) {
        PyObject *bytes = PyLong_FromSize_t(r->inputs[i].buffer.bytes);
        if (bytes == NULL) {
            Py_CLEAR(buffers);
            break;
        }
        PyList_SET_ITEM(buffers, i, bytes);
    }
    char image[256];
    smk_image_name(r->row, r->dtype, r->values, image, sizeof image);
    return Py_BuildValue("{sssssssNsnsNsN}", "variant", r->row->name, "image", image, "entry",
                         r->row->entry, "shape", PyArray_IntTupleFromIntp(r->ndim, r->dims),
                         "workspace", (Py_ssize_t)r->plan.workspace, "input_bytes", buffers,
                         "launches", launches);
}
