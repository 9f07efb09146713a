/* Copies of MiB suit the engine, of less the threads: so these fill (and empty) a slot together, and whoever comes last
 * puts the whole piece on its stream. */
#include "flow_slots.h"

#include "flow_group.h"

enum { SHARES = 8, LEAST_SHARE = 128 << 10, MOST_SHARE = 256 << 10 };

static size_t share_bytes(const smk_rectangle *r) {
    const size_t bytes = r->width * r->lines / SHARES;
    return bytes < LEAST_SHARE ? LEAST_SHARE : bytes < MOST_SHARE ? bytes : MOST_SHARE;
}

static flow_slot *slot_at(flow_ring *r, size_t i) {
    return r->n ? &r->slots[i % r->n] : NULL;
}

smk_code flow_slots_take(flow_state *f, smk_status *status) {
    const size_t most[STAGE_WAYS] = {[STAGE_IN] = SLOTS_IN, [STAGE_OUT] = SLOTS_OUT};
    const int n_flows = f->group ? f->group->n : 1;
    for (size_t k = 0; k < SLOTS_OUT; k++) {
        for (int way = 0; way < STAGE_WAYS; way++) {
            flow_ring *r = &f->rings[way];
            const bool first = k == 0 && (way == STAGE_IN || f->staged[way]);
            smk_status ignored = {0};
            if (!first && (k >= f->staged[way] || k >= most[way])) continue;
            if (stage_take(f->d, n_flows, &r->slots[k].stage, first ? status : &ignored)) {
                if (first) return status->code;
                return SMK_OK;
            }
            r->n++;
        }
    }
    return SMK_OK;
}

/* The flow's memory is freed behind its first lane, and so behind those who still read there what it has brought. */
static void await_readers(const flow_state *f, const stage *s) {
    for (int i = 0; i < s->n_copied; i++)
        if (f->passing && !stage_has_come(&s->copied[i]))
            stage_await(f->d, &s->copied[i], f->lanes[0]);
}

void flow_slots_give(flow_state *f) {
    for (size_t i = 0; i < f->rings[STAGE_IN].n; i++)
        await_readers(f, f->rings[STAGE_IN].slots[i].stage);
    for (int way = 0; way < STAGE_WAYS; way++)
        while (f->rings[way].n)
            stage_give(f->d, f->rings[way].slots[--f->rings[way].n].stage);
}

/* ---- with the lock held ---- */

static void open_slot(flow_ring *r, flow_slot *s, const flow_piece *piece) {
    *s = (flow_slot){.stage = s->stage, .piece = *piece, .open = true};
    s->cut = flow_cut_into(&piece->rectangle, share_bytes(&piece->rectangle));
    r->opened++;
}

/* In a slot lines follow each other. */
static flow_answer share(flow_slot *s, flow_deed deed, flow_task *out) {
    smk_rectangle r = s->piece.rectangle;
    r.offset = 0;
    r.pitch = r.width;
    out->deed = deed;
    out->slot = s;
    out->share = flow_joined(flow_part(&r, &s->cut, s->taken++));
    return FLOW_TAKEN;
}

static void watch(flow_task *out, const flow_slot *s) {
    const stage_mark *mark = stage_in_use(s->stage);
    if (mark) out->watched[out->n_watched++] = *mark;
}

static flow_answer put(flow_slot *s, flow_task *out) {
    out->deed = FLOW_PUT;
    out->slot = s;
    return FLOW_TAKEN;
}

static flow_answer next_out(flow_state *f, bool helps, flow_task *out) {
    flow_ring *r = &f->rings[STAGE_OUT];
    flow_slot *free_one = slot_at(r, r->opened), *oldest = slot_at(r, r->emptied);
    const flow_asker who = {free_one && !free_one->open, helps};
    const flow_answer answer = flow_take(f, STAGE_OUT, who, &out->piece);
    if (answer == FLOW_TAKEN) {
        if (out->piece.direct) return put(NULL, out);
        open_slot(r, free_one, &out->piece);
        return put(free_one, out);
    }
    if (r->emptied == r->opened) return answer;
    if (oldest->queued && !stage_in_use(oldest->stage)) {
        r->emptied += oldest->taken + 1 == oldest->cut.n;
        return share(oldest, FLOW_COPY_OUT, out);
    }
    if (oldest->queued) watch(out, oldest);
    return FLOW_NOT_YET;
}

static flow_answer next_in(flow_state *f, bool helps, flow_task *out) {
    flow_ring *r = &f->rings[STAGE_IN];
    flow_slot *last = r->opened ? slot_at(r, r->opened - 1) : NULL, *s = slot_at(r, r->opened);
    if (last && last->taken < last->cut.n) return share(last, FLOW_COPY_IN, out);
    const bool closed = s && !s->open;
    const flow_asker who = {closed && !stage_in_use(s->stage), helps};
    const flow_answer answer = flow_take(f, STAGE_IN, who, &out->piece);
    if (answer == FLOW_TAKEN) {
        if (out->piece.direct) return put(NULL, out);
        open_slot(r, s, &out->piece);
        return share(s, FLOW_COPY_IN, out);
    }
    if (answer == FLOW_NOT_YET && closed && !who.has_slot) watch(out, s);
    return answer;
}

/* ---------------------------- */

flow_answer flow_next(flow_state *f, bool helps, flow_task *out) {
    out->n_watched = 0;
    wait_for_lock(&f->lock);
    flow_answer answer = f->stopped ? FLOW_NO_MORE : next_out(f, helps, out);
    if (answer != FLOW_TAKEN && !f->stopped) {
        const flow_answer in = next_in(f, helps, out);
        answer = in == FLOW_NO_MORE ? answer : in;
    }
    pthread_mutex_unlock(&f->lock);
    return answer;
}

bool flow_copied(flow_state *f, const flow_task *task) {
    flow_slot *s = task->slot;
    wait_for_lock(&f->lock);
    const bool last = ++s->copied == s->cut.n, in = task->deed == FLOW_COPY_IN;
    const bool is_due = last && in && f->may_put;
    if (last && !in) {
        s->open = false;
        flow_change(f);
    }
    pthread_mutex_unlock(&f->lock);
    return is_due;
}

int flow_slots_open(flow_state *f, flow_slot **full) {
    flow_ring *r = &f->rings[STAGE_IN];
    int n = 0;
    wait_for_lock(&f->lock);
    f->may_put = true;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].open && r->slots[i].copied == r->slots[i].cut.n) full[n++] = &r->slots[i];
    pthread_mutex_unlock(&f->lock);
    return n;
}
