/* The interface between parser_variable.c and parser_initialiser.c. */
#ifndef EMU_PARSER_VARIABLE_H
#define EMU_PARSER_VARIABLE_H

#include "parser.h"

enum { MAX_DIMENSIONS = 8 };

/* The declared type of a variable: element type, alignment, vector width, dimensions. */
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

/* After the =. Sets s->bytes of an unsized array. */
bool parser_initialiser(parser *p, variable_info *info, shape *s);

#endif
