/* A planned request as a dict, for tests. */
#include "request.h"

#include "../kernels/args.h"

/* The argument struct as a dict; pointers are byte offsets into the buffers. */
static PyObject *describe_args(smk_op op, const void *args) {
    if (op == SMK_GEMM) {
        const gemm_args *g = args;
        return Py_BuildValue("{sLsLsLsLsLsLsLsLsLsLsLsLsLsLsdsdsL}", "A", g->A, "B", g->B, "C",
                             g->C, "M", g->M, "N", g->N, "K", g->K, "lda", g->lda, "ldb", g->ldb,
                             "ldc", g->ldc, "step_a", g->step_a, "step_b", g->step_b, "batch_a",
                             g->batch_a, "batch_b", g->batch_b, "batch_c", g->batch_c, "alpha",
                             g->alpha, "beta", g->beta, "split", g->split);
    }
    if (op == SMK_TRANSPOSE) {
        const transpose_args *t = args;
        return Py_BuildValue(
            "{sLsLsLsLsLsLsLsLsLsLsLs(ii)sisNsisisN}", "x", t->x, "y", t->y, "rows", t->rows,
            "cols", t->cols, "ldx", t->ldx, "step_x", t->step_x, "ldy", t->ldy, "step_y", t->step_y,
            "batch_x", t->batch_x, "batch_y", t->batch_y, "batches", t->batches, "log_tile",
            t->log_rows, t->log_cols, "matrices", t->matrices, "copy", PyBool_FromLong(t->copy),
            "lead", t->lead, "pairs", t->pairs, "boxes", PyBool_FromLong(t->boxes));
    }
    const probe_args *p = args;
    return Py_BuildValue("{sLsLsLsLs(LLLL)}", "x", p->x, "y", p->y, "n_x", p->n_x, "n_y", p->n_y,
                         "runtime", p->runtime[0], p->runtime[1], p->runtime[2], p->runtime[3]);
}

static PyObject *describe_launch(smk_op op, const smk_launch *l) {
    return Py_BuildValue("{sss(III)s(III)sIsnsOsN}", "entry", l->entry, "grid", l->grid[0],
                         l->grid[1], l->grid[2], "block", l->block[0], l->block[1], l->block[2],
                         "cluster", l->cluster[1], "shared_bytes", (Py_ssize_t)l->shared_bytes,
                         "overlaps", l->overlaps ? Py_True : Py_False, "args",
                         describe_args(op, l->args));
}

PyObject *request_describe(const request *r) {
    PyObject *launches = PyList_New((Py_ssize_t)r->plan.n_launches);
    for (size_t i = 0; launches && i < r->plan.n_launches; i++) {
        PyObject *launch = describe_launch(r->call->op, &r->plan.launches[i]);
        if (launch == NULL) {
            Py_CLEAR(launches);
            break;
        }
        PyList_SET_ITEM(launches, (Py_ssize_t)i, launch);
    }
    PyObject *buffers = PyList_New(r->n_inputs);
    for (int i = 0; buffers && i < r->n_inputs; i++) {
        PyObject *bytes = PyLong_FromSize_t(r->inputs[i].buffer.bytes);
        if (bytes == NULL) {
            Py_CLEAR(buffers);
            break;
        }
        PyList_SET_ITEM(buffers, i, bytes);
    }
    char image[256];
    smk_image_name(r->variant, r->dtype, r->values, image, sizeof image);
    return Py_BuildValue("{sssssssNsnsNsN}", "variant", r->variant->name, "image", image, "entry",
                         r->variant->entry, "shape", PyArray_IntTupleFromIntp(r->ndim, r->dims),
                         "workspace", (Py_ssize_t)r->plan.workspace, "input_bytes", buffers,
                         "launches", launches);
}
