/* Nodes of calls: of the source's functions, of CUDA's, and of make_float4 and its kin. */
#include <string.h>

#include "build.h"
#include "builtin.h"

/* The depth and effects of the arguments are the call's. */
static void take_arguments(lab *l, lab_expression *e, lab_expression **values, uint32_t n) {
    e->arguments = lab_new(l, (n + 1) * sizeof *values);
    e->n_arguments = l->failed ? 0 : n;
    for (uint32_t i = 0; i < e->n_arguments; i++) {
        e->arguments[i] = values[i];
        e->modifies |= values[i]->modifies;
        if (values[i]->depth >= e->depth) e->depth = values[i]->depth + 1;
    }
    if (e->depth > LAB_MAX_DEPTH) lab_fail(l, e->at, "calls nested too deep");
}

lab_expression *lab_make(lab *l, const lab_type *type, lab_expression **values, uint32_t n,
                         lab_position at) {
    if (n != type->count)
        lab_fail(l, at, "expected %u values for '%s', found %u", type->count, type->name, n);
    for (uint32_t i = 0; i < n && !l->failed; i++)
        values[i] = lab_convert(l, values[i], type->of);
    lab_expression *e = lab_node(l, LAB_MAKE, type, at, NULL, NULL);
    take_arguments(l, e, values, n);
    return e;
}

static lab_expression *call_function(lab *l, lab_function *f, lab_expression **values, uint32_t n,
                                     lab_position at) {
    if (f->is_kernel) {
        lab_fail(l, at, "'%s' is a kernel; only __device__ functions can be called", f->name->text);
        return lab_error_node(l, at);
    }
    if (n != f->n_parameters)
        lab_fail(l, at, "expected %u arguments of '%s', found %u", f->n_parameters, f->name->text,
                 n);
    for (uint32_t i = 0; i < n && !l->failed; i++)
        values[i] = lab_convert(l, values[i], f->parameters[i]->type);
    lab_expression *e = lab_node(l, LAB_CALL, f->result, at, NULL, NULL);
    take_arguments(l, e, values, n);
    e->function = f;
    e->modifies = true;
    return e;
}

/* ---- functions of CUDA ---- */

typedef struct signature {
    uint32_t count, required;
    char letters[4];
    bool pointers[4];
} signature;

static signature read_signature(const char *text) {
    signature s = {.required = UINT32_MAX};
    for (bool pointer = false; *text; text++) {
        if (*text == '?') {
            s.required = s.count;
        } else if (*text == '*') {
            pointer = true;
        } else {
            s.letters[s.count] = *text;
            s.pointers[s.count++] = pointer;
            pointer = false;
        }
    }
    if (s.required > s.count) s.required = s.count;
    return s;
}

/* Which parameter distinguishes the rows of a name: that of the type of the result, if any. */
static const lab_type *deciding_type(const lab_builtin *row, lab_expression **values, uint32_t n) {
    const signature s = read_signature(row->parameters);
    if (n == 0) return NULL;
    if (s.pointers[0]) {
        const lab_type *t = values[0]->type;
        return t->kind == LAB_POINTER ? t->of : NULL;
    }
    const bool mask_first = row->kind == LAB_SHUFFLE || row->kind == LAB_EFFECT;
    const lab_type *t = mask_first && n > 1 ? values[1]->type : values[0]->type;
    for (uint32_t i = 1; i < n && !mask_first; i++)
        if (lab_is_arithmetic(t) && lab_is_arithmetic(values[i]->type))
            t = lab_common(t, values[i]->type);
    return lab_is_arithmetic(t) ? lab_promoted(t) : NULL;
}

static const lab_builtin *choose(const lab_builtin *rows, uint32_t count, lab_expression **values,
                                 uint32_t n) {
    if (count == 1) return rows;
    const lab_type *type = deciding_type(rows, values, n);
    for (uint32_t i = 0; type && i < count; i++) {
        const bool by_result = rows[i].result[0] != 'v';
        const lab_type *own = lab_letter_type(by_result ? rows[i].result[0] : 'i');
        if (own->kind == type->kind) return &rows[i];
    }
    const bool converts = type && lab_is_integer(type) && rows[count - 1].result[0] == 'd';
    return converts && !read_signature(rows->parameters).pointers[0] ? &rows[count - 1] : NULL;
}

static void convert_arguments(lab *l, const lab_builtin *row, lab_expression **values, uint32_t n,
                              lab_position at) {
    const signature s = read_signature(row->parameters);
    if (n < s.required || n > s.count) {
        lab_fail(l, at, "expected %u arguments of '%s', found %u", s.required, row->name, n);
        return;
    }
    for (uint32_t i = 0; i < n && !l->failed; i++) {
        const lab_type *type = lab_letter_type(s.letters[i]);
        if (s.pointers[i]) {
            type = lab_qualified(l, type, row->kind == LAB_LOAD, true);
            type = lab_pointer_to(l, type);
        }
        values[i] = lab_convert(l, values[i], type);
    }
}

/* __ldg of a vector has no row: it is a load of what the pointer points to. */
static lab_expression *load(lab *l, const lab_builtin *row, lab_expression **values, uint32_t n,
                            lab_position at) {
    if (n != 1) lab_fail(l, at, "expected 1 argument of '%s', found %u", row->name, n);
    return lab_dereference(l, n ? values[0] : lab_error_node(l, at), at);
}

static lab_expression *call_builtin(lab *l, const lab_builtin *rows, uint32_t count,
                                    lab_expression **values, uint32_t n, lab_position at) {
    if (rows->kind == LAB_LOAD) return load(l, rows, values, n, at);
    const lab_builtin *row = choose(rows, count, values, n);
    if (!row) {
        const bool pointer = read_signature(rows->parameters).pointers[0];
        lab_fail(l, at, "'%s' is not supported for '%s'%s", rows->name,
                 n ? lab_type_text(l, values[0]->type) : "no argument",
                 pointer && n && values[0]->type->kind != LAB_POINTER ? "; expected a pointer"
                                                                      : "");
        return lab_error_node(l, at);
    }
    convert_arguments(l, row, values, n, at);
    lab_expression *e = lab_node(l, LAB_BUILTIN, lab_letter_type(row->result[0]), at, NULL, NULL);
    take_arguments(l, e, values, n);
    e->builtin = row;
    e->modifies |= row->kind != LAB_PLAIN && row->kind != LAB_BITS;
    return e;
}

/* What to say of functions that many programs call. */
static const char *advice(const char *name) {
    static const struct {
        const char *name, *advice;
    } table[] = {
        {"printf", "; kernels here cannot print: write to an array, or step through the kernel"},
        {"expf", "; use a polynomial, or fmaf, sqrtf, rsqrtf, fabsf, fminf, fmaxf"},
        {"cudaMalloc",
         "; only kernels run here: the launch and its arrays are set beside the editor"},
        {"assert", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(name, table[i].name) == 0) return table[i].advice;
    return "; declare a __device__ function of this name before its use";
}

lab_expression *lab_call(lab *l, const lab_name *name, lab_expression **values, uint32_t n,
                         lab_position at) {
    for (uint32_t i = 0; i < n; i++)
        values[i] = lab_value(l, values[i]);
    if (l->failed) return lab_error_node(l, at);
    if (name->symbol && name->symbol->function)
        return call_function(l, name->symbol->function, values, n, at);
    if (name->symbol) {
        lab_fail(l, at, "'%s' is a variable, not a function", name->text);
        return lab_error_node(l, at);
    }
    if (strncmp(name->text, "make_", 5) == 0) {
        const lab_type *type = lab_named_type(name->text + 5);
        if (type && type->kind == LAB_VECTOR) return lab_make(l, type, values, n, at);
    }
    uint32_t count;
    const lab_builtin *rows = lab_builtins(name->text, &count);
    if (rows) return call_builtin(l, rows, count, values, n, at);
    if (name->is_host)
        lab_fail(l, at, "'%s' is a function of the host; write __device__ before it", name->text);
    lab_fail(l, at, "unknown function '%s'%s", name->text, advice(name->text));
    return lab_error_node(l, at);
}
