/* A call whose arguments have been checked and planned: what remains is to run it. */
#ifndef SMK_REQUEST_H
#define SMK_REQUEST_H

#include "call.h"
#include "device_array.h"
#include "operand.h"

typedef struct request {
    const call *asked;
    device on;
    const smk_row *row;
    const smk_dtype *dtype;
    int64_t values[SMK_MAX_PARAMS];
    operand inputs[CALL_MAX_INPUTS];
    int n_inputs;
    bool on_device;   /* all arrays are in the memory of the GPU `on`, and are used there */
    bool is_pipeline; /* host arrays go through the device in blocks: on a GPU all, on the emulator
                     * those of a call with max_memory */
    void *stream;
    void *after[CALL_MAX_INPUTS + 1]; /* streams whose queued work comes first */
    size_t n_after;
    device_array arrays[CALL_MAX_INPUTS + 1]; /* the inputs and `out`, unless NumPy's */
    PyObject *holds[CALL_MAX_INPUTS + 1];     /* likewise, of those in host memory: array_hold */
    PyObject *written; /* on_device: the caller's `out`, or a new array of the same library */
    operand result;    /* on_device: as a kernel writes it */
    struct device_copies *copies; /* on_device: before and behind the kernels; NULL: none */
    bool in_place;                /* a transpose: the result is the input, element by element */
    PyArray_Descr *descr;         /* of the result */
    int ndim;                     /* of the result */
    npy_intp dims[NPY_MAXDIMS];
    smk_gemm gemm;           /* the problem, with places in the operands' buffers */
    smk_transpose transpose; /* likewise */
    smk_probe probe;         /* likewise */
    smk_plan plan;
    double seconds; /* that a product is expected to take on the GPU; 0: not known */
} request;

/* Everything that can be wrong with a call is found here, before anything runs. request_clear is
 * due in any case. `emulate` is what device None means to the caller: "emu", not the best there is.
 */
int request_make(module_state *state, const call *asked, bool emulate, request *out);
void request_clear(request *r);

/* Runs it; the result is a new array, or the caller's `out`. */
PyObject *request_run(module_state *state, request *r, const observation *observed);

/* The plan as a dict, for tests. */
PyObject *request_describe(const request *r);

/* ---- between the files of a request: check.c, operations.c, device_request.c,
 * device_result.c, device_copies.c, host_request.c ---- */

/* Picks the row, its entry for the question's dtype ("float32", "b16"), and the values of its parameters.
 * Of the question, what is particular to the operation has been filled in. */
int request_choose_row(module_state *state, request *r, smk_query question);

/* ---- of arrays on a device ---- */

/* What messages call input i, or `out` behind them. */
array_label request_label(const request *r, int i);

/* Raises that the elements are of another type, or no whole ones. -1. */
int request_refuse_elements(const request *r, const char *name, PyArrayObject *array,
                            PyArray_Descr *wanted);

/* ---- of all ---- */

/* Where the arrays are, and so where the call runs. */
int request_find_arrays(module_state *state, request *r, bool emulate);

/* Input i as a NumPy array; of one on a device it is a view that is only looked at. A new reference. */
PyArrayObject *request_array(module_state *state, request *r, int i);

/* The caller's out, on a device, as a view that is only looked at. A new reference. */
PyArrayObject *request_out_on_device(module_state *state, const request *r);

/* operand_place, wherever the array is. */
int request_place(module_state *state, request *r, int i, PyArrayObject *array,
                  PyArray_Descr *wanted, operand_shape one_dimensional, smk_strides taken);

/* Where the result's matrices are to be written. `shape`: what a result of one dimension is. */
int request_place_result(module_state *state, request *r, operand_shape shape,
                         const smk_batch *batch, int64_t rows, int64_t cols, smk_matrix *out);

/* What the caller gets, on a device, when all is queued. A new reference. */
PyObject *request_settle(module_state *state, const request *r);

/* A view of the caller's out, whose memory stays as long as the request. NULL: it no longer fits. */
PyArrayObject *request_hold_out(request *r);

/* An array that can take the result: of its type, as has been found out, of its shape, and writable. */
int request_fits_result(const request *r, PyArrayObject *out, bool same_type);

/* `out` is a writable array of exactly the result's shape and type. */
int request_check_out(const request *r);

/* request_run on arrays in host memory and a GPU. */
PyObject *request_run_pipeline(module_state *state, request *r);

/* ---- operation_gemm.c, operation_transpose.c, operation_probe.c ----
 *
 * What is particular to an operation, in the order in which request_make calls it. `arrays`: the inputs, as
 * NumPy arrays. Each returns -1, with an exception, if the call is wrong. */
typedef struct operation {
    /* Types and shapes: fills r->descr, and the query by which a variant is chosen. */
    int (*check)(module_state *state, request *r, PyArrayObject *const *arrays, smk_query *query);
    /* The inputs' memory, the problem's sizes, the result's shape. */
    int (*place)(module_state *state, request *r, PyArrayObject *const *arrays);
    /* The result's memory. `out` has been checked. */
    int (*place_result)(module_state *state, request *r, PyArrayObject *const *arrays);
    smk_code (*plan)(request *r, int multiprocessors, smk_status *status);
} operation;

extern const operation operation_gemm, operation_transpose, operation_probe;

int request_refuse_dtype(PyArrayObject *array, const char *op, const char *name,
                         const char *remedy);

/* The strides that the variant, or the copies of a pipeline, can take. */
smk_strides request_strides_taken(const request *r);

#endif
