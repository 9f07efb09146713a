// Pools of each kind of memory, batches of copies, and how many clusters fit. Needs sm_90.
#include <cstdio>

static int failed;
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), failed = 1;               \
    } while (0)

__global__ void add(int *x, int n) { x[threadIdx.x] += n; }

int main() {
    cudaStream_t stream;
    CHECK(!cudaStreamCreate(&stream));

    const cudaMemLocationType places[] = {cudaMemLocationTypeDevice, cudaMemLocationTypeHost,
                                          cudaMemLocationTypeHostNuma, cudaMemLocationTypeNone};
    const cudaMemoryType types[] = {cudaMemoryTypeDevice, cudaMemoryTypeHost, cudaMemoryTypeHost,
                                    cudaMemoryTypeManaged};
    for (int k = 0; k < 4; k++) {
        cudaMemPool_t pool;
        cudaMemPoolProps want = {};
        cudaPointerAttributes is;
        int *x;
        want.allocType = k < 3 ? cudaMemAllocationTypePinned : cudaMemAllocationTypeManaged;
        want.location.type = places[k];
        CHECK(!cudaMemPoolCreate(&pool, &want));
        CHECK(!cudaMallocFromPoolAsync((void **)&x, 32 * sizeof *x, pool, stream));
        CHECK(!cudaPointerGetAttributes(&is, x) && is.type == types[k]);
        CHECK(!cudaMemsetAsync(x, 0, 32 * sizeof *x, stream));
        add<<<1, 32, 0, stream>>>(x, k + 5);
        CHECK(!cudaStreamSynchronize(stream));
        if (k) CHECK(x[31] == k + 5);
        CHECK(!cudaFreeAsync(x, stream) && !cudaMemPoolDestroy(pool));
    }
    cudaMemPool_t pool, same;
    cudaMemLocation host = {cudaMemLocationTypeHost, 0};
    CHECK(!cudaMemGetDefaultMemPool(&pool, &host, cudaMemAllocationTypePinned));
    CHECK(!cudaMemGetDefaultMemPool(&same, &host, cudaMemAllocationTypePinned) && same == pool);
    CHECK(cudaMemPoolDestroy(pool) == cudaErrorInvalidValue);

    int *x, from[64], back[64];
    for (int k = 0; k < 64; k++) from[k] = 3 * k;
    CHECK(!cudaMalloc(&x, sizeof from));
    void *to[] = {x + 32, x};
    const void *source[] = {from, from + 32};
    size_t bytes[] = {128, 128}, first = 0, late = 1;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(!cudaMemcpyBatchAsync(to, source, bytes, 2, &attributes, &first, 1, stream));
    CHECK(!cudaMemcpyAsync(back, x, sizeof back, cudaMemcpyDeviceToHost, stream));
    CHECK(!cudaStreamSynchronize(stream));
    CHECK(back[0] == 96 && back[63] == 93);
    CHECK(cudaMemcpyBatchAsync(to, source, bytes, 2, &attributes, &late, 1, stream));
    CHECK(cudaMemcpyBatchAsync(to, source, bytes, 0, &attributes, &first, 1, stream));
    CHECK(cudaMemcpyBatchAsync(to, source, bytes, 2, &attributes, &first, 1, 0));

    cudaLaunchConfig_t launch = {};
    cudaLaunchAttribute cluster;
    int n;
    launch.gridDim = 8;
    launch.blockDim = 1024;
    launch.attrs = &cluster;
    launch.numAttrs = 1;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {4, 1, 1};
    CHECK(!cudaOccupancyMaxActiveClusters(&n, add, &launch) && n == 2 * 132 / 4);
    CHECK(!cudaOccupancyMaxPotentialClusterSize(&n, add, &launch) && n == 8);
    CHECK(!cudaFuncSetAttribute(add, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CHECK(!cudaOccupancyMaxPotentialClusterSize(&n, add, &launch) && n == 16);

    CHECK(!cudaFree(x) && !cudaStreamDestroy(stream));
    puts(failed ? "FAIL" : "PASS");
}
