/* .entry and .func: the header, the body's scopes, and the analyses of a complete body:
 * control-flow graph, reconvergence points, register allocation.
 */
#include <string.h>

#include "cfg.h"
#include "parser.h"
#include "register_allocation.h"

enum { MAX_EDGES = 1 << 22, MAX_INSTRUCTIONS = 1 << 22 };

function_info *parser_function_named(parser *p, name *n, uint32_t line) {
    binding *b = n->bound[NAME_SPACE_VALUE];
    if (b && b->depth == 0 && b->kind == BOUND_FUNCTION) return b->function;
    if (!(b = scope_declare(p, n, BOUND_FUNCTION, 0, line))) return NULL;

    function_info *info = parser_scratch(p, 1, sizeof *info);
    function_info **stored = info ? list_push(p, &p->functions, sizeof *stored) : NULL;
    if (!stored || !(info->function = parser_alloc(p, 1, sizeof *info->function))) return NULL;
    info->function->name = n->text;
    info->function->is_declaration = true;
    *stored = b->function = info;
    return info;
}

/* ---- header ---- */

static bool bind_parameter(parser *p, ptx_variable *v, uint32_t line) {
    name *n = names_get(&p->names, v->name, strlen(v->name));
    if (n && v->in_register) {
        v->reg = (uint32_t)p->registers.count;
        return scope_declare_registers(p, n, v->type, v->vector, line);
    }
    variable_info *info = parser_scratch(p, 1, sizeof *info);
    if (!n || !info) return p->failed ? false : parser_no_memory(p, sizeof *info);
    binding *b = scope_declare(p, n, BOUND_VARIABLE, p->depth, line);
    if (!b) return false;
    info->variable = v;
    b->variable = info;
    return true;
}

bool parser_parameters(parser *p, bool bind, ptx_variable ***out, uint32_t *n, uint64_t *bytes) {
    list parameters = {0};
    bool done = false;
    *bytes = 0;
    if (!parser_expect(p, '(')) return false;
    while (!parser_accept(p, ')')) {
        uint32_t line = p->token.line;
        const bool in_register = parser_accept_dot(p, "reg");
        if (!in_register && !parser_accept_dot(p, "param")) {
            parser_unexpected(p, "'.param', '.reg' or ')'");
            goto out;
        }
        ptx_variable *v = parser_parameter(p, bytes);
        if (v && in_register && v->size != ptx_type_size[v->type] * ptx_components(v)) {
            parser_fail(p, line, "the parameter '%.200s' is in a register and cannot be an array",
                        v->name);
            goto out;
        }
        ptx_variable **stored = v ? list_push(p, &parameters, sizeof *stored) : NULL;
        if (!stored) goto out;
        *stored = v;
        v->in_register = in_register && bind && strcmp(v->name, "_") != 0;
        if (bind && strcmp(v->name, "_") != 0 && !bind_parameter(p, v, line)) goto out;
        if (!parser_at(p, ')') && !parser_expect(p, ',')) goto out;
    }
    *n = (uint32_t)parameters.count;
    *out = list_to_arena(p, &parameters, sizeof **out);
    done = *out != NULL;
out:
    list_free(&parameters);
    return done;
}

/* A parameter of a kernel of PTX 1.x, declared in its body. */
bool parser_body_parameter(parser *p) {
    ptx_function *f = p->current->function;
    do {
        const uint32_t line = p->token.line, own = f->n_parameters - p->header_parameters;
        ptx_variable *v = parser_parameter(p, &f->parameters_bytes);
        if (!v || !bind_parameter(p, v, line)) return false;
        if ((own & (own - 1)) == 0) { /* no room: its capacity is 0, or a power of two */
            const size_t capacity = p->header_parameters + (own ? 2 * (size_t)own : 1);
            ptx_variable **grown = parser_alloc(p, capacity, sizeof *grown);
            if (!grown) return false;
            if (f->n_parameters) memcpy(grown, f->parameters, f->n_parameters * sizeof *grown);
            f->parameters = grown;
        }
        f->parameters[f->n_parameters++] = v;
    } while (parser_accept(p, ','));
    return parser_expect(p, ';');
}

/* Whether the lookahead begins the next item of the module: before PTX 3.0 a prototype may lack its
 * semicolon. */
static bool at_next_item(const parser *p) {
    static const char *const words[] = {"visible", "extern", "func",  "entry", "global",
                                        "const",   "shared", "local", "tex"};
    if (p->module->version >= 30) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (parser_at_dot(p, words[i])) return true;
    return p->token.kind == TOKEN_END;
}

/* .maxntid 256, 1, 1 .noreturn .pragma "..."; ... : directives, some followed by numbers. */
static bool header_directives(parser *p, ptx_function *f) {
    while (p->token.kind == TOKEN_DOT && !at_next_item(p)) {
        bool known;
        if (!parser_common_directive(p, &known)) return false;
        if (known) continue;
        uint32_t *extents = parser_at_dot(p, "maxntid")             ? f->max_threads
                            : parser_at_dot(p, "reqntid")           ? f->required_threads
                            : parser_at_dot(p, "reqnctapercluster") ? f->cluster
                            : parser_at_dot(p, "maxclusterrank")    ? f->max_cluster_rank
                            : parser_at_dot(p, "maxnreg")           ? f->max_registers
                            : parser_at_dot(p, "minnctapersm")      ? f->min_blocks
                                                                    : NULL;
        f->explicit_cluster |= parser_at_dot(p, "explicitcluster");
        f->blocks_are_clusters |= parser_at_dot(p, "blocksareclusters");
        if (extents) extents[0] = extents[1] = extents[2] = 1;
        parser_advance(p);
        for (uint32_t i = 0; p->token.kind == TOKEN_NUMBER; i++) {
            uint64_t value;
            if (!parser_integer(p, UINT32_MAX, "a directive's number", &value)) return false;
            if (extents && i < 3) extents[i] = (uint32_t)value;
            if (!parser_accept(p, ',')) break;
        }
    }
    return true;
}

static bool parse_header(parser *p, bool is_entry, bool weak, bool *again) {
    ptx_variable **returns = NULL;
    uint32_t n_returns = 0, line = p->token.line;
    uint64_t returns_bytes = 0;
    if (!is_entry && parser_at(p, '(') &&
        !parser_parameters(p, true, &returns, &n_returns, &returns_bytes))
        return false;
    name *n = parser_expect_name(p, "a function's name");
    if (!n || !(p->current = parser_function_named(p, n, line))) return false;
    ptx_function *f = p->current->function;
    ptx_function header = {.name = f->name,
                           .is_entry = is_entry,
                           .is_declaration = true,
                           .returns = returns,
                           .n_returns = n_returns,
                           .returns_bytes = returns_bytes};
    if (parser_at(p, '(') && !parser_parameters(p, true, &header.parameters, &header.n_parameters,
                                                &header.parameters_bytes))
        return false;
    for (uint32_t k = 0; is_entry && k < header.n_parameters; k++)
        if (header.parameters[k]->in_register)
            return parser_fail(p, line, "a kernel's parameters are .param; '%.200s' is .reg",
                               header.parameters[k]->name);
    if (!header_directives(p, &header)) return false;
    if (f->is_declaration)
        *f = header; /* otherwise this is a declaration after the definition: ignored */
    else if (weak && parser_at(p, '{'))
        *again = true;
    else if (!parser_at(p, ';') && !at_next_item(p))
        return parser_fail(p, line, "'%.200s' is defined twice", f->name);
    return true;
}

/* ---- body ---- */

static bool body(parser *p) {
    uint32_t outer_depth = p->depth, line = p->token.line;
    do {
        if (parser_accept(p, '{')) {
            if (!scope_open(p)) return false;
        } else if (parser_at(p, '}')) {
            if (!scope_close(p)) return false;
            if (p->depth > outer_depth) parser_advance(p);
        } else if (p->token.kind == TOKEN_END) {
            return !p->failed &&
                   parser_fail(p, p->token.line,
                               "the text ends inside '%.200s', which starts on line %u",
                               p->current->function->name, line);
        } else if (!parser_statement(p)) {
            return false;
        } else if (p->instructions.count > MAX_INSTRUCTIONS) {
            return parser_fail(p, p->token.line, "'%.200s' has more than %d instructions",
                               p->current->function->name, MAX_INSTRUCTIONS);
        }
    } while (p->depth > outer_depth);
    return true;
}

/* Falling off the end of a body returns. A label at the end also needs an instruction as target. */
static bool append_return(parser *p) {
    const ptx_instruction *last = p->instructions.items;
    if (p->instructions.count) last += p->instructions.count - 1;
    if (p->instructions.count && !p->label_at_end && !last->guarded && ptx_leaves(last))
        return true;
    name *ret = names_get(&p->names, "ret", 3);
    if (!ret) return parser_no_memory(p, 3);
    const ptx_instruction end = {.opcode = ret->text,
                                 .op = PTX_OP_ret,
                                 .text = "ret",
                                 .ptx_line = p->token.line,
                                 .reconvergence = PTX_NO_TARGET};
    if (!parser_store_results(p, &end)) return false;
    ptx_instruction *in = list_push(p, &p->instructions, sizeof *in);
    if (!in) return false;
    *in = end;
    return !p->failed;
}

static bool complete(parser *p, ptx_function *f) {
    ptx_arena *arena = arena_new(); /* temporary data of the analyses */
    bool done = false;
    if (!arena) return parser_no_memory(p, sizeof(cfg));
    f->n_registers = (uint32_t)p->registers.count;
    f->n_instructions = (uint32_t)p->instructions.count;
    f->n_variables = (uint32_t)p->locals.count;
    f->local_bytes = p->function_local_bytes;
    f->registers = list_to_arena(p, &p->registers, sizeof *f->registers);
    f->instructions = list_to_arena(p, &p->instructions, sizeof *f->instructions);
    f->variables = list_to_arena(p, &p->locals, sizeof *f->variables);
    if (p->failed) goto out;
    if (cfg_count_edges(f) > MAX_EDGES) {
        parser_fail(p, p->token.line, "the branches of '%.200s' have more than %d targets", f->name,
                    MAX_EDGES);
        goto out;
    }
    cfg graph;
    if (!cfg_build(arena, f, &graph) || !cfg_reconvergence(arena, f, &graph, p->poller) ||
        !parser_poll(p, f->n_instructions) || !allocate_registers(arena, f, &graph, p->poller)) {
        if (parser_poll(p, 0)) parser_no_memory(p, f->n_instructions);
        goto out;
    }
    ptx_find_copied(f);
    f->is_declaration = false;
    done = true;
out:
    arena_free(arena);
    return done;
}

/* Reads the module's .reg and .local declarations as this kernel's. */
static bool declare_per_thread(parser *p) {
    const lexer after = p->lexer;
    const token next = p->token;
    for (size_t k = 0; k < p->module_declarations.count; k++) {
        const declaration *d = (const declaration *)p->module_declarations.items + k;
        p->lexer = d->lexer;
        p->token = d->first;
        if (!parser_statement(p)) return false;
    }
    p->lexer = after;
    p->token = next;
    return true;
}

bool parser_function(parser *p, bool is_entry, bool external, bool weak) {
    bool again = false;
    if (!scope_open(p)) return false;
    p->registers.count = p->instructions.count = p->locals.count = 0;
    if (!parse_header(p, is_entry, weak, &again)) return false;
    if (again) return parser_skip_braces(p) && scope_close(p);
    if (parser_accept(p, ';') || (!p->failed && at_next_item(p))) return scope_close(p);
    if (!parser_at(p, '{')) return parser_unexpected(p, "';' or '{'");
    if (external)
        return parser_fail(p, p->token.line, "'%.200s' is .extern and has a body",
                           p->current->function->name);

    p->forward_references.count = p->drafts.count = 0;
    p->local_bytes = p->function_local_bytes = 0;
    p->file = p->line = 0;
    p->position = NULL;
    p->first_position = p->positions.count;
    p->label_at_end = false;
    p->header_parameters = p->current->function->n_parameters;
    if (is_entry && !declare_per_thread(p)) return false;
    if (!parser_load_parameters(p) || !body(p) || !scope_close(p) || !append_return(p))
        return false;
    if (!complete(p, p->current->function)) return false;
    parser_advance(p); /* only now, so that errors above report the closing brace's line */
    return !p->failed;
}
