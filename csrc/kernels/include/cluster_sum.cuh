/* Split-K inside a cluster: its blocks compute the same tile of C, each over a range of K, and add
 * their sums through distributed shared memory. No second launch, and no sums in global memory.
 *
 *   block 0   K 0   sums of columns | 0 | 1 |     block r gets the others' sums of its share r of
 *   block 1   K 1   sums of columns | 0 | 1 |     the columns, adds them in the order of K, and
 *                                                 stores its share of the tile
 *
 * Thread t of a warpgroup sends to thread t of the same warpgroup: they hold the same elements.
 * Bytes: each block sends and receives (CLUSTER_K - 1) / CLUSTER_K of its sums. Stores and loads of
 * 16 bytes per thread in the order of threads: no bank conflicts.
 */
#ifndef SMK_CLUSTER_SUM_CUH
#define SMK_CLUSTER_SUM_CUH

#include "hopper.cuh"

/* The received sums of a warpgroup, `BYTES` of them. Full: they are here; empty: all receivers of
 * this warpgroup's sums have read them. */
typedef struct cluster_exchange {
    unsigned buffer, full, empty, parity;
} cluster_exchange;

template <int COUNT, int BLOCKS> constexpr int EXCHANGE_BYTES = (BLOCKS - 1) * COUNT / BLOCKS * 512;

template <int BLOCKS> __device__ __forceinline__ void exchange_init(const cluster_exchange &e) {
    barrier_init(e.full, 1);
    barrier_init(e.empty, 4 * (BLOCKS - 1)); /* the other blocks' warps */
}

/* Sends all shares but this block's own. A buffer has a slot per sender, in the order of ranks. */
template <int COUNT, int BLOCKS>
__device__ __forceinline__ void send_shares(const float (&sum)[COUNT], const cluster_exchange &e,
                                            unsigned rank) {
    constexpr int SHARE = COUNT / BLOCKS;
    const unsigned thread = threadIdx.x % 128;
#pragma unroll
    for (int to = 0; to < BLOCKS; to++) {
        if (to == rank) continue;
        const unsigned slot = e.buffer + (rank - (rank > to)) * SHARE * 512 + thread * 16;
        const unsigned there = address_in_cluster(slot, to), full = address_in_cluster(e.full, to);
#pragma unroll
        for (int i = 0; i < SHARE; i += 4) {
            const float *x = sum + to * SHARE + i;
            store_async(there + i * 512, full, make_float4(x[0], x[1], x[2], x[3]));
        }
    }
}

/* share += the sums of block `from`. */
template <int SHARE>
__device__ __forceinline__ void add_slot(float (&share)[SHARE], unsigned slot) {
#pragma unroll
    for (int i = 0; i < SHARE; i += 4) {
        const float4 x = shared_load_four(slot + i * 512 + threadIdx.x % 128 * 16);
        share[i] += x.x;
        share[i + 1] += x.y;
        share[i + 2] += x.z;
        share[i + 3] += x.w;
    }
}

/* The cluster's sums of this block's share of the columns. For all threads of a warpgroup. */
template <int COUNT, int BLOCKS>
__device__ __forceinline__ void cluster_sum(const float (&sum)[COUNT], cluster_exchange &e,
                                            float (&share)[COUNT / BLOCKS]) {
    constexpr int SHARE = COUNT / BLOCKS;
    const unsigned rank = cluster_rank(), lane = threadIdx.x % 32;
    if (threadIdx.x % 128 == 0) barrier_expect(e.full, EXCHANGE_BYTES<COUNT, BLOCKS>);
    barrier_wait(e.empty, e.parity ^ 1);
    send_shares<COUNT, BLOCKS>(sum, e, rank);
    barrier_wait(e.full, e.parity);
#pragma unroll
    for (int i = 0; i < SHARE; i++)
        share[i] = 0;
#pragma unroll
    for (int from = 0; from < BLOCKS; from++) {
        if (from != rank) {
            add_slot(share, e.buffer + (from - (from > rank)) * SHARE * 512);
            continue;
        }
#pragma unroll
        for (int i = 0; i < SHARE; i++) {
            float own = sum[i];
#pragma unroll
            for (int part = 1; part < BLOCKS; part++)
                own = rank == part ? sum[part * SHARE + i] : own;
            share[i] += own;
        }
    }
    __syncwarp();
    if (lane < BLOCKS && lane != rank) barrier_arrive_in_cluster(e.empty, lane);
    e.parity ^= 1;
}

#endif
