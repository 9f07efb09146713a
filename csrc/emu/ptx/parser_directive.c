/* Directives that the module and a function's body share, and names of state spaces. */
#include "parser.h"

enum { MAX_FILES = 1 << 16 };

/* Replaces control characters (C0, DEL, and C1 encoded as UTF-8) in a file name. File names are
 * printed to terminals, tables, pages and messages, where a control character could take effect. */
static void make_printable(char *text) {
    unsigned char before = 0;
    for (unsigned char *c = (unsigned char *)text; *c; before = *c++) {
        const bool c1 = before == 0xc2 && *c >= 0x80 && *c < 0xa0;
        if (*c < ' ' || *c == 0x7f || c1) *c = '?';
        if (c1) c[-1] = '?';
    }
}

/* .file 1 "name.cu" [, time, size] */
static bool file(parser *p) {
    uint64_t number, ignored;
    if (!parser_integer(p, MAX_FILES, "a file number", &number)) return false;
    if (p->token.kind != TOKEN_STRING) return parser_unexpected(p, "a file name in quotes");
    char *text = arena_string(p->arena, p->token.text, p->token.length);
    if (!text) return parser_no_memory(p, p->token.length);
    make_printable(text);
    parser_advance(p);
    while (parser_accept(p, ','))
        if (!parser_integer(p, UINT64_MAX, "a number", &ignored)) return false;
    if (number >= p->files.count &&
        !list_extend(p, &p->files, number + 1 - p->files.count, sizeof(char *)))
        return false;
    ((const char **)p->files.items)[number] = text;
    return true;
}

static bool section(parser *p) {
    while (p->token.kind == TOKEN_DOT || p->token.kind == TOKEN_NAME)
        parser_advance(p);
    return parser_at(p, '{') ? parser_skip_braces(p) : parser_unexpected(p, "'{'");
}

static bool pragma(parser *p) {
    do {
        if (p->token.kind != TOKEN_STRING) return parser_unexpected(p, "a pragma in quotes");
        parser_advance(p);
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}

bool parser_common_directive(parser *p, bool *known) {
    static const struct {
        const char *word;
        bool (*read)(parser *);
    } directives[] = {{"file", file}, {"section", section}, {"pragma", pragma}};
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if ((*known = parser_accept_dot(p, directives[i].word))) return directives[i].read(p);
    return true;
}

bool parser_accept_space(parser *p, ptx_space *space) {
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},
                  {"shared", PTX_SHARED},
                  {"const", PTX_CONST},
                  {"local", PTX_LOCAL},
                  {"param", PTX_PARAM}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (!parser_accept_dot(p, spaces[i].word)) continue;
        *space = spaces[i].space;
        return true;
    }
    return false;
}
