/* Vector clocks; see happens_before.h. */
#include "vector_clock.h"

#include <stdlib.h>
#include <string.h>

#include "../base/size.h"

bool hb_charge(happens_before *hb, uint64_t bytes) {
    if (bytes > MAX_HB_BYTES - hb->bytes) hb->out_of_memory = true;
    if (hb->out_of_memory) return false;
    hb->bytes += bytes;
    return true;
}

static uint64_t clock_bytes(const happens_before *hb) {
    return sizeof(vector_clock) + hb->n_threads * sizeof(uint32_t);
}

void clock_unref(happens_before *hb, vector_clock *c) {
    if (!c || --c->references) return;
    hb->bytes -= clock_bytes(hb);
    free(c);
}

vector_clock *clock_copy(happens_before *hb, const vector_clock *c) {
    const size_t bytes = size_from(clock_bytes(hb));
    vector_clock *fresh = hb_charge(hb, bytes) ? calloc(1, bytes) : NULL;
    if (!fresh) {
        hb->out_of_memory = true;
        return NULL;
    }
    if (c) memcpy(fresh, c, bytes);
    fresh->references = 1;
    fresh->n = hb->n_threads;
    return fresh;
}

void clock_join_times(vector_clock *c, const vector_clock *other) {
    if (!other) return;
    for (uint32_t t = 0; t < c->n; t++)
        c->times[t] = other->times[t] > c->times[t] ? other->times[t] : c->times[t];
}

/* *c as a clock that the caller may change; a copy if there are other references. NULL: out of
 * memory. */
static vector_clock *writable(happens_before *hb, vector_clock **c) {
    if (*c && (*c)->references == 1) return *c;
    vector_clock *fresh = clock_copy(hb, *c);
    if (!fresh) return NULL;
    clock_unref(hb, *c);
    return *c = fresh;
}

void clock_join(happens_before *hb, vector_clock **c, vector_clock *other) {
    if (!*c)
        *c = clock_ref(other);
    else if (other && other != *c && writable(hb, c))
        clock_join_times(*c, other);
}

void clock_join_thread(happens_before *hb, vector_clock **c, uint32_t thread) {
    vector_clock *to = writable(hb, c);
    if (to) clock_join_times(to, hb->clocks[thread]);
    clock_join_own(hb, c, thread);
}

void clock_join_own(happens_before *hb, vector_clock **c, uint32_t thread) {
    const uint32_t warp = thread / LANES, lane = thread % LANES;
    vector_clock *to = writable(hb, c);
    if (!to) return;
    for (uint32_t l = 0; l < LANES && warp * LANES + l < hb->n_threads; l++) {
        const uint32_t a = hb->warp_floor[warp], b = hb->lane_clocks[warp][lane][l];
        uint32_t *time = &to->times[warp * LANES + l];
        const uint32_t known = a > b ? a : b;
        *time = known > *time ? known : *time;
    }
    to->times[thread] = hb->time;
}
