/* Clusters of blocks, from sm_90 on; elsewhere a block is one. */
#ifndef SMK_CLUSTER_CUH
#define SMK_CLUSTER_CUH

#include "mbarrier.cuh"
#include "warp.cuh"

/* A cluster is all of the grid's second dimension: blockIdx.x is its number, blockIdx.y a block's
 * rank. %clusterid would be a division. */
__device__ __forceinline__ int cluster_size() {
#if __CUDA_ARCH__ >= 900
    return (int)gridDim.y;
#else
    return 1;
#endif
}

/* ---- from here on: only where cluster_size() is not 1 ---- */

/* Of all threads of the cluster. After arrive and wait all have begun, and see barriers that
 * barrier_init_done() has published. */
__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* cluster_arrive(), where what this thread has done before is done for those that wait. That takes
 * until all of its accesses to memory are. */
__device__ __forceinline__ void cluster_publish() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

/* The word that the block `rank` of the cluster has at this place of its shared memory. */
__device__ __forceinline__ unsigned load_of_rank(const unsigned *own, unsigned rank) {
    unsigned there, x;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(rank));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there) : "memory");
    return x;
}

/* barrier_arrive() at the barrier that the block `rank` of the cluster has at this address. It
 * orders what this block has done for itself alone: a release at the cluster's scope waits for all
 * of a thread's accesses to memory, 1 us. */
__device__ __forceinline__ void barrier_arrive_of_rank(unsigned barrier, unsigned rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(barrier), "r"(rank));
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}

/* Copies shared memory to that of the block `rank`, where the bytes complete on its mbarrier; after
 * fence_async_proxy(). */
__device__ __forceinline__ void copy_to_rank(unsigned to, unsigned from, unsigned bytes,
                                             unsigned barrier, unsigned rank) {
    unsigned there, own;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(to), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(own) : "r"(barrier), "r"(rank));
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(there),
                 "r"(from), "r"(bytes), "r"(own)
                 : "memory");
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

#endif
