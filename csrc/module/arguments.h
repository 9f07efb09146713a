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
    struct array_argument *arrays; /* one a pointer */
    size_t n_arrays;
    smk_tensor_map *tensor_maps;
    size_t n_tensor_maps;
    module_state *state;

    device_array *read;    /* one an argument, of arrays of other libraries */
    PyArrayObject **views; /* likewise: those of them in host memory */
    size_t n_read;
    int ordinal;      /* of all device arrays among them */
    Py_ssize_t first; /* the argument that says so; -1: none */
    bool loose;   /* of an array's memory, the library may dispose before the kernel has ended */
    void *stream; /* the caller's, or else that of the first device array; NULL: none */
    void **after; /* streams whose queued work comes first */
    size_t n_after;
} arguments;

/* `given` are `n` objects, one a parameter. First where they are, which says on which device and
 * stream they will be used; then the arguments themselves. arguments_free is due in any case. */
int arguments_start(module_state *state, const emu_signature *signature, PyObject *const *given,
                    Py_ssize_t n, void *stream, arguments *out);
int arguments_make(const emu_signature *signature, PyObject *const *given, arguments *a);

/* After a run that succeeded: what the kernel wrote, into the caller's arrays. */
void arguments_write_back(const arguments *a);

/* Which argument, and where in it, the hazards of a traced run are. */
void arguments_locate(const arguments *a, smk_trace *trace);
void arguments_free(arguments *a);

#endif
