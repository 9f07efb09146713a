__global__ void histogram(const int *kind, const int *weight, int *sums, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += kind[i] == threadIdx.x ? weight[i] : 0;
    sums[threadIdx.x] = sum;
}
