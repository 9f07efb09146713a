/* Selects the variant for "auto", by tables of measured timings. */
#ifndef SMK_CHOOSE_H
#define SMK_CHOOSE_H

#include "request.h"

/* Sets r->row. *with_values: r->values is set too; else the variant's defaults apply. The GPU's
 * fields of the query are filled in here. */
int request_choose(module_state *state, request *r, smk_query query, bool *with_values);

/* Sets r->seconds of a request whose caller named the variant; 0 if the table has no timing. */
int request_predict_seconds(module_state *state, request *r, smk_query query);

/* set_timings(ordinal, list or None) and predict(...): see docs.h. */
PyObject *choose_set_timings(module_state *state, PyObject *args);
PyObject *choose_predict(PyObject *args);

/* ring_facts(...): see docs.h. */
PyObject *choose_ring_facts(PyObject *args);

/* gemv_forms(...): see docs.h. */
PyObject *choose_gemv_forms(PyObject *args);

#endif
