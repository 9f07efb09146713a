/* probe: checks x, a 1-D float32 array that must be as long as the variant needs. */
#include "request.h"

static int check(module_state *state, request *r, PyArrayObject *const *arrays, smk_query *query) {
    (void)state;
    if (PyArray_TYPE(arrays[0]) != NPY_FLOAT) {
        return request_refuse_dtype(arrays[0], "probe", "x",
                                    "float32 is taken: convert it, as in x.astype(numpy.float32)");
    }
    if (PyArray_NDIM(arrays[0]) != 1) {
        PyErr_Format(PyExc_ValueError,
                     "probe: x has %d dimensions where 1 is needed; flatten it with x.ravel()",
                     PyArray_NDIM(arrays[0]));
        return -1;
    }
    *query = (smk_query){.dtype = "float32"};
    r->descr = PyArray_DescrFromType(NPY_FLOAT);
    return r->descr ? 0 : -1;
}

static int place(module_state *state, request *r, PyArrayObject *const *arrays) {
    smk_status status = {0};
    int64_t n_y;
    if (request_place(state, r, 0, arrays[0], r->descr, OPERAND_ROW, SMK_ROWS)) return -1;
    r->probe =
        (smk_probe){.n_x = PyArray_DIM(arrays[0], 0), .offset_x = r->inputs[0].matrix.offset};
    if (smk_probe_size(r->variant, r->dtype, r->values, r->probe.n_x, &n_y, &status)) {
        raise_status(state, &status);
        return -1;
    }
    r->ndim = 1;
    r->dims[0] = n_y;
    return 0;
}

static int place_result(module_state *state, request *r, PyArrayObject *const *arrays) {
    (void)state, (void)r, (void)arrays; /* always a new array in host memory */
    return 0;
}

static smk_code plan(request *r, int multiprocessors, smk_status *status) {
    (void)multiprocessors;
    return smk_plan_probe(r->variant, r->dtype, r->values, &r->probe, &r->plan, status);
}

const operation operation_probe = {check, place, place_result, plan};
