/* A conservative scan, not a preprocessor: every line with "include" after a '#' must be a plain
 * #include of a known header. Includes through macros, __has_include, and comments in between are
 * rejected.
 */
#include "includes.h"

#include <string.h>

static const char *skip_blanks(const char *p) {
    return p + strspn(p, " \t");
}

/* p points behind the '#'. */
static bool is_known_include(const char *p, const nvrtc_header *headers, int n_headers) {
    static const char word[] = "include";
    p = skip_blanks(p);
    if (strncmp(p, word, sizeof word - 1)) return false;
    p = skip_blanks(p + sizeof word - 1);
    if (*p != '"' && *p != '<') return false;
    size_t n = strcspn(p + 1, "\">\n");
    for (int i = 0; i < n_headers; i++)
        if (strlen(headers[i].name) == n && !memcmp(headers[i].name, p + 1, n)) return true;
    return false;
}

bool includes_only(const char *text, const nvrtc_header *headers, int n_headers) {
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        const char *hash = memchr(line, '#', n);
        const char *word = hash ? strstr(hash, "include") : NULL;
        if (word && word < line + n && !is_known_include(hash + 1, headers, n_headers))
            return false;
        line += n + (line[n] == '\n');
    }
    return true;
}
