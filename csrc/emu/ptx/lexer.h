/* PTX text to tokens. Private to the reader (parser*.c). */
#ifndef EMU_LEXER_H
#define EMU_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum token_kind {
    TOKEN_END,
    TOKEN_NAME,   /* foo  %r12  $L__BB0_1 */
    TOKEN_DOT,    /* .global  .x  .2d  .shared::cta ; text and length are without the dot */
    TOKEN_NUMBER, /* 12  0x1fU  0f3F800000  1.5e3 ; without a sign */
    TOKEN_STRING, /* text and length are without the quotes; escapes stay as written */
    TOKEN_MARK,   /* any other single character, in `mark` */
    TOKEN_BAD     /* not PTX; text says why */
} token_kind;

typedef struct token {
    token_kind kind;
    char mark; /* 0 if not a TOKEN_MARK */
    uint32_t line;
    size_t length;
    const char *text;
    const char *start; /* of the token in the source, its dot or quote included */
} token;

typedef struct lexer {
    const char *begin, *at, *end;
    uint32_t line;
} lexer;

/* The text need not end in NUL. Its length must be below UINT32_MAX. */
void lexer_start(lexer *l, const char *text, size_t size);
token lexer_next(lexer *l);

/* Copies source text with comments dropped and white space folded into single blanks; `out` must
 * hold end - start bytes. Returns the length. */
size_t lexer_fold(const char *start, const char *end, char *out);

#endif
