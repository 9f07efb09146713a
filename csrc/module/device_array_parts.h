/* Shared by the files that read arrays of other libraries. */
#ifndef SMK_DEVICE_ARRAY_PARTS_H
#define SMK_DEVICE_ARRAY_PARTS_H

#include "device_array.h"

/* Raises if there are more dimensions than NumPy supports. */
int device_array_set_rank(device_array *a, int n, array_label label);

/* Raises if an extent is negative, or the bytes overflow, or the address is 0. */
int device_array_check_shape(const device_array *a, array_label label);

/* Raises if an element would lie outside of the address space. Call it after check_shape. */
int device_array_check_strides(const device_array *a, array_label label);

/* Sets the strides of a C-contiguous array. */
void device_array_set_c_order(device_array *a);

/* Reads __cuda_array_interface__. `place` stays ARRAY_UNKNOWN if the object has none. */
int device_array_read_interface(const module_state *state, PyObject *given, array_label label,
                                device_array *a);

#endif
