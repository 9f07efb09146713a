/* The header of a recording; docs/replay.md describes it. */
#include <stdlib.h>
#include <string.h>

#include "../../core/json.h"
#include "recorder.h"

/* ---- names of numbers in the columns ---- */

static const char *const operations[] = {
    [EMU_LOAD] = "load",
    [EMU_STORE] = "store",
    [EMU_ATOMIC] = "atomic",
    [EMU_COPY_ASYNC_READ] = "copy_async_read",
    [EMU_COPY_ASYNC_WRITE] = "copy_async_write",
    [EMU_LDMATRIX] = "ldmatrix",
    [EMU_STMATRIX] = "stmatrix",
    [EMU_STORE_ASYNC] = "store_async",
    [EMU_TEXTURE_READ] = "texture",
    [EMU_BULK_READ] = "bulk_read",
    [EMU_BULK_WRITE] = "bulk_write",
    [EMU_MATRIX_READ] = "matrix_read",
};

static const char *const events[] = {
    [EMU_BARRIER_ARRIVE] = "barrier_arrive",
    [EMU_BARRIER_COMPLETE] = "barrier_complete",
    [EMU_CLUSTER_WAIT] = "cluster_wait",
    [EMU_WARP_SYNC] = "warp_sync",
    [EMU_FENCE] = "fence",
    [EMU_LAUNCH_WAIT] = "launch_wait",
    [EMU_EXIT] = "exit",
    [EMU_MBARRIER_ARRIVE] = "mbarrier_arrive",
    [EMU_MBARRIER_WAIT] = "mbarrier_wait",
    [EMU_COPY_DONE] = "copy_done",
    [EMU_MBARRIER_INIT] = "mbarrier_init",
    [EMU_PROXY_FENCE] = "proxy_fence",
    [EMU_BULK_SOURCE] = "bulk_source",
    [EMU_MATRIX_COMMIT] = "matrix_commit",
    [EMU_MATRIX_WAIT] = "matrix_wait",
    [EMU_SHUFFLE_ABSENT] = "shuffle_absent",
    [EMU_SHUFFLE_OUTSIDE] = "shuffle_outside",
};

static const char *const spaces[] = {[PTX_GENERIC] = "generic", [PTX_GLOBAL] = "global",
                                     [PTX_SHARED] = "shared",   [PTX_LOCAL] = "local",
                                     [PTX_CONST] = "const",     [PTX_PARAM] = "param"};

static void write_names(json *j, const char *name, const char *const *names, size_t n) {
    json_open(j, name, '[');
    for (size_t k = 0; k < n; k++)
        json_text(j, NULL, names[k]);
    json_close(j, ']');
}

/* ---- source files ---- */

typedef struct file_table {
    const char *names[1024];
    uint32_t n;
} file_table;

/* The number of a file; NONE: it has no name, or there are too many. */
static uint32_t file_number(file_table *t, const char *name) {
    if (!name) return NONE;
    for (uint32_t k = 0; k < t->n; k++)
        if (t->names[k] == name || !strcmp(t->names[k], name)) return k;
    if (t->n == sizeof t->names / sizeof *t->names) return NONE;
    t->names[t->n] = name;
    return t->n++;
}

/* ---- instructions and registers ---- */

static void write_operand_registers(json *j, const recorded_function *f, const ptx_operand *o) {
    const bool own = o->kind == PTX_REGISTER || (o->kind == PTX_ADDRESS && o->has_register);
    if (own) json_number(j, NULL, f->first_register + o->reg);
    for (uint32_t k = 0; k < o->n_items; k++)
        write_operand_registers(j, f, &o->items[k]);
    if (o->pair) write_operand_registers(j, f, o->pair);
}

static void write_registers_used(json *j, const recorded_function *f, const ptx_instruction *p) {
    json_open(j, "reads", '[');
    if (p->guarded) json_number(j, NULL, f->first_register + p->guard);
    for (uint32_t k = 0; k < p->n_operands; k++)
        if (ptx_operand_is_source(p, k)) write_operand_registers(j, f, &p->operands[k]);
    json_close(j, ']');
    json_open(j, "writes", '[');
    for (uint32_t k = 0; k < p->n_operands; k++)
        if (ptx_operand_is_destination(p, k)) write_operand_registers(j, f, &p->operands[k]);
    json_close(j, ']');
}

static uint32_t target_of(const recorded_function *f, const ptx_instruction *p) {
    for (uint32_t k = 0; k < p->n_operands; k++)
        if (p->operands[k].kind == PTX_LABEL) return f->first_instruction + p->operands[k].target;
    return NONE;
}

static void write_instruction(json *j, file_table *files, const recorded_function *f,
                              uint32_t function, const ptx_instruction *p) {
    json_open(j, NULL, '{');
    json_text(j, "text", p->text);
    json_text(j, "opcode", p->opcode);
    json_number(j, "ptx_line", p->ptx_line);
    json_index(j, "file", file_number(files, p->file));
    json_number(j, "line", p->line);
    json_number(j, "column", p->position ? p->position->column : 0);
    json_open(j, "callers", '[');
    const ptx_position *caller = p->position ? p->position->caller : NULL;
    for (int k = 0; caller && k < SMK_MAX_CALLERS; k++, caller = caller->caller) {
        json_open(j, NULL, '[');
        json_index(j, NULL, file_number(files, caller->file));
        json_number(j, NULL, caller->line);
        json_close(j, ']');
    }
    json_close(j, ']');
    json_number(j, "function", function);
    json_index(j, "guard", p->guarded ? f->first_register + p->guard : NONE);
    json_true_false(j, "negated", p->guard_negated);
    write_registers_used(j, f, p);
    json_index(j, "target", target_of(f, p));
    json_close(j, '}');
}

static void write_functions(const recorder *r, json *j, file_table *files) {
    json_open(j, "functions", '[');
    for (size_t k = 0; k < r->functions.n; k++) {
        const recorded_function *f = &r->functions.items[k];
        json_open(j, NULL, '{');
        json_text(j, "name", f->function->name);
        json_number(j, "first_instruction", f->first_instruction);
        json_number(j, "instructions", f->function->n_instructions);
        json_number(j, "first_register", f->first_register);
        json_number(j, "registers", f->function->n_registers);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "instructions", '[');
    for (size_t k = 0; k < r->functions.n; k++) {
        const recorded_function *f = &r->functions.items[k];
        for (uint32_t i = 0; i < f->function->n_instructions; i++)
            write_instruction(j, files, f, (uint32_t)k, &f->function->instructions[i]);
    }
    json_close(j, ']');
    json_open(j, "registers", '[');
    for (size_t k = 0; k < r->functions.n; k++) {
        const ptx_function *f = r->functions.items[k].function;
        uint8_t *types = malloc(f->n_registers + 1);
        if (types) register_types(f, types);
        for (uint32_t i = 0; i < f->n_registers; i++) {
            const ptx_type type = types ? (ptx_type)types[i] : f->registers[i].type;
            json_open(j, NULL, '{');
            json_text(j, "name", f->registers[i].name);
            json_text(j, "type", ptx_type_spelling[f->registers[i].type]);
            json_number(j, "size", register_bytes(f->registers[i].type));
            json_text(j, "as", ptx_type_spelling[type]);
            json_number(j, "slot", f->registers[i].slot);
            json_close(j, '}');
        }
        free(types);
    }
    json_close(j, ']');
    json_open(j, "files", '[');
    for (uint32_t k = 0; k < files->n; k++) {
        json_open(j, NULL, '{');
        json_text(j, "name", files->names[k]);
        json_null(j, "text");
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* ---- launches, blocks, warps, memories ---- */

static void write_launches(const recorder *r, json *j) {
    json_open(j, "launches", '[');
    for (size_t k = 0; k < r->launches.n; k++) {
        const recorded_launch *l = &r->launches.items[k];
        json_open(j, NULL, '{');
        json_text(j, "entry", l->entry);
        json_extent(j, "grid", l->grid);
        json_extent(j, "block", l->block);
        json_extent(j, "cluster", l->cluster);
        json_number(j, "shared_bytes", (int64_t)l->shared_bytes);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "blocks", '[');
    for (size_t k = 0; k < r->blocks.n; k++) {
        const recorded_block *b = &r->blocks.items[k];
        json_open(j, NULL, '{');
        json_number(j, "launch", b->launch);
        json_extent(j, "index", b->index);
        json_number(j, "number", (int64_t)b->number);
        json_number(j, "shared", b->memory);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "warps", '[');
    for (size_t k = 0; k < r->warps.n; k++) {
        const recorded_warp *w = &r->warps.items[k];
        json_open(j, NULL, '{');
        json_number(j, "block", w->block);
        json_number(j, "warp", w->warp);
        json_number(j, "lanes", w->lanes);
        json_true_false(j, "recorded", w->recorded);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_memories(const recorder *r, json *j) {
    static const char *const kinds[] = {[MEMORY_SHARED] = "shared",
                                        [MEMORY_LOCAL] = "local",
                                        [MEMORY_ARRAY] = "array",
                                        [MEMORY_VARIABLES] = "variables"};
    static const char *const of[] = {[MEMORY_SHARED] = "block",
                                     [MEMORY_LOCAL] = "warp",
                                     [MEMORY_ARRAY] = "array",
                                     [MEMORY_VARIABLES] = "module"};
    json_open(j, "memories", '[');
    for (size_t k = 0; k < r->memories.n; k++) {
        const recorded_memory *m = &r->memories.items[k];
        json_open(j, NULL, '{');
        json_text(j, "kind", kinds[m->kind]);
        json_number(j, of[m->kind], m->of);
        json_number(j, "bytes", (int64_t)m->bytes);
        json_index(j, "at", m->at);
        json_number(j, "words", m->words);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_number(j, "first_array", REGION_BUFFERS);
    json_open(j, "arrays", '[');
    for (size_t k = 0; k < r->job->n_buffers; k++) {
        const smk_buffer *b = &r->job->buffers[k];
        json_open(j, NULL, '{');
        json_number(j, "bytes", (int64_t)b->bytes);
        json_number(j, "access", b->access);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* ---- variables in shared memory ---- */

static void write_shared(const recorder *r, json *j) {
    json_open(j, "shared", '[');
    for (size_t k = 0; k < r->variables.n; k++) {
        const recorded_variable *v = &r->variables.items[k];
        const bool accessed = v->accessed != PTX_NO_TYPE;
        json_open(j, NULL, '{');
        json_number(j, "launch", v->launch);
        json_text(j, "name", v->variable->name);
        json_number(j, "offset", (int64_t)v->offset);
        json_number(j, "bytes", (int64_t)v->bytes);
        json_text(j, "type", ptx_type_spelling[v->variable->type]);
        json_true_false(j, "dynamic", v->dynamic);
        json_text(j, "accessed", accessed ? ptx_type_spelling[v->accessed] : NULL);
        json_index(j, "element", v->element ? v->element : NONE);
        json_index(j, "cols", v->columns ? v->columns : NONE);
        json_text(j, "layout", v->layout);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "explanations", '[');
    for (size_t k = 0; k < r->explanations.n; k++) {
        json_open(j, NULL, '{');
        json_text(j, "text", r->explanations.items[k].text);
        json_index(j, "array", r->explanations.items[k].variable);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* ---- hazards ---- */

static void write_party(const recorder *r, json *j, const smk_party *party, uint32_t step) {
    json_open(j, NULL, '{');
    json_text(j, "file", party->file);
    json_number(j, "line", party->line);
    json_text(j, "text", party->text);
    json_extent(j, "block", party->block);
    json_extent(j, "thread", party->thread);
    if (step == NONE)
        json_null(j, "step");
    else
        json_number(j, "step", (int64_t)(r->out->first + step));
    json_close(j, '}');
}

static void write_hazards(const recorder *r, json *j, const smk_trace *trace) {
    json_open(j, "hazards", '[');
    for (size_t k = 0; trace && k < trace->n_hazards; k++) {
        const smk_hazard *h = &trace->hazards[k];
        uint32_t steps[2];
        hazard_steps(r, h, steps);
        json_open(j, NULL, '{');
        json_text(j, "kind", smk_hazard_name(h->kind));
        json_text(j, "message", h->message);
        json_true_false(j, "benign", !smk_is_hazard(h->kind));
        json_text(j, "space", smk_space_name(h->space));
        json_number(j, "offset", h->offset);
        json_number(j, "width", h->width);
        json_index(j, "array", (uint32_t)h->buffer);
        json_number(j, "count", (int64_t)h->count);
        json_number(j, "found_at", (int64_t)h->step);
        json_text(j, "variable", h->variable);
        json_open(j, "parties", '[');
        write_party(r, j, &h->party, steps[0]);
        if (h->other.line) write_party(r, j, &h->other, steps[1]);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    if (!r->fault) {
        json_null(j, "fault");
        return;
    }
    json_open(j, "fault", '{');
    json_text(j, "message", r->fault_message);
    json_number(j, "step", r->fault_step == UINT64_MAX ? -1 : (int64_t)r->fault_step);
    json_close(j, '}');
}

/* ---- all of it ---- */

static void write_window(const recorder *r, json *j) {
    const size_t n = COUNT(r, step_warp);
    json_number(j, "format", 1);
    json_number(j, "first", (int64_t)r->out->first);
    json_number(j, "count", (int64_t)n);
    json_number(j, "total", (int64_t)r->step);
    const bool ended = r->out->first + n >= r->step;
    json_text(j, "truncated", ended ? NULL : r->truncated);
    json_number(j, "limit", (int64_t)r->out->max_bytes);
    json_number(j, "omitted_blocks", (int64_t)r->n_omitted);
    json_text(j, "kernel", r->launches.n ? r->launches.items[0].entry : NULL);
}

static void write_sections(const recorder *r, json *j) {
    static const char *const types[] = {[1] = "u8", [2] = "u16", [4] = "u32"};
    size_t at = 0;
    json_open(j, "sections", '{');
    for (int k = 0; k < N_COLUMNS; k++) {
        json_open(j, column_names[k], '{');
        json_text(j, "type", types[column_bytes[k]]);
        json_number(j, "at", (int64_t)at);
        json_number(j, "count", (int64_t)r->columns.column[k].n);
        json_close(j, '}');
        at += (r->columns.column[k].n * column_bytes[k] + 7) / 8 * 8;
    }
    json_close(j, '}');
}

void header_write(recorder *r, const smk_trace *trace, struct json *j) {
    file_table files = {.n = 0};
    json_open(j, NULL, '{');
    write_window(r, j);
    write_launches(r, j);
    write_memories(r, j);
    write_shared(r, j);
    write_functions(r, j, &files);
    write_names(j, "operations", operations, sizeof operations / sizeof *operations);
    write_names(j, "spaces", spaces, sizeof spaces / sizeof *spaces);
    write_names(j, "event_kinds", events, sizeof events / sizeof *events);
    write_hazards(r, j, trace);
    write_sections(r, j);
    json_close(j, '}');
}
