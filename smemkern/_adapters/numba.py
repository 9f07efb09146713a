"""Calls of Numba kernels: @numba.cuda.jit functions, of numba-cuda and of Numba's own CUDA target.

Numba infers the types of the arguments and compiles for them, as it does at a launch; that needs no
GPU. The arguments are flattened as Numba flattens them: an array becomes a pointer to its owner,
one to its parent, the number of elements, the bytes of one, its address, its shape and its strides.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .. import _core
from .._compiler.ptx import entry_names, link
from . import calls
from .calls import Call
from .cuda_core import any_driver, text_of

_CC = (9, 0)
_BLOCK = 128  # of fn.forall(n), which asks the GPU


# ---- what is launched ----


def _unconfigured(what: Any) -> bool:
    return hasattr(what, "py_func") and hasattr(what, "targetoptions")


def _configured(what: Any) -> tuple[Any, Any, Any, int] | None:
    """(kernel, grid, block, bytes of shared memory) of fn[grid, block, ...] and fn.forall(n)."""
    kernel = getattr(what, "dispatcher", None)
    if kernel is None or not _unconfigured(kernel):
        return None
    if hasattr(what, "griddim"):
        return kernel, what.griddim, what.blockdim, what.sharedmem
    block = what.thread_per_block or _BLOCK
    return kernel, -(-what.ntasks // block), block, what.sharedmem


def _kernel_of(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
    """(kernel, grid, block, arguments); what is given beside them goes to the options."""
    __tracebackhide__ = True
    configured = _configured(what)
    if configured:
        kernel, grid, block, shared = configured
        return kernel, grid, block, args, options | {"shared_bytes": shared}
    if "simulator" in type(what).__module__:
        raise TypeError("this kernel was made for Numba's simulator: unset NUMBA_ENABLE_CUDASIM")
    if not _unconfigured(what):
        raise TypeError(
            f"expected a kernel of Numba (@numba.cuda.jit), found {type(what).__qualname__}"
        )
    if what.targetoptions.get("device"):
        raise TypeError(f"{what.py_func.__name__} is a device function; pass a kernel")
    grid, block, rest = calls.split(f"the Numba kernel {what.py_func.__name__}", args)
    return what, grid, block, rest, options


# ---- arguments ----


def _unhinted(given: Any) -> Any:
    """The array of cuda.In(x), cuda.Out(x), cuda.InOut(x), or of a tensor on the CPU."""
    if {"In", "Out", "InOut"} & {kind.__name__ for kind in type(given).__mro__} and hasattr(
        given, "value"
    ):
        given, name = given.value, type(given).__name__
        return given.copy() if name == "In" and isinstance(given, np.ndarray) else given
    if isinstance(given, tuple) and not hasattr(given, "_fields"):
        return tuple(map(_unhinted, given))
    if hasattr(given, "__cuda_array_interface__"):
        raise ValueError(
            "an array is in the memory of a GPU, and check and trace work on host memory: pass "
            "array.copy_to_host()"
        )
    return calls.host_array(given)


def _kind(kernel: Any, name: str, value: Any) -> Any:
    """Numba's type of an argument."""
    __tracebackhide__ = True
    try:
        return kernel.typeof_pyval(value)
    except Exception as error:
        # For a type that it does not know, Numba asks the driver for the memory of a GPU.
        if "cudadrv" not in type(error).__module__ and not isinstance(error, ValueError):
            raise
        raise TypeError(
            f"argument {name} is of type {type(value).__qualname__}, which Numba does not pass to "
            "kernels; pass a NumPy array or a number"
        ) from None


def _kinds(kernel: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types that the kernel is compiled for: those of a signature, if it was given any."""
    __tracebackhide__ = True
    declared = [] if getattr(kernel, "_can_compile", True) else list(kernel.overloads)
    if not declared or kinds in declared:
        return kinds
    if getattr(kernel, "_specialized", False):  # for one signature, Numba does not compare types
        return tuple(declared[0])
    convertible = kernel.typingctx.can_convert
    for signature in declared:
        pairs = zip(kinds, signature, strict=True)
        if all(convertible(kind, wanted) is not None for kind, wanted in pairs):
            return tuple(signature)
    raise TypeError(
        f"{kernel.py_func.__name__} was compiled for {' and '.join(map(str, declared))}, and is "
        f"called with {kinds}"
    )


def _array(given: np.ndarray[Any, Any]) -> Iterator[Any]:
    first, whole = calls.memory(given)
    yield None
    yield whole  # the parent, which kernels do not read: here, it keeps the memory before `first`
    yield given.size
    yield given.itemsize
    yield first
    yield from given.shape
    yield from given.strides


def _flat(kind: Any, value: Any, types: Any, options: Any) -> Iterator[Any]:
    """The parameters of one argument of Numba's type `kind`."""
    __tracebackhide__ = True
    for extension in reversed(options.get("extensions") or ()):
        kind, value = extension.prepare_args(kind, value, stream=0, retr=[])
        value = _unhinted(value)
    if isinstance(kind, types.Array):
        yield from _array(np.asarray(value))
    elif isinstance(kind, types.Record):
        yield _record(value)
    elif isinstance(kind, types.BaseTuple):
        for each, item in zip(kind, value, strict=True):
            yield from _flat(each, item, types, options)
    elif isinstance(kind, types.EnumMember):
        yield from _flat(kind.dtype, value.value, types, options)
    elif isinstance(kind, types.NPDatetime | types.NPTimedelta):
        yield value.view(np.int64)
    elif isinstance(kind, types.Complex):
        part = np.dtype(kind.underlying_float.name).type
        yield from (part(value.real), part(value.imag))
    elif isinstance(kind, types.Boolean):
        yield np.uint8(bool(value))
    elif isinstance(kind, types.CPointer):
        yield value
    elif kind.name == "float16":  # PTX has it as bits
        yield np.float16(value).tobytes()
    elif isinstance(kind, types.Integer):  # out of range, it wraps
        yield bytes(getattr(ctypes, f"c_{kind.name}")(value))
    elif isinstance(kind, types.Float):
        yield np.dtype(kind.name).type(value)
    else:
        raise TypeError(f"Numba passes no argument of type {kind} to a kernel")


def _record(value: Any) -> Any:
    """A record, by its address: an array of one record, which shares the record's memory."""
    if isinstance(value, np.ndarray):
        return value
    return np.asarray(value).reshape(1) if value.base is None else np.asarray(value)


# ---- compilation ----

_lock = threading.RLock()


class _Device:
    """The GPU that Numba compiles for, in place of the one that it would ask."""

    compute_capability = _CC
    supports_float16 = supports_bfloat16 = supports_fp8 = True


@contextmanager
def _device(kernel: Any) -> Iterator[None]:
    """While a kernel is compiled: its device functions are compiled for the current GPU."""
    module = sys.modules[type(kernel).__module__]
    with _lock:
        before = module.get_current_device  # type: ignore[attr-defined]
        module.get_current_device = _Device  # type: ignore[attr-defined]
        try:
            yield
        finally:
            module.get_current_device = before  # type: ignore[attr-defined]


def _options(kernel: Any, function: Any) -> dict[str, Any]:
    """The options of @cuda.jit, as far as a function of Numba's compiler knows them."""
    given = kernel.targetoptions
    wanted = {
        "debug": bool(given.get("debug")),
        "lineinfo": not given.get("debug"),
        "device": False,
        "fastmath": given.get("fastmath", False),
        "cc": _CC,
        "opt": given.get("opt", True),
        "launch_bounds": given.get("launch_bounds"),
        "abi": "numba",
        "output": "ptx",
    }
    known = inspect.signature(function).parameters
    return {name: value for name, value in wanted.items() if name in known}


def _texts(cuda: Any, kernel: Any, kinds: tuple[Any, ...]) -> list[str]:
    """PTX of a kernel for arguments of these types, and of the functions that it is linked with."""
    __tracebackhide__ = True
    link = list(kernel.targetoptions.get("link") or ())
    compile_all = getattr(cuda, "compile_all", None)
    with _device(kernel), any_driver():
        if compile_all is None:
            codes = [cuda.compile_ptx(kernel.py_func, kinds, **_options(kernel, cuda.compile_ptx))]
            codes = [code for code, _ in codes]
        else:
            codes, _ = compile_all(kernel.py_func, kinds, **_options(kernel, compile_all))
    texts = [_text(code) for code in [*codes, *link]]
    if "numba_attempt_nocopy_reshape" in texts[0]:  # Numba's own function, which it links with
        folder = Path(sys.modules[type(kernel).__module__].__file__ or "").parent
        texts.append(_text(folder / "reshape_funcs.cu"))
    return texts


def _text(code: Any) -> str:
    """PTX of an external function: of PTX itself, or of a file or object that holds CUDA C++."""
    __tracebackhide__ = True
    if isinstance(code, str) and not code.endswith((".cu", ".ptx")) and "\n" in code:
        return code
    if isinstance(code, bytes):
        return code.decode().rstrip("\0")
    if hasattr(code, "code_type"):
        return text_of(code)
    kind = getattr(code, "kind", None) or str(code).rpartition(".")[2]
    if kind not in ("cu", "ptx"):
        raise ValueError(f"the kernel is linked with a file of kind {kind}; expected cu or ptx")
    data = code.data if hasattr(code, "data") else Path(code).read_text(encoding="utf-8")
    text = data.decode() if isinstance(data, bytes) else data
    return text if kind == "ptx" else _functions(text)


def _functions(source: str) -> str:
    """PTX of CUDA C++ that has functions and no kernel: the kernel that is added never runs."""
    entry = 'extern "C" __global__ void smemkern_unused() {}'
    return _core.Kernel(f"{source}\n{entry}\n", "smemkern_unused", ("-rdc=true",)).ptx


# What Numba links grid.sync() with on a GPU, cudadevrt, by cooperative groups.
_GRID_SYNC = """
#include <cooperative_groups.h>
extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(cudaCGScope) { return 1; }
extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long, unsigned) {
    cooperative_groups::this_grid().sync();
    return cudaSuccess;
}
"""


# As in Numba, a kernel is compiled once for arguments of the same types, and keeps the values that
# global variables had then.
_known: WeakKeyDictionary[Any, dict[tuple[Any, ...], str]] = WeakKeyDictionary()


def _compiled(cuda: Any, kernel: Any, kinds: tuple[Any, ...]) -> str:
    """The PTX of a kernel for arguments of these types."""
    __tracebackhide__ = True
    known = _known.setdefault(kernel, {})
    if kinds not in known:
        texts = _texts(cuda, kernel, kinds)
        if _is_cooperative(texts[0]):
            texts.append(_functions(_GRID_SYNC))
        known[kinds] = link(texts) if len(texts) > 1 else texts[0]
    return known[kinds]


def _is_cooperative(ptx: str) -> bool:
    return "cudaCGSynchronize" in ptx


def _types(cuda: Any) -> Any:
    """The module of Numba's types: numba-cuda has its own."""
    own = getattr(cuda, "types", None)
    return own if hasattr(own, "Array") else sys.modules["numba"].types


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(fn, grid, block, *args) or check(fn[grid, block, stream, shared_bytes], *args)."""
    __tracebackhide__ = True
    kernel, grid, block, given, options = _kernel_of(what, args, options)
    names = list(inspect.signature(kernel.py_func).parameters)
    if len(given) != len(names):
        raise TypeError(
            f"{kernel.py_func.__name__} takes {len(names)} arguments but {len(given)} were given"
        )
    cuda = sys.modules["numba"].cuda
    caller = dict(zip(names, map(_unhinted, given), strict=True))
    kinds = _kinds(kernel, tuple(_kind(kernel, *pair) for pair in caller.items()))
    parameters = [
        (number, parameter)
        for number, (kind, value) in enumerate(zip(kinds, caller.values(), strict=True))
        for parameter in _flat(kind, value, _types(cuda), kernel.targetoptions)
    ]
    ptx = _compiled(cuda, kernel, kinds)
    if _is_cooperative(ptx):
        options = options | {"cooperative": True}
    entry = entry_names(ptx)[0]
    return calls.build(ptx, entry, (grid, block), parameters, caller, options)
