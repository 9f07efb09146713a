/* Shared by the files of module/: Python, NumPy, the module's state, errors. The files form layers;
 * each layer uses only those below it:
 *
 *   module.c         the extension module: its functions, and its state
 *
 *   request.c        checks, plans and runs a call
 *     operation_gemm.c, operation_transpose.c, operation_probe.c   the steps that differ
 *     host_request.c, device_request.c, device_result.c, device_copies.c   by where the arrays are
 *     choose.c         selects the variant for "auto"
 *     check.c          finds the variant; checks that `out` fits the result
 *   kernel.c         the type Kernel; kernel_source.c has its source compiled; arguments.c and
 *                    scalar.c pack arguments
 *   tensor_map.c     the type TensorMap; texture.c: the types Texture and Surface
 *
 *   operand.c        an array -> memory that a kernel can read, without a copy where possible
 *   device_array.c   arrays of other libraries, by three protocols (device_interface.c is one);
 *                    device_array_checks.c, array_view.c
 *   result_memory.c  reuses the memory of large results
 *   hold.c           keeps an array's memory and shape during a call
 *
 *   call.c           Python arguments of an operation -> struct call
 *   image.c          loads or compiles kernel images; compile.c: NVRTC and the cache, for Python
 *   event.c          CUDA events, for libraries that reuse memory in their own order
 *   device.c         parses device=; runs jobs and pipelines without the GIL
 *   detached.c       releases the GIL; stops calls when the interpreter exits
 *
 *   model.c, tables.c   the bank model; variants, devices, configuration, traces as Python objects
 *   state.c          NumPy's C API, exceptions
 *
 * Functions follow CPython: on failure they set a Python exception and return -1 or NULL.
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

/* Attributes and keys that calls look up, as interned strings. X(field, name) */
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
    X(stream_info, "stream_info")                                                                  \
    X(empty, "empty")                                                                              \
    X(finalize, "finalize")                                                                        \
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
    PyObject *exceptions[SMK_N_CODES]; /* the exception of each code of core/status.h */
    PyTypeObject *kernel_type, *tensor_map_type, *texture_type, *surface_type;
    PyObject *tensor_maps; /* WeakValueDictionary by handle: see tensor_map.h */
    unsigned char tensor_map_mark[16];
    PyObject *images;           /* dict: see variant_image */
    PyObject *timings;          /* dict: ordinal of a GPU -> capsule, of choose.c */
    PyObject *image_directory;  /* str: the build's compiled kernels */
    PyObject *kernel_directory; /* str: the kernels' sources */
    atomic_bool nvrtc_searched;
    module_names names;
    struct calls *calls; /* detached.c */
    /* NULL before the first use. */
    _Atomic(PyArray_Descr *) bfloat16;  /* array_view.c */
    _Atomic(PyObject *) device_arrays;  /* device_array.c */
    _Atomic(PyObject *) stream_ordered; /* device_array.c */
    atomic_int watchers;                /* smemkern.watch() contexts that are open: module.c */
} module_state;

/* ---- module.c ---- */

/* A call while a smemkern.watch() is open: smemkern._trace.watch counts it. `what` is a Kernel
 * or the name of an operation; kwargs may be NULL. */
PyObject *call_watched(PyObject *what, PyObject *args, PyObject *kwargs);

/* ---- state.c ---- */

int state_import_numpy(void);
int state_make_exceptions(PyObject *module, module_state *state);

/* Raises the status' exception with its message; returns NULL. */
void *raise_status(const module_state *state, const smk_status *status);

/* The same, with the log of a compiler below the message; NULL: none. */
void *raise_with_log(const module_state *state, const smk_status *status, const char *log);

/* ---- device.c ---- */

/* PyUnicode_AsUTF8 that refuses embedded null characters. */
const char *text_of(PyObject *given);

typedef struct device {
    bool emulated;
    bool by_default; /* emulated because device is None and there is no GPU */
    int ordinal;     /* of "cuda" */
} device;

/* "emu", "cuda", "cuda:1"; None: "cuda" if there is one, else "emu". */
int device_read(const module_state *state, PyObject *given, device *out);

/* The number of multiprocessors; on the emulator that of the GPU that it models. */
int device_multiprocessors(const module_state *state, const device *on, int *out);

/* The GPU's compute capability as an integer: 90 for 9.0. */
int device_sm(const module_state *state, const device *on, int *out);

/* Reads stream=: None (NULL), the address of a CUstream as an int, or an object with
 * __cuda_stream__. */
int stream_read(PyObject *given, void **out);

/* Raises: the emulator has no streams. */
int stream_refuse(void);

/* Runs a job, or one pipeline per GPU (ordinals NULL: one pipeline on the emulator), with the GIL
 * released. Polls for signals. */
int device_run(const module_state *state, const device *on, smk_job *job, PyObject *progress,
               double timeout);
int device_run_pipelines(const module_state *state, const int *ordinals, smk_pipeline *pipelines,
                         int n, PyObject *progress);

/* Parses the parameters of an entry (NULL: the only one) of the PTX (bytes), with the GIL
 * released. */
struct emu_signature;
int device_read_signature(const module_state *state, PyObject *ptx, const char *entry,
                          struct emu_signature *out);

/* The transfers of this thread's last run on a GPU, or last pipeline: a tuple of smk_transfer's
 * fields, or None. */
PyObject *device_last_transfer(void);

/* Frees the memory that is kept for later calls; returns the number of bytes. */
PyObject *device_trim(const module_state *state, PyObject *given);

/* ---- image.c ---- */

/* Like PyDict_GetItem, but a new reference, since another thread may change the dict. NULL without
 * an exception: no such key. */
PyObject *dict_item(PyObject *dict, PyObject *key);

/* The compiled kernel of a variant; *owner keeps its memory. `clusters`: as the plan was made. */
int variant_image(module_state *state, const smk_variant *variant, const smk_dtype *dtype,
                  const int64_t *values, bool emulated, bool clusters, smk_image *out,
                  PyObject **owner);

/* Finds the NVRTC library of NVIDIA's wheel, if it is installed, and sets its path. */
int image_find_nvrtc(module_state *state);

/* The directory that caches compiled PTX between processes: SMEMKERN_CACHE_DIR, or by the XDG
 * rules. */
void image_cache_directory(char *out, size_t size);

/* Compiles CUDA C++ to PTX with NVRTC; returns new bytes. `entry`: see nvrtc_compile, or NULL.
 * `headers`: (name, text) pairs, or NULL. `cached`: through the cache on disk. */
struct nvrtc_header;
PyObject *image_compile(module_state *state, const char *source, const char *file_name,
                        const char *entry, const struct nvrtc_header *headers, int n_headers,
                        const char *const *options, int n_options, bool cached);

/* ---- compile.c: for smemkern/_compiler/compile.py ---- */

PyObject *core_nvrtc_compile(PyObject *module, PyObject *args);
PyObject *core_cache_load(PyObject *module, PyObject *given);
PyObject *core_cache_store(PyObject *module, PyObject *args);

/* ---- timing, traces and hazard detection, for operations and Kernels ---- */

typedef struct observation {
    int repeat;             /* additional runs, each timed */
    float *milliseconds;    /* `repeat` of them */
    smk_trace *trace;       /* filled by a traced run on the emulator; NULL: none */
    const uint64_t *blocks; /* as in smk_job */
    size_t n_blocks;
    unsigned hazards;         /* of a traced run: flags as in core/job.h */
    bool only_if_clean;       /* a Kernel's arrays are written only if no hazard was found */
    smk_recording *recording; /* filled by a run on the emulator; NULL: none */
    PyObject *places;   /* of a recorded Kernel: [(argument, buffer, offset), ...]; else NULL */
    PyObject *progress; /* on the emulator: called with (blocks done, total), or NULL */
} observation;

/* ---- hold.c ---- */

/* A new view of the array. Its memory cannot be resized while *hold exists: a new reference, or
 * NULL if the memory is not NumPy's. */
PyArrayObject *array_hold(PyArrayObject *array, PyObject **hold);

/* ---- kernel.c ---- */

extern PyType_Spec kernel_spec, tensor_map_spec, texture_spec, surface_spec;
PyObject *kernel_launch(module_state *state, PyObject *kernel, PyObject *args, PyObject *kwargs,
                        observation *observed);

/* ---- event.c ---- */

PyObject *event_record(const module_state *state, PyObject *args);
PyObject *event_query(PyObject *capsule);
PyObject *stream_wait_event(const module_state *state, PyObject *args);

/* ---- model.c ---- */

PyObject *model_shared_requests(PyObject *module, PyObject *args);

/* explain.c */
PyObject *model_layouts(PyObject *module, PyObject *args);
PyObject *model_explain_request(PyObject *module, PyObject *args);
PyObject *model_explain_layout(PyObject *module, PyObject *args);
PyObject *model_explain_hazard(PyObject *module, PyObject *args);
PyObject *model_explain_element(PyObject *module, PyObject *args);
PyObject *model_shared_arrays(PyObject *module, PyObject *args);

/* ---- tables.c ---- */

PyObject *table_variants(void);
PyObject *table_devices(const module_state *state);
PyObject *table_config(module_state *state);
PyObject *table_trace(const smk_trace *trace);
/* The kinds of findings that are no hazards. */
PyObject *table_benign_kinds(void);

#endif
