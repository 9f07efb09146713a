// Gravity among all pairs of bodies, a tile of bodies at a time through shared memory.
__global__ void n_body(const float4 *bodies, float3 *pulls, int n, float softening) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 own = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 pull = {0, 0, 0};
    for (int first = 0; first < n; first += 64) {
        int other = first + threadIdx.x;
        tile[threadIdx.x] = other < n ? bodies[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 64; k++) {
            float4 b = tile[k];
            float x = b.x - own.x, y = b.y - own.y, z = b.z - own.z;
            float inverse = rsqrtf(x * x + y * y + z * z + softening);
            float strength = b.w * inverse * inverse * inverse;
            pull.x += x * strength, pull.y += y * strength, pull.z += z * strength;
        }
        __syncthreads();
    }
    if (i < n) pulls[i] = pull;
}
