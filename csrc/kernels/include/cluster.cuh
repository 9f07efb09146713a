/* Clusters of blocks, from sm_90 on; elsewhere a block is one. */
#ifndef SMK_CLUSTER_CUH
#define SMK_CLUSTER_CUH

#include "warp.cuh"

__device__ __forceinline__ unsigned cluster_size() {
    unsigned size = 1;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
#endif
    return size;
}

/* Volatile: read where it is used, a register less than if it is kept. */
__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

/* Of all clusters; without them of the block. */
__device__ __forceinline__ unsigned cluster_number() {
    unsigned number = blockIdx.x;
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
#endif
    return number;
}

/* Of all threads of the cluster: all have begun, and see barriers that barrier_init_done() has
 * published. */
__device__ __forceinline__ void cluster_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
#endif
}

/* cluster_begin() in two steps. */
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/* ---- what other blocks of the cluster store to this one ---- */

/* Initializes an mbarrier, in one thread, on which so many bytes will complete. A barrier of the
 * cluster must follow. */
__device__ __forceinline__ void expect_bytes(unsigned barrier, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
#endif
}

/* Waits for these bytes. */
__device__ __forceinline__ void wait_for_bytes(unsigned barrier) {
#if __CUDA_ARCH__ >= 900
    unsigned arrived;
    do {
        asm volatile("{\n"
                     ".reg .pred arrived;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%1], 0;\n"
                     "selp.u32 %0, 1, 0, arrived;\n"
                     "}"
                     : "=r"(arrived)
                     : "r"(barrier)
                     : "memory");
    } while (!arrived);
#endif
}

/* Copies shared memory to that of the block `rank`, where the bytes complete on its mbarrier; after
 * fence_writes(). */
__device__ __forceinline__ void copy_to_rank(unsigned to, unsigned from, unsigned bytes,
                                             unsigned barrier, unsigned rank) {
#if __CUDA_ARCH__ >= 900
    unsigned there, own;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(own) : "r"(barrier), "r"(rank));
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(there),
                 "r"(from), "r"(bytes), "r"(own)
                 : "memory");
#endif
}

/* Whole warps of a block, or of a warpgroup, copy to the blocks of the cluster, `warps` at a time:
 * copy(rank), in one lane. */
template <typename Copy>
__device__ __forceinline__ void copy_to_each(int parts, int warp, int warps, Copy copy) {
    if (!elect_one()) return;
#pragma unroll 1
    for (int rank = warp; rank < parts; rank += warps)
        copy(rank);
}

/* Orders this thread's writes to shared memory before copies of it, by any thread after a barrier. */
__device__ __forceinline__ void fence_writes() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#endif
