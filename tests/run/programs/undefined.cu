// Values that nobody wrote: copied, not used, used. Each word of the command line is a step.
#include <cstdio>
#include <cstring>

struct padded { // its last 4 bytes are padding
    double d;
    int i;
};
struct inner { // bytes 1 to 3 are padding
    char c;
    int i;
};

enum { N = 64 };
#define T threadIdx.x

__global__ void fill(padded *p) {
    p[T].d = T;
    p[T].i = T;
}
__global__ void copy(const padded *in, padded *out) { out[T] = in[T]; }
__global__ void reverse(const padded *in, padded *out) {
    __shared__ padded s[N];
    s[T] = in[T];
    __syncthreads();
    out[T] = s[N - 1 - T];
}
__global__ void loop(const padded *in, padded *out) {
    for (int k = T; k < N; k += 32) out[k] = in[N - 1 - k];
}
__global__ void pipelined(const float4 *in, float4 *out) { // loads an iteration ahead
    float4 next = in[0];
    for (int k = 1; k <= N; k++) {
        const float4 now = next;
        if (k < N) next = in[k];
        out[k - 1] = now;
    }
}
__global__ void bounded(const float4 *in, float4 *out, int n) {
    float4 v = make_float4(0, 0, 0, 0);
    if ((int)T < n) v = in[T];
    out[T] = v;
}
__global__ void bytes(const inner *in, inner *out) {
    __shared__ inner s[N];
    s[T].c = in[T].c;
    s[T].i = in[T].i;
    __syncthreads();
    out[T] = s[T ^ 1];
}
__global__ void three(const float4 *in, float4 *out) { // the fourth is not used
    const float4 v = in[T];
    out[T] = make_float4(v.x + 1, v.y + 1, v.z + 1, 0);
}
__global__ void unused(const int4 *in) {
    int4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(in + T));
}
__global__ void keep(const padded *in, padded *out) { // copied to and fro by one thread
    out[T] = in[T];
    __syncthreads();
    const padded value = out[T ^ 1];
    __syncthreads();
    out[N - 1 - T] = value;
}

__global__ void add(const int4 *in, int *out) { out[T] = in[T].w + 1; }             // add
__global__ void branch(const int4 *in, int *out) { if (in[T].w) out[T] = 1; }         // branch
__global__ void index(const int4 *in, int *out) { out[in[T].w & 63] = 1; }            // index
__global__ void print(const int4 *in) { if (!T) printf("%d\n", in[0].w); }            // print
__global__ void atomic(const int4 *in, int *out) { atomicExch(out + T, in[T].w); }    // atomic
__global__ void within(const int4 *in, int4 *out, int *sum) {
    out[T] = in[T];
    __syncthreads();
    sum[T] = out[T].w + 1; // within
}
__global__ void shared(const int4 *in, int *sum) {
    __shared__ int4 s[N];
    s[T] = in[T];
    __syncthreads();
    sum[T] = s[N - 1 - T].w + 1; // shared
}
__global__ void never(int *out) {
    __shared__ int s[N];
    if (T) s[T] = T;
    __syncthreads();
    out[T] = s[N - 1 - T]; // never
}
__global__ void some(const int *in, int *out) {
    int v = in[T]; // some
    if (T & 1) v = v + 1;
    out[T] = v;
}

static void check(cudaError_t status) {
    if (status) printf("%s\n", cudaGetErrorString(status));
}

int main(int n, char **words) {
    padded *a, *b;
    int *sum, host[4 * N];
    check(cudaMalloc(&a, N * sizeof *a));
    check(cudaMalloc(&b, N * sizeof *b));
    check(cudaMalloc(&sum, N * sizeof *sum));
    for (int k = 1; k < n; k++) {
        const char *word = words[k];
#define STEP(name, ...) if (!strcmp(word, #name)) name<<<1, N>>>(__VA_ARGS__)
        STEP(fill, a);
        STEP(copy, a, b);
        STEP(reverse, a, b);
        STEP(pipelined, (float4 *)a, (float4 *)b);
        STEP(bounded, (float4 *)a, (float4 *)b, N - 5);
        STEP(bytes, (inner *)a, (inner *)b);
        STEP(three, (float4 *)a, (float4 *)b);
        STEP(unused, (int4 *)a);
        STEP(keep, a, b);
        STEP(add, (int4 *)b, sum);
        STEP(branch, (int4 *)b, sum);
        STEP(index, (int4 *)b, sum);
        STEP(print, (int4 *)b);
        STEP(atomic, (int4 *)b, sum);
        STEP(within, (int4 *)a, (int4 *)b, sum);
        STEP(shared, (int4 *)a, sum);
        STEP(never, sum);
        STEP(some, (int *)a, sum);
        if (!strcmp(word, "loop")) loop<<<1, 32>>>(a, b);
        if (!strcmp(word, "zeros")) check(cudaMemset(b, 0, N * sizeof *b));
        if (!strcmp(word, "clear")) check(cudaMemset(sum, 0, N * sizeof *sum));
        if (!strcmp(word, "swap")) { padded *c = a; a = b, b = c; }
        if (!strcmp(word, "memcpy"))
            check(cudaMemcpy(b, a, N * sizeof *b, cudaMemcpyDeviceToDevice));
        if (!strcmp(word, "back")) check(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
        if (!strcmp(word, "sum"))
            check(cudaMemcpy(host, sum, N * sizeof *sum, cudaMemcpyDeviceToHost));
        check(cudaDeviceSynchronize());
    }
    cudaFree(a);
    cudaFree(b);
    cudaFree(sum);
    puts("PASS");
}
