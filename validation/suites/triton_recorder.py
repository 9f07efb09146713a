"""Records the launches of Triton kernels on a machine without a GPU.

record() makes the launch kernel[grid](...) compile, and append to LAUNCHES what a launch needs: the
PTX, the grid, and the arguments as the PTX takes them. stand_in_torch() puts a module `torch` in
place that has the few functions that tests call to make arrays; they hold a shape and no numbers.
"""

from __future__ import annotations

import math
import sys
import types
from typing import Any

TARGET = ("cuda", 90, 32)
LAUNCHES: list[dict[str, Any]] = []


# ---- arrays


class Dtype:
    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize
        self.is_floating_point = name.startswith("float")

    def __repr__(self) -> str:
        return f"torch.{self.name}"


DTYPES = {
    name: Dtype(name, size)
    for name, size in (
        ("float16", 2),
        ("float32", 4),
        ("int8", 1),
        ("int32", 4),
        ("int64", 8),
        ("bool", 1),
    )
}


def plain(value: Any) -> Any:
    """The number in a constexpr."""
    return getattr(value, "value", value)


class Tensor:
    """A contiguous array without contents."""

    def __init__(self, shape: tuple[int, ...], dtype: Dtype, fill: str) -> None:
        self.shape, self.dtype, self.fill = tuple(map(plain, shape)), dtype, fill
        self.device = "cuda"

    def stride(self) -> tuple[int, ...]:
        return tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))

    def data_ptr(self) -> int:
        return 1 << 20

    def reshape(self, *shape: int) -> Tensor:
        return Tensor(shape, self.dtype, self.fill)

    def spec(self) -> dict[str, Any]:
        return {"shape": self.shape, "dtype": self.dtype.name, "fill": self.fill}


def maker(fill: str) -> Any:
    def make(*shape: Any, dtype: Dtype = DTYPES["float32"], device: Any = None) -> Tensor:
        sizes = shape[0] if isinstance(shape[0], (tuple, list)) else shape
        return Tensor(sizes, dtype, fill)

    return make


def like(tensor: Tensor, *_: Any) -> Tensor:
    return Tensor(tensor.shape, tensor.dtype, "zeros")


def stand_in_torch() -> types.ModuleType:
    torch: Any = types.ModuleType("torch")
    torch.__dict__.update(DTYPES)
    torch.Tensor, torch.dtype = Tensor, Dtype
    torch.randn, torch.arange = maker("random"), maker("arange")
    torch.empty = torch.zeros = maker("zeros")
    torch.empty_like = torch.full_like = like
    torch.manual_seed = lambda _: None
    torch.testing = types.SimpleNamespace(assert_close=lambda *_, **__: None)
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: True,
        get_device_capability=lambda *_: divmod(TARGET[1], 10),
        synchronize=lambda: None,
    )
    torch.version = types.SimpleNamespace(hip=None)
    sys.modules["torch"] = torch
    return torch


# ---- launches


class Driver:
    """Stands for the driver of a GPU; launches are recorded before it would be asked for more."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget(*TARGET)

    def get_active_torch_device(self) -> str:
        return "cuda"

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0


def array(tensor: Tensor, arrays: dict[int, Tensor]) -> dict[str, Any]:
    arrays[id(tensor)] = tensor
    return {"array": list(arrays).index(id(tensor))}


def descriptor(value: Any, meta: dict[str, Any], arrays: dict[int, Tensor]) -> list[dict[str, Any]]:
    """A tensor map, and the shape and the strides of its array."""
    names = ("swizzle", "elem_size", "block_size", "fp4_padded", "is_im2col")
    found = {name: plain(meta[name]) for name in names if name in meta}
    made = [{"map": {**found, **array(value.base, arrays)}}]
    made += [{"number": plain(n), "dtype": "int32"} for n in value.shape]
    return made + [{"number": plain(n), "dtype": "int64"} for n in value.strides]


NUMBERS = {"i1": "int8", "i32": "int32", "i64": "int64", "fp32": "float32"}


def arguments(kernel: Any, signature: list[str], values: list[Any]) -> dict[str, Any]:
    """As the PTX takes them: without constants, and with two null pointers for scratch memory."""
    arrays: dict[int, Tensor] = {}
    metas = iter(kernel.metadata.tensordesc_meta or ())
    made: list[dict[str, Any]] = []
    for kind, value in zip(signature, values, strict=True):
        if kind.startswith("tensordesc"):
            made += descriptor(value, next(metas), arrays)
        elif kind.startswith("*"):
            made.append(array(value, arrays))
        elif kind != "constexpr":
            made.append({"number": plain(value), "dtype": NUMBERS[kind]})
    made += [{"number": 0, "dtype": "int64"}] * 2
    return {"arrays": [tensor.spec() for tensor in arrays.values()], "arguments": made}


def record() -> None:
    import triton
    from triton.runtime.jit import JITFunction

    triton.runtime.driver.set_active(Driver())
    import triton._internal_testing as testing  # asks for the active driver

    testing.get_current_target = triton.runtime.driver.active.get_current_target
    run = JITFunction.run

    def recorded(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        *_, binder = self.device_caches[0]
        bound, specialization, _ = binder(*args, **options)
        signature = [str(row[0]) for row in specialization]
        meta = kernel.metadata
        sizes = [*(grid(bound) if callable(grid) else grid), 1, 1]
        LAUNCHES.append(
            {
                "ptx": kernel.asm["ptx"],
                "entry": meta.name,
                "grid": [sizes[0] * meta.num_ctas, sizes[1], sizes[2]],
                "cluster": meta.num_ctas,
                "threads": meta.num_warps * 32,
                "shared_bytes": meta.shared,
                **arguments(kernel, signature, list(bound.values())),
            }
        )
        return kernel

    JITFunction.run = recorded
