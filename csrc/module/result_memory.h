/* Reuses the memory of large results in host memory. */
#ifndef SMK_RESULT_MEMORY_H
#define SMK_RESULT_MEMORY_H

#include "module.h"

/* A new C-contiguous array; steals descr, as PyArray_NewFromDescr does. */
PyArrayObject *result_memory_array(PyArray_Descr *descr, int ndim, const npy_intp *dims);

/* Frees kept memory beyond the bounds. May wait for the GPUs, so call it without the GIL. */
void result_memory_tidy(void);

/* Frees all kept memory; returns its bytes of address space. */
size_t result_memory_trim(void);

#endif
