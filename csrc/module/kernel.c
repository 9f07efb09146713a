/* The type smemkern.Kernel: a user's kernel, from PTX or CUDA C++. Immutable. */
#include "arguments.h"
#include "kernel_source.h"

#include "../cuda/gpu.h"

typedef struct kernel {
    PyObject_HEAD
    PyObject *source; /* str, as given or as in the file */
    PyObject *ptx;    /* bytes */
    PyObject *origin; /* smemkern._compiler.compile.Origin */
    PyObject *key;    /* str: hash of the PTX, which identifies the image */
    emu_signature signature;
    bool check; /* each call runs the hazard detector, and raises if it finds any */
} kernel;

/* ---- construction ---- */

static PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"source_or_ptx", "name", "options", "check", NULL};
    module_state *state = PyType_GetModuleState(type);
    const char *name = NULL;
    PyObject *source, *options = NULL;
    int check = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|zO$p:Kernel", keywords, &source, &name,
                                     &options, &check)) {
        return NULL;
    }
    kernel_source read = {0};
    const char *entry = NULL;
    kernel *self = (kernel *)type->tp_alloc(type, 0);
    if (self == NULL || kernel_source_read(source, name, options, &read)) goto fail;
    self->check = check;
    self->ptx = Py_NewRef(read.ptx);
    self->source = Py_NewRef(read.text);
    self->origin = Py_NewRef(read.origin);
    self->key = kernel_source_key(self->ptx);
    if (self->key == NULL) goto fail;
    if (read.entry != Py_None && (entry = PyUnicode_AsUTF8(read.entry)) == NULL) goto fail;
    if (device_read_signature(state, self->ptx, entry, &self->signature)) goto fail;
    kernel_source_free(&read);
    return (PyObject *)self;

fail:
    kernel_source_free(&read);
    Py_XDECREF(self);
    return NULL;
}

static void kernel_dealloc(kernel *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->source);
    Py_XDECREF(self->ptx);
    Py_XDECREF(self->origin);
    Py_XDECREF(self->key);
    emu_signature_free(&self->signature);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- launching ---- */

/* grid or block: an int or a tuple of 1 to 3 ints, each from 1 to its limit. */
static int read_extent(PyObject *given, const char *name, const uint32_t limit[3],
                       uint32_t out[3]) {
    PyObject *items = PyTuple_Check(given) ? Py_NewRef(given) : PyTuple_Pack(1, given);
    int result = -1;
    if (items == NULL) return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n < 1 || n > 3) {
        PyErr_Format(PyExc_ValueError, "%s must be an int or a tuple of 1 to 3, not of %zd", name,
                     n);
        goto done;
    }
    for (int i = 0; i < 3; i++) {
        out[i] = 1;
        if (i >= n) continue;
        Py_ssize_t value = PyNumber_AsSsize_t(PyTuple_GET_ITEM(items, i), NULL);
        if (value == -1 && PyErr_Occurred()) goto done;
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

/* max_instructions: an int of at least 1, or None: no limit (0). */
static int read_limit(PyObject *given, uint64_t *out) {
    *out = 0;
    if (given == Py_None) return 0;
    PyObject *number = PyNumber_Index(given);
    if (number == NULL) return -1;
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow < 0 || (overflow == 0 && value < 1)) {
        PyErr_Format(PyExc_ValueError,
                     "max_instructions must be at least 1, or None for no limit, not %R", given);
        return -1;
    }
    *out = overflow ? UINT64_MAX : (uint64_t)value;
    return 0;
}

static bool may_write(const observation *observed) {
    return !observed->trace->incomplete &&
           !(observed->only_if_clean && smk_trace_has_hazards(observed->trace));
}

static int refuse_limit(void) {
    PyErr_SetString(PyExc_ValueError,
                    "max_instructions limits runs on the emulator; a GPU does not "
                    "count instructions: pass device='emu', or leave max_instructions out");
    return -1;
}

/* Checks what the source says of the parameters: their number, and the types of arrays. */
static int check_declaration(kernel *self, PyObject *args) {
    PyObject *module = PyImport_ImportModule("smemkern._compiler.parameters");
    PyObject *given = PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args));
    PyObject *wrong = NULL;
    if (module && given) {
        const Py_ssize_t n = PyTuple_GET_SIZE(given);
        const size_t expected = self->signature.n_parameters;
        wrong =
            (size_t)n == expected
                ? PyObject_CallMethod(module, "wrong_array", "OO", self, given)
                : PyObject_CallMethod(module, "wrong_number", "Onn", self, n, (Py_ssize_t)expected);
    }
    if (wrong && wrong != Py_None) PyErr_SetObject(PyExc_TypeError, wrong);
    Py_XDECREF(module);
    Py_XDECREF(given);
    Py_XDECREF(wrong);
    return PyErr_Occurred() ? -1 : 0;
}

/* The device: as named by the caller, else the arrays' GPU, else the emulator for a trace. */
static int choose_device(const module_state *state, const arguments *given, PyObject *named,
                         PyObject *stream_given, bool traced, device *on) {
    bool on_gpu = given->first_on_device >= 0;
    if (named == Py_None && (on_gpu || traced))
        *on = (device){.emulated = !on_gpu, .ordinal = given->ordinal > 0 ? given->ordinal : 0};
    else if (device_read(state, named, on))
        return -1;
    on->by_default = false; /* a Kernel without a GPU is on the emulator on purpose */
    if (traced && !on->emulated && !on_gpu) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return -1;
    }
    if (on_gpu && (on->emulated || traced)) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is in the memory of a GPU, and device 'emu' works on host "
                     "memory; pass a NumPy array: x.get() of CuPy, x.cpu().numpy() of PyTorch",
                     given->first_on_device);
        return -1;
    }
    if (given->ordinal >= 0 && given->ordinal != on->ordinal) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is in the memory of cuda:%d, but the device is cuda:%d; leave "
                     "device out to run where the arrays are",
                     given->first_on_device, given->ordinal, on->ordinal);
        return -1;
    }
    return on->emulated && stream_given != Py_None ? stream_refuse() : 0;
}

/* Seconds; None: infinity. */
static int read_timeout(PyObject *given, double *out) {
    *out = given == Py_None ? Py_HUGE_VAL : PyFloat_AsDouble(given);
    if (*out > 0) return 0;
    PyObject *kind = PyErr_Occurred() ? PyExc_TypeError : PyExc_ValueError;
    PyErr_Format(kind, "timeout must be a positive number of seconds or None, not %R", given);
    return -1;
}

/* Whether the call may return once its kernel is enqueued. It may if no array is in host memory, no
 * array's memory can be reused before the kernel has finished, and other work can be ordered after
 * the kernel: it is on the caller's stream, or on that of the arrays' library. */
static bool is_asynchronous(const arguments *given, const device *on, const observation *observed,
                            double timeout) {
    return !on->emulated && given->n_buffers == 0 && !given->reused_unordered && given->stream &&
           observed->repeat == 0 && timeout == Py_HUGE_VAL;
}

/* The module's key in the cache. On a GPU a call that binds variables of the module has one of its
 * own, as calls at the same time would otherwise bind each other's textures. */
static const char *image_key(const arguments *given, const device *on, const char *key) {
    for (size_t i = 0; !on->emulated && i < given->n_textures; i++)
        if (given->textures[i].reference) return NULL;
    return key;
}

PyObject *kernel_launch(module_state *state, PyObject *object, PyObject *args, PyObject *kwargs,
                        observation *observed) {
    static const uint32_t grid_limit[] = {0x7fffffff, 65535, 65535};
    static const uint32_t block_limit[] = {1024, 1024, 64};
    static const uint32_t cluster_limit[] = {16, 16, 16};
    static char *keywords[] = {"shared_bytes", "device",           "stream",
                               "timeout",      "max_instructions", "textures",
                               "cluster",      "cooperative",      NULL};
    kernel *self = (kernel *)object;
    Py_ssize_t shared_bytes = 0, n = PyTuple_GET_SIZE(args);
    PyObject *device_given = Py_None, *stream_given = Py_None, *timeout_given = Py_None;
    PyObject *limit_given = Py_None, *textures_given = Py_None, *cluster_given = Py_None;
    int cooperative = 0;
    uint64_t max_instructions;

    PyObject *none = PyTuple_New(0);
    int parsed = none && PyArg_ParseTupleAndKeywords(none, kwargs, "|$nOOOOOOp:Kernel.__call__",
                                                     keywords, &shared_bytes, &device_given,
                                                     &stream_given, &timeout_given, &limit_given,
                                                     &textures_given, &cluster_given, &cooperative);
    Py_XDECREF(none);
    if (!parsed || read_limit(limit_given, &max_instructions)) return NULL;
    if (n < 2) {
        PyErr_SetString(PyExc_TypeError, "a Kernel is called with (grid, block, *args)");
        return NULL;
    }
    if (check_declaration(self, args)) return NULL;
    if (shared_bytes < 0) {
        return PyErr_Format(PyExc_ValueError, "shared_bytes must not be negative, but is %zd",
                            shared_bytes);
    }
    smk_launch launch = {.entry = self->signature.entry,
                         .cooperative = cooperative || self->signature.cooperative,
                         .shared_bytes = (size_t)shared_bytes};
    if (read_extent(PyTuple_GET_ITEM(args, 0), "grid", grid_limit, launch.grid) ||
        read_extent(PyTuple_GET_ITEM(args, 1), "block", block_limit, launch.block) ||
        (cluster_given != Py_None &&
         read_extent(cluster_given, "cluster", cluster_limit, launch.cluster))) {
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
    double timeout;
    if (key == NULL || stream_read(stream_given, &stream) || read_timeout(timeout_given, &timeout))
        return NULL;
    if (arguments_start(state, &self->signature, objects, n - 2, textures_given, stream, &given) ==
            0 &&
        choose_device(state, &given, device_given, stream_given, traced, &on) == 0 &&
        (on.emulated || max_instructions == 0 || refuse_limit() == 0) &&
        arguments_make(&self->signature, objects, &given) == 0) {
        launch.args = given.block;
        smk_job job = {
            .image = {image_key(&given, &on, key), PyBytes_AS_STRING(self->ptx),
                      (size_t)PyBytes_GET_SIZE(self->ptx), NULL},
            .pointers = given.pointers,
            .n_pointers = given.n_pointers,
            .tensor_maps = given.tensor_maps,
            .n_tensor_maps = given.n_tensor_maps,
            .textures = given.textures,
            .n_textures = given.n_textures,
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
            .asynchronous = is_asynchronous(&given, &on, observed, timeout),
            .repeat = observed->repeat,
            .milliseconds = observed->milliseconds,
            .trace = observed->trace,
            .blocks = observed->blocks,
            .n_blocks = observed->n_blocks,
            .hazards = observed->hazards,
            .recording = observed->recording,
            .max_instructions = max_instructions,
        };
        if (device_run(state, &on, &job, observed->progress, timeout) == 0) {
            if (traced) arguments_locate(&given, observed->trace);
            if (observed->recording)
                observed->places = arguments_places(&given);
            else if (!traced || may_write(observed))
                arguments_write_back(&given);
            result = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
        }
    }
    arguments_free(&given);
    return result;
}

/* A checked call is implemented in Python, since on a GPU it consists of two runs. */
static PyObject *call_checked(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *module = PyImport_ImportModule("smemkern._trace.hazards");
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
    if (((kernel *)self)->check) return call_checked(self, args, kwargs);
    if (atomic_load(&state->watchers) > 0) return call_watched(self, args, kwargs);
    return kernel_launch(state, self, args, kwargs, &(observation){0});
}

/* ---- attributes ---- */

static PyObject *kernel_repr(kernel *self) {
    const size_t n = self->signature.n_parameters;
    PyObject *module = PyImport_ImportModule("smemkern._compiler.demangle");
    PyObject *name =
        module ? PyObject_CallMethod(module, "demangled", "s", self->signature.entry) : NULL;
    PyObject *written = name ? PyObject_GetAttrString(name, "written") : NULL;
    PyObject *text = written ? PyUnicode_FromFormat("<smemkern.Kernel %U with %zu parameter%s>",
                                                    written, n, n == 1 ? "" : "s")
                             : NULL;
    Py_XDECREF(written);
    Py_XDECREF(name);
    Py_XDECREF(module);
    return text;
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

static PyObject *get_file(kernel *self, void *Py_UNUSED(closure)) {
    return PyObject_GetAttrString(self->origin, "file");
}

static PyObject *get_compiler(kernel *self, void *Py_UNUSED(closure)) {
    return PyObject_GetAttrString(self->origin, "compiler");
}

static PyObject *get_origin(kernel *self, void *Py_UNUSED(closure)) {
    return Py_NewRef(self->origin);
}

static PyObject *kernel_reduce(kernel *self, PyObject *Py_UNUSED(none)) {
    PyObject *module = PyImport_ImportModule("smemkern._compiler.compile");
    PyObject *reduced = module ? PyObject_CallMethod(module, "pickled", "O", self) : NULL;
    Py_XDECREF(module);
    return reduced;
}

static PyMethodDef kernel_methods[] = {
    {"__reduce__", (PyCFunction)kernel_reduce, METH_NOARGS, "For pickle and copy."},
    {NULL, NULL, 0, NULL},
};

static PyObject *get_check(kernel *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(self->check);
}

static PyObject *get_shared_bytes(kernel *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(self->signature.static_shared_bytes);
}

static PyObject *get_live_registers(kernel *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLong(self->signature.live_registers);
}

static PyGetSetDef kernel_getset[] = {
    {"name", (getter)get_name, NULL, "Name of the entry in the PTX.", NULL},
    {"source", (getter)get_source, NULL, "What it was made from: CUDA C++ or PTX.", NULL},
    {"ptx", (getter)get_ptx, NULL, "The PTX text.", NULL},
    {"file", (getter)get_file, NULL, "The file it was read from, as given; None: a text.", NULL},
    {"compiler", (getter)get_compiler, NULL, "What compiled it; None: it was PTX.", NULL},
    {"_origin", (getter)get_origin, NULL, "See smemkern/_compiler/compile.py.", NULL},
    {"check", (getter)get_check, NULL, "Whether each call looks for hazards.", NULL},
    {"shared_bytes", (getter)get_shared_bytes, NULL,
     "Static shared memory of the kernel, in bytes per block.", NULL},
    {"live_registers", (getter)get_live_registers, NULL,
     "Registers per thread that the PTX needs: an estimate of what ptxas will allocate.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char kernel_doc[] =
    "Kernel(source_or_ptx, name=None, options=(), *, check=False)\n"
    "--\n\n"
    "A kernel of your own: k(grid, block, *args, shared_bytes=0, device=None, stream=None,\n"
    "timeout=None, max_instructions=None, textures=None, cluster=None, cooperative=False).\n\n"
    "Parameters\n"
    "----------\n"
    "source_or_ptx : str or path, or a kernel of CuPy or cuda.core\n"
    "    CUDA C++, which NVRTC or nvcc compiles (pip install '.[nvrtc]'), or PTX from any\n"
    "    compiler: the text, or the path of a file. RawKernel, RawModule, Program and ObjectCode\n"
    "    bring their own options. Kernels of Triton and Numba: see check and trace.\n"
    "name : str or None\n"
    "    Of CUDA C++: the kernel as C++ names it, as 'scale', 'space::scale' or 'tile<float, "
    "16>'.\n"
    "    Of PTX: the entry. None: the only one.\n"
    "options : sequence of str\n"
    "    Of the compiler, as ('-DTILE=32', '-arch=compute_90').\n"
    "check : bool\n"
    "    Each call runs on the emulator and looks for hazards: races, uninitialised shared\n"
    "    memory, accesses out of bounds, barriers that not every thread reaches. If it finds any\n"
    "    it raises HazardError and writes no array. Device None then means 'emu'; with 'cuda'\n"
    "    the kernel runs on the GPU after a check without hazards.\n\n"
    "Calling it\n"
    "----------\n"
    "grid, block : int or tuple of up to 3\n"
    "*args\n"
    "    One per parameter. A NumPy array is passed as a pointer to its memory and must be\n"
    "    contiguous. A writable array is read and written, a read-only one is only read. NumPy\n"
    "    arrays are written only if the run succeeds. An array in a GPU's memory (DLPack or\n"
    "    __cuda_array_interface__: CuPy, PyTorch, Numba) is used in place. None is a null\n"
    "    pointer. int, float and complex are converted to the parameter's kind and size; NumPy\n"
    "    scalars must already have both. For a struct pass a tuple of its members, in which\n"
    "    arrays are pointers, or numpy.void or bytes; for a CUtensorMap a TensorMap, for a\n"
    "    cudaTextureObject_t a Texture, for a cudaSurfaceObject_t a Surface.\n"
    "shared_bytes : int\n"
    "    Dynamic shared memory per block.\n"
    "device : {None, 'emu', 'cuda', 'cuda:N'}\n"
    "    None: where the arrays are, else 'cuda' if there is one, else 'emu'.\n"
    "stream : int or object with __cuda_stream__, optional\n"
    "    A CUDA stream by its address. None: the current stream of the first device array's\n"
    "    library, or without device arrays one of our own. On the caller's or a library's stream,\n"
    "    and with no argument in host memory, the call returns when the kernel is enqueued;\n"
    "    otherwise when it has finished.\n"
    "timeout : float, optional\n"
    "    Seconds after which the call raises TimeoutError and writes no host array; checked about\n"
    "    20 times per second. The emulator stops. A GPU cannot stop a kernel: one that never ends\n"
    "    occupies its GPU until the process ends. With a timeout the call waits for the kernel.\n"
    "max_instructions : int, optional\n"
    "    On the emulator: LaunchError once the call has run more warp instructions (checked at\n"
    "    least every 4096 instructions of a warp). For kernels that may never end.\n"
    "textures : dict of str to Texture or Surface, or list of them, optional\n"
    "    A dict: for .texref and .surfref variables of the PTX, by their names. A list: textures\n"
    "    whose `handle` the kernel finds in a struct or an array.\n"
    "cluster : int or tuple of up to 3, optional\n"
    "    Blocks per cluster. None: as the kernel states (__cluster_dims__), else 1. At most 8,\n"
    "    or 16 on the emulator and on GPUs that allow it.\n"
    "cooperative : bool\n"
    "    A cooperative launch: all blocks are resident at the same time. A kernel that calls\n"
    "    grid.sync() of cooperative groups is always launched so.\n\n"
    "Raises\n"
    "------\n"
    "CompileError, KernelImageError, UnsupportedInstructionError, LaunchError, NoDeviceError\n"
    "HazardError\n"
    "    If check is set; it has .hazards and .trace.\n"
    "TypeError, ValueError, OverflowError\n"
    "    Arguments that do not fit the kernel's parameters.\n"
    "TimeoutError\n"
    "    The kernel took longer than timeout.\n";

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, (void *)kernel_doc}, {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_dealloc}, {Py_tp_call, kernel_call},
    {Py_tp_repr, kernel_repr},       {Py_tp_getset, kernel_getset},
    {Py_tp_methods, kernel_methods}, {0, NULL},
};

PyType_Spec kernel_spec = {
    .name = "smemkern.Kernel",
    .basicsize = sizeof(kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = kernel_slots,
};
