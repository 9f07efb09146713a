"""check and trace with Triton's kernels."""

import numpy as np
import pytest
from kernel_texts import line_of

import smemkern


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

    from smemkern._adapters.triton import HostArray

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
