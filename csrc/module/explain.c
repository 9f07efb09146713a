/* smemkern.banks.suggest, and words for requests and hazards: the functions of emu/cost/layouts.h
 * and emu/cost/explain.h. */
#include "module.h"

#include "../emu/emu.h"

enum { LANES = 32 };

/* ---- layouts ---- */

/* The requests of one access pattern, which its arrays hold. */
typedef struct pattern {
    PyArrayObject *row, *col, *active;
    uint32_t width;
    bool load;
} pattern;

static bool has_shape(PyArrayObject *array, int type, int n_dims, npy_intp n) {
    return PyArray_TYPE(array) == type && PyArray_NDIM(array) == n_dims &&
           PyArray_DIM(array, 0) == n && (n_dims == 1 || PyArray_DIM(array, 1) == LANES) &&
           PyArray_ISCARRAY_RO(array);
}

static int read_pattern(PyObject *given, pattern *out) {
    PyObject *row, *col, *active;
    long width;
    const char *op;
    if (!PyArg_ParseTuple(given, "O!O!O!ls", &PyArray_Type, &row, &PyArray_Type, &col,
                          &PyArray_Type, &active, &width, &op))
        return -1;
    *out = (pattern){(PyArrayObject *)row, (PyArrayObject *)col, (PyArrayObject *)active,
                     (uint32_t)width, strcmp(op, "load") == 0};
    if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) {
        PyErr_Format(PyExc_ValueError, "width should be 1, 2, 4, 8 or 16 bytes, not %ld", width);
        return -1;
    }
    const npy_intp n = PyArray_NDIM(out->active) == 1 ? PyArray_DIM(out->active, 0) : -1;
    if (n < 0 || !has_shape(out->row, NPY_INT64, 2, n) || !has_shape(out->col, NPY_INT64, 2, n) ||
        !has_shape(out->active, NPY_UINT32, 1, n)) {
        PyErr_SetString(PyExc_TypeError,
                        "rows and columns should be contiguous int64 (n, 32), active uint32 (n,)");
        return -1;
    }
    return 0;
}

static size_t n_requests(const pattern *p) {
    return (size_t)PyArray_DIM(p->active, 0);
}

static void fill_accesses(const pattern *p, bank_access *out) {
    const int64_t *row = PyArray_DATA(p->row), *col = PyArray_DATA(p->col);
    const uint32_t *active = PyArray_DATA(p->active);
    for (size_t k = 0; k < n_requests(p); k++)
        out[k] = (bank_access){row + k * LANES, col + k * LANES, active[k], p->width, p->load};
}

/* The accesses of all patterns of a list, in memory that the caller frees. */
static bank_access *read_accesses(PyObject *list, size_t *n) {
    const Py_ssize_t n_patterns = PyList_GET_SIZE(list);
    bank_access *accesses = NULL;
    *n = 0;
    for (Py_ssize_t k = 0; k < n_patterns; k++) {
        pattern p;
        if (read_pattern(PyList_GET_ITEM(list, k), &p)) {
            PyMem_Free(accesses);
            return NULL;
        }
        const size_t size = (*n + n_requests(&p) + 1) * sizeof *accesses;
        bank_access *more = PyMem_Realloc(accesses, size);
        if (!more) {
            PyMem_Free(accesses);
            PyErr_NoMemory();
            return NULL;
        }
        accesses = more;
        fill_accesses(&p, accesses + *n);
        *n += n_requests(&p);
    }
    return accesses;
}

/* As smemkern.banks.Layout takes it. */
static PyObject *swizzle_of(const bank_layout *l) {
    switch (l->kind) {
    case LAYOUT_PADDED: Py_RETURN_NONE;
    case LAYOUT_XOR:
        if (l->is_element) return PyUnicode_FromString("xor");
        return PyUnicode_FromFormat("xor:%uB", l->chunk);
    case LAYOUT_TMA: return PyUnicode_FromFormat("%uB", l->span);
    case LAYOUT_SWIZZLE: return Py_BuildValue("(III)", l->bits, l->base, l->shift);
    }
    Py_UNREACHABLE();
}

static int append_choice(PyObject *list, const bank_choice *c) {
    PyObject *row = Py_BuildValue("(INKKKIO)", c->layout.pad, swizzle_of(&c->layout),
                                  (unsigned long long)c->wasted, (unsigned long long)c->wavefronts,
                                  (unsigned long long)c->ideal, c->worst,
                                  c->conflict_free ? Py_True : Py_False);
    const int failed = row ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return failed;
}

PyObject *model_layouts(PyObject *Py_UNUSED(module), PyObject *args) {
    unsigned long long rows, cols;
    unsigned itemsize;
    PyObject *given;
    if (!PyArg_ParseTuple(args, "KKIO!:layouts", &rows, &cols, &itemsize, &PyList_Type, &given))
        return NULL;
    const bank_tile tile = {rows, cols, itemsize};
    size_t n;
    bank_access *accesses = read_accesses(given, &n);
    if (PyErr_Occurred()) return NULL;
    PyObject *list = PyList_New(0);
    bank_layout layouts[LAYOUTS_MAX];
    const size_t n_layouts = layouts_list(&tile, layouts);
    for (size_t k = 0; list && k < n_layouts; k++) {
        bank_choice choice;
        bool fits;
        Py_BEGIN_ALLOW_THREADS;
        fits = layout_cost(&tile, &layouts[k], accesses, n, &choice);
        Py_END_ALLOW_THREADS;
        if ((fits && append_choice(list, &choice)) || PyErr_CheckSignals()) Py_CLEAR(list);
    }
    PyMem_Free(accesses);
    return list;
}

/* ---- words for requests ---- */

static int read_addresses(PyObject *given, uint64_t address[LANES]) {
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != LANES) {
        PyErr_SetString(PyExc_TypeError, "addresses should be a tuple of 32 integers");
        return -1;
    }
    for (int lane = 0; lane < LANES; lane++)
        address[lane] = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(given, lane));
    return PyErr_Occurred() ? -1 : 0;
}

static int read_request(PyObject *given, uint64_t address[LANES], explain_request *out) {
    const char *op;
    PyObject *addresses;
    *out = (explain_request){.address = address};
    if (!PyArg_ParseTuple(given, "sOIIII", &op, &addresses, &out->active, &out->width,
                          &out->wavefronts, &out->ideal) ||
        read_addresses(addresses, address))
        return -1;
    if (!explain_operation(op, out)) {
        PyErr_Format(PyExc_ValueError, "there are no words for the operation '%s'", op);
        return -1;
    }
    if (!out->width || out->width > 16 || out->width & (out->width - 1)) {
        PyErr_Format(PyExc_ValueError, "width should be 1, 2, 4, 8 or 16 bytes, not %u",
                     out->width);
        return -1;
    }
    return 0;
}

static int read_array(PyObject *given, explain_array *out) {
    unsigned long long at, bytes, cols, rows = 0;
    *out = (explain_array){0};
    if (!PyArg_ParseTuple(given, "zKKIK|K", &out->name, &at, &bytes, &out->element, &cols, &rows))
        return -1;
    out->at = at;
    out->bytes = bytes;
    out->cols = cols;
    out->rows = rows;
    return 0;
}

PyObject *model_explain_request(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given, *of;
    explain_request request;
    explain_array array;
    uint64_t address[LANES];
    char text[EXPLAIN_SIZE];
    if (!PyArg_ParseTuple(args, "O!O:explain_request", &PyTuple_Type, &given, &of) ||
        read_request(given, address, &request) || (of != Py_None && read_array(of, &array)))
        return NULL;
    if (of != Py_None) request.array = &array;
    explain_conflict(&request, text, sizeof text);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *model_explain_layout(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given, *of;
    explain_array array;
    char text[EXPLAIN_SIZE];
    size_t written = 0;
    if (!PyArg_ParseTuple(args, "O!O!:explain_layout", &PyList_Type, &given, &PyTuple_Type, &of) ||
        read_array(of, &array))
        return NULL;
    const size_t n = (size_t)PyList_GET_SIZE(given);
    explain_request *requests = PyMem_Calloc(n + 1, sizeof *requests);
    uint64_t (*address)[LANES] = PyMem_Calloc(n + 1, sizeof *address);
    bool failed = !requests || !address;
    if (failed) PyErr_NoMemory();
    for (size_t k = 0; !failed && k < n; k++)
        failed = read_request(PyList_GET_ITEM(given, (Py_ssize_t)k), address[k], &requests[k]);
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS;
        written = explain_layout(&array, requests, n, NULL, text, sizeof text);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(address);
    PyMem_Free(requests);
    if (failed) return NULL;
    if (!written) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* ---- arrays in shared memory ---- */

static void append_array(void *list, const explain_array *a) {
    PyObject *row =
        Py_BuildValue("(sKKIKK)", a->name, (unsigned long long)a->at, (unsigned long long)a->bytes,
                      a->element, (unsigned long long)a->cols, (unsigned long long)a->rows);
    if (row) PyList_Append(list, row);
    Py_XDECREF(row);
}

PyObject *model_shared_arrays(PyObject *module, PyObject *args) {
    const char *ptx, *entry;
    Py_ssize_t size;
    unsigned long long dynamic_bytes;
    smk_status status = {0};
    if (!PyArg_ParseTuple(args, "s#zK:shared_arrays", &ptx, &size, &entry, &dynamic_bytes))
        return NULL;
    PyObject *list = PyList_New(0);
    if (list && emu_shared_arrays_read(ptx, (size_t)size, entry, dynamic_bytes, append_array, list,
                                       &status))
        raise_status(PyModule_GetState(module), &status);
    if (PyErr_Occurred()) Py_CLEAR(list);
    return list;
}

PyObject *model_explain_element(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *given;
    explain_array array;
    long long at;
    unsigned width;
    const char *text;
    char words[EXPLAIN_SIZE];
    if (!PyArg_ParseTuple(args, "O!LIz:explain_element", &PyTuple_Type, &given, &at, &width,
                          &text) ||
        read_array(given, &array))
        return NULL;
    explain_element(&array, at, width, text, words, sizeof words);
    return PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
}

/* ---- words for hazards ---- */

static int read_kind(const char *name, smk_hazard_kind *out) {
    for (int kind = 0; kind < SMK_N_HAZARDS; kind++)
        if (strcmp(name, smk_hazard_name((smk_hazard_kind)kind)) == 0) {
            *out = (smk_hazard_kind)kind;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "there is no hazard of kind '%s'", name);
    return -1;
}

static int read_party(PyObject *given, smk_party *p) {
    return PyArg_ParseTuple(given, "ziiz(III)(III)", &p->file, &p->line, &p->ptx_line, &p->text,
                            &p->block[0], &p->block[1], &p->block[2], &p->thread[0], &p->thread[1],
                            &p->thread[2])
               ? 0
               : -1;
}

typedef size_t write_words(const smk_hazard *hazard, const char *where, char *out, size_t size);

static size_t write_cure(const smk_hazard *hazard, const char *where, char *out, size_t size) {
    (void)where;
    return explain_cure(hazard, out, size);
}

/* Messages may be longer than EXPLAIN_SIZE. */
static PyObject *written(write_words *write, const smk_hazard *h, const char *where) {
    const size_t length = write(h, where, NULL, 0);
    if (!length) Py_RETURN_NONE;
    char *text = PyMem_Malloc(length + 1);
    if (!text) return PyErr_NoMemory();
    write(h, where, text, length + 1);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace");
    PyMem_Free(text);
    return result;
}

PyObject *model_explain_hazard(PyObject *Py_UNUSED(module), PyObject *args) {
    const char *kind, *space, *message, *where;
    PyObject *party, *other;
    unsigned long long count;
    smk_hazard h = {0};
    if (!PyArg_ParseTuple(args, "sO!O!zKzs:explain_hazard", &kind, &PyTuple_Type, &party,
                          &PyTuple_Type, &other, &space, &count, &message, &where) ||
        read_kind(kind, &h.kind) || read_party(party, &h.party) || read_party(other, &h.other))
        return NULL;
    h.space = !space                         ? SMK_NO_SPACE
              : strcmp(space, "shared") == 0 ? SMK_SHARED_SPACE
              : strcmp(space, "global") == 0 ? SMK_GLOBAL_SPACE
                                             : SMK_OTHER_SPACE;
    h.count = count;
    h.message = (char *)message;
    return Py_BuildValue("(NN)", written(explain_hazard, &h, where), written(write_cure, &h, ""));
}
