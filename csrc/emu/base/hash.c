/* See hash.h. */
#include "hash.h"

#include <stdatomic.h>
#include <unistd.h>

uint64_t hash_seed(void) {
    static const char here;
    static _Atomic uint64_t chosen;
    uint64_t known = atomic_load(&chosen), drawn;
    if (known) return known;
    if (getentropy(&drawn, sizeof drawn)) drawn = (uint64_t)(uintptr_t)&here;
    drawn |= 1;
    /* Another thread may have been first: tables already rely on its seed. */
    return atomic_compare_exchange_strong(&chosen, &known, drawn) ? drawn : known;
}
