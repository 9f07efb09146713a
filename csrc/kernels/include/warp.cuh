/* Which warp and lane a thread is. Instructions for TMA, mbarriers and wgmma take uniform registers.
 * If ptxas cannot tell that all lanes agree, it moves the values there one by one, in a loop over
 * the lanes; of these functions it can.
 */
#ifndef SMK_WARP_CUH
#define SMK_WARP_CUH

__device__ __forceinline__ int warp_of_block() {
    return __shfl_sync(0xffffffff, (int)threadIdx.x / 32, 0);
}

/* True in one lane of a warp, always the same; for whole warps. */
__device__ __forceinline__ bool elect_one() {
#if __CUDA_ARCH__ >= 900
    unsigned elected;
    asm volatile("{\n"
                 ".reg .pred elected;\n"
                 "elect.sync _|elected, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, elected;\n"
                 "}"
                 : "=r"(elected));
    return elected != 0;
#else
    return threadIdx.x % 32 == 0;
#endif
}

/* True in one thread of a warpgroup, always the same; for whole warps. */
__device__ __forceinline__ bool is_leader() {
    return warp_of_block() % 4 == 0 && elect_one();
}

#endif
