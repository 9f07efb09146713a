/* The ring of stages between the thread that copies tiles and the warpgroups that multiply them, as
 * wgmma_gemm.cuh draws it. The including file defines CONSUMERS, the warpgroups that multiply.
 */
#ifndef SMK_WGMMA_RING_CUH
#define SMK_WGMMA_RING_CUH

#include "cluster.cuh"
#include "hopper.cuh"

/* Whether a warp is one of those that multiply. Their branch of a kernel comes first and returns:
 * otherwise ptxas puts the code that copies at the end, up to 100 KB from the beginning. It does so
 * with a function, too: this is a macro. */
#define MULTIPLIES(warp) ((warp) >= 4)

typedef struct ring {
    /* Addresses: the tiles, C's boxes, the tiles' barriers, and 16 bytes for one more. */
    unsigned stages, out, full, empty, more;
    int count, stage_bytes;
    int at;
    unsigned parity;
    bool again;  /* no longer the first time round, in which all stages are free */
    int sharing; /* blocks of the cluster, which copy to each other; 1: a block has its own */
    int first;   /* rank of the first of these */
} ring;

/* Lays out shared memory from `shared`, a multiple of 1024, and initializes the barriers; for all
 * threads of the block, or cluster. Meanwhile warp 0, which copies, does what first() says. The
 * barriers come first: then the first copy does not wait for sizes. */
template <typename First>
__device__ __forceinline__ ring ring_at(unsigned shared, int count, int stage_bytes, int sharing,
                                        First first) {
    ring r;
    r.full = shared;
    r.empty = r.full + 8 * RING_STAGES;
    r.more = r.empty + 8 * RING_STAGES;
    r.stages = shared + RING_BARRIERS;
    r.out = r.stages + count * stage_bytes;
    r.count = count;
    r.stage_bytes = stage_bytes;
    r.at = 0;
    r.parity = 0;
    r.again = false;
    r.sharing = sharing;
    r.first = 0;
    const int warp = warp_of_block();
    if (warp == 0) {
        first();
    } else if (elect_one()) {
#pragma unroll 1
        for (int s = warp - 1; s < count; s += 4 * (CONSUMERS + 1) - 1) {
            barrier_init(r.full + 8 * s, 1);
            barrier_init(r.empty + 8 * s, 4 * CONSUMERS * sharing);
        }
        barrier_init_done();
    }
    if (sharing > 1) {
        cluster_arrive();
        cluster_wait();
    } else {
        __syncthreads();
    }
    return r;
}

__device__ __forceinline__ void next(ring &r) {
    r.at++;
    if (r.at == r.count) {
        r.at = 0;
        r.parity ^= 1;
        r.again = true;
    }
}

/* This warp is done with a stage: lane 0 arrives, after all lanes have read; or a lane for each
 * block that may copy to the stage. */
__device__ __forceinline__ void release(const ring &r, int stage) {
    const int lane = threadIdx.x % 32;
    const unsigned empty = r.empty + 8 * stage;
    __syncwarp();
    if (r.sharing > 1) {
        if (lane < r.sharing) barrier_arrive_of_rank(empty, r.first + lane);
    } else if (lane == 0) {
        barrier_arrive(empty);
    }
}

/* For the thread that copies, after its last: waits until all blocks have released their stages.
 * A block may not exit before others arrive at its barriers. */
__device__ __forceinline__ void wait_for_releases(ring &r) {
    for (int stage = 0; stage < r.count; stage++, next(r))
        barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);
}

/* The sum over `steps` stages: multiply(add) starts the products of one, which run until those of
 * the next BEHIND stages have been started. */
template <int BEHIND = 1, typename T, int COUNT, typename Multiply>
__device__ __forceinline__ void sum_stages(T (&sum)[COUNT], ring &r, int steps, Multiply multiply) {
    int before[BEHIND]; /* stages of the last steps */
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sum[i] = 0;
    wgmma_pin(sum); /* else ptxas sets them between products, and lets each wait for the last */
    for (int step = 0; step < steps; step++, next(r)) {
        multiply(step > 0);
        wgmma_wait<BEHIND>();
        if (step >= BEHIND) release(r, before[BEHIND - 1]);
#pragma unroll
        for (int i = BEHIND - 1; i > 0; i--)
            before[i] = before[i - 1];
        before[0] = r.at;
    }
    wgmma_wait<0>();
    wgmma_pin(sum);
#pragma unroll
    for (int i = BEHIND - 1; i >= 0; i--)
        if (steps > i) release(r, before[i]);
}

/* C leaves through shared memory in boxes whose rows are as long as their swizzle: the address of a
 * 16-byte piece of a row. 8 rows of a column are in different banks. */
template <int ROW_BYTES = 128>
__device__ __forceinline__ unsigned box_piece(unsigned box, int row, int piece) {
    return box + ((row * ROW_BYTES + piece * 16) ^ row * ROW_BYTES / 128 % (ROW_BYTES / 16) << 4);
}

#endif
