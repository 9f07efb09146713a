/* Packs a Python object as a kernel parameter that is passed by value. */
#ifndef SMK_SCALAR_H
#define SMK_SCALAR_H

#include "module.h"

#include "../emu/emu.h"

/* Whether PTX declares the parameter as an array of bytes: a struct, or a type without a PTX scalar
 * type (half, float2, ...). */
bool parameter_is_struct(const emu_parameter *parameter);

/* Writes parameter->size bytes to `to`. */
int scalar_pack(PyObject *given, const emu_parameter *parameter, Py_ssize_t index,
                unsigned char *to);

#endif
