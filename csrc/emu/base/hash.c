/* See hash.h. */
#include "hash.h"

#include <stdatomic.h>
#include <unistd.h>

uint64_t hash_seed(void) {
    static const char fallback;
    static _Atomic uint64_t process_seed;
    uint64_t seed = atomic_load(&process_seed), drawn;
    if (seed) return seed;
    if (getentropy(&drawn, sizeof drawn)) drawn = (uint64_t)(uintptr_t)&fallback;
    drawn |= 1;
    /* If another thread set the seed first, use its seed: hash tables already depend on it. */
    return atomic_compare_exchange_strong(&process_seed, &seed, drawn) ? drawn : seed;
}
