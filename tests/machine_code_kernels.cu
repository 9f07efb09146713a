// Kernels in which ptxas unrolls loops and joins accesses to shared memory, or does not.

constexpr int ROWS = 64, STEPS = 8;

// Each thread sums eight rows of one column: the loop over k has eight steps, of which the
// compiler unrolls some and ptxas the rest.
template <int PITCH, int UNROLL> __device__ void rows_times_column(const float *x, float *y) {
    __shared__ float a[ROWS * PITCH], b[STEPS * ROWS];
    const int t = threadIdx.x;
    for (int i = t; i < ROWS * PITCH; i += blockDim.x)
        a[i] = x[i];
    for (int i = t; i < STEPS * ROWS; i += blockDim.x)
        b[i] = x[i] + 1;
    __syncthreads();
    float sum[8] = {};
#pragma unroll UNROLL
    for (int k = 0; k < STEPS; k++) {
        const float factor = b[k * ROWS + t % ROWS];
        for (int i = 0; i < 8; i++)
            sum[i] += a[(t / ROWS * 8 + i) * PITCH + k] * factor;
    }
    for (int i = 0; i < 8; i++)
        y[i * blockDim.x + t] = sum[i];
}

extern "C" __global__ void rows8_unroll2(const float *x, float *y, int) {
    rows_times_column<8, 2>(x, y);
}
extern "C" __global__ void rows8_unroll8(const float *x, float *y, int) {
    rows_times_column<8, 8>(x, y);
}
extern "C" __global__ void rows9_unroll2(const float *x, float *y, int) {
    rows_times_column<9, 2>(x, y);
}
extern "C" __global__ void rows10_unroll2(const float *x, float *y, int) {
    rows_times_column<10, 2>(x, y);
}
extern "C" __global__ void rows12_unroll4(const float *x, float *y, int) {
    rows_times_column<12, 4>(x, y);
}

// A lane reads a row of its own: the joined loads have bank conflicts, which depend on the width.
template <int PITCH> __device__ void own_rows(const float *x, float *y, int n) {
    __shared__ float a[128 * PITCH];
    const int t = threadIdx.x;
    for (int i = t; i < 128 * PITCH; i += blockDim.x)
        a[i] = x[i];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum = sum * 0.5f + a[t * PITCH + k];
    y[t] = sum;
}

extern "C" __global__ void own_rows16(const float *x, float *y, int n) {
    own_rows<16>(x, y, n);
}
extern "C" __global__ void own_rows20(const float *x, float *y, int n) {
    own_rows<20>(x, y, n);
}
extern "C" __global__ void own_rows17(const float *x, float *y, int n) {
    own_rows<17>(x, y, n);
}

// A constant number of steps, more than the compiler unrolls.
extern "C" __global__ void own_rows_of_32(const float *x, float *y, int) {
    __shared__ __align__(16) float a[64 * 36];
    const int t = threadIdx.x;
    for (int i = t; i < 64 * 36; i += blockDim.x)
        a[i] = x[i % 1024];
    __syncthreads();
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < 32; k++)
        sum = sum * 0.5f + a[t % 64 * 36 + k];
    y[t] = sum;
}

// Different patterns in different steps: the lane's offset is scaled by the step.
extern "C" __global__ void pattern_by_step(const float *x, float *y, int n) {
    __shared__ float a[4096];
    const int t = threadIdx.x;
    for (int i = t; i < 4096; i += blockDim.x)
        a[i] = x[i % 1024];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < n; k++) {
        const float *at = a + (t * k & 1023) * 4;
        sum = sum * 0.5f + at[0] * at[1] - at[2] * at[3];
    }
    y[t] = sum;
}

// Stores in a loop of constant length.
extern "C" __global__ void stores_joined(const float *x, float *y, int) {
    __shared__ __align__(16) float a[128 * 16];
    const int t = threadIdx.x;
    const float v = x[t];
#pragma unroll 2
    for (int k = 0; k < 16; k++)
        a[t * 16 + k] = v * k;
    __syncthreads();
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < 16; k++)
        sum = sum * 0.5f + a[(t ^ 1) * 16 + k];
    y[t] = sum;
}

// A branch that is different for each warp, and one that diverges.
extern "C" __global__ void branches(const float *x, float *y, int n) {
    __shared__ __align__(16) float a[1024];
    const int t = threadIdx.x;
    for (int i = t; i < 1024; i += blockDim.x)
        a[i] = x[i];
    __syncthreads();
    float sum = 0;
    if (t / 32 % 2)
        for (int k = 0; k < 8; k++)
            sum = sum * 0.5f + a[t / 32 * 8 + k] * a[512 + k * 32 + t % 32];
    else
        for (int k = 0; k < 4; k++)
            sum += sum * a[(t * 4 + k) % 1024];
    if (t % 3 == 0)
        for (int k = 0; k < n; k++)
            sum = sum * 0.25f + a[(t + k) % 1024];
    y[t] = sum;
}

// Guarded loads, atomics, two-byte loads, and loads of the same word twice.
extern "C" __global__ void mixed(const float *x, float *y, int n) {
    __shared__ __align__(16) float a[1024];
    __shared__ __align__(16) unsigned short h[512];
    __shared__ int counters[32];
    const int t = threadIdx.x;
    for (int i = t; i < 1024; i += blockDim.x)
        a[i] = x[i];
    for (int i = t; i < 512; i += blockDim.x)
        h[i] = (unsigned short)i;
    if (t < 32) counters[t] = 0;
    __syncthreads();
    float sum = t < n ? a[t] : 0;
    for (int k = 0; k < 4; k++)
        sum += h[t % 32 * 8 + k] + a[t % 64 * 4 + k] + a[t % 64 * 4 + 3 - k];
    atomicAdd(&counters[(int)(sum * 0) + t % 7], t);
    __syncthreads();
    y[t] = sum + counters[t % 32];
}

// A tree reduction, and a tile that is transposed.
extern "C" __global__ void reduction(const float *x, float *y, int) {
    __shared__ float a[256];
    const int t = threadIdx.x;
    a[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) a[t] += a[t + half];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x] = a[0];
}

extern "C" __global__ void transpose(const float *x, float *y, int) {
    __shared__ float tile[32][32];
    const int c = threadIdx.x % 32, r = threadIdx.x / 32;
    for (int i = 0; i < 32; i += blockDim.x / 32)
        tile[r + i][c] = x[(r + i) * 32 + c];
    __syncthreads();
    for (int i = 0; i < 32; i += blockDim.x / 32)
        y[(r + i) * 32 + c] = tile[c][r + i];
}

// A stencil: neighbouring loads from one base, in a loop of constant length.
extern "C" __global__ void stencil(const float *x, float *y, int) {
    __shared__ __align__(16) float a[1280];
    const int t = threadIdx.x;
    for (int i = t; i < 1280; i += blockDim.x)
        a[i] = x[i % 1024];
    __syncthreads();
    float sum[4] = {};
#pragma unroll 1
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 4; i++)
            sum[i] = sum[i] * 0.5f + a[t * 4 + k * 16 + i];
    for (int i = 0; i < 4; i++)
        y[t * 4 + i] = sum[i];
}

// Tiles of eight rows or columns in a loop: the compiler unrolls the inner loop twice, ptxas
// unrolls the rest and joins loads of different steps.
template <int PITCH> __device__ void tiles(const float *x, float *y, int n) {
    __shared__ float a[64 * PITCH], b[8 * 64];
    const int t = threadIdx.x, column = t % 64, row = t / 64;
    float sum[8] = {};
    for (int tile = 0; tile < n; tile++) {
        for (int i = t; i < 64 * 8; i += 512) {
            a[i / 8 * PITCH + i % 8] = x[tile * 512 + i];
            b[i] = x[tile * 512 + (i ^ 5)];
        }
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            const float factor = b[k * 64 + column];
            for (int i = 0; i < 8; i++)
                sum[i] += a[(row * 8 + i) * PITCH + k] * factor;
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        y[i * 512 + t] = sum[i];
}

extern "C" __global__ void tiles8(const float *x, float *y, int n) {
    tiles<8>(x, y, n);
}
extern "C" __global__ void tiles12(const float *x, float *y, int n) {
    tiles<12>(x, y, n);
}
extern "C" __global__ void tiles9(const float *x, float *y, int n) {
    tiles<9>(x, y, n);
}

// The same with a row per lane: the joined loads conflict.
extern "C" __global__ void tiles_own_row(const float *x, float *y, int n) {
    __shared__ float a[64 * 24], b[8];
    const int t = threadIdx.x;
    float sum[3] = {};
    for (int tile = 0; tile < n; tile++) {
        for (int i = t; i < 64 * 24; i += 64)
            a[i] = x[i];
        if (t < 8) b[t] = x[t + tile];
        __syncthreads();
        for (int k = 0; k < 8; k++)
            for (int i = 0; i < 3; i++)
                sum[i] += a[t * 24 + i * 8 + k] * b[k];
        __syncthreads();
    }
    for (int i = 0; i < 3; i++)
        y[i * 64 + t] = sum[i];
}
