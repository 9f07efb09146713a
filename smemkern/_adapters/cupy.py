"""Calls of CuPy's kernels: RawKernel, and a RawModule with the name of one of its kernels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .. import _core
from .._compiler.ptx import is_ptx
from . import calls
from .calls import Call

# Options of nvcc that NVRTC has, too: the others are of the host's compiler and of ptxas.
_SHARED = ("-D", "-U", "-I", "--define", "--undefine", "--include-path", "-std", "--std")
_OTHERS = {"--use_fast_math", "-use_fast_math", "--extra-device-vectorization", "-dw"}


def _options(what: Any, source: str) -> tuple[str, ...]:
    """The options with which CuPy would have NVRTC compile."""
    given = tuple(what.options)
    if what.backend == "nvcc":
        given = tuple(o for o in given if o.startswith(_SHARED) or o in _OTHERS)
    if "cupy/" in source:  # CuPy's own headers
        given += (f"-I{Path(sys.modules['cupy'].__file__ or '').parent / '_core' / 'include'}",)
    return given


def _text(what: Any) -> str:
    """The text that CuPy would compile, from memory or a file."""
    __tracebackhide__ = True
    if what.code is not None:
        return str(what.code)
    path = Path(what.file_path)
    if path.suffix not in (".cu", ".ptx"):
        raise ValueError(f"{path.name} holds machine code, and the emulator runs PTX")
    return path.read_text(encoding="utf-8")


def source(what: Any, name: str | None) -> tuple[str, str | None, tuple[str, ...]]:
    """What a Kernel is made of: calls.source_of."""
    __tracebackhide__ = True
    kind = type(what).__name__
    if kind not in ("RawKernel", "RawModule"):
        raise TypeError(
            f"expected a RawKernel or a RawModule of CuPy, found {kind}, whose code CuPy makes for "
            "a GPU at its first call"
        )
    own = what.name if kind == "RawKernel" else None
    text = _text(what)
    return text, own or name, () if is_ptx(text) else _options(what, text)


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(kernel, grid, block, *args), or with the arguments in a tuple, as CuPy takes them."""
    __tracebackhide__ = True
    text, name, compiler = source(what, calls.take_name(options))
    grid, block, rest = calls.split(f"CuPy's kernel {name or ''}".rstrip(), args)
    if len(rest) == 1 and isinstance(rest[0], tuple):
        rest = rest[0]
    if "shared_mem" in options:
        options["shared_bytes"] = options.pop("shared_mem")
    if what.enable_cooperative_groups:
        options.setdefault("cooperative", True)
    kernel = _core.Kernel(text, name, compiler)
    return calls.plain(kernel, (grid, block, *map(calls.host_array, rest)), options)
