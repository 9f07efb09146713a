/* Packs the arguments of a user's kernel into its parameter block.
 *
 * An array becomes a pointer to its memory. The kernel works on a copy of a writable array, and the
 * copy is written back if the run succeeds. A read-only array is read in place. Arrays that overlap
 * share one buffer, so two views of the same memory alias in the kernel too. An array in GPU memory
 * is used in place. Textures and surfaces are arrays whose parameter becomes a handle; those of
 * textures= have no parameter.
 */
#include "arguments.h"

#include "../cuda/gpu.h"
#include "scalar.h"
#include "struct_members.h"
#include "tensor_map.h"
#include "texture.h"

struct array_argument {
    PyArrayObject *array; /* a view of the caller's */
    PyObject *hold;       /* see array_hold */
    char *begin, *end;
    smk_pointer *pointer; /* where its address goes ... */
    smk_tensor_map *map;  /* ... or the map that describes it ... */
    smk_texture *texture; /* ... or whose texels it has; NULL: none */
    int index;            /* of the argument; from the number of parameters on: in textures= */
    int order;            /* unlike `index` unique: a struct may have several tensor maps */
    /* The smallest `order` among the arrays that overlap this one, directly or through others. */
    int group;
    bool writable;
    uint32_t buffer; /* and the first byte in it, once share_buffers has run */
    uint64_t at;
};

/* ---- arrays ---- */

static bool may_be_pointer(const emu_parameter *parameter) {
    return parameter->size == sizeof(uint64_t) && parameter->kind != 'f' &&
           !parameter_is_struct(parameter);
}

static int check_pointer(const emu_parameter *parameter, Py_ssize_t index) {
    if (may_be_pointer(parameter)) return 0;
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is an array, but the kernel's parameter is not a pointer "
                 "(%u bytes of kind '%c')",
                 index, (unsigned)parameter->size, parameter->kind);
    return -1;
}

static int check_layout(PyArrayObject *array, Py_ssize_t index) {
    if (!PyArray_ISCONTIGUOUS(array) && !PyArray_ISFORTRAN(array)) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is not contiguous, and a kernel receives no strides; pass "
                     "numpy.ascontiguousarray(...)",
                     index);
        return -1;
    }
    PyArray_Descr *descr = PyArray_DESCR(array);
    if (!PyDataType_ISLEGACY(descr) || PyDataType_REFCHK(descr) || PyArray_ISBYTESWAPPED(array)) {
        PyErr_Format(PyExc_TypeError,
                     "argument %zd has dtype %S; a kernel takes plain numbers in native byte order",
                     index, descr);
        return -1;
    }
    return 0;
}

/* A struct passed by value: the array must have exactly its bytes, for example a structured array
 * of one element. */
static int pack_array(PyArrayObject *array, const emu_parameter *parameter, Py_ssize_t index,
                      unsigned char *to) {
    if (check_layout(array, index)) return -1;
    if (PyArray_NBYTES(array) != (npy_intp)parameter->size) {
        PyErr_Format(PyExc_TypeError,
                     "argument %zd is an array of %zd bytes, but the kernel's parameter is a "
                     "struct of %u bytes that is passed by value",
                     index, (Py_ssize_t)PyArray_NBYTES(array), (unsigned)parameter->size);
        return -1;
    }
    memcpy(to, PyArray_BYTES(array), parameter->size);
    return 0;
}

/* `array` and `hold` come from array_hold; steals both references. */
static struct array_argument *append_array(arguments *a, PyArrayObject *array, PyObject *hold,
                                           char *end, Py_ssize_t index) {
    struct array_argument *added = &a->arrays[a->n_arrays];
    *added = (struct array_argument){
        .order = (int)a->n_arrays++,
        .array = array,
        .hold = hold,
        .begin = PyArray_BYTES(array),
        .end = end,
        .index = (int)index,
        .writable = PyArray_ISWRITEABLE(array),
    };
    return added;
}

static smk_pointer *append_pointer(arguments *a, uint32_t arg_offset) {
    smk_pointer *added = &a->pointers[a->n_pointers++];
    *added = (smk_pointer){.arg_offset = arg_offset};
    return added;
}

/* ---- tensor maps ---- */

/* A map in the arguments, or in a buffer to which a parameter points. The map's array becomes a
 * buffer like any other array. Its pointer is stored where the device later writes the encoded map.
 */
static int place_tensor_map(arguments *a, PyObject *given, uint32_t arg_offset, bool in_buffer,
                            Py_ssize_t index) {
    smk_tensor_map *map = &a->tensor_maps[a->n_tensor_maps];
    char *end;
    PyObject *hold;
    PyArrayObject *array = tensor_map_read(given, map, &end, &hold);
    if (array == NULL) return -1;
    struct array_argument *added = append_array(a, array, hold, end, index);
    if (!in_buffer) added->pointer = append_pointer(a, arg_offset);
    added->map = map;
    a->n_tensor_maps++;
    map->arg_offset = arg_offset;
    map->in_buffer = in_buffer;
    return 0;
}

static int add_tensor_map(arguments *a, PyObject *given, const emu_parameter *parameter,
                          Py_ssize_t index) {
    const bool by_value = parameter->size == SMK_TENSOR_MAP_BYTES;
    if (by_value || may_be_pointer(parameter))
        return place_tensor_map(a, given, parameter->offset, !by_value, index);
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is a TensorMap, but the kernel's parameter has %u bytes; it must be "
                 "a `const __grid_constant__ CUtensorMap`, of %d, or a pointer to one",
                 index, (unsigned)parameter->size, SMK_TENSOR_MAP_BYTES);
    return -1;
}

/* Members of structs: where a struct's bytes contain those of a TensorMap, it is placed there. */
static int find_tensor_maps(arguments *a, const emu_parameter *parameter, Py_ssize_t index) {
    const uint32_t end = parameter->offset + parameter->size;
    uint32_t at = (parameter->offset + SMK_TENSOR_MAP_ALIGN - 1) / SMK_TENSOR_MAP_ALIGN *
                  SMK_TENSOR_MAP_ALIGN;
    if (!parameter_is_struct(parameter)) return 0;
    for (; at + SMK_TENSOR_MAP_BYTES <= end; at += SMK_TENSOR_MAP_ALIGN) {
        PyObject *map = tensor_map_of_bytes(a->state, a->block + at, index);
        if (map == NULL && PyErr_Occurred()) return -1;
        if (map == NULL) continue;
        const int failed = place_tensor_map(a, map, at, false, index);
        Py_DECREF(map);
        if (failed) return -1;
        at += SMK_TENSOR_MAP_BYTES - SMK_TENSOR_MAP_ALIGN;
    }
    return 0;
}

/* The buffers of the maps to which parameters point. */
static int make_map_buffers(arguments *a) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        smk_tensor_map *map = array->map;
        if (!map || !map->in_buffer) continue;
        void *bytes = PyMem_RawCalloc(1, SMK_TENSOR_MAP_BYTES);
        if (bytes == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        a->map_bytes[a->n_map_bytes++] = bytes;
        map->buffer = (uint32_t)a->n_buffers;
        map->tensor_buffer = array->buffer;
        map->tensor_offset = array->at;
        append_pointer(a, map->arg_offset)->buffer = map->buffer;
        a->buffers[a->n_buffers++] = (smk_buffer){bytes, SMK_TENSOR_MAP_BYTES, SMK_IN};
    }
    return 0;
}

/* arg_offset and reference: as in smk_texture. */
static int add_texture(arguments *a, PyObject *given, uint32_t arg_offset, const char *reference,
                       Py_ssize_t index) {
    smk_texture *texture = &a->textures[a->n_textures];
    PyObject *hold;
    PyArrayObject *array = texture_read(given, texture, &hold);
    if (array == NULL) return -1;
    texture->arg_offset = arg_offset;
    texture->reference = reference;
    char *end = PyArray_BYTES(array) + PyArray_NBYTES(array);
    struct array_argument *added = append_array(a, array, hold, end, index);
    added->texture = texture;
    added->writable = texture->surface;
    a->n_textures++;
    return 0;
}

static int add_texture_argument(arguments *a, PyObject *given, const emu_parameter *parameter,
                                Py_ssize_t index) {
    if (parameter->size == sizeof(uint64_t) && parameter->kind != 'f' &&
        !parameter_is_struct(parameter)) {
        return add_texture(a, given, parameter->offset, NULL, index);
    }
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is a %s, but the kernel's parameter is not a cudaTextureObject_t or "
                 "cudaSurfaceObject_t (%u bytes of kind '%c')",
                 index, Py_IS_TYPE(given, a->state->surface_type) ? "Surface" : "Texture",
                 (unsigned)parameter->size, parameter->kind);
    return -1;
}

/* Those of textures=. */
static int add_references(arguments *a, Py_ssize_t index) {
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(a->references); k++) {
        PyObject *pair = PyList_GET_ITEM(a->references, k), *key = PyTuple_GET_ITEM(pair, 0);
        const char *name = key == Py_None ? NULL : text_of(key);
        if (key != Py_None && name == NULL) return -1;
        if (add_texture(a, PyTuple_GET_ITEM(pair, 1), SMK_NO_ARGUMENT, name, index + k)) return -1;
    }
    return 0;
}

static int add_array(arguments *a, PyArrayObject *array, const emu_parameter *parameter,
                     Py_ssize_t index) {
    if (parameter_is_struct(parameter))
        return pack_array(array, parameter, index, a->block + parameter->offset);
    PyObject *hold;
    PyArrayObject *view = array_hold(array, &hold);
    if (view == NULL) return -1;
    if (check_pointer(parameter, index) || check_layout(view, index)) {
        Py_DECREF(view);
        Py_XDECREF(hold);
        return -1;
    }
    struct array_argument *added =
        append_array(a, view, hold, PyArray_BYTES(view) + PyArray_NBYTES(view), index);
    added->pointer = append_pointer(a, parameter->offset);
    return 0;
}

typedef struct struct_argument {
    arguments *a;
    uint32_t offset; /* of the struct in the parameter block */
    Py_ssize_t index;
} struct_argument;

/* The pointer at a byte of a struct. */
static int add_member_array(void *context, PyArrayObject *array, size_t at) {
    const struct_argument *s = context;
    PyObject *hold;
    PyArrayObject *view = array_hold(array, &hold);
    if (view == NULL) return -1;
    if (check_layout(view, s->index)) {
        Py_DECREF(view);
        Py_XDECREF(hold);
        return -1;
    }
    char *end = PyArray_BYTES(view) + PyArray_NBYTES(view);
    append_array(s->a, view, hold, end, s->index)->pointer =
        append_pointer(s->a, s->offset + (uint32_t)at);
    return 0;
}

static int add_struct(arguments *a, PyObject *tuple, const emu_parameter *parameter,
                      Py_ssize_t index) {
    struct_argument s = {.a = a, .offset = parameter->offset, .index = index};
    const bool is_byte = parameter->kind == 'b' && parameter->size == 1; /* a struct of one bool */
    if (parameter_is_struct(parameter) || is_byte)
        return struct_pack(tuple, parameter->size, index, a->block + parameter->offset,
                           add_member_array, &s);
    PyErr_Format(PyExc_TypeError,
                 "argument %zd is a tuple, which is a struct, but the kernel's parameter is not "
                 "one (%u bytes of kind '%c')",
                 index, (unsigned)parameter->size, parameter->kind);
    return -1;
}

/* An array of another library in GPU memory, which arguments_start has read. */
static int add_device_array(arguments *a, const emu_parameter *parameter, Py_ssize_t index) {
    const device_array *read = &a->read[index];
    const array_label label = {.index = index};
    if (check_pointer(parameter, index)) return -1;
    if (!device_array_is_contiguous(read)) {
        return device_array_refuse(PyExc_ValueError, label,
                                   "is not contiguous, and a kernel receives no strides; pass "
                                   "cupy.ascontiguousarray(...) or tensor.contiguous()");
    }
    memcpy(a->block + parameter->offset, &read->address, sizeof read->address);
    return 0;
}

static int by_address(const void *left, const void *right) {
    const struct array_argument *l = left, *r = right;
    return (l->begin > r->begin) - (l->begin < r->begin);
}

static int by_group(const void *left, const void *right) {
    const struct array_argument *l = left, *r = right;
    return l->group != r->group ? (l->group > r->group) - (l->group < r->group)
                                : by_address(left, right);
}

/* Sorts the arrays into groups that overlap, in the order of the arguments. So the order of the
 * buffers, and with it the addresses that a kernel sees, do not depend on host addresses. */
static void group_overlapping(arguments *a) {
    qsort(a->arrays, a->n_arrays, sizeof *a->arrays, by_address);
    for (size_t first = 0, next; first < a->n_arrays; first = next) {
        char *end = a->arrays[first].end;
        int lowest = a->arrays[first].order;
        for (next = first + 1; next < a->n_arrays && a->arrays[next].begin < end; next++) {
            end = a->arrays[next].end > end ? a->arrays[next].end : end;
            lowest = a->arrays[next].order < lowest ? a->arrays[next].order : lowest;
        }
        for (size_t i = first; i < next; i++)
            a->arrays[i].group = lowest;
    }
    qsort(a->arrays, a->n_arrays, sizeof *a->arrays, by_group);
}

static void set_place(arguments *a, struct array_argument *array, uint32_t buffer, uint64_t at) {
    array->buffer = buffer;
    array->at = at;
    if (array->texture) {
        array->texture->buffer = buffer;
        array->texture->offset = at;
    } else if (array->pointer) {
        array->pointer->buffer = buffer;
        memcpy(a->block + array->pointer->arg_offset, &at, sizeof at);
    }
}

/* One buffer per group of overlapping arrays. */
static int share_buffers(arguments *a) {
    group_overlapping(a);
    for (size_t first = 0, next; first < a->n_arrays; first = next) {
        char *begin = a->arrays[first].begin, *end = begin;
        bool writable = false;
        for (next = first; next < a->n_arrays && a->arrays[next].group == a->arrays[first].group;
             next++) {
            end = a->arrays[next].end > end ? a->arrays[next].end : end;
            writable |= a->arrays[next].writable;
        }
        size_t bytes = (size_t)(end - begin);
        smk_buffer *buffer = &a->buffers[a->n_buffers];
        *buffer = (smk_buffer){begin, bytes, SMK_IN};
        if (writable && bytes > 0) {
            void *copy = PyMem_RawMalloc(bytes);
            if (copy == NULL) {
                PyErr_NoMemory();
                return -1;
            }
            *buffer = (smk_buffer){memcpy(copy, begin, bytes), bytes, SMK_IN | SMK_OUT};
        }
        for (size_t i = first; i < next; i++)
            set_place(a, &a->arrays[i], (uint32_t)a->n_buffers,
                      (uint64_t)(a->arrays[i].begin - begin));
        a->n_buffers++;
    }
    return 0;
}

/* A tensor must begin at a multiple of 16 bytes, also within a buffer that it shares. */
static int check_tensor_maps(const arguments *a) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const uint64_t at = a->arrays[i].at;
        if (a->arrays[i].map && at % 16 != 0) {
            PyErr_Format(PyExc_ValueError,
                         "a TensorMap's array begins %llu bytes into memory that it shares with "
                         "another argument; a tensor must begin at a multiple of 16",
                         (unsigned long long)at);
            return -1;
        }
    }
    return 0;
}

static int check_textures(const arguments *a) {
    for (size_t i = 0; i < a->n_textures; i++) {
        if (a->textures[i].offset % 16 == 0) continue;
        PyErr_Format(PyExc_ValueError,
                     "a %s's array begins %llu bytes into memory that it shares with another "
                     "argument; it must begin at a multiple of 16",
                     a->textures[i].surface ? "Surface" : "Texture",
                     (unsigned long long)a->textures[i].offset);
        return -1;
    }
    return 0;
}

void arguments_write_back(const arguments *a) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        if (array->writable) {
            memcpy(array->begin, (char *)a->buffers[array->buffer].host + array->at,
                   (size_t)(array->end - array->begin));
        }
    }
}

/* Finds the array that contains the hazard's byte, or else the first array of the buffer. */
static void locate(const arguments *a, smk_hazard *h) {
    for (size_t i = 0; i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        if ((int)array->buffer != h->buffer || (size_t)array->index >= a->n_read) continue;
        const int64_t at = (int64_t)array->at;
        bool inside = h->offset >= at && h->offset - at < array->end - array->begin;
        if (inside || h->argument < 0) {
            h->argument = array->index;
            h->argument_at = h->offset - at;
        }
        if (inside) return;
    }
}

void arguments_locate(const arguments *a, smk_trace *trace) {
    for (size_t i = 0; i < trace->n_hazards; i++)
        if (trace->hazards[i].buffer >= 0) locate(a, &trace->hazards[i]);
}

PyObject *arguments_places(const arguments *a) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < a->n_arrays; i++) {
        const struct array_argument *array = &a->arrays[i];
        PyObject *place = (size_t)array->index < a->n_read
                              ? Py_BuildValue("iIK", (int)array->index, (unsigned)array->buffer,
                                              (unsigned long long)array->at)
                              : Py_NewRef(Py_None);
        if (place == NULL || (place != Py_None && PyList_Append(list, place))) Py_CLEAR(list);
        Py_XDECREF(place);
    }
    return list;
}

/* ---- all arguments ---- */

/* True for types that cannot be arrays, so that no attribute has to be looked up. */
static bool is_scalar(PyObject *given) {
    return given == Py_None || PyLong_Check(given) || PyFloat_Check(given) ||
           PyComplex_Check(given) || PyBytes_Check(given) || PyTuple_Check(given) ||
           PyArray_IsScalar(given, Generic);
}

/* Reads an array of another library. The first one on a GPU sets the device; the first one that has
 * a stream sets the stream, unless the caller gave one. */
static int read_array(arguments *a, PyObject *given, Py_ssize_t index) {
    device_array *read = &a->read[index];
    if (device_array_read(a->state, given, (array_label){.index = index}, a->stream, read))
        return -1;
    if (read->place != ARRAY_DEVICE) return 0;
    if (read->ordinal >= 0 && a->ordinal >= 0 && read->ordinal != a->ordinal) {
        PyErr_Format(PyExc_ValueError,
                     "argument %zd is in the memory of cuda:%d and argument %zd in that of "
                     "cuda:%d; a kernel runs on one device",
                     a->first_on_device, a->ordinal, index, read->ordinal);
        return -1;
    }
    if (a->ordinal < 0) {
        a->ordinal = read->ordinal;
        a->first_on_device = index;
    }
    a->reused_unordered |= read->reused_unordered;
    a->stream = a->stream ? a->stream : read->stream;
    return 0;
}

/* name: None if the texture has none. */
static int append_reference(arguments *a, PyObject *name, PyObject *given) {
    if ((name != Py_None && !PyUnicode_Check(name)) || !texture_check(a->state, given)) {
        PyErr_Format(PyExc_TypeError,
                     "textures has %.100R; it must be a list of smemkern.Texture and Surface, or a "
                     "dict with names of .texref and .surfref variables for them",
                     texture_check(a->state, given) ? name : given);
        return -1;
    }
    PyObject *pair = PyTuple_Pack(2, name, given);
    const int result = pair ? PyList_Append(a->references, pair) : -1;
    Py_XDECREF(pair);
    return result;
}

/* textures=: a dict of names and textures, a list or tuple of textures, or None. */
static int read_references(arguments *a, PyObject *given) {
    PyObject *key, *value;
    a->references = PyList_New(0);
    if (a->references == NULL || given == Py_None) return a->references ? 0 : -1;
    if (PyDict_CheckExact(given)) {
        for (Py_ssize_t at = 0; PyDict_Next(given, &at, &key, &value);)
            if (append_reference(a, key, value)) return -1;
        return 0;
    }
    if (!PyList_CheckExact(given) && !PyTuple_CheckExact(given))
        return append_reference(a, Py_None, given);
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(given); k++)
        if (append_reference(a, Py_None, PySequence_Fast_GET_ITEM(given, k))) return -1;
    return 0;
}

int arguments_start(module_state *state, const emu_signature *signature, PyObject *const *given,
                    Py_ssize_t n, PyObject *textures, void *stream, arguments *out) {
    *out = (arguments){
        .ordinal = ORDINAL_NONE, .first_on_device = -1, .state = state, .stream = stream};
    if ((size_t)n != signature->n_parameters) {
        PyErr_Format(PyExc_TypeError, "kernel %s takes %zu arguments but %zd were given",
                     signature->entry, signature->n_parameters, n);
        return -1;
    }
    if (read_references(out, textures)) return -1;
    /* Each parameter, each of textures=, and each place in structs where a pointer may be. */
    const size_t references = (size_t)PyList_GET_SIZE(out->references);
    const size_t room = (size_t)n + 1 + references + signature->args_bytes / sizeof(uint64_t);
    out->block = PyMem_RawCalloc(signature->args_bytes + 1, 1);
    out->pointers = PyMem_RawCalloc(room, sizeof *out->pointers);
    out->buffers = PyMem_RawCalloc(2 * room, sizeof *out->buffers); /* an array's, and its map's */
    out->map_bytes = PyMem_RawCalloc(room, sizeof *out->map_bytes);
    out->arrays = PyMem_RawCalloc(room, sizeof *out->arrays);
    out->tensor_maps = PyMem_RawCalloc(room, sizeof *out->tensor_maps);
    out->textures = PyMem_RawCalloc(room, sizeof *out->textures);
    out->read = PyMem_RawCalloc(room, sizeof *out->read);
    out->views = PyMem_RawCalloc(room, sizeof *out->views);
    out->after = PyMem_RawCalloc(room, sizeof *out->after);
    if (!out->block || !out->pointers || !out->buffers || !out->arrays || !out->tensor_maps ||
        !out->map_bytes || !out->textures || !out->read || !out->views || !out->after) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        out->n_read = (size_t)i + 1;
        if (!PyArray_Check(given[i]) && !is_scalar(given[i]) && read_array(out, given[i], i))
            return -1;
    }
    if (out->first_on_device >= 0 && out->stream == NULL) out->stream = GPU_DEFAULT_STREAM;
    for (Py_ssize_t i = 0; i < n; i++)
        if (out->read[i].stream && out->read[i].stream != out->stream)
            out->after[out->n_after++] = out->read[i].stream;
    return 0;
}

/* Converts an object that is not a NumPy array: to one, or to bytes of the parameter block. This
 * runs Python code of the object or of its library. */
static int convert(arguments *a, PyObject *given, const emu_parameter *parameter,
                   Py_ssize_t index) {
    const device_array *read = &a->read[index];
    const array_label label = {.index = index};
    switch (read->place) {
    case ARRAY_HOST: a->views[index] = host_array_view(given); break;
    case ARRAY_HOST_DESCRIBED:
        a->views[index] = device_array_view(a->state, read, given, label);
        break;
    case ARRAY_DEVICE: return 0;
    case ARRAY_UNKNOWN: return scalar_pack(given, parameter, index, a->block + parameter->offset);
    }
    return a->views[index] ? 0 : -1;
}

/* Runs no Python code, which could change an array that has already been checked. */
static int add_argument(arguments *a, PyObject *given, const emu_parameter *parameter,
                        Py_ssize_t index) {
    if (Py_IS_TYPE(given, a->state->tensor_map_type))
        return add_tensor_map(a, given, parameter, index);
    if (texture_check(a->state, given)) return add_texture_argument(a, given, parameter, index);
    if (PyTuple_Check(given)) return add_struct(a, given, parameter, index);
    PyArrayObject *array = PyArray_Check(given) ? (PyArrayObject *)given : a->views[index];
    if (array) return add_array(a, array, parameter, index);
    return a->read[index].place == ARRAY_DEVICE ? add_device_array(a, parameter, index) : 0;
}

int arguments_make(const emu_signature *signature, PyObject *const *given, arguments *a) {
    for (size_t i = 0; i < signature->n_parameters; i++) {
        const bool is_ready = PyArray_Check(given[i]) || PyTuple_Check(given[i]) ||
                              Py_IS_TYPE(given[i], a->state->tensor_map_type) ||
                              texture_check(a->state, given[i]);
        if (!is_ready && convert(a, given[i], &signature->parameters[i], (Py_ssize_t)i)) return -1;
    }
    for (size_t i = 0; i < signature->n_parameters; i++)
        if (add_argument(a, given[i], &signature->parameters[i], (Py_ssize_t)i)) return -1;
    for (size_t i = 0; i < signature->n_parameters; i++)
        if (find_tensor_maps(a, &signature->parameters[i], (Py_ssize_t)i)) return -1;
    if (add_references(a, (Py_ssize_t)signature->n_parameters)) return -1;
    if (share_buffers(a) || check_tensor_maps(a) || check_textures(a)) return -1;
    return make_map_buffers(a);
}

void arguments_free(arguments *a) {
    for (size_t i = 0; i < a->n_buffers; i++)
        if (a->buffers[i].access & SMK_OUT) PyMem_RawFree(a->buffers[i].host);
    for (size_t i = 0; i < a->n_arrays; i++) {
        Py_DECREF(a->arrays[i].array);
        Py_XDECREF(a->arrays[i].hold);
    }
    for (size_t i = 0; i < a->n_read; i++) {
        device_array_clear(&a->read[i]);
        Py_XDECREF(a->views[i]);
    }
    for (size_t i = 0; i < a->n_map_bytes; i++)
        PyMem_RawFree(a->map_bytes[i]);
    PyMem_RawFree(a->map_bytes);
    PyMem_RawFree(a->views);
    PyMem_RawFree(a->read);
    PyMem_RawFree(a->after);
    PyMem_RawFree(a->block);
    PyMem_RawFree(a->pointers);
    PyMem_RawFree(a->buffers);
    PyMem_RawFree(a->arrays);
    PyMem_RawFree(a->tensor_maps);
    PyMem_RawFree(a->textures);
    Py_XDECREF(a->references);
}
