// Dynamic shared memory carved into arrays of different types.
__global__ void shared_carved(const double *x, const short *order, double *y, int n) {
    extern __shared__ __align__(16) unsigned char memory[];
    double *values = reinterpret_cast<double *>(memory);
    short *places = reinterpret_cast<short *>(values + n);
    bool *taken = reinterpret_cast<bool *>(places + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        values[i] = x[i];
        places[i] = order[i];
        taken[i] = false;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        taken[places[i]] = true;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = taken[i] ? values[places[i]] : -1.0;
}
