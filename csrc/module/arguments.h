/* Python objects as the parameters of a user's kernel. */
#ifndef SMK_ARGUMENTS_H
#define SMK_ARGUMENTS_H

#include "module.h"

#include "../emu/emu.h"

typedef struct arguments {
    unsigned char *block; /* the parameter block, as PTX lays it out */
    smk_pointer *pointers;
    size_t n_pointers;
    smk_buffer *buffers;
    size_t n_buffers;
    struct array_argument *arrays; /* one a pointer */
    size_t n_arrays;
} arguments;

/* `given` are `n` objects, one a parameter. arguments_free is due in any case. */
int arguments_make(const emu_signature *signature, PyObject *const *given, Py_ssize_t n,
                   arguments *out);

/* After a run that succeeded: what the kernel wrote, into the caller's arrays. */
void arguments_write_back(const arguments *a);

/* Which argument, and where in it, the hazards of a traced run are. */
void arguments_locate(const arguments *a, smk_trace *trace);
void arguments_free(arguments *a);

#endif
