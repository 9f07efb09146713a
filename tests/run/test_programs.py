"""`smemkern run` on programs that nvcc compiles: their own checks pass, and the report is right."""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest

import run_programs

PAGE = run_programs.ROOT / "docs" / "run.md"


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """compiled(name, *options): a program of programs/, compiled once with these options."""
    made = {}

    def compile_one(name, *options):
        if (name, options) not in made:
            folder = tmp_path_factory.mktemp(name)
            text = run_programs.page_source() if name == "sum" else None
            made[name, options] = run_programs.compiled(folder, name, *options, text=text)
        return made[name, options]

    return compile_one


def document(run_program, *words):
    status, out, _ = run_program("--json", *words)
    return status, json.loads(out)


NEWER = ("-arch=sm_90", "-no-compress")  # than an A100
LINKED = [
    NEWER,
    ("-arch=sm_75",),
    ("-arch=sm_80", "-cudart", "shared"),
    ("-arch=sm_75", "-compress-mode=size"),
    ("-arch=sm_75", "-compress-mode=speed"),
    ("-gencode", "arch=compute_80,code=compute_80"),
    ("-rdc=true", "-arch=sm_80"),
]


@pytest.mark.parametrize("options", LINKED, ids=" ".join)
def test_saxpy(compiled, run_program, options):
    program, n = compiled("saxpy", *options), random.randrange(1, 5000)
    status, out, err = run_program(program, n)
    assert (status, err) == (0, "") and out.startswith("PASS\n"), n
    assert "1 kernel, 1 launch: 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in out
    _, found = document(run_program, program, n)
    [kernel] = found["kernels"]
    assert kernel["grids"] == [[(n + 255) // 256, 1, 1]] and kernel["block"] == [256, 1, 1]
    assert kernel["flops"] == 2 * n
    assert sum(row["bytes"] for row in kernel["global"]) == 3 * 4 * n


def test_ptx_that_is_newer_than_the_gpu(compiled, run_program):
    status, found = document(run_program, "--gpu", "a100", compiled("saxpy", *NEWER), 100)
    [misuse] = found["misuses"]
    assert status and "oldest PTX is for compute_90, newer than this GPU" in misuse["message"]
    assert "machine code cannot run" in misuse["message"]
    assert "a --gpu of compute capability 9.0" in misuse["message"]


SHARED_HEADER = """
#include <cstdio>
template <typename T> __device__ T two[1] = {2};
template <typename T> __device__ T half_of_one = 0.5;
template <typename T> __device__ __noinline__ T twice(T x) {
    return x * two<T>[0] * half_of_one<T> * 2;
}
__device__ float moved(float x);
extern __device__ float offset;
"""
FIRST_PART = """
#include "shared.h"
__device__ float offset = 3;
__global__ void first(float *x) { x[threadIdx.x] = moved(twice(x[threadIdx.x])); }
int main() {
    float *x, host[32];
    for (int k = 0; k < 32; k++) host[k] = k;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    first<<<1, 32>>>(x);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    bool right = true;
    for (int k = 0; k < 32; k++) right &= host[k] == 4 * k + 3;
    puts(right ? "PASS" : "FAIL");
    cudaFree(x);
}
"""
SECOND_PART = """
#include "shared.h"
__device__ float moved(float x) {
    __shared__ float part[32];
    part[threadIdx.x] = x;
    const float other = part[threadIdx.x ^ 1];  // line 6 races
    return twice(x) + offset + 0 * other;
}
"""


def test_parts_that_are_linked(run_program, tmp_path):
    """Functions and variables of another file, a template that both have, and lines of both."""
    (tmp_path / "shared.h").write_text(SHARED_HEADER)
    second = tmp_path / "second.cu"
    second.write_text(SECOND_PART)
    options = ("-rdc=true", "-arch=sm_80", "-lineinfo", str(second))
    program = run_programs.compiled(tmp_path, "first", *options, text=FIRST_PART)
    _, out, err = run_program(program)
    assert out.startswith("PASS\n"), out + err
    lines = out.splitlines()
    assert any("RAW race" in line and "second.cu:6" in line for line in lines), out
    assert any(line.startswith("first.cu:4") for line in lines), out


@pytest.mark.long(instead="test_many_managed_and_pinned_allocations")
def test_many_calls(compiled, run_program):
    status, out, _ = run_program(compiled("many", "-arch=sm_80"))
    assert status == 0 and "PASS\n" in out
    assert "before\nhello from 0\nhello from 1\n" in out  # printf shows when the host waits
    assert "0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in " ".join(out.split())
    status, found = document(run_program, "--gpu", "a100", compiled("many", "-arch=sm_80"))
    assert found["gpu"] == "NVIDIA A100" and status == 0


def test_textures_graphs_and_other_calls(compiled, run_program):
    """The program compares all values with its own."""
    seed = random.randrange(2**31)
    options = ("-gencode", "arch=compute_90,code=compute_90", "-lcuda")
    status, out, _ = run_program(compiled("calls", *options), seed)
    assert status == 0 and "PASS\n" in out, (seed, out[:2000])
    assert "0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in " ".join(out.split()), (
        seed,
        out[-2000:],
    )


def test_pools_batches_and_clusters(compiled, run_program):
    status, out, _ = run_program(compiled("pools", "-arch=sm_90"))
    assert (status, out.split("\n")[0]) == (0, "PASS"), out
    assert "0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in " ".join(out.split())


def test_many_managed_and_pinned_allocations(compiled, run_program):
    """More than there are regions: found by kernels, freed, used again, and named in findings."""
    n = random.choice([random.randrange(1, 100), random.randrange(100, 3000)])
    status, found = document(run_program, compiled("lists", "-arch=sm_80"), n)
    assert status == 0, n
    hazards = [row for kernel in found["kernels"] for row in kernel["hazards"]]
    assert [(row["kind"], row["count"]) for row in hazards] == [("WAW", 32)], n
    assert "managed memory of 16 bytes" in hazards[0]["message"], n
    assert [one["kind"] for one in found["misuses"]] == ["double-free"] and not found["leaks"], n


def test_errors_are_those_of_the_runtime(compiled, run_program):
    """Wrong launches, and faults, which stay until the device is reset."""
    status, out, _ = run_program(compiled("errors", "-arch=sm_80"))
    assert status == 0 and "PASS\n" in out


def test_a_race_has_its_lines(compiled, run_program):
    program = compiled("sum")
    status, found = document(run_program, "--error-exitcode", "3", program)
    [kernel] = found["kernels"]
    text = run_programs.page_source().splitlines()
    kinds = {row["kind"] for row in kernel["hazards"]}
    assert status == 3 and kinds and kinds <= {"RAW", "WAR"}
    for row in kernel["hazards"]:
        assert "part[threadIdx.x] +=" in text[row["line"] - 1]
        assert "part[threadIdx.x] +=" in text[row["other_line"] - 1]
    [leak] = found["leaks"]
    assert "cudaMalloc(&y" in text[leak["line"] - 1]


def follow_the_page(folder, commands, environment):
    """Saves the page's source, and runs some of its commands: they print what it shows."""
    page = PAGE.read_text(encoding="utf-8")
    (folder / "sum.cu").write_text(run_programs.page_source())
    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    shown = re.search(r"```text\n(.*?)```", page, re.S)[1]
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-len(shown.split()) :] == shown.split()
    return done


def commands_of_the_page():
    if not shutil.which("nvcc"):
        pytest.skip("needs nvcc")
    return re.search(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1].splitlines()


def test_the_commands_of_the_page(tmp_path):
    """All but the installation, which is that of .ci/run."""
    install, *commands = commands_of_the_page()
    assert install == "pip install ." and len(commands) == 2
    command = tmp_path / "bin" / "smemkern"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m smemkern "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{os.environ['PATH']}"
    done = follow_the_page(tmp_path, commands, {**os.environ, "PATH": path})
    assert not done.stderr and done.stdout.startswith("sum: ")


def test_machine_code_only(compiled, run_program):
    program = compiled("saxpy", "-gencode", "arch=compute_80,code=sm_80")
    status, out, _ = run_program("--error-exitcode", "5", program)
    assert status == 5 and out.startswith("FAIL")
    told = " ".join(out.split())
    assert "machine code of sm_80 and no PTX" in told
    assert "-gencode arch=compute_80,code=compute_80" in told


def test_ptx_for_a_newer_gpu(compiled, run_program):
    _, out, _ = run_program("--gpu", "a100", compiled("saxpy", *NEWER))
    assert "compute_90, newer than this GPU" in " ".join(out.split())


LIBRARY = ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=compute_90")


def test_newer_ptx_beside_machine_code(compiled, run_program):
    """As libraries have: a GPU runs the machine code, so the program is right. A V100 has none."""
    program = compiled("saxpy", *LIBRARY)
    status, out, _ = run_program("--gpu", "a100", "--error-exitcode", "5", program)
    assert status == 0 and out.startswith("PASS")
    assert "its PTX is for compute_90, newer than this GPU" in " ".join(out.split())
    assert "its PTX" not in run_program(program)[1]
    _, out, _ = run_program("--gpu", "v100", program)
    assert out.startswith("FAIL") and "compute_90, newer than this GPU" in " ".join(out.split())


UNUSED = """
#include <cstdio>
__global__ void unused() {}
int main(int arguments, char **) {
    int *x;
    printf("%s\\n", cudaGetErrorName(cudaMalloc(&x, 4)));
    if (arguments > 1) unused<<<1, 1>>>();
    printf("%s\\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(x);
}
"""


def test_machine_code_that_is_not_launched(tmp_path, run_program):
    code = ("-gencode", "arch=compute_80,code=sm_80")
    program = run_programs.compiled(tmp_path, "unused", *code, text=UNUSED)
    _, out, _ = run_program(program)
    assert out.startswith("cudaSuccess\ncudaSuccess\n") and ": 0 hazards, 0 wrong calls" in out
    _, out, _ = run_program(program, "launched")
    assert out.startswith("cudaSuccess\ncudaErrorNoKernelImageForDevice\n")
    told = "kernel _Z6unusedv: the program has machine code of sm_80 and no PTX"
    assert told in " ".join(out.split())


@pytest.mark.parametrize("options", [(), ("--shuffle", "1")], ids=["in-order", "shuffled"])
def test_kernels_that_launch_kernels(compiled, run_program, options):
    seed = random.randrange(1000)
    program = compiled("children", "-rdc=true", "-arch=sm_80", "-std=c++17")
    status, out, err = run_program(*options, program, seed)
    assert (status, err) == (0, "") and out.startswith("PASS\n"), (seed, out)
    assert ": 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in " ".join(out.split())


WRONG_CHILDREN = """
#include <cstdio>
__global__ void child(int *x) { *x = 5; }
__global__ void parent(int *x) {
    child<<<1, 1, 200000>>>(x);
    child<<<1, 2000>>>(x + 1);
    child<<<1, 1>>>(x + 2);
    child<<<1, 1>>>(x + 9);
    child<<<1, 1>>>(x);
}
int main() {
    int *x, back[3];
    cudaMalloc(&x, sizeof back);
    cudaMemset(x, 0, sizeof back);
    parent<<<1, 1>>>(x);
    printf("%d\\n", cudaDeviceSynchronize());
}
"""


def test_launches_of_kernels_that_are_wrong(run_program, tmp_path):
    """Two that are not possible do not run; after an access out of bounds nothing more does."""
    program = run_programs.compiled(
        tmp_path, "wrong", "-rdc=true", "-arch=sm_80", text=WRONG_CHILDREN
    )
    status, found = document(run_program, program)
    _, _, err = run_program("--json", program)
    assert err == "700\n"  # CUDA_ERROR_ILLEGAL_ADDRESS
    launches = {one["kernel"]: one["launches"] for one in found["kernels"]}
    assert launches == {"_Z6parentPi": 1, "_Z5childPi": 2}
    [hazard] = [row for one in found["kernels"] for row in one["hazards"]]
    [misuse] = found["misuses"]
    assert (hazard["kind"], hazard["line"], misuse["kind"]) == ("out-of-bounds", 3, "launch")
