/* What happens before what; see hazards_order.h. */
#include "happens_before.h"

#include <stdlib.h>
#include <string.h>

/* What a block has released, as of then; blocks after it can acquire it. */
struct release_note {
    struct release_note *next; /* of all notes */
    struct release_note *walk; /* of those that acquire() has still to look at */
    vector_clock *own;
    uint64_t block;
    uint64_t visited;             /* by which block last, plus 1 */
    struct release_note **before; /* what that block had acquired itself, directly */
    size_t n_before;
};
typedef struct release_note release_note;

/* ---- vector_clock ---- */

static vector_clock *keep(vector_clock *k) {
    if (k) k->holders++;
    return k;
}

static bool charge(happens_before *hb, uint64_t bytes) {
    if (bytes > MAX_HB_BYTES - hb->bytes) hb->out_of_memory = true;
    if (hb->out_of_memory) return false;
    hb->bytes += bytes;
    return true;
}

static uint64_t clock_bytes(const happens_before *hb) {
    return sizeof(vector_clock) + hb->n_threads * sizeof(uint32_t);
}

static void drop(happens_before *hb, vector_clock *k) {
    if (!k || --k->holders) return;
    hb->bytes -= clock_bytes(hb);
    free(k);
}

/* A copy that only the caller holds; of nothing: all zeros. */
static vector_clock *copy_of(happens_before *hb, const vector_clock *k) {
    const uint64_t bytes = clock_bytes(hb);
    vector_clock *fresh = charge(hb, bytes) ? calloc(1, bytes) : NULL;
    if (!fresh) {
        hb->out_of_memory = true;
        return NULL;
    }
    if (k) memcpy(fresh, k, bytes);
    fresh->holders = 1;
    fresh->n = hb->n_threads;
    return fresh;
}

static void raise_to(vector_clock *k, const vector_clock *other) {
    if (!other) return;
    for (uint32_t t = 0; t < k->n; t++)
        k->times[t] = other->times[t] > k->times[t] ? other->times[t] : k->times[t];
}

/* *k, to be changed. */
static vector_clock *unshared(happens_before *hb, vector_clock **k) {
    if (*k && (*k)->holders == 1) return *k;
    vector_clock *fresh = copy_of(hb, *k);
    if (!fresh) return NULL;
    drop(hb, *k);
    return *k = fresh;
}

static void join(happens_before *hb, vector_clock **k, vector_clock *news) {
    if (!*k)
        *k = keep(news);
    else if (news && unshared(hb, k))
        raise_to(*k, news);
}

/* ---- life ---- */

bool hb_init(happens_before *hb, const launch *l, bool fine, bool sequential) {
    *hb = (happens_before){.time = 1,
                           .n_threads = l->block[0] * l->block[1] * l->block[2],
                           .n_warps = l->n_warps,
                           .fine = fine,
                           .sequential = sequential};
    if (fine) {
        hb->peers = calloc(hb->n_warps, sizeof *hb->peers);
        hb->clocks = calloc(hb->n_threads, sizeof(vector_clock *));
        hb->fenced = calloc(hb->n_threads, sizeof *hb->fenced);
        if (!hb->peers || !hb->clocks || !hb->fenced) return false;
    }
    if (sequential) {
        hb->n_acquired = l->n_blocks;
        hb->acquired = calloc(l->n_blocks, sizeof(vector_clock *));
        hb->begins = calloc(l->n_blocks + 1, sizeof *hb->begins);
        if (!hb->acquired || !hb->begins) return false;
    }
    return true;
}

static void free_clocks(happens_before *hb) {
    for (uint32_t t = 0; hb->clocks && t < hb->n_threads; t++) {
        drop(hb, hb->clocks[t]);
        hb->clocks[t] = NULL;
    }
}

static void forget_blocks(happens_before *hb) {
    for (uint64_t k = 0; hb->n_direct && k < hb->n_acquired; k++) {
        drop(hb, hb->acquired[k]);
        hb->acquired[k] = NULL;
    }
    hb->n_direct = 0;
}

void hb_free(happens_before *hb) {
    free_clocks(hb);
    for (int k = 0; k < N_BARRIERS; k++)
        drop(hb, hb->barriers[k]);
    for (size_t k = 0; k < hb->table_size; k++)
        drop(hb, hb->table[k].own);
    forget_blocks(hb);
    for (release_note *n = hb->all_notes, *next; n; n = next) {
        next = n->next;
        drop(hb, n->own);
        free(n->before);
        free(n);
    }
    free(hb->peers);
    free(hb->clocks);
    free(hb->fenced);
    free(hb->table);
    free(hb->acquired);
    free(hb->direct);
    free(hb->begins);
}

bool hb_begin_block(happens_before *hb, uint64_t block) {
    const bool runs_out = hb->time > TIME_IN_FLIGHT / 2;
    if (runs_out) {
        hb->time = 0;
        memset(hb->warp_floor, 0, sizeof hb->warp_floor);
        if (hb->peers) memset(hb->peers, 0, hb->n_warps * sizeof *hb->peers);
    }
    hb->block = block;
    hb->begin = hb->floor = ++hb->time;
    hb->any_fence = false;
    if (hb->fine) {
        free_clocks(hb);
        memset(hb->fenced, 0, hb->n_threads * sizeof *hb->fenced);
        for (int k = 0; k < N_BARRIERS; k++) {
            drop(hb, hb->barriers[k]);
            hb->barriers[k] = NULL;
        }
    }
    if (hb->sequential) {
        forget_blocks(hb);
        hb->begins[block] = hb->begin;
        hb->n_begins = block + 1;
    }
    return !runs_out;
}

/* ---- the question ---- */

/* The block whose time it was. */
static uint64_t block_at(const happens_before *hb, uint32_t time) {
    uint64_t low = 0, high = hb->n_begins;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (hb->begins[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool hb_before(const happens_before *hb, epoch m, uint32_t thread) {
    const uint32_t time = epoch_time(m), other = epoch_thread(m);
    if (time < hb->begin) {
        if (!hb->sequential) return false;
        const vector_clock *k = hb->acquired[block_at(hb, time)];
        return k && k->times[other] > time;
    }
    if (time < hb->floor) return true;
    if (time == TIME_IN_FLIGHT) return false;
    if (other == thread) return epoch_kind(m) != SEVERAL_STRONG || hb->fine;
    if (!hb->fine) return false;
    const uint32_t warp = thread / LANES;
    if (other / LANES == warp &&
        (time < hb->warp_floor[warp] || time < hb->peers[warp][thread % LANES][other % LANES]))
        return true;
    return hb->clocks[thread] && time < hb->clocks[thread]->times[other];
}

/* ---- barriers ---- */

void hb_barrier_all(happens_before *hb) {
    hb->floor = ++hb->time;
    if (hb->fine) free_clocks(hb);
}

void hb_sync_lanes(happens_before *hb, uint32_t warp, uint32_t lanes) {
    const uint32_t left = hb->n_threads - warp * LANES;
    const uint32_t all = left >= LANES ? FULL : (1u << left) - 1;
    const uint32_t now = ++hb->time;
    vector_clock *joint = NULL, *last = NULL;
    bool differs = false;
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        vector_clock *k = hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        differs |= todo != lanes && k != last;
        last = k;
    }
    if (lanes == all)
        hb->warp_floor[warp] = now;
    else
        for (uint32_t a = lanes; a; a &= a - 1)
            for (uint32_t peer = 0; peer < LANES; peer++) {
                /* What one of them knows of a lane, all of them know now. */
                uint32_t most = lanes >> peer & 1 ? now : 0;
                for (uint32_t b = lanes; b; b &= b - 1) {
                    const uint32_t seen = hb->peers[warp][__builtin_ctz(b)][peer];
                    most = seen > most ? seen : most;
                }
                hb->peers[warp][__builtin_ctz(a)][peer] = most;
            }
    if (!differs) return;
    for (uint32_t todo = lanes; todo; todo &= todo - 1)
        join(hb, &joint, hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)]);
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        vector_clock **k = &hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        drop(hb, *k);
        *k = keep(joint);
    }
    drop(hb, joint);
}

/* All that the thread knows, itself up to now, into *k. */
static void join_covered(happens_before *hb, vector_clock **k, uint32_t thread) {
    const uint32_t warp = thread / LANES, lane = thread % LANES;
    vector_clock *to = unshared(hb, k);
    if (!to) return;
    raise_to(to, hb->clocks[thread]);
    for (uint32_t l = 0; l < LANES && warp * LANES + l < hb->n_threads; l++) {
        const uint32_t a = hb->warp_floor[warp], b = hb->peers[warp][lane][l];
        uint32_t *seen = &to->times[warp * LANES + l];
        const uint32_t known = a > b ? a : b;
        *seen = known > *seen ? known : *seen;
    }
    to->times[thread] = hb->time;
}

void hb_arrive(happens_before *hb, uint32_t barrier, uint32_t warp, uint32_t lanes) {
    ++hb->time;
    for (; lanes; lanes &= lanes - 1)
        join_covered(hb, &hb->barriers[barrier], warp * LANES + (uint32_t)__builtin_ctz(lanes));
}

void hb_depart(happens_before *hb, uint32_t barrier, const uint32_t *waited) {
    vector_clock *const news = hb->barriers[barrier];
    ++hb->time;
    for (uint32_t warp = 0; news && warp < hb->n_warps; warp++) {
        vector_clock *before = NULL, *after = NULL;
        for (uint32_t todo = waited[warp]; todo; todo &= todo - 1) {
            vector_clock **k = &hb->clocks[warp * LANES + (uint32_t)__builtin_ctz(todo)];
            if (!after || *k != before) {
                drop(hb, after);
                drop(hb, before);
                before = keep(*k);
                after = copy_of(hb, before);
                if (!after) break;
                raise_to(after, news);
            }
            drop(hb, *k);
            *k = keep(after);
        }
        drop(hb, after);
        drop(hb, before);
    }
    drop(hb, news);
    hb->barriers[barrier] = NULL;
}

/* ---- flags in memory ---- */

void hb_fence(happens_before *hb, uint32_t warp, uint32_t lanes) {
    ++hb->time;
    hb->any_fence = true;
    for (; lanes; lanes &= lanes - 1)
        hb->fenced[warp * LANES + (uint32_t)__builtin_ctz(lanes)] = hb->time;
}

static released *find(happens_before *hb, uint64_t object, bool make) {
    if (make && 2 * (hb->n_table + 1) > hb->table_size) {
        const size_t size = hb->table_size ? 2 * hb->table_size : 64;
        released *larger = calloc(size, sizeof *larger), *smaller = hb->table;
        if (!larger) {
            hb->out_of_memory = true;
            return NULL;
        }
        const size_t n = hb->table_size;
        hb->table = larger;
        hb->table_size = size;
        for (size_t k = 0; k < n; k++)
            if (smaller[k].object) *find(hb, smaller[k].object, false) = smaller[k];
        free(smaller);
    }
    if (!hb->table_size) return NULL;
    size_t at = (size_t)(object * 0x9e3779b97f4a7c15u >> 20) & (hb->table_size - 1);
    while (hb->table[at].object && hb->table[at].object != object)
        at = (at + 1) & (hb->table_size - 1);
    return &hb->table[at];
}

static release_note *make_note(happens_before *hb, vector_clock *covered, release_note *previous) {
    const uint64_t bytes = sizeof(release_note) + (hb->n_direct + 1) * sizeof(release_note *);
    release_note *note = charge(hb, bytes) ? calloc(1, sizeof *note) : NULL;
    if (note) note->before = calloc(hb->n_direct + 1, sizeof(release_note *));
    if (!note || !note->before) {
        free(note);
        hb->out_of_memory = true;
        return previous;
    }
    note->own = keep(covered);
    note->block = hb->block;
    if (hb->n_direct) memcpy(note->before, hb->direct, hb->n_direct * sizeof(release_note *));
    note->n_before = hb->n_direct;
    if (previous) note->before[note->n_before++] = previous;
    note->next = hb->all_notes;
    return hb->all_notes = note;
}

/* A release covers what fences cover: of the thread's own accesses those before its last fence; of
 * others' that it has learned of, those that it or they themselves have fenced since. */
void hb_release(happens_before *hb, uint64_t object, uint32_t thread) {
    if (!hb->any_fence) return;
    vector_clock *covered = NULL;
    join_covered(hb, &covered, thread);
    if (!covered) return;
    const uint32_t fence = hb->fenced[thread];
    bool any = false;
    for (uint32_t t = 0; t < hb->n_threads; t++) {
        const uint32_t known = covered->times[t] > hb->floor ? covered->times[t] : hb->floor;
        const uint32_t theirs = hb->fenced[t] < known ? hb->fenced[t] : known;
        covered->times[t] = t == thread ? fence : fence >= known ? known : theirs;
        any |= covered->times[t] != 0;
    }
    released *r = any ? find(hb, object, true) : NULL;
    if (r) {
        if (!r->object) hb->n_table++;
        if (r->block != hb->block) {
            drop(hb, r->own);
            r->own = NULL;
        }
        r->object = object;
        r->block = hb->block;
        join(hb, &r->own, covered);
        if (hb->sequential) r->notes = make_note(hb, covered, r->notes);
        ++hb->time;
    }
    drop(hb, covered);
}

static void remember_direct(happens_before *hb, release_note *note) {
    if (hb->n_direct == hb->direct_room) {
        const size_t room = hb->direct_room ? 2 * hb->direct_room : 16;
        release_note **larger = realloc(hb->direct, room * sizeof *larger);
        if (!larger) {
            hb->out_of_memory = true;
            return;
        }
        hb->direct = larger;
        hb->direct_room = room;
    }
    hb->direct[hb->n_direct++] = note;
}

/* Order between blocks is kept by block: what one thread acquires of another block, its whole block
 * has. */
static void acquire_note(happens_before *hb, release_note *note) {
    if (note->visited == hb->block + 1) return;
    remember_direct(hb, note);
    note->visited = hb->block + 1;
    note->walk = NULL;
    for (release_note *todo = note, *n; (n = todo);) {
        todo = n->walk;
        if (n->block != hb->block) join(hb, &hb->acquired[n->block], n->own);
        for (size_t k = 0; k < n->n_before; k++) {
            release_note *before = n->before[k];
            if (before->visited == hb->block + 1) continue;
            before->visited = hb->block + 1;
            before->walk = todo;
            todo = before;
        }
    }
}

void hb_acquire(happens_before *hb, uint64_t object, uint32_t thread) {
    released *r = find(hb, object, false);
    if (!r || !r->object) return;
    if (r->own && r->block == hb->block) join(hb, &hb->clocks[thread], r->own);
    if (hb->sequential && r->notes) acquire_note(hb, r->notes);
}
