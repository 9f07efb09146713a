/* Probe: one warp reads the same shared word in all lanes.
 *
 *      lane  0 1 2 3 ... 31
 *            \ \ | | ... /       one bank, one word: the word goes to all lanes
 *              [ word ]
 *
 * y[lane] = x[word] for 32 lanes; a word beyond the end of x reads as 0.
 * Banks: a conflict is two different words in one bank. One word takes 1 wavefront, however many
 * lanes read it.
 * Bytes: 128 into shared memory, 4 out of it. FLOPs: none.
 * Differs from stride_read by the address: the same in every lane, stride 0.
 */
#include "common.cuh"

#define LANES 32

extern "C" __global__ void __launch_bounds__(LANES)
    probe_broadcast(const __grid_constant__ probe_args g) {
    __shared__ float word[LANES];

    const int lane = threadIdx.x;
    word[lane] = lane < g.n_x ? g.x[lane] : 0;
    __syncwarp();
    g.y[lane] = word[g.runtime[0]];
}
