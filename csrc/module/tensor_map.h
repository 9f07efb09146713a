/* smemkern.TensorMap as an argument; see tensor_map.c. */
#ifndef SMK_MODULE_TENSOR_MAP_H
#define SMK_MODULE_TENSOR_MAP_H

#include "module.h"

/* The bytes of a TensorMap, bytes(map), stand for it in the bytes of a struct argument: 16 bytes
 * that are other ones in each process, a handle, and zeros. They hold no address: a launch looks
 * the handle up, and the device writes the encoded map over them. */
int tensor_maps_start(module_state *state);

/* The TensorMap whose bytes these are: a new reference. NULL without an exception: they are those
 * of none; with one: it does not exist any more. */
PyObject *tensor_map_of_bytes(const module_state *state, const unsigned char *bytes,
                              Py_ssize_t argument);

/* Reads an object of state->tensor_map_type: *out without arg_offset, and *end, where the array's
 * bytes end. Returns its array and *hold, as array_hold does. */
PyArrayObject *tensor_map_read(PyObject *object, smk_tensor_map *out, char **end, PyObject **hold);

#endif
