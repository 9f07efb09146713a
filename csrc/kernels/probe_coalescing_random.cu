/* Probe: one warp reads global words at random.
 *
 *      lane 0 -> x[5131]   lane 1 -> x[88]   lane 2 -> x[40973] ...      up to 32 sectors, 32 lines
 *
 * y[lane] = x[hash(seed, lane) % n] for 32 lanes; n is the length of x, hash the 32-bit integer
 * h = seed * 0x9E3779B9 + lane; h ^= h >> 16; h *= 0x85EBCA6B; h ^= h >> 13; h *= 0xC2B2AE35;
 * h ^= h >> 16 (MurmurHash3's finalizer, Austin Appleby, public domain: any good mixing would do).
 * Banks: none. Sectors: the distinct ones; with n of many thousands nearly always 32.
 * Bytes: 1024 moved for 128 used. FLOPs: none.
 * Differs from coalescing by the addresses.
 */
#include "common.cuh"

#define LANES 32

extern "C" __global__ void __launch_bounds__(LANES)
    probe_coalescing_random(const __grid_constant__ probe_args g) {
    const int lane = threadIdx.x;
    unsigned h = (unsigned)g.runtime[0] * 0x9E3779B9u + lane;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    h ^= h >> 16;
    g.y[lane] = g.x[h % g.n_x];
}
