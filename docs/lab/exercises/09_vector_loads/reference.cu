__global__ void reverse(const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = x[255 - i];
}
