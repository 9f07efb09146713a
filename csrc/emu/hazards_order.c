/* What happens before what; see hazards_order.h. */
#include "hazards_order.h"

#include <stdlib.h>
#include <string.h>

/* What a block has released, as of then; blocks after it can acquire it. */
struct release_note {
    struct release_note *next; /* of all notes */
    struct release_note *walk; /* of those that acquire() has still to look at */
    knowledge *own;
    uint64_t block;
    uint64_t visited;             /* by which block last, plus 1 */
    struct release_note **before; /* what that block had acquired itself, directly */
    size_t n_before;
};
typedef struct release_note release_note;

/* ---- knowledge ---- */

static knowledge *keep(knowledge *k) {
    if (k) k->holders++;
    return k;
}

static bool charge(order *o, uint64_t bytes) {
    if (bytes > MAX_ORDER_BYTES - o->bytes) o->out_of_memory = true;
    if (o->out_of_memory) return false;
    o->bytes += bytes;
    return true;
}

static uint64_t knowledge_bytes(const order *o) {
    return sizeof(knowledge) + o->n_threads * sizeof(uint32_t);
}

static void drop(order *o, knowledge *k) {
    if (!k || --k->holders) return;
    o->bytes -= knowledge_bytes(o);
    free(k);
}

/* A copy that only the caller holds; of nothing: all zeros. */
static knowledge *copy_of(order *o, const knowledge *k) {
    const uint64_t bytes = knowledge_bytes(o);
    knowledge *fresh = charge(o, bytes) ? calloc(1, bytes) : NULL;
    if (!fresh) {
        o->out_of_memory = true;
        return NULL;
    }
    if (k) memcpy(fresh, k, bytes);
    fresh->holders = 1;
    fresh->n = o->n_threads;
    return fresh;
}

static void raise_to(knowledge *k, const knowledge *other) {
    if (!other) return;
    for (uint32_t t = 0; t < k->n; t++)
        k->seen[t] = other->seen[t] > k->seen[t] ? other->seen[t] : k->seen[t];
}

/* *k, to be changed. */
static knowledge *own(order *o, knowledge **k) {
    if (*k && (*k)->holders == 1) return *k;
    knowledge *fresh = copy_of(o, *k);
    if (!fresh) return NULL;
    drop(o, *k);
    return *k = fresh;
}

static void learn(order *o, knowledge **k, knowledge *news) {
    if (!*k)
        *k = keep(news);
    else if (news && own(o, k))
        raise_to(*k, news);
}

/* ---- life ---- */

bool order_init(order *o, const launch *l, bool fine, bool sequential) {
    *o = (order){.time = 1,
                 .n_threads = l->block[0] * l->block[1] * l->block[2],
                 .n_warps = l->n_warps,
                 .fine = fine,
                 .sequential = sequential};
    if (fine) {
        o->peers = calloc(o->n_warps, sizeof *o->peers);
        o->known = calloc(o->n_threads, sizeof(knowledge *));
        o->fenced = calloc(o->n_threads, sizeof *o->fenced);
        if (!o->peers || !o->known || !o->fenced) return false;
    }
    if (sequential) {
        o->n_acquired = l->n_blocks;
        o->acquired = calloc(l->n_blocks, sizeof(knowledge *));
        o->begins = calloc(l->n_blocks + 1, sizeof *o->begins);
        if (!o->acquired || !o->begins) return false;
    }
    return true;
}

static void forget_knowledge(order *o) {
    for (uint32_t t = 0; o->known && t < o->n_threads; t++) {
        drop(o, o->known[t]);
        o->known[t] = NULL;
    }
}

static void forget_blocks(order *o) {
    for (uint64_t k = 0; o->n_direct && k < o->n_acquired; k++) {
        drop(o, o->acquired[k]);
        o->acquired[k] = NULL;
    }
    o->n_direct = 0;
}

void order_free(order *o) {
    forget_knowledge(o);
    for (int k = 0; k < N_BARRIERS; k++)
        drop(o, o->barriers[k]);
    for (size_t k = 0; k < o->table_size; k++)
        drop(o, o->table[k].own);
    forget_blocks(o);
    for (release_note *n = o->all_notes, *next; n; n = next) {
        next = n->next;
        drop(o, n->own);
        free(n->before);
        free(n);
    }
    free(o->peers);
    free(o->known);
    free(o->fenced);
    free(o->table);
    free(o->acquired);
    free(o->direct);
    free(o->begins);
}

bool order_begin_block(order *o, uint64_t block) {
    const bool runs_out = o->time > TIME_FLYING / 2;
    if (runs_out) {
        o->time = 0;
        memset(o->warp_floor, 0, sizeof o->warp_floor);
        if (o->peers) memset(o->peers, 0, o->n_warps * sizeof *o->peers);
    }
    o->block = block;
    o->begin = o->floor = ++o->time;
    o->any_fence = false;
    if (o->fine) {
        forget_knowledge(o);
        memset(o->fenced, 0, o->n_threads * sizeof *o->fenced);
        for (int k = 0; k < N_BARRIERS; k++) {
            drop(o, o->barriers[k]);
            o->barriers[k] = NULL;
        }
    }
    if (o->sequential) {
        forget_blocks(o);
        o->begins[block] = o->begin;
        o->n_begins = block + 1;
    }
    return !runs_out;
}

/* ---- the question ---- */

/* The block whose time it was. */
static uint64_t block_at(const order *o, uint32_t time) {
    uint64_t low = 0, high = o->n_begins;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (o->begins[middle] <= time)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool order_before(const order *o, mark m, uint32_t thread) {
    const uint32_t time = mark_time(m), other = mark_thread(m);
    if (time < o->begin) {
        if (!o->sequential) return false;
        const knowledge *k = o->acquired[block_at(o, time)];
        return k && k->seen[other] > time;
    }
    if (time < o->floor) return true;
    if (time == TIME_FLYING) return false;
    if (other == thread) return mark_strength(m) != SEVERAL || o->fine;
    if (!o->fine) return false;
    const uint32_t warp = thread / LANES;
    if (other / LANES == warp &&
        (time < o->warp_floor[warp] || time < o->peers[warp][thread % LANES][other % LANES]))
        return true;
    return o->known[thread] && time < o->known[thread]->seen[other];
}

/* ---- barriers ---- */

void order_all(order *o) {
    o->floor = ++o->time;
    if (o->fine) forget_knowledge(o);
}

void order_lanes(order *o, uint32_t warp, uint32_t lanes) {
    const uint32_t left = o->n_threads - warp * LANES;
    const uint32_t all = left >= LANES ? FULL : (1u << left) - 1;
    const uint32_t now = ++o->time;
    knowledge *joint = NULL, *last = NULL;
    bool differs = false;
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        knowledge *k = o->known[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        differs |= todo != lanes && k != last;
        last = k;
    }
    if (lanes == all)
        o->warp_floor[warp] = now;
    else
        for (uint32_t a = lanes; a; a &= a - 1)
            for (uint32_t peer = 0; peer < LANES; peer++) {
                /* What one of them knows of a lane, all of them know now. */
                uint32_t most = lanes >> peer & 1 ? now : 0;
                for (uint32_t b = lanes; b; b &= b - 1) {
                    const uint32_t seen = o->peers[warp][__builtin_ctz(b)][peer];
                    most = seen > most ? seen : most;
                }
                o->peers[warp][__builtin_ctz(a)][peer] = most;
            }
    if (!differs) return;
    for (uint32_t todo = lanes; todo; todo &= todo - 1)
        learn(o, &joint, o->known[warp * LANES + (uint32_t)__builtin_ctz(todo)]);
    for (uint32_t todo = lanes; todo; todo &= todo - 1) {
        knowledge **k = &o->known[warp * LANES + (uint32_t)__builtin_ctz(todo)];
        drop(o, *k);
        *k = keep(joint);
    }
    drop(o, joint);
}

/* All that the thread knows, itself up to now, into *k. */
static void tell(order *o, knowledge **k, uint32_t thread) {
    const uint32_t warp = thread / LANES, lane = thread % LANES;
    knowledge *to = own(o, k);
    if (!to) return;
    raise_to(to, o->known[thread]);
    for (uint32_t l = 0; l < LANES && warp * LANES + l < o->n_threads; l++) {
        const uint32_t a = o->warp_floor[warp], b = o->peers[warp][lane][l];
        uint32_t *seen = &to->seen[warp * LANES + l];
        const uint32_t known = a > b ? a : b;
        *seen = known > *seen ? known : *seen;
    }
    to->seen[thread] = o->time;
}

void order_arrive(order *o, uint32_t barrier, uint32_t warp, uint32_t lanes) {
    ++o->time;
    for (; lanes; lanes &= lanes - 1)
        tell(o, &o->barriers[barrier], warp * LANES + (uint32_t)__builtin_ctz(lanes));
}

void order_depart(order *o, uint32_t barrier, const uint32_t *waited) {
    knowledge *const news = o->barriers[barrier];
    ++o->time;
    for (uint32_t warp = 0; news && warp < o->n_warps; warp++) {
        knowledge *before = NULL, *after = NULL;
        for (uint32_t todo = waited[warp]; todo; todo &= todo - 1) {
            knowledge **k = &o->known[warp * LANES + (uint32_t)__builtin_ctz(todo)];
            if (!after || *k != before) {
                drop(o, after);
                drop(o, before);
                before = keep(*k);
                after = copy_of(o, before);
                if (!after) break;
                raise_to(after, news);
            }
            drop(o, *k);
            *k = keep(after);
        }
        drop(o, after);
        drop(o, before);
    }
    drop(o, news);
    o->barriers[barrier] = NULL;
}

/* ---- flags in memory ---- */

void order_fence(order *o, uint32_t warp, uint32_t lanes) {
    ++o->time;
    o->any_fence = true;
    for (; lanes; lanes &= lanes - 1)
        o->fenced[warp * LANES + (uint32_t)__builtin_ctz(lanes)] = o->time;
}

static released *find(order *o, uint64_t object, bool make) {
    if (make && 2 * (o->n_table + 1) > o->table_size) {
        const size_t size = o->table_size ? 2 * o->table_size : 64;
        released *larger = calloc(size, sizeof *larger), *smaller = o->table;
        if (!larger) {
            o->out_of_memory = true;
            return NULL;
        }
        const size_t n = o->table_size;
        o->table = larger;
        o->table_size = size;
        for (size_t k = 0; k < n; k++)
            if (smaller[k].object) *find(o, smaller[k].object, false) = smaller[k];
        free(smaller);
    }
    if (!o->table_size) return NULL;
    size_t at = (size_t)(object * 0x9e3779b97f4a7c15u >> 20) & (o->table_size - 1);
    while (o->table[at].object && o->table[at].object != object)
        at = (at + 1) & (o->table_size - 1);
    return &o->table[at];
}

static release_note *make_note(order *o, knowledge *covered, release_note *previous) {
    const uint64_t bytes = sizeof(release_note) + (o->n_direct + 1) * sizeof(release_note *);
    release_note *note = charge(o, bytes) ? calloc(1, sizeof *note) : NULL;
    if (note) note->before = calloc(o->n_direct + 1, sizeof(release_note *));
    if (!note || !note->before) {
        free(note);
        o->out_of_memory = true;
        return previous;
    }
    note->own = keep(covered);
    note->block = o->block;
    if (o->n_direct) memcpy(note->before, o->direct, o->n_direct * sizeof(release_note *));
    note->n_before = o->n_direct;
    if (previous) note->before[note->n_before++] = previous;
    note->next = o->all_notes;
    return o->all_notes = note;
}

/* A release covers what fences cover: of the thread's own accesses those before its last fence; of
 * others' that it has learned of, those that it or they themselves have fenced since. */
void order_release(order *o, uint64_t object, uint32_t thread) {
    if (!o->any_fence) return;
    knowledge *covered = NULL;
    tell(o, &covered, thread);
    if (!covered) return;
    const uint32_t fence = o->fenced[thread];
    bool any = false;
    for (uint32_t t = 0; t < o->n_threads; t++) {
        const uint32_t known = covered->seen[t] > o->floor ? covered->seen[t] : o->floor;
        const uint32_t theirs = o->fenced[t] < known ? o->fenced[t] : known;
        covered->seen[t] = t == thread ? fence : fence >= known ? known : theirs;
        any |= covered->seen[t] != 0;
    }
    released *r = any ? find(o, object, true) : NULL;
    if (r) {
        if (!r->object) o->n_table++;
        if (r->block != o->block) {
            drop(o, r->own);
            r->own = NULL;
        }
        r->object = object;
        r->block = o->block;
        learn(o, &r->own, covered);
        if (o->sequential) r->notes = make_note(o, covered, r->notes);
        ++o->time;
    }
    drop(o, covered);
}

static void remember_direct(order *o, release_note *note) {
    if (o->n_direct == o->direct_room) {
        const size_t room = o->direct_room ? 2 * o->direct_room : 16;
        release_note **larger = realloc(o->direct, room * sizeof *larger);
        if (!larger) {
            o->out_of_memory = true;
            return;
        }
        o->direct = larger;
        o->direct_room = room;
    }
    o->direct[o->n_direct++] = note;
}

/* Order between blocks is kept by block: what one thread acquires of another block, its whole block
 * has. */
static void acquire_note(order *o, release_note *note) {
    if (note->visited == o->block + 1) return;
    remember_direct(o, note);
    note->visited = o->block + 1;
    note->walk = NULL;
    for (release_note *todo = note, *n; (n = todo);) {
        todo = n->walk;
        if (n->block != o->block) learn(o, &o->acquired[n->block], n->own);
        for (size_t k = 0; k < n->n_before; k++) {
            release_note *before = n->before[k];
            if (before->visited == o->block + 1) continue;
            before->visited = o->block + 1;
            before->walk = todo;
            todo = before;
        }
    }
}

void order_acquire(order *o, uint64_t object, uint32_t thread) {
    released *r = find(o, object, false);
    if (!r || !r->object) return;
    if (r->own && r->block == o->block) learn(o, &o->known[thread], r->own);
    if (o->sequential && r->notes) acquire_note(o, r->notes);
}
