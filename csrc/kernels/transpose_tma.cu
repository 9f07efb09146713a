/* Transpose: TMA loads the next tiles, swizzled, while a block transposes the current one.
 *
 *   x --> [tile][tile][tile][tile]   a ring: one thread starts copies of 128 bytes x TILE_I rows
 *        in use   in flight          each; blocks are persistent and take every gridDim.x-th tile
 *   row r of a box: chunk c at c ^ (r % 8)         thread: S rows of one chunk, as in vectorized
 *
 * Hopper's swizzle uses r % 8, vectorized's r / S. Lanes read rows S apart, and 8 such rows have
 * only 8 / S different r % 8: 8 lanes would read one chunk. So lane l reads its S rows in the order
 * k ^ f(l), which makes r % 8 different for 8 lanes, and swaps registers afterwards.
 * Banks: 4 wavefronts per request of 512 bytes, the fewest; TMA's writes do not conflict.
 * Bytes: 2 rows cols elements. No thread computes an address of x, waits for a register, or checks
 * bounds of x: elements outside arrive as 0.
 * Where rows of x are not 16-byte aligned TMA cannot read them, and threads copy element by
 * element; where those of y are not, threads store element by element.
 * Differs from vectorized by TMA, which loads several tiles ahead.
 */
#include "hopper.cuh"
#include "transpose_square.cuh"
#include "transpose_tiles.h"

constexpr int E = sizeof(ELEMENT);
constexpr int TILE_I = TMA_TILE_I(E), TILE_J = TMA_TILE_J(E), THREADS = TMA_THREADS(E);
constexpr int CHUNKS = TILE_J / S, LINES = TILE_I / S; /* squares of a tile, across and down x */
constexpr int BOX = TILE_I * 128, TILE = BOX * (CHUNKS / 8);
constexpr int UNIT = E < 4 ? E : 4; /* bytes of the map's elements: larger ones are words */
static_assert(TILE == TMA_TILE_BYTES(E), "as planned");

/* Byte offset of chunk c of row r in the tile. */
__device__ __forceinline__ unsigned place(unsigned r, unsigned c) {
    return c / 8 * BOX + r * 128 + (c % 8 ^ r % 8) * 16;
}

/* Reads the S rows of a chunk in the order k ^ order, then restores their order in registers. */
__device__ __forceinline__ void read_square(const unsigned char *tile, unsigned line, unsigned c,
                                            unsigned (&square)[S][4]) {
    constexpr unsigned ORDERS = S < 8 ? S : 8;
    const unsigned order = line / (8 / ORDERS) % ORDERS;
#pragma unroll
    for (unsigned k = 0; k < S; k++) {
        const uint4 v = *reinterpret_cast<const uint4 *>(tile + place(S * line + (k ^ order), c));
        square[k][0] = v.x, square[k][1] = v.y, square[k][2] = v.z, square[k][3] = v.w;
    }
#pragma unroll
    for (unsigned bit = 1; bit < ORDERS; bit *= 2) {
#pragma unroll
        for (unsigned i = 0; i < S * 4; i++) {
            const unsigned k = i / 4, w = i % 4;
            if (k & bit) continue;
            const unsigned a = square[k][w], b = square[k ^ bit][w];
            square[k][w] = order & bit ? b : a;
            square[k ^ bit][w] = order & bit ? a : b;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_tma(const __grid_constant__ transpose_args g, const __grid_constant__ tensor_map x) {
    extern __shared__ unsigned char dynamic[];
    __shared__ unsigned long long full[TMA_STAGES];
    unsigned char *ring = dynamic + (-shared_address(dynamic) & 1023);

    const ELEMENT *from = g.x + blockIdx.z * g.batch_x;
    ELEMENT *to = g.y + blockIdx.z * g.batch_y;
    const bool vectors = rows_aligned(to, g.ldy, E);
    const unsigned across = (unsigned)((g.rows + TILE_I - 1) / TILE_I);
    const unsigned tiles = across * (unsigned)((g.cols + TILE_J - 1) / TILE_J);

    const auto ask = [&](unsigned tile, unsigned stage) {
        const unsigned down = tile / across, right = tile - down * across;
        const unsigned barrier = shared_address(&full[stage]);
        barrier_expect(barrier, TILE);
        for (int b = 0; b < CHUNKS / 8; b++)
            tma_load(shared_address(ring + stage * TILE + b * BOX), &x, barrier,
                     (int)((down * TILE_J * E + b * 128) / UNIT), (int)(right * TILE_I),
                     blockIdx.z);
    };
    if (g.boxes && threadIdx.x == 0) {
        for (unsigned s = 0; s < TMA_STAGES; s++)
            barrier_init(shared_address(&full[s]), 1);
        barrier_init_done();
        for (unsigned s = 0; s < TMA_STAGES; s++)
            if (blockIdx.x + s * gridDim.x < tiles) ask(blockIdx.x + s * gridDim.x, s);
    }
    __syncthreads();

    unsigned stage = 0, parity = 0;
    for (unsigned n = blockIdx.x; n < tiles; n += gridDim.x) {
        unsigned char *tile = ring + stage * TILE;
        const unsigned down = n / across, right = n - down * across;
        const long long i0 = (long long)right * TILE_I, j0 = (long long)down * TILE_J;
        if (g.boxes) {
            barrier_wait(shared_address(&full[stage]), parity);
        } else {
#pragma unroll 8
            for (unsigned e = threadIdx.x; e < TILE_I * TILE_J; e += THREADS) {
                const unsigned r = e / TILE_J, c = e % TILE_J;
                ELEMENT *into = reinterpret_cast<ELEMENT *>(tile + place(r, c / S)) + c % S;
                if (i0 + r < g.rows && j0 + c < g.cols) *into = from[(i0 + r) * g.ldx + j0 + c];
            }
            __syncthreads();
        }
        if (vectors && i0 + TILE_I <= g.rows && j0 + TILE_J <= g.cols) {
#pragma unroll 1
            for (unsigned q = threadIdx.x; q < LINES * CHUNKS; q += THREADS) {
                const unsigned line = q % LINES, c = q / LINES;
                unsigned square[S][4];
                read_square(tile, line, c, square);
                transpose_square(square);
#pragma unroll
                for (unsigned s = 0; s < S; s++)
                    store_vector(
                        to + (j0 + c * S + s) * g.ldy + i0 + line * S,
                        make_uint4(square[s][0], square[s][1], square[s][2], square[s][3]));
            }
        } else {
#pragma unroll 8
            for (unsigned e = threadIdx.x; e < TILE_I * TILE_J; e += THREADS) {
                const unsigned c = e / TILE_I, r = e % TILE_I;
                if (i0 + r < g.rows && j0 + c < g.cols)
                    to[(j0 + c) * g.ldy + i0 + r] =
                        reinterpret_cast<const ELEMENT *>(tile + place(r, c / S))[c % S];
            }
        }
        __syncthreads();
        if (g.boxes && threadIdx.x == 0 && n + TMA_STAGES * gridDim.x < tiles)
            ask(n + TMA_STAGES * gridDim.x, stage);
        stage = stage + 1 == TMA_STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    }
}
