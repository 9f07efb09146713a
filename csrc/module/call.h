/* The arguments of a call such as gemm(a, b, variant=..., tile=32), parsed but not yet checked
 * against the arrays. */
#ifndef SMK_CALL_H
#define SMK_CALL_H

#include "module.h"

enum {
    CALL_MAX_INPUTS = 2,
    CALL_MAX_PARAMS = SMK_MAX_PARAMS + 1,
    CALL_MAX_DEVICES = 16,
    CALL_MAX_COPIES = CALL_MAX_INPUTS + 2 /* from each input, from `out`, and to `out` */
};

/* All references are borrowed from the arguments. */
typedef struct call {
    smk_op op;
    PyObject *inputs[CALL_MAX_INPUTS];
    const char *variant;             /* NULL: not given */
    PyObject *out, *device, *stream; /* NULL: None or not given */
    PyObject *progress;              /* callable, True, or NULL */
    double alpha, beta;
    size_t max_memory; /* bytes of the GPU's memory; 0: not given */
    int devices[CALL_MAX_DEVICES];
    int n_devices; /* 0: not given */
    smk_accuracy accuracy;
    /* Room for one more than any variant has, so that too many are detected. */
    const char *params[CALL_MAX_PARAMS];
    int64_t values[CALL_MAX_PARAMS];
    int n_params;
} call;

typedef struct call_form {
    int n_inputs;
    const char *inputs[CALL_MAX_INPUTS]; /* names of the array arguments */
} call_form;

extern const call_form call_forms[SMK_N_OPS];

/* Raises TypeError: the operation has no such keyword. Returns -1. */
int call_refuse_keyword(smk_op op, const char *name);

int call_read(smk_op op, PyObject *args, PyObject *kwargs, call *out);

#endif
