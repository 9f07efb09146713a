/* GEMV: one row or column of C, whose matrix is read once, at memory speed.
 *
 *   x: the row or column, K long       matrix: rows of K, read once       C: one row or column
 *
 *   ALONG (K-major), lanes along K         ACROSS (MN-major), lanes along C
 *
 *              k ->                                       j ->
 *     j   |g0|g0|g0|g0|..   + shuffles          k    |l0 |l1 |l2 |..   a row per slice of
 *     |   |g1|g1|g1|g1|..                       |    |l0 |l1 |l2 |..   the block's threads
 *     v   ..                                    v    ..                + shared memory
 *
 * What is short here is time: 4 MB at 4 TB/s are 1 us, as long as the way to memory and back. So
 * nothing waits for anything else. x is not staged in shared memory but read beside the matrix,
 * through L1, with no barrier before the loads. ACROSS a thread has 8 vectors of 16 bytes in flight,
 * ALONG 4 of the matrix and 4 of x. Instructions are short, too: some 300 per warp before the first
 * load and after the last one. So blocks have few threads (core/plan_gemv.c), and loads beyond the
 * end of K are predicated: a branch around each would also make the next wait for its data.
 *
 * Alignment. Rows with an odd pitch begin anywhere, but every WIDE-th begins at the same place
 * modulo 16 bytes. ALONG, vectors begin at the first boundary in the row, and x is read from there;
 * the ends are read by elements. ACROSS, the warps of a block take all places in turns, and vectors
 * begin at the last boundary before the strip. So strips of neighbours overlap by a vector, and the
 * sums of each slice are shifted when the block adds them. Elements that are not contiguous are read
 * one by one.
 *
 * skinny differs: it stages x, its blocks are as large for short K, and rows of 4 and 8 bytes with
 * an odd pitch are read by elements. More rows would share the matrix's loads, but skinny, which
 * needs fewer instructions for each, is faster for 2 to 4.
 */
#include "gemv_parts.cuh"

template <direction HOW> __device__ __forceinline__ void product(const gemm_args &all) {
    extern __shared__ uint4 bytes[];
    number *shared = reinterpret_cast<number *>(bytes);
    block_place at;
    const operands g = find_block(at, all, 1, all.tiles.strip);
    overlap_launches();
    if (HOW == ALONG)
        along(all, g, at, shared);
    else
        across(all, g, at, shared);
}

#define PRODUCT(name, how)                                                                         \
    extern "C" __global__ void __launch_bounds__(GEMV_THREADS)                                     \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<how>(g);                                                                           \
    }
#define PRODUCTS(name)                                                                             \
    PRODUCT(name##_1, ACROSS)                                                                      \
    PRODUCT(name##_1_along, ALONG)
PRODUCTS(gemm_gemv)
SUM_PARTS(gemm_gemv_reduce)
