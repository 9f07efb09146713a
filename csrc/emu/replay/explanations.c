/* Words for conflicts: one text per distinct request of an instruction, and for each array a layout
 * that would do better (cost/explain.h). */
#include <stdlib.h>
#include <string.h>

#include "../cost/explain.h"
#include "recorder.h"

enum { MAX_EXPLANATIONS = 1000, MAX_LAYOUT_REQUESTS = 64 };

/* ---- variables in shared memory ---- */

static void read_addresses(const columns *c, uint32_t access, uint64_t address[LANES]) {
    const uint32_t *w =
        (const uint32_t *)c->column[COLUMN_words].bytes + column_value(c, COLUMN_access_at, access);
    const bool raw = column_value(c, COLUMN_access_kind, access) == VECTOR_RAW;
    for (uint32_t l = 0; l < LANES; l++)
        address[l] = raw ? w[l] : w[0] + l * w[1];
}

static bool is_shared(const columns *c, uint32_t access) {
    return column_value(c, COLUMN_access_space, access) == PTX_SHARED &&
           column_value(c, COLUMN_access_active, access);
}

static uint32_t launch_of(const recorder *r, uint32_t step) {
    const uint32_t warp = column_value(&r->columns, COLUMN_step_warp, step);
    return r->blocks.items[r->warps.items[warp].block].launch;
}

static bool add_variable(recorder *r, uint32_t launch, const ptx_variable *v) {
    const recorded_launch *l = &r->launches.items[launch];
    const bool dynamic = v->external && v->size == 0;
    if (!LIST_ROOM(r, &r->variables)) return false;
    recorded_variable *to = &r->variables.items[r->variables.n++];
    *to = (recorded_variable){.launch = launch,
                              .variable = v,
                              .dynamic = dynamic,
                              .offset = v->external ? l->dynamic_at : v->offset,
                              .bytes = dynamic ? l->dynamic_bytes : v->size,
                              .accessed = PTX_NO_TYPE};
    for (size_t k = 0; k < r->out->n_arrays; k++) {
        const smk_recorded_array *known = &r->out->arrays[k];
        if (strcmp(known->name, v->name)) continue;
        to->element = known->element;
        to->columns = known->columns;
    }
    if (to->element || v->type == PTX_B8) return true;
    to->element = ptx_type_size[v->type];
    to->columns = (uint32_t)v->columns;
    return true;
}

static bool find_variables(recorder *r) {
    for (uint32_t k = 0; k < r->launches.n; k++) {
        const recorded_launch *l = &r->launches.items[k];
        for (uint32_t n = 0; n < l->module->n_variables; n++) {
            const ptx_variable *v = l->module->variables[n];
            if (v->space == PTX_SHARED && !add_variable(r, k, v)) return false;
        }
        for (size_t f = 0; f < r->functions.n; f++) {
            const ptx_function *g = r->functions.items[f].function;
            for (uint32_t n = 0; (g == l->function || !g->is_entry) && n < g->n_variables; n++)
                if (g->variables[n]->space == PTX_SHARED && !add_variable(r, k, g->variables[n]))
                    return false;
        }
    }
    return true;
}

/* The index of the variable that has an address. */
static uint32_t variable_at(const recorder *r, uint32_t launch, uint64_t address) {
    for (uint32_t k = 0; k < r->variables.n; k++) {
        const recorded_variable *v = &r->variables.items[k];
        if (v->launch == launch && address >= v->offset && address - v->offset < v->bytes) return k;
    }
    return NONE;
}

/* The type of the first access to a variable, which also tells the size of its elements. */
static void note_type(recorder *r, uint32_t variable, uint32_t step) {
    recorded_variable *v = &r->variables.items[variable];
    const uint32_t number = column_value(&r->columns, COLUMN_step_instruction, step);
    const ptx_instruction *p = recorder_instruction(r, number);
    if (v->accessed != PTX_NO_TYPE || !p->types) return;
    v->accessed = (ptx_type)__builtin_ctz(p->types);
    if (!v->element) v->element = ptx_type_size[v->accessed];
}

/* ---- distinct requests ---- */

typedef struct distinct {
    uint64_t hash;
    uint32_t access, explanation;
} distinct;

typedef struct explainer {
    recorder *r;
    distinct *table; /* open addressing; access NONE: empty */
    size_t n, capacity;
    uint32_t *in_layout; /* by variable: MAX_LAYOUT_REQUESTS accesses */
    uint32_t *n_in_layout;
} explainer;

static uint64_t hash_of(const columns *c, uint32_t access, uint32_t instruction,
                        const uint64_t address[LANES]) {
    const uint32_t active = column_value(c, COLUMN_access_active, access);
    uint64_t hash = instruction * 0x9e3779b97f4a7c15u + active;
    for (uint32_t left = active; left; left &= left - 1)
        hash = (hash ^ address[first_lane(left)]) * 0xff51afd7ed558ccdu + (hash >> 29);
    return hash;
}

/* The entry of a request, which is new if its access is NONE. */
static distinct *find(explainer *e, uint64_t hash) {
    size_t at = (size_t)(hash >> 7) & (e->capacity - 1);
    while (e->table[at].access != NONE && e->table[at].hash != hash)
        at = (at + 1) & (e->capacity - 1);
    return &e->table[at];
}

static explain_array array_of(const recorded_variable *v) {
    return (explain_array){.name = v->variable->name,
                           .at = v->offset,
                           .bytes = v->bytes,
                           .element = v->element,
                           .cols = v->columns};
}

static explain_request request_of(const recorder *r, uint32_t access, const uint64_t address[LANES],
                                  const explain_array *array) {
    const columns *c = &r->columns;
    return (explain_request){.operation =
                                 (emu_operation)column_value(c, COLUMN_access_operation, access),
                             .address = address,
                             .active = column_value(c, COLUMN_access_active, access),
                             .width = column_value(c, COLUMN_access_width, access),
                             .wavefronts = column_value(c, COLUMN_access_cost, access),
                             .ideal = column_value(c, COLUMN_access_ideal, access),
                             .array = array};
}

static uint32_t explain(recorder *r, uint32_t access, const uint64_t address[LANES],
                        uint32_t variable) {
    char text[EXPLAIN_SIZE];
    explain_array array = {0};
    const bool known = variable != NONE;
    if (known) array = array_of(&r->variables.items[variable]);
    const explain_request q = request_of(r, access, address, known ? &array : NULL);
    if (!LIST_ROOM(r, &r->explanations) || !explain_conflict(&q, text, sizeof text)) return NONE;
    const explanation made = {strdup(text), variable};
    if (!made.text) return NONE;
    r->explanations.items[r->explanations.n] = made;
    return (uint32_t)r->explanations.n++;
}

static void take_access(explainer *e, uint32_t step, uint32_t access) {
    recorder *r = e->r;
    columns *c = &r->columns;
    uint64_t address[LANES];
    read_addresses(c, access, address);
    const uint32_t active = column_value(c, COLUMN_access_active, access);
    const uint32_t variable = variable_at(r, launch_of(r, step), address[first_lane(active)]);
    const uint32_t instruction = column_value(c, COLUMN_step_instruction, step);
    if (variable != NONE) note_type(r, variable, step);
    distinct *found = find(e, hash_of(c, access, instruction, address));
    if (found->access == NONE) {
        if (e->n == e->capacity / 2) return;
        e->n++;
        *found = (distinct){hash_of(c, access, instruction, address), access, NONE};
        const bool conflict = column_value(c, COLUMN_access_cost, access) >
                              column_value(c, COLUMN_access_ideal, access);
        if (conflict && r->explanations.n < MAX_EXPLANATIONS)
            found->explanation = explain(r, access, address, variable);
        if (variable != NONE && e->n_in_layout[variable] < MAX_LAYOUT_REQUESTS)
            e->in_layout[variable * MAX_LAYOUT_REQUESTS + e->n_in_layout[variable]++] = access;
    }
    column_set(c, COLUMN_access_words, access, found->explanation);
}

/* ---- layouts ---- */

static void explain_layout_of(explainer *e, uint32_t variable) {
    recorder *r = e->r;
    recorded_variable *v = &r->variables.items[variable];
    const uint32_t n = e->n_in_layout[variable];
    const explain_array array = array_of(v);
    explain_request requests[MAX_LAYOUT_REQUESTS];
    uint64_t address[MAX_LAYOUT_REQUESTS][LANES];
    char text[EXPLAIN_SIZE];
    bool conflict = false;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t access = e->in_layout[variable * MAX_LAYOUT_REQUESTS + k];
        read_addresses(&r->columns, access, address[k]);
        requests[k] = request_of(r, access, address[k], &array);
        conflict |= requests[k].wavefronts > requests[k].ideal;
    }
    if (conflict && v->element && explain_layout(&array, requests, n, NULL, text, sizeof text))
        v->layout = strdup(text);
}

/* ---- all of it ---- */

static bool explainer_start(explainer *e, recorder *r) {
    enum { TABLE = 1 << 15 };
    const size_t n = r->variables.n + 1;
    *e = (explainer){.r = r, .capacity = TABLE};
    e->table = malloc(TABLE * sizeof *e->table);
    e->in_layout = malloc(n * MAX_LAYOUT_REQUESTS * sizeof *e->in_layout);
    e->n_in_layout = calloc(n, sizeof *e->n_in_layout);
    for (size_t k = 0; e->table && k < TABLE; k++)
        e->table[k].access = NONE;
    return e->table && e->in_layout && e->n_in_layout;
}

void explanations_make(recorder *r) {
    explainer e = {0};
    const uint32_t n = (uint32_t)COUNT(r, step_warp);
    if (find_variables(r) && explainer_start(&e, r)) {
        for (uint32_t s = 0; s < n; s++)
            for (uint32_t k = column_value(&r->columns, COLUMN_first_access, s);
                 k < column_value(&r->columns, COLUMN_first_access, s + 1); k++)
                if (is_shared(&r->columns, k)) take_access(&e, s, k);
        for (uint32_t k = 0; k < r->variables.n; k++)
            explain_layout_of(&e, k);
    } else {
        r->out_of_memory = true;
    }
    free(e.table);
    free(e.in_layout);
    free(e.n_in_layout);
}
