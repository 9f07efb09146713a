/* The steps of a hazard's two accesses.
 *
 * The detector notes the step that revealed a hazard: one of the accesses. The other one is the
 * last access before it by that thread, at that instruction, to these bytes: shadow memory keeps
 * no older one. A hazard that was revealed later, at the end of a block, has the last two. */
#include <string.h>

#include "recorder.h"

/* Whether the step is an access of that party; if the hazard has an address, one that touches
 * it. */
static bool is_access_of(const recorder *r, const smk_hazard *h, const smk_party *party,
                         uint32_t step) {
    const columns *c = &r->columns;
    const ptx_instruction *p =
        recorder_instruction(r, column_value(c, COLUMN_step_instruction, step));
    if ((int)p->ptx_line != party->ptx_line || !party->text || strcmp(p->text, party->text))
        return false;
    const recorded_warp *w = &r->warps.items[column_value(c, COLUMN_step_warp, step)];
    const recorded_block *b = &r->blocks.items[w->block];
    const uint32_t *shape = r->launches.items[b->launch].block;
    const uint32_t thread =
        party->thread[0] + shape[0] * (party->thread[1] + shape[1] * party->thread[2]);
    if (memcmp(b->index, party->block, sizeof b->index) || thread / LANES != w->warp) return false;
    (void)h;
    return column_value(c, COLUMN_step_executed, step) >> thread % LANES & 1;
}

static uint64_t vector_lane(const columns *c, uint32_t kind, uint32_t at, uint32_t bytes,
                            uint32_t lane) {
    const uint32_t words = bytes / 4;
    const uint32_t *w = (const uint32_t *)c->column[COLUMN_words].bytes + at;
    uint64_t base = 0, stride = 0;
    memcpy(&base, w + (kind == VECTOR_RAW ? lane * words : 0), bytes);
    if (kind == VECTOR_RAW) return base;
    memcpy(&stride, w + words, bytes);
    return base + lane * stride;
}

/* Whether an access of the step touches the hazard's bytes; true if that is not known. */
static bool touches(const recorder *r, const smk_hazard *h, const smk_party *party, uint32_t step) {
    const columns *c = &r->columns;
    const recorded_warp *w = &r->warps.items[column_value(c, COLUMN_step_warp, step)];
    const uint32_t *shape = r->launches.items[r->blocks.items[w->block].launch].block;
    const uint32_t thread =
        party->thread[0] + shape[0] * (party->thread[1] + shape[1] * party->thread[2]);
    const bool shared = h->space == SMK_SHARED_SPACE;
    const uint64_t mask = shared ? WINDOW_BASE(1) - 1 : REGION_BASE(1) - 1;
    bool known = false;
    for (uint32_t k = column_value(c, COLUMN_first_access, step);
         k < column_value(c, COLUMN_first_access, step + 1); k++) {
        const uint32_t space = column_value(c, COLUMN_access_space, k);
        const uint32_t operation = column_value(c, COLUMN_access_operation, k);
        if (space != (shared ? PTX_SHARED : PTX_GLOBAL)) continue;
        if (operation >= EMU_STORE_ASYNC || operation == EMU_LDMATRIX || operation == EMU_STMATRIX)
            return true;
        known = true;
        if (!(column_value(c, COLUMN_access_active, k) >> thread % LANES & 1)) continue;
        const uint64_t address =
            vector_lane(c, column_value(c, COLUMN_access_kind, k),
                        column_value(c, COLUMN_access_at, k), shared ? 4 : 8, thread % LANES);
        const int64_t first = (int64_t)(address & mask);
        if (first < h->offset + h->width &&
            h->offset < first + (int64_t)column_value(c, COLUMN_access_width, k))
            return true;
    }
    return !known;
}

/* The last matching step before `end`; NONE: there is none. */
static uint32_t last_access(const recorder *r, const smk_hazard *h, const smk_party *party,
                            uint32_t end) {
    for (uint32_t step = end; step-- > 0;)
        if (is_access_of(r, h, party, step) &&
            (h->space == SMK_NO_SPACE || touches(r, h, party, step)))
            return step;
    return NONE;
}

void hazard_steps(const recorder *r, const smk_hazard *h, uint32_t steps[2]) {
    const uint32_t n = (uint32_t)COUNT(r, step_warp);
    const uint64_t first = r->out->first;
    const smk_party *parties[] = {&h->party, &h->other};
    const bool in_window = h->step >= first && h->step - first < n;
    const uint32_t now = in_window ? (uint32_t)(h->step - first) : n;
    const uint32_t end = in_window ? now + 1 : n;
    for (int k = 0; k < 2; k++)
        steps[k] = parties[k]->line && h->step >= first ? last_access(r, h, parties[k], end) : NONE;
}
