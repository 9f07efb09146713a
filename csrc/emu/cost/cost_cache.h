/* Patterns of requests: active lanes and the distances between their addresses.
 *
 * What a request costs depends on its pattern and on little else, and instructions in loops make few
 * patterns, at one base after another. So who has found out what a pattern costs keeps it in a table.
 * The work over 32 addresses is compiled once per instruction set of the host (isa.h).
 */
#ifndef EMU_PATTERN_H
#define EMU_PATTERN_H

#include "../base/lanes.h"

enum { COST_CACHE_SIZE = 1024, PATTERN_VALUES = 3 };

typedef struct pattern {
    uint32_t distance[LANES]; /* from the first active lane's address; of other lanes 0 */
    /* Beside the pattern, what the cost depends on: the caller's own, ... */
    uint64_t kind; /* ... 0: no pattern yet; */
    uint64_t of; /* pattern.number of one that this one goes with, an instruction's address, or 0 */
    uint64_t number; /* never given twice, never 0 */
    uint32_t active;
    uint32_t value[PATTERN_VALUES]; /* the caller's own */
} pattern;

/* One host thread's. Of patterns that want one place the last one has it. */
typedef struct cost_cache {
    pattern places[COST_CACHE_SIZE]; /* large: touched where it is used only */
    uint64_t last_number;
} cost_cache;

/* The pattern of these addresses, which may be the guess (NULL: none). `known`: it was there, else its
 * values are the caller's to fill. NULL: addresses so far apart have none. */
typedef pattern *cost_cache_find_function(cost_cache *t, const uint64_t address[LANES],
                                          uint32_t active, uint64_t kind, uint64_t of,
                                          pattern *guess, bool *known);

/* By cpu_level() (../base/cpu.h). */
cost_cache_find_function *cost_cache_find_for_cpu(void);

#endif
