/* Checks, plans and runs a call.
 *
 * Results in host memory:
 *   - A gemm or transpose on a GPU, or on the emulator with max_memory, writes `out` block by block
 *     if it is contiguous and does not overlap the inputs. A run that fails can leave it partially
 *     written (host_request.c).
 *   - Otherwise the kernels write a fresh array, which is copied to `out` at the end. So `out` may
 *     overlap the inputs, and a run that fails leaves it unchanged.
 * Arrays on a GPU are used in place (device_request.c).
 */
#include "device_copies.h"

static const operation *const operations[] = {[SMK_GEMM] = &operation_gemm,
                                              [SMK_TRANSPOSE] = &operation_transpose,
                                              [SMK_PROBE] = &operation_probe};

static int plan(module_state *state, request *r, const operation *op) {
    const smk_variant *variant = r->variant;
    smk_status status = {0};
    int multiprocessors = 0, sm = 0;
    if ((variant->split.rate || variant->wgmma.terms || variant->ozaki.pack ||
         variant->transpose_kernels.boxes) &&
        device_multiprocessors(state, &r->on, &multiprocessors)) {
        return -1;
    }
    if (variant->split.clusters && device_sm(state, &r->on, &sm)) return -1;
    r->clusters = variant->split.clusters && smk_has_clusters(sm);
    if (op->plan(r, multiprocessors, &status)) {
        raise_status(state, &status);
        return -1;
    }
    return 0;
}

int request_make(module_state *state, const call *given, bool emulate, request *r) {
    const operation *op = operations[given->op];
    PyArrayObject *arrays[CALL_MAX_INPUTS] = {NULL};
    smk_query query;
    *r = (request){.call = given};
    if (request_find_arrays(state, r, emulate)) return -1;
    r->is_pipeline = !r->on_device && given->op != SMK_PROBE &&
                     (!r->on.emulated || (given->max_memory && !emulate));
    int failed = 0;
    for (int i = 0; i < call_forms[given->op].n_inputs && !failed; i++)
        failed = (arrays[i] = request_array(state, r, i)) == NULL ? -1 : 0;
    if (!failed) {
        failed = op->check(state, r, arrays, &query) || request_choose_variant(state, r, query) ||
                 op->place(state, r, arrays) || request_check_out(r) ||
                 op->place_result(state, r, arrays) || plan(state, r, op);
    }
    for (int i = 0; i < CALL_MAX_INPUTS; i++)
        Py_XDECREF(arrays[i]);
    return failed ? -1 : 0;
}

void request_clear(request *r) {
    for (int i = 0; i < r->n_inputs; i++)
        operand_clear(&r->inputs[i]);
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

/* Runs the plan on its buffers: inputs, result, workspace. */
static int run_plan(module_state *state, request *r, const smk_buffer *result,
                    const observation *observed) {
    PyObject *image_owner;
    smk_image image;
    if (r->plan.n_launches == 0) return 0;
    if (r->copies && observed->repeat > 0) {
        PyErr_Format(
            PyExc_ValueError,
            "%s variant '%s' copies these views before it reads or writes them, and only its "
            "own kernels are timed; pass cupy.ascontiguousarray(...) or tensor.contiguous()",
            smk_op_names[r->call->op], r->variant->name);
        return -1;
    }
    if (variant_image(state, r->variant, r->dtype, r->values, r->on.emulated, r->clusters, &image,
                      &image_owner)) {
        return -1;
    }
    smk_buffer buffers[CALL_MAX_INPUTS + 2 + CALL_MAX_COPIES];
    for (int i = 0; i < r->n_inputs; i++)
        buffers[i] = r->inputs[i].buffer;
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
        .recording = observed->recording,
    };
    int failed =
        device_run(state, &r->on, device_copies_link(r, &job, buffers),
                   observed->progress ? observed->progress : r->call->progress, Py_HUGE_VAL);
    Py_DECREF(image_owner);
    for (size_t i = 0; !failed && observed->trace && i < observed->trace->n_hazards; i++) {
        observed->trace->hazards[i].argument = observed->trace->hazards[i].buffer;
        observed->trace->hazards[i].argument_at = observed->trace->hazards[i].offset;
    }
    return failed;
}

PyObject *request_run(module_state *state, request *r, const observation *observed) {
    if (r->on_device)
        return run_plan(state, r, &r->result.buffer, observed) ? NULL : request_finalize(state, r);
    if (r->is_pipeline && observed->repeat == 0) return request_run_pipeline(state, r);
    PyObject *result = NULL;
    bool reads_result = r->in_place || (r->call->op == SMK_GEMM && r->call->beta != 0.0);
    Py_INCREF(r->descr);
    PyArrayObject *out = NULL;
    PyArrayObject *fresh = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, r->descr, r->ndim,
                                                                 r->dims, NULL, NULL, 0, NULL);
    if (fresh == NULL || (r->call->out != NULL && (out = request_hold_out(r)) == NULL)) {
        Py_XDECREF(fresh);
        return NULL;
    }
    const smk_buffer buffer = {PyArray_BYTES(fresh), (size_t)PyArray_NBYTES(fresh),
                               reads_result ? SMK_IN | SMK_OUT : SMK_OUT};
    if ((reads_result && PyArray_CopyInto(fresh, out) < 0) || run_plan(state, r, &buffer, observed))
        goto done;
    if (out == NULL) {
        result = PyArray_Return(fresh); /* steals; a 0-d array becomes a scalar, as in NumPy */
        fresh = NULL;
    } else if (PyArray_CopyInto(out, fresh) == 0) {
        result = Py_NewRef(r->call->out);
    }

done:
    Py_XDECREF(fresh);
    Py_XDECREF(out);
    return result;
}
