/* Compiles mutations of sources: SECONDS SEED FILES...
 *
 * Built with sanitizers by test_lab_hostile.py. A compilation of more than 2 s is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab/compiler/compiler.h"

enum { MAX_TEXT = 60000, MAX_FILES = 256, MAX_SECONDS = 2 };

static char *texts[MAX_FILES];
static size_t sizes[MAX_FILES];
static int n_texts;
static unsigned long long state;

static unsigned below(unsigned n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % n;
}

static void load(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || n_texts == MAX_FILES) exit(3);
    texts[n_texts] = malloc(MAX_TEXT);
    sizes[n_texts] = fread(texts[n_texts], 1, MAX_TEXT / 2, f);
    n_texts++;
    fclose(f);
}

static const char *const words[] = {"(",
                                    ")",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    ";",
                                    ",",
                                    "*",
                                    "&",
                                    "-",
                                    "!",
                                    "~",
                                    "?",
                                    ":",
                                    "=",
                                    "+=",
                                    "<<",
                                    ">>=",
                                    "++",
                                    "--",
                                    "&&",
                                    "||",
                                    "<",
                                    "int ",
                                    "float ",
                                    "bool ",
                                    "char ",
                                    "double ",
                                    "unsigned ",
                                    "float4 ",
                                    "void ",
                                    "if (",
                                    "else ",
                                    "for (;;) ",
                                    "while (1) ",
                                    "do ",
                                    "return ",
                                    "break;",
                                    "continue;",
                                    "sizeof",
                                    "const ",
                                    "extern ",
                                    "__shared__ ",
                                    "__device__ ",
                                    "__global__ ",
                                    "volatile ",
                                    "auto ",
                                    "0",
                                    "1",
                                    "-1",
                                    "0x7fffffff",
                                    "4294967296",
                                    "1e300",
                                    "1.0f",
                                    "0.0",
                                    "'a'",
                                    "\"C\"",
                                    "#define a b\n",
                                    "#if 1\n",
                                    "#endif\n",
                                    "#undef x\n",
                                    "//",
                                    "/*",
                                    "threadIdx.x",
                                    "atomicAdd(",
                                    "__shfl_sync(",
                                    "min(",
                                    "make_float4(",
                                    ".x",
                                    "->y",
                                    "t",
                                    "x",
                                    "x[0]",
                                    "(int)",
                                    "(float4 *)",
                                    "{1, 2}",
                                    "= {}",
                                    "\\\n",
                                    "\n"};

static size_t insert(char *text, size_t size, size_t at, const char *what, size_t length) {
    if (size + length > MAX_TEXT) return size;
    memmove(text + at + length, text + at, size - at);
    memcpy(text + at, what, length);
    return size + length;
}

static size_t remove_part(char *text, size_t size, size_t at, size_t length) {
    if (at + length > size) length = size - at;
    memmove(text + at, text + at + length, size - at - length);
    return size - length;
}

static size_t mutate(char *text, size_t size) {
    const size_t at = size ? below((unsigned)size) : 0;
    const int other = (int)below((unsigned)n_texts);
    const char *word = words[below(sizeof words / sizeof *words)];
    switch (below(6)) {
    case 0: return insert(text, size, at, word, strlen(word));
    case 1: return remove_part(text, size, at, 1 + below(12));
    case 2:
        size = remove_part(text, size, at, 1 + below(4));
        return insert(text, size, at < size ? at : size, word, strlen(word));
    case 3:
        if (size) text[at] = (char)below(256);
        return size;
    case 4:
        if (sizes[other] < 2) return size;
        const size_t from = below((unsigned)sizes[other] - 1);
        const size_t room = sizes[other] - from;
        return insert(text, size, at, texts[other] + from, 1 + below((unsigned)room) % 200 % room);
    default: return below(8) ? size : at; /* cut short */
    }
}

static int compile_one(const char *text, size_t size) {
    char error[200];
    char *copy = malloc(size ? size : 1); /* exact, so that a read beyond it is seen */
    memcpy(copy, text, size);
    const clock_t start = clock();
    char *ptx = lab_compile("kernel.cu", copy, size, error, sizeof error);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    const int good = ptx != NULL;
    if (!ptx && !error[0]) exit(4);
    if (seconds > MAX_SECONDS) {
        fprintf(stderr, "%.1f s for:\n%.*s\n", seconds, (int)size, copy);
        exit(5);
    }
    free(ptx);
    free(copy);
    return good;
}

int main(int n, char **arguments) {
    if (n < 4) return 2;
    const double seconds = atof(arguments[1]);
    state = strtoull(arguments[2], NULL, 0);
    for (int k = 3; k < n; k++)
        load(arguments[k]);
    static char text[MAX_TEXT + 1];
    long tries = 0, good = 0;
    const time_t end = time(NULL) + (time_t)seconds;
    while (time(NULL) < end) {
        const int which = (int)below((unsigned)n_texts);
        size_t size = sizes[which];
        memcpy(text, texts[which], size);
        for (unsigned k = 1 + below(8); k > 0; k--)
            size = mutate(text, size);
        tries++;
        good += compile_one(text, size);
    }
    printf("%ld mutations, %ld compiled\n", tries, good);
    for (int k = 0; k < n_texts; k++)
        free(texts[k]);
    return 0;
}
