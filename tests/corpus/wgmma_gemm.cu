// Matrix product of half by wgmma: four warps hold 64 x 64 results, both operands in swizzled shared memory.
#include <cuda_fp16.h>

// Rows of 128 bytes, whose pieces of 16 stand at their number XOR the row's, as descriptors expect.
struct alignas(1024) Tile {
    uint4 piece[64][8];

    __device__ void load(const __half *from, int pitch) {
        for (int i = threadIdx.x; i < 64 * 8; i += 128) {
            int row = i / 8, place = i % 8;
            piece[row][place ^ row % 8] = *(const uint4 *)(from + row * pitch + place * 8);
        }
    }

    // Of what begins so many bytes into the tile; eight rows are 1024 bytes, and 128-byte swizzle is 1.
    __device__ unsigned long long descriptor(int offset) const {
        unsigned at = (unsigned)__cvta_generic_to_shared(piece) + offset;
        return at >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
    }
};

#define EACH(F) F(0), F(4), F(8), F(12), F(16), F(20), F(24), F(28)
#define FOUR(n) "+f"(c[n]), "+f"(c[n + 1]), "+f"(c[n + 2]), "+f"(c[n + 3])

// A is M x K, B is K x N, both by rows: of A a row is 64 elements along K, of B 64 along N (hence the 1).
__global__ void wgmma_gemm(const __half *A, const __half *B, float *C, int N, int K) {
    __shared__ Tile a, b;
    int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float c[32] = {};
    for (int k0 = 0; k0 < K; k0 += 64) {
        a.load(A + row0 * K + k0, K);
        b.load(B + k0 * N + col0, N);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 64; k += 16)
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                         "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                         "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
                         "%30, %31}, %32, %33, 1, 1, 1, 0, 1;"
                         : EACH(FOUR)
                         : "l"(a.descriptor(k * 2)), "l"(b.descriptor(k * 128)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" : EACH(FOUR) :: "memory");
        __syncthreads();
    }
    int row = row0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    for (int i = 0; i < 32; i += 2) {
        int column = col0 + i / 4 * 8 + threadIdx.x % 4 * 2;
        *(float2 *)&C[(row + i / 2 % 2 * 8) * N + column] = make_float2(c[i], c[i + 1]);
    }
}
