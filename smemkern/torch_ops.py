"""smemkern's products and transposes as PyTorch operators. Importing this module registers them.

`torch.ops.smemkern.gemm` and `.transpose` compute the same as `smemkern.gemm` and
`smemkern.transpose` on tensors. Also, torch.compile keeps them in its graphs, fake tensors get
their shapes, and autograd their derivatives. Tensors on a GPU are used in place, on the current
stream. Tensors on the CPU are copied to device "cuda" and back, or run on the emulator without one.

>>> import torch, smemkern.torch_ops  # doctest: +SKIP
>>> c = torch.ops.smemkern.gemm(a, b, variant="swizzle")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import _core

_ON = ("cpu", "cuda")


def _tensor(result: Any) -> Tensor:
    return torch.from_numpy(result) if isinstance(result, np.ndarray) else result


@torch.library.custom_op("smemkern::gemm", mutates_args=(), device_types=_ON)
def gemm(
    a: Tensor, b: Tensor, variant: str = "auto", accuracy: str = "float32", alpha: float = 1.0
) -> Tensor:
    """alpha * (a @ b), of at least two dimensions each.

    Parameters
    ----------
    a, b : Tensor, float32, float64, float16 or bfloat16
        Shapes (..., M, K) and (..., K, N); of the same dtype, on the same device.
    variant, accuracy, alpha
        See smemkern.gemm.

    Returns
    -------
    Tensor
        (..., M, N), contiguous.

    Raises
    ------
    TypeError, ValueError, smemkern.Error
        See smemkern.gemm.
    """
    options: dict[str, Any] = {"accuracy": accuracy} if variant == "auto" else {}
    return _tensor(_core.gemm(a.detach(), b.detach(), variant=variant, alpha=alpha, **options))


@gemm.register_fake
def _(
    a: Tensor, b: Tensor, variant: str = "auto", accuracy: str = "float32", alpha: float = 1.0
) -> Tensor:
    torch._check(a.dim() >= 2 and b.dim() >= 2, lambda: "gemm: a and b need two dimensions")
    torch._check(a.dtype == b.dtype, lambda: f"gemm: {a.dtype} and {b.dtype} differ")
    torch._check(
        a.shape[-1] == b.shape[-2],
        lambda: f"gemm: {a.shape[-1]} columns of a and {b.shape[-2]} rows of b",
    )
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    a, b, ctx.variant, ctx.accuracy, ctx.alpha = inputs
    ctx.save_for_backward(a, b)


def _sum_to(gradient: Tensor, shape: torch.Size) -> Tensor:
    """Sums the gradient over batch dimensions that were broadcast."""
    return gradient.sum_to_size(shape)


def _gemm_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    a, b = ctx.saved_tensors
    like = (ctx.variant, ctx.accuracy, ctx.alpha)
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = _sum_to(torch.ops.smemkern.gemm(gradient, b.mT, *like), a.shape)
    if ctx.needs_input_grad[1]:
        of_b = _sum_to(torch.ops.smemkern.gemm(a.mT, gradient, *like), b.shape)
    return of_a, of_b, None, None, None


gemm.register_autograd(_gemm_backward, setup_context=_remember)


@torch.library.custom_op("smemkern::transpose", mutates_args=(), device_types=_ON)
def transpose(a: Tensor, variant: str = "auto") -> Tensor:
    """A copy with the last two axes swapped.

    Parameters
    ----------
    a : Tensor of elements of 1, 2, 4, 8 or 16 bytes
        Shape (..., M, N).
    variant : str
        See smemkern.transpose.

    Returns
    -------
    Tensor
        (..., N, M), contiguous.

    Raises
    ------
    TypeError, ValueError, smemkern.Error
        See smemkern.transpose.
    """
    return _tensor(_core.transpose(a.detach(), variant=variant))


@transpose.register_fake
def _(a: Tensor, variant: str = "auto") -> Tensor:
    torch._check(a.dim() >= 2, lambda: "transpose: a needs two dimensions")
    return a.new_empty((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _transpose_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
    return torch.ops.smemkern.transpose(gradient, ctx.variant), None


transpose.register_autograd(
    _transpose_backward,
    setup_context=lambda ctx, inputs, output: setattr(ctx, "variant", inputs[1]),
)
