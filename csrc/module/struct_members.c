/* Lays out the members of a struct argument. Each type has one size and one alignment, so the
 * layout follows from the types alone; the size of the kernel's parameter then checks it. */
#include "struct_members.h"

enum { MAX_DEPTH = 32 };

typedef struct layout {
    size_t size, alignment;
} layout;

typedef struct walk {
    size_t room; /* bytes of the kernel's struct: the walk ends past them */
    Py_ssize_t index;
    unsigned char *to;
    struct_array_fn array;
    void *context;
} walk;

static size_t rounded_up(size_t at, size_t alignment) {
    return (at + alignment - 1) / alignment * alignment;
}

static int refuse(const walk *w, PyObject *member, const char *remedy) {
    PyErr_Format(PyExc_TypeError, "argument %zd has a member of type %.200s; %s", w->index,
                 Py_TYPE(member)->tp_name, remedy);
    return -1;
}

static int layout_of_scalar(const walk *w, PyObject *member, layout *out) {
    PyArray_Descr *descr = PyArray_DescrFromScalar(member);
    if (descr == NULL) return -1;
    const bool plain = !PyDataType_REFCHK(descr) && PyArray_ISNBO(descr->byteorder);
    *out = (layout){(size_t)PyDataType_ELSIZE(descr), (size_t)PyDataType_ALIGNMENT(descr)};
    if (descr->kind == 'c') out->alignment = out->size; /* float2, cuda::std::complex */
    Py_DECREF(descr);
    return plain && out->size ? 0 : refuse(w, member, "pass plain numbers in native byte order");
}

static int layout_of(const walk *w, PyObject *member, int depth, layout *out);

/* An empty struct has one byte. */
static int layout_of_tuple(const walk *w, PyObject *tuple, int depth, layout *out) {
    layout all = {0, 1};
    if (depth >= MAX_DEPTH) return refuse(w, tuple, "structs may be nested 32 deep");
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++) {
        layout one;
        if (layout_of(w, PyTuple_GET_ITEM(tuple, k), depth + 1, &one)) return -1;
        all.size = rounded_up(all.size, one.alignment) + one.size;
        if (one.alignment > all.alignment) all.alignment = one.alignment;
        if (all.size > w->room) break; /* of shared tuples there may be any number */
    }
    *out = (layout){rounded_up(all.size ? all.size : 1, all.alignment), all.alignment};
    return 0;
}

static int layout_of(const walk *w, PyObject *member, int depth, layout *out) {
    *out = (layout){sizeof(uint64_t), sizeof(uint64_t)};
    if (PyArray_Check(member) || member == Py_None) return 0;
    if (PyTuple_Check(member)) return layout_of_tuple(w, member, depth, out);
    if (PyArray_IsScalar(member, Generic)) return layout_of_scalar(w, member, out);
    if (PyBytes_Check(member))
        *out = (layout){(size_t)PyBytes_GET_SIZE(member), 1};
    else if (PyBool_Check(member))
        *out = (layout){sizeof(bool), sizeof(bool)};
    else if (PyLong_Check(member))
        *out = (layout){sizeof(int32_t), sizeof(int32_t)};
    else if (PyFloat_Check(member))
        return refuse(w, member, "pass numpy.float32 or numpy.float64");
    else
        return refuse(w, member,
                      "members of a struct are NumPy arrays (pointers), None, NumPy "
                      "numbers, int (a C int), bool, bytes, and tuples of these");
    return 0;
}

/* A Python int is a C int, signed or unsigned. */
static int place_int(const walk *w, PyObject *member, size_t at) {
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(member, &overflow);
    if (overflow || value < INT32_MIN || value > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError,
                     "argument %zd has the member %S, which does not fit into an int; pass "
                     "numpy.int64",
                     w->index, member);
        return -1;
    }
    const uint32_t bits = (uint32_t)value;
    memcpy(w->to + at, &bits, sizeof bits);
    return 0;
}

/* All of the struct fits: struct_pack has compared the sizes. */
static int place(const walk *w, PyObject *member, int depth, size_t at) {
    if (PyArray_Check(member)) return w->array(w->context, (PyArrayObject *)member, at);
    if (PyTuple_Check(member)) {
        for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(member); k++) {
            PyObject *one = PyTuple_GET_ITEM(member, k);
            layout its;
            if (layout_of(w, one, depth + 1, &its)) return -1;
            at = rounded_up(at, its.alignment);
            if (place(w, one, depth + 1, at)) return -1;
            at += its.size;
        }
    } else if (PyBytes_Check(member)) {
        memcpy(w->to + at, PyBytes_AS_STRING(member), (size_t)PyBytes_GET_SIZE(member));
    } else if (PyArray_IsScalar(member, Generic)) {
        PyArray_ScalarAsCtype(member, w->to + at);
    } else if (PyBool_Check(member)) {
        w->to[at] = member == Py_True;
    } else if (PyLong_Check(member)) {
        return place_int(w, member, at);
    }
    return 0;
}

int struct_pack(PyObject *tuple, size_t size, Py_ssize_t index, unsigned char *to,
                struct_array_fn array, void *context) {
    const walk w = {.room = size, .index = index, .to = to, .array = array, .context = context};
    layout all;
    if (layout_of_tuple(&w, tuple, 0, &all)) return -1;
    if (all.size == size) return place(&w, tuple, 0, 0);
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is a tuple whose members make a struct of %s%zu bytes; the "
                 "kernel's struct has %zu",
                 index, all.size > size ? "at least " : "", all.size, size);
    return -1;
}
