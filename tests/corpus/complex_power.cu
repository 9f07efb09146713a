// Complex numbers as a class with operators, one passed by value: z^n by squaring.
struct complex {
    double re, im;
};
__device__ complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__global__ void complex_power(const complex *z, complex *out, complex scale, int power, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    complex base = z[i], result = scale;
    for (int p = power; p > 0; p /= 2) {
        if (p % 2) result = result * base;
        base = base * base;
    }
    out[i] = result;
}
