// Mistake: a copy to shared memory without a wait for its completion.
//
// cp.async returns at once; __syncthreads waits for threads, not for copies.

extern "C" __global__ void missing_wait(const float *x, float *y) {
    __shared__ float tile[64];
    const unsigned t = threadIdx.x, first = 64 * blockIdx.x;
    const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[t]);
    const float *from = &x[first + t];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    // asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    y[first + t] = tile[63 - t];
}
