/* Probe: one warp reads global words a stride apart.
 *
 *      stride 1     [32 bytes: lanes 0-7][8-15][16-23][24-31]        4 sectors, 1 line of 128 bytes
 *      stride 2     [lanes 0-3][4-7] ...                             8 sectors, 2 lines
 *      stride 8     [lane 0][lane 1] ...                            32 sectors, 8 lines
 *      stride 32    as many sectors, each in its own line           32 sectors, 32 lines
 *
 * y[lane] = x[lane * stride] for 32 lanes.
 * Banks: none; shared memory is not used. A request costs its distinct 32-byte sectors, min(4
 * stride, 32), and 1 for stride 0; of 32 bytes per sector 128 are used in all. FLOPs: none.
 * Differs from stride_read by the memory: global, where adjacent words share a sector.
 */
#include "common.cuh"

#define LANES 32

extern "C" __global__ void __launch_bounds__(LANES)
    probe_coalescing(const __grid_constant__ probe_args g) {
    const long long lane = threadIdx.x;
    g.y[lane] = g.x[lane * g.runtime[0]];
}
