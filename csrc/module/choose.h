/* What variant "auto" stands for in a call, and the numbers it is chosen by. */
#ifndef SMK_CHOOSE_H
#define SMK_CHOOSE_H

#include "request.h"

/* Sets the row and, unless its defaults are meant, the values of its parameters. Of the question, what
 * the device says is filled in here. */
int request_choose(module_state *state, request *r, smk_query question, bool *with_values);

/* Sets `seconds` of a request whose row was named, where the table knows it. */
int request_expect(module_state *state, request *r, smk_query question);

/* set_timings(ordinal, list or None) and predict(...), as docs.h says. */
PyObject *choose_set_timings(module_state *state, PyObject *args);
PyObject *choose_predict(PyObject *args);

#endif
