/* A cache of request costs by access pattern: active lanes, and their offsets from a base
 * address.
 *
 * The cost of a request depends on its pattern and on little else. An instruction in a loop
 * repeats few patterns at many base addresses, so looking a cost up is faster than computing it.
 * The loops over 32 addresses are compiled once per instruction set of the host (../base/cpu.h).
 */
#ifndef EMU_COST_CACHE_H
#define EMU_COST_CACHE_H

#include "../base/lanes.h"

enum { COST_CACHE_SIZE = 1024, PATTERN_VALUES = 4 };

typedef struct pattern {
    uint32_t distance[LANES]; /* from the first active lane's address; 0 in inactive lanes */
    /* The rest of the key: what else the cost depends on. The caller defines both. */
    uint64_t kind;    /* nonzero; 0 marks an empty entry */
    uint64_t context; /* the id of another pattern, an instruction's address, or 0 */
    uint64_t id;      /* unique, never 0 */
    uint32_t active;
    uint32_t value[PATTERN_VALUES]; /* filled by the caller */
} pattern;

/* One per host thread. Direct-mapped: of patterns with the same index the last one is kept. */
typedef struct cost_cache {
    pattern entries[COST_CACHE_SIZE]; /* from calloc: pages of unused entries are never touched */
    uint64_t last_id;
} cost_cache;

/* Looks up the pattern of these addresses, or adds it. `guess` (or NULL) is compared first.
 * *known: the pattern was there; otherwise the caller must fill in its values. NULL: the
 * addresses are too far apart for a pattern (a 32-bit distance). */
typedef pattern *cost_cache_find_function(cost_cache *t, const uint64_t address[LANES],
                                          uint32_t active, uint64_t kind, uint64_t context,
                                          pattern *guess, bool *known);

/* The version for this CPU: cpu_level() (../base/cpu.h). */
cost_cache_find_function *cost_cache_find_for_cpu(void);

#endif
