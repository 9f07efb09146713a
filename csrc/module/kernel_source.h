/* The source of a Kernel: PTX, or CUDA C++ that NVRTC compiles to PTX. */
#ifndef SMK_KERNEL_SOURCE_H
#define SMK_KERNEL_SOURCE_H

#include "module.h"

typedef struct kernel_source {
    PyObject *ptx;   /* bytes */
    PyObject *entry; /* str: the kernel's name in the PTX; NULL: the only one */
} kernel_source;

/* `name`: the kernel's name in the source, or NULL. On success both fields are new references. */
int kernel_source_read(module_state *state, const char *source, const char *name, PyObject *options,
                       kernel_source *out);

/* The image's key, a hash of the PTX: Kernels with equal PTX share one image. */
PyObject *kernel_source_key(PyObject *ptx);

#endif
