/* The source of a Kernel: PTX, or CUDA C++ that is compiled to PTX. */
#ifndef SMK_KERNEL_SOURCE_H
#define SMK_KERNEL_SOURCE_H

#include "module.h"

typedef struct kernel_source {
    PyObject *text;  /* str, as given or as in the file */
    PyObject *ptx;   /* bytes */
    PyObject *entry; /* str or None: the kernel's name in the PTX; None: the only one */
    PyObject
        *origin; /* smemkern._compiler.compile.Origin: the file, the texts of its headers, ... */
} kernel_source;

/* `source`: a str or a path. `name`: the kernel's name in the source, or NULL. On success all
 * fields are new references. */
int kernel_source_read(PyObject *source, const char *name, PyObject *options, kernel_source *out);

void kernel_source_free(kernel_source *s);

/* The image's key, a hash of the PTX: Kernels with equal PTX share one image. */
PyObject *kernel_source_key(PyObject *ptx);

#endif
