/* smemkern.Texture and smemkern.Surface as arguments; see texture.c. */
#ifndef SMK_MODULE_TEXTURE_H
#define SMK_MODULE_TEXTURE_H

#include "module.h"

bool texture_check(const module_state *state, PyObject *object);

/* Reads an object that texture_check accepts: *out without its place. Returns its array and *hold,
 * as array_hold does. */
PyArrayObject *texture_read(PyObject *object, smk_texture *out, PyObject **hold);

#endif
