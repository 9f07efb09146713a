/* gemm: checks the arrays, and sets up the product. */
#include "request.h"

/* "float32", "float64", "float16" or "bfloat16"; NULL: any other type. */
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
    return request_refuse_dtype(array, "gemm", name, remedy);
}

/* The result's type, by NumPy's promotion: float64 before float32; float16 with bfloat16 gives
 * float32. */
static const char *gemm_result(const char *const names[2]) {
    if (strcmp(names[0], names[1]) == 0) return names[0];
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

/* The number of matrices in an array. */
static int64_t batch_size(PyArrayObject *array) {
    const int n = PyArray_NDIM(array) - 2;
    return n > 0 ? (int64_t)PyArray_MultiplyList(PyArray_DIMS(array), n) : 1;
}

/* numpy.matmul's broadcasting: strides of missing and of length-1 dimensions are 0 already. */
static int broadcast(operand *a, operand *b, PyArrayObject *const *arrays, smk_batch *batch) {
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
        for (int d = n - 1; d >= 0; d--)
            both[o]->matrix.batch[d] = d < missing ? 0 : both[o]->matrix.batch[d - missing];
    }
    return 0;
}

static smk_strides strides_of_both(PyArrayObject *const *arrays) {
    const smk_strides of_a = operand_strides(arrays[0], OPERAND_ROW);
    const smk_strides of_b = operand_strides(arrays[1], OPERAND_COLUMN);
    return of_a > of_b ? of_a : of_b;
}

/* Pipelines copy contiguous rows or columns. Other arrays are packed first, so they count as
 * rows. */
static smk_strides strides_after_packing(const request *r, PyArrayObject *const *arrays) {
    return r->is_pipeline && strides_of_both(arrays) == SMK_ROWS_OR_COLUMNS ? SMK_ROWS_OR_COLUMNS
                                                                            : SMK_ROWS;
}

/* A pipeline copies matrices to blocks with aligned rows, whatever the array's alignment is. */
static smk_alignment alignment_of(const request *r, PyArrayObject *array) {
    return r->is_pipeline && PyArray_NDIM(array) <= 2 ? SMK_ALIGN_32
                                                      : operand_alignment(array, r->on_device);
}

static int check(module_state *state, request *r, PyArrayObject *const *arrays, smk_query *query) {
    const char *dtypes[2];
    for (int i = 0; i < 2; i++) {
        const char *name = call_forms[SMK_GEMM].inputs[i];
        dtypes[i] = gemm_dtype(state, arrays[i]);
        if (dtypes[i] == NULL) return refuse_gemm_dtype(arrays[i], name);
        if (PyArray_NDIM(arrays[i]) == 0) {
            PyErr_Format(PyExc_ValueError,
                         "gemm: %s has 0 dimensions where at least 1 is needed (signature "
                         "(n?,k),(k,m?)->(n?,m?)); scale with alpha, or with *",
                         name);
            return -1;
        }
    }
    const int rows_of_b = PyArray_NDIM(arrays[1]) == 1 ? 0 : PyArray_NDIM(arrays[1]) - 2;
    const npy_intp k_a = PyArray_DIM(arrays[0], PyArray_NDIM(arrays[0]) - 1);
    const npy_intp k_b = PyArray_DIM(arrays[1], rows_of_b);
    if (k_a != k_b) {
        PyErr_Format(PyExc_ValueError,
                     "gemm: b has a mismatch in its core dimension 0, with signature "
                     "(n?,k),(k,m?)->(n?,m?) (size %zd is different from %zd)",
                     (Py_ssize_t)k_b, (Py_ssize_t)k_a);
        return -1;
    }
    *query = (smk_query){
        .dtype = gemm_result(dtypes),
        .M = PyArray_NDIM(arrays[0]) > 1 ? PyArray_DIM(arrays[0], PyArray_NDIM(arrays[0]) - 2) : 1,
        .N = PyArray_NDIM(arrays[1]) > 1 ? PyArray_DIM(arrays[1], PyArray_NDIM(arrays[1]) - 1) : 1,
        .K = k_a,
        .batch = Py_MAX(batch_size(arrays[0]), batch_size(arrays[1])),
        .strides = r->on_device ? strides_of_both(arrays) : strides_after_packing(r, arrays),
        .alignment = Py_MIN(alignment_of(r, arrays[0]), alignment_of(r, arrays[1])),
        .k_major = {operand_is_k_major(arrays[0], OPERAND_ROW),
                    operand_is_k_major(arrays[1], OPERAND_COLUMN)}};
    r->descr = gemm_descr(query->dtype, arrays[0]);
    return r->descr ? 0 : -1;
}

static int place(module_state *state, request *r, PyArrayObject *const *arrays) {
    operand *a = &r->inputs[0], *b = &r->inputs[1];
    smk_gemm *problem = &r->gemm;
    const smk_strides taken = request_strides_taken(r);
    if (request_place(state, r, 0, arrays[0], r->descr, OPERAND_ROW, taken) ||
        request_place(state, r, 1, arrays[1], r->descr, OPERAND_COLUMN, taken) ||
        broadcast(a, b, arrays, &problem->batch)) {
        return -1;
    }
    problem->M = a->dims[a->ndim - 2];
    problem->N = b->dims[b->ndim - 1];
    problem->K = a->dims[a->ndim - 1];
    problem->a = a->matrix;
    problem->b = b->matrix;
    problem->alpha = r->call->alpha;
    problem->beta = r->call->beta;
    if (problem->batch.n + 2 > NPY_MAXDIMS) {
        PyErr_Format(PyExc_ValueError, "gemm: the result would have more than %d dimensions",
                     NPY_MAXDIMS);
        return -1;
    }
    for (int d = 0; d < problem->batch.n; d++)
        r->dims[r->ndim++] = problem->batch.size[d];
    if (PyArray_NDIM(arrays[0]) > 1) r->dims[r->ndim++] = problem->M;
    if (PyArray_NDIM(arrays[1]) > 1) r->dims[r->ndim++] = problem->N;
    return 0;
}

static int place_result(module_state *state, request *r, PyArrayObject *const *arrays) {
    smk_gemm *problem = &r->gemm;
    if (problem->beta != 0.0 && r->call->out == NULL) {
        PyErr_Format(PyExc_ValueError,
                     "gemm: beta scales what is in out; pass out= with it, or leave beta at 0");
        return -1;
    }
    const operand_shape vector = PyArray_NDIM(arrays[1]) == 1 ? OPERAND_COLUMN : OPERAND_ROW;
    return request_place_result(state, r, vector, &problem->batch, problem->M, problem->N,
                                &problem->c);
}

static smk_code plan(request *r, int multiprocessors, smk_status *status) {
    r->gemm.multiprocessors = multiprocessors;
    r->gemm.clusters = r->clusters;
    return smk_plan_gemm(r->variant, r->dtype, r->values, &r->gemm, &r->plan, status);
}

const operation operation_gemm = {check, place, place_result, plan};
