/* A trace as JSON: the columns are those of smk_trace. */
#include <inttypes.h>
#include <stdio.h>

#include "session.h"

static void callers_json(text *t, const smk_position *callers, int n) {
    put_key(t, "callers");
    put_open(t, '[');
    for (int k = 0; k < n; k++) {
        put_open(t, '[');
        put_string(t, callers[k].file);
        put_signed(t, callers[k].line);
        put_close(t, ']');
    }
    put_close(t, ']');
}

static void request_json(text *t, const smk_request *r) {
    put_key(t, "worstRequest");
    put_open(t, '{');
    put_member_dims(t, "block", r->block);
    put_member_number(t, "warp", r->warp);
    put_member_number(t, "active", r->active);
    put_key(t, "addresses");
    put_open(t, '[');
    for (int lane = 0; lane < 32; lane++)
        if (r->active >> lane & 1)
            put_number(t, r->address[lane]);
        else
            put_string(t, NULL);
    put_close(t, ']');
    put_close(t, '}');
}

static void site_json(text *t, const smk_site *s) {
    static const char *const access[] = {
        [SMK_LOAD] = "load",
        [SMK_STORE] = "store",
        [SMK_ATOMIC] = "atomic",
        [SMK_COPY_ASYNC] = "copy_async",
        [SMK_LDMATRIX] = "ldmatrix",
        [SMK_STMATRIX] = "stmatrix",
        [SMK_BULK] = "bulk",
        [SMK_MATRIX] = "matrix",
        [SMK_TEXTURE] = "texture",
        [SMK_REMOTE_LOAD] = "remote_load",
        [SMK_REMOTE_STORE] = "remote_store",
        [SMK_REMOTE_ATOMIC] = "remote_atomic",
    };
    put_open(t, '{');
    put_member_bool(t, "shared", s->shared);
    put_member_string(t, "file", s->file);
    put_member_signed(t, "line", s->line);
    put_member_string(t, "access", access[s->access]);
    put_member_signed(t, "width", s->width);
    put_member_number(t, "requests", s->requests);
    put_member_number(t, "wavefronts", s->wavefronts);
    put_member_number(t, "ideal", s->ideal);
    put_member_number(t, "worst", s->worst);
    put_member_number(t, "bytes", s->bytes);
    put_member_signed(t, "direction", s->direction);
    callers_json(t, s->callers, s->n_callers);
    request_json(t, &s->worst_request);
    put_member_number(t, "machineRequests", s->machine_requests);
    put_member_number(t, "machineWavefronts", s->machine_wavefronts);
    put_member_number(t, "machineIdeal", s->machine_ideal);
    put_close(t, '}');
}

static void party_json(text *t, const char *name, const smk_party *p) {
    put_key(t, name);
    put_open(t, '{');
    put_member_string(t, "file", p->file);
    put_member_signed(t, "line", p->line);
    put_member_string(t, "text", p->text);
    put_member_dims(t, "block", p->block);
    put_member_dims(t, "thread", p->thread);
    callers_json(t, p->callers, p->n_callers);
    put_close(t, '}');
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
        const char *name = h->variable;
        const size_t length = explain_plain_name(&name);
        const int width = h->width > 0 ? h->width : 1;
        if (h->variable_at % width == 0)
            snprintf(out, size, "%s %.*s[%" PRId64 "]", space, (int)length, name,
                     h->variable_at / width);
        else
            snprintf(out, size, "%s %.*s + %" PRId64 " bytes", space, (int)length, name,
                     h->variable_at);
    } else if (space) {
        snprintf(out, size, "%s memory, byte %" PRId64, space, h->offset);
    }
}

static void words_json(text *t, const smk_hazard *h, const char *space) {
    char place[256] = "", words[EXPLAIN_SIZE];
    hazard_place(h, space, place, sizeof place);
    put_member_string(t, "place", place);
    const size_t n = explain_hazard(h, place, words, sizeof words);
    const bool shuffle = h->kind == SMK_HAZARD_SHUFFLE || h->kind == SMK_HAZARD_SHUFFLE_OUTSIDE;
    if (h->message && !shuffle && h->buffer >= 0 && n < sizeof words)
        snprintf(words + n, sizeof words - n, "; that is %s", place);
    put_member_string(t, "words", words);
    put_member_string(t, "cure", explain_cure(h, words, sizeof words) ? words : NULL);
}

static void hazard_json(text *t, const smk_hazard *h) {
    static const char *const kinds[] = {
#define X(name, spelling, benign) [SMK_HAZARD_##name] = spelling,
        SMK_HAZARD_MAP(X)
#undef X
    };
    static const char *const spaces[] = {[SMK_NO_SPACE] = NULL,
                                         [SMK_SHARED_SPACE] = "shared",
                                         [SMK_GLOBAL_SPACE] = "global",
                                         [SMK_OTHER_SPACE] = "other"};
    put_open(t, '{');
    put_member_string(t, "kind", kinds[h->kind]);
    put_member_bool(t, "benign", !smk_is_hazard(h->kind));
    party_json(t, "party", &h->party);
    party_json(t, "other", &h->other);
    put_member_string(t, "space", spaces[h->space]);
    put_member_signed(t, "offset", h->offset);
    put_member_signed(t, "width", h->width);
    put_member_signed(t, "buffer", h->buffer);
    put_member_string(t, "variable", h->variable);
    put_member_signed(t, "variableAt", h->variable_at);
    put_member_number(t, "count", h->count);
    put_member_string(t, "message", h->message);
    words_json(t, h, spaces[h->space]);
    put_close(t, '}');
}

static void opcodes_json(text *t, const smk_trace *trace) {
    put_key(t, "opcodes");
    put_open(t, '{');
    for (size_t k = 0; k < trace->n_opcodes; k++) {
        const smk_opcode_count *o = &trace->opcodes[k];
        put_key(t, o->opcode);
        put_open(t, '{');
        put_member_number(t, "warps", o->warps);
        put_member_number(t, "lanes", o->lanes);
        put_member_number(t, "flops", o->flops);
        put_close(t, '}');
    }
    put_close(t, '}');
}

static void instruction_json(text *t, const smk_instruction_count *p) {
    put_open(t, '{');
    put_member_string(t, "function", p->function);
    put_member_signed(t, "ptxLine", p->ptx_line);
    put_member_number(t, "warps", p->warps);
    put_member_signed(t, "site", p->site);
    put_member_number(t, "requests", p->requests);
    put_key(t, "wider");
    put_open(t, '[');
    for (int k = 0; k < SMK_N_WIDTHS; k++) {
        const smk_wider_cost *c = &p->wider[k];
        const uint64_t numbers[] = {c->wavefronts,     c->ideal,     c->min_wavefronts,
                                    c->max_wavefronts, c->min_ideal, c->max_ideal};
        put_open(t, '[');
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            put_number(t, numbers[n]);
        put_close(t, ']');
    }
    put_close(t, ']');
    put_close(t, '}');
}

void trace_json(text *t, const smk_trace *trace) {
    put_open(t, '{');
    put_key(t, "sites");
    put_open(t, '[');
    for (size_t k = 0; k < trace->n_sites; k++)
        site_json(t, &trace->sites[k]);
    put_close(t, ']');
    opcodes_json(t, trace);
    put_member_number(t, "warpInstructions", trace->warp_instructions);
    put_member_number(t, "barriers", trace->barriers);
    put_member_number(t, "flops", trace->flops);
    put_member_number(t, "blocks", trace->blocks);
    put_member_number(t, "gridBlocks", trace->grid_blocks);
    put_member_number(t, "sharedBytes", trace->shared_bytes);
    put_member_bool(t, "checked", trace->checked);
    put_member_bool(t, "incomplete", trace->incomplete);
    put_key(t, "hazards");
    put_open(t, '[');
    for (size_t k = 0; k < trace->n_hazards; k++)
        hazard_json(t, &trace->hazards[k]);
    put_close(t, ']');
    put_key(t, "instructions");
    put_open(t, '[');
    for (size_t k = 0; k < trace->n_instructions; k++)
        instruction_json(t, &trace->instructions[k]);
    put_close(t, ']');
    put_close(t, '}');
}
