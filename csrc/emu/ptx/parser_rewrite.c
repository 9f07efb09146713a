/* Forms that have no instruction of their own: .reg parameters, and %r1+4 as a value. They become
 * what a compiler writes instead, so that decoding and all analyses see plain instructions.
 */
#include <stdio.h>
#include <string.h>

#include "parser.h"

/* The name of registers that hold a sum. */
static const char sum_name[] = "(sum)";

static const name *known_word(parser *p, const char *word) {
    name *n = names_get(&p->names, word, strlen(word));
    if (!n) parser_no_memory(p, strlen(word));
    return n ? parser_classify(n) : NULL;
}

/* Appends `opcode.modifier.type operands` with the position of `at`, and its guard if `guarded`. */
static bool insert(parser *p, const ptx_instruction *at, bool guarded, const char *const words[3],
                   const ptx_operand *operands, uint32_t n, const char *text) {
    ptx_instruction in = {.file_number = p->file,
                          .line = p->line,
                          .position = p->position,
                          .ptx_line = at->ptx_line,
                          .text = text,
                          .reconvergence = PTX_NO_TARGET};
    if (guarded) {
        in.guarded = at->guarded;
        in.guard_negated = at->guard_negated;
        in.guard = at->guard;
    }
    for (int k = 0; k < 3; k++) {
        const name *word = words[k] ? known_word(p, words[k]) : NULL;
        if (words[k] && !word) return false;
        if (!word) continue;
        if (k == 0) {
            in.opcode = word->text;
            in.op = word->opcode;
            continue;
        }
        in.modifiers[in.n_modifiers++] = word->text;
        in.has |= word->has;
        in.types |= word->types;
    }
    in.operands = parser_alloc(p, n, sizeof *in.operands);
    if (!in.operands) return false;
    memcpy(in.operands, operands, n * sizeof *operands);
    in.n_operands = n;
    ptx_instruction *stored = list_push(p, &p->instructions, sizeof *stored);
    if (!stored) return false;
    *stored = in;
    return true;
}

static const char *joined(parser *p, const char *format, const char *first, const char *second) {
    const size_t size = strlen(format) + strlen(first) + strlen(second) + 1;
    char *text = parser_alloc(p, size, 1);
    if (text) snprintf(text, size, format, first, second);
    return text;
}

/* ---- parameters and results in registers ---- */

static bool move_parameter(parser *p, const ptx_variable *v, const ptx_instruction *at, bool load) {
    static const char *const types[] = {
        [1] = "b8", [2] = "b16", [4] = "b32", [8] = "b64", [16] = "b128"};
    const uint32_t bytes = ptx_type_size[v->type];
    const char *words[3] = {load ? "ld" : "st", "param", types[bytes]};
    const char *text =
        joined(p, load ? "ld.param %s, [%s]" : "st.param [%s], %s", v->name, v->name);
    for (uint32_t k = 0; text && k < ptx_components(v); k++) {
        const ptx_operand reg = {.kind = PTX_REGISTER, .reg = v->reg + k};
        const ptx_operand address = {
            .kind = PTX_ADDRESS, .variable = v, .offset = (int64_t)k * bytes};
        const ptx_operand operands[2] = {load ? reg : address, load ? address : reg};
        if (!insert(p, at, !load, words, operands, 2, text)) return false;
    }
    return text;
}

bool parser_load_parameters(parser *p) {
    const ptx_function *f = p->current->function;
    const ptx_instruction at = {.ptx_line = p->token.line};
    for (uint32_t k = 0; k < f->n_parameters; k++)
        if (f->parameters[k]->in_register && !move_parameter(p, f->parameters[k], &at, true))
            return false;
    return true;
}

bool parser_store_results(parser *p, const ptx_instruction *before) {
    const ptx_function *f = p->current->function;
    for (uint32_t k = 0; k < f->n_returns; k++)
        if (f->returns[k]->in_register && !move_parameter(p, f->returns[k], before, false))
            return false;
    return true;
}

/* ---- a register and a constant ---- */

static const char *unsigned_type(ptx_type type) {
    switch (type) {
    case PTX_B16:
    case PTX_U16:
    case PTX_S16: return "u16";
    case PTX_B32:
    case PTX_U32:
    case PTX_S32: return "u32";
    case PTX_B64:
    case PTX_U64:
    case PTX_S64: return "u64";
    default: return NULL;
    }
}

bool parser_add_constant(parser *p, const ptx_instruction *in, ptx_operand *reg) {
    const ptx_register of = ((const ptx_register *)p->registers.items)[reg->reg];
    const char *type = unsigned_type(of.type);
    int64_t addend = 0;
    char shown[24];
    if (!type)
        return parser_fail(p, p->token.line,
                           "a constant is added to '%.200s', which is .%s; expected a register "
                           "with an integer",
                           of.name, ptx_type_spelling[of.type]);
    if (!parser_offset(p, &addend)) return false;
    const uint32_t sum = (uint32_t)p->registers.count;
    if (!scope_add_register(p, sum_name, of.type)) return false;
    snprintf(shown, sizeof shown, "%lld", (long long)addend);
    const char *text = joined(p, "add %s, %s", of.name, shown);
    const char *words[3] = {"add", NULL, type};
    const ptx_operand operands[3] = {{.kind = PTX_REGISTER, .reg = sum},
                                     *reg,
                                     {.kind = PTX_IMMEDIATE, .bits = (uint64_t)addend}};
    *reg = operands[0];
    return text && insert(p, in, false, words, operands, 3, text);
}

bool parser_check_destination(parser *p, const ptx_instruction *in, const ptx_operand *o) {
    const ptx_register *registers = p->registers.items;
    if (o->kind == PTX_REGISTER && registers[o->reg].name == sum_name)
        return parser_fail(p, in->ptx_line, "'%.200s' writes to a sum; expected a register",
                           in->text);
    for (uint32_t k = 0; o->kind == PTX_VECTOR && k < o->n_items; k++)
        if (!parser_check_destination(p, in, &o->items[k])) return false;
    return true;
}
