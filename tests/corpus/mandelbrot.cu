// Mandelbrot set: loops of different length in each lane.
__global__ void mandelbrot(int *steps, int width, int height, int most, double2 corner,
                           double step) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double cx = corner.x + px * step, cy = corner.y + py * step, x = 0, y = 0;
    int n = 0;
    while (n < most && __dadd_rn(__dmul_rn(x, x), __dmul_rn(y, y)) <= 4) {
        double next = __dadd_rn(__dsub_rn(__dmul_rn(x, x), __dmul_rn(y, y)), cx);
        y = __dadd_rn(__dmul_rn(__dadd_rn(x, x), y), cy);
        x = next;
        n++;
    }
    steps[py * width + px] = n;
}
