/* What the files that read arrays of other libraries share. */
#ifndef SMK_DEVICE_ARRAY_PARTS_H
#define SMK_DEVICE_ARRAY_PARTS_H

#include "device_array.h"

int device_array_set_rank(device_array *a, int n, array_label label);

/* Raises where an extent is negative. */
int device_array_check_shape(const device_array *a, array_label label);

/* Raises where the elements would not lie in the address space. After the shape's check. */
int device_array_check_strides(const device_array *a, array_label label);

/* Strides of an array without gaps. */
void device_array_set_c_order(device_array *a);

/* Leaves `place` unknown if the object has no such attribute. */
int device_array_read_interface(const module_state *state, PyObject *given, array_label label,
                                device_array *a);

#endif
