/* Requests, what they wrote, and events.
 *
 * A store's values are read from memory after its instruction. What an asynchronous copy writes
 * appears later, when an event reports it done: until then its words remember who issued it. */
#include <string.h>

#include "../cost/wavefront_index.h"
#include "recorder.h"

enum { WORD = 4, MAX_COST = UINT16_MAX };

/* Who writes: `writer` is member * MAX_WARPS + warp; `step` counts from the window's start. */
typedef struct author {
    uint32_t writer, lane, step, instruction;
} author;

static author author_of(recorder *r, const emu_request *q, uint32_t lane, bool recorded) {
    const uint32_t f = recorder_function(r, q->function);
    const bool in_window = recorded && r->phase == IN_WINDOW;
    return (author){.writer = q->member * MAX_WARPS + q->warp,
                    .lane = lane,
                    .step = in_window ? (uint32_t)(r->step - r->out->first) : NONE,
                    .instruction =
                        f == NONE ? NONE : r->functions.items[f].first_instruction + q->index};
}

static void push_write(recorder *r, uint32_t memory, uint64_t word, uint32_t value,
                       const author *by) {
    if (r->phase != IN_WINDOW || memory == NONE) return;
    PUSH(r, write_memory, memory);
    PUSH(r, write_word, word);
    PUSH(r, write_value, value);
    PUSH(r, write_warp, recorder_writer(r, by->writer));
    PUSH(r, write_lane, by->lane);
    PUSH(r, write_step, by->step);
}

/* The word of a memory of `bytes` bytes; its last one may be incomplete. */
static uint32_t read_word(const unsigned char *memory, uint64_t bytes, uint64_t word) {
    const uint64_t left = bytes - word * WORD;
    uint32_t value = 0;
    memcpy(&value, memory + word * WORD, left < WORD ? (size_t)left : WORD);
    return value;
}

/* ---- shared memory ---- */

static void write_shared(recorder *r, uint32_t owner, uint64_t word, const author *by) {
    live_block *b = &r->members.items[owner];
    if (!b->recorded || !b->block || word >= b->n_words) return;
    b->value[word] = read_word(b->block->shared, r->launch->shared_region_bytes, word);
    b->writer[word] = by->writer;
    b->writer_lane[word] = (uint8_t)by->lane;
    b->writer_instruction[word] = by->instruction;
    push_write(r, recorder_shared(r, owner), word, b->value[word], by);
}

static bool has_changed(const recorder *r, uint32_t owner, uint64_t word) {
    const live_block *b = &r->members.items[owner];
    return b->recorded && b->block && word < b->n_words &&
           b->value[word] != read_word(b->block->shared, r->launch->shared_region_bytes, word);
}

static void issue_copy(recorder *r, uint32_t owner, uint64_t word, const author *by) {
    live_block *b = &r->members.items[owner];
    if (!b->recorded || word >= b->n_words) return;
    b->copy_writer[word] = by->writer;
    b->copy_step[word] = by->step;
    b->copy_lane[word] = (uint8_t)by->lane;
    b->copy_instruction[word] = by->instruction;
}

/* A copy to the word, if there is one, has appeared. */
static void finish_copy(recorder *r, uint32_t owner, uint64_t word) {
    live_block *b = &r->members.items[owner];
    if (!b->recorded || word >= b->n_words || b->copy_writer[word] == NONE) return;
    const author by = {b->copy_writer[word], b->copy_lane[word], b->copy_step[word],
                       b->copy_instruction[word]};
    b->copy_writer[word] = NONE;
    write_shared(r, owner, word, &by);
}

static bool is_cas(const ptx_instruction *p) {
    for (uint32_t k = 0; k < p->n_modifiers; k++)
        if (!strcmp(p->modifiers[k], "cas")) return true;
    return false;
}

/* Lanes that write less than a word each may share it: the last one stands for all. */
static bool shares_word_with_next(const emu_request *q, uint32_t lanes) {
    const uint32_t rest = lanes & (lanes - 1);
    return q->width < WORD && rest &&
           q->address[first_lane(rest)] / WORD == q->address[first_lane(lanes)] / WORD;
}

static void shared_request(recorder *r, const emu_request *q, bool recorded) {
    const emu_operation o = q->operation;
    const bool copies = o == EMU_COPY_ASYNC_WRITE || o == EMU_BULK_WRITE;
    if (o != EMU_STORE && o != EMU_STMATRIX && o != EMU_ATOMIC && !copies) return;
    for (uint32_t lanes = q->active; lanes; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)first_lane(lanes);
        const author by = author_of(r, q, o == EMU_BULK_WRITE ? q->bulk_lane : lane, recorded);
        const uint64_t first = q->address[lane] / WORD;
        const uint64_t last = (q->address[lane] + q->width - 1) / WORD;
        if (shares_word_with_next(q, lanes)) continue;
        for (uint64_t word = first; word <= last; word++)
            if (copies)
                issue_copy(r, q->owner, word, &by);
            else if (o != EMU_ATOMIC || !is_cas(q->ptx) || has_changed(r, q->owner, word))
                write_shared(r, q->owner, word, &by);
    }
}

/* ---- global and local memory ---- */

static void global_words(recorder *r, uint64_t address, uint32_t width, const author *by) {
    const uint64_t region = REGION_OF(address), offset = REGION_OFFSET(address);
    const uint32_t memory = recorder_global(r, region);
    if (memory == NONE || r->phase != IN_WINDOW) return;
    const struct region *of = &r->launch->regions[region];
    for (uint64_t word = offset / WORD; word <= (offset + width - 1) / WORD; word++)
        if (word * WORD < of->size)
            push_write(r, memory, word, read_word(of->host, of->size, word), by);
}

/* A bulk copy to global memory appears at a wait. */
static void issue_store(recorder *r, const emu_request *q, bool recorded) {
    if (r->phase != IN_WINDOW || !LIST_ROOM(r, &r->stores)) return;
    pending_store *s = &r->stores.items[r->stores.n++];
    *s = (pending_store){.active = q->active,
                         .width = q->width,
                         .member = q->member,
                         .warp = q->warp,
                         .lane = q->bulk_lane,
                         .step = author_of(r, q, 0, recorded).step};
    memcpy(s->address, q->address, sizeof s->address);
}

static void finish_stores(recorder *r, uint32_t member, uint32_t warp) {
    size_t kept = 0;
    for (size_t k = 0; k < r->stores.n; k++) {
        const pending_store *s = &r->stores.items[k];
        if (s->member != member || (warp != NONE && s->warp != warp)) {
            r->stores.items[kept++] = *s;
            continue;
        }
        const author by = {s->member * MAX_WARPS + s->warp, s->lane, s->step, NONE};
        for (uint32_t lanes = s->active; lanes; lanes &= lanes - 1)
            global_words(r, s->address[first_lane(lanes)], s->width, &by);
    }
    r->stores.n = kept;
}

static void global_request(recorder *r, const emu_request *q, bool recorded) {
    const emu_operation o = q->operation;
    if (request_is_of_surface(q->ptx)) return;
    if (o == EMU_BULK_WRITE) issue_store(r, q, recorded);
    if (o != EMU_STORE && o != EMU_ATOMIC) return;
    for (uint32_t lanes = q->active; lanes; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)first_lane(lanes);
        const author by = author_of(r, q, lane, recorded);
        if (!shares_word_with_next(q, lanes)) global_words(r, q->address[lane], q->width, &by);
    }
}

static void local_request(recorder *r, const warp *w, const emu_request *q, bool recorded) {
    if (q->operation != EMU_STORE || !recorded || r->phase != IN_WINDOW) return;
    const uint32_t memory = recorder_local(r, q->member, q->warp);
    if (memory == NONE) return;
    r->memories.items[memory].bytes = w->local->size;
    for (uint32_t lanes = q->active; lanes; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)first_lane(lanes);
        const author by = author_of(r, q, lane, recorded);
        const uint64_t first = q->address[lane] / WORD;
        const uint64_t last = (q->address[lane] + q->width - 1) / WORD;
        for (uint64_t word = first; word <= last; word++) {
            uint32_t value;
            memcpy(&value, local_at(w->local, (int)lane, word * WORD), sizeof value);
            push_write(r, memory, word * LANES + lane, value, &by);
        }
    }
}

/* ---- accesses ---- */

static request_cost cost_of(recorder *r, const emu_request *q) {
    if (!request_is_counted(q)) return (request_cost){0};
    const bool lanes = q->operation != EMU_STORE_ASYNC && request_is_remote(q);
    return lanes ? remote_access_add(&r->remote, q) : request_cost_of(q);
}

static uint32_t push_waves(recorder *r, const emu_request *q, uint32_t cost) {
    uint8_t index[LANES];
    bool all_first = true;
    if (q->space != PTX_SHARED || cost <= 1 || !request_is_counted(q)) return NONE;
    wavefront_index(q, index);
    for (int l = 0; l < LANES; l++)
        all_first &= index[l] == 0 || index[l] == WAVEFRONT_NONE;
    if (all_first) return NONE;
    const size_t at = COUNT(r, waves);
    void *to = column_extend(&r->columns, COLUMN_waves, sizeof index);
    if (to) memcpy(to, index, sizeof index);
    return (uint32_t)at;
}

static uint32_t memory_of(recorder *r, const emu_request *q) {
    if (q->space == PTX_SHARED) return recorder_shared(r, q->owner);
    return q->space == PTX_LOCAL ? recorder_local(r, q->member, q->warp) : NONE;
}

/* Sums of remote accesses can go down by another lane: then it adds nothing. */
static uint32_t limited(uint32_t cost) {
    return (int32_t)cost < 0 ? 0 : cost < MAX_COST ? cost : MAX_COST;
}

static void push_access(recorder *r, const emu_request *q) {
    const request_cost cost = cost_of(r, q);
    const uint32_t address_bytes = q->space == PTX_GLOBAL ? 8 : 4;
    PUSH(r, access_operation, q->operation);
    PUSH(r, access_memory, memory_of(r, q));
    PUSH(r, access_space, q->space);
    PUSH(r, access_width, q->width);
    PUSH(r, access_active, q->active);
    PUSH(r, access_at, COUNT(r, words));
    PUSH(r, access_kind, vector_push_addresses(&r->columns, q->address, q->active, address_bytes));
    PUSH(r, access_cost, limited(cost.actual));
    PUSH(r, access_ideal, limited(cost.ideal));
    PUSH(r, access_waves, push_waves(r, q, cost.actual));
    PUSH(r, access_words, NONE);
}

static void take_request(recorder *r, const warp *w, const emu_request *q, bool recorded) {
    if (recorded && r->phase == IN_WINDOW) push_access(r, q);
    if (q->space == PTX_SHARED) shared_request(r, q, recorded);
    if (q->space == PTX_GLOBAL) global_request(r, q, recorded);
    if (q->space == PTX_LOCAL) local_request(r, w, q, recorded);
}

/* ---- events ---- */

static void push_event(recorder *r, const emu_sync *e) {
    const size_t n = COUNT(r, event_kind);
    const bool complete = e->kind == EMU_BARRIER_COMPLETE;
    const uint32_t warp = recorder_warp(r, e->member, complete ? 0 : e->warp);
    const uint32_t flags = (uint32_t)e->arrive_only | (uint32_t)e->again << 1;
    const size_t first = column_value(&r->columns, COLUMN_first_event, COUNT(r, first_event) - 1);
    const columns *c = &r->columns;
    /* Lanes may be reported one by one. */
    if (n > first && column_value(c, COLUMN_event_kind, n - 1) == (uint32_t)e->kind &&
        column_value(c, COLUMN_event_warp, n - 1) == warp &&
        column_value(c, COLUMN_event_object, n - 1) == e->object &&
        column_value(c, COLUMN_event_flags, n - 1) == flags) {
        const uint32_t lanes = column_value(c, COLUMN_event_lanes, n - 1);
        column_set(&r->columns, COLUMN_event_lanes, n - 1, lanes | e->lanes);
        return;
    }
    PUSH(r, event_kind, e->kind);
    PUSH(r, event_warp, warp);
    PUSH(r, event_lanes, complete ? 0 : e->lanes);
    PUSH(r, event_object, e->object);
    PUSH(r, event_flags, flags);
}

static void finish_range(recorder *r, uint32_t owner, uint64_t offset, uint32_t bytes) {
    for (uint64_t word = offset / WORD; bytes && word <= (offset + bytes - 1) / WORD; word++)
        finish_copy(r, owner, word);
}

/* Words that a copy changed without an event that names them, as swizzled boxes may. */
static void finish_changed(recorder *r, uint32_t owner, const author *otherwise) {
    const live_block *b = &r->members.items[owner];
    if (!b->recorded || !b->block) return;
    for (uint32_t word = 0; word < b->n_words; word++) {
        if (!has_changed(r, owner, word)) continue;
        if (b->copy_writer[word] != NONE)
            finish_copy(r, owner, word);
        else
            write_shared(r, owner, word, otherwise);
    }
}

static void take_event(recorder *r, const emu_sync *e, const uint64_t address[LANES],
                       const author *by) {
    enum { MBARRIER_WORDS = 2 };
    if (e->kind == EMU_COPY_DONE) {
        for (uint32_t lanes = e->lanes; lanes; lanes &= lanes - 1)
            finish_range(r, e->owner, address[first_lane(lanes)], e->width);
    } else if (e->kind == EMU_MBARRIER_ARRIVE && e->address) {
        finish_range(r, e->owner, address[0], e->width);
        finish_changed(r, e->owner, by);
    } else if (e->kind == EMU_MBARRIER_ARRIVE || e->kind == EMU_MBARRIER_INIT ||
               e->kind == EMU_MBARRIER_WAIT) {
        for (uint32_t k = 0; k < MBARRIER_WORDS; k++)
            if (has_changed(r, e->owner, e->object / WORD + k))
                write_shared(r, e->owner, e->object / WORD + k, by);
    }
}

/* cp.async.bulk.wait_group 0, which is not .read */
static bool waits_for_stores(const ptx_instruction *p) {
    bool bulk = false, wait = false, read = false;
    for (uint32_t k = 0; p && p->op == PTX_OP_cp && k < p->n_modifiers; k++) {
        bulk |= !strcmp(p->modifiers[k], "bulk");
        wait |= !strcmp(p->modifiers[k], "wait_group");
        read |= !strcmp(p->modifiers[k], "read");
    }
    return bulk && wait && !read && p->n_operands == 1 && !p->operands[0].bits;
}

void accesses_step(recorder *r, const warp *w, const insn *i, bool recorded) {
    for (size_t k = 0; k < r->requests.n; k++) {
        pending_request *p = &r->requests.items[k];
        p->request.address = p->address;
        p->request.source = p->request.source ? p->source : NULL;
        take_request(r, w, &p->request, recorded);
    }
    for (size_t k = 0; k < r->events.n; k++) {
        const pending_event *p = &r->events.items[k];
        const emu_sync *e = &p->sync;
        const bool in_window = r->phase == IN_WINDOW;
        const author by = {.writer = w->block->member * MAX_WARPS + e->warp,
                           .lane = e->lanes ? (uint32_t)first_lane(e->lanes) : 0,
                           .step =
                               recorded && in_window ? (uint32_t)(r->step - r->out->first) : NONE,
                           .instruction = NONE};
        take_event(r, e, p->address, &by);
        if (in_window && (recorded || e->kind == EMU_BARRIER_COMPLETE)) push_event(r, e);
    }
    r->requests.n = r->events.n = 0;
    if (r->stores.n && waits_for_stores(i->ptx)) finish_stores(r, w->block->member, w->index);
}

void accesses_end_block(recorder *r, uint32_t member) {
    finish_stores(r, member, NONE);
}

/* ---- the window's start ---- */

enum { MAX_ARRAY_SNAPSHOT = 256 << 10, MAX_SNAPSHOT_PART = 8 };

/* Appends a memory's words; others than shared ones only if they are not too many. */
static uint32_t *snapshot(recorder *r, recorded_memory *m, size_t words) {
    const size_t at = COUNT(r, memory_words);
    const bool many = at + words > r->out->max_bytes / MAX_SNAPSHOT_PART / WORD;
    if (many && m->kind != MEMORY_SHARED) return NULL;
    void *warp = column_extend(&r->columns, COLUMN_memory_warp, words);
    void *instruction = column_extend(&r->columns, COLUMN_memory_instruction, words);
    void *lane = column_extend(&r->columns, COLUMN_memory_lane, words);
    uint32_t *to = column_extend(&r->columns, COLUMN_memory_words, words);
    if (!warp || !instruction || !lane || !to) return NULL;
    memset(warp, 0xff, words * WORD);
    memset(instruction, 0xff, words * WORD);
    m->at = (uint32_t)at;
    m->words = (uint32_t)words;
    return to;
}

static void snapshot_region(recorder *r, recorded_memory *m, const region *from) {
    if (!from->host || !from->size || from->size > MAX_ARRAY_SNAPSHOT) return;
    const size_t bytes = (size_t)from->size;
    uint32_t *to = snapshot(r, m, (bytes + WORD - 1) / WORD);
    if (to) memcpy(to, from->host, bytes);
}

static void snapshot_shared(recorder *r, uint32_t member) {
    const uint32_t memory = recorder_shared(r, member);
    const live_block *b = &r->members.items[member];
    uint32_t *to = memory == NONE ? NULL : snapshot(r, &r->memories.items[memory], b->n_words);
    if (!to) return;
    memcpy(to, b->value, b->n_words * sizeof *to);
    const uint32_t at = r->memories.items[memory].at;
    for (uint32_t k = 0; k < b->n_words; k++) {
        if (b->writer[k] == NONE) continue;
        column_set(&r->columns, COLUMN_memory_warp, at + k, recorder_writer(r, b->writer[k]));
        column_set(&r->columns, COLUMN_memory_lane, at + k, b->writer_lane[k]);
        column_set(&r->columns, COLUMN_memory_instruction, at + k, b->writer_instruction[k]);
    }
}

static void snapshot_local(recorder *r, uint32_t member, const warp *w) {
    const size_t words = (size_t)w->local->size / WORD * LANES;
    if (!words || words * WORD > MAX_ARRAY_SNAPSHOT) return;
    const uint32_t memory = recorder_local(r, member, w->index);
    if (memory == NONE) return;
    r->memories.items[memory].bytes = w->local->size;
    uint32_t *to = snapshot(r, &r->memories.items[memory], words);
    for (uint64_t k = 0; to && k < words; k++)
        memcpy(&to[k], local_at(w->local, (int)(k % LANES), k / LANES * WORD), WORD);
}

void memory_snapshot(recorder *r) {
    const region *regions = r->launch->regions;
    for (size_t k = 0; k < r->job->n_buffers; k++)
        snapshot_region(r, &r->memories.items[k], &regions[REGION_BUFFERS + k]);
    snapshot_region(r, &r->memories.items[r->job->n_buffers], &regions[REGION_GLOBAL]);
    for (uint32_t member = 0; member < r->members.n; member++) {
        const live_block *b = &r->members.items[member];
        if (!b->live || !b->recorded) continue;
        snapshot_shared(r, member);
        for (uint32_t k = 0; b->block && k < r->launch->n_warps; k++)
            if (b->warps[k].recorded) snapshot_local(r, member, &b->block->warps[k]);
    }
}
