/* GEMM of a small K and a large C, a sum of few outer products: C is written at memory speed.
 *
 *         B: K x 32 THREAD_N              a warp: THREAD_M rows of C, lanes along its columns
 *         |l0 l1 .. l31|l0 l1 .. l31|     a lane: THREAD_M x THREAD_N outputs, columns 32 apart
 *    A:   +------------+------------+
 *    w0   | row 0  #   |        #   |     a row of a warp: THREAD_N stores of 128 contiguous bytes,
 *    w1   | row 1  #   |        #   |     straight from registers
 *    ..   +------------+------------+
 *
 * Limit: 4 M N bytes are written. 4097 x 4097 x 1 are 67 MB, 17 us; a thousandth of that is read.
 * So the rest must take few instructions. There is no ring, one wait for all of K (up to PANEL_K,
 * then the next), and C is not staged in shared memory: lanes lie along its rows at any pitch.
 * The price: all lanes of a warp have the same rows, so all of them load every element of A.
 * Shared memory, per 4 k: 16 loads of 16 bytes of A, the same for all lanes, 2 wavefronts each, and
 * 16 words of B per lane, 1 each: 48 per 256 FFMAs of a warp; four warps take 256 clocks: 3/4.
 * Instructions for 64 x 128 outputs, K <= 4: some 850 per warp: 256 FFMAs, 64 stores at 4 each.
 * Banks: sliced_k_copies.cuh; adjacent lanes have adjacent columns of B.
 * 16 bits and fp64: MMAs, 16 rows per warp. Their sums are not along rows, so a warp passes them
 * through shared memory of its own: panel_mma.cuh, small_k_mma.cuh.
 * TURNED, for few columns: columns of C take the place of its rows, so that lanes lie along the rows
 * of A. Else of 3 columns 3 lanes of 32 would work. Stores are not along rows then, but the rows of
 * such a C are short, and a warp writes all sectors of its 32 rows.
 * Differs from sliced_k by lanes along rows of C, and by sums that are not combined across warps.
 */
#define FFMA_OF(type) FFMA_OF_##type
#define BY_FFMA(type) FFMA_OF(type)
#define FFMA_OF_float 1 /* the other types have MMAs that lose nothing */
#if BY_FFMA(REAL)
#include "sliced_k_copies.cuh"

constexpr int WIDTH = 32 * THREAD_N, WARPS = BLOCK_M / THREAD_M, THREADS = 32 * WARPS;

/* C[n * 32 * right] of each row, `down` apart. */
template <bool READ>
__device__ __forceinline__ void store(const gemm_args &g, const float (&sum)[THREAD_M][THREAD_N],
                                      float *C, int rows, int columns) {
    const float alpha = (float)g.alpha, beta = (float)g.beta;
    const long long down = TURNED ? 1 : g.ldc, right = TURNED ? 32 * g.ldc : 32;
#pragma unroll
    for (int m = 0; m < THREAD_M; m++) {
#pragma unroll
        for (int n = 0; n < THREAD_N; n++) {
            if (m < rows && n * 32 < columns) {
                C[n * right] = alpha * sum[m][n] + (READ ? beta * C[n * right] : 0);
            }
        }
        C += down;
    }
}

template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ uint4 bytes[];
    constexpr order OF_ROWS = TURNED ? OF_B : OF_A, OF_LANES = TURNED ? OF_A : OF_B;
    float *panel = reinterpret_cast<float *>(bytes);
    const tile_origin tile = block_tile(g.N, TURNED ? WIDTH : BLOCK_M, TURNED ? BLOCK_M : WIDTH);
    const operand_lines A = lines_from<OF_A>(
        g.A + blockIdx.z * g.batch_a, OF_A == ALONG ? g.lda : g.step_a, tile.row, g.M, 0, g.K);
    const operand_lines B = lines_from<OF_B>(
        g.B + blockIdx.z * g.batch_b, OF_B == ALONG ? g.step_b : g.ldb, tile.column, g.N, 0, g.K);
    const operand_lines &of_rows = TURNED ? B : A, &of_lanes = TURNED ? A : B;
    const int row = threadIdx.x / 32 * THREAD_M, lane = threadIdx.x % 32;
    const int chunks = (int)((g.K + CHUNK - 1) / CHUNK), most = min(chunks, PANEL_K / CHUNK);
    float *lane_panel = panel + most * CHUNK * BLOCK_M;
    unsigned rows_to = shared_address(panel), lanes_to = shared_address(lane_panel);
    asm volatile("" : "+r"(rows_to), "+r"(lanes_to));
    float sum[THREAD_M][THREAD_N] = {};
#pragma unroll 1
    for (int first = 0; first < chunks; first += most) {
        const int end = min(first + most, chunks);
        if (first > 0) __syncthreads();
        copy_panel<OF_ROWS, BLOCK_M, 4, THREADS>(rows_to, of_rows, first, end);
        copy_panel<OF_LANES, WIDTH, 1, THREADS>(lanes_to, of_lanes, first, end);
        COPY_ASYNC_COMMIT();
        COPY_ASYNC_WAIT(0);
        __syncthreads();
        const int slabs =
            ((int)min(g.K - (long long)first * CHUNK, (long long)most * CHUNK) + SLAB - 1) / SLAB;
#pragma unroll 1
        for (int slab = 0; slab < slabs; slab++) {
            float x[THREAD_M][SLAB], y[THREAD_N][SLAB];
            load_fragment<OF_LANES, WIDTH, 1, 32>(y, lane_panel, lane, slab);
            load_fragment<OF_ROWS, BLOCK_M, 4, 4>(x, panel, row, slab);
#pragma unroll
            for (int k = 0; k < SLAB; k++) {
#pragma unroll
                for (int m = 0; m < THREAD_M; m++) {
#pragma unroll
                    for (int n = 0; n < THREAD_N; n++) {
                        sum[m][n] += x[m][k] * y[n][k];
                    }
                }
            }
        }
    }
    const long long down = TURNED ? 1 : g.ldc, right = TURNED ? g.ldc : 1;
    const int rows = (int)min((long long)of_rows.lines - row, (long long)THREAD_M);
    float *C = g.C + blockIdx.z * g.batch_c + tile.row * g.ldc + tile.column;
    C += row * down + lane * right;
    if ((float)g.beta == 0) {
        store<false>(g, sum, C, rows, of_lanes.lines - lane);
    } else {
        store<true>(g, sum, C, rows, of_lanes.lines - lane);
    }
}
constexpr int REGISTERS = THREAD_M * THREAD_N > 32 ? 128 : THREAD_M * THREAD_N > 16 ? 80 : 64;

#else /* by MMA */
#include "small_k_mma.cuh"
template <order OF_A, order OF_B> __device__ __forceinline__ void product(const gemm_args &g) {
    extern __shared__ uint4 bytes[];
    const tile_place tile = place((int)blockIdx.x, g.tiles);
    const long long first_row = (long long)tile.row * BLOCK_M;
    const long long first_column = (long long)tile.column * BLOCK_N;
    operand_lines A = lines_from<OF_A>(g.A + blockIdx.z * g.batch_a,
                                       OF_A == ALONG ? g.lda : g.step_a, first_row, g.M, 0);
    operand_lines B = lines_from<OF_B>(g.B + blockIdx.z * g.batch_b,
                                       OF_B == ALONG ? g.step_b : g.ldb, first_column, g.N, 0);
    const int warp = threadIdx.x / 32, row = warp / WARPS_N * WARP_M;
    const int column = warp % WARPS_N * WARP_N;
    constexpr int MOST = PANEL_K > CHUNK ? PANEL_K : CHUNK;
    const int chunks = ((int)min(g.K, (long long)MOST) + CHUNK - 1) / CHUNK;
    const unsigned a_panel = shared_address(bytes), b_panel = a_panel + chunks * (BLOCK_M * 128);
    warp_sums sum = {};
#pragma unroll 1
    for (long long left = g.K; left > 0; left -= MOST) {
        const int here = (int)min(left, (long long)MOST);
        if (left < g.K) __syncthreads(); /* all warps have read the panels */
        copy_panels<OF_A, OF_B, BLOCK_M, BLOCK_N, THREADS>(a_panel, b_panel, A, B, here);
#pragma unroll 1
        for (int slab = 0; slab * SLAB < here; slab++) {
            multiply_slab<OF_A, OF_B, BLOCK_M, BLOCK_N>(sum, a_panel, b_panel, row, column, slab);
        }
        advance<OF_A>(A, MOST);
        advance<OF_B>(B, MOST);
    }
    __syncthreads(); /* the panels' memory is reused */
    const long long rows = g.M - first_row - row, columns = g.N - first_column - column;
    store({g.C + blockIdx.z * g.batch_c + (first_row + row) * g.ldc + first_column + column, g.ldc,
           (int)min(rows, 16ll), (int)min(columns, (long long)WARP_N)},
          a_panel + warp * (16 * PITCH), sum, (part_sum)g.alpha, (part_sum)g.beta);
}

constexpr int SUMS = N_TILES * 4 * sizeof(part_sum) / 4;
constexpr int REGISTERS = SUMS <= 32 ? 80 : SUMS <= 64 ? 128 : 232;
#endif

/* Registers per thread at most, and with them the resident blocks per multiprocessor. */
constexpr int BLOCKS = 65536 / REGISTERS / THREADS;

#define SMALL_K(name, of_a, of_b)                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                  \
        name(const __grid_constant__ gemm_args g) {                                                \
        product<of_a, of_b>(g);                                                                    \
    }
SMALL_K(gemm_small_k, ALONG, ACROSS)
SMALL_K(gemm_small_k_a, ACROSS, ACROSS)
SMALL_K(gemm_small_k_b, ALONG, ALONG)
SMALL_K(gemm_small_k_ab, ACROSS, ALONG)
