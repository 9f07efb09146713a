/* What a cp.async.cg costs, which goes past L1: see bypass.c. */
#ifndef EMU_BYPASS_H
#define EMU_BYPASS_H

#include <stdint.h>

/* Wavefronts of writing 16 bytes a lane from `from` in global to `to` in shared memory. */
uint32_t cp_async_cg_wavefronts(const uint64_t to[32], const uint64_t from[32], uint32_t active);

#endif
