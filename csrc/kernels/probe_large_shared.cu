/* Probe: more shared memory than a launch gets without opting in.
 *
 *      x:  0 1 2 3 ... 24575 | 24576 ...        a chunk of KIB KiB per block, all of it in shared
 *      y:  24575 ... 3 2 1 0 | 49151 ...        memory at once: reversed
 *
 * y holds each chunk of 256 * KIB words of x in reverse; the last, shorter one too.
 * Static shared memory is limited to 48 KiB. More must be dynamic, and the launch must opt in, up
 * to the limit of the architecture: 163 KiB on 8.0, 99 on 8.6 and 8.9, 227 on 9.0.
 * Banks: adjacent words, forwards and backwards: 1 wavefront per request.
 * Bytes: 4 in and 4 out of global memory per element. FLOPs: none.
 * Differs from broadcast by dynamic shared memory, and by a barrier for the whole block.
 */
#include "common.cuh"

#define THREADS 256
#define WORDS   (KIB * 256)

extern "C" __global__ void __launch_bounds__(THREADS)
    probe_large_shared(const __grid_constant__ probe_args g) {
    extern __shared__ float word[];

    const int t = threadIdx.x;
    const long long first = (long long)blockIdx.x * WORDS, left = g.n_y - first;
    const int n = left < WORDS ? (int)left : WORDS;

    for (int i = t; i < n; i += THREADS) {
        word[i] = g.x[first + i];
    }
    __syncthreads();
    for (int i = t; i < n; i += THREADS) {
        g.y[first + i] = word[n - 1 - i];
    }
}
