/* Selects the variant for "auto" by predicted time, from one table of measured timings per GPU.
 *
 * smemkern._variants.cost_model loads each table once: a list of
 * (op, variant, params, dtype, alignment, side, (SMK_N_TERMS microseconds), along=-1).
 */
#include "choose.h"

#include "../core/plan_parts.h"

#include "../cuda/gpu.h"

static const char capsule_name[] = "smemkern timings";

typedef struct timings {
    size_t n;
    smk_timing entries[];
} timings;

/* ---- from Python ---- */

static int name_in(const char *const *names, int n, const char *wanted) {
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], wanted) == 0) return i;
    return -1;
}

static int read_params(PyObject *params, smk_timing *out) {
    const char *names[SMK_MAX_PARAMS];
    int64_t given[SMK_MAX_PARAMS];
    int n = 0;
    Py_ssize_t at = 0;
    PyObject *key, *value;
    while (PyDict_Next(params, &at, &key, &value)) {
        if (n == SMK_MAX_PARAMS) {
            PyErr_Format(PyExc_ValueError, "variant '%s' has fewer parameters", out->variant->name);
            return -1;
        }
        names[n] = PyUnicode_AsUTF8(key);
        given[n] = PyLong_AsLongLong(value);
        if (names[n++] == NULL || PyErr_Occurred()) return -1;
    }
    smk_status status = {0};
    if (smk_variant_values(out->variant, out->dtype->itemsize, names, given, n, out->values,
                           &status)) {
        PyErr_SetString(PyExc_ValueError, status.message);
        return -1;
    }
    return 0;
}

static int read_alignment(int bytes, smk_alignment most, smk_alignment *out) {
    *out = (smk_alignment)bytes;
    if (bytes == SMK_ALIGN_1 || bytes == SMK_ALIGN_4 || bytes == SMK_ALIGN_16 || bytes == (int)most)
        return 0;
    PyErr_Format(PyExc_ValueError, "alignment should be 1, 4%s or %d bytes, not %d",
                 most > SMK_ALIGN_16 ? ", 16" : "", most, bytes);
    return -1;
}

/* Older tables have fewer costs, of the first terms; those of the others are 0. */
static int read_costs(PyObject *costs, double out[SMK_N_TERMS]) {
    const Py_ssize_t n = PyTuple_GET_SIZE(costs);
    if (n < SMK_TERM_LINES || n > SMK_N_TERMS) {
        PyErr_Format(PyExc_TypeError,
                     "a timing's costs should have length %d, or %d at least in an older table, "
                     "not %zd",
                     SMK_N_TERMS, SMK_TERM_LINES, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < SMK_N_TERMS; i++) {
        out[i] = i < n ? PyFloat_AsDouble(PyTuple_GET_ITEM(costs, i)) : 0;
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static int read_timing(PyObject *entry, smk_timing *out) {
    const char *op, *variant, *dtype;
    PyObject *params;
    int alignment;
    PyObject *costs;
    if (!PyTuple_Check(entry)) {
        PyErr_Format(PyExc_TypeError, "a timing is a tuple, not %.200s", Py_TYPE(entry)->tp_name);
        return -1;
    }
    long long side;
    out->along = -1;
    if (!PyArg_ParseTuple(entry, "ssO!siLO!|i:timing", &op, &variant, &PyDict_Type, &params, &dtype,
                          &alignment, &side, &PyTuple_Type, &costs, &out->along) ||
        read_costs(costs, out->cost))
        return -1;
    const int which = name_in(smk_op_names, SMK_N_OPS, op);
    out->variant = which < 0 ? NULL : smk_variant_find((smk_op)which, variant);
    for (int i = 0; out->variant && i < out->variant->n_dtypes; i++)
        if (strcmp(out->variant->dtypes[i].name, dtype) == 0) out->dtype = &out->variant->dtypes[i];
    if (out->dtype == NULL) {
        PyErr_Format(PyExc_ValueError, "there is no %s variant '%s' of %s", op, variant, dtype);
        return -1;
    }
    if (read_alignment(alignment, SMK_ALIGN_16, &out->alignment)) return -1;
    out->side = side;
    return read_params(params, out);
}

static timings *read_timings(PyObject *list) {
    PyObject *entries = PySequence_Fast(list, "timings should be a sequence of tuples");
    if (entries == NULL) return NULL;
    const size_t n = (size_t)PySequence_Fast_GET_SIZE(entries);
    timings *all = PyMem_Calloc(1, sizeof *all + n * sizeof *all->entries);
    if (all == NULL) PyErr_NoMemory();
    while (all && all->n < n) {
        PyObject *entry = PySequence_Fast_GET_ITEM(entries, (Py_ssize_t)all->n);
        if (read_timing(entry, &all->entries[all->n++])) {
            PyMem_Free(all);
            all = NULL;
        }
    }
    Py_DECREF(entries);
    return all;
}

/* ---- the table of a GPU ---- */

static void free_capsule(PyObject *capsule) {
    PyMem_Free(PyCapsule_GetPointer(capsule, capsule_name));
}

static int store_timings(module_state *state, PyObject *ordinal, PyObject *list) {
    timings *all = read_timings(list);
    PyObject *capsule = all ? PyCapsule_New(all, capsule_name, free_capsule) : NULL;
    if (capsule == NULL) {
        PyMem_Free(all);
        return -1;
    }
    int failed = PyDict_SetItem(state->timings, ordinal, capsule);
    Py_DECREF(capsule);
    return failed;
}

static int load(module_state *state, PyObject *ordinal, int number) {
    gpu_info info;
    smk_status status = {0};
    if (gpu_describe(number, &info, &status)) {
        raise_status(state, &status);
        return -1;
    }
    PyObject *module = PyImport_ImportModule("smemkern._variants.cost_model");
    PyObject *list = module ? PyObject_CallMethod(module, "load", "s", info.name) : NULL;
    int failed = list ? store_timings(state, ordinal, list) : -1;
    Py_XDECREF(list);
    Py_XDECREF(module);
    return failed;
}

/* A new reference to the capsule of the GPU's table, which is loaded at the first use. */
static PyObject *timings_of(module_state *state, int number) {
    PyObject *ordinal = PyLong_FromLong(number);
    PyObject *capsule = NULL;
    if (ordinal && (capsule = dict_item(state->timings, ordinal)) == NULL && !PyErr_Occurred() &&
        load(state, ordinal, number) == 0) {
        capsule = dict_item(state->timings, ordinal);
    }
    Py_XDECREF(ordinal);
    return capsule;
}

/* ---- choosing ---- */

/* *out: the fastest timing that fits the query; its `row` is NULL if none fits. */
static int find_fastest(module_state *state, const request *r, const smk_query *q,
                        smk_timing *out) {
    PyObject *capsule = timings_of(state, r->on.ordinal);
    if (capsule == NULL) return -1;
    const timings *all = PyCapsule_GetPointer(capsule, capsule_name);
    const smk_timing *best = smk_fastest(all->entries, all->n, q);
    *out = best ? *best : (smk_timing){0};
    Py_DECREF(capsule);
    return 0;
}

static double seconds_of(const smk_timing *timing, const smk_query *q) {
    return 1e-6 * smk_timing_predicts(timing, q);
}

/* Sets the variant that is predicted to be fastest, and its parameters. r->row is NULL if none
 * fits. */
static int choose_on_gpu(module_state *state, request *r, const smk_query *q) {
    smk_timing best;
    if (find_fastest(state, r, q, &best)) return -1;
    if ((r->variant = best.variant)) {
        memcpy(r->values, best.values, sizeof r->values);
        r->seconds = seconds_of(&best, q);
    }
    return 0;
}

static int query_gpu(module_state *state, const request *r, smk_query *q) {
    return device_sm(state, &r->on, &q->sm) ||
                   device_multiprocessors(state, &r->on, &q->multiprocessors)
               ? -1
               : 0;
}

int request_predict_seconds(module_state *state, request *r, smk_query q) {
    smk_timing best;
    q.only = r->variant;
    q.accuracy = SMK_N_ACCURACIES - 1; /* any */
    if (query_gpu(state, r, &q) || find_fastest(state, r, &q, &best)) return -1;
    r->seconds = best.variant ? seconds_of(&best, &q) : 0;
    return 0;
}

/* First looks for variants that read the operands in place, then for variants that read aligned,
 * row-major copies of them (device_copies.h). */
int request_choose(module_state *state, request *r, smk_query q, bool *with_values) {
    const bool on_gpu = !r->on.emulated;
    if (on_gpu && query_gpu(state, r, &q)) return -1;
    for (;;) {
        if (on_gpu && choose_on_gpu(state, r, &q)) return -1;
        *with_values = r->variant != NULL;
        if (r->variant || (r->variant = smk_default_variant(&q))) return 0;
        if (q.strides == SMK_ROWS) break;
        q.strides = SMK_ROWS;
        q.alignment = SMK_ALIGN_32;
        q.k_major[0] = true;
        q.k_major[1] = false;
    }
    PyErr_Format(PyExc_TypeError,
                 "%s: no variant takes %s on a GPU of compute capability %d.%d; convert to "
                 "float32, or pass device='emu'",
                 smk_op_names[q.op], q.dtype, q.sm / 10, q.sm % 10);
    return -1;
}

/* ---- from Python ---- */

PyObject *choose_set_timings(module_state *state, PyObject *args) {
    PyObject *ordinal, *list;
    if (!PyArg_ParseTuple(args, "O!O:set_timings", &PyLong_Type, &ordinal, &list)) return NULL;
    if (list == Py_None)
        PyDict_Clear(state->timings);
    else if (store_timings(state, ordinal, list))
        return NULL;
    Py_RETURN_NONE;
}

/* Whether the rows of A and B lie along K; false for a layout that does not exist. */
static bool read_layout(const char *layout, bool k_major[2]) {
    const char *const layouts[] = {"NN", "NT", "TN", "TT"};
    const int form = name_in(layouts, 4, layout);
    if (form < 0) PyErr_Format(PyExc_ValueError, "there is no layout '%s'", layout);
    k_major[0] = form < 2;
    k_major[1] = form % 2 == 1;
    return form >= 0;
}

static PyObject *tuple_of(const double *x, int n) {
    PyObject *result = PyTuple_New(n);
    for (int i = 0; result && i < n; i++) {
        PyObject *term = PyFloat_FromDouble(x[i]);
        if (term == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, term);
    }
    return result;
}

PyObject *choose_ring_facts(PyObject *args) {
    const char *layout;
    long long m, n, k, batch;
    int rows, columns, ranges, swapped, multicast, multicast_a, multiprocessors, itemsize, aligned;
    bool k_major[2];
    double x[RING_FACTS], packing[PACK_TERMS];
    if (!PyArg_ParseTuple(args, "(LLLL)(iiipii)siip:ring_facts", &m, &n, &k, &batch, &rows,
                          &columns, &ranges, &swapped, &multicast, &multicast_a, &layout,
                          &multiprocessors, &itemsize, &aligned) ||
        !read_layout(layout, k_major))
        return NULL;
    ring_work work = {.itemsize = itemsize,
                      .m = (double)m,
                      .n = (double)n,
                      .k = (double)k,
                      .steps = (double)ceil_div(k * itemsize, STEP_BYTES),
                      .batch = (double)batch,
                      .multiprocessors = multiprocessors,
                      .rows = rows,
                      .columns = columns,
                      .ranges = ranges,
                      .multicast = multicast,
                      .multicast_a = multicast_a};
    ring_operands((int64_t[]){m, n, k}, k_major, itemsize, aligned, work.operands);
    if (swapped) ring_swap(&work);
    const ring_load load = ring_terms(&work, x);
    ring_other_facts(&work, x);
    ring_pack_terms(&work, packing);
    return Py_BuildValue("NNi", tuple_of(x, RING_FACTS), tuple_of(packing, PACK_TERMS), (int)load);
}

PyObject *choose_gemv_forms(PyObject *args) {
    const char *layout;
    long long m, n, k, batch;
    int multiprocessors, itemsize, aligned;
    bool k_major[2];
    if (!PyArg_ParseTuple(args, "(LLLL)siip:gemv_forms", &m, &n, &k, &batch, &layout,
                          &multiprocessors, &itemsize, &aligned) ||
        !read_layout(layout, k_major))
        return NULL;
    skinny_query q = skinny_query_of(m, n, k);
    q.batch = batch;
    q.multiprocessors = multiprocessors;
    q.k_major = skinny_is_along(&q, k_major);
    q.aligned = aligned;
    gemv_form forms[GEMV_FORMS];
    const int count = gemv_forms(&q, itemsize, (gemv_form){0}, forms);
    PyObject *result = PyList_New(count);
    for (int i = 0; result && i < count; i++) {
        double terms[GEMV_TERMS];
        gemv_terms(&q, itemsize, forms[i], terms);
        PyObject *one =
            Py_BuildValue("(LLL)Nd", (long long)forms[i].lanes, (long long)forms[i].threads,
                          (long long)forms[i].split, tuple_of(terms, GEMV_TERMS),
                          gemv_predict(&q, itemsize, forms[i]));
        if (one == NULL)
            Py_CLEAR(result);
        else
            PyList_SET_ITEM(result, i, one);
    }
    return result;
}

PyObject *choose_predict(PyObject *args) {
    const char *op, *dtype, *accuracy, *layout;
    long long m, n, k, batch;
    int sm, multiprocessors, alignment;
    PyObject *list;
    if (!PyArg_ParseTuple(args, "Osss(LLLL)iisi:predict", &list, &op, &dtype, &accuracy, &m, &n, &k,
                          &batch, &sm, &multiprocessors, &layout, &alignment)) {
        return NULL;
    }
    const int which = name_in(smk_op_names, SMK_N_OPS, op);
    const int exact = name_in(smk_accuracy_names, SMK_N_ACCURACIES, accuracy);
    if (which < 0 || exact < 0) {
        return PyErr_Format(PyExc_ValueError, "there is no operation '%s' or no accuracy '%s'", op,
                            accuracy);
    }
    bool k_major[2];
    smk_alignment rows;
    if (!read_layout(layout, k_major) || read_alignment(alignment, SMK_ALIGN_32, &rows))
        return NULL;
    const smk_query q = {.op = (smk_op)which,
                         .dtype = dtype,
                         .accuracy = (smk_accuracy)exact,
                         .sm = sm,
                         .multiprocessors = multiprocessors,
                         .M = m,
                         .N = n,
                         .K = k,
                         .batch = batch,
                         .strides = k_major[0] && !k_major[1] ? SMK_ROWS : SMK_ROWS_OR_COLUMNS,
                         .alignment = rows,
                         .k_major = {k_major[0], k_major[1]}};
    timings *all = read_timings(list);
    PyObject *result = all ? PyList_New(0) : NULL;
    for (size_t i = 0; result && i < all->n; i++) {
        const smk_timing *t = &all->entries[i];
        double x[SMK_N_TERMS];
        if (!smk_timing_fits(t, &q)) continue;
        smk_timing_terms(t, &q, x);
        PyObject *row = Py_BuildValue("(ndN)", (Py_ssize_t)i, smk_timing_predicts(t, &q),
                                      tuple_of(x, SMK_N_TERMS));
        if (row == NULL || PyList_Append(result, row)) Py_CLEAR(result);
        Py_XDECREF(row);
    }
    PyMem_Free(all);
    return result;
}
