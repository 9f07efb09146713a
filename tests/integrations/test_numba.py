"""check and trace with Numba's kernels."""

import warnings

import numpy as np
import pytest
from kernel_texts import line_of

import smemkern


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
    assert {(row.file, row.line) for row in t.global_} == {("test_numba.py", at)}
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
