/* A tuple as a struct that a kernel takes by value: its members in order, laid out as C++ does. */
#ifndef SMK_STRUCT_MEMBERS_H
#define SMK_STRUCT_MEMBERS_H

#include "module.h"

/* Receives a member that is an array: a pointer, whose address belongs at that byte of the struct.
 * -1 with an exception set ends the walk. */
typedef int (*struct_array_fn)(void *context, PyArrayObject *array, size_t at);

/* Writes the other members of `tuple` to `to`, which has `size` bytes. -1 if the members do not
 * make a struct of that size, or one is of a type that has no fixed bytes. `index`: the argument's,
 * for messages. Runs no Python code. */
int struct_pack(PyObject *tuple, size_t size, Py_ssize_t index, unsigned char *to,
                struct_array_fn array, void *context);

#endif
