/* Offsets of static .shared variables.
 *
 * A block allocates only the variables that its kernel reaches: those named in the kernel and in
 * the functions that it calls. So variables of different kernels may overlap. A variable that
 * several kernels reach, through a common device function, needs one offset in all of them. One
 * pass in order of declaration, module-level variables first, places each variable after all those
 * already placed in any kernel that reaches it.
 */
#include "parser.h"

enum {
    MAX_FUNCTIONS = 1 << 14, /* in a module with .shared variables */
    MAX_STEPS = 1 << 24      /* references followed for all kernels together: can be quadratic */
};

typedef struct search {
    list stack;     /* reference *: lists still to be followed */
    uint32_t visit; /* 1 + index of the entry */
    uint32_t steps;
} search;

static bool reach(parser *p, search *s, const reference *references) {
    if (!references) return true;
    const reference **next = list_push(p, &s->stack, sizeof *next);
    if (next) *next = references;
    return next != NULL;
}

static bool reach_function(parser *p, search *s, function_info *f) {
    if (f->alias_of) f = f->alias_of;
    if (f->visited == s->visit) return true;
    f->visited = s->visit;
    return reach(p, s, f->references);
}

static bool reach_variable(parser *p, search *s, variable_info *v, uint32_t entry) {
    if (v->visited == s->visit) return true;
    v->visited = s->visit;
    if (v->variable->space == PTX_SHARED && !v->variable->external) {
        uint32_t *stored = list_push(p, &v->entries, sizeof *stored);
        if (!stored) return false;
        *stored = entry;
    }
    return reach(p, s, v->references); /* e.g. a table of function addresses */
}

static bool find_entries(parser *p, search *s) {
    function_info **functions = p->functions.items;
    for (uint32_t i = 0; i < p->functions.count; i++) {
        if (!functions[i]->function->is_entry) continue;
        s->visit = i + 1;
        if (!reach_function(p, s, functions[i])) return false;
        while (s->stack.count) {
            const reference *r = ((const reference **)s->stack.items)[--s->stack.count];
            for (; r; r = r->next) {
                if (s->steps++ == MAX_STEPS)
                    return parser_fail(p, p->token.line,
                                       "the kernels of this module, with all functions that they "
                                       "call, have more than %d references to functions and "
                                       "variables",
                                       MAX_STEPS);
                if (!parser_poll(p, 1)) return false;
                if (r->function ? !reach_function(p, s, r->function)
                                : !reach_variable(p, s, r->variable, i))
                    return false;
            }
        }
    }
    return true;
}

static void place(parser *p, const variable_info *info) {
    function_info **functions = p->functions.items;
    const uint32_t *entries = info->entries.items;
    ptx_variable *v = info->variable;
    uint64_t at = 0;
    for (size_t i = 0; i < info->entries.count; i++) {
        uint64_t used = functions[entries[i]]->function->shared_bytes;
        if (used > at) at = used;
    }
    v->offset = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
    for (size_t i = 0; i < info->entries.count; i++)
        functions[entries[i]]->function->shared_bytes = v->offset + v->size;
}

bool layout_shared(parser *p) {
    variable_info **variables = p->variables.items;
    search s = {0};
    bool any = false;
    for (size_t i = 0; i < p->variables.count; i++)
        any |= variables[i]->variable->space == PTX_SHARED && !variables[i]->variable->external;
    if (!any) return true;
    if (p->functions.count > MAX_FUNCTIONS)
        return parser_fail(p, p->token.line,
                           "the module has %zu functions; at most %d are supported",
                           p->functions.count, MAX_FUNCTIONS);

    bool done = find_entries(p, &s);
    for (int module_level = 1; done && module_level >= 0; module_level--)
        for (size_t i = 0; i < p->variables.count; i++)
            if (variables[i]->module_level == module_level && variables[i]->entries.count)
                place(p, variables[i]);
    for (size_t i = 0; i < p->variables.count; i++)
        list_free(&variables[i]->entries);
    list_free(&s.stack);
    return done;
}
