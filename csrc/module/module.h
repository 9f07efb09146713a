/* What the files of module/ share: Python, NumPy, the module's state, errors. In layers, where each uses
 * those below it:
 *
 *   module.c         the extension module: its functions, and the life of its state
 *
 *   request.c        a call, checked and planned; runs it
 *     operation_gemm.c, operation_transpose.c, operation_probe.c   what is particular to each
 *     host_request.c, device_request.c, device_result.c, device_copies.c   by where the arrays are
 *     choose.c         which variant "auto" is
 *     check.c          which row; whether `out` can take the result
 *   kernel.c         the type Kernel; kernel_source.c compiles, arguments.c and scalar.c pack arguments
 *   tensor_map.c     the type TensorMap
 *
 *   operand.c        an array -> memory that a kernel can read, without a copy where possible
 *   device_array.c   arrays of other libraries, by three protocols (device_interface.c is one);
 *                    device_array_checks.c, array_view.c
 *   result_memory.c  memory of large results, kept for later ones
 *   hold.c           keeps an array's memory while a call works on it
 *
 *   call.c           Python arguments of an operation -> struct call
 *   image.c          where compiled kernels come from
 *   event.c          events of streams, for libraries that reuse memory in their own order
 *   device.c         which device; runs a job on it without the GIL
 *   detached.c       calls without the GIL, and the end of the interpreter
 *
 *   model.c, tables.c   the bank model; variants, devices, configuration, traces as Python objects
 *   state.c          NumPy's C API, exceptions
 *
 * A function that fails sets a Python exception and returns -1 or NULL, as CPython's own do.
 */
#ifndef SMK_MODULE_H
#define SMK_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API  NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION     NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL smemkern_core_numpy
#ifndef SMK_MODULE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <stdatomic.h>

#include "../core/auto.h"
#include "../pipeline/pipeline.h"
#include "../core/plan.h"
#include "../core/registry.h"
#include "../core/status.h"

#define X(code, exception) +1
enum { SMK_N_CODES = 0 SMK_CODE_MAP(X) };
#undef X

/* Attributes and keys that are looked up in every call. X(field, name) */
#define MODULE_NAMES(X)                                                                            \
    X(exchange, "__dlpack_c_exchange_api__")                                                       \
    X(dlpack, "__dlpack__")                                                                        \
    X(dlpack_device, "__dlpack_device__")                                                          \
    X(interface, "__cuda_array_interface__")                                                       \
    X(mask, "mask")                                                                                \
    X(max_version, "max_version")                                                                  \
    X(requires_grad, "requires_grad")                                                              \
    X(is_neg, "is_neg")                                                                            \
    X(is_conj, "is_conj")                                                                          \
    X(terms, "terms")                                                                              \
    X(empty, "empty")                                                                              \
    X(settle, "settle")                                                                            \
    X(new_empty, "new_empty")                                                                      \
    X(data, "data")                                                                                \
    X(shape, "shape")                                                                              \
    X(stream, "stream")                                                                            \
    X(strides, "strides")                                                                          \
    X(typestr, "typestr")

#define X(field, name) PyObject *field;
typedef struct module_names {
    MODULE_NAMES(X)
} module_names;
#undef X

typedef struct module_state {
    PyObject *exceptions[SMK_N_CODES]; /* what each code of core/status.h raises */
    PyTypeObject *kernel_type, *tensor_map_type;
    PyObject *images;           /* dict: see image_of_row */
    PyObject *timings;          /* dict: ordinal of a GPU -> capsule, of choose.c */
    PyObject *image_directory;  /* str; where the build left compiled kernels */
    PyObject *kernel_directory; /* str; where their sources are */
    atomic_bool nvrtc_sought;
    module_names names;
    struct calls *calls; /* detached.c */
    /* NULL before the first use. */
    _Atomic(PyArray_Descr *) bfloat16; /* array_view.c */
    _Atomic(PyObject *) helpers;       /* device_array.c */
    _Atomic(PyObject *) orderly;       /* device_array.c */
} module_state;

/* ---- state.c ---- */

int state_import_numpy(void);
int state_make_exceptions(PyObject *module, module_state *state);

/* Raises what status says; returns NULL. */
void *raise_status(const module_state *state, const smk_status *status);

/* ---- device.c ---- */

/* Of a str, for names: as PyUnicode_AsUTF8, but a null character within is refused, not an end. */
const char *text_of(PyObject *given);

typedef struct device {
    bool emulated;
    int ordinal; /* of "cuda" */
} device;

/* "emu", "cuda", "cuda:1"; None: "cuda" if there is one, else "emu". */
int device_read(const module_state *state, PyObject *given, device *out);

/* Of the device, or of the GPU that the emulator stands for. */
int device_multiprocessors(const module_state *state, const device *on, int *out);

/* Of a GPU: 90 for compute capability 9.0. */
int device_sm(const module_state *state, const device *on, int *out);

/* None (NULL), the address of a CUstream as an int, or an object with __cuda_stream__. */
int stream_read(PyObject *given, void **out);

/* Raises that the emulator has none. */
int stream_refuse(void);

/* Runs the job, or flows on GPUs (ordinals NULL: the only one on the emulator), with the GIL released,
 * listening for signals. */
int device_run(const module_state *state, const device *on, smk_job *job, PyObject *progress,
               double timeout);
int device_run_pipelines(const module_state *state, const int *ordinals, smk_pipeline *flows, int n,
                         PyObject *progress);

/* The parameters of an entry (NULL: the only one) of the PTX, a bytes; read without the GIL, too. */
struct emu_signature;
int device_read_signature(const module_state *state, PyObject *ptx, const char *entry,
                          struct emu_signature *out);

/* What this thread's last run on a GPU moved: a tuple with smk_transfer's fields, or None. */
PyObject *device_last_transfer(void);

/* Gives back what a GPU's runs keep for later ones; the number of bytes. */
PyObject *device_trim(const module_state *state, PyObject *given);

/* ---- image.c ---- */

/* A new reference, since another thread, or code that runs meanwhile, may change the dict. NULL
 * without an exception if it is not there. */
PyObject *dict_item(PyObject *dict, PyObject *key);

/* The compiled kernel of a row; *owner keeps its memory. */
int image_of_row(module_state *state, const smk_row *row, const smk_dtype *dtype,
                 const int64_t *values, bool emulated, smk_image *out, PyObject **owner);

/* Tells the core where NVIDIA's wheel has put NVRTC, if it is installed. */
int image_find_nvrtc(module_state *state);

/* CUDA C++ to PTX by NVRTC. `entry`: see nvrtc_compile, or NULL. `headers`: name, text pairs or
 * NULL. A new bytes. */
struct nvrtc_header;
PyObject *image_compile(module_state *state, const char *source, const char *file_name,
                        const char *entry, const struct nvrtc_header *headers, int n_headers,
                        const char *const *options, int n_options);

/* ---- what is asked beside the result (gemm and Kernel alike) ---- */

typedef struct observation {
    int repeat;             /* more runs, each timed */
    float *milliseconds;    /* `repeat` of them */
    smk_trace *trace;       /* counts; on the emulator only */
    const uint64_t *blocks; /* as in smk_job */
    size_t n_blocks;
    unsigned hazards;   /* of a traced run: flags as in core/job.h */
    bool only_if_clean; /* a Kernel's arrays are written only if no hazard was found */
    PyObject *progress; /* on the emulator: called with blocks done and in all; or NULL */
} observation;

/* ---- hold.c ---- */

/* A new view of the array, whose memory nobody resizes as long as *hold lives: a new reference, or NULL where the
 * memory is not NumPy's. */
PyArrayObject *array_hold(PyArrayObject *array, PyObject **hold);

/* ---- kernel.c ---- */

extern PyType_Spec kernel_spec, tensor_map_spec;
PyObject *kernel_launch(module_state *state, PyObject *kernel, PyObject *args, PyObject *kwargs,
                        const observation *observed);

/* ---- moment.c ---- */

PyObject *moment_make(const module_state *state, PyObject *args);
PyObject *moment_has_passed(PyObject *capsule);
PyObject *moment_before(const module_state *state, PyObject *args);

/* ---- model.c ---- */

PyObject *model_shared_requests(PyObject *module, PyObject *args);

/* ---- tables.c ---- */

PyObject *table_variants(void);
PyObject *table_devices(const module_state *state);
PyObject *table_config(module_state *state);
PyObject *table_trace(const smk_trace *trace);

#endif
