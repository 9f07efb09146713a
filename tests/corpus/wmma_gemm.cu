// Matrix product of half on tensor cores by the wmma API, one warp 16 x 16 results.
#include <mma.h>

using namespace nvcuda;

__global__ void wmma_gemm(const __half *A, const __half *B, float *C, int N, int K) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> c;
    int row0 = blockIdx.y * 16, col0 = blockIdx.x * 16;
    wmma::fill_fragment(c, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(a, A + row0 * K + k, K);
        wmma::load_matrix_sync(b, B + k * N + col0, N);
        wmma::mma_sync(c, a, b, c);
    }
    wmma::store_matrix_sync(C + row0 * N + col0, c, N, wmma::mem_row_major);
}
