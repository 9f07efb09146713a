/* An array as a kernel reads it: a batch of strided matrices in one buffer. */
#ifndef SMK_OPERAND_H
#define SMK_OPERAND_H

#include "module.h"

typedef struct operand {
    PyArrayObject *array; /* the caller's array, or a packed copy */
    int ndim;             /* at least 2: a 1-D array counts as a row or a column */
    npy_intp dims[NPY_MAXDIMS + 1];
    npy_intp strides[NPY_MAXDIMS + 1];
    smk_matrix matrix; /* batch: the operand's own dimensions, not yet broadcast */
    smk_buffer buffer;
} operand;

/* Converts anything that NumPy converts to an array. Refuses masked arrays, since their mask would
 * be lost. A new reference. */
PyArrayObject *operand_array(PyObject *given, const char *op, const char *name);

/* Whether a 1-D array is a row or a column. */
typedef enum operand_shape { OPERAND_ROW, OPERAND_COLUMN } operand_shape;

/* The strides that a kernel must support to read the array in place. */
smk_strides operand_strides(PyArrayObject *array, operand_shape one_dimensional);

/* What all rows (columns, if those have unit stride) begin at multiples of. For host arrays the
 * first row always counts as aligned, since its copy on the device is. */
smk_alignment operand_alignment(PyArrayObject *array, bool on_device);

/* Whether a left operand's rows, or a right operand's columns, are contiguous rather than the other
 * dimension. */
bool operand_is_k_major(PyArrayObject *array, operand_shape one_dimensional);

/* Fills `out` from a host array, with elements of type `wanted`. The array is used in place if it
 * has that type, aligned elements, and strides that the kernel supports (`taken`). Else it is
 * packed. Call operand_clear afterwards. */
int operand_place(PyArrayObject *array, PyArray_Descr *wanted, operand_shape one_dimensional,
                  smk_strides taken, operand *out);

typedef enum operand_fit {
    OPERAND_FITS,
    OPERAND_NEEDS_COPY, /* the kernel does not support its strides */
    OPERAND_REFUSED,    /* wrong type, or elements not aligned; `out` is empty */
} operand_fit;

/* The same for an array in GPU memory. It is always described in place, also for
 * OPERAND_NEEDS_COPY. */
operand_fit operand_place_on_device(PyArrayObject *array, PyArray_Descr *wanted,
                                    operand_shape one_dimensional, smk_strides taken, operand *out);

/* Describes a packed copy of an operand: a buffer that has no memory yet, rows at multiples of 16
 * bytes, broadcast batch dimensions stored once. */
void operand_pack_on_device(const operand *o, operand *out);
void operand_clear(operand *o);

#endif
