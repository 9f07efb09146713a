/* Loads that stay where they are written. The compiler would sink a load behind the use of another
 * to save registers, and the thread would then wait for each load separately.
 */
#ifndef SMK_TRANSPOSE_LOADS_CUH
#define SMK_TRANSPOSE_LOADS_CUH

#include "common.cuh"

#define LOADS(name, instruction)                                                                   \
    __device__ __forceinline__ unsigned char name(const unsigned char *p) {                        \
        unsigned v;                                                                                \
        asm volatile(instruction ".u8 %0, [%1];" : "=r"(v) : "l"(p));                              \
        return (unsigned char)v;                                                                   \
    }                                                                                              \
    __device__ __forceinline__ unsigned short name(const unsigned short *p) {                      \
        unsigned short v;                                                                          \
        asm volatile(instruction ".u16 %0, [%1];" : "=h"(v) : "l"(p));                             \
        return v;                                                                                  \
    }                                                                                              \
    __device__ __forceinline__ unsigned name(const unsigned *p) {                                  \
        unsigned v;                                                                                \
        asm volatile(instruction ".b32 %0, [%1];" : "=r"(v) : "l"(p));                             \
        return v;                                                                                  \
    }                                                                                              \
    __device__ __forceinline__ unsigned long long name(const unsigned long long *p) {              \
        unsigned long long v;                                                                      \
        asm volatile(instruction ".b64 %0, [%1];" : "=l"(v) : "l"(p));                             \
        return v;                                                                                  \
    }                                                                                              \
    __device__ __forceinline__ uint4 name(const uint4 *p) {                                        \
        uint4 v;                                                                                   \
        asm volatile(instruction ".v4.b32 {%0, %1, %2, %3}, [%4];"                                 \
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                                  \
                     : "l"(p));                                                                    \
        return v;                                                                                  \
    }

LOADS(load, "ld.global.nc")              /* read-only data */
LOADS(load_256, "ld.global.nc.L2::256B") /* L2 fetches 256 bytes; a neighbour uses the rest */
LOADS(load_mutable, "ld.global")
#undef LOADS

#endif
