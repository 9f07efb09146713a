/* Operands. An instruction's operands are collected as drafts, then copied to the arena together.
 *
 * An operand may name a label that is declared later. It is recorded as a forward reference, which
 * scope_close resolves.
 */
#include <string.h>

#include "parser.h"

enum { MAX_LEVELS = 3 }; /* PTX needs two: [a, {b, c}] */

static bool operand(parser *p, const ptx_instruction *in, uint32_t level, draft *out);

static bool store_drafts(parser *p, size_t first, ptx_operand **out, uint32_t *n) {
    size_t count = p->drafts.count - first;
    const draft *drafts = count ? (const draft *)p->drafts.items + first : NULL;
    ptx_operand *stored = parser_alloc(p, count, sizeof *stored);
    if (!stored) return false;
    for (size_t i = 0; i < count; i++) {
        stored[i] = drafts[i].operand;
        if (!drafts[i].label) continue;
        forward_reference *unresolved = list_push(p, &p->forward_references, sizeof *unresolved);
        if (!unresolved) return false;
        *unresolved = (forward_reference){.operand = &stored[i],
                                          .name = drafts[i].label,
                                          .line = drafts[i].line,
                                          .in_target_list = drafts[i].in_target_list};
    }
    p->drafts.count = first;
    *out = stored;
    *n = (uint32_t)count;
    return true;
}

/* Comma-separated operands, up to the closing punctuator, which is not consumed. */
static bool sequence(parser *p, const ptx_instruction *in, uint32_t level, char close,
                     ptx_operand **out, uint32_t *n) {
    size_t first = p->drafts.count;
    if (level > MAX_LEVELS)
        return parser_fail(p, p->token.line, "an operand is nested deeper than any in PTX");
    if (!parser_at(p, close)) {
        do {
            draft item = {0};
            if (!operand(p, in, level, &item)) return false;
            draft *stored = list_push(p, &p->drafts, sizeof *stored);
            if (!stored) return false;
            *stored = item;
        } while (parser_accept(p, ','));
    }
    return store_drafts(p, first, out, n);
}

/* ---- names ---- */

static const char *const specials[PTX_N_SPECIALS] = {
#define X(name, spelling) spelling,
    PTX_SPECIAL_MAP(X)
#undef X
};

static bool spells(const char *special, const name *n, char component) {
    size_t length = n->length - 1; /* without the % */
    if (strncmp(special, n->text + 1, length) != 0) return false;
    special += length;
    return component ? special[0] == '.' && special[1] == component : *special == 0;
}

static bool starts_with(const name *n, const char *prefix) {
    return strncmp(n->text, prefix, strlen(prefix)) == 0;
}

/* %envreg0 to %envreg31. */
static bool is_environment(const name *n) {
    enum { DIGITS_AT = 7, N_REGISTERS = 32 };
    if (!starts_with(n, "%envreg")) return false;
    uint32_t number = 0;
    for (const char *digit = n->text + DIGITS_AT; *digit; digit++) {
        if (*digit < '0' || *digit > '9' || number > N_REGISTERS) return false;
        number = number * 10 + (uint32_t)(*digit - '0');
    }
    return n->text[DIGITS_AT] && number < N_REGISTERS;
}

/* A special register by its name and component; PTX_N_SPECIALS: there is none. */
static ptx_special find_special(const name *n, char component) {
    for (unsigned i = 0; i < PTX_SPECIAL_OTHER; i++)
        if (spells(specials[i], n, component)) return (ptx_special)i;
    if (component) return component == 'w' ? PTX_SPECIAL_ZERO : PTX_N_SPECIALS;
    if (strcmp(n->text, "%envreg1") == 0 || strcmp(n->text, "%envreg2") == 0)
        return PTX_SPECIAL_OTHER; /* the barrier of a cooperative launch */
    if (is_environment(n)) return PTX_SPECIAL_ZERO;
    return starts_with(n, "%pm") ? PTX_SPECIAL_OTHER : PTX_N_SPECIALS;
}

static ptx_operand special_operand(parser *p, ptx_special found) {
    p->module->reserved_shared |= found >= PTX_SPECIAL_RESERVED_SMEM_OFFSET_BEGIN &&
                                  found <= PTX_SPECIAL_RESERVED_SMEM_OFFSET_END;
    return (ptx_operand){.kind = PTX_SPECIAL, .special = found};
}

/* %tid without a component, in mov.v4: all four. */
static bool special_vector(parser *p, const name *n, ptx_operand *out) {
    ptx_operand *items = parser_alloc(p, 4, sizeof *items);
    if (!items) return false;
    for (uint32_t k = 0; k < 4; k++)
        items[k] = special_operand(p, find_special(n, "xyzw"[k]));
    *out = (ptx_operand){.kind = PTX_VECTOR, .items = items, .n_items = 4};
    return true;
}

/* %tid.x, %laneid, ...; the name is consumed already, the component is not. */
static bool special(parser *p, const ptx_instruction *in, const name *n, uint32_t line,
                    ptx_operand *out) {
    const token *t = &p->token;
    char component = 0;
    if (find_special(n, 'x') != PTX_N_SPECIALS) {
        bool has_one = t->kind == TOKEN_DOT && t->length == 1 && strchr("xyzw", *t->text);
        if (!has_one && in && in->has & PTX_HAS_V4) return special_vector(p, n, out);
        if (!has_one)
            return parser_fail(p, line, "'%s' needs a component: %s.x, %s.y or %s.z", n->text,
                               n->text, n->text, n->text);
        component = *t->text;
        parser_advance(p);
    }
    const ptx_special found = find_special(n, component);
    if (found == PTX_N_SPECIALS)
        return parser_fail(p, line, "the register '%.200s' is not declared", n->text);
    *out = special_operand(p, found);
    return true;
}

static ptx_operand register_operand(uint32_t index) {
    return (ptx_operand){.kind = PTX_REGISTER, .reg = index};
}

/* A .v2, .v4 or .v8 register: the vector of its components, or one component. */
static bool vector_register(parser *p, const binding *b, ptx_operand *out) {
    if (p->token.kind == TOKEN_DOT && p->token.length == 1) {
        const char *components = "xyzwefghrgba", *at = strchr(components, *p->token.text);
        uint32_t which = at ? (uint32_t)(at - components) : UINT32_MAX;
        if (which >= 8 && at) which -= 8;
        if (which >= b->count) return parser_unexpected(p, "a component of the vector register");
        *out = register_operand(b->index + which);
        parser_advance(p);
        return true;
    }
    ptx_operand *items = parser_alloc(p, b->count, sizeof *items);
    if (!items) return false;
    for (uint32_t i = 0; i < b->count; i++)
        items[i] = register_operand(b->index + i);
    *out = (ptx_operand){.kind = PTX_VECTOR, .items = items, .n_items = (uint32_t)b->count};
    return true;
}

/* sym  sym+8  arr[2]. Except in mov and cvta, the last is a memory operand: ld.u32 %r1, arr[2]. */
static bool symbol(parser *p, const ptx_instruction *in, const binding *b, uint32_t line,
                   ptx_operand *out) {
    *out = (ptx_operand){.kind = PTX_SYMBOL};
    if (b->kind == BOUND_FUNCTION)
        out->function = b->function->function;
    else
        out->variable = b->variable->variable;
    parser_record_use(p, b, line, &p->current->references, p->current);
    if (p->failed) return false;
    if (b->kind == BOUND_VARIABLE && parser_accept(p, '[')) {
        uint64_t index;
        if (!parser_integer(p, UINT32_MAX, "an index", &index) || !parser_expect(p, ']'))
            return false;
        out->offset = (int64_t)(index * ptx_type_size[out->variable->type]);
        if (in && in->op != PTX_OP_mov && in->op != PTX_OP_cvta) out->kind = PTX_ADDRESS;
    }
    return parser_offset(p, &out->offset);
}

static bool named(parser *p, const ptx_instruction *in, draft *out) {
    out->line = p->token.line;
    name *n = parser_expect_name(p, "an operand");
    binding *b = n ? scope_find(p, n) : NULL;
    if (p->failed) return false;
    if (b && b->kind == BOUND_REGISTERS) return vector_register(p, b, &out->operand);
    if (b && b->kind == BOUND_REGISTER) {
        out->operand = register_operand(b->index);
        if (p->token.kind == TOKEN_DOT) {
            name *selector = names_get(&p->names, p->token.text, p->token.length);
            if (!selector) return parser_no_memory(p, p->token.length);
            out->operand.selector = selector->text;
            parser_advance(p);
        }
        if (in && (parser_at(p, '+') || parser_at(p, '-')))
            return parser_add_constant(p, in, &out->operand);
        return !p->failed;
    }
    if (b) return symbol(p, in, b, out->line, &out->operand);
    if (strcmp(n->text, "_") == 0) {
        out->operand = (ptx_operand){.kind = PTX_SINK};
        return true;
    }
    if (*n->text == '%') return special(p, in, n, out->line, &out->operand);
    out->operand = (ptx_operand){.kind = PTX_LABEL};
    out->label = n;
    return true;
}

/* ---- everything else ---- */

static bool immediate(parser *p, ptx_operand *out) {
    constant c;
    if (!parser_constant(p, &c)) return false;
    constant_to_immediate(&c, out);
    return true;
}

/* [%rd1+8]  [sym+8]  [16]  [map, {%r1, %r2}] ; after the opening bracket */
static bool address(parser *p, const ptx_instruction *in, uint32_t level, ptx_operand *out) {
    uint32_t line = p->token.line;
    *out = (ptx_operand){.kind = PTX_ADDRESS};
    if (p->token.kind == TOKEN_NAME) {
        name *n = parser_expect_name(p, "a register or variable");
        binding *b = n ? scope_find(p, n) : NULL;
        if (p->failed) return false;
        if (b && b->kind == BOUND_REGISTER) {
            out->has_register = true;
            out->reg = b->index;
        } else if (b && b->kind == BOUND_VARIABLE) {
            out->variable = b->variable->variable;
            parser_record_use(p, b, line, &p->current->references, p->current);
        } else {
            return parser_fail(p, line,
                               "'%.200s' is not declared as a register or variable, so it "
                               "cannot be an address",
                               n->text);
        }
    } else {
        uint64_t bits;
        if (!parser_integer(p, UINT64_MAX, "an address", &bits)) return false;
        out->offset = (int64_t)bits;
    }
    if (!parser_offset(p, &out->offset)) return false;
    if (parser_accept(p, ',') && !sequence(p, in, level + 1, ']', &out->items, &out->n_items))
        return false;
    return parser_expect(p, ']');
}

static bool pair(parser *p, const ptx_instruction *in, ptx_operand *of) {
    const token found = p->token;
    draft second = {0};
    if (!named(p, in, &second)) return false;
    if (second.operand.kind != PTX_REGISTER && second.operand.kind != PTX_SINK)
        return parser_unexpected_token(p, &found, "a register after '|'");
    of->pair = parser_alloc(p, 1, sizeof *of->pair);
    if (!of->pair) return false;
    *of->pair = second.operand;
    return true;
}

static bool operand(parser *p, const ptx_instruction *in, uint32_t level, draft *out) {
    ptx_operand *o = &out->operand;
    bool is_list = parser_at(p, '{') || (parser_at(p, '(') && in->op == PTX_OP_call);
    if (is_list) {
        char close = parser_at(p, '{') ? '}' : ')';
        parser_advance(p);
        *o = (ptx_operand){.kind = PTX_VECTOR};
        if (!sequence(p, in, level + 1, close, &o->items, &o->n_items)) return false;
        if (!parser_expect(p, close)) return false;
    } else if (parser_accept(p, '[')) {
        if (!address(p, in, level, o)) return false;
    } else if (parser_accept(p, '!')) {
        const token found = p->token;
        if (!named(p, in, out)) return false;
        if (o->kind != PTX_REGISTER)
            return parser_unexpected_token(p, &found, "a predicate register after '!'");
        o->negated = true;
    } else if (in && in->op == PTX_OP_vmad && parser_accept(p, '-')) {
        if (!named(p, in, out)) return false;
        o->negated = true;
    } else if (p->token.kind == TOKEN_NAME &&
               !(p->token.length == 7 && memcmp(p->token.text, "WARP_SZ", 7) == 0)) {
        if (!named(p, in, out)) return false;
    } else if (!immediate(p, o)) {
        return false;
    }
    return !parser_accept(p, '|') || pair(p, in, o);
}

bool parser_operands(parser *p, ptx_instruction *in) {
    return sequence(p, in, 0, ';', &in->operands, &in->n_operands);
}

bool parser_target_list(parser *p, ptx_operand *out) {
    size_t first = p->drafts.count;
    ptx_targets *list = parser_alloc(p, 1, sizeof *list);
    if (!list) return false;
    *out = (ptx_operand){.kind = PTX_TARGETS, .targets = list};
    do {
        const token found = p->token;
        draft item = {.in_target_list = true};
        if (!named(p, NULL, &item)) return false;
        if (item.operand.kind != PTX_LABEL && !item.operand.function)
            return parser_unexpected_token(p, &found, "a label or a function in a list of targets");
        draft *stored = list_push(p, &p->drafts, sizeof *stored);
        if (!stored) return false;
        *stored = item;
    } while (parser_accept(p, ','));
    return store_drafts(p, first, &list->items, &list->n_items) && parser_expect(p, ';');
}
