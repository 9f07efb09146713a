/* A bulk copy, TMA's simplest: contiguous bytes, no tensor map. Its bytes count at an mbarrier. */
#ifndef SMK_BULK_LOAD_CUH
#define SMK_BULK_LOAD_CUH

#include "../include/hopper.cuh"

/* Addresses and size are multiples of 16 bytes. */
__device__ __forceinline__ void bulk_load(unsigned to, const void *from, unsigned bytes,
                                          unsigned barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

#endif
