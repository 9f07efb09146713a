/* Half of the mutations of a text keep to lines: one is taken from the kernels that were collected
 * (lines.h, made by build.py), repeated, moved, dropped, or has a number or a word changed for another
 * of the text's own. Bytes alone rarely make a second instruction that the reader takes.
 */
#include <string.h>

#include "fuzz.h"
#include "lines.h"

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The beginning of a line, drawn by lot. */
static size_t some_line(const uint8_t *text, size_t size, unsigned *state) {
    size_t at = size ? next(state) % size : 0;
    while (at > 0 && text[at - 1] != '\n')
        at--;
    return at;
}

static size_t line_end(const uint8_t *text, size_t size, size_t at) {
    while (at < size && text[at] != '\n')
        at++;
    return at < size ? at + 1 : size;
}

static size_t insert(uint8_t *text, size_t size, size_t most, size_t at, const void *what,
                     size_t n) {
    if (size + n > most) return size;
    memmove(text + at + n, text + at, size - at);
    memcpy(text + at, what, n);
    return size + n;
}

static size_t erase(uint8_t *text, size_t size, size_t at, size_t n) {
    memmove(text + at, text + at + n, size - at - n);
    return size - n;
}

static int is_word(uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '%' ||
           c == '_' || c == '$';
}

/* A word of the text, drawn by lot: its place and length. */
static size_t some_word(const uint8_t *text, size_t size, size_t *n, unsigned *state) {
    size_t at = size ? next(state) % size : 0;
    while (at > 0 && !is_word(text[at]))
        at--;
    while (at > 0 && is_word(text[at - 1]))
        at--;
    for (*n = 0; at + *n < size && is_word(text[at + *n]); ++*n) {
    }
    return at;
}

static size_t change_word(uint8_t *text, size_t size, size_t most, unsigned *state) {
    uint8_t word[64];
    size_t from_n, to_n;
    const size_t from = some_word(text, size, &from_n, state);
    if (from_n > sizeof word) return size;
    memcpy(word, text + from, from_n);
    const size_t to = some_word(text, size, &to_n, state);
    return insert(text, erase(text, size, to, to_n), most, to, word, from_n);
}

static size_t change_number(uint8_t *text, size_t size, size_t most, unsigned *state) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "4",
                                          "8",
                                          "16",
                                          "31",
                                          "32",
                                          "33",
                                          "64",
                                          "128",
                                          "255",
                                          "256",
                                          "65535",
                                          "65536",
                                          "2147483647",
                                          "4294967295",
                                          "-2147483648",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "0f7fc00000",
                                          "0fff800000",
                                          "0d7ff8000000000000",
                                          "0f00000001"};
    const char *number = numbers[next(state) % (sizeof numbers / sizeof *numbers)];
    size_t at = size ? next(state) % size : 0, n = 0;
    while (at < size && !(text[at] >= '0' && text[at] <= '9'))
        at++;
    while (at + n < size && text[at + n] >= '0' && text[at + n] <= '9')
        n++;
    return insert(text, erase(text, size, at, n), most, at, number, strlen(number));
}

size_t LLVMFuzzerCustomMutator(uint8_t *text, size_t size, size_t most, unsigned seed) {
    unsigned state = seed;
    uint8_t line[512];
    if (next(&state) % 2) return LLVMFuzzerMutate(text, size, most);
    for (unsigned times = 1 + next(&state) % 4; times; times--) {
        const size_t at = some_line(text, size, &state), n = line_end(text, size, at) - at;
        switch (next(&state) % 8) {
        case 0:
        case 1:
        case 2: {
            const char *const fresh = lines[next(&state) % (sizeof lines / sizeof *lines)];
            size = insert(text, size, most, at, fresh, strlen(fresh));
            break;
        }
        case 3: size = erase(text, size, at, n); break;
        case 4:
            if (n > sizeof line) break;
            memcpy(line, text + at, n);
            size = insert(text, size, most, some_line(text, size, &state), line, n);
            break;
        case 5: size = change_number(text, size, most, &state); break;
        default: size = change_word(text, size, most, &state);
        }
    }
    return size;
}
