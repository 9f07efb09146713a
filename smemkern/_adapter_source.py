"""Calls of kernels given as text: PTX, CUDA C++, or the sources of torch's load_inline."""

from __future__ import annotations

from typing import Any

from . import _adapters, _core, _ptx_link
from ._adapters import Call
from ._device_code import device_code, has_host_code


def _kernel(text: str, name: str | None, options: tuple[str, ...]) -> _core.Kernel:
    __tracebackhide__ = True
    if _adapters.is_ptx(text):
        names = _ptx_link.entries(text)
        if name is None and len(names) != 1:
            _adapters.refuse_names(names)
        return _core.Kernel(text, name, options)
    if has_host_code(text):
        text = device_code(text, name or "")
    return _core.Kernel(text, name, options)


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(text, grid, block, *args, name="scale"); `what` may be a list of texts."""
    __tracebackhide__ = True
    name = _adapters.take_name(options)
    compiler = options.pop("options", ())
    texts = [what] if isinstance(what, str) else list(what)
    if all(map(_adapters.is_ptx, texts)) and len(texts) > 1:
        text = _ptx_link.link(texts)
    else:
        text = "\n".join(texts)
    kernel = _kernel(text, name, tuple(compiler))
    grid, block, rest = _adapters.split("the text of a kernel", args)
    call = _adapters.plain(kernel, (grid, block, *map(_adapters.host_array, rest)), options)
    if _adapters.is_ptx(text):
        return call._replace(sources=_adapters.python_sources(text))
    return call._replace(sources={"kernel.cu": text})
