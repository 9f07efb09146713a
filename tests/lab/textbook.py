"""Kernels as textbooks and tutorials have them, each with what NumPy says of its result."""

from typing import NamedTuple

import numpy as np


class Example(NamedTuple):
    source: str
    grid: object
    block: object
    make: object  # of a generator: arguments, {index of an argument: what it must hold}
    shared_bytes: int = 0


def whole(rng, *shape, low=-9, high=10, dtype="f4"):
    """Whole numbers, whose sums are exact in any order."""
    return rng.integers(low, high, shape).astype(dtype)


def vector_sum(rng):
    a, b = whole(rng, 1000), whole(rng, 1000)
    return [a, b, np.zeros(1000, "f4"), 1000], {2: a + b}


def transposed(rng):
    x = whole(rng, 64, 96)
    return [x, np.zeros((96, 64), "f4"), 96, 64], {1: x.T}


def block_sums(rng):
    x = whole(rng, 2000)
    padded = np.zeros(2048, "f4")
    padded[:2000] = x
    return [x, np.zeros(8, "f4"), 2000], {1: padded.reshape(8, 256).sum(1)}


def products(n):
    def make(rng):
        a, b = whole(rng, n, n), whole(rng, n, n)
        return [a, b, np.zeros((n, n), "f4"), n], {2: a @ b}

    return make


def prefix_sums(rng):
    x = whole(rng, 512, dtype="i4")
    return [x, np.zeros(512, "i4"), 512], {1: np.cumsum(x)}


def exclusive_sums(rng):
    x = whole(rng, 512, dtype="i4")
    return [x, np.zeros(512, "i4"), 512], {1: np.cumsum(x) - x}


def byte_histogram(rng):
    x = whole(rng, 5000, low=0, high=256, dtype="u1")
    return [x, np.zeros(256, "u4"), 5000], {1: np.bincount(x, minlength=256)}


def stencil(rng):
    x = whole(rng, 256 + 6, dtype="i4")
    return [x, np.zeros(256, "i4")], {1: sum(x[k : k + 256] for k in range(7))}


def dot(rng):
    a, b = whole(rng, 3000), whole(rng, 3000)
    return [a, b, np.zeros(1, "f4"), 3000], {2: np.array([a @ b])}


def sorted_keys(rng):
    x = whole(rng, 256, low=-999, high=999, dtype="i4")
    return [x], {0: np.sort(x)}


def convolved(rng):
    x, w = whole(rng, 40, 48), whole(rng, 3, 3)
    want = np.zeros((40, 48), "f4")
    padded = np.pad(x, 1)
    for r in range(3):
        for c in range(3):
            want += w[r, c] * padded[r : r + 40, c : c + 48]
    return [x, w, np.zeros((40, 48), "f4"), 48, 40], {2: want}


def saxpy4(rng):
    x, y = whole(rng, 1024), whole(rng, 1024)
    return [np.float32(3), x, y.copy(), 256], {2: 3 * x + y}


def largest(rng):
    x = whole(rng, 900, low=-(10**6), high=10**6, dtype="i4")
    return [x, np.array([-(2**31)], "i4"), 900], {1: np.array([x.max()])}


def game(rng):
    x = whole(rng, 32, 32, low=0, high=2, dtype="u1")
    around = sum(
        np.roll(x, (r, c), (0, 1)).astype(int) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c
    )
    return [x, np.zeros_like(x)], {1: (around == 3) | ((around == 2) & (x == 1))}


def sums_of_rows(rng):
    x = whole(rng, 16, 100, dtype="f8")
    return [x, np.zeros(16), 100], {1: x.sum(1)}


EXAMPLES = {
    "vector_sum": Example(
        """#include <cuda_runtime.h>
        #include <stdio.h>
        using namespace std;
        void check(cudaError_t e, const char *what = "launch", bool stop = true);
        static int divided(int a, int b);
        __global__ void vector_sum(const float* __restrict__ a, const float* __restrict__ b,
                                   float* __restrict__ c, int n) {
            int stride = blockDim.x * gridDim.x;
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
                c[i] = a[i] + b[i];
        }
        static int divided(int a, int b) { return (a + b - 1) / b; }
        int main(void) {
            float *a, *b, *c;
            cudaMalloc(&a, 4000), cudaMalloc(&b, 4000), cudaMalloc(&c, 4000);
            vector_sum<<<divided(1000, 128), 128>>>(a, b, c, 1000);
            if (cudaDeviceSynchronize() != cudaSuccess) { printf("failed\\n"); return 1; }
        }""",
        3,
        128,
        vector_sum,
    ),
    "transpose": Example(
        """const int TILE_DIM = 32;
        const int BLOCK_ROWS = 8;
        __global__ void transpose(const float *idata, float *odata, int width, int height) {
            __shared__ float tile[TILE_DIM][TILE_DIM + 1];
            int x = blockIdx.x * TILE_DIM + threadIdx.x;
            int y = blockIdx.y * TILE_DIM + threadIdx.y;
        #pragma unroll
            for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
                if (x < width && y + j < height)
                    tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
            __syncthreads();
            x = blockIdx.y * TILE_DIM + threadIdx.x;
            y = blockIdx.x * TILE_DIM + threadIdx.y;
        #pragma unroll
            for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
                if (x < height && y + j < width)
                    odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
        }""",
        (3, 2),
        (32, 8),
        transposed,
    ),
    "reduce_volatile": Example(
        """__device__ void warp_reduce(volatile float *s, unsigned int tid) {
            float v = s[tid];
            v += s[tid + 32]; __syncwarp(); s[tid] = v; __syncwarp();
            v += s[tid + 16]; __syncwarp(); s[tid] = v; __syncwarp();
            v += s[tid + 8]; __syncwarp(); s[tid] = v; __syncwarp();
            v += s[tid + 4]; __syncwarp(); s[tid] = v; __syncwarp();
            v += s[tid + 2]; __syncwarp(); s[tid] = v; __syncwarp();
            v += s[tid + 1]; __syncwarp(); s[tid] = v;
        }
        extern "C" __global__ void __launch_bounds__(256)
        reduce(const float *g_idata, float *g_odata, unsigned int n) {
            extern __shared__ float sdata[];
            unsigned int tid = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
            sdata[tid] = (i < n) ? g_idata[i] : 0;
            __syncthreads();
            for (unsigned int s = blockDim.x / 2; s > 32; s >>= 1) {
                if (tid < s) sdata[tid] += sdata[tid + s];
                __syncthreads();
            }
            if (tid < 32) warp_reduce(sdata, tid);
            if (tid == 0) g_odata[blockIdx.x] = sdata[0];
        }""",
        8,
        256,
        block_sums,
        4 * 256,
    ),
    "reduce_shuffle": Example(
        """#define FULL 0xffffffff
        __inline__ __device__ float warp_sum(float v) {
            for (int offset = warpSize / 2; offset > 0; offset /= 2)
                v += __shfl_down_sync(FULL, v, offset);
            return v;
        }
        __global__ void reduce(const float *x, float *sums, int n) {
            static __shared__ float shared[32];
            int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            float v = warp_sum(i < n ? x[i] : 0.f);
            if (lane == 0) shared[wid] = v;
            __syncthreads();
            v = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0;
            if (wid == 0) v = warp_sum(v);
            if (threadIdx.x == 0) sums[blockIdx.x] = v;
        }""",
        8,
        256,
        block_sums,
    ),
    "product": Example(
        """#define BLOCK_SIZE 16
        __global__ void product(float *A, float *B, float *C, int n) {
            __shared__ float As[BLOCK_SIZE][BLOCK_SIZE], Bs[BLOCK_SIZE][BLOCK_SIZE];
            int tx = threadIdx.x, ty = threadIdx.y;
            int row = blockIdx.y * BLOCK_SIZE + ty, col = blockIdx.x * BLOCK_SIZE + tx;
            float Csub = 0;
            for (int m = 0; m < (n + BLOCK_SIZE - 1) / BLOCK_SIZE; ++m) {
                As[ty][tx] = row < n && m * BLOCK_SIZE + tx < n
                                 ? A[row * n + m * BLOCK_SIZE + tx] : 0.0f;
                Bs[ty][tx] = m * BLOCK_SIZE + ty < n && col < n
                                 ? B[(m * BLOCK_SIZE + ty) * n + col] : 0.0f;
                __syncthreads();
        #pragma unroll
                for (int k = 0; k < BLOCK_SIZE; ++k) Csub += As[ty][k] * Bs[k][tx];
                __syncthreads();
            }
            if (row < n && col < n) C[row * n + col] = Csub;
        }""",
        (3, 3),
        (16, 16),
        products(40),
    ),
    "register_tiles": Example(
        """#define TM 4
        __global__ void product(const float *A, const float *B, float *C, int n) {
            __shared__ float As[32][8 + 1], Bs[8][32];
            const int t = threadIdx.y * 8 + threadIdx.x;
            float acc[TM][TM] = {{0}};
            for (int k0 = 0; k0 < n; k0 += 8) {
                for (int i = t; i < 256; i += 64) {
                    As[i / 8][i % 8] = A[(blockIdx.y * 32 + i / 8) * n + k0 + i % 8];
                    Bs[i / 32][i % 32] = B[(k0 + i / 32) * n + blockIdx.x * 32 + i % 32];
                }
                __syncthreads();
                for (int k = 0; k < 8; k++) {
                    float a[TM], b[TM];
                    for (int i = 0; i < TM; i++) a[i] = As[threadIdx.y * TM + i][k];
                    for (int j = 0; j < TM; j++) b[j] = Bs[k][threadIdx.x * TM + j];
                    for (int i = 0; i < TM; i++)
                        for (int j = 0; j < TM; j++) acc[i][j] += a[i] * b[j];
                }
                __syncthreads();
            }
            for (int i = 0; i < TM; i++)
                for (int j = 0; j < TM; j++)
                    C[(blockIdx.y * 32 + threadIdx.y * TM + i) * n + blockIdx.x * 32 +
                      threadIdx.x * TM + j] = acc[i][j];
        }""",
        (2, 2),
        (8, 8),
        products(64),
    ),
    "scan_blelloch": Example(
        """#define LOG_BANKS 5
        #define OFFSET(n) ((n) >> LOG_BANKS)
        __global__ void scan(const int *in, int *out, int n) {
            extern __shared__ int temp[];
            int thid = threadIdx.x, offset = 1;
            int ai = thid, bi = thid + n / 2;
            temp[ai + OFFSET(ai)] = in[ai];
            temp[bi + OFFSET(bi)] = in[bi];
            for (int d = n >> 1; d > 0; d >>= 1) {
                __syncthreads();
                if (thid < d) {
                    int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
                    a += OFFSET(a), b += OFFSET(b);
                    temp[b] += temp[a];
                }
                offset *= 2;
            }
            if (thid == 0) temp[n - 1 + OFFSET(n - 1)] = 0;
            for (int d = 1; d < n; d *= 2) {
                offset >>= 1;
                __syncthreads();
                if (thid < d) {
                    int a = offset * (2 * thid + 1) - 1, b = offset * (2 * thid + 2) - 1;
                    a += OFFSET(a);
                    b += OFFSET(b);
                    int t = temp[a];
                    temp[a] = temp[b];
                    temp[b] += t;
                }
            }
            __syncthreads();
            out[ai] = temp[ai + OFFSET(ai)];
            out[bi] = temp[bi + OFFSET(bi)];
        }""",
        1,
        256,
        exclusive_sums,
        4 * (512 + 16),
    ),
    "scan_double_buffer": Example(
        """__global__ void scan(const int *in, int *out, int n) {
            __shared__ int temp[2 * 512];
            int thid = threadIdx.x, pout = 0, pin = 1;
            temp[pout * n + thid] = in[thid];
            __syncthreads();
            for (int offset = 1; offset < n; offset <<= 1) {
                pout = 1 - pout;
                pin = 1 - pout;
                if (thid >= offset)
                    temp[pout * n + thid] = temp[pin * n + thid] + temp[pin * n + thid - offset];
                else
                    temp[pout * n + thid] = temp[pin * n + thid];
                __syncthreads();
            }
            out[thid] = temp[pout * n + thid];
        }""",
        1,
        512,
        prefix_sums,
    ),
    "histogram": Example(
        """__global__ void histogram(const unsigned char *buffer, unsigned int *histo, long size) {
            __shared__ unsigned int temp[256];
            temp[threadIdx.x] = 0;
            __syncthreads();
            int i = threadIdx.x + blockIdx.x * blockDim.x, offset = blockDim.x * gridDim.x;
            while (i < size) {
                atomicAdd(&temp[buffer[i]], 1);
                i += offset;
            }
            __syncthreads();
            atomicAdd(&(histo[threadIdx.x]), temp[threadIdx.x]);
        }""",
        4,
        256,
        byte_histogram,
    ),
    "stencil": Example(
        """#define RADIUS 3
        #define BLOCK 64
        __global__ void stencil_1d(int *in, int *out) {
            __shared__ int temp[BLOCK + 2 * RADIUS];
            int gindex = threadIdx.x + blockIdx.x * blockDim.x + RADIUS;
            int lindex = threadIdx.x + RADIUS;
            temp[lindex] = in[gindex];
            if (threadIdx.x < RADIUS) {
                temp[lindex - RADIUS] = in[gindex - RADIUS];
                temp[lindex + BLOCK] = in[gindex + BLOCK];
            }
            __syncthreads();
            int result = 0;
            for (int offset = -RADIUS; offset <= RADIUS; offset++)
                result += temp[lindex + offset];
            out[gindex - RADIUS] = result;
        }""",
        4,
        64,
        stencil,
    ),
    "dot": Example(
        """__global__ void dot(float *a, float *b, float *c, int n) {
            __shared__ float cache[256];
            int tid = threadIdx.x + blockIdx.x * blockDim.x, cacheIndex = threadIdx.x;
            float temp = 0;
            while (tid < n) {
                temp += a[tid] * b[tid];
                tid += blockDim.x * gridDim.x;
            }
            cache[cacheIndex] = temp;
            __syncthreads();
            int i = blockDim.x / 2;
            while (i != 0) {
                if (cacheIndex < i) cache[cacheIndex] += cache[cacheIndex + i];
                __syncthreads();
                i /= 2;
            }
            if (cacheIndex == 0) atomicAdd(c, cache[0]);
        }""",
        4,
        256,
        dot,
    ),
    "bitonic": Example(
        """__device__ void compare(int *s, int i, int j, bool up) {
            int a = s[i], b = s[j];
            if ((a > b) == up) {
                s[i] = b;
                s[j] = a;
            }
        }
        __global__ void sort(int *x) {
            __shared__ int s[256];
            unsigned t = threadIdx.x;
            s[t] = x[t];
            s[t + 128] = x[t + 128];
            for (unsigned size = 2; size <= 256; size *= 2)
                for (unsigned stride = size / 2; stride > 0; stride /= 2) {
                    __syncthreads();
                    unsigned pos = 2 * t - (t & (stride - 1));
                    compare(s, pos, pos + stride, (pos & size) == 0);
                }
            __syncthreads();
            x[t] = s[t];
            x[t + 128] = s[t + 128];
        }""",
        1,
        128,
        sorted_keys,
    ),
    "convolution": Example(
        """#define T 16
        #define R 1
        __constant__ int unused[3] = {1, 2, 3};
        __global__ void convolve(const float *x, const float *w, float *y, int width, int height) {
            __shared__ float tile[T + 2 * R][T + 2 * R];
            int col = blockIdx.x * T + threadIdx.x, row = blockIdx.y * T + threadIdx.y;
            for (int r = threadIdx.y; r < T + 2 * R; r += T)
                for (int c = threadIdx.x; c < T + 2 * R; c += T) {
                    int gr = (int)(blockIdx.y * T) + r - R, gc = (int)(blockIdx.x * T) + c - R;
                    bool inside = gr >= 0 && gr < height && gc >= 0 && gc < width;
                    tile[r][c] = inside ? x[gr * width + gc] : 0.0f;
                }
            __syncthreads();
            if (row >= height || col >= width) return;
            float sum = 0.0f;
            for (int r = 0; r < 3; ++r)
                for (int c = 0; c < 3; ++c)
                    sum += w[r * 3 + c] * tile[threadIdx.y + r][threadIdx.x + c];
            y[row * width + col] = sum;
        }""",
        (3, 3),
        (16, 16),
        convolved,
    ),
    "saxpy4": Example(
        """__device__ float4 axpy(float a, float4 x, float4 y) {
            return make_float4(a * x.x + y.x, a * x.y + y.y, a * x.z + y.z, a * x.w + y.w);
        }
        __global__ void saxpy4(float a, const float *x, float *y, int n4) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n4) return;
            const float4 *x4 = reinterpret_cast<const float4 *>(x);
            float4 *y4 = reinterpret_cast<float4 *>(y);
            y4[i] = axpy(a, __ldg(&x4[i]), y4[i]);
        }""",
        3,
        96,
        saxpy4,
    ),
    "largest": Example(
        """__global__ void largest(const int *x, int *result, int n) {
            int best = -2147483647 - 1;
            for (int i = threadIdx.x; i < n; i += blockDim.x) best = max(best, x[i]);
            for (int mask = 16; mask > 0; mask >>= 1)
                best = max(best, __shfl_xor_sync(0xffffffffu, best, mask));
            if ((threadIdx.x & 31) == 0) atomicMax(result, best);
        }""",
        1,
        128,
        largest,
    ),
    "game_of_life": Example(
        """#define N 32
        #define AT(r, c) s[((r) + N) % N][((c) + N) % N]
        __global__ void life(const unsigned char *x, unsigned char *y) {
            __shared__ unsigned char s[N][N];
            int r = threadIdx.y, c = threadIdx.x;
            s[r][c] = x[r * N + c];
            __syncthreads();
            int around = AT(r - 1, c - 1) + AT(r - 1, c) + AT(r - 1, c + 1) + AT(r, c - 1) +
                         AT(r, c + 1) + AT(r + 1, c - 1) + AT(r + 1, c) + AT(r + 1, c + 1);
            y[r * N + c] = around == 3 || (around == 2 && s[r][c]);
        }""",
        1,
        (32, 32),
        game,
    ),
    "rows": Example(
        """__global__ void rows(const double *x, double *sums, int n) {
            __shared__ double part[4][32];
            int row = blockIdx.x * blockDim.y + threadIdx.y;
            double sum = 0;
            for (int c = threadIdx.x; c < n; c += 32) sum += x[(size_t)row * n + c];
            part[threadIdx.y][threadIdx.x] = sum;
            for (int w = 16; w >= 1; w >>= 1) {
                __syncwarp();
                if (threadIdx.x < w)
                    part[threadIdx.y][threadIdx.x] += part[threadIdx.y][threadIdx.x + w];
            }
            if (threadIdx.x == 0) sums[row] = part[threadIdx.y][0];
        }""",
        4,
        (32, 4),
        sums_of_rows,
    ),
}
