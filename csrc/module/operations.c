/* What is particular to gemm, transpose and probe: which arrays they take, and what they make of
 * them. */
#include "request.h"

/* ---- gemm ---- */

static int refuse_dtype(PyArrayObject *array, const char *op, const char *name,
                        const char *remedy) {
    PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S; %s", op, name, PyArray_DESCR(array),
                 remedy);
    return -1;
}

/* "float32", "float64", "float16" or "bfloat16"; NULL of anything else. */
static const char *gemm_dtype(const module_state *state, PyArrayObject *array) {
    switch (PyArray_TYPE(array)) {
    case NPY_FLOAT: return "float32";
    case NPY_DOUBLE: return "float64";
    case NPY_HALF: return "float16";
    default: break;
    }
    return is_bfloat16(state, PyArray_DESCR(array)) ? "bfloat16" : NULL;
}

static int refuse_gemm_dtype(PyArrayObject *array, const char *name) {
    int type = PyArray_TYPE(array);
    char remedy[200];
    bool complex_numbers = PyTypeNum_ISCOMPLEX(type);
    bool convertible = PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type) || type == NPY_OBJECT;
    PyOS_snprintf(remedy, sizeof remedy, "float32, float64, float16 and bfloat16 are taken%s%s%s",
                  complex_numbers ? ": multiply real and imaginary parts apart"
                  : convertible   ? ": convert it, as in "
                                  : "",
                  convertible && !complex_numbers ? name : "",
                  convertible && !complex_numbers ? ".astype(numpy.float64)" : "");
    return refuse_dtype(array, "gemm", name, remedy);
}

/* As NumPy promotes: float64 before float32, which also is what two kinds of 16 bits become. */
static const char *gemm_result(const char *const names[2]) {
    if (strcmp(names[0], names[1]) == 0) {
        return names[0];
    }
    bool wide = strcmp(names[0], "float64") == 0 || strcmp(names[1], "float64") == 0;
    return wide ? "float64" : "float32";
}

static PyArray_Descr *gemm_descr(const char *name, PyArrayObject *of_that_type) {
    if (strcmp(name, "bfloat16") == 0) {
        Py_INCREF(PyArray_DESCR(of_that_type));
        return PyArray_DESCR(of_that_type);
    }
    return PyArray_DescrFromType(strcmp(name, "float32") == 0   ? NPY_FLOAT
                                 : strcmp(name, "float64") == 0 ? NPY_DOUBLE
                                                                : NPY_HALF);
}

/* How many matrices an array holds. */
static int64_t batch_size(PyArrayObject *array) {
    const int n = PyArray_NDIM(array) - 2;
    return n > 0 ? (int64_t)PyArray_MultiplyList(PyArray_DIMS(array), n) : 1;
}

/* numpy.matmul's broadcasting: strides of missing and of length-1 dimensions are 0 already. */
static int broadcast(operand *a, operand *b, PyArrayObject *arrays[2], smk_batch *batch) {
    operand *both[] = {a, b};
    int n = (a->ndim > b->ndim ? a->ndim : b->ndim) - 2;
    batch->n = n;
    for (int d = 0; d < n; d++) {
        batch->size[d] = 1;
        for (int o = 0; o < 2; o++) {
            int own = d - (n - (both[o]->ndim - 2));
            int64_t size = own < 0 ? 1 : both[o]->dims[own];
            if (size != 1 && batch->size[d] != 1 && size != batch->size[d]) {
                PyObject *shapes[2];
                for (int i = 0; i < 2; i++) {
                    shapes[i] =
                        PyArray_IntTupleFromIntp(PyArray_NDIM(arrays[i]), PyArray_DIMS(arrays[i]));
                }
                if (shapes[0] && shapes[1]) {
                    PyErr_Format(PyExc_ValueError,
                                 "gemm: the batch dimensions of a %R and b %R could not be "
                                 "broadcast together",
                                 shapes[0], shapes[1]);
                }
                Py_XDECREF(shapes[0]);
                Py_XDECREF(shapes[1]);
                return -1;
            }
            batch->size[d] = size != 1 ? size : batch->size[d];
        }
    }
    for (int o = 0; o < 2; o++) {
        int missing = n - (both[o]->ndim - 2);
        for (int d = n - 1; d >= 0; d--) {
            both[o]->matrix.batch[d] = d < missing ? 0 : both[o]->matrix.batch[d - missing];
        }
    }
    return 0;
}

static smk_strides strides_of_both(PyArrayObject *const arrays[2]) {
    const smk_strides of_a = operand_strides(arrays[0], OPERAND_ROW);
    const smk_strides of_b = operand_strides(arrays[1], OPERAND_COLUMN);
    return of_a > of_b ? of_a : of_b;
}

/* A flow copies lines, rows or columns: anything else is packed before. */
static smk_strides strides_of_lines(const request *r, PyArrayObject *const arrays[2]) {
    return r->is_flow && strides_of_both(arrays) == SMK_ROWS_OR_COLUMNS ? SMK_ROWS_OR_COLUMNS
                                                                        : SMK_ROWS;
}

static smk_strides strides_taken(const request *r) {
    const smk_strides own = smk_strides_of(r->row);
    return r->is_flow && own > SMK_ROWS_OR_COLUMNS ? SMK_ROWS_OR_COLUMNS : own;
}

/* A flow's blocks of matrices have such rows, whatever the array has. */
static bool will_be_chunks(const request *r, PyArrayObject *array) {
    return (r->is_flow && PyArray_NDIM(array) <= 2) || operand_is_chunks(array, r->on_device);
}

int request_make_gemm(module_state *state, request *r) {
    const call *asked = r->asked;
    PyArrayObject *arrays[2] = {NULL, NULL};
    const char *dtypes[2];
    smk_gemm *problem = &r->gemm;
    int result = -1;

    problem->alpha = asked->alpha;
    problem->beta = asked->beta;
    for (int i = 0; i < 2; i++) {
        const char *name = call_forms[SMK_GEMM].inputs[i];
        arrays[i] = request_array(state, r, i);
        if (arrays[i] == NULL) {
            goto done;
        }
        dtypes[i] = gemm_dtype(state, arrays[i]);
        if (dtypes[i] == NULL) {
            refuse_gemm_dtype(arrays[i], name);
            goto done;
        }
        if (PyArray_NDIM(arrays[i]) == 0) {
            PyErr_Format(PyExc_ValueError,
                         "gemm: %s has 0 dimensions where at least 1 is needed (signature "
                         "(n?,k),(k,m?)->(n?,m?)); scale with alpha, or with *",
                         name);
            goto done;
        }
    }
    int rows_of_b = PyArray_NDIM(arrays[1]) == 1 ? 0 : PyArray_NDIM(arrays[1]) - 2;
    npy_intp k_a = PyArray_DIM(arrays[0], PyArray_NDIM(arrays[0]) - 1);
    npy_intp k_b = PyArray_DIM(arrays[1], rows_of_b);
    if (k_a != k_b) {
        PyErr_Format(PyExc_ValueError,
                     "gemm: b has a mismatch in its core dimension 0, with signature "
                     "(n?,k),(k,m?)->(n?,m?) (size %zd is different from %zd)",
                     (Py_ssize_t)k_b, (Py_ssize_t)k_a);
        goto done;
    }

    const char *dtype = gemm_result(dtypes);
    const smk_question question = {
        .dtype = dtype,
        .M = PyArray_NDIM(arrays[0]) > 1 ? PyArray_DIM(arrays[0], PyArray_NDIM(arrays[0]) - 2) : 1,
        .N = PyArray_NDIM(arrays[1]) > 1 ? PyArray_DIM(arrays[1], PyArray_NDIM(arrays[1]) - 1) : 1,
        .K = k_a,
        .batch = Py_MAX(batch_size(arrays[0]), batch_size(arrays[1])),
        .strides = r->on_device ? strides_of_both(arrays) : strides_of_lines(r, arrays),
        .aligned = will_be_chunks(r, arrays[0]) && will_be_chunks(r, arrays[1])};
    r->descr = gemm_descr(dtype, arrays[0]);
    if (r->descr == NULL || request_choose_row(state, r, question)) {
        goto done;
    }

    operand *a = &r->inputs[0], *b = &r->inputs[1];
    const smk_strides taken = strides_taken(r);
    if (request_place(state, r, 0, arrays[0], r->descr, OPERAND_ROW, taken) ||
        request_place(state, r, 1, arrays[1], r->descr, OPERAND_COLUMN, taken) ||
        broadcast(a, b, arrays, &problem->batch)) {
        goto done;
    }
    problem->M = a->dims[a->ndim - 2];
    problem->N = b->dims[b->ndim - 1];
    problem->K = k_a;
    if (problem->batch.n + 2 > NPY_MAXDIMS) {
        PyErr_Format(PyExc_ValueError, "gemm: the result would have more than %d dimensions",
                     NPY_MAXDIMS);
        goto done;
    }
    for (int d = 0; d < problem->batch.n; d++) {
        r->dims[r->ndim++] = problem->batch.size[d];
    }
    if (PyArray_NDIM(arrays[0]) > 1) {
        r->dims[r->ndim++] = problem->M;
    }
    if (PyArray_NDIM(arrays[1]) > 1) {
        r->dims[r->ndim++] = problem->N;
    }
    if (request_check_out(r)) {
        goto done;
    }
    if (problem->beta != 0.0 && asked->out == NULL) {
        PyErr_Format(PyExc_ValueError,
                     "gemm: beta scales what is in out; pass out= with it, or leave beta at 0");
        goto done;
    }
    operand_shape vector = PyArray_NDIM(arrays[1]) == 1 ? OPERAND_COLUMN : OPERAND_ROW;
    if (request_place_result(state, r, vector, &problem->batch, problem->M, problem->N,
                             &problem->c)) {
        goto done;
    }
    problem->a = a->matrix;
    problem->b = b->matrix;
    int multiprocessors = 0;
    if ((r->row->split.rate || r->row->wgmma.parts) &&
        device_multiprocessors(state, &r->on, &multiprocessors)) {
        goto done;
    }
    problem->multiprocessors = multiprocessors;
    smk_status status = {0};
    if (smk_plan_gemm(r->row, r->dtype, r->values, problem, &r->plan, &status)) {
        raise_status(state, &status);
        goto done;
    }
    result = 0;

done:
    Py_XDECREF(arrays[0]);
    Py_XDECREF(arrays[1]);
    return result;
}

/* ---- transpose ---- */

static PyArray_Descr *raw_bytes(npy_intp itemsize) {
    PyArray_Descr *descr = PyArray_DescrNewFromType(NPY_VOID);
    if (descr) {
        PyDataType_SET_ELSIZE(descr, itemsize);
    }
    return descr;
}

/* "b8" .. "b128", NULL where elements are no plain bits of such a width. */
static const char *bits_name(PyArrayObject *array) {
    static const char *const names[] = {
        [1] = "b8", [2] = "b16", [4] = "b32", [8] = "b64", [16] = "b128"};
    npy_intp itemsize = PyArray_ITEMSIZE(array);
    if (!PyDataType_ISLEGACY(PyArray_DESCR(array)) || PyDataType_REFCHK(PyArray_DESCR(array)) ||
        itemsize < 1 || itemsize > 16) {
        return NULL;
    }
    return names[itemsize];
}

/* The result's fresh array begins as a copy of the input. To a GPU that would be a copy more than reading the
 * one and writing the other, so there only arrays that are on it already are transposed in place. */
static bool is_in_place_on_emulator(const request *r) {
    PyObject *out = r->asked->out;
    const bool is_out = out == r->asked->inputs[0] && PyArray_CheckExact(out);
    return r->on.emulated && !r->is_flow && r->row->movers.in_place && is_out &&
           r->dims[r->ndim - 1] == r->dims[r->ndim - 2];
}

/* What `auto` asks of the array and of the result. */
static int ask_transpose(module_state *state, const request *r, PyArrayObject *array,
                         smk_question *q) {
    const int ndim = PyArray_NDIM(array);
    q->M = PyArray_DIM(array, ndim - 2);
    q->N = PyArray_DIM(array, ndim - 1);
    q->strides = r->on_device ? operand_strides(array, OPERAND_ROW) : SMK_ROWS;
    if (!r->on_device || r->asked->out == NULL) {
        return 0;
    }
    PyArrayObject *out = request_out_on_device(state, r);
    if (out == NULL) {
        return -1;
    }
    const bool in_place = PyArray_BYTES(out) == PyArray_BYTES(array);
    const smk_strides own = in_place ? SMK_ANY_STRIDES : operand_strides(out, OPERAND_ROW);
    q->strides = Py_MAX(q->strides, own);
    Py_DECREF(out);
    return 0;
}

int request_make_transpose(module_state *state, request *r) {
    PyArrayObject *array = request_array(state, r, 0);
    PyArray_Descr *raw = NULL;
    smk_transpose *problem = &r->transpose;
    int result = -1;

    if (array == NULL) {
        goto done;
    }
    const char *bits = bits_name(array);
    if (bits == NULL) {
        refuse_dtype(array, "transpose", "a",
                     "elements of 1, 2, 4, 8 or 16 bytes without Python references are taken: "
                     "convert it with a.astype(...), or use numpy.swapaxes");
        goto done;
    }
    int ndim = PyArray_NDIM(array);
    if (ndim < 2) {
        PyErr_Format(PyExc_ValueError,
                     "transpose: a has %d dimension%s where at least 2 are needed; make it a "
                     "matrix with a.reshape(1, -1)",
                     ndim, ndim == 1 ? "" : "s");
        goto done;
    }
    r->descr = PyArray_DESCR(array);
    Py_INCREF(r->descr);
    raw = raw_bytes(PyArray_ITEMSIZE(array));
    smk_question question = {.dtype = bits};
    if (raw == NULL || ask_transpose(state, r, array, &question) ||
        request_choose_row(state, r, question)) {
        goto done;
    }
    operand *x = &r->inputs[0];
    if (request_place(state, r, 0, array, raw, OPERAND_ROW, strides_taken(r))) {
        goto done;
    }
    problem->rows = x->dims[ndim - 2];
    problem->cols = x->dims[ndim - 1];
    problem->batch.n = ndim - 2;
    for (int d = 0; d < ndim - 2; d++) {
        problem->batch.size[d] = r->dims[d] = x->dims[d];
    }
    r->ndim = ndim;
    r->dims[ndim - 2] = problem->cols;
    r->dims[ndim - 1] = problem->rows;
    if (request_check_out(r)) {
        goto done;
    }
    if (request_place_result(state, r, OPERAND_ROW, &problem->batch, problem->cols, problem->rows,
                             &problem->y)) {
        goto done;
    }
    problem->x = x->matrix;
    if (is_in_place_on_emulator(r)) {
        r->in_place = true;
        x->buffer = (smk_buffer){0};
        problem->x = problem->y;
    }
    problem->in_place = r->in_place;
    int multiprocessors = 0;
    if (r->row->movers.boxes && device_multiprocessors(state, &r->on, &multiprocessors)) {
        goto done;
    }
    problem->multiprocessors = multiprocessors;
    smk_status status = {0};
    if (smk_plan_transpose(r->row, r->dtype, r->values, problem, &r->plan, &status)) {
        raise_status(state, &status);
        goto done;
    }
    result = 0;

done:
    Py_XDECREF(array);
    Py_XDECREF(raw);
    return result;
}

/* ---- probe ---- */

int request_make_probe(module_state *state, request *r) {
    PyArrayObject *array = request_array(state, r, 0);
    int result = -1;
    if (array == NULL) {
        goto done;
    }
    if (PyArray_TYPE(array) != NPY_FLOAT) {
        refuse_dtype(array, "probe", "x",
                     "float32 is taken: convert it, as in x.astype(numpy.float32)");
        goto done;
    }
    if (PyArray_NDIM(array) != 1) {
        PyErr_Format(PyExc_ValueError,
                     "probe: x has %d dimensions where 1 is needed; flatten it with x.ravel()",
                     PyArray_NDIM(array));
        goto done;
    }
    r->descr = PyArray_DescrFromType(NPY_FLOAT);
    if (r->descr == NULL || request_choose_row(state, r, (smk_question){.dtype = "float32"})) {
        goto done;
    }
    operand *x = &r->inputs[0];
    if (request_place(state, r, 0, array, r->descr, OPERAND_ROW, false)) {
        goto done;
    }

    smk_probe problem = {.n_x = PyArray_DIM(array, 0), .offset_x = x->matrix.offset};
    smk_status status = {0};
    int64_t n_y;
    if (smk_probe_size(r->row, r->dtype, r->values, problem.n_x, &n_y, &status) ||
        smk_plan_probe(r->row, r->dtype, r->values, &problem, &r->plan, &status)) {
        raise_status(state, &status);
        goto done;
    }
    r->ndim = 1;
    r->dims[0] = n_y;
    result = 0;

done:
    Py_XDECREF(array);
    return result;
}
