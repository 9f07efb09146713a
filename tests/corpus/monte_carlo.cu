// Pi by Monte Carlo: each thread throws darts with its own xorshift generator.
__global__ void monte_carlo(unsigned long long *hits, int throws, unsigned long long seed) {
    unsigned long long state =
        seed + (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9E3779B97F4A7C15;
    int inside = 0;
    for (int i = 0; i < throws; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        float x = (unsigned)(state >> 40) * 0x1p-24f,
              y = (unsigned)(state >> 16 & 0xffffff) * 0x1p-24f;
        inside += x * x + y * y < 1.0f;
    }
    for (int offset = 16; offset > 0; offset /= 2)
        inside += __shfl_down_sync(0xffffffff, inside, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (unsigned long long)inside);
}
