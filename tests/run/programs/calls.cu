// Textures and surfaces of arrays and of linear memory, graphs that are built and captured, memory
// of graphs, virtual memory, a tensor map. Every check compares with values computed here.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <vector>
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        const int e_ = (int)(x);                                                                   \
        if (e_) {                                                                                  \
            printf("%d: error %d\n", __LINE__, e_);                                                \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)
#define EXPECT(wanted, x)                                                                          \
    do {                                                                                           \
        const long long w_ = (long long)(wanted), f_ = (long long)(x);                             \
        if (w_ != f_) {                                                                            \
            printf("%d: expected %lld, found %lld\n", __LINE__, w_, f_);                           \
            bad++;                                                                                 \
        }                                                                                          \
    } while (0)
static int bad;

// ---- textures ----

__global__ void read2d(cudaTextureObject_t t, float *out, int width, int height, float shift) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height) out[i] = tex2D<float>(t, i % width + shift, i / width + 0.5f);
}
__global__ void read1d(cudaTextureObject_t t, int *out, int n) {
    const int i = threadIdx.x;
    if (i < n + 2) out[i] = tex1Dfetch<int>(t, i - 1);
}
__global__ void read_layers(cudaTextureObject_t t, float *out, int width, int height, int layers) {
    for (int i = threadIdx.x; i < width * height * layers; i += blockDim.x)
        out[i] = tex2DLayered<float>(t, i % width + 0.5f, i / width % height + 0.5f,
                                     i / (width * height));
}
__global__ void read3d(cudaTextureObject_t t, float *out, int w, int h, int d) {
    for (int i = threadIdx.x; i < w * h * d; i += blockDim.x)
        out[i] = tex3D<float>(t, i % w + 0.5f, i / w % h + 0.5f, i / (w * h) + 0.5f);
}
__global__ void store(cudaSurfaceObject_t s, int width, int height) {
    const int i = threadIdx.x;
    if (i < width * height) surf2Dwrite(i * 3.0f, s, i % width * 4, i / width);
}

static cudaTextureDesc sampling(bool linear) {
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = d.addressMode[2] = cudaAddressModeClamp;
    d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    return d;
}

static void compare(const std::vector<float> &wanted, const float *device, int line) {
    std::vector<float> found(wanted.size());
    CHECK(cudaMemcpy(found.data(), device, 4 * found.size(), cudaMemcpyDeviceToHost));
    for (size_t k = 0; k < wanted.size(); k++)
        if (!(wanted[k] == found[k])) {
            printf("%d: [%zu]: expected %g, found %g\n", line, k, wanted[k], found[k]);
            bad++;
            return;
        }
}

static std::vector<float> drawn(size_t n) {
    std::vector<float> x(n);
    for (float &one : x)
        one = rand() % 1000;
    return x;
}

static void textures_of_arrays(float *out) {
    const int w = 5 + rand() % 9, h = 3 + rand() % 6, d = 2 + rand() % 3;
    const auto x = drawn(w * h * d), plane = std::vector<float>(x.begin(), x.begin() + w * h);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    cudaArray_t a;
    cudaTextureObject_t t;
    CHECK(cudaMallocArray(&a, &format, w, h, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, x.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    r.res.array.array = a;
    cudaTextureDesc s = sampling(false);
    CHECK(cudaCreateTextureObject(&t, &r, &s, nullptr));
    read2d<<<1, 256>>>(t, out, w, h, 0.5f);
    compare(plane, out, __LINE__);
    CHECK(cudaDestroyTextureObject(t));
    s = sampling(true); // between two texels: their mean
    CHECK(cudaCreateTextureObject(&t, &r, &s, nullptr));
    read2d<<<1, 256>>>(t, out, w, h, 1.0f);
    std::vector<float> mean = plane;
    for (int i = 0; i < w * h; i++)
        if (i % w < w - 1) mean[i] = (plane[i] + plane[i + 1]) / 2;
    compare(mean, out, __LINE__);
    CHECK(cudaDestroyTextureObject(t));
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &r));
    store<<<1, 256>>>(surface, w, h);
    std::vector<float> back(w * h), wanted(w * h);
    CHECK(cudaMemcpy2DFromArray(back.data(), w * 4, a, 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < w * h; i++)
        EXPECT(3 * i, back[i]);
    CHECK(cudaDestroySurfaceObject(surface));
    EXPECT(cudaErrorInvalidValue, cudaMemcpy2DToArray(a, 4, 0, x.data(), w * 4, w * 4, h,
                                                      cudaMemcpyHostToDevice));
    cudaGetLastError();
    CHECK(cudaFreeArray(a));

    for (const bool layered : {true, false}) { // w x h x d, or d layers
        cudaMemcpy3DParms c = {};
        cudaArray_t box;
        CHECK(cudaMalloc3DArray(&box, &format, make_cudaExtent(w, h, d),
                                layered ? cudaArrayLayered : 0));
        c.srcPtr = make_cudaPitchedPtr((void *)x.data(), w * 4, w, h);
        c.dstArray = box;
        c.extent = make_cudaExtent(w, h, d);
        c.kind = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpy3D(&c));
        r.res.array.array = box;
        s = sampling(false);
        CHECK(cudaCreateTextureObject(&t, &r, &s, nullptr));
        if (layered)
            read_layers<<<1, 64>>>(t, out, w, h, d);
        else
            read3d<<<1, 64>>>(t, out, w, h, d);
        compare(x, out, __LINE__);
        cudaExtent extent;
        unsigned flags;
        cudaChannelFormatDesc found;
        CHECK(cudaArrayGetInfo(&found, &extent, &flags, box));
        EXPECT(d, extent.depth);
        CHECK(cudaDestroyTextureObject(t));
        CHECK(cudaFreeArray(box));
    }
}

static void textures_of_memory(float *out) {
    const int w = 5 + rand() % 40, h = 2 + rand() % 4, n = 1 + rand() % 60;
    const auto x = drawn(w * h);
    float *rows;
    size_t pitch;
    cudaTextureObject_t t;
    cudaTextureDesc s = sampling(false);
    cudaResourceDesc r = {};
    CHECK(cudaMallocPitch(&rows, &pitch, w * 4, h));
    CHECK(cudaMemcpy2D(rows, pitch, x.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = rows;
    r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    r.res.pitch2D.width = w, r.res.pitch2D.height = h, r.res.pitch2D.pitchInBytes = pitch;
    CHECK(cudaCreateTextureObject(&t, &r, &s, nullptr));
    read2d<<<1, 256>>>(t, out, w, h, 0.5f);
    compare(x, out, __LINE__);
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFree(rows));
    std::vector<int> in(n), found(n + 2);
    int *line;
    CHECK(cudaMalloc(&line, n * 4));
    for (int &one : in)
        one = rand();
    CHECK(cudaMemcpy(line, in.data(), n * 4, cudaMemcpyHostToDevice));
    r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = line, r.res.linear.sizeInBytes = n * 4;
    r.res.linear.desc = cudaCreateChannelDesc<int>();
    CHECK(cudaCreateTextureObject(&t, &r, &s, nullptr));
    read1d<<<1, 64>>>(t, (int *)out, n);
    CHECK(cudaMemcpy(found.data(), out, (n + 2) * 4, cudaMemcpyDeviceToHost));
    for (int k = 0; k < n + 2; k++)
        EXPECT(k && k <= n ? in[k - 1] : 0, found[k]); // outside: 0
    CHECK(cudaDestroyTextureObject(t));
    EXPECT(cudaErrorInvalidValue, cudaDestroyTextureObject(t));
    cudaGetLastError();
    CHECK(cudaFree(line));
}

// ---- graphs ----

__global__ void add(int *x, int value) { x[threadIdx.x] += value; }
__global__ void scale(int *x, int value) { x[threadIdx.x] *= value; }
static void CUDART_CB count(void *p) { ++*(int *)p; }
static void CUDART_CB destroy(void *p) { *(int *)p = -1; }

static int value_of(const int *x) {
    int value;
    CHECK(cudaMemcpy(&value, x + 31, 4, cudaMemcpyDeviceToHost));
    return value;
}

static cudaKernelNodeParams kernel(void *f, void **args) {
    cudaKernelNodeParams p = {};
    p.func = f;
    p.gridDim = dim3(1), p.blockDim = dim3(32);
    p.kernelParams = args;
    return p;
}

static void built_graph(int *x) {
    int five = 5, three = 3, seven = 7, calls = 0, object = 0;
    int *y;
    void *add_args[] = {&x, &five}, *scale_args[] = {&x, &three}, *new_args[] = {&x, &seven};
    cudaGraph_t g, copy;
    cudaGraphNode_t set, adds, scales, hosts, copies, child, found;
    CHECK(cudaMalloc(&y, 128));
    CHECK(cudaGraphCreate(&g, 0));
    cudaKernelNodeParams p = kernel((void *)scale, scale_args);
    CHECK(cudaGraphAddKernelNode(&scales, g, nullptr, 0, &p)); // its need comes after it
    p = kernel((void *)add, add_args);
    cudaMemsetParams m = {};
    m.dst = x, m.elementSize = 4, m.width = 32, m.height = 1, m.value = 2;
    CHECK(cudaGraphAddMemsetNode(&set, g, nullptr, 0, &m));
    CHECK(cudaGraphAddKernelNode(&adds, g, &set, 1, &p));
    CHECK(cudaGraphAddDependencies(g, &adds, &scales, nullptr, 1));
    cudaHostNodeParams h = {count, &calls};
    CHECK(cudaGraphAddHostNode(&hosts, g, &scales, 1, &h));
    CHECK(cudaGraphAddMemcpyNode1D(&copies, g, &scales, 1, y, x, 128, cudaMemcpyDeviceToDevice));
    cudaUserObject_t user;
    CHECK(cudaUserObjectCreate(&user, &object, destroy, 1, cudaUserObjectNoDestructorSync));
    CHECK(cudaGraphRetainUserObject(g, user, 1, cudaGraphUserObjectMove));
    size_t n = 0;
    CHECK(cudaGraphGetNodes(g, nullptr, &n));
    EXPECT(5, n);
    CHECK(cudaGraphGetEdges(g, nullptr, nullptr, nullptr, &n));
    EXPECT(4, n);
    CHECK(cudaGraphGetRootNodes(g, &found, &(n = 1)));
    EXPECT(set == found, 1);
    cudaGraphExec_t e, outer;
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphLaunch(e, 0));
    EXPECT((2 + 5) * 3, value_of(x));
    EXPECT((2 + 5) * 3, value_of(y));
    EXPECT(1, calls);
    p = kernel((void *)add, new_args);
    CHECK(cudaGraphExecKernelNodeSetParams(e, adds, &p));
    CHECK(cudaGraphLaunch(e, 0));
    EXPECT((2 + 7) * 3, value_of(x));
    CHECK(cudaGraphNodeSetEnabled(e, scales, 0));
    CHECK(cudaGraphLaunch(e, 0));
    EXPECT(2 + 7, value_of(x));
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(e, g, &info));
    cudaKernelNodeParams got;
    CHECK(cudaGraphKernelNodeGetParams(adds, &got));
    EXPECT(5, *(int *)got.kernelParams[1]);
    CHECK(cudaGraphClone(&copy, g));
    CHECK(cudaGraphNodeFindInClone(&found, scales, copy));
    CHECK(cudaGraphDestroyNode(found)); // of the clone: so no host node follows
    CHECK(cudaGraphAddChildGraphNode(&child, g, &hosts, 1, copy));
    CHECK(cudaGraphInstantiate(&outer, g, 0));
    CHECK(cudaGraphLaunch(outer, 0));
    EXPECT(2 + 5, value_of(x));
    EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(e, g, &info));
    EXPECT(cudaGraphExecUpdateErrorTopologyChanged, info.result);
    cudaGetLastError();
    CHECK(cudaGraphAddDependencies(g, &scales, &set, nullptr, 1)); // a circle
    EXPECT(cudaErrorInvalidValue, cudaGraphInstantiate(&outer, g, 0));
    cudaGetLastError();
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphExecDestroy(outer));
    CHECK(cudaGraphDestroy(copy));
    EXPECT(0, object);
    CHECK(cudaGraphDestroy(g));
    EXPECT(-1, object);
    CHECK(cudaFree(y));
}

static void captured_graph(int *x) {
    cudaStream_t s, t;
    cudaEvent_t fork, join;
    cudaGraph_t g;
    cudaGraphExec_t e;
    cudaStreamCaptureStatus status;
    int *y, calls = 0;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamCreate(&t));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    CHECK(cudaMemset(x, 0, 128));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    add<<<1, 32, 0, s>>>(x, 1);
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork, 0));
    CHECK(cudaStreamIsCapturing(t, &status));
    EXPECT(cudaStreamCaptureStatusActive, status);
    add<<<1, 32, 0, t>>>(x, 2);
    CHECK(cudaLaunchHostFunc(t, count, &calls));
    CHECK(cudaEventRecord(join, t));
    CHECK(cudaMallocAsync(&y, 128, s));
    CHECK(cudaMemsetAsync(y, 0, 128, s));
    add<<<1, 32, 0, s>>>(y, 4);
    CHECK(cudaFreeAsync(y, s));
    CHECK(cudaStreamWaitEvent(s, join, 0));
    scale<<<1, 32, 0, s>>>(x, 10);
    CHECK(cudaStreamEndCapture(s, &g));
    EXPECT(0, value_of(x));
    EXPECT(0, calls);
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaGraphLaunch(e, t));
    CHECK(cudaStreamSynchronize(t));
    EXPECT((3 * 10 + 3) * 10, value_of(x));
    EXPECT(2, calls);
    size_t n = 0;
    CHECK(cudaGraphGetNodes(g, nullptr, &n));
    EXPECT(8, n);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));

    // what a capture does not allow
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
    EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    EXPECT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&y, 4));
    EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(fork, s));
    EXPECT(cudaErrorCapturedEvent, cudaEventQuery(fork));
    EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(fork, s));
    CHECK(cudaStreamWaitEvent(t, fork, 0));
    add<<<1, 32, 0, t>>>(x, 2);
    EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s, &g));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    EXPECT(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(x, 0, 4, 0));
    EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &g));
    EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(s, &g));
    cudaGetLastError();
    add<<<1, 32, 0, t>>>(x, 1); // nothing is captured now
    EXPECT((3 * 10 + 3) * 10 + 1, value_of(x));
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaStreamDestroy(t));
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(join));
}

// ---- virtual memory, and a tensor map ----

static void virtual_memory() {
    CUmemAllocationProp p = {};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {p.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle memory;
    CUdeviceptr a, b;
    size_t unit;
    CHECK(cuMemGetAllocationGranularity(&unit, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK(cuMemAddressReserve(&a, 3 * unit, 0, 0, 0));
    CHECK(cuMemAddressReserve(&b, unit, 0, 0, 0));
    CHECK(cuMemCreate(&memory, unit, &p, 0));
    CHECK(cuMemMap(a + unit, unit, 0, memory, 0)); // the same memory at two addresses
    CHECK(cuMemMap(b, unit, 0, memory, 0));
    CHECK(cuMemSetAccess(a + unit, unit, &access, 1));
    CHECK(cuMemRelease(memory));
    CHECK(cuMemsetD32(a + unit, 4, 32));
    CHECK(cuMemsetD32(b + 256, 0, 32));
    add<<<1, 32>>>((int *)(a + unit), 3);
    EXPECT(7, value_of((int *)b));
    CHECK(cuMemUnmap(a + unit, unit));
    CHECK(cuMemUnmap(b, unit));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemMap(a, unit, 0, memory, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(a, unit));
    CHECK(cuMemAddressFree(a, 3 * unit));
    CHECK(cuMemAddressFree(b, unit));
}

// A box of 8 x 4 of a matrix, by TMA.
__global__ void box(const __grid_constant__ CUtensorMap map, int *out, int x, int y) {
    __shared__ __align__(128) int tile[32];
    __shared__ __align__(8) unsigned long long barrier;
    const unsigned to = (unsigned)__cvta_generic_to_shared(tile),
                   full = (unsigned)__cvta_generic_to_shared(&barrier);
    if (!threadIdx.x) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(full));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(full));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(&map), "r"(x), "r"(y), "r"(full)
                     : "memory");
    }
    __syncthreads();
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
                 " @!p bra again; }" ::"r"(full)
                 : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}

static void tensor_map(int *out) {
    const cuuint64_t size[] = {36, 20}, stride[] = {36 * 4};
    const cuuint32_t box_size[] = {8, 4}, step[] = {1, 1};
    const int x = rand() % 10 * 4 - 4, y = rand() % 24 - 4;
    int *matrix, found[32];
    std::vector<int> in(36 * 20);
    CUtensorMap map;
    for (int &one : in)
        one = rand();
    CHECK(cudaMalloc(&matrix, in.size() * 4));
    CHECK(cudaMemcpy(matrix, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, (char *)matrix + 4, size,
                                  stride, box_size, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, size, stride,
                                 box_size, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    box<<<1, 32>>>(map, out, x, y);
    CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 32; k++) {
        const int column = x + k % 8, row = y + k / 8;
        EXPECT(column >= 0 && column < 36 && row >= 0 && row < 20 ? in[row * 36 + column] : 0,
               found[k]);
    }
    CHECK(cudaFree(matrix));
}

int main(int n, char **words) {
    float *out;
    srand(n > 1 ? atoi(words[1]) : 1);
    CHECK(cudaMalloc(&out, 1 << 14));
    textures_of_arrays(out);
    textures_of_memory(out);
    built_graph((int *)out);
    captured_graph((int *)out);
    virtual_memory();
    tensor_map((int *)out);
    CHECK(cudaFree(out));
    printf("%s\n", bad ? "FAIL" : "PASS");
    return bad;
}
