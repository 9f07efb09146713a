/* A bulk copy, TMA's simplest: bytes that lie together, with no map. What it has copied it tells a barrier. */
#ifndef SMK_BULK_LOAD_CUH
#define SMK_BULK_LOAD_CUH

#include "../hopper.cuh"

/* Multiples of 16 bytes, between 16-byte boundaries. */
__device__ __forceinline__ void bulk_load(unsigned to, const void *from, unsigned bytes,
                                          unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

#endif
