"""Kernels called with the arrays of other libraries: in a GPU's memory, and in the host's."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, assert_gemm, environment

needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
DOUBLE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [x];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    ld.global.f32 %f1, [%rd1];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


@pytest.fixture(scope="module")
def twice():
    return smemkern.Kernel(DOUBLE, "twice")


class OnHost:
    """An array of another library in host memory."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_host_memory_by_dlpack(twice, device):
    x = np.arange(32, dtype="f4")
    twice(1, 32, OnHost(x), device=device)
    assert np.array_equal(x, 2 * np.arange(32))


def test_host_memory_of_torch(twice, device):
    torch = pytest.importorskip("torch")
    x = torch.arange(32, dtype=torch.float32)
    twice(1, 32, x, device=device)
    assert np.array_equal(x.numpy(), 2 * np.arange(32))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gemm_of_torch_on_the_host(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    a, b = torch.randn(20, 30).to(kind), torch.randn(40, 30).to(kind).T
    result = smemkern.gemm(a, b, device="emu")
    assert type(result) is np.ndarray and result.dtype.name == dtype
    close = torch.tensor(result.astype("f4")) - a.float() @ b.float()
    assert close.abs().max() < (1e-4 if dtype == "float32" else 0.2)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_promises_of_torch(dtype):
    """A tensor whose elements are not yet what is in memory is refused, not misread."""
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 4, dtype=torch.complex64).conj()
    x = x.imag if dtype == "float32" else x
    assert x.is_neg() or x.is_conj()
    with pytest.raises((BufferError, RuntimeError), match="negative|conjugate"):
        smemkern.transpose(x, device="emu")


@needs_gpu
def test_cupy(twice):
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(64, dtype="f4")
    address = x.data.ptr
    twice(1, 32, x[32:])
    assert x.data.ptr == address
    assert np.array_equal(x.get(), np.r_[np.arange(32), 2 * np.arange(32, 64)])
    with pytest.raises(ValueError, match="not contiguous"):
        twice(1, 32, x[::2])
    with pytest.raises(ValueError, match=r"x\.get\(\)"):
        twice(1, 32, x, device="emu")


@needs_gpu
def test_cupy_stream(twice):
    """What was queued on the array's stream before is done first, whichever stream is ours."""
    cupy = pytest.importorskip("cupy")
    for given in (None, "own"):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            busy = cupy.ones((2048, 2048), "f4")
            for _ in range(30):
                busy = busy @ busy * np.float32(1 / 2048)
            x = busy[0, :32].copy()
            twice(1, 32, x, stream=stream.ptr if given else None)
        stream.synchronize()
        assert np.array_equal(x.get(), np.full(32, 2, "f4"))


@needs_gpu
def test_torch(twice):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch sees no GPU")
    x = torch.arange(32, dtype=torch.float32, device="cuda")
    twice(1, 32, x)
    assert np.array_equal(x.cpu().numpy(), 2 * np.arange(32))
    with pytest.raises(ValueError, match=r"x\.cpu\(\)\.numpy\(\)"):
        twice(1, 32, x, device="emu")
    with pytest.raises(ValueError, match="not contiguous"):
        twice(1, 16, torch.zeros(8, 8, device="cuda").T[::2])


@needs_gpu
def test_torch_stream(twice):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch sees no GPU")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        busy = torch.ones(2048, 2048, device="cuda")
        for _ in range(30):
            busy = busy @ busy / 2048
        x = busy[0, :32].clone()
        twice(1, 32, x)
    stream.synchronize()
    assert np.array_equal(x.cpu().numpy(), np.full(32, 2, "f4"))


@needs_gpu
def test_numba(twice):
    cuda = pytest.importorskip("numba.cuda")
    if not cuda.is_available():
        pytest.skip("Numba finds no GPU")
    x = cuda.to_device(np.arange(32, dtype="f4"))
    twice(1, 32, x)
    assert np.array_equal(x.copy_to_host(), 2 * np.arange(32))
    a, b = (np.random.default_rng(1).standard_normal(s, dtype="f4") for s in ((70, 50), (50, 90)))
    c = smemkern.gemm(cuda.to_device(a), cuda.to_device(b))
    assert type(c) is type(x) and np.allclose(c.copy_to_host(), a @ b, atol=1e-3)
    assert np.array_equal(smemkern.transpose(cuda.to_device(a)).copy_to_host(), a.T)


JAX = """
import jax, numpy, smemkern
from jax import numpy as jnp

if jax.default_backend() != "gpu":
    print("no GPU")
    raise SystemExit
keys = jax.random.split(jax.random.key(3), 3)
a, b = jax.random.normal(keys[0], (300, 200)), jax.random.normal(keys[1], (200, 400))
exact = numpy.asarray(a, "f8") @ numpy.asarray(b, "f8")
for variant in ("auto", "tiled"):
    for _ in range(20):  # memory goes from array to array meanwhile
        c = smemkern.gemm(a * 2, b, variant=variant)
        assert isinstance(c, jax.Array) and c.devices() == a.devices()
        assert abs(numpy.asarray(c / 2) - exact).max() < 1e-2
assert jnp.array_equal(smemkern.transpose(a), a.T)
h = smemkern.gemm(a.astype("bfloat16"), b.astype("bfloat16"))
assert h.dtype == "bfloat16" and abs(numpy.asarray(h, "f4") - exact).max() < 2
try:
    smemkern.transpose(a, out=jnp.zeros((200, 300)))
except (ValueError, TypeError, BufferError) as error:
    print("refused:", error)
"""


@needs_gpu
def test_jax():
    pytest.importorskip("jax")
    done = subprocess.run(  # it keeps three quarters of a GPU's memory, but for this
        [sys.executable, "-c", JAX],
        env=environment(XLA_PYTHON_CLIENT_PREALLOCATE="false"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    if "no GPU" in done.stdout:
        pytest.skip("JAX finds no GPU")
    assert "refused" in done.stdout


# ---- gemm and transpose


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("this PyTorch sees no GPU")
    return module


GEMMS = [
    pytest.param(row, dtype, id=f"{row.name}-{dtype}")
    for row in smemkern.variants("gemm")
    for dtype in row.dtypes
]


@needs_gpu
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("shape", [(96, 136, 72), (65, 131, 67)], ids=["whole", "odd"])
@pytest.mark.parametrize(("row", "dtype"), GEMMS)
def test_gemm_of_torch(torch, row, dtype, shape, turned):
    m, n, k = shape
    kind = getattr(torch, dtype)
    a = torch.randn(*((k, m) if turned[0] else (m, k)), device="cuda").to(kind)
    b = torch.randn(*((n, k) if turned[1] else (k, n)), device="cuda").to(kind)
    a, b = a.T if turned[0] else a, b.T if turned[1] else b
    out = torch.full((m, n), float("nan"), dtype=kind, device="cuda")
    assert smemkern.gemm(a, b, variant=row.name, out=out) is out
    host = [smemkern.gemm(x.cpu(), y.cpu(), variant=row.name, device="cuda") for x, y in [(a, b)]]
    made = smemkern.gemm(a, b, variant=row.name)
    assert type(made) is torch.Tensor and made.dtype == kind and made.device == a.device
    assert torch.equal(out, made)
    own = out.cpu()
    if row.name != "gemv":  # whose bits depend on the arrays' alignment
        assert own.view(torch.uint8).numpy().tobytes() == host[0].tobytes()
    elif dtype != "bfloat16":
        for result in (own.numpy(), np.asarray(host[0])):
            assert_gemm(result, a.cpu().numpy(), b.cpu().numpy(), row=row)


@needs_gpu
@pytest.mark.parametrize("apart", [16, 24, 7])
@pytest.mark.parametrize("shape", [(1, 54, 21), (28, 39, 70), (150, 75, 64)], ids=str)
@pytest.mark.parametrize(("row", "dtype"), GEMMS)
def test_what_is_beside_out_stays(torch, row, dtype, shape, apart):
    """Rows of C begin on 16-byte boundaries and do not end there: TMA stores past their end."""
    m, n, k = shape
    kind = getattr(torch, dtype)
    a, b = torch.randn(m, k, device="cuda").to(kind), torch.randn(k, n, device="cuda").to(kind)
    wide = torch.full((m + 1, -(-n // 16) * 16 + apart), 7, device="cuda").to(kind)
    around = wide.clone()
    around[:m, :n] = smemkern.gemm(a, b, variant=row.name)
    smemkern.gemm(a, b, variant=row.name, out=wide[:m, :n])
    assert torch.equal(wide, around)


@needs_gpu
def test_transpose_of_torch(torch):
    a = torch.randn(3, 70, 45, device="cuda")
    assert torch.equal(smemkern.transpose(a), a.transpose(1, 2))
    wide = torch.zeros(3, 45, 80, device="cuda")
    smemkern.transpose(a, out=wide[:, :, :70])
    assert torch.equal(wide[:, :, :70], a.transpose(1, 2)) and not wide[:, :, 70:].any()


TRANSPOSED = ["uint8", "int16", "float32", "float64", "complex128"]
SHAPES = [
    (131, 257),
    (64, 300),
    (300, 64),
    (5000, 3),
    (3, 5000),
    (1, 999),
    (40, 16, 16),
    (9, 70, 45),
]


@needs_gpu
@pytest.mark.parametrize("dtype", TRANSPOSED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transpose_of_any_view_of_torch(torch, dtype, shape):
    """Axes in any order, rows apart and from the end, on both sides."""
    a = torch.randint(0, 100, shape, device="cuda").to(getattr(torch, dtype))
    views = [a, a[..., 1:], a[..., ::2], a.transpose(-1, -2), a[..., 1:].transpose(-1, -2)]
    views += [a.permute(axes) for axes in itertools.permutations(range(a.ndim))]
    for view in views:
        want = view.transpose(-1, -2)
        assert torch.equal(smemkern.transpose(view), want)
        columns = torch.zeros_like(view, memory_format=torch.contiguous_format).transpose(-1, -2)
        assert smemkern.transpose(view, out=columns) is columns
        assert torch.equal(columns, want)


@needs_gpu
@pytest.mark.parametrize("dtype", TRANSPOSED)
@pytest.mark.parametrize("n", [1, 64, 65, 200])
def test_square_of_torch_in_place(torch, dtype, n):
    for lead in ((), (3,), (2, 3)):
        a = torch.randint(0, 100, (*lead, n, n), device="cuda").to(getattr(torch, dtype))
        want = a.transpose(-1, -2).clone()
        assert smemkern.transpose(a, out=a) is a
        assert torch.equal(a, want)
        smemkern.transpose(a.transpose(-1, -2), out=a.transpose(-1, -2))
        assert torch.equal(a, want.transpose(-1, -2))
    smemkern.transpose(a, variant="vectorized", out=a)  # through a copy
    assert torch.equal(a, want)


def spread(torch, *shape, kind=None):
    """Views of one shape: what the kernels of most variants cannot read where it is."""
    made = torch.randn(*shape, device="cuda").to(kind or torch.float32)
    wide = torch.zeros(*shape[:-1], 2 * shape[-1], device="cuda", dtype=made.dtype)
    wide[..., ::2] = made
    rows = torch.zeros(*shape[:-2], *shape[:-3:-1], device="cuda", dtype=made.dtype)
    rows.copy_(made.mT)
    return [made, wide[..., ::2], rows.mT, made[..., :1, :].expand_as(made)]


@needs_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_views_of_torch(torch, dtype):
    """Each is read, and written, as though it were contiguous: bit by bit, but for variants that
    have other kernels for it."""
    kind = getattr(torch, dtype)
    rows = {row.name: row for row in smemkern.variants("gemm") if dtype in row.dtypes}
    rounding = {row.name for row in rows.values() if row.product_bits == 10}  # two factors, each
    for variant in ["auto", *rows]:
        for batch in ((), (3,)):
            sides = (spread(torch, *batch, m, n, kind=kind) for m, n in ((33, 29), (29, 70)))
            for a, b in itertools.product(*sides):
                want = smemkern.gemm(a.contiguous(), b.contiguous(), variant=variant)
                exact, terms = a.double() @ b.double(), a.double().abs() @ b.double().abs()
                bound = terms * (1e-5 + 2.0**-10 * (variant in rounding))
                bound += exact.abs() * torch.finfo(kind).eps / 2 + 1e-6
                assert ((want.double() - exact).abs() <= bound).all()
                got = smemkern.gemm(a, b, variant=variant)
                assert ((got.double() - exact).abs() <= bound).all()
                if variant == "auto":
                    continue
                assert torch.equal(got, want) or rows[variant].strides != "rows"
                for out in spread(torch, *batch, 33, 70, kind=kind)[:3]:
                    assert smemkern.gemm(a, b, variant=variant, out=out) is out
                    assert torch.equal(out, got)


@needs_gpu
def test_views_of_cupy():
    cupy = pytest.importorskip("cupy")
    whole = cupy.random.standard_normal((3, 80, 90)).astype("f4")
    views = [whole[:, ::-1, ::-1], whole[:, 10:70:2, ::-3], whole[::-1, :, 5], whole[0].T[::-1]]
    for a in views:
        b = cupy.random.standard_normal((a.shape[-1], 40)).astype("f4")[::-1, ::-1]
        for variant in ("tiled", "fp16x3", "auto"):
            c = smemkern.gemm(a, b, variant=variant)
            assert cupy.allclose(c, cupy.ascontiguousarray(a) @ b, atol=1e-4)
            out = cupy.zeros((*c.shape[:-1], 160), "f4")[..., ::-4]
            smemkern.gemm(a, b, variant=variant, out=out, alpha=0.5)
            smemkern.gemm(a, b, variant=variant, out=out, alpha=0.5, beta=1)
            assert cupy.allclose(out, c, atol=1e-4) and not out.base[..., ::4].any()
        assert (smemkern.transpose(a, variant="padded") == a.swapaxes(-1, -2)).all()


@needs_gpu
def test_out_over_the_inputs(torch):
    """As NumPy: as though the inputs were read before anything is written."""
    for variant in ("tiled", "vectorized", "tf32x3"):
        a, b = torch.randn(2, 64, 64, device="cuda", dtype=torch.float32)
        want = smemkern.gemm(a, b, variant=variant)
        for out in (a, b, a.mT):
            x, y = a.clone(), b.clone()
            over = x if out is a else y if out is b else x.mT
            smemkern.gemm(x, y, variant=variant, out=over)
            assert torch.equal(over, want)
        both = a.clone()
        smemkern.gemm(both, both, variant=variant, out=both)
        assert torch.equal(both, smemkern.gemm(a, a, variant=variant))


@needs_gpu
def test_nothing_waits(torch, twice):
    """A call comes back while the stream is still busy, and later work is ordered after it."""
    a = torch.randn(64, 64, device="cuda")
    smemkern.gemm(a.T, a[::2].T, variant="tiled")  # loads the kernels
    twice(1, 32, a[0].clone())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        c = smemkern.gemm(a.T, a[::2].T, variant="tiled")
        x = a[0].clone()
        twice(1, 32, x)
        assert not stream.query()
        d = c + 1
    stream.synchronize()
    assert torch.allclose(d, a.T @ a[::2].T + 1, atol=1e-3)
    assert torch.equal(x[:32], 2 * a[0, :32])


@needs_gpu
@pytest.mark.parametrize("turned", [False, True])
def test_capture_in_a_graph(torch, turned):
    a, b = torch.randn(200, 128, device="cuda"), torch.randn(128, 72, device="cuda")
    a = a.T.contiguous().T if turned else a
    out = torch.empty(200, 72, device="cuda")
    for variant in ("vectorized", "tf32x3", "fp16x3"):
        smemkern.gemm(a, b, variant=variant, out=out)  # loads the kernel
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            smemkern.gemm(a, b, variant=variant, out=out)
        for _ in range(3):
            a.normal_()
            out.fill_(float("nan"))
            graph.replay()
            assert torch.allclose(out, a @ b, atol=1e-3)


@needs_gpu
def test_gemm_of_cupy():
    cupy = pytest.importorskip("cupy")
    a = cupy.random.standard_normal((3, 50, 70)).astype("f4")
    b = cupy.random.standard_normal((70, 33)).astype("f4")
    c = smemkern.gemm(a, b, variant="pipelined")
    assert type(c) is cupy.ndarray
    assert cupy.allclose(c, a @ b, atol=1e-4)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert cupy.allclose(smemkern.gemm(a[0], b, variant="tiled"), a[0] @ b, atol=1e-4)
    c = smemkern.gemm(a[0], b, variant="tiled", stream=stream)
    stream.synchronize()
    assert cupy.allclose(c, a[0] @ b, atol=1e-4)
