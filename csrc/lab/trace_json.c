/* A trace as JSON: the columns are those of smk_trace. */
#include "session.h"

static void callers_json(text *t, const smk_position *callers, int n) {
    json_key(t, "callers");
    json_open(t, '[');
    for (int k = 0; k < n; k++) {
        json_open(t, '[');
        json_string(t, callers[k].file);
        json_signed(t, callers[k].line);
        json_close(t, ']');
    }
    json_close(t, ']');
}

static void request_json(text *t, const smk_request *r) {
    json_key(t, "worstRequest");
    json_open(t, '{');
    json_member_dims(t, "block", r->block);
    json_member_number(t, "warp", r->warp);
    json_member_number(t, "active", r->active);
    json_key(t, "addresses");
    json_open(t, '[');
    for (int lane = 0; lane < 32; lane++)
        if (r->active >> lane & 1)
            json_number(t, r->address[lane]);
        else
            json_string(t, NULL);
    json_close(t, ']');
    json_close(t, '}');
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
    json_open(t, '{');
    json_member_bool(t, "shared", s->shared);
    json_member_string(t, "file", s->file);
    json_member_signed(t, "line", s->line);
    json_member_string(t, "access", access[s->access]);
    json_member_signed(t, "width", s->width);
    json_member_number(t, "requests", s->requests);
    json_member_number(t, "wavefronts", s->wavefronts);
    json_member_number(t, "ideal", s->ideal);
    json_member_number(t, "worst", s->worst);
    json_member_number(t, "bytes", s->bytes);
    json_member_signed(t, "direction", s->direction);
    callers_json(t, s->callers, s->n_callers);
    request_json(t, &s->worst_request);
    json_member_number(t, "machineRequests", s->machine_requests);
    json_member_number(t, "machineWavefronts", s->machine_wavefronts);
    json_member_number(t, "machineIdeal", s->machine_ideal);
    json_close(t, '}');
}

static void party_json(text *t, const char *name, const smk_party *p) {
    json_key(t, name);
    json_open(t, '{');
    json_member_string(t, "file", p->file);
    json_member_signed(t, "line", p->line);
    json_member_string(t, "text", p->text);
    json_member_dims(t, "block", p->block);
    json_member_dims(t, "thread", p->thread);
    callers_json(t, p->callers, p->n_callers);
    json_close(t, '}');
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
    json_open(t, '{');
    json_member_string(t, "kind", kinds[h->kind]);
    json_member_bool(t, "benign", !smk_is_hazard(h->kind));
    party_json(t, "party", &h->party);
    party_json(t, "other", &h->other);
    json_member_string(t, "space", spaces[h->space]);
    json_member_signed(t, "offset", h->offset);
    json_member_signed(t, "width", h->width);
    json_member_signed(t, "buffer", h->buffer);
    json_member_string(t, "variable", h->variable);
    json_member_signed(t, "variableAt", h->variable_at);
    json_member_number(t, "count", h->count);
    json_member_string(t, "message", h->message);
    json_close(t, '}');
}

static void opcodes_json(text *t, const smk_trace *trace) {
    json_key(t, "opcodes");
    json_open(t, '{');
    for (size_t k = 0; k < trace->n_opcodes; k++) {
        const smk_opcode_count *o = &trace->opcodes[k];
        json_key(t, o->opcode);
        json_open(t, '{');
        json_member_number(t, "warps", o->warps);
        json_member_number(t, "lanes", o->lanes);
        json_member_number(t, "flops", o->flops);
        json_close(t, '}');
    }
    json_close(t, '}');
}

static void instruction_json(text *t, const smk_instruction_count *p) {
    json_open(t, '{');
    json_member_string(t, "function", p->function);
    json_member_signed(t, "ptxLine", p->ptx_line);
    json_member_number(t, "warps", p->warps);
    json_member_signed(t, "site", p->site);
    json_member_number(t, "requests", p->requests);
    json_key(t, "wider");
    json_open(t, '[');
    for (int k = 0; k < SMK_N_WIDTHS; k++) {
        const smk_wider_cost *c = &p->wider[k];
        const uint64_t numbers[] = {c->wavefronts,     c->ideal,     c->min_wavefronts,
                                    c->max_wavefronts, c->min_ideal, c->max_ideal};
        json_open(t, '[');
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
            json_number(t, numbers[n]);
        json_close(t, ']');
    }
    json_close(t, ']');
    json_close(t, '}');
}

void trace_json(text *t, const smk_trace *trace) {
    json_open(t, '{');
    json_key(t, "sites");
    json_open(t, '[');
    for (size_t k = 0; k < trace->n_sites; k++)
        site_json(t, &trace->sites[k]);
    json_close(t, ']');
    opcodes_json(t, trace);
    json_member_number(t, "warpInstructions", trace->warp_instructions);
    json_member_number(t, "barriers", trace->barriers);
    json_member_number(t, "flops", trace->flops);
    json_member_number(t, "blocks", trace->blocks);
    json_member_number(t, "gridBlocks", trace->grid_blocks);
    json_member_number(t, "sharedBytes", trace->shared_bytes);
    json_member_bool(t, "checked", trace->checked);
    json_member_bool(t, "incomplete", trace->incomplete);
    json_key(t, "hazards");
    json_open(t, '[');
    for (size_t k = 0; k < trace->n_hazards; k++)
        hazard_json(t, &trace->hazards[k]);
    json_close(t, ']');
    json_key(t, "instructions");
    json_open(t, '[');
    for (size_t k = 0; k < trace->n_instructions; k++)
        instruction_json(t, &trace->instructions[k]);
    json_close(t, ']');
    json_close(t, '}');
}
