/* A checked and planned call, ready to run. */
#ifndef SMK_REQUEST_H
#define SMK_REQUEST_H

#include "call.h"
#include "device_array.h"
#include "operand.h"

typedef struct request {
    const call *call;
    device on;
    const smk_variant *variant;
    const smk_dtype *dtype;
    int64_t values[SMK_MAX_PARAMS];
    operand inputs[CALL_MAX_INPUTS];
    int n_inputs;
    bool on_device; /* all arrays are in the memory of the GPU `on`, and are used there */
    /* Host arrays are computed block by block: every gemm and transpose on a GPU, and those with
     * max_memory on the emulator. */
    bool is_pipeline;
    void *stream;
    void *after[CALL_MAX_INPUTS + 1]; /* streams whose enqueued work must finish first */
    size_t n_after;
    device_array arrays[CALL_MAX_INPUTS + 1]; /* inputs, then `out`; unset for NumPy arrays */
    PyObject *holds[CALL_MAX_INPUTS + 1];     /* the same, for host arrays: see array_hold */
    PyObject *written; /* on_device: the caller's `out`, or a new array of the same library */
    operand result;    /* on_device: the memory that the kernels write */
    struct device_copies *copies; /* on_device: before and after the kernels; NULL: none */
    bool in_place;                /* transpose: the result is stored over the input */
    PyArray_Descr *descr;         /* of the result */
    int ndim;                     /* of the result */
    npy_intp dims[NPY_MAXDIMS];
    bool clusters;           /* the variant splits K among blocks of a cluster; the device can */
    smk_gemm gemm;           /* the problem; offsets are into the operands' buffers */
    smk_transpose transpose; /* likewise */
    smk_probe probe;         /* likewise */
    smk_plan plan;
    double seconds; /* predicted duration of the product on the GPU; 0: not known */
} request;

/* Checks and plans a call; raises all argument errors before anything runs. `emulate`: the call
 * must run on the emulator, so device None means "emu". Call request_clear even on failure. */
int request_make(module_state *state, const call *given, bool emulate, request *out);
void request_clear(request *r);

/* Runs the request; returns a new array, or the caller's `out`. */
PyObject *request_run(module_state *state, request *r, const observation *observed);

/* The plan as a dict, for tests. */
PyObject *request_describe(const request *r);

/* ---- shared by the files of a request: check.c, operation_*.c, device_request.c, device_result.c,
 * device_copies.c, host_request.c ---- */

/* Sets the variant, its entry for the query's dtype ("float32", "b16"), and its parameters. The
 * operation has filled its own fields of the query. */
int request_choose_variant(module_state *state, request *r, smk_query query);

/* ---- arrays in GPU memory ---- */

/* The label of input i in messages; the index after the last input is `out`. */
array_label request_label(const request *r, int i);

/* Raises: the elements have another type, or are not aligned. Returns -1. */
int request_refuse_elements(const request *r, const char *name, PyArrayObject *array,
                            PyArray_Descr *wanted);

/* ---- all arrays ---- */

/* Finds where the arrays are; sets the device and the stream of the call. */
int request_find_arrays(module_state *state, request *r, bool emulate);

/* Input i as a NumPy array, a new reference. For an array in GPU memory it is a view whose data
 * must not be dereferenced. */
PyArrayObject *request_array(module_state *state, request *r, int i);

/* The same for the caller's `out` in GPU memory. */
PyArrayObject *request_out_on_device(module_state *state, const request *r);

/* operand_place, or operand_place_on_device with a copy on the GPU if one is needed. */
int request_place(module_state *state, request *r, int i, PyArrayObject *array,
                  PyArray_Descr *wanted, operand_shape one_dimensional, smk_strides taken);

/* Sets *out: where the kernels write the result's matrices. `shape`: whether a 1-D result is a row
 * or a column. */
int request_place_result(module_state *state, request *r, operand_shape shape,
                         const smk_batch *batch, int64_t rows, int64_t cols, smk_matrix *out);

/* on_device: the array that the call returns once all work is enqueued. A new reference. */
PyObject *request_finalize(module_state *state, const request *r);

/* A view of the caller's `out`, whose memory is held until request_clear. NULL with an exception:
 * `out` no longer fits. */
PyArrayObject *request_hold_out(request *r);

/* Raises unless `out` takes the result's type (takes_type), has its shape, and is writable. */
int request_fits_result(const request *r, PyArrayObject *out, bool takes_type);

/* Raises unless `out` is a writable array of the result's shape, of a type that takes the
 * result. */
int request_check_out(const request *r);

/* request_run if is_pipeline. */
PyObject *request_run_pipeline(module_state *state, request *r);

/* ---- operation_gemm.c, operation_transpose.c, operation_probe.c ----
 *
 * The steps that differ between operations, in the order in which request_make calls them.
 * `arrays`: the inputs, as NumPy arrays. Each returns -1, with an exception, if an argument is
 * invalid. */
typedef struct operation {
    /* Checks types and shapes; sets r->descr, and the query that selects the variant. */
    int (*check)(module_state *state, request *r, PyArrayObject *const *arrays, smk_query *query);
    /* Sets the inputs' memory, the problem's sizes and the result's shape. */
    int (*place)(module_state *state, request *r, PyArrayObject *const *arrays);
    /* Sets the result's memory. A host `out` has already been checked. */
    int (*place_result)(module_state *state, request *r, PyArrayObject *const *arrays);
    smk_code (*plan)(request *r, int multiprocessors, smk_status *status);
} operation;

extern const operation operation_gemm, operation_transpose, operation_probe;

int request_refuse_dtype(PyArrayObject *array, const char *op, const char *name,
                         const char *remedy);

/* The strides that the variant, or the copies of a pipeline, support. */
smk_strides request_strides_taken(const request *r);

#endif
