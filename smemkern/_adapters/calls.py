"""Kernels of other libraries, as calls of a Kernel: what check and trace accept besides a Kernel.

An adapter turns a library's kernel and the arguments of its call into a Call. Which adapter is
chosen by the module that defines the object's type. No library is imported that the program has
not imported already, so an object of a library that is not installed costs nothing.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from os.path import basename
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._compiler.kernel_file import is_file_name

if TYPE_CHECKING:
    from .._compiler.compile import Origin


class Call(NamedTuple):
    """A call of a Kernel, and what its parameters are called where the kernel was written."""

    kernel: _core.Kernel
    args: tuple[Any, ...]  # grid, block, one argument per parameter
    options: dict[str, Any]  # of the call: shared_bytes, cluster, ...
    # For each parameter: the number of the caller's argument, or -1 for one that the library adds.
    numbers: tuple[int, ...]
    names: tuple[str, ...]  # of the caller's arguments
    values: tuple[object, ...]  # the caller's arguments: arrays, whose elements messages name
    sources: Mapping[str, str] | None = None  # file name to text; None: the Kernel's own


def plain(kernel: _core.Kernel, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """A call of a Kernel as it is."""
    count = max(len(args) - 2, 0)
    names = tuple(f"argument {number}" for number in range(count))
    return Call(kernel, args, options, tuple(range(count)), names, args[2:])


# The module that defines the type of a kernel, and the adapter of its library.
_ADAPTERS = {
    "triton": "triton",
    "numba": "numba",
    "numba_cuda": "numba",
    "cupy": "cupy",
    "cupyx": "cupy",
    "cuda": "cuda_core",
}
_ACCEPTED = (
    "a smemkern.Kernel, a kernel of Triton, Numba, CuPy or cuda.core, or CUDA C++ or PTX, "
    "as text or as a file"
)


def is_source(what: object) -> bool:
    """Whether it is text of a kernel or a file's name, or a list of such; no operation's name."""
    if isinstance(what, os.PathLike):
        return True
    if isinstance(what, str):
        return is_file_name(what) or "__global__" in what or ".version" in what or "\n" in what
    return isinstance(what, list | tuple) and bool(what) and all(map(is_source, what))


def _library(what: object) -> str | None:
    """The first part of the module name that leads to an adapter."""
    if isinstance(what, functools.partial):  # as fn[grid] of some versions of Triton
        what = what.func
    owner = getattr(what, "__self__", None)
    kinds = [*type(what).__mro__, *(type(owner).__mro__ if owner is not None else ())]
    modules = [kind.__module__ for kind in kinds]
    modules.append(str(getattr(what, "__module__", None)))  # of a function of the library
    return next((top for name in modules if (top := name.partition(".")[0]) in _ADAPTERS), None)


def adapt(what: object, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """The call of a Kernel that stands for a call of `what`.

    Raises
    ------
    TypeError, ValueError
        If there is no adapter for it, or its library would refuse the arguments.
    """
    __tracebackhide__ = True
    if isinstance(what, _core.Kernel):
        return plain(what, tuple(host_array(a) for a in args), options)
    name = "source" if is_source(what) else _ADAPTERS.get(_library(what) or "")
    if name is None:
        raise TypeError(f"expected {_ACCEPTED}; found {type(what).__qualname__}")
    return import_module(f".{name}", __package__).adapt(what, args, dict(options))


def kernel_source(
    source: object, name: str | None, options: Sequence[str] | None
) -> tuple[str, bytes, str | None, Origin]:
    """The text, the PTX, the entry and the origin of a Kernel, which may be of another library."""
    __tracebackhide__ = True
    from .._compiler import compile

    if not isinstance(source, str | os.PathLike | compile.Compiled):
        source, name, own = source_of(source, name)
        options = (*own, *(options or ()))
    return compile.kernel_source(source, name, options)


def source_of(what: object, name: str | None) -> tuple[str, str | None, tuple[str, ...]]:
    """What a Kernel is made of for a kernel of CuPy or cuda.core: text, name, compiler's options.

    Raises
    ------
    TypeError
        For other objects. Those of Triton and Numba have no code before the arguments are known.
    """
    library = _library(what) or ""
    if library not in _ADAPTERS:
        kind = type(what).__name__
        raise TypeError(f"source_or_ptx must be a str or a path, not {kind}")
    module = import_module(f".{_ADAPTERS[library]}", __package__)
    if not hasattr(module, "source"):
        raise TypeError(
            f"Kernel takes CUDA C++ or PTX, and {library.partition('_')[0].capitalize()} compiles "
            "a kernel for the arguments of a call: use smemkern.check(kernel, grid, block, "
            "*arguments), or trace"
        )
    found: tuple[str, str | None, tuple[str, ...]] = module.source(what, name)
    return found


def is_tensor(given: Any) -> bool:
    """Whether it is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.Tensor)


def host_array(given: Any) -> Any:
    """A PyTorch tensor on the CPU as a NumPy array of the same memory; anything else as it is.

    A tensor that requires a gradient is read and written as its data is, as by a kernel on a GPU.
    NumPy has no bfloat16 and no 8-bit floats: they are ml_dtypes' types if that is installed, else
    integers of their size.
    """
    if type(given) is tuple:  # a struct
        return tuple(map(host_array, given))
    if not is_tensor(given):
        return given
    __tracebackhide__ = True
    if given.device.type != "cpu":
        raise ValueError(
            f"a tensor is on device {given.device}, and check and trace work on host memory: pass "
            "tensor.cpu()"
        )
    if getattr(given, "is_sparse", False) or str(given.layout) != "torch.strided":
        raise TypeError(f"a tensor has layout {given.layout}; a kernel takes strided tensors")
    if given.is_conj() or given.is_neg():
        raise ValueError("a tensor is a lazy conjugate or negative: pass tensor.resolve_conj()")
    data = given.detach()
    try:
        return data.numpy()
    except TypeError:  # a type that NumPy does not have
        return _bits(data)


def _bits(data: Any) -> Any:
    """A tensor of a type that NumPy lacks."""
    import torch

    name = str(data.dtype).removeprefix("torch.")
    integer = {1: torch.uint8, 2: torch.int16}.get(data.element_size())
    if integer is None:
        raise TypeError(f"a tensor has dtype {name}, which NumPy does not have")
    bits = data.view(integer).numpy()
    try:
        import ml_dtypes

        return bits.view(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return bits


def is_array(given: object) -> bool:
    import numpy as np

    return isinstance(given, np.ndarray)


class _Bytes:
    """Memory of an array, as NumPy's array interface describes it."""

    def __init__(self, array: Any, first: int, count: int) -> None:
        self._array = array  # keeps the memory
        self.__array_interface__ = {
            "data": (first, not array.flags.writeable),
            "shape": (count,),
            "typestr": "|u1",
            "version": 3,
        }


def memory(array: Any) -> tuple[Any, Any]:
    """(an array that begins at the first element, an array of all of the memory), or (it, None).

    Kernels that are given strides take arrays with gaps. They get the bytes from the first element
    to the last; where a stride is negative, the bytes before are a second array, which shares its
    memory with the first one.
    """
    import numpy as np

    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array, None
    spans = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    before = sum(s for s in spans if s < 0)
    after = sum(s for s in spans if s > 0) + array.itemsize
    at = array.__array_interface__["data"][0]
    whole = np.asarray(_Bytes(array, at + before, after - before))
    return whole[-before:], whole if before else None


def take_name(options: dict[str, Any]) -> str | None:
    """Takes name= out of the options: which kernel of a text or module is meant."""
    name = options.pop("name", None)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name should be a str or None, not {name!r}")
    return name


def refuse_names(names: Sequence[str]) -> None:
    """Raises the error of a text that has several kernels, or none, and no name= that chooses."""
    __tracebackhide__ = True
    if not names:
        raise ValueError("the text has no kernel")
    raise ValueError(f"the text has {len(names)} kernels, choose by name=: {', '.join(names)}")


def split(what: str, args: tuple[Any, ...]) -> tuple[Any, Any, tuple[Any, ...]]:
    """grid, block and the arguments."""
    __tracebackhide__ = True
    if len(args) < 2:
        raise TypeError(f"{what} is called with (grid, block, *arguments)")
    return args[0], args[1], args[2:]


def python_sources(ptx: str) -> dict[str, str]:
    """The text of the files that a PTX text's line information names, by name without folders."""
    found = {"": ptx}
    for file in re.findall(r'^\s*\.file\s+\d+\s+"([^"]*)"', ptx, re.M):
        lines = linecache.getlines(file) or linecache.getlines(_loaded(basename(file)))
        if lines:
            found.setdefault(basename(file), "".join(lines))
    return found


def _loaded(name: str) -> str:
    """The file of the loaded module of this name: a library's cache may name a folder of before."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return next((file for file in files if file and basename(file) == name), "")


def build(
    ptx: str,
    name: str | None,
    launch: tuple[Any, Any],
    parameters: Sequence[tuple[int, Any]],
    caller: Mapping[str, object],
    options: dict[str, Any],
    make: Callable[..., _core.Kernel] = _core.Kernel,
) -> Call:
    """A Call of PTX that a Python library made.

    Parameters
    ----------
    launch : (grid, block)
    parameters : sequence of (number, argument)
        Per parameter of the PTX the number of the caller's argument, or -1, and what is passed.
    caller : mapping
        The caller's arguments by name.
    """
    kernel = make(ptx, name)
    return Call(
        kernel,
        (*launch, *(argument for _, argument in parameters)),
        options,
        tuple(number for number, _ in parameters),
        tuple(f"argument {name}" for name in caller),
        tuple(caller.values()),
        python_sources(ptx),
    )
