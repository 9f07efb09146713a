/* A trace as JSON: the columns are those of smk_trace. */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"

static void callers_json(json *t, const smk_position *callers, int n) {
    json_open(t, "callers", '[');
    for (int k = 0; k < n; k++) {
        json_open(t, NULL, '[');
        json_text(t, NULL, callers[k].file);
        json_number(t, NULL, callers[k].line);
        json_close(t, ']');
    }
    json_close(t, ']');
}

static void request_json(json *t, const smk_request *r) {
    json_open(t, "worstRequest", '{');
    json_extent(t, "block", r->block);
    json_unsigned(t, "warp", r->warp);
    json_unsigned(t, "active", r->active);
    json_open(t, "addresses", '[');
    for (int lane = 0; lane < 32; lane++)
        if (r->active >> lane & 1)
            json_unsigned(t, NULL, r->address[lane]);
        else
            json_text(t, NULL, NULL);
    json_close(t, ']');
    json_close(t, '}');
}

/* The array that the worst request accesses. */
static void array_json(json *t, const smk_site *s) {
    const uint32_t active = s->worst_request.active;
    const bool remote = s->access >= SMK_REMOTE_LOAD;
    const explain_array *a = s->shared && active && !remote
                                 ? session_array_at(s->worst_request.address[__builtin_ctz(active)])
                                 : NULL;
    json_next(t, "array");
    if (!a) {
        json_text(t, NULL, NULL);
        return;
    }
    json_open(t, NULL, '{');
    json_text(t, "name", a->name);
    json_unsigned(t, "at", a->at);
    json_unsigned(t, "bytes", a->bytes);
    json_unsigned(t, "element", a->element);
    json_unsigned(t, "columns", a->cols);
    json_unsigned(t, "rows", a->rows);
    json_close(t, '}');
}

static void site_json(json *t, const smk_site *s) {
    json_open(t, NULL, '{');
    json_true_false(t, "shared", s->shared);
    json_text(t, "file", s->file);
    json_number(t, "line", s->line);
    json_text(t, "access", smk_access_name(s->access));
    json_number(t, "width", s->width);
    json_unsigned(t, "requests", s->requests);
    json_unsigned(t, "wavefronts", s->wavefronts);
    json_unsigned(t, "ideal", s->ideal);
    json_unsigned(t, "worst", s->worst);
    json_unsigned(t, "bytes", s->bytes);
    json_number(t, "direction", s->direction);
    callers_json(t, s->callers, s->n_callers);
    request_json(t, &s->worst_request);
    array_json(t, s);
    json_unsigned(t, "machineRequests", s->machine_requests);
    json_unsigned(t, "machineWavefronts", s->machine_wavefronts);
    json_unsigned(t, "machineIdeal", s->machine_ideal);
    json_close(t, '}');
}

static void party_json(json *t, const char *name, const smk_party *p) {
    json_next(t, name);
    json_open(t, NULL, '{');
    json_text(t, "file", p->file);
    json_number(t, "line", p->line);
    json_number(t, "ptxLine", p->ptx_line);
    json_text(t, "text", p->text);
    json_extent(t, "block", p->block);
    json_extent(t, "thread", p->thread);
    callers_json(t, p->callers, p->n_callers);
    json_close(t, '}');
}

/* Where the hazard is, for the words: "x, element (3, 5)", "shared tile[33]". */
static void hazard_place(const smk_hazard *h, const char *space, char *out, size_t size) {
    if (h->buffer >= 0 && h->buffer < session.n_buffers) {
        const buffer_name *b = &session.names[h->buffer];
        const uint64_t at = (uint64_t)h->offset / b->element;
        const size_t bytes = session.buffers[h->buffer].bytes;
        if (h->offset < 0 || (uint64_t)h->offset >= bytes)
            snprintf(out, size, "%s, byte %" PRId64 ", %s its %zu bytes", b->name, h->offset,
                     h->offset < 0 ? "before" : "past", bytes);
        else if (b->columns)
            snprintf(out, size, "%s, element (%" PRIu64 ", %" PRIu64 ")", b->name, at / b->columns,
                     at % b->columns);
        else
            snprintf(out, size, "%s, element %" PRIu64, b->name, at);
    } else if (h->variable) {
        const explain_array *known = session_array_named(h->variable);
        const explain_array unknown = {.name = h->variable};
        char element[200];
        explain_element(known ? known : &unknown, h->variable_at, (uint32_t)h->width, h->party.text,
                        element, sizeof element);
        snprintf(out, size, "%s %s", space, element);
    } else if (space) {
        snprintf(out, size, "%s memory, byte %" PRId64, space, h->offset);
    }
}

static void words_json(json *t, const smk_hazard *h, const char *space) {
    char place[256] = "", words[EXPLAIN_SIZE];
    hazard_place(h, space, place, sizeof place);
    json_text(t, "place", place);
    const size_t n = explain_hazard(h, place, words, sizeof words);
    const bool shuffle = h->kind == SMK_HAZARD_SHUFFLE || h->kind == SMK_HAZARD_SHUFFLE_OUTSIDE;
    if (h->message && !shuffle && h->buffer >= 0 && n < sizeof words)
        snprintf(words + n, sizeof words - n, "; that is %s", place);
    json_text(t, "words", words);
    json_text(t, "cure", explain_cure(h, words, sizeof words) ? words : NULL);
}

static void hazard_json(json *t, const smk_hazard *h) {
    const char *space = smk_space_name(h->space);
    json_open(t, NULL, '{');
    json_text(t, "kind", smk_hazard_name(h->kind));
    json_true_false(t, "benign", !smk_is_hazard(h->kind));
    party_json(t, "party", &h->party);
    party_json(t, "other", &h->other);
    json_text(t, "space", space);
    json_number(t, "offset", h->offset);
    json_number(t, "width", h->width);
    json_number(t, "buffer", h->buffer);
    json_text(t, "variable", h->variable);
    json_number(t, "variableAt", h->variable_at);
    json_unsigned(t, "count", h->count);
    json_text(t, "message", h->message);
    words_json(t, h, space);
    json_close(t, '}');
}

static void opcodes_json(json *t, const smk_trace *trace) {
    json_open(t, "opcodes", '{');
    for (size_t k = 0; k < trace->n_opcodes; k++) {
        const smk_opcode_count *o = &trace->opcodes[k];
        json_next(t, o->opcode);
        json_open(t, NULL, '{');
        json_unsigned(t, "warps", o->warps);
        json_unsigned(t, "lanes", o->lanes);
        json_unsigned(t, "flops", o->flops);
        json_close(t, '}');
    }
    json_close(t, '}');
}

static void instruction_json(json *t, const smk_instruction_count *p) {
    json_open(t, NULL, '{');
    json_text(t, "function", p->function);
    json_number(t, "ptxLine", p->ptx_line);
    json_unsigned(t, "warps", p->warps);
    json_number(t, "site", p->site);
    json_unsigned(t, "requests", p->requests);
    json_open(t, "wider", '[');
    for (int k = 0; k < SMK_N_WIDTHS; k++) {
        const smk_wider_cost *c = &p->wider[k];
        const uint64_t numbers[] = {c->wavefronts,     c->ideal,     c->min_wavefronts,
                                    c->max_wavefronts, c->min_ideal, c->max_ideal};
        json_open(t, NULL, '[');
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            json_unsigned(t, NULL, numbers[n]);
        json_close(t, ']');
    }
    json_close(t, ']');
    json_close(t, '}');
}

void trace_json(json *t, const smk_trace *trace) {
    json_open(t, NULL, '{');
    json_open(t, "sites", '[');
    for (size_t k = 0; k < trace->n_sites; k++)
        site_json(t, &trace->sites[k]);
    json_close(t, ']');
    opcodes_json(t, trace);
    json_unsigned(t, "warpInstructions", trace->warp_instructions);
    json_unsigned(t, "barriers", trace->barriers);
    json_unsigned(t, "flops", trace->flops);
    json_unsigned(t, "blocks", trace->blocks);
    json_unsigned(t, "gridBlocks", trace->grid_blocks);
    json_unsigned(t, "sharedBytes", trace->shared_bytes);
    json_true_false(t, "checked", trace->checked);
    json_true_false(t, "incomplete", trace->incomplete);
    json_open(t, "hazards", '[');
    for (size_t k = 0; k < trace->n_hazards; k++)
        hazard_json(t, &trace->hazards[k]);
    json_close(t, ']');
    json_open(t, "instructions", '[');
    for (size_t k = 0; k < trace->n_instructions; k++)
        instruction_json(t, &trace->instructions[k]);
    json_close(t, ']');
    json_close(t, '}');
}
