"""Calls of kernels given as text: PTX, CUDA C++, or the sources of torch's load_inline."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._compiler import parameters
from .._compiler.kernel_file import is_file_name
from .._compiler.ptx import entry_names, is_ptx, link
from . import calls
from .calls import Call


def _is_file(given: Any) -> bool:
    return isinstance(given, os.PathLike) or (isinstance(given, str) and is_file_name(given))


def _text(given: Any) -> str:
    """A text as it is, or that of a file."""
    return Path(given).read_text(encoding="utf-8") if _is_file(given) else str(given)


def _kernel(text: str, name: str | None, options: tuple[str, ...]) -> _core.Kernel:
    __tracebackhide__ = True
    if is_ptx(text):
        names = entry_names(text)
        if name is None and len(names) != 1:
            calls.refuse_names(names)
        return _core.Kernel(text, name, options)
    return _core.Kernel(text, name, options)


_ACCESSOR = re.compile(r"PackedTensorAccessor(?P<bits>32|64)?<(?P<type>[^,]+), (?P<rank>\d+)")


def _accessor(given: Any, parameter: str, number: int) -> Any:
    """An array as PyTorch's accessor of it, if the parameter is one: a struct, as a tuple."""
    __tracebackhide__ = True
    found = _ACCESSOR.search(parameter)
    if not found or not calls.is_array(given):
        return given
    if given.ndim != int(found["rank"]):
        raise TypeError(
            f"argument {number} has {given.ndim} dimensions, and the kernel takes an accessor of "
            f"{found['rank']}: {parameter}"
        )
    if not parameters.is_of(found["type"], given.dtype):
        raise TypeError(f"argument {number} is an array of {given.dtype}, and not {parameter}")
    if given.size and min(given.strides, default=0) < 0:
        raise ValueError(f"argument {number} has a negative stride, which PyTorch does not have")
    is_int = found["bits"] == "32" or parameter.endswith(", int>")
    index = np.int32 if is_int else np.int64
    data, _ = calls.memory(given)
    steps = (step // given.itemsize for step in given.strides)
    return (data, *map(index, given.shape), *map(index, steps))


def _with_accessors(call: Call) -> Call:
    """The call with arrays as accessors where the kernel takes these."""
    __tracebackhide__ = True
    grid, block, *given = call.args
    types = [one.type for one in parameters.parameters(call.kernel, len(given))]
    made = [_accessor(*both, number) for number, both in enumerate(zip(given, types, strict=True))]
    return call._replace(args=(grid, block, *made))


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(text, grid, block, *args, name="scale"); a text, a file, or a list of them."""
    __tracebackhide__ = True
    name = calls.take_name(options)
    compiler = options.pop("options", ())
    grid, block, rest = calls.split("the text of a kernel", args)
    given = (grid, block, *map(calls.host_array, rest))
    if (
        isinstance(what, os.PathLike) or isinstance(what, str) and is_file_name(what)
    ):  # its includes are found
        kernel = _core.Kernel(os.fspath(what), name, tuple(compiler))
        return _with_accessors(calls.plain(kernel, given, options))
    texts = list(map(_text, what if isinstance(what, list | tuple) else [what]))
    modules = len(texts) > 1 and all(map(is_ptx, texts))
    text = link(texts) if modules else "\n".join(texts)
    kernel = _kernel(text, name, tuple(compiler))
    call = _with_accessors(calls.plain(kernel, given, options))
    if is_ptx(text):
        return call._replace(sources=calls.python_sources(text))
    return call._replace(sources={"kernel.cu": text})
