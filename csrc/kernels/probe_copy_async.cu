/* Probe: y = 2 x, through shared memory by cp.async.
 *
 *      global x --cp.async--> shared --ld--> register, * 2 --st--> global y
 *                  asynchronous: no register holds the word on its way
 *
 * y[i] = 2 * x[i], any length.
 * Banks: lanes write and read adjacent words: 1 wavefront per request.
 * Bytes: 4 in and 4 out of global memory per element, 1 FLOP. A thread reads only what it copied
 * itself, so it waits for its own copy and needs no barrier: the smallest correct use of cp.async.
 * Differs from broadcast by cp.async in place of load and store.
 */
#include "common.cuh"

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_copy_async(const __grid_constant__ probe_args g) {
    __shared__ float word[THREADS];

    const int t = threadIdx.x;
    const long long i = (long long)blockIdx.x * THREADS + t;
    const bool exists = i < g.n_y;

    COPY_ASYNC_OR_ZERO(&word[t], exists ? g.x + i : g.x, exists);
    COPY_ASYNC_COMMIT();
    COPY_ASYNC_WAIT(0);
    if (exists) g.y[i] = 2 * word[t];
}
