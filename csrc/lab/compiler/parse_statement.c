/* Statements. */
#include "parse.h"

static lab_statement *parse_statement(parser *p);

static lab_statement *new_statement(parser *p, lab_statement_kind kind) {
    lab_statement *s = lab_new(p->l, sizeof *s);
    s->kind = kind;
    s->at = parse_look(p, 0)->at;
    return s;
}

/* What is not in the subset, and what to write. */
const char *parse_refused(int keyword) {
    switch (keyword) {
    case LAB_KEY_TEMPLATE:
    case LAB_KEY_TYPENAME: return "templates are not supported; use #define or constexpr int";
    case LAB_KEY_STRUCT:
    case LAB_KEY_CLASS:
    case LAB_KEY_UNION: return "own types are not supported; use arrays, or float2, float4, int4";
    case LAB_KEY_ENUM: return "enum is not supported; use constexpr int";
    case LAB_KEY_TYPEDEF:
    case LAB_KEY_USING: return "names for types are not supported; use #define";
    case LAB_KEY_SWITCH:
    case LAB_KEY_CASE:
    case LAB_KEY_DEFAULT: return "switch is not supported; use if and else";
    case LAB_KEY_GOTO: return "goto is not supported; use loops, break and continue";
    case LAB_KEY_ASM: return "asm is not supported";
    case LAB_KEY_NEW:
    case LAB_KEY_DELETE: return "new and delete are not supported; use __shared__ or local arrays";
    case LAB_KEY_NAMESPACE: return "namespaces are not supported";
    case LAB_KEY_OPERATOR: return "own operators are not supported; write a __device__ function";
    case LAB_KEY_THROW:
    case LAB_KEY_TRY: return "exceptions are not supported";
    default: return NULL;
    }
}

lab_symbol *parse_open_scope(parser *p) {
    lab_symbol *outer = p->scope;
    p->scope = NULL;
    p->scopes++;
    return outer;
}

void parse_close_scope(parser *p, lab_symbol *outer) {
    for (lab_symbol *s = p->scope; s; s = s->scope_next)
        s->name->symbol = s->outer;
    p->scope = outer;
    p->scopes--;
}

/* A condition in parentheses. */
static lab_expression *condition(parser *p) {
    parse_expect(p, '(');
    lab_expression *e = parse_expression(p);
    parse_expect(p, ')');
    return lab_truth(p->l, e);
}

static lab_statement *if_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_IF);
    parse_skip(p);
    parse_accept_keyword(p, LAB_KEY_CONSTEXPR);
    s->a = condition(p);
    s->body = parse_statement(p);
    if (parse_accept_keyword(p, LAB_KEY_ELSE)) s->other = parse_statement(p);
    return s;
}

static lab_statement *loop_body(parser *p) {
    p->loops++;
    lab_statement *body = parse_statement(p);
    p->loops--;
    return body;
}

static lab_statement *while_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_LOOP);
    parse_skip(p);
    s->a = condition(p);
    s->body = loop_body(p);
    return s;
}

static lab_statement *do_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_LOOP);
    parse_skip(p);
    s->test_last = true;
    s->body = loop_body(p);
    if (!parse_accept_keyword(p, LAB_KEY_WHILE)) parse_unexpected(p, "'while'");
    s->a = condition(p);
    parse_expect(p, ';');
    return s;
}

static lab_statement *expression_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_EXPRESSION_STATEMENT);
    s->a = parse_expression(p);
    parse_expect(p, ';');
    return s;
}

/* A block: the first statement, and the loop. */
static lab_statement *for_statement(parser *p) {
    lab_statement *block = new_statement(p, LAB_BLOCK);
    lab_statement **last = &block->body;
    parse_skip(p);
    lab_symbol *outer = parse_open_scope(p);
    parse_expect(p, '(');
    if (parse_starts_type(p)) {
        last = parse_local_declaration(p, last);
    } else if (!parse_accept(p, ';')) {
        *last = expression_statement(p);
        last = &(*last)->next;
    }
    lab_statement *loop = new_statement(p, LAB_LOOP);
    if (!parse_is(p, ';')) loop->a = lab_truth(p->l, parse_expression(p));
    parse_expect(p, ';');
    if (!parse_is(p, ')')) loop->step = parse_expression(p);
    parse_expect(p, ')');
    loop->body = loop_body(p);
    *last = loop;
    parse_close_scope(p, outer);
    return block;
}

static lab_statement *jump(parser *p, lab_statement_kind kind) {
    lab_statement *s = new_statement(p, kind);
    if (p->loops == 0)
        lab_fail(p->l, s->at, "'%s' outside of a loop", kind == LAB_BREAK ? "break" : "continue");
    parse_skip(p);
    parse_expect(p, ';');
    return s;
}

static lab_statement *return_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_RETURN);
    parse_skip(p);
    const lab_type *type = p->inside->result;
    if (!parse_is(p, ';')) {
        lab_expression *e = parse_expression(p);
        if (type->kind == LAB_VOID)
            lab_fail(p->l, s->at, "'return' with a value in a function of type void");
        s->a = p->l->failed ? e : lab_convert(p->l, e, type);
    } else if (type->kind != LAB_VOID) {
        lab_fail(p->l, s->at, "expected a value of type '%s' after 'return'", type->name);
    }
    parse_expect(p, ';');
    return s;
}

static lab_statement *keyword_statement(parser *p) {
    const int keyword = parse_look(p, 0)->name->keyword;
    switch (keyword) {
    case LAB_KEY_IF: return if_statement(p);
    case LAB_KEY_WHILE: return while_statement(p);
    case LAB_KEY_DO: return do_statement(p);
    case LAB_KEY_FOR: return for_statement(p);
    case LAB_KEY_BREAK: return jump(p, LAB_BREAK);
    case LAB_KEY_CONTINUE: return jump(p, LAB_CONTINUE);
    case LAB_KEY_RETURN: return return_statement(p);
    default: break;
    }
    const char *refused = parse_refused(keyword);
    if (refused) lab_fail(p->l, parse_look(p, 0)->at, "%s", refused);
    return expression_statement(p);
}

/* A declaration alone, as the body of an if, has a scope of its own. */
static lab_statement *declaration_statement(parser *p) {
    lab_statement *s = new_statement(p, LAB_BLOCK);
    lab_symbol *outer = parse_open_scope(p);
    parse_local_declaration(p, &s->body);
    parse_close_scope(p, outer);
    return s;
}

static lab_statement *statement(parser *p) {
    const lab_token *t = parse_look(p, 0);
    if (parse_is(p, '{')) return parse_block(p);
    if (parse_is(p, ';')) {
        lab_statement *empty = new_statement(p, LAB_BLOCK);
        parse_skip(p);
        return empty;
    }
    if (parse_starts_type(p)) return declaration_statement(p);
    if (t->kind == LAB_NAME && t->name->keyword) return keyword_statement(p);
    return expression_statement(p);
}

static lab_statement *parse_statement(parser *p) {
    if (!parse_enter(p)) return new_statement(p, LAB_BLOCK);
    lab_statement *s = statement(p);
    parse_leave(p);
    return s;
}

lab_statement *parse_block(parser *p) {
    lab_statement *block = new_statement(p, LAB_BLOCK);
    lab_statement **last = &block->body;
    parse_expect(p, '{');
    lab_symbol *outer = parse_open_scope(p);
    while (!parse_is(p, '}') && parse_look(p, 0)->kind != LAB_END) {
        if (parse_starts_type(p)) {
            last = parse_local_declaration(p, last);
        } else {
            *last = parse_statement(p);
            last = &(*last)->next;
        }
    }
    block->end = parse_look(p, 0)->at;
    parse_expect(p, '}');
    parse_close_scope(p, outer);
    return block;
}
