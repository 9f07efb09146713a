"""The lines of the host that a report names, also of inlined calls, and the names of kernels."""

import json

import pytest

import run_programs

# Each kernel is launched on the line that ends with its number, which is its key in LINES.
SOURCE = """
#include <cstdio>
#include <cstdlib>
__global__ void plain(int *x) { x[threadIdx.x] = 1; }
static __global__ void fixed(int *x) { x[threadIdx.x] = 1; }
template <class T> __global__ void typed(T *x) { x[threadIdx.x] = 1; }
template <class T> static __global__ void both(T *x) { x[threadIdx.x] = 1; }
namespace {
struct Tag {};
__global__ void hidden(int *x) { x[threadIdx.x] = 1; }
template <class T> __global__ void hidden_typed(int *x, T) { x[threadIdx.x] = 1; }
}
void plain(int *x, int n) {  // a function of the host with the name of a kernel
    if (n) plain<<<1, 32>>>(x);  // plain
}
static void launch(int *x) {
    typed<<<1, 32>>>(x);  // typed
}
int main(int n, char **) {
    int *x;
    cudaMalloc(&x, 400);  // allocated
    plain(x, n);
    launch(x);
    fixed<<<1, 32>>>(x);  // fixed
    both<<<1, 32>>>(x);  // both
    hidden<<<1, 32>>>(x);  // hidden
    hidden_typed<<<1, 32>>>(x, Tag());  // hidden_typed
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
}
"""
LINES = {
    text.rpartition("// ")[2]: number
    for number, text in enumerate(SOURCE.splitlines(), 1)
    if "// " in text
}
KERNELS = {"plain", "fixed", "typed", "both", "hidden", "hidden_typed"}


def report(run_program, *words):
    _, out, err = run_program("--json", *words)
    assert err == "cudaSuccess\n", err
    return json.loads(out)


@pytest.mark.parametrize("options", [(), ("-O3",), ("-O3", "-rdc=true")], ids=" ".join)
def test_launches_and_allocations_have_their_lines(run_program, tmp_path, options):
    program = run_programs.compiled(tmp_path, "lines", "-arch=sm_80", *options, text=SOURCE)
    found = report(run_program, program)
    [leak] = found["leaks"]
    assert leak["line"] == LINES["allocated"]
    _, shown, _ = run_program(program)
    for kernel in KERNELS:
        [line] = [
            text
            for text in shown.splitlines()
            if ": 1 launch at " in text and text.split(":")[0].split("<")[0] == kernel
        ]
        assert f"at lines.cu:{LINES[kernel]}," in line, shown


FAILS = """
#include <cassert>
#include <cstdio>
template <int N> __global__ void checks(int *) { assert(threadIdx.x < N); }
template <int N> __global__ void writes(int *x) { x[threadIdx.x] = 1; }
__global__ void prints(void *x) { printf("[%p] [%8p] [%-8p] %d\\n", x, x, x, x != 0); }
int main() {
    static int values[32];
    int local[32];
    prints<<<1, 1>>>(nullptr);
    writes<0><<<1, 32>>>(values);
    fprintf(stderr, "%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaDeviceReset();
    writes<1><<<1, 32>>>(local);
    fprintf(stderr, "%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
    cudaDeviceReset();
    checks<20><<<1, 32>>>(nullptr);
    fprintf(stderr, "%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def test_faults_are_told_in_the_words_of_the_source(run_program, tmp_path):
    """Pointers of the host are called so; a launch that failed has its kernel's own name, and is
    in the last line."""
    program = run_programs.compiled(tmp_path, "fails", "-arch=sm_80", text=FAILS)
    _, out, err = run_program(program)
    assert err.split() == ["cudaErrorIllegalAddress"] * 2 + ["cudaErrorAssert"]
    assert "[(nil)] [   (nil)] [(nil)   ] 0\n" in out
    assert "the launch failed: kernel checks<20>, fails.cu:4: assertion" in out
    assert "4 kernels, 4 launches: 1 failed kernel, 2 hazards, 0 wrong calls" in out
    _, out, _ = run_program("--json", program)
    hazards = [row for kernel in json.loads(out)["kernels"] for row in kernel["hazards"]]
    assert len(hazards) == 2, out
    for row in hazards:
        assert "memory of the host, which a kernel cannot access" in row["message"]
        assert "buffer" not in row["message"]
