// Streams, events, constant, managed and pinned memory, lists, a cooperative launch, printf,
// callbacks, copies in two dimensions, occupancy, attributes of pointers, pools.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstring>
namespace cg = cooperative_groups;
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_) {                                                                                  \
            printf("%d: %s\n", __LINE__, cudaGetErrorString(e_));                                  \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)
static int bad;
__constant__ float weights[4];
__device__ int counter;
__managed__ int managed[64];
struct Node {
    int value;
    Node *next;
};
__global__ void scale(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= weights[i % 4];
}
__global__ void count() { atomicAdd(&counter, 1); }
__global__ void add_managed(int *p) {
    managed[threadIdx.x] += threadIdx.x;
    p[threadIdx.x] += 1;
}
__global__ void walk(const Node *n, int *sum) {
    int s = 0;
    for (; n; n = n->next)
        s += n->value;
    *sum = s;
}
__global__ void grid_sum(int *x, int *out) {
    cg::grid_group g = cg::this_grid();
    x[g.thread_rank()] = (int)g.thread_rank();
    g.sync();
    if (g.thread_rank() == 0) {
        int s = 0;
        for (int i = 0; i < (int)g.size(); i++)
            s += x[i];
        *out = s;
    }
}
__global__ void hello() { printf("hello from %d\n", threadIdx.x); }
static void CUDART_CB host(void *p) { *(int *)p += 1; }
int main() {
    int n;
    CHECK(cudaGetDeviceCount(&n));
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    printf("%s %d.%d %d SMs %zu\n", p.name, p.major, p.minor, p.multiProcessorCount,
           p.totalGlobalMem);
    float w[4] = {1, 2, 3, 4}, *x, hx[100];
    CHECK(cudaMemcpyToSymbol(weights, w, sizeof w));
    CHECK(cudaMallocHost(&x, 400));
    for (int i = 0; i < 100; i++)
        x[i] = i;
    float *d;
    cudaStream_t s, t;
    cudaEvent_t e, f;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&e));
    CHECK(cudaEventCreate(&f));
    CHECK(cudaMalloc(&d, 400));
    CHECK(cudaMemcpyAsync(d, x, 400, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(e, s));
    CHECK(cudaStreamWaitEvent(t, e, 0));
    scale<<<1, 128, 0, t>>>(d, 100);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(f, t));
    CHECK(cudaEventSynchronize(f));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, e, f));
    CHECK(cudaMemcpy(hx, d, 400, cudaMemcpyDefault));
    for (int i = 0; i < 100; i++)
        if (hx[i] != i * w[i % 4])
            bad++;
    int zero = 0, c;
    CHECK(cudaMemcpyToSymbol(counter, &zero, 4));
    count<<<3, 32>>>();
    count<<<1, 5>>>();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyFromSymbol(&c, counter, 4));
    if (c != 101) {
        printf("counter %d\n", c);
        bad++;
    }
    int *m;
    CHECK(cudaMallocManaged(&m, 256));
    for (int i = 0; i < 64; i++)
        m[i] = i, managed[i] = 1;
    add_managed<<<1, 64>>>(m);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        if (m[i] != i + 1 || managed[i] != 1 + i)
            bad++;
    add_managed<<<1, 64>>>(managed);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        if (managed[i] != 2 + 2 * i) {
            printf("managed %d\n", managed[i]);
            bad++;
            break;
        }
    Node *nodes[3];
    for (int i = 0; i < 3; i++)
        CHECK(cudaMalloc(&nodes[i], sizeof(Node)));
    for (int i = 0; i < 3; i++) {
        Node h = {10 + i, i < 2 ? nodes[i + 1] : nullptr};
        CHECK(cudaMemcpy(nodes[i], &h, sizeof h, cudaMemcpyHostToDevice));
    }
    int *out;
    CHECK(cudaMalloc(&out, 4));
    walk<<<1, 1>>>(nodes[0], out);
    int total;
    CHECK(cudaMemcpy(&total, out, 4, cudaMemcpyDeviceToHost));
    if (total != 33)
        bad++;
    int *grid;
    CHECK(cudaMalloc(&grid, 4 * 256));
    void *args[] = {&grid, &out};
    CHECK(cudaLaunchCooperativeKernel((void *)grid_sum, 4, 64, args, 0, 0));
    CHECK(cudaMemcpy(&total, out, 4, cudaMemcpyDeviceToHost));
    if (total != 255 * 128) {
        printf("grid %d\n", total);
        bad++;
    }
    hello<<<1, 2>>>();
    printf("before\n");
    CHECK(cudaDeviceSynchronize());
    int called = 0;
    CHECK(cudaLaunchHostFunc(s, host, &called));
    if (called != 1)
        bad++;
    char *pitched;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, 100, 10));
    char src[1000], dst[1000];
    for (int i = 0; i < 1000; i++)
        src[i] = i;
    CHECK(cudaMemcpy2D(pitched, pitch, src, 100, 100, 10, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2D(dst, 100, pitched, pitch, 100, 10, cudaMemcpyDeviceToHost));
    if (memcmp(src, dst, 1000))
        bad++;
    CHECK(cudaMemset(d, 0, 400));
    CHECK(cudaMemcpy(hx, d, 400, cudaMemcpyDeviceToHost));
    if (hx[7])
        bad++;
    int blocks, mg, bs;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&mg, &bs, scale));
    printf("%d %d %d\n", blocks, mg, bs);
    cudaPointerAttributes a;
    CHECK(cudaPointerGetAttributes(&a, d));
    if (a.type != cudaMemoryTypeDevice)
        bad++;
    CHECK(cudaPointerGetAttributes(&a, x));
    if (a.type != cudaMemoryTypeHost) {
        printf("type %d\n", a.type);
        bad++;
    }
    CHECK(cudaPointerGetAttributes(&a, m));
    if (a.type != cudaMemoryTypeManaged) {
        printf("type %d\n", a.type);
        bad++;
    }
    CHECK(cudaPointerGetAttributes(&a, hx));
    if (a.type != cudaMemoryTypeUnregistered) {
        printf("type %d\n", a.type);
        bad++;
    }
    float *as;
    CHECK(cudaMallocAsync(&as, 400, s));
    CHECK(cudaMemsetAsync(as, 0, 400, s));
    CHECK(cudaFreeAsync(as, s));
    CHECK(cudaStreamSynchronize(s));
    cudaFuncAttributes fa;
    CHECK(cudaFuncGetAttributes(&fa, scale));
    if (fa.ptxVersion != 80 || fa.binaryVersion < 80) return 1; /* Thrust asks what it compiled */
    CHECK(cudaFuncSetAttribute(scale, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    size_t fr, to;
    CHECK(cudaMemGetInfo(&fr, &to));
    CHECK(cudaFree(d));
    CHECK(cudaFree(m));
    CHECK(cudaFree(out));
    CHECK(cudaFree(grid));
    CHECK(cudaFree(pitched));
    CHECK(cudaFreeHost(x));
    for (Node *node : nodes)
        CHECK(cudaFree(node));
    printf("%s\n", bad ? "FAIL" : "PASS");
    return bad != 0;
}
