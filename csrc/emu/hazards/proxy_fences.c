/* Fences to the asynchronous proxy.
 *
 * A fence makes what its thread knows visible to asynchronous operations that the fence is ordered
 * before: the thread's own later ones, and those of threads that synchronise with it afterwards.
 * Two such fences are looked for: by the thread that issues the operation, after the write; and by
 * the writer, before what orders the write before the operation.
 */
#include "vector_clock.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 8 };

/* Of one thread. */
struct proxy_fences {
    fence_record last;
    uint32_t times[KEPT]; /* of the last ones; a ring */
    uint32_t n;           /* all, also those that the ring has lost */
};

bool proxy_fences_init(happens_before *hb) {
    hb->proxy_fences = calloc(hb->n_threads, sizeof *hb->proxy_fences);
    return hb->proxy_fences != NULL;
}

void proxy_fences_clear(happens_before *hb) {
    for (uint32_t t = 0; hb->proxy_fences && t < hb->n_threads; t++)
        clock_unref(hb, hb->proxy_fences[t].last.clock);
    if (hb->proxy_fences) memset(hb->proxy_fences, 0, hb->n_threads * sizeof *hb->proxy_fences);
}

void hb_proxy_fence(happens_before *hb, uint32_t warp, uint32_t lanes) {
    if (!hb->proxy_fences) return; /* the instruction has no site */
    ++hb->time;
    for (; lanes; lanes &= lanes - 1) {
        const uint32_t thread = hb->first + warp * LANES + (uint32_t)__builtin_ctz(lanes);
        struct proxy_fences *f = &hb->proxy_fences[thread];
        f->times[f->n++ % KEPT] = hb->time;
        record_fence(hb, &f->last, thread, false);
    }
}

/* Whether the access was ordered before the fence, which `thread` ran. */
static bool is_before_fence(const fence_record *f, uint32_t time, uint32_t by, uint32_t thread) {
    if (!f->time) return false;
    if (time < f->floor) return true;
    if (by == thread) return time < f->time;
    if (by / LANES == thread / LANES && (time < f->warp_floor || time < f->lane_clocks[by % LANES]))
        return true;
    return f->clock && time < f->clock->times[by];
}

bool hb_proxy_fenced(const happens_before *hb, epoch e, uint32_t thread) {
    const uint32_t time = epoch_time(e), by = hb_thread_of(hb, e);
    if (!hb->proxy_fences) return true;
    thread += hb->first;
    const struct proxy_fences *writer = &hb->proxy_fences[by];
    if (is_before_fence(&hb->proxy_fences[thread].last, time, by, thread)) return true;
    bool all_later = true;
    for (uint32_t k = 0; k < KEPT && k < writer->n; k++) {
        const uint32_t fence = writer->times[k];
        if (fence > time && hb_ordered(hb, fence, by, thread)) return true;
        all_later &= fence > time;
    }
    return writer->n > KEPT && all_later; /* then one that is forgotten may order them */
}
