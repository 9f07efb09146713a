/* The types smemkern.Texture and smemkern.Surface: an array, and how kernels see it. Immutable. A
 * surface is a texture without sampling options, whose array is written.
 */
#include "texture.h"

typedef struct texture {
    PyObject_HEAD
    PyArrayObject *array;
    smk_texture form;
} texture;

bool texture_check(const module_state *state, PyObject *object) {
    return Py_IS_TYPE(object, state->texture_type) || Py_IS_TYPE(object, state->surface_type);
}

/* ---- the array ---- */

static int refuse_type(PyArray_Descr *descr) {
    PyErr_Format(PyExc_TypeError,
                 "a texture is of integers of 8 to 32 bits, float16 or float32, in native byte "
                 "order, or of a struct of 1, 2 or 4 fields of one such type, not of %S",
                 descr);
    return -1;
}

static int read_type(PyArray_Descr *descr, smk_texel_type *out) {
    PyObject *name = PyObject_GetAttrString((PyObject *)descr, "name");
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    int result = -1;
    for (int type = 0; text && type < SMK_N_TEXEL_TYPES && result; type++) {
        if (strcmp(text, smk_texel_type_name((smk_texel_type)type)) == 0) {
            *out = (smk_texel_type)type;
            result = 0;
        }
    }
    Py_XDECREF(name);
    if (result && !PyErr_Occurred()) refuse_type(descr);
    return result;
}

/* A struct: its fields are the channels, without space between them. */
static int read_fields(PyArray_Descr *descr, smk_texture *form) {
    PyObject *fields = PyDataType_FIELDS(descr), *names = PyDataType_NAMES(descr);
    PyArray_Descr *first = NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(names);
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *field = PyDict_GetItemWithError(fields, PyTuple_GET_ITEM(names, k));
        if (field == NULL) return PyErr_Occurred() ? -1 : refuse_type(descr);
        PyArray_Descr *own = (PyArray_Descr *)PyTuple_GET_ITEM(field, 0);
        const Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GET_ITEM(field, 1));
        if (at == -1 && PyErr_Occurred()) return -1;
        if (first == NULL) first = own;
        if (!PyArray_EquivTypes(first, own) || at != k * PyDataType_ELSIZE(first) ||
            PyDataType_ISBYTESWAPPED(own)) {
            return refuse_type(descr);
        }
    }
    if (first == NULL || PyDataType_ELSIZE(descr) != n * PyDataType_ELSIZE(first))
        return refuse_type(descr);
    form->channels = (uint32_t)n;
    return read_type(first, &form->type);
}

/* Sets type, channels, rank, sizes and layers. `channels`: of the last dimension; 1: it has
 * none. */
static int read_shape(PyArrayObject *array, uint32_t channels, smk_texture *form) {
    PyArray_Descr *descr = PyArray_DESCR(array);
    int n = PyArray_NDIM(array), first = 0;
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
        PyErr_SetString(PyExc_ValueError, "a texture's array must be contiguous in C order; pass "
                                          "numpy.ascontiguousarray(...)");
        return -1;
    }
    if (PyArray_ISBYTESWAPPED(array)) return refuse_type(descr);
    const bool fields = PyDataType_ISLEGACY(descr) && PyDataType_HASFIELDS(descr);
    form->channels = channels;
    if (fields ? read_fields(descr, form) : read_type(descr, &form->type)) return -1;
    if (channels > 1 && (fields || n == 0 || PyArray_DIM(array, n - 1) != (npy_intp)channels)) {
        PyErr_Format(PyExc_ValueError,
                     "channels=%u, but the array's last dimension is not of %u elements",
                     (unsigned)channels, (unsigned)channels);
        return -1;
    }
    if (channels > 1) n--;
    form->layers = 1;
    if (form->layered && n > 0) {
        const npy_intp layers = PyArray_DIM(array, first++);
        form->layers = layers > UINT32_MAX ? UINT32_MAX : (uint32_t)layers;
    }
    if (form->cubemap && (n != first + 3 || PyArray_DIM(array, first++) != SMK_CUBE_FACES)) {
        PyErr_SetString(PyExc_ValueError, "a cubemap's array has the shape ([layers,] 6, n, n)");
        return -1;
    }
    const int rank = n - first;
    form->rank = rank < 0 ? 0 : (uint32_t)rank;
    for (int d = 0; d < rank && d < SMK_TEXTURE_RANK; d++) {
        const npy_intp size = PyArray_DIM(array, first + rank - 1 - d);
        form->size[d] = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    }
    return 0;
}

/* Raises if the array's type or shape have changed since the texture was made. */
PyArrayObject *texture_read(PyObject *object, smk_texture *out, PyObject **hold) {
    const texture *self = (const texture *)object;
    PyArrayObject *array = array_hold(self->array, hold);
    if (array == NULL) return NULL;
    *out = self->form;
    const bool fields = PyDataType_HASFIELDS(PyArray_DESCR(array));
    smk_texture now = {.layered = out->layered, .cubemap = out->cubemap};
    if (read_shape(array, fields ? 1 : out->channels, &now) || now.type != out->type ||
        now.channels != out->channels || now.rank != out->rank || now.layers != out->layers ||
        memcmp(now.size, out->size, sizeof now.size) ||
        (out->surface && !PyArray_ISWRITEABLE(array))) {
        PyErr_SetString(PyExc_ValueError, "the array of a texture has another type or shape than "
                                          "when the texture was made: make a new one");
        Py_DECREF(array);
        Py_CLEAR(*hold);
        return NULL;
    }
    return array;
}

/* ---- options ---- */

static const char *const address_modes[] = {"clamp", "border", "wrap", "mirror"};
static const char *const filters[] = {"point", "linear"};
static const char *const read_modes[] = {"element", "normalized_float"};

/* *out: the position of the name. */
static int read_name(PyObject *given, const char *what, const char *const *names, int n, int *out) {
    for (*out = 0; *out < n && PyUnicode_Check(given); ++*out)
        if (PyUnicode_CompareWithASCIIString(given, names[*out]) == 0) return 0;
    PyErr_Format(PyExc_ValueError, "%s must be one of %s, %s%s%s%s%s, not %R", what, names[0],
                 names[1], n > 2 ? ", " : "", n > 2 ? names[2] : "", n > 3 ? ", " : "",
                 n > 3 ? names[3] : "", given);
    return -1;
}

/* A name for all axes, or a tuple of names, x first. */
static int read_address(PyObject *given, smk_texture *form) {
    const Py_ssize_t n = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : -1;
    if (n >= 0 && n != (Py_ssize_t)form->rank) {
        PyErr_Format(PyExc_ValueError, "address has %zd elements, the texture %u axes", n,
                     (unsigned)form->rank);
        return -1;
    }
    for (uint32_t d = 0; d < form->rank; d++) {
        int mode;
        PyObject *name = n >= 0 ? PyTuple_GET_ITEM(given, d) : given;
        if (read_name(name, "address", address_modes, SMK_N_ADDRESS_MODES, &mode)) return -1;
        form->address[d] = (smk_address_mode)mode;
    }
    return 0;
}

/* A number for all channels, or a tuple with one per channel. */
static int read_border(PyObject *given, smk_texture *form) {
    const Py_ssize_t n = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : -1;
    if (n >= 0 && n != (Py_ssize_t)form->channels) {
        PyErr_Format(PyExc_ValueError, "border has %zd elements, a texel %u channels", n,
                     (unsigned)form->channels);
        return -1;
    }
    for (uint32_t c = 0; c < form->channels; c++) {
        const double value = PyFloat_AsDouble(n >= 0 ? PyTuple_GET_ITEM(given, c) : given);
        if (value == -1 && PyErr_Occurred()) return -1;
        form->border[c] = (float)value;
    }
    return 0;
}

static uint64_t new_handle(void) {
    enum { STEP = 16 };
    static _Atomic uint64_t last;
    return SMK_TEXTURE_HANDLE | (atomic_fetch_add(&last, STEP) + STEP);
}

static PyObject *make(PyTypeObject *type, PyObject *array, const smk_texture *form) {
    smk_status status = {0};
    if (smk_texture_check(form, &status)) return raise_status(PyType_GetModuleState(type), &status);
    texture *self = (texture *)type->tp_alloc(type, 0);
    if (self) {
        self->array = (PyArrayObject *)Py_NewRef(array);
        self->form = *form;
        self->form.handle = new_handle();
        self->form.arg_offset = SMK_NO_ARGUMENT;
    }
    return (PyObject *)self;
}

static int read_channels(Py_ssize_t given, uint32_t *out) {
    *out = (uint32_t)given;
    if (given == 1 || given == 2 || given == 4) return 0;
    PyErr_Format(PyExc_ValueError, "channels must be 1, 2 or 4, not %zd", given);
    return -1;
}

static PyObject *texture_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"array",    "address", "filter",  "normalized", "read",
                               "channels", "layered", "cubemap", "border",     NULL};
    PyObject *array, *address = NULL, *filter = NULL, *read = NULL, *border = NULL;
    int normalized = 0, layered = 0, cubemap = 0, linear = 0, normalized_float = 0;
    Py_ssize_t channels_given = 1;
    uint32_t channels;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$OOpOnppO:Texture", keywords, &PyArray_Type,
                                     &array, &address, &filter, &normalized, &read, &channels_given,
                                     &layered, &cubemap, &border)) {
        return NULL;
    }
    smk_texture form = {
        .normalized = normalized || cubemap, .layered = layered, .cubemap = cubemap};
    if (read_channels(channels_given, &channels) ||
        read_shape((PyArrayObject *)array, channels, &form) ||
        (address && read_address(address, &form)) ||
        (filter && read_name(filter, "filter", filters, 2, &linear)) ||
        (read && read_name(read, "read", read_modes, 2, &normalized_float)) ||
        (border && read_border(border, &form))) {
        return NULL;
    }
    form.linear = linear;
    form.normalized_float = normalized_float;
    return make(type, array, &form);
}

static PyObject *surface_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"array", "channels", "layered", "cubemap", NULL};
    PyObject *array;
    int layered = 0, cubemap = 0;
    Py_ssize_t channels_given = 1;
    uint32_t channels;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$npp:Surface", keywords, &PyArray_Type,
                                     &array, &channels_given, &layered, &cubemap)) {
        return NULL;
    }
    smk_texture form = {.surface = true, .layered = layered, .cubemap = cubemap};
    if (read_channels(channels_given, &channels) ||
        read_shape((PyArrayObject *)array, channels, &form)) {
        return NULL;
    }
    if (!PyArray_ISWRITEABLE((PyArrayObject *)array)) {
        PyErr_SetString(PyExc_ValueError, "a Surface is written, but its array is read-only");
        return NULL;
    }
    return make(type, array, &form);
}

static void texture_dealloc(texture *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->array);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- attributes ---- */

static PyObject *get_array(texture *self, void *Py_UNUSED(closure)) {
    return Py_NewRef((PyObject *)self->array);
}

static PyObject *get_handle(texture *self, void *Py_UNUSED(closure)) {
    return PyLong_FromUnsignedLongLong(self->form.handle);
}

static PyObject *texture_repr(texture *self) {
    const smk_texture *f = &self->form;
    PyObject *shape = PyObject_GetAttrString((PyObject *)self->array, "shape");
    PyObject *text = shape ? PyUnicode_FromFormat(
                                 "<smemkern.%s of %s %R%s%s%s>", f->surface ? "Surface" : "Texture",
                                 smk_texel_type_name(f->type), shape, f->layered ? ", layered" : "",
                                 f->cubemap ? ", cubemap" : "", f->linear ? ", linear filter" : "")
                           : NULL;
    Py_XDECREF(shape);
    return text;
}

static PyGetSetDef texture_getset[] = {
    {"array", (getter)get_array, NULL, "The array.", NULL},
    {"handle", (getter)get_handle, NULL,
     "What the kernel's 64-bit parameter receives; for structs and arrays of textures.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char texture_doc[] =
    "Texture(array, *, address='clamp', filter='point', normalized=False, read='element',\n"
    "        channels=1, layered=False, cubemap=False, border=0.0)\n"
    "--\n\n"
    "An array that kernels sample: the argument of a Kernel whose parameter is a\n"
    "`cudaTextureObject_t`, or a value of textures= for a .texref variable of the PTX. The kernel\n"
    "sees the array's contents at the launch.\n\n"
    "Parameters\n"
    "----------\n"
    "array : numpy.ndarray\n"
    "    1 to 3 dimensions, contiguous, the last one is x: `tex2D(t, x, y)` samples array[y, x].\n"
    "    Integers of 8, 16 and 32 bits, float16 and float32. Linear memory (tex1Dfetch), pitched\n"
    "    memory and CUDA arrays are all the same here; on a GPU the kernel's instructions decide.\n"
    "address : str or tuple of str\n"
    "    What is outside: 'clamp', 'border', 'wrap' or 'mirror'; a tuple has one per axis, x "
    "first.\n"
    "    As in CUDA, wrap and mirror are clamp unless coordinates are normalized.\n"
    "filter : {'point', 'linear'}\n"
    "normalized : bool\n"
    "    Coordinates are from 0 to 1.\n"
    "read : {'element', 'normalized_float'}\n"
    "    The latter reads integers of 8 and 16 bits as floats from 0 to 1, or from -1 to 1.\n"
    "channels : {1, 2, 4}\n"
    "    With 2 or 4 the array has one dimension more, the last, of that size: float2 and float4\n"
    "    of CUDA. A struct of 1, 2 or 4 equal fields has channels without it.\n"
    "layered : bool\n"
    "    The first dimension is the layer.\n"
    "cubemap : bool\n"
    "    The array's shape is (6, n, n), or (layers, 6, n, n): +x, -x, +y, -y, +z, -z.\n"
    "    Coordinates are a direction. A filter does not cross the edges of a face.\n"
    "border : float or tuple of float\n"
    "    What address 'border' reads outside; a tuple has one per channel.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError\n"
    "    For textures that CUDA has not. Mipmaps and sRGB are not supported.\n";

static const char surface_doc[] =
    "Surface(array, *, channels=1, layered=False, cubemap=False)\n"
    "--\n\n"
    "An array that kernels read and write by element: the argument of a Kernel whose parameter is\n"
    "a `cudaSurfaceObject_t`, or a value of textures= for a .surfref variable of the PTX. The\n"
    "array is written if the run succeeds.\n\n"
    "Parameters\n"
    "----------\n"
    "array : numpy.ndarray\n"
    "    Writable; else, and the other parameters, as of Texture.\n";

static PyType_Slot texture_slots[] = {
    {Py_tp_doc, (void *)texture_doc}, {Py_tp_new, texture_new},
    {Py_tp_dealloc, texture_dealloc}, {Py_tp_repr, texture_repr},
    {Py_tp_getset, texture_getset},   {0, NULL},
};

static PyType_Slot surface_slots[] = {
    {Py_tp_doc, (void *)surface_doc}, {Py_tp_new, surface_new},
    {Py_tp_dealloc, texture_dealloc}, {Py_tp_repr, texture_repr},
    {Py_tp_getset, texture_getset},   {0, NULL},
};

PyType_Spec texture_spec = {
    .name = "smemkern.Texture",
    .basicsize = sizeof(texture),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = texture_slots,
};

PyType_Spec surface_spec = {
    .name = "smemkern.Surface",
    .basicsize = sizeof(texture),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = surface_slots,
};
