/* The type smemkern.Kernel: a kernel of the user's own, from PTX or CUDA C++. Immutable once made.
 */
#include "arguments.h"

typedef struct kernel {
    PyObject_HEAD
    PyObject *ptx; /* bytes */
    PyObject *key; /* str: identity of the image; equal text, equal key */
    emu_signature signature;
    bool check; /* each call looks for hazards, and raises if there are any */
} kernel;

/* ---- making one ---- */

/* PTX begins with its version; C++ cannot. Comments may come first. */
static bool is_ptx(const char *text) {
    for (;;) {
        text += strspn(text, " \t\r\n\f\v");
        if (strncmp(text, "//", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            if (end == NULL) {
                return false;
            }
            text = end + 2;
        } else {
            return strncmp(text, ".version", 8) == 0;
        }
    }
}

static bool names_architecture(const char *option) {
    static const char *const forms[] = {"-arch", "--gpu-architecture", "--gpu-name"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strncmp(option, forms[i], strlen(forms[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* CUDA C++ to PTX that all GPUs and the emulator take, unless the options say otherwise. */
static PyObject *compile(module_state *state, const char *source, PyObject *options) {
    PyObject *list = PySequence_Tuple(options);
    if (list == NULL) {
        return NULL;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(list);
    PyObject *ptx = NULL;
    const char **all = PyMem_Calloc((size_t)n + 2, sizeof *all);
    if (all == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    int n_all = 0;
    bool named = false;
    all[n_all++] = "-lineinfo";
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *option = PyTuple_GET_ITEM(list, i);
        if (!PyUnicode_Check(option)) {
            PyErr_Format(PyExc_TypeError, "options must be strings, not %.200s",
                         Py_TYPE(option)->tp_name);
            goto done;
        }
        const char *text = PyUnicode_AsUTF8(option);
        if (text == NULL) {
            goto done;
        }
        named |= names_architecture(text);
        all[n_all++] = text;
    }
    if (!named) {
        all[n_all++] = "-arch=compute_80";
    }
    ptx = image_compile(state, source, "kernel.cu", NULL, 0, all, n_all);
done:
    PyMem_Free(all);
    Py_DECREF(list);
    return ptx;
}

/* Equal PTX is one image to the devices, however many Kernels are made of it. */
static PyObject *make_key(PyObject *ptx) {
    PyObject *hashlib = PyImport_ImportModule("hashlib");
    PyObject *hash = hashlib ? PyObject_CallMethod(hashlib, "sha256", "O", ptx) : NULL;
    PyObject *digest = hash ? PyObject_CallMethod(hash, "hexdigest", NULL) : NULL;
    Py_XDECREF(hashlib);
    Py_XDECREF(hash);
    return digest;
}

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
    bool ptx_given = is_ptx(source);
    PyObject *none = PyTuple_New(0);
    options = none && options == NULL ? none : options;
    kernel *self = none ? (kernel *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL) {
        goto fail;
    }
    if (ptx_given && PyObject_IsTrue(options)) {
        PyErr_SetString(PyExc_ValueError, "options are for CUDA C++; this source is PTX already");
        goto fail;
    }
    self->check = check;
    self->ptx = ptx_given ? PyBytes_FromString(source) : compile(state, source, options);
    self->key = self->ptx ? make_key(self->ptx) : NULL;
    if (self->key == NULL) {
        goto fail;
    }
    smk_status status = {0};
    if (emu_signature_read(PyBytes_AS_STRING(self->ptx), (size_t)PyBytes_GET_SIZE(self->ptx), name,
                           &self->signature, &status)) {
        raise_status(state, &status);
        goto fail;
    }
    Py_DECREF(none);
    return (PyObject *)self;

fail:
    Py_XDECREF(none);
    Py_XDECREF(self);
    return NULL;
}

static void kernel_dealloc(kernel *self) {
    PyTypeObject *type = Py_TYPE(self);
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

PyObject *kernel_launch(module_state *state, PyObject *object, PyObject *args, PyObject *kwargs,
                        const observation *observed) {
    static const uint32_t grid_limit[] = {0x7fffffff, 65535, 65535};
    static const uint32_t block_limit[] = {1024, 1024, 64};
    static char *keywords[] = {"shared_bytes", "device", NULL};
    kernel *self = (kernel *)object;
    Py_ssize_t shared_bytes = 0, n = PyTuple_GET_SIZE(args);
    PyObject *device_given = Py_None;

    PyObject *none = PyTuple_New(0);
    int parsed = none && PyArg_ParseTupleAndKeywords(none, kwargs, "|$nO:Kernel", keywords,
                                                     &shared_bytes, &device_given);
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
    device on = {.emulated = true};
    bool traced = observed->trace != NULL;
    if (!(traced && device_given == Py_None) && device_read(state, device_given, &on)) {
        return NULL;
    }
    if (traced && !on.emulated) {
        PyErr_SetString(PyExc_ValueError,
                        "a trace counts on the emulator: leave device out, or pass 'emu'");
        return NULL;
    }
    smk_launch launch = {.shared_bytes = (size_t)shared_bytes};
    if (read_extent(PyTuple_GET_ITEM(args, 0), "grid", grid_limit, launch.grid) ||
        read_extent(PyTuple_GET_ITEM(args, 1), "block", block_limit, launch.block)) {
        return NULL;
    }
    uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    if (threads > 1024) {
        return PyErr_Format(PyExc_ValueError, "a block has at most 1024 threads, not %lu",
                            (unsigned long)threads);
    }

    arguments given;
    PyObject *result = NULL;
    const char *key = PyUnicode_AsUTF8(self->key);
    if (key && arguments_make(&self->signature, &PyTuple_GET_ITEM(args, 2), n - 2, &given) == 0) {
        launch.args = given.block;
        smk_job job = {
            .image = {key, PyBytes_AS_STRING(self->ptx), (size_t)PyBytes_GET_SIZE(self->ptx)},
            .entry = self->signature.entry,
            .pointers = given.pointers,
            .n_pointers = given.n_pointers,
            .args_bytes = self->signature.args_bytes,
            .launches = &launch,
            .n_launches = 1,
            .buffers = given.buffers,
            .n_buffers = given.n_buffers,
            .repeat = observed->repeat,
            .milliseconds = observed->milliseconds,
            .trace = observed->trace,
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

static PyObject *get_check(kernel *self, void *Py_UNUSED(closure)) {
    return PyBool_FromLong(self->check);
}

static PyObject *get_shared_bytes(kernel *self, void *Py_UNUSED(closure)) {
    return PyLong_FromSize_t(self->signature.static_shared_bytes);
}

static PyGetSetDef kernel_getset[] = {
    {"name", (getter)get_name, NULL, "Name of the entry in the PTX.", NULL},
    {"ptx", (getter)get_ptx, NULL, "The PTX text.", NULL},
    {"check", (getter)get_check, NULL, "Whether each call looks for hazards.", NULL},
    {"shared_bytes", (getter)get_shared_bytes, NULL,
     "Shared memory that the kernel declares itself, in bytes of a block.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char kernel_doc[] =
    "Kernel(source_or_ptx, name, options=(), *, check=False)\n"
    "--\n\n"
    "A kernel of your own: k(grid, block, *args, shared_bytes=0, device=None).\n\n"
    "Parameters\n"
    "----------\n"
    "source_or_ptx : str\n"
    "    PTX, or CUDA C++, which NVRTC compiles (pip install smemkern[nvrtc]).\n"
    "name : str or None\n"
    "    The entry, as PTX spells it: declare it extern \"C\". None: the only one.\n"
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
    "    has succeeded, and not otherwise. int and float (or NumPy's scalars) are converted to "
    "the\n"
    "    parameter's kind and size; bytes or numpy.void fill a struct.\n"
    "shared_bytes : int\n"
    "    Dynamic shared memory of a block.\n"
    "device : {None, 'emu', 'cuda', 'cuda:N'}\n\n"
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
