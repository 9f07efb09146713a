/* Between parser_variable.c and parser_initialiser.c. */
#ifndef EMU_PARSER_VARIABLE_H
#define EMU_PARSER_VARIABLE_H

#include "parser.h"

enum { MAX_DIMENSIONS = 8 };

/* What a declaration says of a variable, but its name. */
typedef struct shape {
    ptx_type type;
    uint32_t align;
    uint32_t vector; /* .v4: 4; 0 for none */
    uint32_t n_dimensions;
    bool unsized; /* x[] */
    uint64_t counts[MAX_DIMENSIONS];
    uint64_t strides[MAX_DIMENSIONS]; /* bytes from one index to the next */
    uint64_t bytes;
} shape;

/* After the =. Gives an unsized array its size (s->bytes). */
bool parser_initialiser(parser *p, variable_note *note, shape *s);

#endif
