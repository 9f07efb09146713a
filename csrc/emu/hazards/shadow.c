/* The memory of epochs: one for each granule of a region, and lists of readers.
 *
 * A region of global memory has as many epochs as words, most of which a trace of some blocks never touches.
 * So they are pages of zeros that are there when they are touched. calloc would clear them all where it
 * gives out memory that was used before; it serves for the small ones.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "../base/cpu.h"
#include "detector.h"

enum {
    LARGE = 2 * 1024 * 1024, /* a huge page of x86-64 */
    MAX_READERS = 1 << 26    /* 1 GiB */
};

static void *zeros_new(uint64_t bytes) {
    if (bytes < LARGE) return calloc(1, bytes);
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return NULL;
    /* A epoch is read before it is written, which of a small page makes two faults, and the second one
     * interrupts the other host threads. */
    madvise(pages, bytes, MADV_HUGEPAGE);
    return pages;
}

static void zeros_free(void *zeros, uint64_t bytes) {
    if (bytes < LARGE)
        free(zeros);
    else if (zeros)
        munmap(zeros, bytes);
}

/* How many epochs there is room for: when words become bytes, all four of the last word's. */
static uint64_t room(const shadow *s) {
    return shadow_granules(s) + 4;
}

static epoch *marks_new(const shadow *s) {
    return zeros_new(room(s) * sizeof(epoch));
}

static void marks_free(const shadow *s, epoch *epochs) {
    zeros_free(epochs, room(s) * sizeof *epochs);
}

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values) {
    *s = (shadow){.bytes = bytes, .shift = 2, .base = base};
    if (values) s->value = zeros_new(bytes + 1);
    s->epochs.write = marks_new(s);
    if (s->epochs.write && (s->value || !values)) return true;
    shadow_free(s);
    return false;
}

static void free_marks(shadow *s) {
    marks_free(s, s->epochs.write);
    marks_free(s, s->epochs.read);
    marks_free(s, s->epochs.other);
    marks_free(s, s->uninitialised);
    zeros_free(s->epochs.read_shared, room(s) * sizeof(uint32_t));
}

bool shadow_add_readers(detector *w, shadow *s) {
    shadow added = {.bytes = s->bytes, .shift = s->shift};
    added.epochs.read = marks_new(s);
    added.epochs.other = marks_new(s);
    if (s->shift) added.epochs.read_shared = zeros_new(room(s) * sizeof(uint32_t));
    if (!added.epochs.read || !added.epochs.other || (s->shift && !added.epochs.read_shared)) {
        free_marks(&added);
        w->out_of_memory = true;
        return false;
    }
    added.epochs.write = s->epochs.write;
    s->epochs = added.epochs;
    return true;
}

void shadow_free(shadow *s) {
    free_marks(s);
    zeros_free(s->value, s->bytes + 1);
    *s = (shadow){0};
}

bool shadow_add_uninitialised(detector *w, shadow *s) {
    s->uninitialised = marks_new(s);
    w->out_of_memory |= !s->uninitialised;
    return s->uninitialised != NULL;
}

/* Each of four bytes gets its word's epoch; false: out of memory. */
static bool refine_marks(const shadow *words, const epoch *from, const shadow *bytes, epoch **to) {
    if (!from) return true;
    epoch *epochs = *to = marks_new(bytes);
    for (uint64_t k = 0; epochs && k < shadow_granules(words); k++)
        if (from[k])
            for (uint64_t b = 0; b < 4; b++)
                epochs[4 * k + b] = from[k];
    return epochs != NULL;
}

uint32_t reader_new(detector *w) {
    const uint32_t spare = w->spare_readers;
    if (spare) {
        w->spare_readers = w->readers[spare].next;
        return spare;
    }
    if (w->n_readers == w->room_readers) {
        const uint32_t room = w->room_readers ? 2 * w->room_readers : 4096;
        reader *larger = room <= MAX_READERS ? realloc(w->readers, room * sizeof *larger) : NULL;
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

void reader_spare(detector *w, uint32_t k) {
    w->readers[k].next = w->spare_readers;
    w->spare_readers = k;
}

static uint32_t copy_readers(detector *w, uint32_t from) {
    uint32_t copy = 0;
    for (; from; from = w->readers[from].next) {
        const uint32_t k = reader_new(w);
        if (!k) break;
        w->readers[k] = (reader){w->readers[from].m, w->readers[from].lanes, copy};
        copy = k;
    }
    return copy;
}

bool shadow_refine(detector *w, shadow *s) {
    shadow fine = *s;
    fine.shift = 0;
    fine.epochs = (epoch_rows){0}; /* read_shared: looked at by words only */
    fine.uninitialised = NULL;
    if (!refine_marks(s, s->epochs.write, &fine, &fine.epochs.write) ||
        !refine_marks(s, s->epochs.read, &fine, &fine.epochs.read) ||
        !refine_marks(s, s->epochs.other, &fine, &fine.epochs.other) ||
        !refine_marks(s, s->uninitialised, &fine, &fine.uninitialised)) {
        free_marks(&fine);
        w->out_of_memory = true;
        return false;
    }
    for (uint64_t k = 0; w->hb.fine && fine.epochs.other && k < shadow_granules(&fine); k++)
        if (k % 4) fine.epochs.other[k] = copy_readers(w, (uint32_t)fine.epochs.other[k]);
    free_marks(s);
    *s = fine;
    return true;
}

/* ---- by CPU ---- */

const row_functions *row_functions_for_cpu(void) {
    static const row_functions *const functions[] = ON_EACH_CPU(&row_functions);
    return functions[cpu_level()];
}

const lane_functions *lane_functions_for_cpu(void) {
    static const lane_functions *const functions[] = ON_EACH_CPU(&lane_functions);
    return functions[cpu_level()];
}
