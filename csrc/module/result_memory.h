/* Large results on the host keep their memory for the next one. */
#ifndef SMK_RESULT_MEMORY_H
#define SMK_RESULT_MEMORY_H

#include "module.h"

/* A new C-contiguous array; steals descr, as PyArray_NewFromDescr does. */
PyArrayObject *result_memory_array(PyArray_Descr *descr, int ndim, const npy_intp *dims);

/* Gives back what is kept beyond the bounds; that may wait for the GPUs, so without the GIL. */
void result_memory_tidy(void);

/* Gives back what no array has; bytes of address space. */
size_t result_memory_trim(void);

#endif
