// One block of 128 threads: 4 warps of 32 lanes.
__global__ void read_the_counts(const float *x, float *y) {
    __shared__ float words[512];
    int t = threadIdx.x;

    for (int i = t; i < 512; i += 128)
        words[i] = x[i];
    __syncthreads();

    float a = words[t];     // lane after lane, word after word
    float b = words[2 * t]; // every second word
    float c = words[4 * t]; // every fourth word
    y[t] = a + b + c;
}
