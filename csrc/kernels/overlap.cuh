/* Launches of one job that overlap: programmatic dependent launch.
 *
 *      pack      |#### last blocks ##|                          without:  |pack ##|   3 us   |product ####|
 *      product        |start | waits  |####################
 *
 * Between two launches of a stream some 3 us pass, in which nothing runs. Here the second launch may begin
 * as soon as all blocks of the first have said so (or have ended), on multiprocessors that have room; what
 * does not depend on the first, it does then: barriers, tensor maps, addresses. Then it waits until the first
 * launch has ended and its writes are visible. The wait is for the launch right before, and that one has
 * waited in turn. So in a job
 *
 *     all threads of all kernels wait, before they first read or write global memory,
 *
 * though it is the workspace alone that they share. A row of the table that says `overlaps` promises that,
 * and the emulator looks for accesses before the wait. The first launch of a job never overlaps: what other
 * libraries have queued is done. There, and in code for chips before sm_90, nothing happens here.
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

/* Where nothing is to be done before the wait. */
__device__ __forceinline__ void overlap_launches() {
    let_next_launch_begin();
    wait_for_launch_before();
}

#endif
