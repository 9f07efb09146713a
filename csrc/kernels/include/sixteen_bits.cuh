/* Conversions between elements and their type of sums: fp32 for float16 and bfloat16. */
#ifndef SMK_SIXTEEN_BITS_CUH
#define SMK_SIXTEEN_BITS_CUH

#include "args.h"

__device__ __forceinline__ float widen(float16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
__device__ __forceinline__ float16 narrow(float x, float16 y) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
__device__ __forceinline__ float widen(bfloat16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}
__device__ __forceinline__ bfloat16 narrow(float x, bfloat16 y) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

template <typename T> __device__ __forceinline__ T widen(T x) {
    return x;
}
template <typename T> __device__ __forceinline__ T narrow(T x, T) {
    return x;
}

/* Two adjacent elements, the first in the low half. */
__device__ __forceinline__ unsigned pack_pair(float x, float y, float16) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
__device__ __forceinline__ unsigned pack_pair(float x, float y, bfloat16) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}

#endif
