/* Copies of MiB suit the engine, of less the threads: so these fill (and empty) a slot together, and whoever comes last
 * puts the whole piece on its stream. */
#include "staging_ring.h"

#include "peer_group.h"

enum { SHARES = 8, LEAST_SHARE = 128 << 10, MOST_SHARE = 256 << 10 };

static size_t share_bytes(const smk_rectangle *r) {
    const size_t bytes = r->width * r->lines / SHARES;
    return bytes < LEAST_SHARE ? LEAST_SHARE : bytes < MOST_SHARE ? bytes : MOST_SHARE;
}

static staging_slot *slot_at(staging_ring *r, size_t i) {
    return r->n ? &r->slots[i % r->n] : NULL;
}

smk_code staging_rings_take(pipeline_state *f, smk_status *status) {
    const size_t most[STAGE_WAYS] = {[STAGE_IN] = SLOTS_IN, [STAGE_OUT] = SLOTS_OUT};
    const int n_flows = f->group ? f->group->n : 1;
    for (size_t k = 0; k < SLOTS_OUT; k++) {
        for (int way = 0; way < STAGE_WAYS; way++) {
            staging_ring *r = &f->rings[way];
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
static void await_readers(const pipeline_state *f, const stage *s) {
    for (int i = 0; i < s->n_copied; i++)
        if (f->passing && !stage_done(&s->copied[i])) stage_wait(f->d, &s->copied[i], f->lanes[0]);
}

void staging_rings_give(pipeline_state *f) {
    for (size_t i = 0; i < f->rings[STAGE_IN].n; i++)
        await_readers(f, f->rings[STAGE_IN].slots[i].stage);
    for (int way = 0; way < STAGE_WAYS; way++)
        while (f->rings[way].n)
            stage_give(f->d, f->rings[way].slots[--f->rings[way].n].stage);
}

/* ---- with the lock held ---- */

static void open_slot(staging_ring *r, staging_slot *s, const chunk *piece) {
    *s = (staging_slot){.stage = s->stage, .piece = *piece, .open = true};
    s->cut = cut_into_chunks(&piece->rectangle, share_bytes(&piece->rectangle));
    r->opened++;
}

/* In a slot lines follow each other. */
static poll_result share(staging_slot *s, work_kind deed, work_item *out) {
    smk_rectangle r = s->piece.rectangle;
    r.offset = 0;
    r.pitch = r.width;
    out->deed = deed;
    out->slot = s;
    out->share = joined_lines(flow_part(&r, &s->cut, s->taken++));
    return POLL_TAKEN;
}

static void watch(work_item *out, const staging_slot *s) {
    const stage_fence *mark = stage_in_use(s->stage);
    if (mark) out->watched[out->n_watched++] = *mark;
}

static poll_result put(staging_slot *s, work_item *out) {
    out->deed = WORK_ENQUEUE;
    out->slot = s;
    return POLL_TAKEN;
}

static poll_result next_out(pipeline_state *f, bool helps, work_item *out) {
    staging_ring *r = &f->rings[STAGE_OUT];
    staging_slot *free_one = slot_at(r, r->opened), *oldest = slot_at(r, r->emptied);
    const poll_caller who = {free_one && !free_one->open, helps};
    const poll_result answer = tasks_poll_copy(f, STAGE_OUT, who, &out->piece);
    if (answer == POLL_TAKEN) {
        if (out->piece.direct) return put(NULL, out);
        open_slot(r, free_one, &out->piece);
        return put(free_one, out);
    }
    if (r->emptied == r->opened) return answer;
    if (oldest->queued && !stage_in_use(oldest->stage)) {
        r->emptied += oldest->taken + 1 == oldest->cut.n;
        return share(oldest, WORK_COPY_OUT, out);
    }
    if (oldest->queued) watch(out, oldest);
    return POLL_NOT_YET;
}

static poll_result next_in(pipeline_state *f, bool helps, work_item *out) {
    staging_ring *r = &f->rings[STAGE_IN];
    staging_slot *last = r->opened ? slot_at(r, r->opened - 1) : NULL, *s = slot_at(r, r->opened);
    if (last && last->taken < last->cut.n) return share(last, WORK_COPY_IN, out);
    const bool closed = s && !s->open;
    const poll_caller who = {closed && !stage_in_use(s->stage), helps};
    const poll_result answer = tasks_poll_copy(f, STAGE_IN, who, &out->piece);
    if (answer == POLL_TAKEN) {
        if (out->piece.direct) return put(NULL, out);
        open_slot(r, s, &out->piece);
        return share(s, WORK_COPY_IN, out);
    }
    if (answer == POLL_NOT_YET && closed && !who.has_slot) watch(out, s);
    return answer;
}

/* ---------------------------- */

poll_result staging_poll(pipeline_state *f, bool helps, work_item *out) {
    out->n_watched = 0;
    wait_for_lock(&f->lock);
    poll_result answer = f->stopped ? POLL_DONE : next_out(f, helps, out);
    if (answer != POLL_TAKEN && !f->stopped) {
        const poll_result in = next_in(f, helps, out);
        answer = in == POLL_DONE ? answer : in;
    }
    pthread_mutex_unlock(&f->lock);
    return answer;
}

bool staging_copied(pipeline_state *f, const work_item *task) {
    staging_slot *s = task->slot;
    wait_for_lock(&f->lock);
    const bool last = ++s->copied == s->cut.n, in = task->deed == WORK_COPY_IN;
    const bool is_due = last && in && f->may_put;
    if (last && !in) {
        s->open = false;
        tasks_notify(f);
    }
    pthread_mutex_unlock(&f->lock);
    return is_due;
}

int staging_rings_open(pipeline_state *f, staging_slot **full) {
    staging_ring *r = &f->rings[STAGE_IN];
    int n = 0;
    wait_for_lock(&f->lock);
    f->may_put = true;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].open && r->slots[i].copied == r->slots[i].cut.n) full[n++] = &r->slots[i];
    pthread_mutex_unlock(&f->lock);
    return n;
}
