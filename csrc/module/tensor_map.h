/* smemkern.TensorMap as an argument; see tensor_map.c. */
#ifndef SMK_MODULE_TENSOR_MAP_H
#define SMK_MODULE_TENSOR_MAP_H

#include "module.h"

/* Of an object of state->tensor_map_type: the description, checked, without arg_offset. Returns its array
 * as array_hold does, whose bytes end at *end. */
PyArrayObject *tensor_map_read(PyObject *object, smk_tensor_map *out, char **end, PyObject **hold);

#endif
