/* Wavefronts of loads, stores and atomics of other blocks' shared memory: requests that go through
 * the network of the cluster. See remote.c.
 */
#ifndef EMU_REMOTE_H
#define EMU_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

/* The address in shared memory of the cluster: 24 bits of offset, above them the block's rank. The
 * hardware's offsets begin with 1 KiB that it reserves. */
static inline uint64_t remote_address(uint64_t offset, uint32_t rank) {
    enum { RESERVED_BYTES = 1024, RANK_SHIFT = 24 };
    return (offset + RESERVED_BYTES) | (uint64_t)rank << RANK_SHIFT;
}

typedef enum remote_kind { REMOTE_READ_OR_WRITE, REMOTE_ATOMIC, REMOTE_CAS } remote_kind;

/* Of all lanes of a warp that access other blocks, whichever these are; addresses as
 * remote_address makes them. */
uint32_t remote_wavefronts(const uint64_t address[32], uint32_t active, uint32_t width,
                           remote_kind kind);

/* The passes that serve them, each as lanes. Returns how many there are. */
uint32_t remote_passes(const uint64_t address[32], uint32_t active, uint32_t passes[32]);

#endif
