"""Calls of Triton kernels: @triton.jit functions, autotuned ones, those with heuristics, Gluon's.

Triton itself reads the arguments, specialises and compiles. For one call its driver is replaced by
a driver that names an sm_90 GPU and, in place of a launch, keeps what would be launched. So the
rules are those of the version that is installed, and no GPU is needed. An autotuned kernel takes
the first of its configurations: there is nothing to measure.
"""

from __future__ import annotations

import copy
import functools
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from . import calls
from .calls import Call

_lock = threading.RLock()  # Triton's driver is one per process
_ARCH = 90
_DEVICE = "smemkern"  # the key under which Triton keeps what it compiles for this driver
_MAX_SHARED = 232448  # bytes of shared memory that a block can have on sm_90


class _Launch(NamedTuple):
    """What Triton would launch."""

    source: Any
    metadata: Any
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]


# ---- arrays ----


class HostArray:
    """A NumPy array with the methods of a tensor that Triton, heuristics and grids call."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __len__(self) -> int:
        return len(self.array)

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def stride(self, dim: int | None = None) -> Any:
        steps = tuple(step // self.array.itemsize for step in self.array.strides)
        return steps if dim is None else steps[dim]

    def numel(self) -> int:
        return int(self.array.size)

    def dim(self) -> int:
        return self.array.ndim

    def element_size(self) -> int:
        return self.array.itemsize

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def zero_(self) -> HostArray:
        self.array[...] = 0
        return self

    def clone(self) -> HostArray:
        return HostArray(self.array.copy())

    def copy_(self, other: HostArray) -> HostArray:
        self.array[...] = other.array
        return self


def _wrapped(given: Any) -> Any:
    """An argument as Triton takes it."""
    if isinstance(given, np.ndarray):
        return HostArray(given)
    if isinstance(given, tuple):
        items = [_wrapped(item) for item in given]
        return type(given)(*items) if hasattr(given, "_fields") else tuple(items)
    if calls.is_tensor(given):
        calls.host_array(given)  # refuses those that are not in host memory
    return given


def _host(given: Any) -> Any:
    """The NumPy array of an argument that Triton takes as a pointer."""
    if isinstance(given, HostArray):
        return given.array
    if type(given).__name__ in ("TensorWrapper", "TensorDescriptor"):  # of triton.reinterpret
        return _host(given.base)
    return calls.host_array(given)


# ---- a driver that launches nothing ----


class _Utils:
    def get_device_properties(self, _device: Any) -> dict[str, int]:
        return {
            "max_shared_mem": _MAX_SHARED,
            "max_num_regs": 65536,
            "multiprocessor_count": 132,
            "warpSize": 32,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 2619000,
            "mem_bus_width": 5120,
        }

    def load_binary(self, *_given: Any) -> tuple[int | None, ...]:
        """Module, function, registers, spills; from Triton 3.4 on, the threads of a block."""
        loader = sys.modules["triton.compiler.compiler"].CompiledKernel._init_handles
        found = (None, None, 0, 0)
        return (*found, 1024) if "n_max_threads" in loader.__code__.co_names else found

    def unload_module(self, _module: Any) -> None:
        pass


class _Launcher:
    """Made by Triton for each compiled kernel; called in place of each launch."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source, self.metadata = source, metadata

    def __call__(self, x: int, y: int, z: int, *given: Any) -> None:
        # The stream, the function, two metadata and two hooks come before the arguments.
        _launches.append(_Launch(self.source, self.metadata, (x, y, z), given[6:]))


_launches: list[_Launch] = []


class _Driver:
    """Triton's interface of a driver, of a GPU that is not there."""

    launcher_cls = _Launcher

    def __init__(self, target: Any) -> None:
        self.target, self.utils = target, _Utils()

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> str:
        return _DEVICE

    def set_current_device(self, _device: Any) -> None:
        pass

    def get_current_stream(self, _device: Any = None) -> int:
        return 0

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        return divmod(_ARCH, 10)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        return _first_wins

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind


def _first_wins(_call: Any, **_options: Any) -> list[float]:
    """In place of a measurement, for Triton's autotuner: all configurations take equally long."""
    return [1.0, 1.0, 1.0]


def _untuned(kernel: Any) -> Any:
    """A copy of autotuners and heuristics around a kernel, which remembers nothing of this call."""
    if not hasattr(kernel, "fn") or not hasattr(kernel.fn, "run"):
        return kernel
    kernel = copy.copy(kernel)
    kernel.fn = _untuned(kernel.fn)
    if hasattr(kernel, "configs"):
        kernel.cache, kernel._do_bench, kernel.cache_results = {}, _first_wins, False
        kernel.__dict__.pop("do_bench", None)
        if not isinstance(getattr(type(kernel), "do_bench", None), functools.cached_property):
            kernel.do_bench = _first_wins
    return kernel


def _launched(kernel: Any, grid: Any, args: tuple[Any, ...], meta: dict[str, Any]) -> Any:
    """Has Triton compile and launch, and returns (what it compiled, what it would launch)."""
    __tracebackhide__ = True
    runtime = sys.modules["triton.runtime.driver"].driver
    target = sys.modules["triton.backends.compiler"].GPUTarget("cuda", _ARCH, 32)
    with _lock:
        before = dict(vars(runtime))
        runtime.set_active(_Driver(target))
        del _launches[:]
        try:
            compiled = _untuned(kernel).run(*args, grid=grid, warmup=False, **meta)
            launched = list(_launches)
        finally:
            vars(runtime).clear()
            vars(runtime).update(before)
            del _launches[:]
    if compiled is None or not launched:
        raise ValueError(f"Triton did not launch {_name(kernel)}: a hook of the program stopped it")
    return compiled, launched[-1]


# ---- the call ----


def _name(kernel: Any) -> str:
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return getattr(kernel, "__name__", type(kernel).__name__)


def _configured(what: Any) -> tuple[Any, Any] | None:
    """(kernel, grid) of fn[grid]: a function or a partial that remembers both."""
    if isinstance(what, functools.partial) and hasattr(what.func, "__self__"):
        return what.func.__self__, what.keywords.get("grid")
    cells = getattr(what, "__closure__", None)
    if cells is None:
        return None
    contents = [cell.cell_contents for cell in cells]
    known = dict(zip(what.__code__.co_freevars, contents, strict=True))
    return (known["self"], known["grid"]) if {"self", "grid"} <= set(known) else None


def _flat(kinds: Any, values: Any, metadata: Any) -> Iterator[tuple[str, Any]]:
    """The types and values of the parameters that the compiled kernel has, without constants."""
    for kind, value in zip(kinds, values, strict=False):
        if isinstance(kind, tuple | list):
            yield from _flat(kind, value, metadata)
        elif kind.startswith("tensordesc"):
            yield from _descriptor(value, next(metadata, None))
        elif kind != "constexpr":
            yield kind, value


_SWIZZLES = {0: None, 1: "32B", 2: "64B", 3: "128B"}


def _descriptor(given: Any, metadata: Any) -> Iterator[tuple[str, Any]]:
    """A TensorDescriptor: a map for the copy engine, then the shape and the strides."""
    base = _host(given)
    shape, strides = list(given.shape), list(given.strides)
    if metadata is None:
        yield "*", base
        yield from (("i64", n) for n in (*shape, *strides))
        yield "i1", given.padding == "nan"
        yield "i1", bool(getattr(given, "round_f32_to_tf32", False))
    else:
        if metadata.get("is_im2col") or metadata.get("fp4_padded"):
            raise ValueError("im2col and fp4 tensor descriptors are not supported")
        if getattr(given, "round_f32_to_tf32", False):
            raise ValueError("a tensor descriptor that rounds to tf32 is not supported")
        view = np.lib.stride_tricks.as_strided(base, shape, [s * base.itemsize for s in strides])
        yield (
            "map",
            _core.TensorMap(
                view,
                tuple(metadata["block_size"]),
                swizzle=_SWIZZLES[metadata["swizzle"]],
                fill="nan" if given.padding == "nan" else None,
            ),
        )
    yield from (("i32", n) for n in shape)
    yield from (("i64", n) for n in strides)


_SCALARS = {
    "i1": np.uint8, "u1": np.uint8, "i8": np.int8, "u8": np.uint8, "i16": np.int16,
    "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "fp16": np.float16, "fp32": np.float32, "f32": np.float32, "fp64": np.float64,
}  # fmt: skip


def _argument(kind: str, value: Any) -> Any:
    """What a Kernel is passed for a parameter."""
    if kind == "map" or value is None:
        return value
    if kind.startswith("*"):
        array = _host(value)
        if not isinstance(array, np.ndarray):
            return array
        first, whole = calls.memory(array)
        if whole is not None:
            raise ValueError("a Triton kernel takes no array with a negative stride")
        return first
    if kind == "bf16":
        bits = int(np.float32(value).view(np.uint32))
        return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF).tobytes()
    return _SCALARS[kind](value)


def _scratch(metadata: Any, grid: tuple[int, int, int]) -> Iterator[Any]:
    """The memory that Triton adds to the arguments: one pointer for each kind that it knows."""
    blocks = grid[0] * grid[1] * grid[2] * getattr(metadata, "num_ctas", 1)
    for kind in ("global_scratch_size", "profile_scratch_size"):
        if hasattr(metadata, kind):
            size = getattr(metadata, kind) * blocks
            yield np.zeros(size, np.uint8) if size else None


def _threads(kernel: str, metadata: Any, block: Any) -> int:
    threads = 32 * metadata.num_warps
    given = block if block is None or isinstance(block, tuple) else (block,)
    if given is not None and tuple(given) + (1,) * (3 - len(given)) != (threads, 1, 1):
        raise ValueError(
            f"block={block}: Triton compiled {kernel} for {metadata.num_warps} warps, which is a "
            f"block of {threads} threads; pass None, and num_warps= to change it"
        )
    return threads


_RUN_OPTIONS = ("device", "timeout", "max_instructions")


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(fn, grid, None, *args, BLOCK=128, num_warps=4) or check(fn[grid], *args, BLOCK=128)."""
    __tracebackhide__ = True
    configured = _configured(what) if not hasattr(what, "run") else None
    kernel, grid = configured or (what, None)
    name, block = _name(kernel), None
    if type(kernel).__module__ == "triton.runtime.interpreter":
        raise TypeError(f"{name} was made for Triton's interpreter: unset TRITON_INTERPRET")
    if not hasattr(kernel, "run"):
        raise TypeError(f"expected a kernel of Triton, found {type(what).__qualname__}")
    if configured is None:
        grid, block, args = calls.split(f"the Triton kernel {name}", args)
    run = {key: options.pop(key) for key in _RUN_OPTIONS if key in options}
    grid = grid if callable(grid) else (grid,) if isinstance(grid, int | np.integer) else grid
    wrapped = tuple(map(_wrapped, args))
    meta = {key: _wrapped(value) for key, value in options.items()}
    compiled, launch = _launched(kernel, grid, wrapped, meta)
    metadata, ctas = launch.metadata, getattr(launch.metadata, "num_ctas", 1)
    threads = _threads(name, metadata, block)
    caller = _caller(launch)
    run |= {"shared_bytes": metadata.shared}
    run |= {"cluster": ctas} if ctas > 1 else {}
    run |= {"cooperative": True} if getattr(metadata, "launch_cooperative_grid", False) else {}
    x, y, z = launch.grid
    return calls.build(
        _one_line_per_assembly(compiled.asm["ptx"]),
        metadata.name,
        ((x * ctas, y, z), threads),
        list(_parameters(launch)),
        caller,
        run,
    )


def _one_line_per_assembly(ptx: str) -> str:
    """The PTX with one source line per block of inline assembly, by which Triton accesses memory.

    LLVM counts the lines of such a block on from the source's line, which names lines that are not
    part of it.
    """
    return re.sub(
        r"// begin inline asm\n.*?// end inline asm",
        lambda block: re.sub(r"^[ \t]*\.loc[^\n]*\n", "", block[0], flags=re.M),
        ptx,
        flags=re.S,
    )


def _signature(launch: _Launch) -> Mapping[str, Any]:
    """The types of all parameters of the Python function, by name."""
    return launch.source.signature


def _caller(launch: _Launch) -> dict[str, object]:
    """The arguments by the names of the Python function's parameters."""
    return {
        name: _host(value) if kind != "constexpr" else value
        for (name, kind), value in zip(_signature(launch).items(), launch.arguments, strict=False)
    }


def _parameters(launch: _Launch) -> Iterator[tuple[int, Any]]:
    """Per parameter of the PTX: the number of the caller's argument, and what is passed."""
    descriptors = iter(getattr(launch.metadata, "tensordesc_meta", None) or ())
    kinds = _signature(launch).values()
    for number, (kind, value) in enumerate(zip(kinds, launch.arguments, strict=False)):
        for flat, item in _flat([kind], [value], descriptors):
            yield number, _argument(flat, item)
    for scratch in _scratch(launch.metadata, launch.grid):
        yield -1, scratch
