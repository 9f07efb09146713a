/* The memory of marks: one for each granule of a region, and lists of readers. */
#include <stdlib.h>

#include "hazards_state.h"

static bool marks_init(row_marks *m, uint64_t n) {
    m->write = calloc(n + 1, sizeof(mark)); /* large ones are zero pages until they are touched */
    m->read = calloc(n + 1, sizeof(mark));
    m->other = calloc(n + 1, sizeof(mark));
    m->settled = calloc(n + 1, sizeof(uint32_t));
    return m->write && m->read && m->other && m->settled;
}

static void marks_free(row_marks *m) {
    free(m->write);
    free(m->read);
    free(m->other);
    free(m->settled);
}

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values) {
    *s = (shadow){.bytes = bytes, .shift = 2, .base = base};
    if (values) s->value = calloc(bytes + 1, 1);
    return marks_init(&s->marks, (bytes >> 2) + 1) && (s->value || !values);
}

void shadow_free(shadow *s) {
    marks_free(&s->marks);
    free(s->uninitialised);
    free(s->value);
    *s = (shadow){0};
}

/* Each of four bytes gets its word's mark. */
static bool refine_marks(mark **marks, uint64_t words) {
    mark *fine = calloc(4 * words + 1, sizeof *fine);
    if (!fine) return false;
    for (uint64_t k = 0; k < words; k++)
        if ((*marks)[k])
            for (uint64_t b = 0; b < 4; b++)
                fine[4 * k + b] = (*marks)[k];
    free(*marks);
    *marks = fine;
    return true;
}

uint32_t reader_new(watch *w) {
    const uint32_t spare = w->spare_readers;
    if (spare) {
        w->spare_readers = w->readers[spare].next;
        return spare;
    }
    if (w->n_readers == w->room_readers) {
        const uint32_t room = w->room_readers ? 2 * w->room_readers : 4096;
        reader *larger = realloc(w->readers, room * sizeof *larger);
        if (!larger) {
            w->out_of_memory = true;
            return 0;
        }
        w->readers = larger;
        w->room_readers = room;
        if (!w->n_readers) w->n_readers = 1;
    }
    return w->n_readers++;
}

void reader_spare(watch *w, uint32_t k) {
    w->readers[k].next = w->spare_readers;
    w->spare_readers = k;
}

static uint32_t copy_readers(watch *w, uint32_t from) {
    uint32_t copy = 0;
    for (; from; from = w->readers[from].next) {
        const uint32_t k = reader_new(w);
        if (!k) break;
        w->readers[k] = (reader){w->readers[from].m, w->readers[from].lanes, copy};
        copy = k;
    }
    return copy;
}

bool shadow_refine(watch *w, shadow *s) {
    const uint64_t n = shadow_granules(s);
    if (refine_marks(&s->marks.write, n) && refine_marks(&s->marks.read, n) &&
        refine_marks(&s->marks.other, n) &&
        (!s->uninitialised || refine_marks(&s->uninitialised, n))) {
        free(s->marks.settled); /* looked at by words only */
        s->marks.settled = NULL;
        for (uint64_t k = 0; w->order.fine && k < 4 * n; k++)
            if (k % 4) s->marks.other[k] = copy_readers(w, (uint32_t)s->marks.other[k]);
        s->shift = 0;
        return true;
    }
    w->out_of_memory = true;
    return false;
}
