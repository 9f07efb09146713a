/* Where .shared variables stand.
 *
 * A module may hold many kernels, each with tiles of its own, and a block has only the tiles that
 * its kernel can reach: those named in it and in the functions that it calls. So the variables of
 * two kernels may overlap, while a variable that both reach (through a common device function) must
 * stand at one offset in both. One pass in order of declaration, the module's variables first, puts
 * each behind all that are placed already in any kernel that reaches it.
 */
#include "parser.h"

enum {
    MOST_FUNCTIONS = 1 << 14, /* of a module with .shared variables: the search is quadratic, ... */
    MOST_STEPS = 1 << 24      /* ... in what all kernels together reach */
};

typedef struct search {
    list stack;     /* reference *: what is still to be followed */
    uint32_t visit; /* number of the entry, from 1 */
    uint32_t steps;
} search;

static bool reach(parser *p, search *s, const reference *references) {
    if (!references) return true;
    const reference **next = list_push(p, &s->stack, sizeof *next);
    if (next) *next = references;
    return next != NULL;
}

static bool reach_function(parser *p, search *s, function_note *f) {
    if (f->alias_of) f = f->alias_of;
    if (f->visited == s->visit) return true;
    f->visited = s->visit;
    return reach(p, s, f->references);
}

static bool reach_variable(parser *p, search *s, variable_note *v, uint32_t entry) {
    if (v->visited == s->visit) return true;
    v->visited = s->visit;
    if (v->variable->space == PTX_SHARED && !v->variable->external) {
        uint32_t *kept = list_push(p, &v->entries, sizeof *kept);
        if (!kept) return false;
        *kept = entry;
    }
    return reach(p, s, v->references); /* a table of function addresses reaches the functions */
}

static bool find_entries(parser *p, search *s) {
    function_note **functions = p->functions.items;
    for (uint32_t i = 0; i < p->functions.count; i++) {
        if (!functions[i]->function->is_entry) continue;
        s->visit = i + 1;
        if (!reach_function(p, s, functions[i])) return false;
        while (s->stack.count) {
            const reference *r = ((const reference **)s->stack.items)[--s->stack.count];
            for (; r; r = r->next) {
                if (s->steps++ == MOST_STEPS)
                    return parser_fail(p, p->token.line,
                                       "the kernels of this module name functions and variables "
                                       "in more than %d ways, each kernel with all that it calls",
                                       MOST_STEPS);
                if (!parser_goes_on(p, 1)) return false;
                if (r->function ? !reach_function(p, s, r->function)
                                : !reach_variable(p, s, r->variable, i))
                    return false;
            }
        }
    }
    return true;
}

static void place(parser *p, const variable_note *note) {
    function_note **functions = p->functions.items;
    const uint32_t *entries = note->entries.items;
    ptx_variable *v = note->variable;
    uint64_t at = 0;
    for (size_t i = 0; i < note->entries.count; i++) {
        uint64_t used = functions[entries[i]]->function->shared_bytes;
        if (used > at) at = used;
    }
    v->offset = (at + v->align - 1) & ~(uint64_t)(v->align - 1);
    for (size_t i = 0; i < note->entries.count; i++)
        functions[entries[i]]->function->shared_bytes = v->offset + v->size;
}

bool layout_shared(parser *p) {
    variable_note **variables = p->variables.items;
    search s = {0};
    bool any = false;
    for (size_t i = 0; i < p->variables.count; i++)
        any |= variables[i]->variable->space == PTX_SHARED && !variables[i]->variable->external;
    if (!any) return true;
    if (p->functions.count > MOST_FUNCTIONS)
        return parser_fail(p, p->token.line, "a module of %zu functions is more than the %d read",
                           p->functions.count, MOST_FUNCTIONS);

    bool done = find_entries(p, &s);
    for (int of_module = 1; done && of_module >= 0; of_module--)
        for (size_t i = 0; i < p->variables.count; i++)
            if (variables[i]->of_module == of_module && variables[i]->entries.count)
                place(p, variables[i]);
    for (size_t i = 0; i < p->variables.count; i++)
        list_free(&variables[i]->entries);
    list_free(&s.stack);
    return done;
}
