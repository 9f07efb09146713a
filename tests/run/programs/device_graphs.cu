// Kernels that launch graphs: fire-and-forget, as siblings, at the tail, and themselves again.
// Argument: a seed. Prints PASS.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    if (cudaError_t error = call) {                                                                \
        printf("%s: %s\n", #call, cudaGetErrorString(error));                                      \
        exit(1);                                                                                   \
    }

// ---- order ----

__device__ int n_notes, notes[1000];
__device__ void write_note(int what) { notes[atomicAdd(&n_notes, 1)] = what; }
__global__ void note(int what) { write_note(what); }

__global__ void launch(int what, cudaGraphExec_t one, cudaStream_t first, cudaGraphExec_t two,
                       cudaStream_t second, int *errors) {
    write_note(what);
    if (one && cudaGraphLaunch(one, first)) atomicAdd(errors, 1);
    if (two && cudaGraphLaunch(two, second)) atomicAdd(errors, 1);
}

cudaStream_t stream;

template <class... Types> cudaGraph_t captured(void (*kernel)(Types...), Types... arguments) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    kernel<<<1, 1, 0, stream>>>(arguments...);
    note<<<1, 1, 0, stream>>>(100);
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

std::vector<cudaGraphExec_t> made;

// Uploads it in one of three ways: the last one runs it, too.
cudaGraphExec_t for_device(cudaGraph_t graph, int way) {
    cudaGraphExec_t exec;
    cudaGraphInstantiateParams p = {};
    p.flags = cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUpload;
    p.uploadStream = stream;
    if (way == 0) {
        CHECK(cudaGraphInstantiateWithParams(&exec, graph, &p));
    } else {
        CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
        CHECK(way == 1 ? cudaGraphUpload(exec, stream) : cudaGraphLaunch(exec, stream));
    }
    CHECK(cudaGraphDestroy(graph));
    made.push_back(exec);
    return exec;
}

std::vector<int> take_notes() {
    int n, zero = 0;
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpyFromSymbol(&n, n_notes, sizeof n));
    std::vector<int> all(n);
    CHECK(cudaMemcpyFromSymbol(all.data(), notes, n * sizeof n));
    CHECK(cudaMemcpyToSymbol(n_notes, &zero, sizeof zero));
    all.erase(std::remove(all.begin(), all.end(), 100), all.end());
    return all;
}

bool before(const std::vector<int> &all, int a, int b) {
    return std::find(all.begin(), all.end(), a) < std::find(all.begin(), all.end(), b);
}

bool orders(int *errors, int way) {
    const cudaStream_t tail = cudaStreamGraphTailLaunch, now = cudaStreamGraphFireAndForget,
                       sibling = cudaStreamGraphFireAndForgetAsSibling;
    auto plain = [&](int what) { return for_device(captured(note, what), way); };
    auto launching = [&](int what, cudaGraphExec_t one, cudaStream_t first, cudaGraphExec_t two,
                         cudaStream_t second) {
        return captured(launch, what, one, first, two, second, errors);
    };
    // 1 launches 2 as its tail, which launches 3 and 4 as its own; then 1 launches 5 as its tail
    cudaGraphExec_t last = plain(5);
    cudaGraphExec_t second = for_device(launching(2, plain(3), tail, plain(4), tail), way);
    // 6 is a child of 1, and has a child and a tail; 9 is a sibling
    cudaGraphExec_t child = for_device(launching(6, plain(7), now, plain(8), tail), way);
    cudaGraphExec_t tails = for_device(launching(10, second, tail, last, tail), way);
    cudaGraphExec_t first, both = for_device(launching(11, child, now, plain(9), sibling), way);
    cudaGraph_t graph = launching(1, both, now, tails, tail);
    CHECK(cudaGraphInstantiate(&first, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    take_notes();
    bool right = true;
    for (int k = 0; k < 2; k++) {
        CHECK(cudaGraphLaunch(first, stream));
        const std::vector<int> all = take_notes();
        right &= all.size() == 11 && all[0] == 1;
        right &= before(all, 11, 6) && before(all, 6, 7) && before(all, 7, 8) && before(all, 11, 9);
        // all that comes after the tail began
        const std::vector<int> tail_of_1 = {10, 2, 3, 4, 5};
        right &= std::equal(tail_of_1.begin(), tail_of_1.end(), all.end() - 5);
    }
    CHECK(cudaGraphExecDestroy(first));
    return right;
}

// ---- loops ----

__global__ void again(int *left, cudaGraphExec_t *own) {
    if (threadIdx.x) return;
    own[0] = cudaGetCurrentGraphExec();
    if (--*left > 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
__global__ void add(int *x, int n) {
    if (threadIdx.x < n) x[threadIdx.x]++;
}

// Of a device graph: a set, a copy, and a graph within that adds 1 and launches all of it again.
bool loops(int turns, int way) {
    int *left, *x, back[34] = {0};
    cudaGraphExec_t *own, owns;
    CHECK(cudaMalloc(&left, sizeof *left));
    CHECK(cudaMalloc(&x, 2 * sizeof back));
    CHECK(cudaMalloc(&own, sizeof owns));
    CHECK(cudaMemset(x, 0, 2 * sizeof back));
    CHECK(cudaMemcpy(left, &turns, sizeof turns, cudaMemcpyHostToDevice));
    cudaGraph_t inner, graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 64, 0, stream>>>(x, 34);
    again<<<1, 32, 0, stream>>>(left, own);
    CHECK(cudaStreamEndCapture(stream, &inner));
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphNode_t child, copy, set;
    CHECK(cudaGraphAddChildGraphNode(&child, graph, nullptr, 0, inner));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &child, 1, x + 34, x, sizeof back,
                                   cudaMemcpyDeviceToDevice));
    cudaMemsetParams p = {};
    p.dst = x;
    p.elementSize = p.width = p.height = 1;
    p.value = 7;
    CHECK(cudaGraphAddMemsetNode(&set, graph, &copy, 1, &p));
    CHECK(cudaGraphDestroy(inner));
    cudaGraphExec_t exec = for_device(graph, way);
    if (way < 2) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(back, x + 34, sizeof back, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&owns, own, sizeof owns, cudaMemcpyDeviceToHost));
    bool right = owns == exec && back[0] == (turns > 1 ? 8 : 1);
    for (int k = 1; k < 34; k++) right &= back[k] == turns;
    CHECK(cudaMemcpy(&turns, left, sizeof turns, cudaMemcpyDeviceToHost));
    for (void *one : {(void *)left, (void *)x, (void *)own}) CHECK(cudaFree(one));
    return right && !turns;
}

__global__ void current(cudaGraphExec_t *out) { *out = cudaGetCurrentGraphExec(); }

// Only device graphs have a handle for their kernels.
bool without_handle() {
    cudaGraphExec_t *own, is[2], exec;
    CHECK(cudaMalloc(&own, sizeof is));
    current<<<1, 1, 0, stream>>>(own);
    cudaGraph_t graph = captured(current, own + 1);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(is, own, sizeof is, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(own));
    made.push_back(exec);
    return !is[0] && !is[1];
}

int main(int, char **arguments) {
    srand(atoi(arguments[1]));
    int *errors, count = 0;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&errors, sizeof count));
    CHECK(cudaMemset(errors, 0, sizeof count));
    bool right = without_handle();
    for (int way = 0; way < 3; way++) {
        right &= way == 2 || orders(errors, way);
        right &= loops(1 + rand() % 300, way);
    }
    CHECK(cudaMemcpy(&count, errors, sizeof count, cudaMemcpyDeviceToHost));
    for (cudaGraphExec_t exec : made) CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(errors));
    puts(right && !count ? "PASS" : "FAIL");
}
