"""The operators that PyTorch knows: values, fake tensors, gradients, compiled graphs."""

from __future__ import annotations

import numpy as np
import pytest

from checks import HAS_GPU

torch = pytest.importorskip("torch")
torch_ops = pytest.importorskip("smemkern.torch_ops")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no GPU"))]
on_each = pytest.mark.parametrize("device", DEVICES)


def matrices(device: str, *shapes: tuple[int, ...], dtype=torch.float32) -> list:
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(*s, generator=generator).to(device, dtype).requires_grad_() for s in shapes]


@on_each
@pytest.mark.parametrize(
    "shapes", [((7, 5), (5, 9)), ((3, 7, 5), (5, 9)), ((2, 1, 7, 5), (3, 5, 9)), ((1, 1), (1, 1))]
)
def test_gemm_and_its_gradients(device, shapes) -> None:
    a, b = matrices(device, *shapes, dtype=torch.float64)
    c = torch.ops.smemkern.gemm(a, b, alpha=-1.5)
    weight = torch.randn_like(c)
    ours = torch.autograd.grad((c * weight).sum(), (a, b))
    exact = -1.5 * (a @ b)
    theirs = torch.autograd.grad((exact * weight).sum(), (a, b))
    torch.testing.assert_close(c, exact, rtol=1e-12, atol=1e-12)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-12, atol=1e-12)


@on_each
def test_transpose_and_its_gradient(device) -> None:
    (a,) = matrices(device, (3, 7, 5))
    y = torch.ops.smemkern.transpose(a, variant="padded")
    assert y.is_contiguous() and torch.equal(y, a.mT)
    (gradient,) = torch.autograd.grad((y * y).sum(), a)
    assert torch.equal(gradient, 2 * a)


@on_each
def test_pytorchs_own_checks(device) -> None:
    a, b = matrices(device, (4, 6), (6, 3))
    torch.library.opcheck(torch.ops.smemkern.gemm.default, (a, b, "tiled"))
    torch.library.opcheck(torch.ops.smemkern.transpose.default, (a, "tiled"))


def test_fake_tensors_have_shapes_and_errors() -> None:
    fake = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode
    with fake():
        a, b = torch.empty(4, 1, 7, 5), torch.empty(3, 5, 9)
        assert torch.ops.smemkern.gemm(a, b).shape == (4, 3, 7, 9)
        assert torch.ops.smemkern.transpose(a).shape == (4, 1, 5, 7)
        with pytest.raises(RuntimeError, match="5 columns of a and 3 rows"):
            torch.ops.smemkern.gemm(a, b.mT.mT[:, :3])
        with pytest.raises(RuntimeError, match="two dimensions"):
            torch.ops.smemkern.gemm(a, torch.empty(5))


@on_each
def test_compiled(device) -> None:
    a, b = matrices(device, (33, 20), (20, 17))

    @torch.compile(fullgraph=True, backend="aot_eager")
    def work(x, y):
        return torch.relu(torch.ops.smemkern.gemm(x, y)) + 1

    torch.testing.assert_close(work(a, b), torch.relu(a @ b) + 1, rtol=1e-5, atol=1e-5)


@on_each
def test_wrong_ones_are_refused(device) -> None:
    a, b = matrices(device, (4, 6), (6, 3))
    with pytest.raises(ValueError, match="no variant 'fastest'"):
        torch.ops.smemkern.gemm(a, b, variant="fastest")
    with pytest.raises(TypeError, match="int32"):
        torch.ops.smemkern.gemm(a.detach().int(), b.detach().int())
    assert np.isfinite(torch.ops.smemkern.gemm(a, b).detach().cpu().numpy()).all()
