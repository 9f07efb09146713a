/* What the user wrote: gemm(a, b, variant=..., tile=32), read but not yet judged against arrays. */
#ifndef SMK_CALL_H
#define SMK_CALL_H

#include "module.h"

enum {
    CALL_MAX_INPUTS = 2,
    CALL_MAX_PARAMS = SMK_MAX_PARAMS + 1,
    CALL_MAX_DEVICES = 16,
    CALL_MAX_COPIES = CALL_MAX_INPUTS + 2 /* of each input and of out, and to out */
};

/* All references are borrowed from the arguments. */
typedef struct call {
    smk_op op;
    PyObject *inputs[CALL_MAX_INPUTS];
    const char *variant;             /* NULL: not said */
    PyObject *out, *device, *stream; /* NULL: None or not given */
    PyObject *progress;              /* callable, True, or NULL */
    double alpha, beta;
    size_t max_memory; /* bytes of the GPU's memory; 0: not given */
    int devices[CALL_MAX_DEVICES];
    int n_devices; /* 0: not given */
    smk_accuracy accuracy;
    const char *params[CALL_MAX_PARAMS]; /* one more than any row has, so that a surplus shows */
    int64_t values[CALL_MAX_PARAMS];
    int n_params;
} call;

typedef struct call_form {
    int n_inputs;
    const char *inputs[CALL_MAX_INPUTS]; /* names of the array arguments */
} call_form;

extern const call_form call_forms[SMK_N_OPS];

int call_read(smk_op op, PyObject *args, PyObject *kwargs, call *out);

#endif
