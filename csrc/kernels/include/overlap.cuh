/* Overlap of launches of one job: programmatic dependent launch.
 *
 *      pack      |#### last blocks ##|                   without: |pack ##| 1-1.5 us |product ####|
 *      product        |start | waits  |####################
 *
 * Between launches of a stream 1 to 1.5 us pass in which nothing runs. Here the second launch may
 * begin once all blocks of the first have executed launch_dependents (or have ended), where there
 * is room. It sets up what does not depend on the first: barriers, tensor maps, addresses. Then it
 * waits until the first launch has ended and its writes are visible. The wait covers only the
 * previous launch, which has itself waited for the one before. So the rule in a job is:
 *
 *     all threads of all kernels wait before they first read or write global memory,
 *
 * though only the workspace is shared. A variant with `overlaps` promises that; the emulator checks
 * it. The first launch of a job never overlaps, so work queued by other libraries is complete.
 * There, and in code for chips before sm_90, these functions have no effect.
 * Source: PTX ISA, griddepcontrol.
 */
#ifndef SMK_OVERLAP_CUH
#define SMK_OVERLAP_CUH

__device__ __forceinline__ void let_next_launch_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ void wait_for_launch_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* For kernels that have nothing to do before the wait. */
__device__ __forceinline__ void overlap_launches() {
    let_next_launch_begin();
    wait_for_launch_before();
}

#endif
