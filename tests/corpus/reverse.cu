// Reversal of an array in place, 3-byte elements, two threads' elements a swap.
struct rgb {
    unsigned char r, g, b;
};

__global__ void reverse(rgb *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2) return;
    rgb swap = x[i];
    x[i] = x[n - 1 - i];
    x[n - 1 - i] = swap;
}
