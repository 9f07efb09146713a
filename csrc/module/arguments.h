/* Python objects as the parameters of a user's kernel. */
#ifndef SMK_ARGUMENTS_H
#define SMK_ARGUMENTS_H

#include "device_array.h"

#include "../emu/emu.h"

typedef struct arguments {
    unsigned char *block; /* the parameter block, as PTX lays it out */
    smk_pointer *pointers;
    size_t n_pointers;
    smk_buffer *buffers;
    size_t n_buffers;
    struct array_argument *arrays; /* one per pointer, tensor map and texture */
    size_t n_arrays;
    smk_tensor_map *tensor_maps;
    size_t n_tensor_maps;
    void **map_bytes; /* host memory of the maps to which parameters point */
    size_t n_map_bytes;
    smk_texture *textures;
    size_t n_textures;
    PyObject *references; /* list of (name or None, texture): textures= */
    module_state *state;

    device_array *read;    /* one per argument: arrays of other libraries */
    PyArrayObject **views; /* one per argument: views of those in host memory */
    size_t n_read;
    int ordinal;                /* the GPU of all device arrays */
    Py_ssize_t first_on_device; /* the first argument in GPU memory; -1: none */
    bool reused_unordered;      /* see device_array.h; of any argument */
    void *stream;               /* the caller's, else that of the first device array; NULL: none */
    void **after;               /* streams whose queued work must finish first */
    size_t n_after;
} arguments;

/* `given`: `n` objects, one per parameter; textures: as textures= of a call. arguments_start finds
 * where the arrays are, which determines the device and the stream; arguments_make then packs the
 * arguments. Call arguments_free even on failure. */
int arguments_start(module_state *state, const emu_signature *signature, PyObject *const *given,
                    Py_ssize_t n, PyObject *textures, void *stream, arguments *out);
int arguments_make(const emu_signature *signature, PyObject *const *given, arguments *a);

/* After a successful run: copies what the kernel wrote to the caller's arrays. */
void arguments_write_back(const arguments *a);

/* Sets the argument, and the offset in it, of each hazard of a traced run. */
void arguments_locate(const arguments *a, smk_trace *trace);
/* A list of (argument, buffer, offset of its first byte there) of the arrays in host memory. */
PyObject *arguments_places(const arguments *a);
void arguments_free(arguments *a);

#endif
