/* The type smemkern.Kernel: a kernel of the user's own, from PTX or CUDA C++. Immutable once made.
 */
#include "arguments.h"
#include "kernel_source.h"

#include "../cuda/gpu.h"

typedef struct kernel {
    PyObject_HEAD
    PyObject *source; /* str, as given */
    PyObject *ptx;    /* bytes */
    PyObject *key;    /* str: identity of the image; equal text, equal key */
    emu_signature signature;
    bool check; /* each call looks for hazards, and raises if there are any */
} kernel;

/* ---- making one ---- */

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"source_or_ptx", "name", "options", "check", NULL};
    module_state *state = PyType_GetModuleState(type);
    const char *source, *name;
    PyObject *options = NULL;
    int check = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sz|O$p:Kernel", keywords, &source, &name,
                                     &options, &check)) {
        return NULL;
    }
    kernel_source read = {0};
    smk_status status = {0};
    const char *entry = NULL;
    kernel *self = (kernel *)type->tp_alloc(type, 0);
    if (self == NULL || kernel_source_read(state, source, name, options, &read)) {
        goto fail;
    }
    self->check = check;
    self->ptx = read.ptx;
    self->source = PyUnicode_FromString(source);
    if (self->source == NULL) {
        goto fail;
    }
    self->key = kernel_source_key(self->ptx);
    if (self->key == NULL || (read.entry && (entry = PyUnicode_AsUTF8(read.entry)) == NULL)) {
        goto fail;
    }
    if (emu_signature_read(PyBytes_AS_STRING(self->ptx), (size_t)PyBytes_GET_SIZE(self->ptx), entry,
                           &self->signature, &status)) {
        raise_status(state, &status);
        goto fail;
    }
    Py_XDECREF(read.entry);
    return (PyObject *)self;

fail:
    Py_XDECREF(read.entry);
    Py_XDECREF(self);
    return NULL;
}

static void kernel_dealloc(kernel *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->source);
    Py_XDECREF(self->ptx);
    Py_XDECREF(self->key);
    emu_signature_free(&self->signature);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- launching ---- */

/* An int, or a tuple of up to three, each 1..its limit. */
static int read_extent(PyObject *given, const char *name, const uint32_t limit[3],
                       uint32_t out[3]) {
    PyObject *items = PyTuple_Check(given) ? Py_NewRef(given) : PyTuple_Pack(1, given);
    int result = -1;
    if (items == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n < 1 || n > 3) {
        PyErr_Format(PyExc_ValueError, "%s must be an int or a tuple of 1 to 3, not of %zd", name,
                     n);
        goto done;
    }
    for (int i = 0; i < 3; i++) {
        out[i] = 1;
        if (i >= n) {
            continue;
        }
        Py_ssize_t value = PyNumber_AsSsize_t(PyTuple_GET_ITEM(items, i), NULL);
        if (value == -1 && PyErr_Occurred()) {
            goto done;
        }
        if (value < 1 || (size_t)value > limit[i]) {
            PyErr_Format(PyExc_ValueError, "%s.%c = %zd is not within 1..%lu", name, "xyz"[i],
                         value, (unsigned long)limit[i]);
            goto done;
        }
        out[i] = (uint32_t)value;
    }
    result = 0;
done:
    Py_DECREF(items);
    return result;
}

static bool may_write(const observation *observed) {
    return !observed->trace->incomplete &&
           !(observed->only_if_clean && observed->trace->n_hazards > 0);
}

/* The device that the caller names, the arrays are on, or a trace needs. */
static int choose_device(const module_state *state, const arguments *given, PyObject *named,
                         PyObject *stream_given, bool traced, device *on) {
    bool on_gpu = given->first >= 0;
    if (named == Py_None && (on_gpu || traced)) {
        *on = (device){.emulated = !on_gpu, .ordinal = given->ordinal > 0 ? given->ordinal : 0};
    } else if (device_read(state, named, on)) {
        return -1;
    }
    if (traced && !on->emulated && !on_gpu) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return -1;
    }
    if (on_gpu && (on->emulated || traced)) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is in the memory of a GPU, and device 'emu' works on host "
                     "memory; pass a NumPy array: x.get() of CuPy, x.cpu().numpy() of PyTorch",
                     given->first);
        return -1;
    }
    if (given->ordinal >= 0 && given->ordinal != on->ordinal) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is in the memory of cuda:%d, but the device is cuda:%d; leave "
                     "device out to run where the arrays are",
                     given->first, given->ordinal, on->ordinal);
        return -1;
    }
    return on->emulated && stream_given != Py_None ? stream_refuse() : 0;
}

PyObject *kernel_launch(module_state *state, PyObject *object, PyObject *args, PyObject *kwargs,
                        const observation *observed) {
    static const uint32_t grid_limit[] = {0x7fffffff, 65535, 65535};
    static const uint32_t block_limit[] = {1024, 1024, 64};
    static char *keywords[] = {"shared_bytes", "device", "stream", NULL};
    kernel *self = (kernel *)object;
    Py_ssize_t shared_bytes = 0, n = PyTuple_GET_SIZE(args);
    PyObject *device_given = Py_None, *stream_given = Py_None;

    PyObject *none = PyTuple_New(0);
    int parsed = none && PyArg_ParseTupleAndKeywords(none, kwargs, "|$nOO:Kernel", keywords,
                                                     &shared_bytes, &device_given, &stream_given);
    Py_XDECREF(none);
    if (!parsed) {
        return NULL;
    }
    if (n < 2) {
        PyErr_SetString(PyExc_TypeError, "a Kernel is called with (grid, block, *args)");
        return NULL;
    }
    if (shared_bytes < 0) {
        return PyErr_Format(PyExc_ValueError, "shared_bytes must not be negative, but is %zd",
                            shared_bytes);
    }
    smk_launch launch = {.entry = self->signature.entry, .shared_bytes = (size_t)shared_bytes};
    if (read_extent(PyTuple_GET_ITEM(args, 0), "grid", grid_limit, launch.grid) ||
        read_extent(PyTuple_GET_ITEM(args, 1), "block", block_limit, launch.block)) {
        return NULL;
    }
    uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > 1024) {
        return PyErr_Format(PyExc_ValueError, "a block has at most 1024 threads, not %lu",
                            (unsigned long)threads);
    }

    const bool traced = observed->trace != NULL;
    arguments given;
    PyObject *result = NULL, *const *objects = &PyTuple_GET_ITEM(args, 2);
    device on;
    void *stream;
    const char *key = PyUnicode_AsUTF8(self->key);
    if (key == NULL || stream_read(stream_given, &stream)) {
        return NULL;
    }
    if (arguments_start(state, &self->signature, objects, n - 2, stream, &given) == 0 &&
        choose_device(state, &given, device_given, stream_given, traced, &on) == 0 &&
        arguments_make(&self->signature, objects, &given) == 0) {
        launch.args = given.block;
        smk_job job = {
            .image = {key, PyBytes_AS_STRING(self->ptx), (size_t)PyBytes_GET_SIZE(self->ptx), NULL},
            .pointers = given.pointers,
            .n_pointers = given.n_pointers,
            .tensor_maps = given.tensor_maps,
            .n_tensor_maps = given.n_tensor_maps,
            .args_bytes = self->signature.args_bytes,
            .parameters = self->signature.offsets,
            .n_parameters = self->signature.n_parameters,
            .launches = &launch,
            .n_launches = 1,
            .buffers = given.buffers,
            .n_buffers = given.n_buffers,
            .stream = given.stream,
            .after = given.after,
            .n_after = given.n_after,
            .repeat = observed->repeat,
            .milliseconds = observed->milliseconds,
            .trace = observed->trace,
            .blocks = observed->blocks,
            .n_blocks = observed->n_blocks,
            .hazards = observed->hazards,
        };
        if (device_run(state, &on, &job) == 0) {
            if (traced) {
                arguments_locate(&given, observed->trace);
            }
            if (!traced || may_write(observed)) {
                arguments_write_back(&given);
            }
            result = Py_NewRef(Py_None);
        }
    }
    arguments_free(&given);
    return result;
}

/* A checked call is Python's to put together: it makes two runs of it where the device is a GPU. */
static PyObject *call_checked(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *module = PyImport_ImportModule("smemkern._hazards");
    PyObject *options = module && kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *result = module && options
                           ? PyObject_CallMethod(module, "checked_call", "OOO", self, args, options)
                           : NULL;
    Py_XDECREF(options);
    Py_XDECREF(module);
    return result;
}

static PyObject *kernel_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    module_state *state = PyType_GetModuleState(Py_TYPE(self));
    if (((kernel *)self)->check) {
        return call_checked(self, args, kwargs);
    }
    return kernel_launch(state, self, args, kwargs, &(observation){0});
}

/* ---- looking at one ---- */

static PyObject *kernel_repr(kernel *self) {
    return PyUnicode_FromFormat("<smemkern.Kernel %s with %zu parameters>", self->signature.entry,
                                self->signature.n_parameters);
}

static PyObject *get_name(kernel *self, void *Py_UNUSED(closure)) {
    return PyUnicode_FromString(self->signature.entry);
}

static PyObject *get_ptx(kernel *self, void *Py_UNUSED(closure)) {
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(self->ptx), PyBytes_GET_SIZE(self->ptx),
                                "replace");
}

static PyObject *get_source(kernel *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(self->source);
}

static PyObject *get_check(kernel *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(self->check);
}

static PyObject *get_shared_bytes(kernel *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(self->signature.static_shared_bytes);
}

static PyGetSetDef kernel_getset[] = {
    {"name", (getter)get_name, NULL, "Name of the entry in the PTX.", NULL},
    {"source", (getter)get_source, NULL, "What it was made from: CUDA C++ or PTX.", NULL},
    {"ptx", (getter)get_ptx, NULL, "The PTX text.", NULL},
    {"check", (getter)get_check, NULL, "Whether each call looks for hazards.", NULL},
    {"shared_bytes", (getter)get_shared_bytes, NULL,
     "Shared memory that the kernel declares itself, in bytes of a block.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char kernel_doc[] =
    "Kernel(source_or_ptx, name, options=(), *, check=False)\n"
    "--\n\n"
    "A kernel of your own: k(grid, block, *args, shared_bytes=0, device=None, stream=None).\n\n"
    "Parameters\n"
    "----------\n"
    "source_or_ptx : str\n"
    "    CUDA C++, which NVRTC compiles (pip install smemkern[nvrtc]), or PTX from any compiler.\n"
    "name : str or None\n"
    "    Of CUDA C++: the kernel as C++ names it, as 'scale', 'space::scale' or 'tile<float, "
    "16>'.\n"
    "    Of PTX: the entry. None: the only one.\n"
    "options : sequence of str\n"
    "    For NVRTC, as ('-DTILE=32', '-arch=compute_90').\n"
    "check : bool\n"
    "    Each call runs on the emulator and looks for hazards: races, uninitialised shared "
    "memory,\n"
    "    accesses out of bounds, barriers that not every thread reaches. If there are any it "
    "raises\n"
    "    HazardError, and writes no array. Device None then means 'emu'; with 'cuda' the kernel "
    "runs\n"
    "    on the GPU once the check is clean.\n\n"
    "Calling it\n"
    "----------\n"
    "grid, block : int or tuple of up to 3\n"
    "*args\n"
    "    One a parameter. A NumPy array is a pointer to its memory, which has to be contiguous: a\n"
    "    writable array is read and written, a read-only one is read. It is written when the run\n"
    "    has succeeded, and not otherwise. An array in a GPU's memory (DLPack or\n"
    "    __cuda_array_interface__: CuPy, PyTorch, Numba) is used in place. None is a null "
    "pointer.\n"
    "    int, float and complex are converted to the parameter's kind and size; NumPy's scalars\n"
    "    must have them. A struct is numpy.void, bytes, or an array of its size. A\n"
    "    CUtensorMap is a TensorMap.\n"
    "shared_bytes : int\n"
    "    Dynamic shared memory of a block.\n"
    "device : {None, 'emu', 'cuda', 'cuda:N'}\n"
    "    None: where the arrays are, else 'cuda' if there is one, else 'emu'.\n"
    "stream : int, optional\n"
    "    Address of a CUDA stream. None: with device arrays the one that the library of the first\n"
    "    of them uses now; otherwise one of our own. The call returns when the kernel has\n"
    "    finished.\n\n"
    "Raises\n"
    "------\n"
    "CompileError, KernelImageError, UnsupportedInstructionError, LaunchError, NoDeviceError\n"
    "HazardError\n"
    "    If check is set; it has .hazards and .trace.\n"
    "TypeError, ValueError, OverflowError\n"
    "    Arguments that do not fit the kernel's parameters.\n";

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, (void *)kernel_doc},
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_call, kernel_call},
    {Py_tp_repr, kernel_repr},
    {Py_tp_getset, kernel_getset},
    {0, NULL},
};

PyType_Spec kernel_spec = {
    .name = "smemkern.Kernel",
    .basicsize = sizeof(kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = kernel_slots,
};
