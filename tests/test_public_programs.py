"""validation/public_programs.py: how it reads a Makefile, and a whole program on the emulator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAKEFILE = """
source = main.cu \\
         util.cu
CFLAGS := -std=c++17 -DSIZE=4 -I../include
run: $(program)
\t./$(program) 268435456 512 -f 7 1000 256
"""

# Variables of all kinds, arguments of all kinds, a pointer in memory, and a reset of an error.
PROGRAM = """
#include <cstdio>
struct pair { double scale; short shift; };
__device__ int table[4] = {5, 6, 7, 8};
__constant__ float factors[2];
__device__ unsigned count;
__global__ void fill(float **rows, pair p, float x, char c, int n) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    extern __shared__ float kept[];
    kept[threadIdx.x] = factors[k & 1] * x;
    __syncthreads();
    if (k < n) rows[k % 2][k / 2] = kept[threadIdx.x] * p.scale + p.shift + table[k & 3] + c;
    atomicAdd(&count, 1);
}
int main() {
    const int n = 100;
    const float given[2] = {2, -3};
    float *row[2], **rows, out[n / 2];
    unsigned seen = 0;
    cudaMemcpyToSymbol(factors, given, sizeof given);
    for (float *&r : row) cudaMalloc(&r, n / 2 * sizeof(float));
    cudaMallocManaged(&rows, sizeof row);
    rows[0] = row[0], rows[1] = row[1];
    fill<<<4, 32, 128>>>(rows, pair{0.5, -7}, 1.25f, 'a', n);
    if (cudaDeviceSynchronize() != cudaSuccess) return 3;
    for (int r = 0; r < 2; r++) {
        cudaMemcpy(out, row[r], sizeof out, cudaMemcpyDeviceToHost);
        for (int k = r; k < n; k += 2) {
            const float want = given[k & 1] * 1.25f * 0.5 - 7 + (5 + (k & 3)) + 'a';
            if (out[k / 2] != want) return printf("FAIL %d %f %f\\n", k, out[k / 2], want), 1;
        }
    }
    cudaMemcpyFromSymbol(&seen, count, sizeof seen);
    fill<<<1, 32, 128>>>(nullptr, pair{}, 0, 0, n);
    const bool fault = cudaGetLastError() != cudaSuccess, cleared = !cudaGetLastError();
    puts(seen == 128 && FAULT ? "PASS" : "FAIL");
}
"""


@pytest.fixture
def programs(monkeypatch):
    for folder in ("benchmarks", "validation"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    import public_programs

    return public_programs


def test_a_makefile_is_read(programs, tmp_path):
    folder = tmp_path / "src" / "one-cuda"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text(MAKEFILE)
    found = programs.read_makefile(folder / "main.cu", tmp_path)
    assert found.name == "src/one-cuda" and found.sources == ["main.cu", "util.cu"]
    assert found.options == ["-DSIZE=4", "-I../include"]
    assert found.arguments == ["1048576", "64", "-f", "7", "1", "256"]


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
@pytest.mark.parametrize(
    ("fault", "expected"),
    [("fault && cleared", "fill"), (None, "passed")],
)
def test_a_program_runs(programs, tmp_path, fault, expected):
    """With a launch that reads address 0, the emulator's error is what is reported."""
    main = tmp_path / "main.cu"
    text = PROGRAM.replace("FAULT", fault or "true")
    if fault is None:
        text = "\n".join(line for line in text.splitlines() if "nullptr" not in line)
        text = text.replace("const bool fault", "const bool ignored")
        text = text.replace(", cleared = !cudaGetLastError()", "")
    main.write_text(text)
    program = programs.read_makefile(main, tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    assert programs.compile_program(program, out, programs.runtime(out)) == ""
    assert expected in programs.run(program, out, 60)
