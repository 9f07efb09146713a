/* smemkern.TensorMap as an argument; see tensor_map.c. */
#ifndef SMK_MODULE_TENSOR_MAP_H
#define SMK_MODULE_TENSOR_MAP_H

#include "module.h"

/* Reads an object of state->tensor_map_type: *out without arg_offset, and *end, where the array's
 * bytes end. Returns its array and *hold, as array_hold does. */
PyArrayObject *tensor_map_read(PyObject *object, smk_tensor_map *out, char **end, PyObject **hold);

#endif
