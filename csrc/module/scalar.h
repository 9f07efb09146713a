/* One Python object as the bytes of one kernel parameter that is passed by value. */
#ifndef SMK_SCALAR_H
#define SMK_SCALAR_H

#include "module.h"

#include "../emu/emu.h"

/* A parameter that PTX declares as an array of bytes: a struct, or a type that PTX has no scalar
 * for (half, float2, ...). */
bool parameter_is_struct(const emu_parameter *parameter);

/* Writes parameter->size bytes to `to`. */
int scalar_pack(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                unsigned char *to);

#endif
