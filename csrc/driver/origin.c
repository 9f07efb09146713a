/* Lines of kernels that read what nobody wrote and copied it: each has a number, which the words
 * that hold such copies have in allocation.written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

enum { FIRST = 2, LAST = 255 /* of all further lines */ };

static struct {
    const char *kernel; /* that runs */
    struct {
        char *kernel, *file;
        uint32_t line;
    } lines[LAST - FIRST];
    unsigned n;
} origins;

void origin_begin(const char *kernel) {
    origins.kernel = kernel;
}

static bool is_same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

unsigned char origin_number(const char *file, uint32_t line) {
    for (unsigned k = 0; k < origins.n; k++)
        if (origins.lines[k].line == line && is_same(origins.lines[k].file, file) &&
            is_same(origins.lines[k].kernel, origins.kernel))
            return (unsigned char)(FIRST + k);
    if (origins.n == LAST - FIRST) return LAST;
    origins.lines[origins.n].kernel = strdup(origins.kernel);
    origins.lines[origins.n].file = file ? strdup(file) : NULL;
    origins.lines[origins.n].line = line;
    return (unsigned char)(FIRST + origins.n++);
}

void origin_describe(unsigned char number, char *out, size_t size) {
    *out = 0;
    if (number < FIRST || number >= FIRST + origins.n) return;
    const char *kernel = origins.lines[number - FIRST].kernel;
    const char *file = origins.lines[number - FIRST].file;
    const uint32_t line = origins.lines[number - FIRST].line;
    const char *slash = file ? strrchr(file, '/') : NULL;
    if (file)
        snprintf(out, size, ": %.200s:%u reads them in a kernel, which copies them",
                 slash ? slash + 1 : file, line);
    else
        snprintf(out, size, ": PTX line %u of kernel %.200s reads them and copies them", line,
                 kernel ? kernel : "");
}
