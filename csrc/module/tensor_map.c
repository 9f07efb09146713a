/* The type smemkern.TensorMap: an array, and the box in which kernels copy it. Immutable. The
 * device encodes the map at each launch, when the array's device address is known.
 */
#include "tensor_map.h"

#include <stddef.h>
#include <structmember.h>

typedef struct tensor_map {
    PyObject_HEAD
    PyArrayObject *array;
    smk_tensor_map map;
    uint64_t handle;
    PyObject *weak_references;
} tensor_map;

static _Atomic uint64_t last_handle;

static const char *const swizzles[] = {"32B", "64B", "128B"};
static const char *const fills[] = {"nan"};

/* ---- parsing the arguments ---- */

static int read_type(PyArrayObject *array, smk_tensor_type *out) {
    PyArray_Descr *descr = PyArray_DESCR(array);
    PyObject *name = PyObject_GetAttrString((PyObject *)descr, "name");
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    int result = -1;
    if (text == NULL) goto done;
    result = smk_tensor_type_find(text, out) && !PyArray_ISBYTESWAPPED(array) ? 0 : -1;
    if (result) {
        PyErr_Format(PyExc_TypeError,
                     "a TensorMap is of integers, float16, float32, float64 or bfloat16 in native "
                     "byte order, not of %S; pass a view with a dtype of the same size",
                     descr);
    }
done:
    Py_XDECREF(name);
    return result;
}

/* One int per dimension, in the array's order; `out` is innermost first. */
static int read_counts(PyObject *given, const char *name, uint32_t rank, uint32_t *out) {
    PyObject *items = PySequence_Tuple(given);
    if (items == NULL) return -1;
    int result = -1;
    if (PyTuple_GET_SIZE(items) != (Py_ssize_t)rank) {
        PyErr_Format(PyExc_ValueError, "%s has %zd elements, the array %u dimensions", name,
                     PyTuple_GET_SIZE(items), (unsigned)rank);
        goto done;
    }
    for (uint32_t d = 0; d < rank; d++) {
        Py_ssize_t value = PyNumber_AsSsize_t(PyTuple_GET_ITEM(items, rank - 1 - d), NULL);
        if (value == -1 && PyErr_Occurred()) goto done;
        if (value < 1 || value > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%s has the element %zd", name, value);
            goto done;
        }
        out[d] = (uint32_t)value;
    }
    result = 0;
done:
    Py_DECREF(items);
    return result;
}

/* *out: 0 for None, else the position of the name, from 1. */
static int read_name(PyObject *given, const char *what, const char *const *names, int n, int *out) {
    *out = 0;
    if (given == Py_None) return 0;
    for (int k = 0; k < n && PyUnicode_Check(given); k++) {
        if (PyUnicode_CompareWithASCIIString(given, names[k]) == 0) {
            *out = k + 1;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "%s must be None or one of %s%s%s%s%s, not %R", what, names[0],
                 n > 1 ? ", " : "", n > 1 ? names[1] : "", n > 2 ? ", " : "", n > 2 ? names[2] : "",
                 given);
    return -1;
}

static int read_layout(PyArrayObject *array, smk_tensor_map *map) {
    int rank = PyArray_NDIM(array);
    if (rank < 1 || rank > SMK_TENSOR_RANK) {
        PyErr_Format(PyExc_ValueError, "a TensorMap is of 1 to %d dimensions, not %d",
                     SMK_TENSOR_RANK, rank);
        return -1;
    }
    map->rank = (uint32_t)rank;
    for (int d = 0; d < rank; d++) {
        npy_intp stride = PyArray_STRIDE(array, rank - 1 - d);
        map->size[d] = (uint64_t)PyArray_DIM(array, rank - 1 - d);
        if (map->size[d] < 2 || PyArray_SIZE(array) == 0) { /* stride unused: any valid one */
            uint64_t inner = d == 0 ? 0 : map->size[d - 1] * map->stride[d - 1];
            map->stride[d] = d == 0 ? (uint64_t)PyArray_ITEMSIZE(array) : (inner + 15) & ~15ull;
            continue;
        }
        if (stride < 0 || (d == 0 && stride != PyArray_ITEMSIZE(array))) {
            PyErr_Format(PyExc_ValueError,
                         "the array's dimension %d has a stride of %zd bytes; the last must be "
                         "contiguous, and none negative",
                         rank - 1 - d, (Py_ssize_t)stride);
            return -1;
        }
        map->stride[d] = (uint64_t)stride;
    }
    return 0;
}

/* Raises if the array's shape or strides have changed since the map was made. */
PyArrayObject *tensor_map_read(PyObject *object, smk_tensor_map *out, char **end, PyObject **hold) {
    const tensor_map *self = (const tensor_map *)object;
    smk_tensor_map now = self->map;
    PyArrayObject *array = array_hold(self->array, hold);
    if (array == NULL) return NULL;
    *out = self->map;
    if (PyArray_ITEMSIZE(array) != (npy_intp)smk_tensor_type_bytes(now.type) ||
        read_layout(array, &now) || now.rank != out->rank ||
        memcmp(now.size, out->size, now.rank * sizeof *now.size) ||
        memcmp(now.stride, out->stride, now.rank * sizeof *now.stride)) {
        PyErr_SetString(PyExc_ValueError, "the array of a TensorMap has another shape, or other "
                                          "strides, than when the map was made: make a new one");
        Py_DECREF(array);
        Py_CLEAR(*hold);
        return NULL;
    }
    *end = PyArray_BYTES(array) + smk_tensor_type_bytes(now.type);
    for (uint32_t d = 0; d < now.rank; d++)
        *end += (now.size[d] - 1) * now.stride[d];
    return array;
}

static PyObject *tensor_map_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"array", "box", "swizzle", "element_strides", "fill", NULL};
    PyObject *array, *box, *swizzle = Py_None, *steps = Py_None, *fill = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|$OOO:TensorMap", keywords, &PyArray_Type,
                                     &array, &box, &swizzle, &steps, &fill)) {
        return NULL;
    }
    smk_tensor_map map = {.step = {1, 1, 1, 1, 1}};
    int swizzled, filled;
    if (read_type((PyArrayObject *)array, &map.type) || read_layout((PyArrayObject *)array, &map) ||
        read_counts(box, "box", map.rank, map.box) ||
        (steps != Py_None && read_counts(steps, "element_strides", map.rank, map.step)) ||
        read_name(swizzle, "swizzle", swizzles, 3, &swizzled) ||
        read_name(fill, "fill", fills, 1, &filled)) {
        return NULL;
    }
    map.swizzle = (smk_swizzle)swizzled;
    map.fill_nan = filled;
    smk_status status = {0};
    if (smk_tensor_map_check(&map, &status))
        return raise_status(PyType_GetModuleState(type), &status);
    tensor_map *self = (tensor_map *)type->tp_alloc(type, 0);
    if (self) {
        self->array = (PyArrayObject *)Py_NewRef(array);
        self->map = map;
        self->handle = ++last_handle;
    }
    return (PyObject *)self;
}

static void tensor_map_dealloc(tensor_map *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->weak_references) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->array);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- bytes that stand for a map ---- */

int tensor_maps_start(module_state *state) {
    PyObject *weakref = PyImport_ImportModule("weakref"), *os = PyImport_ImportModule("os");
    PyObject *mark =
        os ? PyObject_CallMethod(os, "urandom", "i", sizeof state->tensor_map_mark) : NULL;
    if (weakref && mark) {
        memcpy(state->tensor_map_mark, PyBytes_AS_STRING(mark), sizeof state->tensor_map_mark);
        state->tensor_maps = PyObject_CallMethod(weakref, "WeakValueDictionary", NULL);
    }
    Py_XDECREF(mark);
    Py_XDECREF(os);
    Py_XDECREF(weakref);
    return state->tensor_maps ? 0 : -1;
}

static PyObject *tensor_map_bytes(tensor_map *self, PyObject *Py_UNUSED(none)) {
    const module_state *state = PyType_GetModuleState(Py_TYPE(self));
    unsigned char bytes[SMK_TENSOR_MAP_BYTES] = {0};
    memcpy(bytes, state->tensor_map_mark, sizeof state->tensor_map_mark);
    memcpy(bytes + sizeof state->tensor_map_mark, &self->handle, sizeof self->handle);
    PyObject *handle = PyLong_FromUnsignedLongLong(self->handle);
    const int kept = handle ? PyObject_SetItem(state->tensor_maps, handle, (PyObject *)self) : -1;
    Py_XDECREF(handle);
    return kept ? NULL : PyBytes_FromStringAndSize((const char *)bytes, sizeof bytes);
}

PyObject *tensor_map_of_bytes(const module_state *state, const unsigned char *bytes,
                              Py_ssize_t argument) {
    uint64_t handle;
    if (memcmp(bytes, state->tensor_map_mark, sizeof state->tensor_map_mark)) return NULL;
    memcpy(&handle, bytes + sizeof state->tensor_map_mark, sizeof handle);
    PyObject *key = PyLong_FromUnsignedLongLong(handle);
    PyObject *map = key ? PyObject_GetItem(state->tensor_maps, key) : NULL;
    Py_XDECREF(key);
    if (map || !PyErr_ExceptionMatches(PyExc_KeyError)) return map;
    PyErr_Format(
        PyExc_ValueError,
        "argument %zd contains the bytes of a TensorMap that does not exist any more; keep "
        "the TensorMap until the kernel is called",
        argument);
    return NULL;
}

/* ---- attributes ---- */

/* One number per dimension, in the array's order. */
static PyObject *counts_tuple(const uint32_t *counts, uint32_t rank) {
    PyObject *out = PyTuple_New(rank);
    for (uint32_t d = 0; out && d < rank; d++) {
        PyObject *n = PyLong_FromUnsignedLong(counts[rank - 1 - d]);
        if (n == NULL) {
            Py_CLEAR(out);
            break;
        }
        PyTuple_SET_ITEM(out, d, n);
    }
    return out;
}

static PyObject *get_box(tensor_map *self, void *Py_UNUSED(closure)) {
    return counts_tuple(self->map.box, self->map.rank);
}

static PyObject *get_element_strides(tensor_map *self, void *Py_UNUSED(closure)) {
    return counts_tuple(self->map.step, self->map.rank);
}

static PyObject *get_swizzle(tensor_map *self, void *Py_UNUSED(closure)) {
    if (!self->map.swizzle) Py_RETURN_NONE;
    return PyUnicode_FromString(swizzles[self->map.swizzle - 1]);
}

static PyObject *get_fill(tensor_map *self, void *Py_UNUSED(closure)) {
    if (!self->map.fill_nan) Py_RETURN_NONE;
    return PyUnicode_FromString(fills[0]);
}

static PyObject *get_array(tensor_map *self, void *Py_UNUSED(closure)) {
    return Py_NewRef((PyObject *)self->array);
}

static PyObject *tensor_map_repr(tensor_map *self) {
    static const char *const names[] = {"None", "'32B'", "'64B'", "'128B'"};
    PyObject *box = get_box(self, NULL);
    PyObject *shape = PyObject_GetAttrString((PyObject *)self->array, "shape");
    PyObject *text = box && shape
                         ? PyUnicode_FromFormat("<smemkern.TensorMap of %s %R, box %R, swizzle %s>",
                                                smk_tensor_type_name(self->map.type), shape, box,
                                                names[self->map.swizzle])
                         : NULL;
    Py_XDECREF(box);
    Py_XDECREF(shape);
    return text;
}

static PyGetSetDef tensor_map_getset[] = {
    {"array", (getter)get_array, NULL, "The array.", NULL},
    {"box", (getter)get_box, NULL, "Elements of the box, in the order of the array's dimensions.",
     NULL},
    {"swizzle", (getter)get_swizzle, NULL, "None, '32B', '64B' or '128B'.", NULL},
    {"element_strides", (getter)get_element_strides, NULL,
     "Per dimension, which elements are copied: every n-th.", NULL},
    {"fill", (getter)get_fill, NULL, "None or 'nan'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char tensor_map_doc[] =
    "TensorMap(array, box, *, swizzle=None, element_strides=None, fill=None)\n"
    "--\n\n"
    "An array for tensor copies (TMA): the argument of a Kernel whose parameter is a\n"
    "`const __grid_constant__ CUtensorMap`, or `const CUtensorMap *`. The kernel copies box by\n"
    "box, with coordinates from the innermost dimension out. In a struct argument, bytes(map) are\n"
    "the bytes of the member; keep the map until the kernel is called.\n\n"
    "Parameters\n"
    "----------\n"
    "array : numpy.ndarray\n"
    "    1 to 5 dimensions; the last contiguous, the strides of the others multiples of 16 bytes.\n"
    "    Integers, float16, float32, float64, bfloat16. A writable array is read and written.\n"
    "box : sequence of int\n"
    "    Extents of the box, 1 to 256 elements, in the order of the array's dimensions. The last\n"
    "    extent is a multiple of 16 bytes, and at most the swizzle's span.\n"
    "swizzle : {None, '32B', '64B', '128B'}\n"
    "    Permutes the 16-byte chunks of the box in shared memory.\n"
    "element_strides : sequence of int, optional\n"
    "    Per dimension, copy only every n-th element: 1 to 8, and 1 in the last. The box then has\n"
    "    ceil(box / n) elements.\n"
    "fill : {None, 'nan'}\n"
    "    The value of elements outside of the array: None means 0.\n\n"
    "Raises\n"
    "------\n"
    "TypeError, ValueError\n"
    "    For maps that the driver's cuTensorMapEncodeTiled refuses, also on the emulator.\n";

static PyMethodDef tensor_map_methods[] = {
    {"__bytes__", (PyCFunction)tensor_map_bytes, METH_NOARGS,
     "128 bytes that stand for the map in the bytes of a struct argument."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef tensor_map_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tensor_map, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tensor_map_slots[] = {
    {Py_tp_doc, (void *)tensor_map_doc}, {Py_tp_new, tensor_map_new},
    {Py_tp_dealloc, tensor_map_dealloc}, {Py_tp_repr, tensor_map_repr},
    {Py_tp_getset, tensor_map_getset},   {Py_tp_methods, tensor_map_methods},
    {Py_tp_members, tensor_map_members}, {0, NULL},
};

PyType_Spec tensor_map_spec = {
    .name = "smemkern.TensorMap",
    .basicsize = sizeof(tensor_map),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_map_slots,
};
