/* Registry look-ups: find a variant, check its parameters, name its image.
 *
 * The build generates the rows themselves (smk_variants) from csrc/kernels/variants.toml.
 */
#include "registry.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const smk_op_names[SMK_N_OPS] = {"gemm", "transpose", "probe"};
const char *const smk_accuracy_names[SMK_N_ACCURACIES] = {"float32", "norm", "tf32", "tf32-norm"};

const smk_variant *smk_variant_find(smk_op op, const char *name) {
    for (size_t i = 0; i < smk_n_variants; i++)
        if (smk_variants[i].op == op && strcmp(smk_variants[i].name, name) == 0)
            return &smk_variants[i];
    return NULL;
}

const smk_variant *smk_variant_find_any_strides(smk_op op) {
    for (size_t i = 0; i < smk_n_variants; i++)
        if (smk_variants[i].op == op && smk_strides_of(&smk_variants[i]) == SMK_ANY_STRIDES)
            return &smk_variants[i];
    return NULL;
}

bool smk_op_has_param(smk_op op, const char *name) {
    for (size_t i = 0; i < smk_n_variants; i++)
        for (int k = 0; smk_variants[i].op == op && k < smk_variants[i].n_params; k++)
            if (strcmp(smk_variants[i].params[k].name, name) == 0) return true;
    return false;
}

/* A bounded string. Text that does not fit is cut off; `used` counts it all the same. */
typedef struct text {
    char *at;
    size_t size;
    size_t used;
} text;

__attribute__((format(printf, 2, 3))) static void text_add(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t room = t->used < t->size ? t->size - t->used : 0;
    int length = vsnprintf(room ? t->at + t->used : NULL, room, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
}

static void text_add_legal(text *t, const smk_param *param) {
    if (param->n_legal == 0) text_add(t, "%" PRId64 "..%" PRId64, param->first, param->last);
    for (int i = 0; i < param->n_legal; i++)
        text_add(t, "%s%" PRId64, i ? ", " : "", param->legal[i]);
}

static bool is_legal(const smk_param *param, int64_t value) {
    for (int i = 0; i < param->n_legal; i++)
        if (param->legal[i] == value) return true;
    return param->n_legal == 0 && param->first <= value && value <= param->last;
}

int smk_variant_param(const smk_variant *variant, const char *name) {
    for (int i = 0; i < variant->n_params; i++)
        if (strcmp(variant->params[i].name, name) == 0) return i;
    return -1;
}

static smk_code fail_unknown(const smk_variant *variant, const char *name, smk_status *status) {
    char list[2000];
    text t = {list, sizeof list, 0};
    text_add(&t, "%s", variant->n_params ? "legal: " : "it takes none");
    for (int i = 0; i < variant->n_params; i++) {
        text_add(&t, "%s%s = ", i ? "; " : "", variant->params[i].name);
        text_add_legal(&t, &variant->params[i]);
        text_add(&t, " (default %" PRId64 ")", variant->params[i].fallback);
    }
    return smk_fail(status, SMK_VALUE, "%s variant '%s' has no parameter '%s'; %s",
                    smk_op_names[variant->op], variant->name, name, list);
}

smk_code smk_variant_values(const smk_variant *variant, int itemsize, const char *const *names,
                            const int64_t *given, int n_given, int64_t *values,
                            smk_status *status) {
    for (int i = 0; i < variant->n_params; i++)
        values[i] = variant->params[i].fallback;
    for (int g = 0; g < n_given; g++) {
        int i = smk_variant_param(variant, names[g]);
        if (i < 0) return fail_unknown(variant, names[g], status);
        const smk_param *param = &variant->params[i];
        if (!is_legal(param, given[g])) {
            char list[1000];
            text t = {list, sizeof list, 0};
            text_add_legal(&t, param);
            return smk_fail(status, SMK_VALUE,
                            "%s = %" PRId64 " is not legal for %s variant '%s'; legal: %s "
                            "(default %" PRId64 ")",
                            param->name, given[g], smk_op_names[variant->op], variant->name, list,
                            param->fallback);
        }
        values[i] = given[g];
    }
    const char *conflict = variant->conflict ? variant->conflict(values, itemsize) : NULL;
    if (conflict) {
        char list[1000];
        text t = {list, sizeof list, 0};
        for (int i = 0; i < variant->n_params; i++)
            text_add(&t, "%s%s = %" PRId64, i ? ", " : "", variant->params[i].name, values[i]);
        return smk_fail(status, SMK_VALUE,
                        "%s variant '%s' cannot take %s at %d bytes per element: %s",
                        smk_op_names[variant->op], variant->name, list, itemsize, conflict);
    }
    return SMK_OK;
}

int smk_image_name(const smk_variant *variant, const smk_dtype *dtype, const int64_t *values,
                   char *out, size_t size) {
    text t = {out, size, 0};
    text_add(&t, "%s_%s-%s", smk_op_names[variant->op], variant->name, dtype->name);
    for (int i = 0; i < variant->n_params; i++)
        if (!variant->params[i].runtime)
            text_add(&t, "-%s%" PRId64, variant->params[i].name, values[i]);
    return (int)t.used;
}
