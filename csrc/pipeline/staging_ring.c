/* The copy engine needs transfers of MiB, threads need smaller parts. So several threads fill (or
 * empty) a slot in slices, and the last one enqueues the transfer. */
#include "staging_ring.h"

#include "peer_group.h"

static size_t slice_bytes(const smk_rectangle *r) {
    enum { SLICES = 8, MIN_SLICE = 128 << 10, MAX_SLICE = 256 << 10 };
    const size_t bytes = r->width * r->height / SLICES;
    return bytes < MIN_SLICE ? MIN_SLICE : bytes < MAX_SLICE ? bytes : MAX_SLICE;
}

static staging_slot *slot_at(staging_ring *r, size_t i) {
    return r->n ? &r->slots[i % r->n] : NULL;
}

smk_code staging_rings_take(pipeline_state *p, smk_status *status) {
    const size_t max_slots[STAGE_WAYS] = {[STAGE_IN] = SLOTS_IN, [STAGE_OUT] = SLOTS_OUT};
    const int n_pipelines = p->group ? p->group->n : 1;
    for (size_t k = 0; k < SLOTS_OUT; k++) {
        for (int way = 0; way < STAGE_WAYS; way++) {
            staging_ring *r = &p->rings[way];
            const bool required = k == 0 && (way == STAGE_IN || p->unstaged[way]);
            smk_status ignored = {0};
            if (!required && (k >= p->unstaged[way] || k >= max_slots[way])) continue;
            if (stage_take(p->d, n_pipelines, &r->slots[k].stage, required ? status : &ignored))
                return required ? status->code : SMK_OK;
            r->n++;
        }
    }
    return SMK_OK;
}

/* Peers may still copy from this device's memory. That memory is freed on the first compute stream,
 * so make it wait for them. */
static void wait_for_peers(const pipeline_state *p, const stage *s) {
    for (int i = 0; i < s->n_copied; i++)
        if (p->peer_stream && !stage_done(&s->copied[i]))
            stage_wait(p->d, &s->copied[i], p->compute_streams[0]);
}

void staging_rings_give(pipeline_state *p) {
    for (size_t i = 0; i < p->rings[STAGE_IN].n; i++)
        wait_for_peers(p, p->rings[STAGE_IN].slots[i].stage);
    for (int way = 0; way < STAGE_WAYS; way++)
        while (p->rings[way].n)
            stage_give(p->d, p->rings[way].slots[--p->rings[way].n].stage);
}

/* ---- with the lock held ---- */

static void open_slot(staging_ring *r, staging_slot *s, const chunk *chunk) {
    *s = (staging_slot){.stage = s->stage, .chunk = *chunk, .open = true};
    s->slices = cut_into_chunks(&chunk->rectangle, slice_bytes(&chunk->rectangle));
    r->opened++;
}

/* Takes the slot's next slice. In a slot rows are adjacent. */
static poll_result take_slice(staging_slot *s, work_kind kind, work_item *out) {
    smk_rectangle r = s->chunk.rectangle;
    r.offset = 0;
    r.pitch = r.width;
    out->kind = kind;
    out->slot = s;
    out->slice = join_rows(chunk_at(&r, &s->slices, s->taken++));
    return POLL_TAKEN;
}

static void watch(work_item *out, const staging_slot *s) {
    const stage_fence *fence = stage_in_use(s->stage);
    if (fence) out->watched[out->n_watched++] = *fence;
}

static poll_result enqueue(staging_slot *s, work_item *out) {
    out->kind = WORK_ENQUEUE;
    out->slot = s;
    return POLL_TAKEN;
}

static poll_result poll_out(pipeline_state *p, bool is_worker, work_item *out) {
    staging_ring *r = &p->rings[STAGE_OUT];
    staging_slot *next = slot_at(r, r->opened), *oldest = slot_at(r, r->emptied);
    const poll_caller who = {.has_slot = next && !next->open, .is_worker = is_worker};
    const poll_result result = tasks_poll_copy(p, STAGE_OUT, who, &out->chunk);
    if (result == POLL_TAKEN) {
        if (out->chunk.direct) return enqueue(NULL, out);
        open_slot(r, next, &out->chunk);
        return enqueue(next, out);
    }
    if (r->emptied == r->opened) return result;
    if (oldest->enqueued && !stage_in_use(oldest->stage)) {
        r->emptied += oldest->taken + 1 == oldest->slices.n;
        return take_slice(oldest, WORK_COPY_OUT, out);
    }
    if (oldest->enqueued) watch(out, oldest);
    return POLL_NOT_YET;
}

static poll_result poll_in(pipeline_state *p, bool is_worker, work_item *out) {
    staging_ring *r = &p->rings[STAGE_IN];
    staging_slot *last = r->opened ? slot_at(r, r->opened - 1) : NULL;
    staging_slot *next = slot_at(r, r->opened);
    if (last && last->taken < last->slices.n) return take_slice(last, WORK_COPY_IN, out);
    const bool closed = next && !next->open;
    const poll_caller who = {.has_slot = closed && !stage_in_use(next->stage),
                             .is_worker = is_worker};
    const poll_result result = tasks_poll_copy(p, STAGE_IN, who, &out->chunk);
    if (result == POLL_TAKEN) {
        if (out->chunk.direct) return enqueue(NULL, out);
        open_slot(r, next, &out->chunk);
        return take_slice(next, WORK_COPY_IN, out);
    }
    if (result == POLL_NOT_YET && closed && !who.has_slot) watch(out, next);
    return result;
}

/* ---- without the lock ---- */

poll_result staging_poll(pipeline_state *p, bool is_worker, work_item *out) {
    out->n_watched = 0;
    wait_for_lock(&p->lock);
    poll_result result = p->stopped ? POLL_DONE : poll_out(p, is_worker, out);
    if (result != POLL_TAKEN && !p->stopped) {
        const poll_result in = poll_in(p, is_worker, out);
        result = in == POLL_DONE ? result : in;
    }
    pthread_mutex_unlock(&p->lock);
    return result;
}

bool staging_copied(pipeline_state *p, const work_item *item) {
    staging_slot *s = item->slot;
    wait_for_lock(&p->lock);
    const bool last = ++s->copied == s->slices.n, in = item->kind == WORK_COPY_IN;
    const bool enqueue = last && in && p->memory_ready;
    if (last && !in) {
        s->open = false;
        tasks_notify(p);
    }
    pthread_mutex_unlock(&p->lock);
    return enqueue;
}

int staging_rings_open(pipeline_state *p, staging_slot **full) {
    staging_ring *r = &p->rings[STAGE_IN];
    int n = 0;
    wait_for_lock(&p->lock);
    p->memory_ready = true;
    for (size_t i = 0; i < r->n; i++)
        if (r->slots[i].open && r->slots[i].copied == r->slots[i].slices.n)
            full[n++] = &r->slots[i];
    pthread_mutex_unlock(&p->lock);
    return n;
}
