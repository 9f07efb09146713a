/* Instructions for mbarriers, one function each, from sm_90 on.
 *
 * Shared memory is passed as its 32-bit address. Semantics: PTX ISA 9.0.
 */
#ifndef SMK_MBARRIER_CUH
#define SMK_MBARRIER_CUH

/* A phase completes after `arrivals` arrivals and the expected bytes. */
__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

/* Makes barrier_init visible to the cluster and to TMA; a barrier of the threads must follow. */
__device__ __forceinline__ void barrier_init_done() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives, and adds this many bytes of TMA copies to the phase's transaction count. */
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives when all cp.async copies that this thread has issued have landed. */
__device__ __forceinline__ void copy_async_arrive(unsigned barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

/* Waits until the phase of this parity has completed. The first phase has parity 0; on a new
 * barrier a wait for parity 1 returns at once. */
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Proxy fence: orders this thread's generic shared accesses before later ones by TMA and wgmma. */
__device__ __forceinline__ void fence_async_proxy() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
