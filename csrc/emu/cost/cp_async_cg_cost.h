/* The cost of cp.async.cg, which bypasses L1: see cp_async_cg_cost.c. */
#ifndef EMU_CP_ASYNC_CG_COST_H
#define EMU_CP_ASYNC_CG_COST_H

#include <stdint.h>

/* Wavefronts of a copy of 16 bytes per lane, from `from` in global to `to` in shared memory. */
uint32_t cp_async_cg_wavefronts(const uint64_t to[32], const uint64_t from[32], uint32_t active);

#endif
