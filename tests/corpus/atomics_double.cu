// Sums, minima and maxima by atomics on double: native addition, a compare-and-swap loop for the rest.
__device__ void atomic_min(double *at, double v) {
    unsigned long long *bits = (unsigned long long *)at;
    unsigned long long seen = *(volatile unsigned long long *)bits;
    while (v < __longlong_as_double(seen)) {
        unsigned long long old = atomicCAS(bits, seen, __double_as_longlong(v));
        if (old == seen) break;
        seen = old;
    }
}

__global__ void atomics_double(const double *x, const int *group, double *sums, double *lowest,
                               int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&sums[group[i]], x[i]);
    atomic_min(&lowest[group[i]], x[i]);
}
