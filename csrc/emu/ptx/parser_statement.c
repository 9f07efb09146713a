/* Statements of a body: instructions, labels, declarations, source positions. */
#include <string.h>

#include "parser.h"

enum { MAX_REGISTERS = 1 << 24 }; /* in one range; only registers that are used cost memory */

/* .reg .b32 %a, %r<100>; after .reg */
static bool registers(parser *p) {
    uint32_t vector = parser_accept_vector(p);
    ptx_type type = parser_accept_type(p);
    if (type == PTX_NO_TYPE) return parser_unexpected(p, "a register type such as .b32");
    do {
        uint32_t line = p->token.line;
        uint64_t count;
        name *n = parser_expect_name(p, "a register's name");
        if (!n) return false;
        if (!parser_accept(p, '<')) {
            if (!scope_declare_registers(p, n, type, vector, line)) return false;
            continue;
        }
        if (!parser_integer(p, MAX_REGISTERS, "the number of registers", &count) ||
            !parser_expect(p, '>'))
            return false;
        binding *b = scope_declare(p, n, BOUND_RANGE, p->depth, line);
        if (!b) return false;
        b->type = type;
        b->count = count;
        b->index = vector;
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}

static bool position_numbers(parser *p, ptx_position *out) {
    uint64_t file, line, column;
    if (!parser_integer(p, UINT32_MAX, "a file number", &file) ||
        !parser_integer(p, UINT32_MAX, "a line number", &line) ||
        !parser_integer(p, UINT32_MAX, "a column", &column))
        return false;
    *out = (ptx_position){
        .file_number = (uint32_t)file, .line = (uint32_t)line, .column = (uint32_t)column};
    return true;
}

static ptx_position *add_position(parser *p, const ptx_position *at) {
    ptx_position *stored = parser_alloc(p, 1, sizeof *stored);
    ptx_position **entry = stored ? list_push(p, &p->positions, sizeof *entry) : NULL;
    if (!entry) return NULL;
    *stored = *at;
    return *entry = stored;
}

/* The position of an inlined call. The call's own .loc precedes that of the code inlined from it
 * and has the chain of callers. The search covers 1024 positions at most: the text is untrusted. */
static const ptx_position *caller_position(parser *p, const ptx_position *call) {
    enum { LOOK_BACK = 1024 };
    ptx_position **known = p->positions.items;
    size_t n = p->positions.count;
    for (size_t left = LOOK_BACK; n > p->first_position && left; left--) {
        const ptx_position *at = known[--n];
        if (at->file_number == call->file_number && at->line == call->line &&
            at->column == call->column)
            return at;
    }
    return add_position(p, call);
}

/* .loc 1 34 5 [, function_name label [+ n], inlined_at 1 28 9] */
static bool location(parser *p) {
    ptx_position at, call;
    if (!position_numbers(p, &at)) return false;
    while (parser_accept(p, ',')) {
        const token found = p->token;
        name *n = parser_expect_name(p, "'function_name' or 'inlined_at'");
        int64_t offset = 0;
        if (!n) return false;
        if (strcmp(n->text, "function_name") == 0) {
            if (!parser_expect_name(p, "a label") || !parser_offset(p, &offset)) return false;
        } else if (strcmp(n->text, "inlined_at") == 0) {
            if (!position_numbers(p, &call) || !(at.caller = caller_position(p, &call)))
                return false;
        } else {
            return parser_unexpected_token(p, &found, "'function_name' or 'inlined_at'");
        }
    }
    p->file = at.file_number;
    p->line = at.line;
    return (p->position = add_position(p, &at)) != NULL;
}

/* ---- labels ---- */

static bool prototype(parser *p, name *n, ptx_operand *out) {
    ptx_function *f = parser_alloc(p, 1, sizeof *f);
    if (!f) return false;
    *f = (ptx_function){.name = n->text, .is_declaration = true};
    if (parser_at(p, '(') &&
        !parser_parameters(p, false, &f->returns, &f->n_returns, &f->returns_bytes))
        return false;
    if (!parser_expect_name(p, "'_'")) return false;
    if (parser_at(p, '(') &&
        !parser_parameters(p, false, &f->parameters, &f->n_parameters, &f->parameters_bytes))
        return false;
    while (p->token.kind == TOKEN_DOT) { /* .noreturn, .abi_preserve 4, ... */
        parser_advance(p);
        uint64_t ignored;
        if (p->token.kind == TOKEN_NUMBER &&
            !parser_integer(p, UINT64_MAX, "a directive's number", &ignored))
            return false;
    }
    *out = (ptx_operand){.kind = PTX_SYMBOL, .function = f};
    return parser_expect(p, ';');
}

/* After the colon. Target lists and prototypes are written like labels. */
static bool label(parser *p, name *n, uint32_t line) {
    bool is_prototype = parser_at_dot(p, "callprototype");
    if (is_prototype || parser_at_dot(p, "branchtargets") || parser_at_dot(p, "calltargets")) {
        binding *b = scope_declare(p, n, BOUND_LIST, p->depth, line);
        if (!b || !(b->operand = parser_scratch(p, 1, sizeof *b->operand))) return false;
        parser_advance(p);
        return is_prototype ? prototype(p, n, b->operand) : parser_target_list(p, b->operand);
    }
    binding *b = scope_declare(p, n, BOUND_LABEL, p->depth, line);
    if (!b) return false;
    b->index = (uint32_t)p->instructions.count;
    p->label_at_end = true;
    return true;
}

/* ---- instructions ---- */

static bool guard(parser *p, ptx_instruction *in) {
    in->guard_negated = parser_accept(p, '!');
    uint32_t line = p->token.line;
    name *n = parser_expect_name(p, "a predicate register");
    binding *b = n ? scope_find(p, n) : NULL;
    if (p->failed) return false;
    if (!b || b->kind != BOUND_REGISTER)
        return parser_fail(p, line, "the guard '%.200s' is not declared as a register", n->text);
    const ptx_register *r = (const ptx_register *)p->registers.items + b->index;
    if (r->type != PTX_PRED)
        return parser_fail(p, line, "the guard '%.200s' is .%s, not .pred", n->text,
                           ptx_type_spelling[r->type]);
    in->guarded = true;
    in->guard = b->index;
    return true;
}

const name *parser_classify(name *n) {
    if (n->classified) return n;
    n->classified = true;
    n->opcode = ptx_opcode_named(n->text);
    n->has = ptx_modifier_bit(n->text);
    for (int t = 0; t < PTX_N_TYPES; t++)
        if (!strcmp(n->text, ptx_type_spelling[t])) n->types = 1u << t;
    return n;
}

static bool modifiers(parser *p, ptx_instruction *in) {
    while (p->token.kind == TOKEN_DOT) {
        if (in->n_modifiers == PTX_MAX_MODIFIERS)
            return parser_fail(p, p->token.line, "'%s' has more than %d modifiers", in->opcode,
                               PTX_MAX_MODIFIERS);
        name *n = names_get(&p->names, p->token.text, p->token.length);
        if (!n) return parser_no_memory(p, p->token.length);
        in->modifiers[in->n_modifiers++] = n->text;
        in->has |= parser_classify(n)->has;
        in->types |= n->types;
        parser_advance(p);
    }
    return !p->failed;
}

/* opcode NULL: the lookahead follows the @ of a guard. Else the opcode is consumed already, because
 * it could have been a label. */
static bool instruction(parser *p, name *opcode, const token *first) {
    ptx_instruction in = {.ptx_line = first->line,
                          .file_number = p->file,
                          .line = p->line,
                          .position = p->position,
                          .reconvergence = PTX_NO_TARGET};
    if (!opcode) {
        if (!guard(p, &in) || !(opcode = parser_expect_name(p, "an instruction"))) return false;
    }
    in.opcode = opcode->text;
    in.op = parser_classify(opcode)->opcode;
    if (!modifiers(p, &in) || !parser_add_defaults(p, &in) || !parser_operands(p, &in))
        return false;

    char *text = parser_alloc(p, (size_t)(p->token.start - first->start) + 1, 1);
    if (!text) return false;
    lexer_fold(first->start, p->token.start, text);
    in.text = text;
    for (uint32_t k = 0; k < in.n_operands; k++)
        if (ptx_operand_is_destination(&in, k) &&
            !parser_check_destination(p, &in, &in.operands[k]))
            return false;
    if (in.op == PTX_OP_ret && !parser_store_results(p, &in)) return false;
    ptx_instruction *stored = list_push(p, &p->instructions, sizeof *stored);
    if (!stored) return false;
    *stored = in;
    p->label_at_end = false;
    return parser_expect(p, ';');
}

bool parser_statement(parser *p) {
    token first = p->token;
    ptx_space space;
    bool known;
    if (first.kind == TOKEN_DOT) {
        if (parser_accept_dot(p, "loc")) return location(p);
        if (parser_accept_dot(p, "reg")) return registers(p);
        if (!parser_common_directive(p, &known) || known) return !p->failed;
        bool external = parser_accept_dot(p, "extern");
        if (p->module->version < 20 && p->current->function->is_entry &&
            parser_accept_dot(p, "param"))
            return parser_body_parameter(p);
        if (parser_accept_space(p, &space)) return parser_variables(p, space, external, false);
        return parser_unexpected(p, "an instruction, a label or a directive of a function's body");
    }
    if (parser_accept(p, '@')) return instruction(p, NULL, &first);
    name *n = parser_expect_name(p, "an instruction, a label or a directive");
    if (!n) return false;
    return parser_accept(p, ':') ? label(p, n, first.line) : instruction(p, n, &first);
}
