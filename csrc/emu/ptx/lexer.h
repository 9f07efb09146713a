/* PTX text to tokens. Internal to the parser (parser*.c). */
#ifndef EMU_LEXER_H
#define EMU_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,       /* foo  %r12  $L__BB0_1 */
    TOKEN_DOT,        /* .global  .x  .2d  .shared::cta ; text and length exclude the dot */
    TOKEN_NUMBER,     /* 12  0x1fU  0f3F800000  1.5e3 ; without a sign */
    TOKEN_STRING,     /* text and length exclude the quotes; escapes are not decoded */
    TOKEN_PUNCTUATOR, /* any other single character, in `punctuator` */
    TOKEN_BAD         /* not PTX; text is the error message */
} token_kind;

typedef struct token {
    token_kind kind;
    char punctuator; /* 0: not a TOKEN_PUNCTUATOR */
    uint32_t line;
    size_t length;
    const char *text;
    const char *start; /* in the source, including the dot or quote */
} token;

typedef struct lexer {
    const char *begin, *at, *end;
    uint32_t line;
} lexer;

/* The text need not be NUL-terminated; its size must be below UINT32_MAX. */
void lexer_start(lexer *l, const char *text, size_t size);
token lexer_next(lexer *l);

/* Copies source text without comments, each run of white space collapsed to one space. `out` must
 * hold end - start bytes. Returns the length. */
size_t lexer_fold(const char *start, const char *end, char *out);

#endif
