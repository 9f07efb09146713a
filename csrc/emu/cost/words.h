/* Sentences, written to a buffer of fixed size; what does not fit is cut. */
#ifndef EMU_WORDS_H
#define EMU_WORDS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct words {
    char *out;
    size_t size, length; /* of `out`; of the whole text, also of what was cut */
} words;

static inline words words_begin(char *out, size_t size) {
    if (size) *out = 0;
    return (words){out, size, 0};
}

__attribute__((format(printf, 2, 3))) static inline void words_add(words *w, const char *format,
                                                                   ...) {
    char *const at = w->length < w->size ? w->out + w->length : NULL;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(at, at ? w->size - w->length : 0, format, args);
    va_end(args);
    if (n > 0) w->length += (size_t)n;
}

/* The plural's ending. */
static inline const char *words_s(uint64_t n) {
    return n == 1 ? "" : "s";
}

#endif
