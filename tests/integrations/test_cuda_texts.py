"""check and trace with CUDA C++ and PTX: as text, and of CuPy and cuda.core."""

import pickle

import numpy as np
import pytest
from kernel_texts import SOURCE, is_the_race

import smemkern


def test_text(nvrtc, random, tmp_path):
    x = random.standard_normal(100).astype("f4")
    want = x * np.float32(2.5)
    assert not smemkern.check(SOURCE, 2, 64, x, 2.5, 100, name="scale<float>")
    np.testing.assert_array_equal(x, want)
    (file := tmp_path / "mine.cu").write_text(SOURCE, encoding="utf-8")
    ptx = smemkern.Kernel(SOURCE, "reverse").ptx
    for path in (file, str(file)):
        assert is_the_race(smemkern.check(path, 1, 64, x, name="reverse"), "mine.cu")
    for text in (SOURCE, [SOURCE], ptx, [file]):
        assert is_the_race(smemkern.check(text, 1, 64, x, name="reverse"))
    with pytest.raises(TypeError, match="name should be a str"):
        smemkern.check(SOURCE, 1, 64, x, name=3)
    with pytest.raises(ValueError, match="no operation 'matmul'"):
        smemkern.check("matmul", 1, 64, x)
    with pytest.raises(TypeError, match="found object"):
        smemkern.check(object(), 1, 64, x)


def test_ptx_with_several_kernels(nvrtc, random):
    names = ["zero", "one", "two"]
    bodies = [
        f'extern "C" __global__ void {name}(int *x) {{ x[threadIdx.x] = {value}; }}'
        for value, name in enumerate(names)
    ]
    ptx = smemkern.Kernel("\n".join(bodies), "zero").ptx
    x = np.full(32, 9, "i4")
    for value, name in enumerate(names):
        smemkern.check(ptx, 1, 32, x, name=name)
        assert (x == value).all()
    with pytest.raises(ValueError, match=r"3 kernels, choose by name=: \w+, \w+, \w+$"):
        smemkern.check(ptx, 1, 32, x)


def test_linked_ptx(nvrtc):
    """Two texts with line information of their own, of which one calls a function of the other."""
    declared = 'extern "C" __device__ int twice(int);\n'
    caller = declared + 'extern "C" __global__ void k(int *x) { x[threadIdx.x] = twice(x[1]); }'
    function = 'extern "C" __device__ int twice(int v) { return 2 * v; }'
    unused = '\nextern "C" __global__ void unused() {}'
    texts = [
        smemkern.Kernel(caller, "k", ["-rdc=true"]).ptx,
        smemkern.Kernel(function + unused, "unused", ["-rdc=true"]).ptx,
    ]
    x = np.full(32, 21, "i4")
    t = smemkern.trace(texts, 1, 32, x, name="k")
    assert (x == 42).all()
    assert {row.line for row in t.global_} == {2}


def test_cupy(nvrtc, random):
    cupy = pytest.importorskip("cupy")
    x = random.standard_normal(64).astype("f4")
    kernel = cupy.RawKernel(SOURCE, "reverse")
    assert is_the_race(smemkern.check(kernel, 1, 64, x))
    assert is_the_race(smemkern.check(kernel, (1,), (64,), (x,)))  # as CuPy is called
    module = cupy.RawModule(code=SOURCE, options=("-std=c++17", "--use_fast_math"))
    want = x * np.float32(3)
    assert not smemkern.check(module, 1, 64, x, 3.0, 64, name="scale<float>")
    np.testing.assert_array_equal(x, want)
    code = """#include <cupy/complex.cuh>
    extern "C" __global__ void turn(complex<float> *z) {
        z[threadIdx.x] *= complex<float>(0, K);
    }"""
    z = random.standard_normal(16).astype("c8")
    turned = z * np.complex64(2j)
    nvcc = cupy.RawKernel(code, "turn", ("-DK=2", "-Xptxas=-v"), backend="nvcc")
    smemkern.check(nvcc, 1, 16, z)
    np.testing.assert_allclose(z, turned, rtol=1e-6)
    elementwise = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x", "same")
    with pytest.raises(TypeError, match="found ElementwiseKernel"):
        smemkern.check(elementwise, 1, 1)
    with pytest.raises(TypeError, match="found ElementwiseKernel"):
        smemkern.Kernel(elementwise)


def test_cupy_as_a_kernel(nvrtc, random):
    """Kernel takes CuPy's kernels with their name and options, and is pickled without CuPy."""
    cupy = pytest.importorskip("cupy")
    code = 'extern "C" __global__ void times(int *x) { x[threadIdx.x] *= K; }'
    times = smemkern.Kernel(cupy.RawKernel(code, "times", ("-DK=3",)))
    x = random.integers(-100, 100, 32, dtype="i4")
    want = x * 9
    times(1, 32, x)
    pickle.loads(pickle.dumps(times))(1, 32, x)
    np.testing.assert_array_equal(x, want)
    scale = smemkern.Kernel(cupy.RawModule(code=SOURCE), "scale<float>", ("-lineinfo",))
    y = random.standard_normal(64).astype("f4")
    want = y * np.float32(3)
    scale(1, 64, y, 3.0, 64)
    np.testing.assert_array_equal(y, want)


def test_cuda_core(random):
    core = pytest.importorskip("cuda.core")
    options = core.ProgramOptions(arch="sm_90", lineinfo=True, name="mine.cu")
    x = random.standard_normal(64).astype("f4")
    want = x * np.float32(3)
    program = core.Program(SOURCE, "c++", options)
    assert not smemkern.check(program, 1, 64, x, 3.0, 64, name="scale<float>")
    np.testing.assert_array_equal(x, want)
    assert is_the_race(smemkern.check(program, 1, 64, x, name="reverse"), "mine.cu")
    config = core.LaunchConfig(grid=1, block=64)
    fresh = core.Program(SOURCE, "c++", options)
    assert is_the_race(smemkern.check(fresh, config, x), "mine.cu")
    with pytest.raises(ValueError, match="pass a new Program"):
        smemkern.check(fresh, config, x, 3.0, 64, name="scale<double>")
    ptx = smemkern.Kernel(SOURCE, "reverse").ptx.encode()
    assert is_the_race(smemkern.check(core.ObjectCode.from_ptx(ptx), 1, 64, x))
    with pytest.raises(ValueError, match="machine code, and the emulator runs PTX"):
        smemkern.check(core.ObjectCode.from_cubin(b"machine code"), 1, 64, x)


def test_cuda_core_as_a_kernel(random):
    core = pytest.importorskip("cuda.core")
    program = core.Program(SOURCE, "c++", core.ProgramOptions(arch="sm_90"))
    scale = smemkern.Kernel(program, "scale<double>")
    x = random.standard_normal(64)
    want = x * 3
    scale(1, 64, x, 3.0, 64)
    np.testing.assert_array_equal(x, want)
    two = 'extern "C" __global__ void one() {} extern "C" __global__ void two() {}'
    with pytest.raises(ValueError, match="has 2 kernels, choose"):
        smemkern.Kernel(core.ObjectCode.from_ptx(smemkern.Kernel(two, "one").ptx.encode()))
