// One block of 64 threads reverses 256 elements.
__global__ void reverse(const float *x, float *y) {
    __shared__ __align__(16) float tile[256];
    int t = threadIdx.x;

    ((float4 *)tile)[t] = ((const float4 *)x)[t];
    __syncthreads();

    float4 v = ((float4 *)tile)[63 - t];
    ((float4 *)y)[t] = make_float4(v.w, v.z, v.y, v.x);
}
