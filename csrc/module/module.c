/* The extension module smemkern._core: its functions, and the creation and freeing of its state. */
#include "module.h"

#include "../emu/emu.h"
#include "choose.h"
#include "detached.h"
#include "docs.h"
#include "recording.h"
#include "request.h"
#include "tensor_map.h"

/* ---- functions ---- */

PyObject *call_watched(PyObject *what, PyObject *args, PyObject *kwargs) {
    PyObject *module = PyImport_ImportModule("smemkern._trace.watch");
    PyObject *options = module && kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *result =
        module && options ? PyObject_CallMethod(module, "call", "OOO", what, args, options) : NULL;
    Py_XDECREF(options);
    Py_XDECREF(module);
    return result;
}

static PyObject *run_operation(PyObject *module, smk_op op, PyObject *args, PyObject *kwargs) {
    module_state *state = PyModule_GetState(module);
    if (atomic_load(&state->watchers) > 0) {
        PyObject *name = PyUnicode_FromString(smk_op_names[op]);
        PyObject *watched = name ? call_watched(name, args, kwargs) : NULL;
        Py_XDECREF(name);
        return watched;
    }
    call parsed;
    if (call_read(op, args, kwargs, &parsed)) return NULL;
    request r;
    PyObject *result = NULL;
    if (request_make(state, &parsed, false, &r) == 0)
        result = request_run(state, &r, &(observation){0});
    request_clear(&r);
    return result;
}

static PyObject *core_gemm(PyObject *module, PyObject *args, PyObject *kwargs) {
    return run_operation(module, SMK_GEMM, args, kwargs);
}

static PyObject *core_transpose(PyObject *module, PyObject *args, PyObject *kwargs) {
    return run_operation(module, SMK_TRANSPOSE, args, kwargs);
}

static PyObject *core_probe(PyObject *module, PyObject *args, PyObject *kwargs) {
    return run_operation(module, SMK_PROBE, args, kwargs);
}

static int find_op(PyObject *name, smk_op *out) {
    for (int op = 0; op < SMK_N_OPS; op++) {
        if (PyUnicode_Check(name) &&
            PyUnicode_CompareWithASCIIString(name, smk_op_names[op]) == 0) {
            *out = (smk_op)op;
            return 0;
        }
    }
    PyErr_Format(PyUnicode_Check(name) ? PyExc_ValueError : PyExc_TypeError,
                 "there is no operation %R; there are: 'gemm', 'transpose', 'probe', and objects "
                 "of type Kernel",
                 name);
    return -1;
}

/* Runs an operation or a Kernel with timing, a trace or hazard detection (struct observation). */
static PyObject *run_observed(module_state *state, PyObject *what, PyObject *args, PyObject *kwargs,
                              observation *observed) {
    if (Py_IS_TYPE(what, state->kernel_type))
        return kernel_launch(state, what, args, kwargs, observed);
    smk_op op;
    call parsed;
    if (find_op(what, &op) || call_read(op, args, kwargs, &parsed)) return NULL;
    if (observed->repeat > 0 && parsed.beta != 0.0) {
        PyErr_SetString(PyExc_ValueError,
                        "a repeated run would add to its own result; measure with beta = 0");
        return NULL;
    }
    request r;
    PyObject *result = NULL;
    if (request_make(state, &parsed, observed->trace != NULL, &r) == 0)
        result = request_run(state, &r, observed);
    request_clear(&r);
    return result;
}

/* (result, times, counts), and of a recorded run also the recording and the places of the
 * arguments' arrays. */
static PyObject *outcome_of(PyObject *result, const observation *observed,
                            const recording_request *recorded) {
    PyObject *times = PyList_New(observed->repeat), *outcome = NULL;
    for (int i = 0; times && i < observed->repeat; i++) {
        PyObject *time = PyFloat_FromDouble((double)observed->milliseconds[i]);
        if (time == NULL) Py_CLEAR(times);
        if (times) PyList_SET_ITEM(times, i, time);
    }
    PyObject *counts = observed->trace ? table_trace(observed->trace) : Py_NewRef(Py_None);
    PyObject *bytes = recording_bytes(recorded);
    PyObject *places = Py_XNewRef(observed->places ? observed->places : Py_None);
    if (times && counts && bytes)
        outcome = recorded->wanted ? PyTuple_Pack(5, result, times, counts, bytes, places)
                                   : PyTuple_Pack(3, result, times, counts);
    Py_XDECREF(times);
    Py_XDECREF(counts);
    Py_XDECREF(bytes);
    Py_DECREF(places);
    return outcome;
}

static PyObject *core_observe(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"what",   "args",     "kwargs",         "repeat",
                               "trace",  "hazards",  "equal_writes",   "only_if_clean",
                               "blocks", "progress", "by_instruction", "recording",
                               NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *what, *given, *options, *progress = Py_None, *window = Py_None;
    int repeat = 0, trace = 0, hazards = 0, equal_writes = 0, only_if_clean = 0, by_instruction = 0;
    Py_buffer blocks = {0}; /* uint64, as in smk_job */
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!O!|ippppz*OpO:observe", keywords, &what,
                                     &PyTuple_Type, &given, &PyDict_Type, &options, &repeat, &trace,
                                     &hazards, &equal_writes, &only_if_clean, &blocks, &progress,
                                     &by_instruction, &window)) {
        return NULL;
    }
    if (repeat < 0 || repeat > 1000000) {
        PyBuffer_Release(&blocks);
        return PyErr_Format(PyExc_ValueError, "repeat must be 0..1000000, not %d", repeat);
    }
    PyObject *outcome = NULL;
    smk_trace counted = {.by_instruction = by_instruction};
    recording_request recorded;
    observation observed = {
        .repeat = repeat,
        .milliseconds = PyMem_Calloc((size_t)repeat + 1, sizeof *observed.milliseconds),
        .trace = trace ? &counted : NULL,
        .blocks = blocks.buf,
        .n_blocks = (size_t)blocks.len / sizeof(uint64_t),
        .hazards = hazards ? SMK_FIND_HAZARDS | (equal_writes ? SMK_EQUAL_WRITES : 0) : 0,
        .only_if_clean = only_if_clean,
        .progress = progress == Py_None ? NULL : progress,
    };
    if (recording_read(window, &recorded) == 0 && observed.milliseconds) {
        observed.recording = recorded.wanted ? &recorded.recording : NULL;
        PyObject *result = run_observed(state, what, given, options, &observed);
        if (result) outcome = outcome_of(result, &observed, &recorded);
        Py_XDECREF(result);
    }
    if (!observed.milliseconds) PyErr_NoMemory();
    Py_XDECREF(observed.places);
    recording_clear(&recorded);
    PyBuffer_Release(&blocks);
    smk_trace_free(&counted);
    PyMem_Free(observed.milliseconds);
    return outcome;
}

static PyObject *core_plan(PyObject *module, PyObject *args) {
    module_state *state = PyModule_GetState(module);
    PyObject *what, *given, *options;
    smk_op op;
    call parsed;
    if (!PyArg_ParseTuple(args, "OO!O!:plan", &what, &PyTuple_Type, &given, &PyDict_Type,
                          &options) ||
        find_op(what, &op) || call_read(op, given, options, &parsed)) {
        return NULL;
    }
    request r;
    PyObject *plan = request_make(state, &parsed, true, &r) == 0 ? request_describe(&r) : NULL;
    request_clear(&r);
    return plan;
}

static PyObject *core_watch(PyObject *module, PyObject *open) {
    module_state *state = PyModule_GetState(module);
    const int truth = PyObject_IsTrue(open);
    if (truth < 0) return NULL;
    atomic_fetch_add(&state->watchers, truth ? 1 : -1);
    Py_RETURN_NONE;
}

static PyObject *core_variants(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return table_variants();
}

static PyObject *core_devices(PyObject *module, PyObject *Py_UNUSED(none)) {
    return table_devices(PyModule_GetState(module));
}

static PyObject *core_config(PyObject *module, PyObject *Py_UNUSED(none)) {
    return table_config(PyModule_GetState(module));
}

static PyObject *core_configure(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"images", "kernels", NULL};
    module_state *state = PyModule_GetState(module);
    PyObject *images, *kernels;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UU:configure", keywords, &images, &kernels))
        return NULL;
    PyDict_Clear(state->images);
    Py_XSETREF(state->image_directory, Py_NewRef(images));
    Py_XSETREF(state->kernel_directory, Py_NewRef(kernels));
    Py_RETURN_NONE;
}

static PyObject *core_set_timings(PyObject *module, PyObject *args) {
    return choose_set_timings(PyModule_GetState(module), args);
}

static PyObject *core_predict(PyObject *Py_UNUSED(module), PyObject *args) {
    return choose_predict(args);
}

static PyObject *core_ring_facts(PyObject *Py_UNUSED(module), PyObject *args) {
    return choose_ring_facts(args);
}

static PyObject *core_gemv_forms(PyObject *Py_UNUSED(module), PyObject *args) {
    return choose_gemv_forms(args);
}

static PyObject *core_last_transfer(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
    return device_last_transfer();
}

static PyObject *core_trim(PyObject *module, PyObject *given) {
    return device_trim(PyModule_GetState(module), given);
}

static PyObject *core_event_record(PyObject *module, PyObject *args) {
    return event_record(PyModule_GetState(module), args);
}

static PyObject *core_event_query(PyObject *Py_UNUSED(module), PyObject *event) {
    return event_query(event);
}

static PyObject *core_stream_wait_event(PyObject *module, PyObject *args) {
    return stream_wait_event(PyModule_GetState(module), args);
}

#define KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"gemm", KEYWORDS(core_gemm), METH_VARARGS | METH_KEYWORDS, gemm_doc},
    {"transpose", KEYWORDS(core_transpose), METH_VARARGS | METH_KEYWORDS, transpose_doc},
    {"probe", KEYWORDS(core_probe), METH_VARARGS | METH_KEYWORDS, probe_doc},
    {"observe", KEYWORDS(core_observe), METH_VARARGS | METH_KEYWORDS, observe_doc},
    {"plan", core_plan, METH_VARARGS, plan_doc},
    {"watch", core_watch, METH_O, watch_doc},
    {"variants", core_variants, METH_NOARGS, variants_doc},
    {"devices", core_devices, METH_NOARGS, devices_doc},
    {"config", core_config, METH_NOARGS, config_doc},
    {"shared_requests", model_shared_requests, METH_VARARGS, shared_requests_doc},
    {"layouts", model_layouts, METH_VARARGS, layouts_doc},
    {"explain_request", model_explain_request, METH_VARARGS, explain_request_doc},
    {"explain_layout", model_explain_layout, METH_VARARGS, explain_layout_doc},
    {"explain_hazard", model_explain_hazard, METH_VARARGS, explain_hazard_doc},
    {"explain_element", model_explain_element, METH_VARARGS, explain_element_doc},
    {"shared_arrays", model_shared_arrays, METH_VARARGS, shared_arrays_doc},
    {"set_timings", core_set_timings, METH_VARARGS, set_timings_doc},
    {"predict", core_predict, METH_VARARGS, predict_doc},
    {"ring_facts", core_ring_facts, METH_VARARGS, ring_facts_doc},
    {"gemv_forms", core_gemv_forms, METH_VARARGS, gemv_forms_doc},
    {"last_transfer", core_last_transfer, METH_NOARGS, last_transfer_doc},
    {"trim", core_trim, METH_O, trim_doc},
    {"event_record", core_event_record, METH_VARARGS, event_record_doc},
    {"event_query", core_event_query, METH_O, event_query_doc},
    {"stream_wait_event", core_stream_wait_event, METH_VARARGS, stream_wait_event_doc},
    {"nvrtc_compile", core_nvrtc_compile, METH_VARARGS, nvrtc_compile_doc},
    {"cache_load", core_cache_load, METH_O, cache_load_doc},
    {"cache_store", core_cache_store, METH_VARARGS, cache_store_doc},
    {"configure", KEYWORDS(core_configure), METH_VARARGS | METH_KEYWORDS, configure_doc},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ---- */

static int core_exec(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    if (state_import_numpy() < 0 || state_make_exceptions(module, state) < 0) return -1;
#define X(field, name) (state->names.field = PyUnicode_InternFromString(name)) == NULL ||
    if (MODULE_NAMES(X) false) return -1;
#undef X
    state->images = PyDict_New();
    state->timings = PyDict_New();
    state->image_directory = PyUnicode_FromString(".");
    state->kernel_directory = PyUnicode_FromString(".");
    state->kernel_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &kernel_spec, NULL);
    state->tensor_map_type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &tensor_map_spec, NULL);
    state->texture_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &texture_spec, NULL);
    state->surface_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &surface_spec, NULL);
    if (state->images == NULL || state->timings == NULL || state->image_directory == NULL ||
        state->kernel_directory == NULL || state->kernel_type == NULL ||
        state->tensor_map_type == NULL || state->texture_type == NULL ||
        state->surface_type == NULL) {
        return -1;
    }
    if (tensor_maps_start(state)) return -1;
    if (PyModule_AddStringConstant(module, "__version__", SMK_VERSION) < 0) return -1;
    PyObject *benign_kinds = table_benign_kinds();
    const int added = PyModule_AddObjectRef(module, "benign_kinds", benign_kinds);
    Py_XDECREF(benign_kinds);
    if (added < 0) return -1;
    if (PyModule_AddType(module, state->tensor_map_type) < 0) return -1;
    if (PyModule_AddType(module, state->texture_type) < 0) return -1;
    if (PyModule_AddType(module, state->surface_type) < 0) return -1;
    if (PyModule_AddType(module, state->kernel_type) < 0) return -1;
    return detached_start(module, state);
}

static int core_traverse(PyObject *module, visitproc visit, void *arg) {
    module_state *state = PyModule_GetState(module);
    for (int code = 0; code < SMK_N_CODES; code++)
        Py_VISIT(state->exceptions[code]);
    Py_VISIT(state->kernel_type);
    Py_VISIT(state->tensor_map_type);
    Py_VISIT(state->texture_type);
    Py_VISIT(state->surface_type);
    Py_VISIT(state->tensor_maps);
    Py_VISIT(state->images);
    Py_VISIT(state->timings);
    return 0;
}

static int core_clear(PyObject *module) {
    module_state *state = PyModule_GetState(module);
    for (int code = 0; code < SMK_N_CODES; code++)
        Py_CLEAR(state->exceptions[code]);
    Py_CLEAR(state->kernel_type);
    Py_CLEAR(state->tensor_map_type);
    Py_CLEAR(state->texture_type);
    Py_CLEAR(state->surface_type);
    Py_CLEAR(state->tensor_maps);
    Py_CLEAR(state->images);
    Py_CLEAR(state->timings);
    Py_CLEAR(state->image_directory);
    Py_CLEAR(state->kernel_directory);
#define X(field, name) Py_CLEAR(state->names.field);
    MODULE_NAMES(X)
#undef X
    PyArray_Descr *bfloat16 = atomic_exchange(&state->bfloat16, NULL);
    Py_XDECREF(bfloat16);
    PyObject *device_arrays = atomic_exchange(&state->device_arrays, NULL);
    Py_XDECREF(device_arrays);
    PyObject *stream_ordered = atomic_exchange(&state->stream_ordered, NULL);
    Py_XDECREF(stream_ordered);
    return 0;
}

static void core_free(void *module) {
    module_state *state = PyModule_GetState(module);
    core_clear(module);
    detached_free(state->calls);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, core_exec},
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "smemkern._core",
    .m_doc = "The C side of smemkern; the package smemkern is its interface.",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
