/* The calls of cuBLAS that llm.c's programs in fp32 make, as kernels with PTX. */
#include <cublas_v2.h>

namespace {

__global__ void gemm(bool at, bool bt, int m, int n, int k, float alpha, const float *a, int lda,
                     long long sa, const float *b, int ldb, long long sb, float beta, float *c,
                     int ldc, long long sc) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i >= m) return;
    a += blockIdx.z * sa, b += blockIdx.z * sb, c += blockIdx.z * sc;
    float sum = 0;
    for (int p = 0; p < k; p++)
        sum += a[at ? p + (size_t)i * lda : i + (size_t)p * lda] *
               b[bt ? j + (size_t)p * ldb : p + (size_t)j * ldb];
    float &out = c[i + (size_t)j * ldc];
    out = alpha * sum + (beta == 0 ? 0 : beta * out);
}

}  // namespace

extern "C" {

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t, cublasOperation_t at, cublasOperation_t bt,
                                         int m, int n, int k, const float *alpha, const float *a,
                                         int lda, long long sa, const float *b, int ldb,
                                         long long sb, const float *beta, float *c, int ldc,
                                         long long sc, int batch) {
    gemm<<<dim3((m + 63) / 64, n, batch), 64>>>(at, bt, m, n, k, *alpha, a, lda, sa, b, ldb, sb,
                                                *beta, c, ldc, sc);
    return cudaGetLastError() ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t at, cublasOperation_t bt, int m,
                           int n, int k, const float *alpha, const float *a, int lda,
                           const float *b, int ldb, const float *beta, float *c, int ldc) {
    return cublasSgemmStridedBatched(handle, at, bt, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c,
                                     ldc, 0, 1);
}

cublasStatus_t cublasCreate(cublasHandle_t *) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
}
