/* The lookup; see cost_cache.h. */
#include "cost_cache.h"

#include "../base/cpu.h"
#include "../base/lanes.h"

/* Hash multipliers: odd and random, so that regular distances do not cancel. */
static const lanes_u32 lane_factors = {
    0x2545f491, 0x9e3779b1, 0x85ebca6b, 0xc2b2ae35, 0x27d4eb2f, 0x165667b1, 0xd3a2646d, 0xfd7046c5,
    0xb55a4f09, 0x68e31da5, 0x1b56c4e9, 0x7feb352d, 0x846ca68b, 0xa0761d65, 0xe7037ed1, 0x8ebc6af1,
    0x589965cd, 0x75374cc3, 0x1d8e4e27, 0xeb44accb, 0x4cf5ad43, 0x2d358dcd, 0x93d765dd, 0x5bd1e995,
    0x1b873593, 0xcc9e2d51, 0xe6546b65, 0x38b34ae5, 0xa1e38b93, 0x369dea0f, 0xdb4f0b91, 0x7f4a7c15};

static uint32_t entry_index(uint32_t sum, uint32_t active, uint64_t kind, uint64_t context) {
    const uint64_t mixed =
        (sum ^ kind ^ (uint64_t)active << 32 ^ context << 17) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32) % COST_CACHE_SIZE;
}

static inline bool is_same(const pattern *p, const uint32_t *distance, uint32_t active,
                           uint64_t kind, uint64_t context) {
    uint32_t different = 0;
    for (int l = 0; l < LANES; l++)
        different |= p->distance[l] ^ distance[l];
    return !different && p->active == active && p->kind == kind && p->context == context;
}

cost_cache_find_function FOR_CPU(cost_cache_find);

pattern *FOR_CPU(cost_cache_find)(cost_cache *t, const uint64_t address[LANES], uint32_t active,
                                  uint64_t kind, uint64_t context, pattern *guess, bool *known) {
    const uint64_t base = address[first_lane(active)];
    lanes_u32 distance;
    uint64_t far = 0;
    uint32_t sum = 0;
    if (active == FULL)
        for (int l = 0; l < LANES; l++) {
            const uint64_t d = address[l] - base;
            far |= d + 0x80000000u;
            distance[l] = (uint32_t)d;
        }
    else
        for (int l = 0; l < LANES; l++) {
            const uint64_t d = (address[l] - base) & (0 - (uint64_t)(active >> l & 1));
            far |= d + 0x80000000u;
            distance[l] = (uint32_t)d;
        }
    if (far >> 32) return NULL;
    *known = guess && is_same(guess, distance, active, kind, context);
    if (*known) return guess;
    for (int l = 0; l < LANES; l++)
        sum += distance[l] * lane_factors[l];
    pattern *p = &t->entries[entry_index(sum, active, kind, context)];
    *known = is_same(p, distance, active, kind, context);
    if (*known) return p;
    for (int l = 0; l < LANES; l++)
        p->distance[l] = distance[l];
    p->kind = kind;
    p->context = context;
    p->active = active;
    p->id = ++t->last_id;
    return p;
}
