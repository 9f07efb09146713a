/* GEMV, and a few at a time: one row or column of C, up to 4, whose matrix is read once, at memory
 * speed.
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
 * through L1, with no barrier before the loads. A thread has 4 vectors of 16 bytes in flight. ALONG
 * they are of 4 rows, which share its elements of x, or of one row, if there are few. ACROSS they
 * are of 4 slices of K. The host makes as many threads as fill the multiprocessors
 * (core/plan_gemv.c).
 *
 * Alignment. Rows with an odd pitch begin anywhere, but every WIDE-th begins at the same place
 * modulo 16 bytes. Threads whose rows do so read aligned vectors. ALONG these begin at the first
 * boundary in the row, and x is read from there; the ends are read by one element per thread.
 * ACROSS they begin at the last boundary before the strip. So strips of neighbours overlap by a
 * vector, and the sums of each slice are shifted when the block adds them. Elements that are not
 * contiguous are read one by one.
 *
 * skinny differs: it stages x, its blocks are as large for short K, and rows of 4 and 8 bytes with
 * an odd pitch are read by elements.
 */
#include "gemv_parts.cuh"

template <int THIN, direction HOW> __device__ __forceinline__ void product(const gemm_args &all) {
    extern __shared__ uint4 bytes[];
    number *shared = reinterpret_cast<number *>(bytes);
    block_place at;
    const operands g = find_block(at, all, THIN, all.tiles.strip);
    overlap_launches();
    if (HOW == ACROSS) {
        across<THIN>(all, g, at, shared);
    } else if (all.tiles.strip > (int)blockDim.y) {
        along<THIN, GEMV_ROWS>(all, g, at, shared);
    } else {
        along<THIN, 1>(all, g, at, shared);
    }
}

#define PRODUCT(name, thin, how)                                                                   \
    extern "C" __global__ void __launch_bounds__(GEMV_THREADS(thin))                               \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<thin, how>(g);                                                                     \
    }
#define PRODUCTS(name, thin)                                                                       \
    PRODUCT(name##_##thin, thin, ACROSS)                                                           \
    PRODUCT(name##_##thin##_along, thin, ALONG)
PRODUCTS(gemm_gemv, 1)
PRODUCTS(gemm_gemv, 4)
SUM_PARTS(gemm_gemv_reduce)
