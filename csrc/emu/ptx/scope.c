/* What a name means at this point of the text.
 *
 * A range of registers, .reg .b32 %r<4000>, declares nothing by itself: a member becomes a register
 * when the text first names it. So a range costs nothing, however large, and a function has the
 * registers that it uses.
 */
#include "parser.h"

#include <string.h>

enum { MOST_REGISTERS = 1 << 22 }; /* their frame is below 2^32 bytes */

bool scope_open(parser *p) {
    if (p->depth + 1 >= MAX_DEPTH)
        return parser_fail(p, p->token.line, "braces are nested deeper than %d", MAX_DEPTH - 2);
    p->scopes[++p->depth] =
        (scope){.first_pending = p->pending.count, .local_bytes = p->local_bytes};
    return true;
}

/* Labels are known when their scope ends, since branches go forward too. What is not found here may
 * be a label of the scope around. */
static bool find_labels(parser *p) {
    pending *items = p->pending.items;
    size_t kept = p->scopes[p->depth].first_pending;
    for (size_t i = kept; i < p->pending.count; i++) {
        binding *b = items[i].name->bound[AS_LABEL];
        if (b && b->depth == p->depth) {
            if (b->kind == BOUND_LABEL)
                items[i].operand->target = b->index;
            else if (items[i].of_list)
                return parser_fail(p, items[i].line,
                                   "'%.200s' is a list of targets or a prototype; a list of "
                                   "targets names labels or functions",
                                   items[i].name->text);
            else
                *items[i].operand = *b->operand;
        } else if (p->depth == 1) {
            return parser_fail(p, items[i].line,
                               "'%.200s' is not declared: there is no such label, register, "
                               "variable or function here",
                               items[i].name->text);
        } else {
            items[kept++] = items[i];
        }
    }
    p->pending.count = kept;
    return true;
}

bool scope_close(parser *p) {
    if (!find_labels(p)) return false;
    scope *s = &p->scopes[p->depth--];
    for (binding *b = s->bindings; b; b = b->next)
        b->name->bound[b->as] = b->hidden;
    p->local_bytes = s->local_bytes;
    return true;
}

static meaning meaning_of(binding_kind kind) {
    if (kind == BOUND_RANGE) return AS_RANGE;
    return kind == BOUND_LABEL || kind == BOUND_LIST ? AS_LABEL : AS_VALUE;
}

static binding *bind(parser *p, name *n, binding_kind kind, uint32_t depth) {
    binding *b = parser_scratch(p, 1, sizeof *b);
    if (!b) return NULL;
    meaning as = meaning_of(kind);
    *b = (binding){.kind = kind,
                   .as = as,
                   .depth = depth,
                   .name = n,
                   .hidden = n->bound[as],
                   .next = p->scopes[depth].bindings};
    n->bound[as] = b;
    p->scopes[depth].bindings = b;
    return b;
}

binding *scope_declare(parser *p, name *n, binding_kind kind, uint32_t depth, uint32_t line) {
    binding *b = n->bound[meaning_of(kind)];
    if (b && b->depth >= depth) {
        parser_fail(p, line, "'%.200s' is declared twice in the same scope", n->text);
        return NULL;
    }
    return bind(p, n, kind, depth);
}

static bool add_register(parser *p, const char *name, ptx_type type) {
    if (p->registers.count == MOST_REGISTERS)
        return parser_fail(p, p->token.line, "a function names more than %d registers",
                           MOST_REGISTERS);
    ptx_register *r = list_push(p, &p->registers, sizeof *r);
    if (!r) return false;
    *r = (ptx_register){.name = name, .type = type};
    return true;
}

/* Gives a binding its register, or its vector of registers named "%v.x", "%v.y", ... */
static bool make_registers(parser *p, binding *b, ptx_type type, uint32_t vector) {
    b->index = (uint32_t)p->registers.count;
    b->count = vector ? vector : 1;
    if (!vector) return add_register(p, b->name->text, type);
    b->kind = BOUND_REGISTERS;
    for (uint32_t i = 0; i < vector; i++) {
        size_t length = b->name->length;
        char *text = parser_alloc(p, length + 3, 1);
        if (!text) return false;
        memcpy(text, b->name->text, length);
        text[length] = '.';
        text[length + 1] = "xyzwefgh"[i];
        if (!add_register(p, text, type)) return false;
    }
    return true;
}

bool scope_declare_registers(parser *p, name *n, ptx_type type, uint32_t vector, uint32_t line) {
    binding *b = scope_declare(p, n, BOUND_REGISTER, p->depth, line);
    return b && make_registers(p, b, type, vector);
}

/* "%r12" is "%r" and 12; "%r012" and "%r" are not members of any range. */
static bool split(parser *p, name *n) {
    uint32_t at = n->length;
    while (at > 0 && n->text[at - 1] >= '0' && n->text[at - 1] <= '9')
        at--;
    uint32_t digits = n->length - at;
    n->split = true;
    if (at == 0 || digits == 0 || digits > 9 || (digits > 1 && n->text[at] == '0')) return true;
    for (uint32_t i = at; i < n->length; i++)
        n->number = n->number * 10 + (uint64_t)(n->text[i] - '0');
    n->prefix = names_get(&p->names, n->text, at);
    return n->prefix || parser_no_memory(p, at);
}

binding *scope_find(parser *p, name *n) {
    if (!n->split && !split(p, n)) return NULL;
    binding *b = n->bound[AS_VALUE];
    binding *range = n->prefix ? n->prefix->bound[AS_RANGE] : NULL;
    while (range && n->number >= range->count)
        range = range->hidden;
    if (!range || (b && b->depth >= range->depth)) return b;

    b = bind(p, n, BOUND_REGISTER, range->depth);
    return b && make_registers(p, b, range->type, range->index) ? b : NULL;
}
