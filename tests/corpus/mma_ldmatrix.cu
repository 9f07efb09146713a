// Matrix product of half on tensor cores by inline PTX: ldmatrix and mma.sync, one warp 16 x 8 results.
#include <cuda_fp16.h>

__global__ void mma_ldmatrix(const __half *A, const __half *B, float *C, int N, int K) {
    __shared__ __align__(16) __half a[16][24], b[16][8];
    int lane = threadIdx.x, row0 = blockIdx.y * 16, col0 = blockIdx.x * 8;
    float c[4] = {};
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int i = lane; i < 256; i += 32)
            a[i / 16][i % 16] = A[(row0 + i / 16) * K + k0 + i % 16];
        for (int i = lane; i < 128; i += 32)
            b[i / 8][i % 8] = B[(k0 + i / 8) * N + col0 + i % 8];
        __syncwarp();
        unsigned fa[4], fb[2];
        unsigned from_a = (unsigned)__cvta_generic_to_shared(&a[lane % 16][lane / 16 * 8]);
        unsigned from_b = (unsigned)__cvta_generic_to_shared(&b[lane % 16][0]);
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                     : "r"(from_a)
                     : "memory");
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(fb[0]), "=r"(fb[1])
                     : "r"(from_b)
                     : "memory");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
        __syncwarp();
    }
    for (int i = 0; i < 4; i++)
        C[(row0 + lane / 4 + i / 2 * 8) * N + col0 + lane % 4 * 2 + i % 2] = c[i];
}
