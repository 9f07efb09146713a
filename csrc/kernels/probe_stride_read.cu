/* Probe: one warp reads shared word lane * stride.
 *
 *      stride 1    lane  0  1  2  3 ... 31      32 words in 32 banks        1 wavefront
 *      stride 2          0  2  4  6 ... 62      banks 0 2 4 .. 30, twice    2
 *      stride 32         0 32 64 96 ...         bank 0, 32 times            32
 *      stride 33         0 33 66 99 ...         banks 0 1 2 3 .. 31         1
 *
 * y[lane] = x[lane * stride] for 32 lanes; words beyond the end of x read as 0.
 * Banks: lane l reads bank (l * stride) mod 32, so a request takes gcd(stride, 32) wavefronts;
 * stride 0 is a broadcast, 1. The stores before it write adjacent words: 1 per request.
 * Bytes: 8 KiB through shared memory, of which 128 bytes are read back. FLOPs: none.
 * Differs from nothing: the first probe.
 */
#include "common.cuh"

#define LANES      32
#define MAX_STRIDE 64
#define WORDS      (LANES * MAX_STRIDE)

extern "C" __global__ void __launch_bounds__(LANES)
    probe_stride_read(const __grid_constant__ probe_args g) {
    __shared__ float word[WORDS];

    const int lane = threadIdx.x, stride = (int)g.runtime[0];
    for (int i = lane; i < WORDS; i += LANES) {
        word[i] = i < g.n_x ? g.x[i] : 0;
    }
    __syncwarp();
    g.y[lane] = word[lane * stride];
}
