/* Loads compiled kernels: from the files of the build, or by NVRTC for parameters that the build
 * did not compile. Loaded images stay in the module's state.
 */
#include "detached.h"

#include <stdio.h>

#include "../cuda/gpu.h"

enum { MAX_HEADERS = 64, NAME_BYTES = 256 };

/* The bytes of a file; NULL without an exception if there is no such file. */
static PyObject *read_file(PyObject *directory, const char *name) {
    PyObject *path = PyUnicode_FromFormat("%U/%s", directory, name);
    PyObject *encoded = path ? PyUnicode_EncodeFSDefault(path) : NULL;
    PyObject *bytes = NULL;
    FILE *file = encoded ? fopen(PyBytes_AS_STRING(encoded), "rb") : NULL;
    if (file == NULL) {
        if (encoded && errno != ENOENT && errno != ENOTDIR)
            PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        goto done;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        rewind(file);
        bytes = size < 0 ? NULL : PyBytes_FromStringAndSize(NULL, size);
        if (bytes && fread(PyBytes_AS_STRING(bytes), 1, (size_t)size, file) != (size_t)size)
            Py_CLEAR(bytes);
    }
    if (bytes == NULL && !PyErr_Occurred())
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    fclose(file);
done:
    Py_XDECREF(path);
    Py_XDECREF(encoded);
    return bytes;
}

/* ---- NVRTC ---- */

/* NVRTC is a Python wheel: smemkern._compiler.nvrtc finds its library. Done once, at the first
 * compilation. */
int image_find_nvrtc(module_state *state) {
    if (state->nvrtc_searched) return 0;
    PyObject *module = PyImport_ImportModule("smemkern._compiler.nvrtc");
    PyObject *path = module ? PyObject_CallMethod(module, "library", NULL) : NULL;
    Py_XDECREF(module);
    if (path == NULL) return -1;
    if (path != Py_None) {
        PyObject *encoded = PyUnicode_EncodeFSDefault(path);
        if (encoded == NULL) {
            Py_DECREF(path);
            return -1;
        }
        nvrtc_set_library(PyBytes_AS_STRING(encoded));
        Py_DECREF(encoded);
    }
    Py_DECREF(path);
    state->nvrtc_searched = true;
    return 0;
}

void image_cache_directory(char *out, size_t size) {
    const char *own = getenv("SMEMKERN_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (own && *own)
        snprintf(out, size, "%s", own);
    else if (xdg && *xdg)
        snprintf(out, size, "%s/smemkern", xdg);
    else
        snprintf(out, size, "%s/.cache/smemkern", home && *home ? home : ".");
}

PyObject *image_compile(module_state *state, const char *source, const char *file_name,
                        const char *entry, const struct nvrtc_header *headers, int n_headers,
                        const char *const *options, int n_options, bool cached) {
    if (image_find_nvrtc(state)) return NULL;
    char cache[4096];
    image_cache_directory(cache, sizeof cache);
    char *ptx = NULL;
    size_t size = 0;
    smk_status status = {0}, why = {0};
    detached call;
    if (detach(state, &call)) return NULL;
    if (nvrtc_version(&why) == 0) {
        smk_fail(&status, SMK_COMPILE,
                 "%s has to be compiled, and NVRTC was not found: pip install '.[nvrtc]' in the "
                 "clone\n%s",
                 file_name, why.message);
    } else {
        nvrtc_compile(source, file_name, entry, headers, n_headers, options, n_options,
                      cached ? cache : NULL, &ptx, &size, &status);
    }
    attach(&call);
    PyObject *bytes = status.code == SMK_OK ? PyBytes_FromStringAndSize(ptx, (Py_ssize_t)size)
                                            : raise_with_log(state, &status, ptx);
    free(ptx);
    return bytes;
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static PyObject *list_directory(PyObject *directory) {
    PyObject *os = PyImport_ImportModule("os");
    PyObject *names = os ? PyObject_CallMethod(os, "listdir", "O", directory) : NULL;
    Py_XDECREF(os);
    PyObject *list = names ? PySequence_List(names) : NULL;
    Py_XDECREF(names);
    if (list && PyList_Sort(list) < 0) Py_CLEAR(list);
    return list;
}

/* The headers that kernels can include, from two folders. */
typedef struct header_set {
    nvrtc_header headers[MAX_HEADERS];
    PyObject *held[MAX_HEADERS + 2]; /* the texts, and the lists of names; owned */
    int n, n_held;
} header_set;

static void release_headers(header_set *set) {
    for (int i = 0; i < set->n_held; i++)
        Py_DECREF(set->held[i]);
}

/* Adds the files of a folder whose names end with `end`. */
static int add_headers(header_set *set, PyObject *directory, const char *end) {
    PyObject *names = list_directory(directory);
    if (names == NULL) return -1;
    set->held[set->n_held++] = names;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names) && set->n < MAX_HEADERS; i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
        if (name == NULL) return -1;
        if (ends_with(name, end)) {
            PyObject *text = read_file(directory, name);
            if (text == NULL) return -1;
            set->held[set->n_held++] = text;
            set->headers[set->n++] = (nvrtc_header){name, PyBytes_AS_STRING(text)};
        }
    }
    return 0;
}

/* The text of <op>_<name>.cu, from the kernel directory or its folder library/. */
static PyObject *read_source(const module_state *state, const char *file_name) {
    static const char *const folders[] = {"", "library/"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[NAME_BYTES + sizeof "library/"];
        snprintf(path, sizeof path, "%s%s", folders[i], file_name);
        PyObject *text = read_file(state->kernel_directory, path);
        if (text || PyErr_Occurred()) return text;
    }
    PyErr_Format(PyExc_FileNotFoundError, "kernel source %s is not in %U", file_name,
                 state->kernel_directory);
    return NULL;
}

/* Compiles a variant's source with the macros and headers that the build uses. */
static PyObject *compile_variant(module_state *state, const smk_variant *variant,
                                 const smk_dtype *dtype, const int64_t *values, bool clusters) {
    enum { CLUSTERS = 90 }; /* the first architecture with them */
    char file_name[NAME_BYTES];
    snprintf(file_name, sizeof file_name, "%s_%s.cu", smk_op_names[variant->op], variant->name);

    char texts[SMK_MAX_PARAMS + 2][80];
    const char *options[SMK_MAX_PARAMS + 4] = {"-lineinfo", "-std=c++17"};
    int n_options = 2;
    snprintf(texts[0], sizeof texts[0], "-arch=compute_%d%s",
             clusters && variant->min_sm < CLUSTERS ? CLUSTERS : variant->min_sm,
             variant->portable ? "" : "a");
    snprintf(texts[1], sizeof texts[1], "-D%s", dtype->define);
    options[n_options++] = texts[0];
    options[n_options++] = texts[1];
    for (int i = 0; i < variant->n_params; i++) {
        if (variant->params[i].runtime) continue;
        char upper[40];
        size_t c = 0;
        for (; variant->params[i].name[c] && c < sizeof upper - 1; c++)
            upper[c] = Py_TOUPPER(variant->params[i].name[c]);
        upper[c] = '\0';
        snprintf(texts[i + 2], sizeof texts[i + 2], "-D%s=%lld", upper, (long long)values[i]);
        options[n_options++] = texts[i + 2];
    }

    PyObject *source = read_source(state, file_name);
    PyObject *include = source ? PyUnicode_FromFormat("%U/include", state->kernel_directory) : NULL;
    PyObject *ptx = NULL;
    header_set set = {.n = 0};
    if (include && add_headers(&set, state->kernel_directory, ".h") == 0 &&
        add_headers(&set, include, ".cuh") == 0) {
        ptx = image_compile(state, PyBytes_AS_STRING(source), file_name, NULL, set.headers, set.n,
                            options, n_options, true);
    }
    release_headers(&set);
    Py_XDECREF(include);
    Py_XDECREF(source);
    return ptx;
}

/* Adds the variant's prebuilt images, which need no compiler, to the current CompileError. */
static void list_prebuilt(const module_state *state, const smk_variant *variant,
                          const smk_dtype *dtype) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    char prefix[NAME_BYTES];
    snprintf(prefix, sizeof prefix, "%s_%s-%s", smk_op_names[variant->op], variant->name,
             dtype->name);

    PyObject *names = list_directory(state->image_directory);
    PyObject *text = PyUnicode_FromString("");
    for (Py_ssize_t i = 0; names && text && i < PyList_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
        if (name && strncmp(name, prefix, strlen(prefix)) == 0 && ends_with(name, ".ptx")) {
            Py_ssize_t length = (Py_ssize_t)(strlen(name) - strlen(".ptx"));
            PyObject *stem = PyUnicode_FromStringAndSize(name, length);
            PyObject *more = stem ? PyUnicode_FromFormat("%U\n  %U", text, stem) : NULL;
            Py_XDECREF(stem);
            Py_SETREF(text, more);
        }
    }
    PyErr_Clear();
    PyObject *whole = text && value
                          ? PyUnicode_FromFormat("%S\nPrebuilt for this variant and dtype, "
                                                 "so usable without NVRTC:%U",
                                                 value, text)
                          : NULL;
    Py_XDECREF(names);
    Py_XDECREF(text);
    if (whole) {
        PyErr_SetObject(type, whole);
        Py_DECREF(whole);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
    }
}

/* ---- images ---- */

/* The compiled kernel of a variant: (file name, bytes, PTX or None). The PTX is given only beside a
 * fatbin. */
static PyObject *load(module_state *state, const smk_variant *variant, const smk_dtype *dtype,
                      const int64_t *values, bool emulated, bool clusters) {
    char name[NAME_BYTES], stem[NAME_BYTES - sizeof ".fatbin"];
    if (smk_image_name(variant, dtype, values, stem, sizeof stem) >= (int)sizeof stem) {
        PyErr_Format(PyExc_SystemError, "image name too long: %s", stem);
        return NULL;
    }
    snprintf(name, sizeof name, "%s.ptx", stem);
    PyObject *ptx = read_file(state->image_directory, name);
    if (!emulated && !PyErr_Occurred()) {
        char fat[NAME_BYTES];
        snprintf(fat, sizeof fat, "%s.fatbin", stem);
        PyObject *machine_code = read_file(state->image_directory, fat);
        if (machine_code)
            return Py_BuildValue("(sNN)", fat, machine_code, ptx ? ptx : Py_NewRef(Py_None));
    }
    if (PyErr_Occurred()) {
        Py_CLEAR(ptx);
    } else if (ptx == NULL) {
        ptx = compile_variant(state, variant, dtype, values, clusters);
        if (ptx == NULL && PyErr_ExceptionMatches(state->exceptions[SMK_COMPILE]))
            list_prebuilt(state, variant, dtype);
    }
    return ptx ? Py_BuildValue("(sNO)", name, ptx, Py_None) : NULL;
}

/* The key of an image in state->images. Bytes, since they are faster to hash than a name is to
 * format. */
static PyObject *make_key(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                          bool emulated, bool clusters) {
    int64_t parts[SMK_MAX_PARAMS + 3] = {(int64_t)(intptr_t)variant, (int64_t)(intptr_t)dtype,
                                         emulated + 2 * clusters};
    for (int i = 0; i < variant->n_params; i++)
        parts[i + 3] = variant->params[i].runtime ? 0 : values[i];
    return PyBytes_FromStringAndSize((const char *)parts, sizeof parts);
}

PyObject *dict_item(PyObject *dict, PyObject *key) {
    PyObject *value;
#if PY_VERSION_HEX >= 0x030d0000
    PyDict_GetItemRef(dict, key, &value);
#else
    value = Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
    return value;
}

int variant_image(module_state *state, const smk_variant *variant, const smk_dtype *dtype,
                  const int64_t *values, bool emulated, bool clusters, smk_image *out,
                  PyObject **owner) {
    PyObject *key = make_key(variant, dtype, values, emulated, clusters);
    PyObject *image = key ? dict_item(state->images, key) : NULL;
    if (image == NULL && !PyErr_Occurred()) {
        image = load(state, variant, dtype, values, emulated, clusters);
        if (image && PyDict_SetItem(state->images, key, image) < 0) Py_CLEAR(image);
    }
    Py_XDECREF(key);
    const char *name = image ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(image, 0)) : NULL;
    if (name == NULL) {
        Py_XDECREF(image);
        return -1;
    }
    PyObject *bytes = PyTuple_GET_ITEM(image, 1), *ptx = PyTuple_GET_ITEM(image, 2);
    *owner = image;
    *out = (smk_image){
        .key = name,
        .data = PyBytes_AS_STRING(bytes),
        .size = (size_t)PyBytes_GET_SIZE(bytes),
        .ptx = ptx == Py_None ? NULL : PyBytes_AS_STRING(ptx),
    };
    return 0;
}
