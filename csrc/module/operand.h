/* An array as a kernel reads it: a stack of row-major matrices in one piece of host memory. */
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

/* Whatever NumPy takes for an array, as a base-class array; masked arrays are refused, since their
 * mask would be lost. A new reference. */
PyArrayObject *operand_array(PyObject *given, const char *op, const char *name);

typedef enum operand_shape { OPERAND_ROW, OPERAND_COLUMN } operand_shape; /* what 1-D means */

/* The least that a kernel has to take to read it where it is. */
smk_strides operand_strides(PyArrayObject *array, operand_shape one_dimensional);

/* Whether all rows (columns, where those have the unit step) begin at multiples of 16 bytes. On the host
 * the first one does: buffers are copied to such places. */
bool operand_is_chunks(PyArrayObject *array, bool on_device);

/* Fills `out` from an array whose elements are to be of type `wanted`. What has whole elements and strides
 * that the kernel takes is passed as it is. Anything else is packed once. operand_clear is due. */
int operand_place(PyArrayObject *array, PyArray_Descr *wanted, operand_shape one_dimensional,
                  smk_strides taken, operand *out);

typedef enum operand_fit {
    OPERAND_FITS,
    OPERAND_SPREAD,  /* only its strides are none that the kernel takes */
    OPERAND_REFUSED, /* it has other elements, or parts of them; `out` is empty */
} operand_fit;

/* The same of an array whose data is an address in a GPU's memory: it is placed where it is, also if it is spread. */
operand_fit operand_place_on_device(PyArrayObject *array, PyArray_Descr *wanted,
                                    operand_shape one_dimensional, smk_strides taken, operand *out);

/* Where a packed copy of an operand would be: in a buffer of its own that has no memory yet, rows at multiples of
 * 16 bytes, and what a batch repeats only once. */
void operand_pack_on_device(const operand *o, operand *out);
void operand_clear(operand *o);

#endif
