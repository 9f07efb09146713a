/* Clusters of blocks, from sm_90 on; elsewhere a block is one. */
#ifndef SMK_CLUSTER_CUH
#define SMK_CLUSTER_CUH

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

/* Of all threads of the cluster that have not exited. */
__device__ __forceinline__ void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
#endif
}

#endif
