/* Loads that ask L2 for 256 bytes: the other half is what a neighbouring request wants. */
#ifndef SMK_TRANSPOSE_LOADS_CUH
#define SMK_TRANSPOSE_LOADS_CUH

#include "common.cuh"

__device__ __forceinline__ unsigned load(const unsigned *p) {
    unsigned v;
    asm volatile("ld.global.nc.L2::256B.b32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ unsigned long long load(const unsigned long long *p) {
    unsigned long long v;
    asm volatile("ld.global.nc.L2::256B.b64 %0, [%1];" : "=l"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ uint4 load(const uint4 *p) {
    uint4 v;
    asm volatile("ld.global.nc.L2::256B.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

#endif
