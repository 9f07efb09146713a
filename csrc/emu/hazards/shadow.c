/* Shadow memory: arrays of epochs of a region, by granule, and entries of lists.
 *
 * A region of global memory has as many epochs as words. A trace of a few blocks accesses few of
 * them, so they are pages of zeros that the system provides on first access (base/pages.h).
 */
#include <stdlib.h>

#include "../base/cpu.h"
#include "../base/pages.h"
#include "detector.h"

enum { MAX_ENTRIES = 1 << 26 /* 1.5 GiB */ };

/* The length of an epoch array: refining fills all four bytes of the last word. */
static uint64_t array_epochs(const shadow *s) {
    return shadow_granules(s) + 4;
}

static epoch *epochs_new(const shadow *s) {
    return zeros_new(array_epochs(s) * sizeof(epoch));
}

static void epochs_free(const shadow *s, epoch *epochs) {
    zeros_free(epochs, array_epochs(s) * sizeof *epochs);
}

bool shadow_init(shadow *s, uint64_t base, uint64_t bytes, bool values) {
    *s = (shadow){
        .bytes = bytes, .shift = 2, .base = base, .is_shared = base == REGION_BASE(REGION_SHARED)};
    if (values) s->value = zeros_new(bytes + 1);
    s->epochs.write = epochs_new(s);
    if (s->epochs.write && (s->value || !values)) return true;
    shadow_free(s);
    return false;
}

static void free_arrays(shadow *s) {
    epochs_free(s, s->epochs.write);
    epochs_free(s, s->epochs.read);
    epochs_free(s, s->epochs.other_read);
    epochs_free(s, s->uninitialised_read);
    epochs_free(s, s->undefined);
    epochs_free(s, s->undefined_from);
    epochs_free(s, s->equal_writers);
    epochs_free(s, s->epochs.changed);
    zeros_free(s->epochs.read_shared, array_epochs(s) * sizeof(uint32_t));
}

bool shadow_add_readers(detector *d, shadow *s) {
    shadow added = {.bytes = s->bytes, .shift = s->shift};
    added.epochs.read = epochs_new(s);
    added.epochs.other_read = epochs_new(s);
    if (s->shift) added.epochs.read_shared = zeros_new(array_epochs(s) * sizeof(uint32_t));
    if (!added.epochs.read || !added.epochs.other_read || (s->shift && !added.epochs.read_shared)) {
        free_arrays(&added);
        d->out_of_memory = true;
        return false;
    }
    added.epochs.write = s->epochs.write;
    added.epochs.changed = s->epochs.changed;
    s->epochs = added.epochs;
    return true;
}

void shadow_free(shadow *s) {
    free_arrays(s);
    zeros_free(s->value, s->bytes + 1);
    *s = (shadow){0};
}

bool shadow_add_uninitialised(detector *d, shadow *s) {
    s->uninitialised_read = epochs_new(s);
    d->out_of_memory |= !s->uninitialised_read;
    return s->uninitialised_read != NULL;
}

bool shadow_add_undefined(detector *d, shadow *s) {
    s->undefined = epochs_new(s);
    s->undefined_from = epochs_new(s);
    if (s->undefined && s->undefined_from) return true;
    epochs_free(s, s->undefined);
    epochs_free(s, s->undefined_from);
    s->undefined = s->undefined_from = NULL;
    d->out_of_memory = true;
    return false;
}

bool shadow_add_changed(detector *d, shadow *s) {
    s->epochs.changed = epochs_new(s);
    d->out_of_memory |= !s->epochs.changed;
    return s->epochs.changed != NULL;
}

bool shadow_add_equal_writers(detector *d, shadow *s) {
    s->equal_writers = epochs_new(s);
    d->out_of_memory |= !s->equal_writers;
    return s->equal_writers != NULL;
}

/* Each byte of a word gets the word's epoch. False: out of memory. */
static bool refine_epochs(const shadow *words, const epoch *from, const shadow *bytes, epoch **to) {
    if (!from) return true;
    epoch *epochs = *to = epochs_new(bytes);
    for (uint64_t k = 0; epochs && k < shadow_granules(words); k++)
        if (from[k])
            for (uint64_t b = 0; b < 4; b++)
                epochs[4 * k + b] = from[k];
    return epochs != NULL;
}

uint32_t entry_new(detector *d) {
    const uint32_t free_entry = d->free_entries;
    if (free_entry) {
        d->free_entries = d->entries[free_entry].next;
        return free_entry;
    }
    if (d->n_entries == d->entries_capacity) {
        const uint32_t capacity = d->entries_capacity ? 2 * d->entries_capacity : 4096;
        access_entry *larger =
            capacity <= MAX_ENTRIES ? realloc(d->entries, capacity * sizeof *larger) : NULL;
        if (!larger) {
            d->out_of_memory = true;
            return 0;
        }
        d->entries = larger;
        d->entries_capacity = capacity;
        if (!d->n_entries) d->n_entries = 1;
    }
    return d->n_entries++;
}

void entry_free(detector *d, uint32_t k) {
    d->entries[k].next = d->free_entries;
    d->free_entries = k;
}

/* In the same order, with the same upper half of the head. */
static epoch copy_list(detector *d, epoch list) {
    uint32_t copy = 0, last = 0;
    for (uint32_t from = (uint32_t)list; from; from = d->entries[from].next) {
        const uint32_t k = entry_new(d);
        if (!k) break;
        d->entries[k] = d->entries[from];
        d->entries[k].next = 0;
        if (last)
            d->entries[last].next = k;
        else
            copy = k;
        last = k;
    }
    return (list & ~(epoch)UINT32_MAX) | copy;
}

/* The four bytes of a word have one list: each of the last three gets a copy. */
static void copy_lists(detector *d, const shadow *bytes, epoch *lists) {
    for (uint64_t k = 0; lists && k < shadow_granules(bytes); k++)
        if (k % 4) lists[k] = copy_list(d, lists[k]);
}

bool shadow_refine(detector *d, shadow *s) {
    shadow refined = *s;
    refined.shift = 0;
    refined.epochs = (shadow_rows){0}; /* no read_shared: it is for word granules only */
    refined.uninitialised_read = refined.equal_writers = NULL;
    refined.undefined = refined.undefined_from = NULL;
    if (!refine_epochs(s, s->epochs.write, &refined, &refined.epochs.write) ||
        !refine_epochs(s, s->epochs.read, &refined, &refined.epochs.read) ||
        !refine_epochs(s, s->epochs.other_read, &refined, &refined.epochs.other_read) ||
        !refine_epochs(s, s->epochs.changed, &refined, &refined.epochs.changed) ||
        !refine_epochs(s, s->uninitialised_read, &refined, &refined.uninitialised_read) ||
        !refine_epochs(s, s->undefined, &refined, &refined.undefined) ||
        !refine_epochs(s, s->undefined_from, &refined, &refined.undefined_from) ||
        !refine_epochs(s, s->equal_writers, &refined, &refined.equal_writers)) {
        free_arrays(&refined);
        d->out_of_memory = true;
        return false;
    }
    if (d->hb.fine_grained) {
        copy_lists(d, &refined, refined.epochs.read);
        copy_lists(d, &refined, refined.epochs.other_read);
    }
    copy_lists(d, &refined, refined.equal_writers);
    free_arrays(s);
    *s = refined;
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
