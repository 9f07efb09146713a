/* Directives and macros: #define of objects and functions, #undef, #if and its kin, #include of
 * known headers (ignored), #pragma (ignored).
 *
 * Texts to read lie on a stack: the source at the bottom, above it the expansions of macros. A
 * macro is disabled while its own expansion is on the stack, as in C.
 */
#include <string.h>

#include "parser.h"
#include "token.h"

enum { MAX_PARAMETERS = 16, MAX_NESTED = 64 };

typedef struct lab_macro {
    bool is_function, disabled;
    uint32_t n_parameters;
    const lab_name *parameters[MAX_PARAMETERS];
    lab_vector body;
} lab_macro;

typedef struct text {
    const lab_token *tokens;
    uint32_t at, count;
    lab_macro *macro; /* enabled again at the end; NULL: none */
    struct text *below;
} text;

/* What all expansions together have done. */
typedef struct work {
    uint32_t expansions, tokens;
} work;

typedef struct preprocessor {
    lab *l;
    text *top;
    lab_vector *out;
    uint32_t depth; /* of arguments within arguments */
    struct work *work;
    bool is_argument; /* a macro's argument, or the text of #if: without directives */
} preprocessor;

static bool is(const lab_token *t, uint32_t punctuator) {
    return t->kind == LAB_PUNCTUATOR && t->punctuator == punctuator;
}

static bool spells(const lab_token *t, const char *word) {
    return t->kind == LAB_NAME && strcmp(t->name->text, word) == 0;
}

static const lab_token nothing = {.kind = LAB_END, .starts_line = true};

/* The next token, which stays; ends of texts are passed, except at the bottom. */
static const lab_token *look(preprocessor *p) {
    if (p->l->failed) return &nothing;
    while (p->top && p->top->at == p->top->count) {
        if (p->top->macro) p->top->macro->disabled = false;
        p->top = p->top->below;
    }
    return p->top ? &p->top->tokens[p->top->at] : &nothing;
}

static void skip(preprocessor *p) {
    if (p->top && p->top->at < p->top->count) p->top->at++;
}

static void push(preprocessor *p, const lab_vector *tokens, lab_macro *macro) {
    text *t = lab_new(p->l, sizeof *t);
    t->tokens = tokens->items;
    t->count = tokens->count;
    t->macro = macro;
    t->below = p->top;
    p->top = t;
    if (macro) macro->disabled = true;
}

/* Appends a token, unless there are too many. */
static void put(preprocessor *p, lab_vector *to, const lab_token *t, lab_position at) {
    if (++p->work->tokens > 2 * LAB_MAX_TOKENS || to->count >= LAB_MAX_TOKENS)
        lab_fail(p->l, at, "more than %d tokens after expansion of macros", LAB_MAX_TOKENS);
    if (p->l->failed) return;
    lab_token *copy = lab_push(p->l, to, sizeof *copy);
    *copy = *t;
    copy->at = at;
}

/* ---- macros ---- */

static void expand_all(preprocessor *p);

/* Expands an argument for itself. */
static lab_vector expanded(preprocessor *p, const lab_vector *tokens) {
    lab_vector out = {0};
    preprocessor inner = {.l = p->l, .out = &out, .depth = p->depth + 1, .is_argument = true};
    inner.work = p->work;
    if (inner.depth > MAX_NESTED) {
        const lab_token *t = tokens->count ? tokens->items : &nothing;
        lab_fail(p->l, t->at, "macro arguments nested deeper than %d", MAX_NESTED);
        return out;
    }
    push(&inner, tokens, NULL);
    expand_all(&inner);
    return out;
}

/* Reads the arguments of a call, the '(' included; false if they are wrong. */
static bool arguments(preprocessor *p, const lab_macro *m, lab_position at, lab_vector *found) {
    uint32_t n = 0, depth = 0;
    for (skip(p);; skip(p)) {
        const lab_token *t = look(p);
        if (t->kind == LAB_END) {
            lab_fail(p->l, at, "expected ')' after the arguments of a macro");
            return false;
        }
        if (depth == 0 && is(t, ')')) break;
        if (depth == 0 && is(t, ',')) {
            if (++n >= MAX_PARAMETERS) break;
            continue;
        }
        depth += is(t, '(');
        depth -= is(t, ')');
        put(p, &found[n], t, t->at);
    }
    const uint32_t given = n == 0 && found[0].count == 0 && m->n_parameters == 0 ? 0 : n + 1;
    if (given != m->n_parameters)
        lab_fail(p->l, at, "expected %u arguments of the macro, found %s%u", m->n_parameters,
                 n >= MAX_PARAMETERS ? "more than " : "", n >= MAX_PARAMETERS ? n : given);
    skip(p);
    return !p->l->failed;
}

static uint32_t parameter(const lab_macro *m, const lab_token *t) {
    if (t->kind == LAB_NAME)
        for (uint32_t i = 0; i < m->n_parameters; i++)
            if (m->parameters[i] == t->name) return i;
    return MAX_PARAMETERS;
}

/* The body with its parameters replaced. */
static lab_vector *substituted(preprocessor *p, lab_macro *m, lab_vector *given) {
    lab_vector *result = lab_new(p->l, sizeof *result);
    const lab_token *body = m->body.items;
    for (uint32_t i = 0; i < m->body.count && !p->l->failed; i++) {
        const uint32_t n = parameter(m, &body[i]);
        const lab_vector *from = n < MAX_PARAMETERS ? &given[n] : NULL;
        for (uint32_t j = 0; j < (from ? from->count : 1); j++) {
            const lab_token *t = from ? (const lab_token *)from->items + j : &body[i];
            put(p, result, t, t->at);
        }
    }
    return result;
}

static void function_macro(preprocessor *p, lab_macro *m, lab_position at) {
    lab_vector given[MAX_PARAMETERS + 1] = {0};
    if (!arguments(p, m, at, given)) return;
    for (uint32_t i = 0; i < m->n_parameters; i++)
        given[i] = expanded(p, &given[i]);
    push(p, substituted(p, m, given), m);
}

/* Whether the token began an expansion. `at`: where the outermost macro stands. */
static bool expand(preprocessor *p, lab_token t, lab_position at) {
    lab_macro *m = t.kind == LAB_NAME && !t.painted ? t.name->macro : NULL;
    if (!m || m->disabled) return false;
    if (m->is_function && !is(look(p), '(')) return false;
    if (++p->work->expansions > LAB_MAX_EXPANSIONS) {
        lab_fail(p->l, at, "more than %d expansions of macros", LAB_MAX_EXPANSIONS);
        return false;
    }
    if (m->is_function)
        function_macro(p, m, at);
    else
        push(p, &m->body, m);
    return true;
}

/* ---- directives ---- */

typedef struct conditional {
    bool taken, active, had_else;
    struct conditional *outer;
} conditional;

static void line(preprocessor *p, lab_vector *out) {
    for (const lab_token *t = look(p); !t->starts_line; skip(p), t = look(p))
        *(lab_token *)lab_push(p->l, out, sizeof *t) = *t;
}

static void parameters(lab *l, lab_macro *m, const lab_token *t, uint32_t n, uint32_t *at) {
    uint32_t i = *at;
    for (bool more = i < n && !is(&t[i], ')'); more; i++) {
        if (i >= n || t[i].kind != LAB_NAME || m->n_parameters == MAX_PARAMETERS) {
            lab_fail(l, t[0].at, "expected at most %d names as parameters of the macro",
                     MAX_PARAMETERS);
            return;
        }
        m->parameters[m->n_parameters++] = t[i++].name;
        more = i < n && is(&t[i], ',');
        if (!more) break;
    }
    if (i >= n || !is(&t[i], ')'))
        lab_fail(l, t[0].at, "expected ')' after the macro's parameters");
    *at = i + 1;
}

static void define(lab *l, const lab_token *t, uint32_t n) {
    if (n < 2 || t[1].kind != LAB_NAME || t[1].name->keyword) {
        lab_fail(l, t[0].at, "expected a name after '#define'");
        return;
    }
    lab_macro *m = lab_new(l, sizeof *m);
    uint32_t i = 2;
    if (n > 2 && is(&t[2], '(') && !t[2].after_space) {
        m->is_function = true;
        i = 3;
        parameters(l, m, t, n, &i);
    }
    for (; i < n && !l->failed; i++) {
        if (is(&t[i], '#') || is(&t[i], LAB_2('#', '#')))
            lab_fail(l, t[i].at, "'#' and '##' in macros are not supported");
        lab_token *copy = lab_push(l, &m->body, sizeof *copy);
        *copy = t[i];
        copy->painted = t[i].kind == LAB_NAME && t[i].name == t[1].name;
    }
    t[1].name->macro = m;
}

static const lab_token *one_name(lab *l, const lab_token *t, uint32_t n) {
    if (n == 2 && t[1].kind == LAB_NAME) return &t[1];
    lab_fail(l, t[0].at, "expected one name after '#%.*s'", (int)t[0].length, t[0].text);
    return &nothing;
}

static bool is_defined(const lab_token *t) {
    return t->name && t->name->macro;
}

/* defined X and defined(X) become 1 or 0, and after expansion names that are left become 0. */
static bool condition(preprocessor *p, const lab_token *t, uint32_t n) {
    lab_vector in = {0};
    for (uint32_t i = 1; i < n && !p->l->failed; i++) {
        lab_token copy = t[i];
        if (spells(&t[i], "defined")) {
            const bool round = i + 3 < n && is(&t[i + 1], '(') && is(&t[i + 3], ')');
            const uint32_t at = i + (round ? 2 : 1);
            if (at >= n || t[at].kind != LAB_NAME)
                lab_fail(p->l, t[i].at, "expected a name after 'defined'");
            else
                copy = (lab_token){.kind = LAB_INTEGER, .integer = is_defined(&t[at])};
            copy.at = t[i].at;
            i += round ? 3 : 1;
        }
        *(lab_token *)lab_push(p->l, &in, sizeof copy) = copy;
    }
    lab_vector out = expanded(p, &in);
    for (uint32_t i = 0; i < out.count; i++) {
        lab_token *o = (lab_token *)out.items + i;
        const bool truth = o->kind == LAB_NAME && o->name->keyword == LAB_KEY_TRUE;
        if (o->kind == LAB_NAME) {
            o->kind = LAB_INTEGER;
            o->integer = truth;
        }
    }
    lab_token *end = lab_push(p->l, &out, sizeof *end);
    end->at = t[0].at;
    return lab_constant(p->l, &out) != 0;
}

static void open_conditional(preprocessor *p, conditional **c, bool holds) {
    conditional *inner = lab_new(p->l, sizeof *inner);
    inner->outer = *c;
    inner->active = !*c || (*c)->taken;
    inner->taken = inner->active && holds;
    if (inner->taken) inner->active = false; /* no further branch */
    *c = inner;
}

/* #if and its kin; false: the directive is another. */
static bool conditionals(preprocessor *p, conditional **c, const lab_token *t, uint32_t n) {
    const bool here = !*c || (*c)->taken;
    if (spells(t, "if")) {
        open_conditional(p, c, here && condition(p, t, n));
    } else if (spells(t, "ifdef") || spells(t, "ifndef")) {
        const bool wanted = spells(t, "ifdef");
        open_conditional(p, c, here && is_defined(one_name(p->l, t, n)) == wanted);
    } else if (spells(t, "elif") || spells(t, "else") || spells(t, "endif")) {
        if (!*c || ((*c)->had_else && !spells(t, "endif"))) {
            lab_fail(p->l, t->at, "'#%s' without '#if'", t->name->text);
        } else if (spells(t, "endif")) {
            *c = (*c)->outer;
        } else {
            const bool holds = (*c)->active && (spells(t, "else") || condition(p, t, n));
            (*c)->had_else = spells(t, "else");
            (*c)->taken = holds;
            if (holds) (*c)->active = false;
        }
    } else {
        return false;
    }
    return true;
}

/* Headers in <> are ignored: what is used of them is known, or an error where it is used. */
static void include(lab *l, const lab_token *t, uint32_t n) {
    if (n < 3 || !is(&t[1], '<'))
        lab_fail(l, t->at, "only headers in <> may be included, and are ignored");
}

static void other_directive(lab *l, const lab_token *t, uint32_t n) {
    if (spells(t, "define")) {
        define(l, t, n);
    } else if (spells(t, "undef")) {
        const lab_token *name = one_name(l, t, n);
        if (name->name) name->name->macro = NULL;
    } else if (spells(t, "include")) {
        include(l, t, n);
    } else if (spells(t, "error")) {
        lab_fail(l, t->at, "#error");
    } else if (!spells(t, "pragma")) {
        lab_fail(l, t->at, "unknown directive '#%.*s'", t->length > 40 ? 40 : (int)t->length,
                 t->text);
    }
}

static void directive(preprocessor *p, conditional **c) {
    lab_vector tokens = {0};
    skip(p);
    line(p, &tokens);
    if (tokens.count == 0 || p->l->failed) return;
    const lab_token *t = tokens.items;
    const bool here = !*c || (*c)->taken;
    if (!conditionals(p, c, t, tokens.count) && here) other_directive(p->l, t, tokens.count);
}

/* ---- all ---- */

static void expand_all(preprocessor *p) {
    conditional *c = NULL;
    lab_position at = {1, 1};
    for (const lab_token *t = look(p); t->kind != LAB_END; t = look(p)) {
        const bool from_source = !p->top->below;
        if (from_source) at = t->at;
        if (from_source && !p->is_argument && t->starts_line && is(t, '#')) {
            directive(p, &c);
            continue;
        }
        lab_token copy = *t;
        skip(p);
        if (c && !c->taken) continue;
        if (copy.kind == LAB_NAME && copy.name->macro && copy.name->macro->disabled)
            copy.painted = true;
        if (!expand(p, copy, at)) put(p, p->out, &copy, p->is_argument ? copy.at : at);
    }
    if (c) lab_fail(p->l, at, "expected '#endif', found the end of the text");
}

void lab_preprocess(lab *l, const lab_vector *in, lab_vector *out) {
    work done = {0};
    preprocessor p = {.l = l, .out = out, .work = &done};
    const lab_token *last = (const lab_token *)in->items + in->count - 1;
    push(&p, in, NULL);
    expand_all(&p);
    *(lab_token *)lab_push(l, out, sizeof *last) = *last;
}
