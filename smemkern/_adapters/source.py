"""Calls of kernels given as text: PTX, CUDA C++, or the sources of torch's load_inline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .. import _core
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
        return calls.plain(kernel, given, options)
    texts = list(map(_text, what if isinstance(what, list | tuple) else [what]))
    modules = len(texts) > 1 and all(map(is_ptx, texts))
    text = link(texts) if modules else "\n".join(texts)
    kernel = _kernel(text, name, tuple(compiler))
    call = calls.plain(kernel, given, options)
    if is_ptx(text):
        return call._replace(sources=calls.python_sources(text))
    return call._replace(sources={"kernel.cu": text})
