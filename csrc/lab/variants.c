/* The table of variants, and the jobs that plans of them make. */
#include <stdlib.h>
#include <string.h>

#include "session.h"

/* ---- the table ---- */

static void param_json(json *t, const smk_param *p) {
    json_open(t, NULL, '{');
    json_text(t, "name", p->name);
    json_text(t, "doc", p->doc);
    json_number(t, "fallback", p->fallback);
    json_true_false(t, "runtime", p->runtime);
    if (p->n_legal) {
        json_open(t, "legal", '[');
        for (int k = 0; k < p->n_legal; k++)
            json_number(t, NULL, p->legal[k]);
        json_close(t, ']');
    } else {
        json_number(t, "first", p->first);
        json_number(t, "last", p->last);
    }
    json_close(t, '}');
}

static void variant_json(json *t, const smk_variant *v) {
    json_open(t, NULL, '{');
    json_text(t, "op", smk_op_names[v->op]);
    json_text(t, "name", v->name);
    json_text(t, "entry", v->entry);
    json_text(t, "summary", v->summary);
    json_text(t, "differsFrom", v->differs_from);
    json_number(t, "minSm", v->min_sm);
    json_open(t, "dtypes", '[');
    for (int k = 0; k < v->n_dtypes; k++)
        json_text(t, NULL, v->dtypes[k].name);
    json_close(t, ']');
    json_open(t, "params", '[');
    for (int k = 0; k < v->n_params; k++)
        param_json(t, &v->params[k]);
    json_close(t, ']');
    json_close(t, '}');
}

void variants_json(json *t) {
    json_open(t, NULL, '[');
    for (size_t k = 0; k < smk_n_variants; k++)
        variant_json(t, &smk_variants[k]);
    json_close(t, ']');
}

/* ---- a variant with its parameters ---- */

typedef struct chosen {
    const smk_variant *variant;
    const smk_dtype *dtype;
    int64_t values[SMK_MAX_PARAMS];
} chosen;

/* "tile=32 pad=1": splits the text in place. */
static smk_code read_settings(char *settings, const char **names, int64_t *given, int *n) {
    smk_status *status = &session.status;
    *n = 0;
    for (char *at = strtok(settings, " "); at; at = strtok(NULL, " ")) {
        char *equals = strchr(at, '='), *end;
        if (!equals || *n == SMK_MAX_PARAMS)
            return smk_fail(status, SMK_VALUE,
                            "expected at most %d settings of the form name=number, found '%.100s'",
                            SMK_MAX_PARAMS, at);
        *equals = 0;
        names[*n] = at;
        given[(*n)++] = strtoll(equals + 1, &end, 10);
        if (end == equals + 1 || *end)
            return smk_fail(status, SMK_VALUE, "expected a whole number for %.100s, found '%.100s'",
                            at, equals + 1);
    }
    return SMK_OK;
}

static smk_code choose(const char *op, const char *variant, const char *dtype, const char *settings,
                       chosen *out) {
    smk_status *status = &session.status;
    const char *names[SMK_MAX_PARAMS];
    int64_t given[SMK_MAX_PARAMS];
    char copy[512];
    int n, which = 0;
    while (which < SMK_N_OPS && strcmp(smk_op_names[which], op) != 0)
        which++;
    if (which == SMK_N_OPS)
        return smk_fail(status, SMK_VALUE, "there is no operation '%.100s'", op);
    out->variant = smk_variant_find((smk_op)which, variant);
    if (!out->variant)
        return smk_fail(status, SMK_VALUE, "%s has no variant '%.100s'", op, variant);
    out->dtype = NULL;
    for (int k = 0; k < out->variant->n_dtypes; k++)
        if (strcmp(out->variant->dtypes[k].name, dtype) == 0) out->dtype = &out->variant->dtypes[k];
    if (!out->dtype)
        return smk_fail(status, SMK_VALUE, "%s variant '%s' has no type '%.100s'", op, variant,
                        dtype);
    if (strlen(settings) >= sizeof copy)
        return smk_fail(status, SMK_VALUE, "the settings have more than %zu characters",
                        sizeof copy - 1);
    strcpy(copy, settings);
    if (read_settings(copy, names, given, &n)) return status->code;
    return smk_variant_values(out->variant, out->dtype->itemsize, names, given, n, out->values,
                              status);
}

static void image_json(json *t, const chosen *c) {
    char name[512];
    smk_image_name(c->variant, c->dtype, c->values, name, sizeof name);
    json_text(t, NULL, name);
}

int lab_image(const char *op, const char *variant, const char *dtype, const char *settings) {
    chosen c;
    session_begin();
    if (!choose(op, variant, dtype, settings, &c)) image_json(&session.result, &c);
    return session_end();
}

/* ---- plans ---- */

/* A matrix of the problem, as a buffer. */
typedef struct array {
    const char *name;
    int64_t rows, columns; /* columns 0: a vector */
    bool written;
} array;

typedef struct problem {
    array arrays[3];
    int n_arrays;
} problem;

enum { MAX_SIDE = 1 << 24 };

static smk_code read_sizes(const double *sizes, int n, int64_t *out) {
    for (int k = 0; k < n; k++) {
        if (!(sizes[k] >= 1 && sizes[k] <= MAX_SIDE) || sizes[k] != (double)(int64_t)sizes[k])
            return smk_fail(&session.status, SMK_VALUE,
                            "sizes must be whole numbers from 1 to %d, not %g", MAX_SIDE, sizes[k]);
        out[k] = (int64_t)sizes[k];
    }
    return SMK_OK;
}

static smk_matrix rows_of(int64_t columns) {
    return (smk_matrix){.ld = columns, .step = 1};
}

static smk_code plan_gemm(const chosen *c, const double *sizes, problem *p) {
    int64_t n[3];
    if (read_sizes(sizes, 3, n)) return session.status.code;
    const smk_gemm gemm = {.M = n[0],
                           .N = n[1],
                           .K = n[2],
                           .a = rows_of(n[2]),
                           .b = rows_of(n[1]),
                           .c = rows_of(n[1]),
                           .alpha = 1,
                           .multiprocessors = EMU_MULTIPROCESSORS,
                           .clusters = true};
    *p =
        (problem){{{"a", n[0], n[2], false}, {"b", n[2], n[1], false}, {"c", n[0], n[1], true}}, 3};
    return smk_plan_gemm(c->variant, c->dtype, c->values, &gemm, &session.plan, &session.status);
}

static smk_code plan_transpose(const chosen *c, const double *sizes, problem *p) {
    int64_t n[2];
    if (read_sizes(sizes, 2, n)) return session.status.code;
    const smk_transpose transpose = {.rows = n[0],
                                     .cols = n[1],
                                     .x = rows_of(n[1]),
                                     .y = rows_of(n[0]),
                                     .multiprocessors = EMU_MULTIPROCESSORS};
    *p = (problem){{{"x", n[0], n[1], false}, {"y", n[1], n[0], true}}, 2};
    return smk_plan_transpose(c->variant, c->dtype, c->values, &transpose, &session.plan,
                              &session.status);
}

static smk_code plan_probe(const chosen *c, const double *sizes, problem *p) {
    int64_t n, n_y;
    if (read_sizes(sizes, 1, &n) ||
        smk_probe_size(c->variant, c->dtype, c->values, n, &n_y, &session.status))
        return session.status.code;
    const smk_probe probe = {.n_x = n};
    *p = (problem){{{"x", n, 0, false}, {"y", n_y, 0, true}}, 2};
    return smk_plan_probe(c->variant, c->dtype, c->values, &probe, &session.plan, &session.status);
}

static smk_code add_buffers(const problem *p, int itemsize) {
    lab_drop_buffers();
    for (int k = 0; k < p->n_arrays; k++) {
        const array *a = &p->arrays[k];
        const double elements = (double)a->rows * (double)(a->columns ? a->columns : 1);
        if (lab_buffer(elements * itemsize, a->written ? SMK_OUT : SMK_IN) < 0)
            return session.status.code;
        lab_name_buffer(k, a->name, (uint32_t)itemsize, (double)a->columns);
    }
    lab_buffer((double)session.plan.workspace, 0);
    return session.status.code;
}

static void plan_json(json *t, const chosen *c, const problem *p) {
    json_open(t, NULL, '{');
    json_next(t, "image");
    image_json(t, c);
    json_open(t, "launches", '[');
    for (size_t k = 0; k < session.plan.n_launches; k++) {
        const smk_launch *l = &session.plan.launches[k];
        json_open(t, NULL, '{');
        json_text(t, "entry", l->entry);
        json_extent(t, "grid", l->grid);
        json_extent(t, "block", l->block);
        json_extent(t, "cluster", l->cluster);
        json_true_false(t, "cooperative", l->cooperative);
        json_unsigned(t, "sharedBytes", l->shared_bytes);
        json_close(t, '}');
    }
    json_close(t, ']');
    json_open(t, "buffers", '[');
    for (int k = 0; k < p->n_arrays; k++) {
        const array *a = &p->arrays[k];
        json_open(t, NULL, '{');
        json_text(t, "name", a->name);
        json_text(t, "dtype", c->dtype->name);
        json_true_false(t, "written", a->written);
        json_unsigned(t, "bytes", session.buffers[k].bytes);
        json_open(t, "shape", '[');
        json_number(t, NULL, a->rows);
        if (a->columns) json_number(t, NULL, a->columns);
        json_close(t, ']');
        json_close(t, '}');
    }
    json_close(t, ']');
    json_close(t, '}');
}

int lab_plan(const char *op, const char *variant, const char *dtype, const char *settings,
             const double sizes[3]) {
    chosen c;
    problem p;
    session_begin();
    if (choose(op, variant, dtype, settings, &c)) return session_end();
    session_drop_job();
    const smk_code code = c.variant->op == SMK_GEMM        ? plan_gemm(&c, sizes, &p)
                          : c.variant->op == SMK_TRANSPOSE ? plan_transpose(&c, sizes, &p)
                                                           : plan_probe(&c, sizes, &p);
    if (code) return session_end();
    session.planned = true;
    if (!add_buffers(&p, c.dtype->itemsize)) plan_json(&session.result, &c, &p);
    return session_end();
}
