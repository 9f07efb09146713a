/* Probe: y = x * x + 1, with STAGES cp.async copies in flight while a tile is computed.
 *
 *      round      0       1       2       3       4        STAGES = 3: a ring of 3 tiles
 *      copy     0->[0]  1->[1]  2->[2]  3->[0]  4->[1]
 *      use                      0:[0]   1:[1]   2:[2]      waits for all but STAGES - 1 groups
 *
 * y[i] = x[i] * x[i] + 1, any length; a block computes ROUNDS tiles of THREADS elements.
 * Banks: lanes write and read adjacent words: 1 wavefront per request.
 * Bytes: 4 in and 4 out of global memory per element, 2 FLOPs. Every round commits a group, at the
 * end an empty one, so that "all but STAGES - 1" always leaves out the tile that is needed.
 * Differs from copy_async by the ring of stages. Each thread still reads only its own copies.
 */
#include "common.cuh"

#define THREADS 256
#define ROUNDS  8

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_pipeline_async(const __grid_constant__ probe_args g) {
    __shared__ float word[STAGES][THREADS];

    const int t = threadIdx.x;
    const long long first = (long long)blockIdx.x * THREADS * ROUNDS + t;

#pragma unroll
    for (int round = 0; round < ROUNDS + STAGES - 1; round++) {
        if (round < ROUNDS) {
            const long long i = first + (long long)round * THREADS;
            const bool exists = i < g.n_y;
            COPY_ASYNC_OR_ZERO(&word[round % STAGES][t], exists ? g.x + i : g.x, exists);
        }
        COPY_ASYNC_COMMIT();
        const int due = round - (STAGES - 1);
        if (due < 0) continue;
        COPY_ASYNC_WAIT(STAGES - 1);
        const long long i = first + (long long)due * THREADS;
        const float v = word[due % STAGES][t];
        if (i < g.n_y) g.y[i] = v * v + 1;
    }
}
