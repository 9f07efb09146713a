#include "compiler.h"

#include <stdio.h>
#include <stdlib.h>

#include "generate.h"
#include "parser.h"
#include "token.h"

static char *compile(lab *l, const char *source, size_t size) {
    lab_vector raw = {0}, tokens = {0};
    if (size > LAB_MAX_SOURCE) {
        lab_fail(l, (lab_position){1, 1}, "the source is longer than %d bytes", LAB_MAX_SOURCE);
        return NULL;
    }
    lab_add_keywords(l);
    lab_split(l, source, size, &raw);
    if (!l->failed) lab_preprocess(l, &raw, &tokens);
    lab_module *m = l->failed ? NULL : lab_parse(l, &tokens);
    return l->failed ? NULL : lab_generate(l, m);
}

char *lab_compile(const char *name, const char *source, size_t size, char *error,
                  size_t error_size) {
    lab *l = calloc(1, sizeof *l);
    char *ptx = NULL;
    if (error_size) error[0] = '\0';
    if (l && (l->arena = arena_new())) {
        l->file = name;
        l->error = error;
        l->error_size = error_size;
        ptx = compile(l, source, size);
        arena_free(l->arena);
    } else if (error_size) {
        snprintf(error, error_size, "out of memory");
    }
    free(l);
    return ptx;
}
