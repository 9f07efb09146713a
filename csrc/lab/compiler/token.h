/* Source text to tokens: lexer.c splits, preprocessor.c expands. */
#ifndef LAB_TOKEN_H
#define LAB_TOKEN_H

#include "lab.h"

typedef enum lab_token_kind {
    LAB_END,
    LAB_NAME,    /* a keyword, too */
    LAB_INTEGER, /* of `suffix` */
    LAB_REAL,
    LAB_STRING, /* only after extern and in directives */
    LAB_PUNCTUATOR
} lab_token_kind;

enum { LAB_UNSIGNED = 1, LAB_LONG = 2, LAB_FLOAT = 4, LAB_DECIMAL = 8, LAB_CHARACTER = 16 };

typedef struct lab_token {
    lab_token_kind kind;
    uint8_t suffix;      /* LAB_UNSIGNED, ... */
    bool starts_line;    /* the first of its line */
    bool after_space;    /* white space stands before it */
    bool painted;        /* a macro's own name within its expansion: stays */
    uint32_t punctuator; /* its characters, the last one lowest: '+' << 8 | '=' */
    lab_position at;
    lab_name *name;
    const char *text; /* in the source */
    uint32_t length;
    uint64_t integer;
    double real;
} lab_token;

#define LAB_2(a, b)    ((uint32_t)(a) << 8 | (uint32_t)(b))
#define LAB_3(a, b, c) (LAB_2(a, b) << 8 | (uint32_t)(c))

typedef enum lab_keyword {
    LAB_NO_KEYWORD,
#define K(id, text) LAB_KEY_##id,
#include "keywords.def"
#undef K
    LAB_KEYWORDS
} lab_keyword;

/* Interns the keywords. */
void lab_add_keywords(lab *l);

/* Tokens of a text; the last one is LAB_END. */
void lab_split(lab *l, const char *source, size_t size, lab_vector *tokens);

/* Executes directives and expands macros. */
void lab_preprocess(lab *l, const lab_vector *in, lab_vector *out);

/* "';'", "'while'", "the end of the text": for messages. `room` has at least 64 bytes. */
const char *lab_describe(const lab_token *t, char *room);

#endif
