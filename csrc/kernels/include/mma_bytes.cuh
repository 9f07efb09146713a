/* Products of planes of bytes by mma.sync: cp.async fills a ring of stages, 8 warps multiply 64 x 64
 * of a tile of 128 x 256 each; the sums leave as bytes, from registers.
 */
#ifndef SMK_MMA_BYTES_CUH
#define SMK_MMA_BYTES_CUH

#include "common.cuh"
#include "overlap.cuh"

constexpr int BLOCK_M = 128, BLOCK_N = 256, THREADS = 256;
#include "ozaki_tiles.cuh"

constexpr int WARP = 64; /* rows and columns of a warp's tile */
constexpr int STAGE = (BLOCK_M + BLOCK_N) * OZAKI_STEP, CHUNKS = OZAKI_STEP / 16;

/* ---- copies ---- */

/* A thread copies chunk threadIdx.x % 8 of every 32nd row; rows behind the end are zeros. */
template <int ROWS>
__device__ __forceinline__ void copy_rows(unsigned to, const unsigned char *plane, int pitch,
                                          int row0, int rows, int k) {
    const int chunk = threadIdx.x % CHUNKS, first = threadIdx.x / CHUNKS;
    to += first * OZAKI_STEP + ((chunk ^ first % 8) << 4);
#pragma unroll
    for (int i = 0; i < ROWS; i += THREADS / CHUNKS) {
        const int row = row0 + first + i;
        const long long from = row < rows ? (long long)row * pitch + k + 16 * chunk : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * OZAKI_STEP),
                     "l"(plane + from), "r"(row < rows ? 16 : 0)
                     : "memory");
    }
}

/* The planes of a tile. */
typedef struct operands {
    const unsigned char *a, *b;
    int rows_a, rows_b;
} operands;

__device__ __forceinline__ operands operands_of(const ozaki_args &o, const plane_tile &t) {
    return {o.a.planes + t.batch * o.a.batch_planes + t.modulus * o.a.plane,
            o.b.planes + t.batch * o.b.batch_planes + t.modulus * o.b.plane, o.a.rows,
            (o.b.rows + OZAKI_GROUP - 1) / OZAKI_GROUP * OZAKI_GROUP};
}

__device__ __forceinline__ void fill(unsigned stage, const ozaki_args &o, const operands &from,
                                     const plane_tile &t, int step) {
    const int k = step * OZAKI_STEP;
    copy_rows<BLOCK_M>(stage, from.a, o.a.pitch, t.row, from.rows_a, k);
    copy_rows<BLOCK_N>(stage + BLOCK_M * OZAKI_STEP, from.b, o.b.pitch, t.column, from.rows_b, k);
}

/* ---- products ---- */

__device__ __forceinline__ void load_matrices(unsigned (&m)[4], unsigned row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}

/* d += a b, 16 x 8, 32 bytes of K. */
__device__ __forceinline__ void multiply_bytes(int *d, const unsigned (&a)[4], unsigned b0,
                                               unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Sums of 16 rows each: sum[i][4 j + 2 h + e] is at row 16 i + lane / 4 + 8 h and, before B's rows
 * are permuted, column 8 j + 2 (lane % 4) + e. */
typedef int sums[WARP / 16][WARP / 2];

__device__ __forceinline__ void multiply(sums &sum, unsigned stage, int warp_row, int warp_column) {
    const int lane = threadIdx.x % 32;
    const unsigned a = stage + (warp_row + lane % 16) * OZAKI_STEP;
    const unsigned b = stage + (BLOCK_M + warp_column + lane / 16 * 8 + lane % 8) * OZAKI_STEP;
#pragma unroll
    for (int k = 0; k < CHUNKS; k += 2) {
        const unsigned at_a = (k + lane / 16 ^ lane % 8) << 4;
        const unsigned at_b = (k + lane / 8 % 2 ^ lane % 8) << 4;
        unsigned left[WARP / 16][4], right[4];
#pragma unroll
        for (int i = 0; i < WARP / 16; i++)
            load_matrices(left[i], a + i * 16 * OZAKI_STEP + at_a);
#pragma unroll
        for (int j = 0; j < WARP / 16; j++) {
            load_matrices(right, b + j * 16 * OZAKI_STEP + at_b);
#pragma unroll
            for (int i = 0; i < WARP / 16; i++) {
                multiply_bytes(sum[i] + 8 * j, left[i], right[0], right[1]);
                multiply_bytes(sum[i] + 8 * j + 4, left[i], right[2], right[3]);
            }
        }
    }
}

/* ---- sums to bytes ---- */

/* Adds the residues of the ranges of K before, if there are any, and stores the sums' bytes. */
__device__ __forceinline__ void store(const gemm_args &g, const ozaki_args &o, sums &sum,
                                      const plane_tile &t, int row0, int column0) {
    const int lane = threadIdx.x % 32;
    const int modulus = OZAKI.modulus[t.modulus], multiplier = OZAKI.multiplier[t.modulus];
    unsigned char *plane = o.c + t.batch * o.c_batch + t.modulus * o.c_plane;
#pragma unroll
    for (int i = 0; i < WARP / 16; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = row0 + 16 * i + lane / 4 + 8 * h;
#pragma unroll
            for (int j = 0; j < WARP / 16; j++) {
                const int column = column0 + 16 * j + lane % 4 * 4;
                int *d = sum[i] + 8 * j;
                unsigned *to =
                    reinterpret_cast<unsigned *>(plane + (long long)row * o.c_pitch + column);
                if (row >= g.M || column >= o.c_pitch) continue;
                if (o.first_k > 0) add_bytes(d, h, *to);
                *to = four_bytes(d, h, multiplier, modulus);
            }
        }
    }
}

#endif
