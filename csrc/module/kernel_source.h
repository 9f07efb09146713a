/* What a Kernel is made of: PTX as given, or CUDA C++ that NVRTC compiles. */
#ifndef SMK_KERNEL_SOURCE_H
#define SMK_KERNEL_SOURCE_H

#include "module.h"

typedef struct kernel_source {
    PyObject *ptx;   /* bytes */
    PyObject *entry; /* str: the kernel's name in the PTX; NULL: the only one */
} kernel_source;

/* `name` is the kernel's in the source, or NULL. On success both are new references. */
int kernel_source_read(module_state *state, const char *source, const char *name, PyObject *options,
                       kernel_source *out);

/* Identity of an image; equal PTX is one image to the devices, however many Kernels are made of it. */
PyObject *kernel_source_key(PyObject *ptx);

#endif
