// Kernels that launch kernels, copies and memsets; and graphs whose kernels set conditions.
// Argument: a seed. Prints PASS.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                                \
    if (cudaError_t error = call) {                                                                \
        printf("%s: %s\n", #call, cudaGetErrorString(error));                                      \
        exit(1);                                                                                   \
    }

// ---- order ----

__device__ unsigned ticks;
__global__ void note(unsigned *when) { *when = atomicAdd(&ticks, 1); }
__global__ void nested(unsigned *when) { note<<<1, 1>>>(when); }

__global__ void in_order(unsigned *when) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(when + 5);
    nested<<<1, 1>>>(when + 0);
    note<<<1, 1>>>(when + 1);
    nested<<<1, 1, 0, stream>>>(when + 2);
    note<<<1, 1, 0, stream>>>(when + 3);
    note<<<1, 1, 0, cudaStreamFireAndForget>>>(when + 4);
    cudaStreamDestroy(stream);
}

// ---- values ----

struct range {
    short first;
    double scale;
    int last;
};

// Adds scale times the sum of x[first..last) to *sum: each launch halves the range.
__global__ void add(const int *x, range r, double *sum) {
    extern __shared__ int part[];
    const int n = r.last - r.first;
    if (n > 2 * blockDim.x) {
        if (threadIdx.x > 1) return;
        const int middle = r.first + n / 2;
        const range half = threadIdx.x ? range{r.first, r.scale, middle}
                                       : range{short(middle), r.scale, r.last};
        add<<<1, blockDim.x, blockDim.x * sizeof(int)>>>(x, half, sum);
        return;
    }
    part[threadIdx.x] = 0;
    for (int k = r.first + threadIdx.x; k < r.last; k += blockDim.x) part[threadIdx.x] += x[k];
    __syncthreads();
    if (threadIdx.x) return;
    for (int k = 1; k < blockDim.x; k++) part[0] += part[k];
    atomicAdd(sum, r.scale * part[0]);
}

__global__ void increment(unsigned char *x, int n) {
    if (const int k = blockIdx.x * blockDim.x + threadIdx.x; k < n) x[k]++;
}

__global__ void copies(unsigned char *x, unsigned char *y, int n, int value) {
    cudaMemsetAsync(x, value, n, 0);
    increment<<<(n + 63) / 64, 64>>>(x, n);
    cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToDevice, 0);
}

// ---- conditions ----

__global__ void set(cudaGraphConditionalHandle handle, unsigned value) {
    cudaGraphSetConditional(handle, value);
}
__global__ void count_down(int *left, cudaGraphConditionalHandle handle) {
    cudaGraphSetConditional(handle, --*left > 0);
}
__global__ void add_to(int *to, int n) { *to += n; }

cudaGraphNode_t add_kernel(cudaGraph_t graph, void *kernel, void **arguments,
                           std::vector<cudaGraphNode_t> after = {}) {
    cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};
    p.kernel.func = kernel;
    p.kernel.gridDim = p.kernel.blockDim = dim3(1);
    p.kernel.kernelParams = arguments;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &p));
    return node;
}

cudaGraph_t *add_conditional(cudaGraph_t graph, cudaGraphConditionalHandle handle,
                             cudaGraphConditionalNodeType type, int n,
                             std::vector<cudaGraphNode_t> after = {}) {
    cudaGraphNodeParams p = {cudaGraphNodeTypeConditional};
    p.conditional.handle = handle;
    p.conditional.type = type;
    p.conditional.size = n;
    cudaGraphNode_t node;
    CHECK(cudaGraphAddNode(&node, graph, after.data(), nullptr, after.size(), &p));
    return p.conditional.phGraph_out;
}

// While *left: add 1 to *counted. Then a branch of three adds 100, 200 or 300, or none.
cudaGraph_t make_graph(int *left, int *counted, unsigned branch) {
    cudaGraph_t graph;
    cudaGraphConditionalHandle loop, choice;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
    CHECK(cudaGraphConditionalHandleCreate(&choice, graph, 0, 0));
    int one = 1;
    void *adding[] = {&counted, &one}, *counting[] = {&left, &loop}, *choosing[] = {&choice, &branch};
    cudaGraph_t body = *add_conditional(graph, loop, cudaGraphCondTypeWhile, 1);
    add_kernel(body, (void *)count_down, counting, {add_kernel(body, (void *)add_to, adding)});
    cudaGraphNode_t chosen = add_kernel(graph, (void *)set, choosing);
    cudaGraph_t *branches = add_conditional(graph, choice, cudaGraphCondTypeSwitch, 3, {chosen});
    for (int k = 0; k < 3; k++) {
        int hundreds = 100 * (k + 1);
        void *arguments[] = {&counted, &hundreds};
        add_kernel(branches[k], (void *)add_to, arguments);
    }
    return graph;
}

int main(int, char **arguments) {
    srand(atoi(arguments[1]));
    unsigned *when, ticks_at[6];
    CHECK(cudaMalloc(&when, sizeof ticks_at));
    in_order<<<1, 1>>>(when);
    CHECK(cudaMemcpy(ticks_at, when, sizeof ticks_at, cudaMemcpyDeviceToHost));
    bool right = ticks_at[0] < ticks_at[1] && ticks_at[2] < ticks_at[3] && ticks_at[5] == 5;

    const int n = 1 + rand() % 20000, threads = 2 + rand() % 60;
    std::vector<int> numbers(n);
    for (int &one : numbers) one = rand() % 100;
    int *x;
    double *sum, total = 0;
    CHECK(cudaMalloc(&x, n * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof total));
    CHECK(cudaMemcpy(x, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(sum, 0, sizeof total));
    add<<<1, threads, threads * sizeof(int)>>>(x, range{0, 0.5, n}, sum);
    CHECK(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
    right &= total == 0.5 * std::accumulate(numbers.begin(), numbers.end(), 0);

    unsigned char *bytes, *to, value = rand() % 200;
    std::vector<unsigned char> back(n);
    CHECK(cudaMalloc(&bytes, n));
    CHECK(cudaMalloc(&to, n));
    copies<<<1, 1>>>(bytes, to, n, value);
    CHECK(cudaMemcpy(back.data(), to, n, cudaMemcpyDeviceToHost));
    for (unsigned char one : back) right &= one == value + 1;

    int *counters, start[2] = {1 + rand() % 20, 0}, end[2];
    const unsigned branch = rand() % 4;
    CHECK(cudaMalloc(&counters, sizeof start));
    cudaGraphExec_t exec;
    cudaGraph_t graph = make_graph(counters, counters + 1, branch);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    for (int k = 0; k < 2; k++) { // again: the loop's condition is as at first
        CHECK(cudaMemcpy(counters, start, sizeof start, cudaMemcpyHostToDevice));
        CHECK(cudaGraphLaunch(exec, 0));
        CHECK(cudaMemcpy(end, counters, sizeof end, cudaMemcpyDeviceToHost));
        right &= end[0] == 0 && end[1] == start[0] + (branch < 3 ? 100 * int(branch + 1) : 0);
    }
    CHECK(cudaGraphExecDestroy(exec));
    void *all[] = {when, x, sum, bytes, to, counters};
    for (void *one : all) CHECK(cudaFree(one));
    puts(right ? "PASS" : "FAIL");
}
