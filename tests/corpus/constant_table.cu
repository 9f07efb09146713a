// Tables in constant memory, with structs and pointers to other tables, indexed by each lane for itself.
struct rule {
    short step;
    double scale;
    const float *curve;
};
__constant__ float rising[4] = {1, 2, 4, 8}, falling[4] = {8, 4, 2, 1};
__constant__ rule rules[3] = {{1, 0.5, rising}, {-2, 2.0, falling}, {7, -1.0, rising}};

__global__ void constant_table(const unsigned char *which, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const rule &r = rules[which[i]];
    y[i] = r.scale * r.curve[i % 4] + r.step;
}
