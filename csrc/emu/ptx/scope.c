/* Scopes and name lookup.
 *
 * A register range such as .reg .b32 %r<4000> creates no registers. Each member becomes a register
 * when the text first uses it. So a range of any size is free, and a function has only the
 * registers that it uses.
 */
#include "parser.h"

#include <string.h>

enum { MAX_REGISTERS = 1 << 22 }; /* keeps the register frame below 2^32 bytes */

bool scope_open(parser *p) {
    if (p->depth + 1 >= MAX_DEPTH)
        return parser_fail(p, p->token.line, "braces are nested deeper than %d", MAX_DEPTH - 2);
    p->scopes[++p->depth] = (scope){.first_forward_reference = p->forward_references.count,
                                    .local_bytes = p->local_bytes};
    return true;
}

/* Resolves labels used in the scope that ends: branches may go forward, so not earlier. A label not
 * declared in this scope may belong to the enclosing one. */
static bool resolve_labels(parser *p) {
    forward_reference *items = p->forward_references.items;
    size_t unresolved = p->scopes[p->depth].first_forward_reference;
    for (size_t i = unresolved; i < p->forward_references.count; i++) {
        binding *b = items[i].name->bound[NAME_SPACE_LABEL];
        if (b && b->depth == p->depth) {
            if (b->kind == BOUND_LABEL)
                items[i].operand->target = b->index;
            else if (items[i].in_target_list)
                return parser_fail(p, items[i].line,
                                   "'%.200s' is a list of targets or a prototype; a list of "
                                   "targets may contain only labels and functions",
                                   items[i].name->text);
            else
                *items[i].operand = *b->operand;
        } else if (p->depth == 1) {
            return parser_fail(p, items[i].line,
                               "'%.200s' is not declared: there is no such label, register, "
                               "variable or function here",
                               items[i].name->text);
        } else {
            items[unresolved++] = items[i];
        }
    }
    p->forward_references.count = unresolved;
    return true;
}

bool scope_close(parser *p) {
    if (!resolve_labels(p)) return false;
    scope *s = &p->scopes[p->depth--];
    for (binding *b = s->bindings; b; b = b->next)
        b->name->bound[b->name_space] = b->outer;
    p->local_bytes = s->local_bytes;
    return true;
}

static name_space name_space_of(binding_kind kind) {
    if (kind == BOUND_RANGE) return NAME_SPACE_RANGE;
    return kind == BOUND_LABEL || kind == BOUND_LIST ? NAME_SPACE_LABEL : NAME_SPACE_VALUE;
}

static binding *bind(parser *p, name *n, binding_kind kind, uint32_t depth) {
    binding *b = parser_scratch(p, 1, sizeof *b);
    if (!b) return NULL;
    const name_space space = name_space_of(kind);
    *b = (binding){.kind = kind,
                   .name_space = space,
                   .depth = depth,
                   .name = n,
                   .outer = n->bound[space],
                   .next = p->scopes[depth].bindings};
    n->bound[space] = b;
    p->scopes[depth].bindings = b;
    return b;
}

binding *scope_declare(parser *p, name *n, binding_kind kind, uint32_t depth, uint32_t line) {
    binding *b = n->bound[name_space_of(kind)];
    if (b && b->depth >= depth) {
        parser_fail(p, line, "'%.200s' is declared twice in the same scope", n->text);
        return NULL;
    }
    return bind(p, n, kind, depth);
}

bool scope_add_register(parser *p, const char *name, ptx_type type) {
    if (p->registers.count == MAX_REGISTERS)
        return parser_fail(p, p->token.line, "a function uses more than %d registers",
                           MAX_REGISTERS);
    ptx_register *r = list_push(p, &p->registers, sizeof *r);
    if (!r) return false;
    *r = (ptx_register){.name = name, .type = type};
    return true;
}

/* Creates a binding's register, or the registers "%v.x", "%v.y", ... of its vector. */
static bool make_registers(parser *p, binding *b, ptx_type type, uint32_t vector) {
    b->index = (uint32_t)p->registers.count;
    b->count = vector ? vector : 1;
    if (!vector) return scope_add_register(p, b->name->text, type);
    b->kind = BOUND_REGISTERS;
    for (uint32_t i = 0; i < vector; i++) {
        size_t length = b->name->length;
        char *text = parser_alloc(p, length + 3, 1);
        if (!text) return false;
        memcpy(text, b->name->text, length);
        text[length] = '.';
        text[length + 1] = "xyzwefgh"[i];
        if (!scope_add_register(p, text, type)) return false;
    }
    return true;
}

bool scope_declare_registers(parser *p, name *n, ptx_type type, uint32_t vector, uint32_t line) {
    binding *b = scope_declare(p, n, BOUND_REGISTER, p->depth, line);
    return b && make_registers(p, b, type, vector);
}

/* Splits "%r12" into "%r" and 12. "%r012" and "%r" cannot be members of a range. */
static bool split_number(parser *p, name *n) {
    uint32_t at = n->length;
    while (at > 0 && n->text[at - 1] >= '0' && n->text[at - 1] <= '9')
        at--;
    uint32_t digits = n->length - at;
    n->number_split = true;
    if (at == 0 || digits == 0 || digits > 9 || (digits > 1 && n->text[at] == '0')) return true;
    for (uint32_t i = at; i < n->length; i++)
        n->number = n->number * 10 + (uint64_t)(n->text[i] - '0');
    n->prefix = names_get(&p->names, n->text, at);
    return n->prefix || parser_no_memory(p, at);
}

binding *scope_find(parser *p, name *n) {
    if (!n->number_split && !split_number(p, n)) return NULL;
    binding *b = n->bound[NAME_SPACE_VALUE];
    binding *range = n->prefix ? n->prefix->bound[NAME_SPACE_RANGE] : NULL;
    while (range && n->number >= range->count)
        range = range->outer;
    if (!range || (b && b->depth >= range->depth)) return b;

    b = bind(p, n, BOUND_REGISTER, range->depth);
    return b && make_registers(p, b, range->type, range->index) ? b : NULL;
}
