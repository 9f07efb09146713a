"""check and trace with the kernels of other tools, each with its real package and without a GPU.

The packages: pip install --group integrations. Tests of those that are missing are skipped.
"""

import inspect
import pickle
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import smemkern

PAGE = Path(__file__).resolve().parents[1] / "docs" / "integrations.md"
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def seed():
    """A new seed for each test, printed if it fails."""
    number = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {number}")
    return number


@pytest.fixture
def random(seed):
    return np.random.default_rng(seed)


def line_of(function, text):
    """The number of the line of a function's source that has a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(at for at, line in enumerate(lines) if text in line)


# ---- Triton ----


@pytest.fixture(scope="module")
def tri():
    pytest.importorskip("triton")
    import integrations_triton

    return integrations_triton


@pytest.mark.parametrize("form", ["grid", "callable", "configured"])
def test_triton(tri, random, form):
    n, size = int(random.integers(1, 2000)), 2 ** int(random.integers(5, 9))
    x, y = random.standard_normal((2, n)).astype("f4")
    out = np.zeros_like(x)
    blocks = -(-n // size)
    grid = {"grid": blocks}.get(form, lambda meta: (-(-n // meta["SIZE"]),))
    if form == "configured":
        t = smemkern.trace(tri.axpy[grid], 2.0, x, y, out, n, SIZE=size, num_warps=2)
    else:
        t = smemkern.trace(tri.axpy, grid, None, 2.0, x, y, out, n, SIZE=size, num_warps=2)
    np.testing.assert_allclose(out, 2 * x + y, rtol=1e-5, atol=1e-6)
    assert t.launch.block == (64, 1, 1) and t.grid_blocks == blocks
    assert not t.hazards
    loads = line_of(tri.axpy.fn, "tl.store")
    assert {(row.file, row.line) for row in t.global_} == {("integrations_triton.py", loads)}
    assert "tl.load(x + at, inside)" in t.annotate()
    assert "tl.load(x + at, inside)" in t.to_html()


def test_triton_finds_the_missing_mask(tri, random):
    n = int(random.integers(900, 1000))
    x, out = random.standard_normal((2, n)).astype("f4")
    (found,) = smemkern.check(tri.unmasked, 4, None, x, out, n, SIZE=256)
    assert found.kind == "out-of-bounds"
    assert "that is argument x, " in found.message and found.argument == 0
    assert found.line == line_of(tri.unmasked.fn, "has no mask")


@pytest.mark.parametrize("name, blocks", [("tuned", 16), ("heuristic", 1)])
def test_triton_wrapped(tri, random, name, blocks):
    kernel = getattr(tri, name)
    if kernel is None:
        pytest.skip("this Triton autotunes only where there is a GPU")
    x, y = random.standard_normal((2, 1000)).astype("f4")
    out = np.ones_like(x)
    grid = (lambda meta: (-(-1000 // meta["SIZE"]),)) if name == "tuned" else 1
    t = smemkern.trace(kernel, grid, None, 1.0, x, y, out, 1000)
    np.testing.assert_array_equal(out, x + y)
    assert t.grid_blocks == blocks  # of an autotuned kernel's configurations, the first
    assert not getattr(kernel, "cache", None), "an autotuner must not remember a run that is none"


def test_triton_takes_strided_arrays(tri, random):
    whole = random.standard_normal((37, 90)).astype("f4")
    for x in (whole[:, 5:40:3], whole.T[:, ::2], whole[::2], np.asfortranarray(whole)):
        out = np.zeros(len(x), "f4")
        steps = [step // 4 for step in x.strides]
        smemkern.trace(tri.row_sums, len(x), None, x, out, *steps, x.shape[1], SIZE=128)
        np.testing.assert_allclose(out, x.sum(1, dtype="f8"), rtol=1e-4, atol=1e-4)
    backwards = whole[::-1]
    with pytest.raises(ValueError, match="negative stride"):
        smemkern.trace(tri.row_sums, 37, None, backwards, out, -90, 1, 90, SIZE=128)


@pytest.mark.parametrize("options", [{}, {"num_warps": 8}, {"num_ctas": 2}])
def test_triton_product(tri, random, options):
    a, b = random.standard_normal((64, 32)), random.standard_normal((32, 64))
    a, b, c = a.astype("f2"), b.astype("f2"), np.zeros((64, 64), "f4")
    t = smemkern.trace(tri.product, 1, None, a, b, c, 64, 64, 32, **options)
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), atol=1e-3)
    assert not t.hazards and t.shared
    assert t.grid_blocks == options.get("num_ctas", 1)
    assert t.launch.block == (32 * options.get("num_warps", 4), 1, 1)


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_triton_arguments(tri, random, flag, biased):
    """None, a tuple, a bool, and floats of 16 bits."""
    x, b = random.standard_normal((2, 64)).astype("f4")
    out, bias = np.zeros(64, "f4"), b if biased else None
    smemkern.trace(tri.optional, 1, None, x, bias, out, (2.5, 1), flag, 1.5, 2.25, 64)
    want = x * 2.5 + 1 + (b if biased else 0) + flag + 3.75
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i4"])
@pytest.mark.parametrize("cols", [32, 64])
def test_triton_descriptors(tri, random, dtype, cols):
    """Tiles by the copy engine, in each of TMA's swizzles, past the end of the tensor too."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    from smemkern._adapter_triton import HostArray

    x = random.integers(-99, 99, (29, 128)).astype(dtype)
    out = np.zeros_like(x)
    maps = [TensorDescriptor.from_tensor(HostArray(array), [8, cols]) for array in (x, out)]
    t = smemkern.trace(tri.doubled_tiles, (4, 128 // cols), None, *maps, 8, cols)
    np.testing.assert_array_equal(out, x + x)
    assert not t.hazards
    assert {row.op for row in t.global_} == {"bulk"}


def test_triton_leaves_its_driver_alone(tri, random):
    from triton.runtime.driver import driver

    before = dict(vars(driver))
    x = random.standard_normal(64).astype("f4")
    smemkern.check(tri.axpy, 1, None, 1.0, x, x.copy(), x.copy(), 64, SIZE=64)
    with pytest.raises(TypeError, match="SIZE"):
        smemkern.check(tri.axpy, 1, None, 1.0, x, x, x, 64)
    assert dict(vars(driver)) == before


def test_triton_refusals(tri):
    x = np.zeros(64, "f4")
    with pytest.raises(ValueError, match="block of 128 threads"):
        smemkern.check(tri.axpy, 1, 64, 1.0, x, x, x, 64, SIZE=64)
    with pytest.raises(TypeError, match=r"axpy is called with \(grid, block"):
        smemkern.check(tri.axpy)
    with pytest.raises(
        (TypeError, AttributeError), match="of type|has no attribute|Unsupported type"
    ):
        smemkern.check(tri.axpy, 1, None, 1.0, "x", x, x, 64, SIZE=64)
    with pytest.raises(KeyError, match="BLOCK"):
        smemkern.check(tri.axpy, 1, None, 1.0, x, x, x, 64, SIZE=64, BLOCK=3)
    for kernel in (tri.axpy, tri.axpy[(1,)]):
        with pytest.raises(TypeError, match=r"Triton compiles .*use smemkern.check\(kernel, grid"):
            smemkern.Kernel(kernel)


# ---- Numba ----


@pytest.fixture(scope="module")
def cuda():
    cuda = pytest.importorskip("numba.cuda")
    warnings.filterwarnings("ignore", module="numba")
    return cuda


@pytest.fixture(scope="module")
def numba_axpy(cuda):
    @cuda.jit
    def axpy(a, x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a * x[i] + y[i]

    return axpy


@pytest.mark.parametrize("form", ["plain", "configured", "forall"])
def test_numba(numba_axpy, random, form):
    n = int(random.integers(1, 700))
    x, y = random.standard_normal((2, n)).astype("f4")
    out, grid = np.zeros_like(x), -(-n // 96)
    if form == "plain":
        t = smemkern.trace(numba_axpy, grid, 96, 2.5, x, y, out)
    elif form == "configured":
        t = smemkern.trace(numba_axpy[grid, 96], 2.5, x, y, out)
    else:
        t = smemkern.trace(numba_axpy.forall(n), 2.5, x, y, out)
    np.testing.assert_allclose(out, 2.5 * x + y, rtol=1e-5, atol=1e-6)
    at = line_of(numba_axpy.py_func, "out[i] =")
    assert {(row.file, row.line) for row in t.global_} == {("test_integrations.py", at)}
    assert not t.hazards


def test_numba_takes_any_strides(numba_axpy, random):
    base = random.standard_normal((3, 400))
    views = [v[:90] for v in (base[0, ::4], base[1, ::-1], base[2, 300::-3], base[:, 7:9].ravel())]
    for x in views:
        y, out = random.standard_normal(len(x)), np.zeros(3 * len(x))[::-3]
        before = base.copy()
        found = smemkern.check(numba_axpy, 2, 64, 3.0, x, y, out)
        np.testing.assert_allclose(out, 3 * x + y, rtol=1e-12)
        np.testing.assert_array_equal(base, before)
        assert not found


def test_elements_of_arrays_with_gaps_are_named(cuda, random):
    """A race at each element in turn; a byte in a gap is none."""

    @cuda.jit
    def race(x, i, j):
        x[i, j] = cuda.threadIdx.x

    base = np.zeros((12, 20), "i4")
    for x in (base[:, ::3], base[1:9:2, 2:], base[::2, ::5].T, base.T[3:7, ::2]):
        i, j = (int(random.integers(n)) for n in x.shape)
        (found,) = smemkern.check(race, 1, 64, x, i, j)
        assert (found.kind, found.element) == ("WAW", (i, j))
        assert f"argument x, element ({i}, {j})" in found.message

    @cuda.jit
    def beside(x):
        x[0, 1 + 0 * x.size] = 1
        flat = x.shape[1]
        x[0, flat] = cuda.threadIdx.x

    row = base[:, :7]
    (found,) = smemkern.check(beside, 1, 64, row)
    assert found.element is None and f"argument x, byte {7 * 4}" in found.message


def test_numba_arguments(cuda, random):
    """Records, tuples, complex numbers, bools, dates, and numbers that wrap."""

    @cuda.jit
    def kernel(records, one, pair, z, flag, dates, small, out):
        i = cuda.grid(1)
        if i < records.size:
            records[i].b = records[i].a + one.b + pair[0] + pair[1]
            out[i] = z * (1 if flag else 2) + small
            if dates[1] > dates[0]:
                out[i] += 1

    dtype = np.dtype([("a", "i4"), ("b", "f8")], align=True)
    records, one = np.zeros(5, dtype), np.zeros(1, dtype)[0]
    records["a"], one["b"] = random.integers(0, 100, 5), 7
    out = np.zeros(5, "c16")
    dates = np.datetime64("2020-01-01", "D"), np.datetime64("2024-02-03", "D")
    found = smemkern.check(kernel, 1, 32, records, one, (1, 2.5), 1 + 2j, True, dates, -3, out)
    np.testing.assert_array_equal(records["b"], records["a"] + 10.5)
    np.testing.assert_array_equal(out, np.full(5, -1 + 2j))
    assert not found


def test_numba_race_and_fix(cuda, random):
    def reverse(synchronised):
        @cuda.jit
        def kernel(x):
            tile = cuda.shared.array(64, np.float32)
            i = cuda.threadIdx.x
            tile[i] = x[i]
            if synchronised:
                cuda.syncthreads()
            x[i] = tile[63 - i]

        return kernel

    x = random.standard_normal(64).astype("f4")
    racing = reverse(False)
    (race,) = smemkern.check(racing, 1, 64, x.copy())
    assert race.kind == "RAW"
    assert race.line == line_of(racing.py_func, "x[i] = tile")
    assert race.other_line == line_of(racing.py_func, "tile[i] = x[i]")
    result = x.copy()
    assert not smemkern.check(reverse(True), 1, 64, result)
    np.testing.assert_array_equal(result, x[::-1])


def test_numba_calls_device_functions(cuda, random):
    @cuda.jit(device=True)
    def square(value):
        return value * value

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = square(x[i]) + 1

    x, out = random.standard_normal(64), np.zeros(64)
    smemkern.trace(kernel, 2, 32, x, out)
    np.testing.assert_allclose(out, x * x + 1)


def test_numba_shared_memory_of_the_launch(cuda, random):
    @cuda.jit
    def reverse(x):
        tile = cuda.shared.array(0, np.float64)
        tile[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = tile[cuda.blockDim.x - 1 - cuda.threadIdx.x]

    x = random.standard_normal(96)
    one, other = x.copy(), x.copy()
    t = smemkern.trace(reverse[1, 96, 0, 96 * 8], one)
    smemkern.trace(reverse, 1, 96, other, shared_bytes=96 * 8)
    np.testing.assert_array_equal(one, x[::-1])
    np.testing.assert_array_equal(other, x[::-1])
    assert t.launch.shared_bytes == 96 * 8


def test_numba_links(cuda, nvrtc, random, tmp_path):
    """Functions in CUDA C++, half, which Numba links, and the barrier of a grid."""
    file = tmp_path / "add.cu"
    file.write_text(
        'extern "C" __device__ int add(double *r, double a, double b) { *r = a + b; return 0; }',
        encoding="utf-8",
    )
    add = cuda.declare_device("add", "float64(float64, float64)")

    @cuda.jit(link=[str(file)])
    def sums(x, out):
        out[cuda.grid(1)] = add(x[cuda.grid(1)], 3.0)

    x, out = random.standard_normal(64), np.zeros(64)
    smemkern.trace(sums, 2, 32, x, out)
    np.testing.assert_array_equal(out, x + 3)

    @cuda.jit
    def squares(x, half, out):
        out[cuda.grid(1)] = x[cuda.grid(1)] * x[cuda.grid(1)] + half

    x, out = random.standard_normal(64).astype("f2"), np.zeros(64, "f2")
    smemkern.trace(squares, 2, 32, x, np.float16(0.5), out)
    np.testing.assert_allclose(out, x * x + np.float16(0.5), rtol=2e-3)

    @cuda.jit
    def exchange(x):
        grid, i = cuda.cg.this_grid(), cuda.grid(1)
        value = x[x.size - 1 - i]
        grid.sync()
        x[i] = value

    x = random.integers(0, 1000, 128)
    want = x[::-1].copy()
    assert not smemkern.check(exchange, 4, 32, x)
    np.testing.assert_array_equal(x, want)


def test_numba_refusals(cuda, numba_axpy):
    @cuda.jit(device=True)
    def function(x):
        return x

    x = np.zeros(32)
    with pytest.raises(TypeError, match="axpy takes 4 arguments but 2 were given"):
        smemkern.check(numba_axpy, 1, 32, x, x)
    with pytest.raises(TypeError, match="list"):
        smemkern.check(numba_axpy, 1, 32, 1.0, x, [1, 2], x)
    with pytest.raises(TypeError, match="argument y is of type object"):
        smemkern.check(numba_axpy, 1, 32, 1.0, x, object(), x)
    device_array = type("Array", (), {"__cuda_array_interface__": {}})()
    with pytest.raises(ValueError, match="memory of a GPU"):
        smemkern.check(numba_axpy, 1, 32, 1.0, device_array, x, x)
    with pytest.raises(TypeError, match="function is a device function"):
        smemkern.check(function, 1, 32, x)
    with pytest.raises(TypeError, match=r"axpy is called with \(grid, block"):
        smemkern.check(numba_axpy)
    with pytest.raises(TypeError, match=r"Numba compiles .*use smemkern.check\(kernel, grid"):
        smemkern.Kernel(numba_axpy)


FACTOR = 2


def test_numba_keeps_what_it_compiled(cuda, monkeypatch):
    """As on a GPU: a global variable has the value of the first call, for each type anew."""

    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = FACTOR

    x = np.zeros(32)
    smemkern.trace(kernel, 1, 32, x)
    monkeypatch.setitem(globals(), "FACTOR", 3)
    y = np.zeros(32, "f4")
    smemkern.trace(kernel, 1, 32, x)
    smemkern.trace(kernel, 1, 32, y)
    assert (x == 2).all() and (y == 3).all()


def test_numba_hints_and_extensions(cuda):
    """cuda.In is copied in only, also where an extension of the kernel adds it."""

    class CopyIn:
        def prepare_args(self, kind, value, **options):
            return kind, cuda.In(value)

    def set_three(x):
        x[0] = 3

    plain, extended = cuda.jit(set_three), cuda.jit(extensions=[CopyIn()])(set_three)
    for kernel, hint, want in (
        (plain, cuda.In, 0),
        (plain, cuda.Out, 3),
        (plain, cuda.InOut, 3),
        (extended, lambda x: x, 0),
    ):
        x = np.zeros(1, "i8")
        smemkern.trace(kernel, 1, 1, hint(x))
        assert x[0] == want


def test_numba_compiles_for_the_signature(cuda, random):
    """With a signature, as a kernel has on a machine with a GPU."""

    @cuda.jit
    def kernel(x, value):
        x[cuda.grid(1)] = value / 2

    from numba import types

    compiled = type("Overload", (), {"entry_point": None})
    kernel.overloads[types.float64[::1], types.float32] = compiled
    kernel.disable_compile()
    x = np.zeros(32, "f8")
    smemkern.trace(kernel, 1, 32, x, 16777217)  # an int, where the signature has a float
    assert (x == 8388608).all()
    with pytest.raises(TypeError, match="kernel was compiled for"):
        smemkern.trace(kernel, 1, 32, x.astype("c8"), 7)
    kernel.overloads.clear()


# ---- CUDA C++: text, CuPy, cuda.core, PyTorch's extensions ----

SOURCE = """\
template <typename T> __global__ void scale(T *x, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}
extern "C" __global__ void reverse(float *x) {
    __shared__ float tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    x[threadIdx.x] = tile[63 - threadIdx.x];
}
"""


def is_the_race(found, file="kernel.cu"):
    return [(h.kind, h.line, h.other_line, h.file) for h in found] == [("RAW", 8, 7, file)]


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


EXTENSION = """\
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>
#define CHECK(x) TORCH_CHECK(x.is_cuda(), "no { here")
namespace {
// A brace in a comment: {
template <typename scalar_t> __device__ scalar_t twice(scalar_t x) { return x + x; }
constexpr int FLIP = 32;
struct Shape { int n; };
}  // namespace
template <typename scalar_t> __global__ void kernel(const scalar_t *x, scalar_t *out, Shape shape) {
    __shared__ scalar_t tile[64];
    int i = threadIdx.x;
    tile[i] = x[i];
    if (i < shape.n) out[i] = twice(tile[i ^ FLIP]);
}
torch::Tensor run(torch::Tensor x);
static std::vector<int> host_only(const char *text = "}") { return {1, 2}; }
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", [&] {
        kernel<scalar_t><<<1, 64>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), Shape{64});
    });
    return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


@pytest.mark.parametrize("name, dtype", [("float", "f4"), ("double", "f8"), ("c10::Half", "f2")])
def test_extension_of_pytorch(nvrtc, random, name, dtype):
    x = random.standard_normal(64).astype(dtype)
    shape, kernel = np.array([50], "i4").tobytes(), f"kernel<{name}>"
    found = smemkern.check([EXTENSION], 1, 64, x, np.zeros_like(x), shape, name=kernel)
    assert [(h.kind, h.line, h.other_line) for h in found] == [("RAW", 15, 14)]
    fixed = EXTENSION.replace("tile[i] = x[i];", "tile[i] = x[i]; __syncthreads();")
    out = np.zeros_like(x)
    assert not smemkern.check([fixed], 1, 64, x, out, shape, name=kernel)
    inside = np.arange(64) < 50
    np.testing.assert_array_equal(out, np.where(inside, 2 * x[np.arange(64) ^ 32], 0))


ACCESSORS = """#include <torch/extension.h>
template <typename T>
__global__ void sums(const torch::PackedTensorAccessor32<T, 3, torch::RestrictPtrTraits> x,
                     torch::PackedTensorAccessor64<T, 2> out) {
    const int n = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c <= LAST) out[n][c] = x[n][0][c] + x[n][x.size(1) - 1][c];
}
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty({x.size(0), x.size(2)}, x.options());
    sums<float><<<1, 32>>>(x.packed_accessor32<float, 3, torch::RestrictPtrTraits>(),
                           out.packed_accessor64<float, 2>());
    return out;
}
"""


def test_accessors_of_pytorch(nvrtc, random):
    """A kernel that takes accessors gets arrays, with any strides but negative ones."""
    n, many = int(random.integers(1, 5)), int(random.integers(1, 60))
    whole = random.standard_normal((many, 2 * n, 7)).astype("f4")
    x = whole.T[::2, ::2]  # 4 of 7, n of 2 n, in another order of axes
    out = np.zeros((2, 4, 64), "f4")[1, :, :many]
    text = [ACCESSORS.replace("LAST", "out.size(1) - 1")]
    found = smemkern.check(text, (2, 4), 32, x, out, name="sums<float>")
    assert not found, found
    np.testing.assert_array_equal(out, x[:, 0] + x[:, -1])
    past = [ACCESSORS.replace("LAST", "out.size(1)")]
    small, to = np.ones((1, 2, 32), "f4"), np.zeros((1, 32), "f4")
    [hazard] = smemkern.check(past, 2, 32, small, to, name="sums<float>")
    assert hazard.kind == "out-of-bounds" and hazard.line == 6
    with pytest.raises(TypeError, match="argument 0 has 2 dimensions, .* an accessor of 3"):
        smemkern.check(text, 1, 32, to, to, name="sums<float>")
    with pytest.raises(TypeError, match="argument 1 is an array of float64, and not .*float, 2"):
        smemkern.check(text, 1, 32, small, to.astype("f8"), name="sums<float>")
    with pytest.raises(ValueError, match="argument 0 has a negative stride"):
        smemkern.check(text, 1, 32, small[:, ::-1], to, name="sums<float>")


def test_accessors_of_tensors(nvrtc, random):
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 2, 40)
    out = torch.zeros(3, 40)
    text = [ACCESSORS.replace("LAST", "out.size(1) - 1")]
    assert not smemkern.check(text, (2, 3), 32, x, out, name="sums<float>")
    torch.testing.assert_close(out, x[:, 0] + x[:, 1])


def test_host_code_is_left_out_of_any_text(random):
    """Of random pieces, whole and cut: each line stays where it is, and device code stays."""
    from smemkern._device_code import device_code

    pieces = EXTENSION.splitlines() + [
        "}",
        "{",
        '"',
        "/*",
        "*/",
        'R"x(',
        ')x"',
        "#define X \\",
        "'",
    ]
    for _ in range(300):
        lines = [pieces[i] for i in random.integers(0, len(pieces), random.integers(1, 40))]
        text = "\n".join(lines)[: random.integers(1, 2000)]
        found = device_code(text).partition("#line 1\n")[2]
        assert found.count("\n") == text.count("\n") and len(found) == len(text)
        assert all(new in (old, " ") for old, new in zip(text, found, strict=True))
    kept = device_code(EXTENSION).partition("#line 1\n")[2].splitlines()
    for number, line in enumerate(EXTENSION.splitlines()):
        assert kept[number].rstrip() == (line if 3 <= number <= 15 else ""), line
    unclosed = device_code("/*" * 200_000) + device_code('R"(' * 100_000)
    assert "host" not in unclosed


# ---- PyTorch's tensors ----


def test_tensors(nvrtc, random):
    torch = pytest.importorskip("torch")
    values = torch.tensor(random.standard_normal(64), dtype=torch.float32)
    subclass = type("Mine", (torch.Tensor,), {})
    clones = values.clone(), values.clone().requires_grad_(), values.clone().as_subclass(subclass)
    for x in clones:
        smemkern.check(SOURCE, 1, 64, x, 2.0, 64, name="scale<float>")
        assert torch.equal(x.detach(), 2 * values)
    bits = """#include <cuda_bf16.h>
    __global__ void twice(__nv_bfloat16 *x) { x[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }"""
    brain = values.to(torch.bfloat16)
    want = brain + brain
    assert not smemkern.check(bits, 1, 64, brain)
    assert torch.equal(brain, want)
    sparse = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match="strided tensors"):
        smemkern.check(SOURCE, 1, 64, sparse, name="reverse")
    conjugate = torch.zeros(4, dtype=torch.complex64).conj()
    with pytest.raises(ValueError, match="resolve_conj"):
        smemkern.check(SOURCE, 1, 64, conjugate, name="reverse")
    meta = torch.zeros(4, device="meta")
    with pytest.raises(ValueError, match=r"device meta, .* tensor.cpu\(\)"):
        smemkern.check(SOURCE, 1, 64, meta, name="reverse")


def test_tensors_of_triton(tri, random):
    torch = pytest.importorskip("torch")
    from triton.tools.tensor_descriptor import TensorDescriptor

    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
        x, y = (torch.tensor(random.integers(-9, 9, 500)).to(dtype) for _ in range(2))
        out = torch.zeros_like(x)
        smemkern.check(tri.axpy, 4, None, 1, x, y, out, 500, SIZE=128)
        assert torch.equal(out, x + y)
    x = torch.randn(32, 64).to(torch.float16)
    out = torch.zeros_like(x)
    maps = [TensorDescriptor.from_tensor(tensor, [8, 32]) for tensor in (x, out)]
    assert not smemkern.check(tri.doubled_tiles, (4, 2), None, *maps, 8, 32)
    assert torch.equal(out, x + x)


# ---- the page ----

BLOCKS = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.S | re.M)
EXAMPLES = {
    title: code for title, text in BLOCKS for code in re.findall(r"```python\n(.*?)```", text, re.S)
}
NEEDS = {
    "Triton": "triton",
    "Numba": "numba.cuda",
    "CuPy": "cupy",
    "cuda.core": "cuda.core",
    "PyTorch": "torch",
    "CuTe layouts": "smemkern.banks",
    "PyTorch extensions": "smemkern",
    "Text": "smemkern",
}


@pytest.mark.parametrize("title", NEEDS)
def test_example_of_the_page(title, nvrtc, tmp_path, capsys):
    """Each prints what its comments say."""
    pytest.importorskip(NEEDS[title])
    file = tmp_path / "example.py"
    file.write_text(EXAMPLES[title], encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(file))
    said = re.findall(r"^print\(.+\)  # (.*)$", EXAMPLES[title], re.M)
    assert said, "an example shows what it prints"
    assert capsys.readouterr().out.splitlines()[-len(said) :] == said


def test_every_section_has_an_example():
    assert set(NEEDS) == set(EXAMPLES)
