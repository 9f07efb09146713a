/* Half of the mutations of a text keep to lines: one is taken from the kernels that were collected
 * (lines.h, made by build.py), repeated, moved, dropped, or has a number or a word changed for another
 * of the text's own. Bytes alone rarely make a second instruction that the reader takes. Lines of calls,
 * prototypes, targets and parameters are few among all, so every fourth line comes from these.
 *
 * Whole blocks, { ... } with what stands before the brace, are repeated, dropped, and go from text to
 * text: a call needs its function, its variables and its prototype.
 */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
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

/* The beginning of a line that has one of the signs: the first one of those drawn. */
static size_t some_line_with(const uint8_t *text, size_t size, const char *const signs[],
                             unsigned *state) {
    enum { DRAWS = 50 };
    size_t at = 0;
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        at = some_line(text, size, state);
        const size_t n = line_end(text, size, at) - at;
        for (size_t k = 0; signs[k]; k++)
            if (memmem(text + at, n, signs[k], strlen(signs[k]))) return at;
    }
    return at;
}

/* A word of the text, drawn by lot: its place and length; `of_names`: of a line of labels, branches or
 * calls. */
static size_t some_word(const uint8_t *text, size_t size, int of_names, size_t *n,
                        unsigned *state) {
    size_t at = size ? next(state) % size : 0;
    if (of_names) {
        static const char *const signs[] = {"call", "targets", "bra", "brx", ": ", NULL};
        const size_t begin = some_line_with(text, size, signs, state);
        const size_t end = line_end(text, size, begin);
        at = end > begin ? begin + next(state) % (end - begin) : begin;
    }
    while (at > 0 && (at == size || !is_word(text[at])))
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
    const int of_names = next(state) % 2;
    const size_t from = some_word(text, size, of_names, &from_n, state);
    if (from_n > sizeof word) return size;
    memcpy(word, text + from, from_n);
    const size_t to = some_word(text, size, of_names, &to_n, state);
    return insert(text, erase(text, size, to, to_n), most, to, word, from_n);
}

/* A number of the text: any, an index or an offset, the size of a parameter, an alignment. */
static size_t some_number(const uint8_t *text, size_t size, size_t *n, unsigned *state) {
    static const char *const parameters[] = {".param", "prototype", NULL};
    const unsigned kind = next(state) % 4;
    size_t at =
        kind == 2 ? some_line_with(text, size, parameters, state) : (size ? next(state) % size : 0);
    for (; kind && at + 6 < size; at++)
        if (kind == 3 ? !memcmp(text + at, "align ", 6) : text[at] == '[') break;
    while (at < size && !(text[at] >= '0' && text[at] <= '9'))
        at++;
    for (*n = 0; at + *n < size && text[at + *n] >= '0' && text[at + *n] <= '9'; ++*n) {
    }
    return at;
}

/* One more or less, twice as much or half. */
static size_t near_number(const uint8_t *digits, size_t n, char out[24], unsigned *state) {
    uint64_t value = 0;
    for (size_t k = 0; k < n; k++)
        value = value * 10 + (uint64_t)(digits[k] - '0');
    switch (next(state) % 4) {
    case 0: value++; break;
    case 1: value--; break;
    case 2: value *= 2; break;
    default: value /= 2;
    }
    return (size_t)snprintf(out, 24, "%llu", (unsigned long long)value);
}

static size_t change_number(uint8_t *text, size_t size, size_t most, unsigned *state) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "4",
                                          "3",
                                          "7",
                                          "8",
                                          "16",
                                          "15",
                                          "17",
                                          "31",
                                          "32",
                                          "33",
                                          "64",
                                          "128",
                                          "255",
                                          "256",
                                          "1024",
                                          "32000",
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
    char near[24];
    size_t n;
    const size_t at = some_number(text, size, &n, state);
    if (n && next(state) % 3 == 0) {
        const size_t digits = near_number(text + at, n, near, state);
        return insert(text, erase(text, size, at, n), most, at, near, digits);
    }
    return insert(text, erase(text, size, at, n), most, at, number, strlen(number));
}

/* A block of the text, drawn by lot: from behind the statement before its brace, so that a function has
 * its header, to its closing brace. No bytes if there is none. */
static size_t some_block(const uint8_t *text, size_t size, size_t *n, unsigned *state) {
    size_t open = size ? next(state) % size : 0, close, depth = 0;
    *n = 0;
    while (open > 0 && text[open] != '{')
        open--;
    for (close = open; close < size; close++) {
        depth += text[close] == '{';
        if (text[close] == '}' && depth && --depth == 0) break;
    }
    if (close == size) return 0;
    while (open > 0 && !strchr(";{}", text[open - 1]))
        open--;
    *n = close + 1 - open;
    return open;
}

/* A place where a block may stand: behind a statement or a block. */
static size_t some_gap(const uint8_t *text, size_t size, unsigned *state) {
    size_t at = size ? next(state) % size : 0;
    while (at < size && !strchr(";{}", text[at]))
        at++;
    return at < size ? at + 1 : size;
}

static size_t change_block(uint8_t *text, size_t size, size_t most, unsigned *state) {
    static uint8_t block[1 << 13];
    size_t n;
    const size_t at = some_block(text, size, &n, state);
    if (!n || n > sizeof block) return size;
    memcpy(block, text + at, n);
    if (next(state) % 2) size = erase(text, size, at, n); /* it moves, else it comes again */
    return insert(text, size, most, some_gap(text, size, state), block, n);
}

static const char *some_fresh_line(unsigned *state) {
    const size_t all = sizeof lines / sizeof *lines;
    return lines[next(state) % (next(state) % 4 ? all : n_lines_of_calls)];
}

size_t LLVMFuzzerCustomMutator(uint8_t *text, size_t size, size_t most, unsigned seed) {
    unsigned state = seed;
    uint8_t line[512];
    if (next(&state) % 2) return LLVMFuzzerMutate(text, size, most);
    for (unsigned times = 1 + next(&state) % 4; times; times--) {
        const size_t at = some_line(text, size, &state), n = line_end(text, size, at) - at;
        switch (next(&state) % 11) {
        case 0:
        case 1:
        case 2: {
            const char *const fresh = some_fresh_line(&state);
            size = insert(text, size, most, at, fresh, strlen(fresh));
            break;
        }
        case 3: size = erase(text, size, at, n); break;
        case 4:
            if (n > sizeof line) break;
            memcpy(line, text + at, n);
            size = insert(text, size, most, some_line(text, size, &state), line, n);
            break;
        case 5:
        case 6:
        case 7: size = change_number(text, size, most, &state); break;
        case 8: size = change_block(text, size, most, &state); break;
        default: size = change_word(text, size, most, &state);
        }
    }
    return size;
}

/* A block of the second text in the first, in the place of one there or beside all. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,
                                 size_t second_size, uint8_t *out, size_t most, unsigned seed) {
    unsigned state = seed;
    size_t n, gone, size = first_size < most ? first_size : most;
    memcpy(out, first, size);
    const size_t from = some_block(second, second_size, &n, &state);
    size_t at = some_block(out, size, &gone, &state);
    if (next(&state) % 2)
        size = erase(out, size, at, gone);
    else
        at = some_gap(out, size, &state);
    return insert(out, size, most, at, second + from, n);
}
