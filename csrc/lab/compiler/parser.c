/* The token stream, and functions. */
#include "parse.h"

/* ---- tokens ---- */

static const lab_token nothing = {.kind = LAB_END, .text = "", .at = {1, 1}};

const lab_token *parse_look(const parser *p, uint32_t ahead) {
    if (p->l->failed || p->at + ahead >= p->count) return &nothing;
    return &p->tokens[p->at + ahead];
}

void parse_skip(parser *p) {
    if (p->at + 1 < p->count) p->at++;
}

bool parse_is(const parser *p, uint32_t punctuator) {
    const lab_token *t = parse_look(p, 0);
    return t->kind == LAB_PUNCTUATOR && t->punctuator == punctuator;
}

static bool is_keyword(const parser *p, lab_keyword keyword) {
    const lab_token *t = parse_look(p, 0);
    return t->kind == LAB_NAME && t->name->keyword == (int)keyword;
}

bool parse_accept(parser *p, uint32_t punctuator) {
    if (!parse_is(p, punctuator)) return false;
    parse_skip(p);
    return true;
}

bool parse_accept_keyword(parser *p, lab_keyword keyword) {
    if (!is_keyword(p, keyword)) return false;
    parse_skip(p);
    return true;
}

void parse_unexpected(parser *p, const char *expected) {
    char room[64];
    const lab_token *t = parse_look(p, 0);
    lab_fail(p->l, t->at, "expected %s, found %s", expected, lab_describe(t, room));
}

void parse_expect(parser *p, uint32_t punctuator) {
    char text[4], expected[8];
    if (parse_accept(p, punctuator)) return;
    const char *quoted = lab_operator_text(punctuator, text);
    size_t n = 0;
    expected[n++] = '\'';
    while (*quoted)
        expected[n++] = *quoted++;
    expected[n++] = '\'';
    expected[n] = '\0';
    /* after the token before, which is where it is missing */
    const lab_token *t = parse_look(p, 0);
    if (punctuator == ';' && p->at > 0 && t->at.line > p->tokens[p->at - 1].at.line) {
        const lab_token *last = &p->tokens[p->at - 1];
        lab_position at = last->at;
        at.column += last->length;
        lab_fail(p->l, at, "expected ';' at the end of the line");
    }
    parse_unexpected(p, expected);
}

bool parse_enter(parser *p) {
    if (p->l->failed) return false;
    if (p->depth >= 2 * LAB_MAX_DEPTH) {
        lab_fail(p->l, parse_look(p, 0)->at, "nested too deep");
        return false;
    }
    p->depth++;
    return true;
}

void parse_leave(parser *p) {
    p->depth--;
}

/* ---- functions ---- */

static void parameter(parser *p, lab_function *f) {
    const specifiers s = parse_specifiers(p);
    lab_name *name = NULL;
    const lab_position at = parse_look(p, 0)->at;
    const lab_type *type = parse_declarator(p, s.type ? s.type : lab_scalar(LAB_I32), &name);
    if (!s.type) lab_fail(p->l, at, "expected the type of a parameter");
    if (f->n_parameters == LAB_MAX_PARAMETERS)
        lab_fail(p->l, at, "more than %d parameters", LAB_MAX_PARAMETERS);
    if (parse_is(p, '=')) lab_fail(p->l, at, "default arguments are not supported");
    if (p->l->failed) return;
    if (type->kind == LAB_ARRAY) type = lab_pointer_to(p->l, type->of);
    if (f->is_kernel && type->kind == LAB_VECTOR)
        lab_fail(p->l, at, "a kernel's parameters must be numbers and pointers");
    lab_symbol *symbol = parse_declare(p, name, type, at);
    symbol->is_parameter = true;
    f->parameters[f->n_parameters++] = symbol;
}

static void parameters(parser *p, lab_function *f) {
    if (parse_accept(p, ')')) return;
    const lab_token *second = parse_look(p, 1);
    if (is_keyword(p, LAB_KEY_VOID) && second->kind == LAB_PUNCTUATOR &&
        second->punctuator == ')') {
        parse_skip(p);
    } else {
        do
            parameter(p, f);
        while (parse_accept(p, ','));
    }
    parse_expect(p, ')');
}

static bool same_parameters(const lab_function *a, const lab_function *b) {
    if (a->n_parameters != b->n_parameters || a->is_kernel != b->is_kernel) return false;
    for (uint32_t i = 0; i < a->n_parameters; i++)
        if (!lab_same_type(a->parameters[i]->type, b->parameters[i]->type)) return false;
    return lab_same_type(a->result, b->result);
}

/* The function of a name; a declaration before gives its node to the definition. */
static lab_function *declared(parser *p, lab_name *name, lab_function *f) {
    lab_symbol *s = name->symbol;
    if (s && !s->function) lab_fail(p->l, f->at, "'%s' is declared twice", name->text);
    if (!s) {
        s = parse_declare(p, name, lab_scalar(LAB_I32), f->at);
        s->function = f;
        return f;
    }
    lab_function *before = s->function;
    if (p->l->failed) return f;
    if (before->body || !same_parameters(before, f)) {
        lab_fail(p->l, f->at, "'%s' is declared twice; overloads are not supported", name->text);
        return f;
    }
    for (uint32_t i = 0; i < f->n_parameters; i++)
        before->parameters[i] = f->parameters[i];
    before->at = f->at;
    return before;
}

static lab_function *function(parser *p, const specifiers *s, const lab_type *type, lab_name *name,
                              lab_position at) {
    lab_function *f = lab_new(p->l, sizeof *f);
    *f = (lab_function){.name = name, .result = type, .at = at, .is_kernel = s->is_kernel};
    f->max_threads = s->max_threads;
    if (!s->is_kernel && !s->is_device)
        lab_fail(p->l, at,
                 "'%s' is neither __global__ nor __device__; only kernels and what they "
                 "call run here",
                 name ? name->text : "");
    if (s->is_kernel && type->kind != LAB_VOID) lab_fail(p->l, at, "a kernel's type must be void");
    lab_symbol *outer = parse_open_scope(p);
    parameters(p, f);
    /* the function is declared in the outer scope, where its body can see it */
    lab_symbol *own = p->scope;
    p->scope = outer;
    p->scopes--;
    f = declared(p, name, f);
    outer = p->scope;
    p->scope = own;
    p->scopes++;
    if (!parse_accept(p, ';')) {
        p->inside = f;
        for (uint32_t i = 0; i < f->n_parameters; i++) {
            if (f->parameters[i]->type->kind != LAB_POINTER) continue;
            f->parameters[i]->next_pointer = f->pointers;
            f->pointers = f->parameters[i];
        }
        f->body = parse_block(p);
        p->inside = NULL;
    }
    parse_close_scope(p, outer);
    return f;
}

/* ---- host code, which is left out ---- */

/* How many tokens from here to the first ';' or '{' of a host function; 0: it is none. */
static uint32_t host_head(const parser *p) {
    const lab_token *t = parse_look(p, 0);
    bool is_function = false;
    uint32_t n = 0;
    for (; t->kind != LAB_END; t = parse_look(p, ++n)) {
        const int keyword = t->kind == LAB_NAME ? t->name->keyword : LAB_NO_KEYWORD;
        if (keyword == LAB_KEY_GLOBAL || keyword == LAB_KEY_DEVICE) return 0;
        if (keyword >= LAB_KEY_TEMPLATE) return 0;
        if (t->kind != LAB_PUNCTUATOR) continue;
        if (t->punctuator == '=' && !is_function) return 0; /* not a default argument */
        if (t->punctuator == ';' || t->punctuator == '{') break;
        is_function |= t->punctuator == '(' && n > 0 && parse_look(p, n - 1)->kind == LAB_NAME &&
                       parse_look(p, n - 1)->name->keyword == LAB_NO_KEYWORD;
    }
    return is_function ? n : 0;
}

/* using namespace std; */
static bool skip_using(parser *p) {
    const lab_token *next = parse_look(p, 1);
    const bool is_namespace = next->kind == LAB_NAME && next->name->keyword == LAB_KEY_NAMESPACE;
    if (!is_keyword(p, LAB_KEY_USING) || !is_namespace) return false;
    while (!parse_is(p, ';') && parse_look(p, 0)->kind != LAB_END)
        parse_skip(p);
    parse_expect(p, ';');
    return true;
}

/* Skips a function of the host; false: none is here. */
static bool skip_host(parser *p) {
    uint32_t head = host_head(p);
    if (head == 0) return false;
    for (bool named = false; head > 0; head--, parse_skip(p)) {
        const lab_token *t = parse_look(p, 0), *next = parse_look(p, 1);
        const bool call = next->kind == LAB_PUNCTUATOR && next->punctuator == '(';
        if (t->kind == LAB_NAME && call && !named) named = t->name->is_host = true;
    }
    if (parse_accept(p, ';')) return true;
    const lab_position at = parse_look(p, 0)->at;
    uint32_t depth = 0;
    do {
        depth += parse_is(p, '{');
        depth -= parse_is(p, '}');
        if (parse_look(p, 0)->kind == LAB_END)
            lab_fail(p->l, at, "expected '}' of a host function");
        parse_skip(p);
    } while (depth && !p->l->failed);
    return true;
}

/* A declaration outside of functions; the function, if it is a new one. */
static lab_function *external_declaration(parser *p) {
    const specifiers s = parse_specifiers(p);
    if (!s.type && !p->l->failed) lab_fail(p->l, s.at, "'auto' needs a function around it");
    if (p->l->failed) return NULL;
    for (;;) {
        lab_name *name = NULL;
        const lab_position at = parse_look(p, 0)->at;
        const lab_type *type = parse_declarator(p, s.type, &name);
        if (p->l->failed) return NULL;
        if (parse_accept(p, '(')) return function(p, &s, type, name, at);
        parse_module_variable(p, &s, name, type, at);
        if (!parse_accept(p, ',')) break;
    }
    parse_expect(p, ';');
    return NULL;
}

static void not_a_declaration(parser *p) {
    const lab_token *t = parse_look(p, 0);
    const char *refused = t->kind == LAB_NAME ? parse_refused(t->name->keyword) : NULL;
    if (refused) lab_fail(p->l, t->at, "%s", refused);
    parse_unexpected(p, "a kernel such as __global__ void k(float *x) { }");
}

static void begin(parser *p, lab *l, const lab_vector *tokens) {
    *p = (parser){.l = l, .tokens = tokens->items, .count = tokens->count};
}

lab_module *lab_parse(lab *l, const lab_vector *tokens) {
    parser p;
    lab_module *m = lab_new(l, sizeof *m);
    lab_function **last = &m->functions;
    begin(&p, l, tokens);
    while (parse_look(&p, 0)->kind != LAB_END) {
        if (parse_accept(&p, ';') || skip_using(&p) || skip_host(&p)) continue;
        if (!parse_starts_type(&p)) not_a_declaration(&p);
        lab_function *f = external_declaration(&p);
        if (!f || f->next || last == &f->next) continue;
        *last = f;
        last = &f->next;
    }
    m->variables = p.variables.items;
    m->n_variables = p.variables.count;
    return m;
}

int64_t lab_constant(lab *l, const lab_vector *tokens) {
    parser p;
    begin(&p, l, tokens);
    const int64_t value = parse_constant(&p, "a condition");
    if (parse_look(&p, 0)->kind != LAB_END) parse_unexpected(&p, "the end of the line");
    return value;
}
