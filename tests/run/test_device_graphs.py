"""Kernels that launch graphs under `smemkern run`: the programs' own checks, and what is wrong."""

import json
import re

import pytest

import run_programs

OPTIONS = ("-rdc=true", "-arch=sm_80", "-std=c++17")


@pytest.mark.parametrize("options", [(), ("--shuffle", "1")], ids=["in-order", "shuffled"])
def test_kernels_that_launch_graphs(run_program, tmp_path, options, draw):
    seed = draw.randrange(1000)
    program = run_programs.compiled(tmp_path, "device_graphs", *OPTIONS)
    status, out, err = run_program(*options, program, seed)
    assert (status, err) == (0, "") and out.startswith("PASS\n"), (seed, out)
    assert ": 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in " ".join(out.split())


WRONG_GRAPHS = """
#include <cstdio>
__global__ void nothing() {}
__global__ void ask(cudaGraphExec_t graph, cudaStream_t stream, int n) {
    for (int k = 0; k < n; k++) printf("%d", cudaGraphLaunch(graph, stream));
    printf(" ");
}
cudaStream_t stream, tail = cudaStreamGraphTailLaunch, now = cudaStreamGraphFireAndForget;
template <class F> cudaGraphExec_t made(F body, int flags = 0) {
    cudaGraph_t graph;
    cudaGraphExec_t exec = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    body();
    cudaStreamEndCapture(stream, &graph);
    int code = cudaGraphInstantiate(&exec, graph, flags);
    if (code) printf("%d ", code);
    cudaGraphDestroy(graph);
    return exec;
}
void run(cudaGraphExec_t graph, cudaStream_t how, int n = 1) {
    cudaGraphExec_t exec = made([=] { ask<<<1, 1, 0, stream>>>(graph, how, n); });
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(exec);
}
int main() {
    cudaStreamCreate(&stream);
    auto kernel = [] { nothing<<<1, 1, 0, stream>>>(); };
    const int device = cudaGraphInstantiateFlagDeviceLaunch;
    cudaGraphExec_t good = made(kernel, device), host = made(kernel);
    run(good, tail);           // not uploaded
    cudaGraphUpload(good, stream);
    run(host, tail);           // not for kernels
    run((cudaGraphExec_t)4096, now);
    run(nullptr, now);
    run(good, 0);              // streams that are none
    run(good, cudaStreamTailLaunch);
    ask<<<1, 1>>>(good, now, 1);  // not in a graph
    cudaDeviceSynchronize();
    run(good, now, 2);         // the first runs still
    run(good, tail, 2);
    run(good, now);            // and again, without a mistake
    run(good, tail);
    puts("");
    // nodes that graphs for kernels cannot have
    int there = 0, *memory;
    cudaMalloc(&memory, sizeof there);
    made([] {}, device);
    made([] { cudaLaunchHostFunc(stream, [](void *) {}, nullptr); }, device);
    made([&] { cudaMemcpyAsync(memory, &there, sizeof there, cudaMemcpyHostToDevice, stream); },
         device);
    made(kernel, device | cudaGraphInstantiateFlagAutoFreeOnLaunch);
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaHostNodeParams host_node = {[](void *) {}, nullptr};
    cudaGraphCreate(&graph, 0);
    cudaGraphAddHostNode(&node, graph, nullptr, 0, &host_node);
    cudaGraphInstantiateParams p = {};
    p.flags = device;
    int code = cudaGraphInstantiateWithParams(&good, graph, &p);
    printf("%d %d %d\\n", code, p.result_out, p.errNode_out == node);
    cudaFree(memory);
}
"""


def test_launches_of_graphs_that_are_wrong(run_program, tmp_path):
    """The kernel gets cudaErrorInvalidValue, the report says why, and the graph is as before."""
    program = run_programs.compiled(tmp_path, "wrong", *OPTIONS, text=WRONG_GRAPHS)
    _, out, err = run_program("--json", program)
    found = json.loads(out)
    first, second = err.splitlines()
    assert first.split() == ["1"] * 7 + ["01", "01", "0", "0"]
    assert second == "1 1 1 1 1 3 1"
    told = [re.sub("0x[0-9a-f]+, ", "", one["message"]) for one in found["misuses"]]
    start = "a kernel launches the graph "
    assert sorted(set(told)) == sorted(
        start + why
        for why in (
            "which was not uploaded: call cudaGraphUpload first",
            "which was instantiated without cudaGraphInstantiateFlagDeviceLaunch",
            "which does not exist",
            "but not to cudaStreamGraphTailLaunch or another stream for graphs",
            "but is not in a graph itself",
            "which runs, or will run, already",
        )
    )
    assert sum(one["count"] for one in found["misuses"]) == 9
    launches = {one["kernel"]: one["launches"] for one in found["kernels"]}
    assert launches["_Z7nothingv"] == 4


MANY_GRAPHS = """
#include <cstdio>
__device__ int failed, ran;
__global__ void count() { ran++; }
__global__ void launch(const cudaGraphExec_t *graphs, int n, cudaStream_t how) {
    for (int k = 0; k < n; k++) failed += cudaGraphLaunch(graphs[k], how) != 0;
    ran++;
}
cudaStream_t stream;
template <class F> cudaGraphExec_t made(F body) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    body();
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
    cudaGraphUpload(exec, stream);
    cudaGraphDestroy(graph);
    return exec;
}
void run(cudaGraphExec_t exec) {
    int results[2], zero = 0;
    cudaGraphLaunch(exec, stream);
    printf("%d ", cudaStreamSynchronize(stream));
    cudaMemcpyFromSymbol(results, failed, sizeof(int));
    cudaMemcpyFromSymbol(results + 1, ran, sizeof(int));
    cudaMemcpyToSymbol(failed, &zero, sizeof zero);
    cudaMemcpyToSymbol(ran, &zero, sizeof zero);
    printf("%d %d\\n", results[0], results[1]);
}
int main() {
    const int n = 300;
    cudaGraphExec_t *graphs;
    cudaStreamCreate(&stream);
    cudaMallocManaged(&graphs, n * sizeof *graphs);
    for (int k = 0; k < n; k++) graphs[k] = made([] { count<<<1, 1, 0, stream>>>(); });
    run(made([=] { launch<<<1, 1, 0, stream>>>(graphs, n, cudaStreamGraphFireAndForget); }));
    run(made([=] { launch<<<1, 1, 0, stream>>>(graphs, n, cudaStreamGraphTailLaunch); }));
    for (int k = 1; k < n; k++)  // each launches the one before
        graphs[k] = made([=] {
            launch<<<1, 1, 0, stream>>>(graphs + k - 1, 1, cudaStreamGraphFireAndForget);
        });
    run(graphs[n - 1]);
}
"""


def test_more_graphs_than_a_graph_may_launch(run_program, tmp_path):
    program = run_programs.compiled(tmp_path, "many", *OPTIONS, text=MANY_GRAPHS)
    status, out, _ = run_program(program)
    # 120 at once, 255 at the end, and here 120 within each other
    assert status == 0 and out.splitlines()[:3] == ["0 180 121", "0 45 256", "0 1 121"]
    assert "after as many others as one graph may launch" in " ".join(out.split())
