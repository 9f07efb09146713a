"""Calls of kernels of cuda.core: a Program of CUDA C++, or an ObjectCode of PTX."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from .. import _core
from .._compiler.ptx import entry_names
from . import calls
from .calls import Call

_lock = threading.RLock()
_NEWEST = (99, 0, 0)
# NVRTC compiles a program for more names only before it has compiled it.
_compiled: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()


def _questions() -> list[tuple[Any, str, Any]]:
    """(module, name, answer) of the functions by which cuda.core asks for the driver's version."""
    names = ("cuda.core._program", "cuda.core.experimental._program")
    modules = [sys.modules[name] for name in names if name in sys.modules]
    asked: list[tuple[Any, str, Any]] = []
    for module in modules:
        asked.append((module, "driver_version", lambda: _NEWEST))
        if hasattr(module, "driver"):  # before 1.0
            answer = (module.driver.CUresult.CUDA_SUCCESS, 1000 * _NEWEST[0])
            asked.append((module.driver, "cuDriverGetVersion", lambda answer=answer: answer))
    return [question for question in asked if hasattr(question[0], question[1])]


@contextmanager
def any_driver() -> Iterator[None]:
    """cuda.core compiles to PTX, and asks the driver for its version, to warn of an old one.

    Without a GPU there is no driver to ask. In this context its version is a new one.
    """
    with _lock:
        asked = _questions()
        before = [getattr(module, name) for module, name, _ in asked]
        for module, name, answer in asked:
            setattr(module, name, answer)
        try:
            yield
        finally:
            for (module, name, _), function in zip(asked, before, strict=True):
                setattr(module, name, function)


def _object_code(program: Any, name: str | None) -> Any:
    """The PTX of a Program, compiled with the program's own options."""
    __tracebackhide__ = True
    known = _compiled.setdefault(program, [])
    for code in known:
        if name is None or _has(code, name):
            return code
    given = {"name_expressions": (name,)} if name and program.backend == "NVRTC" else {}
    try:
        with any_driver():
            known.append(program.compile("ptx", **given))
    except Exception as error:
        if "AFTER_COMPILATION" not in str(error):
            raise
        raise ValueError(
            f"the Program was compiled before without {name}, and NVRTC adds no name to a compiled "
            "program: pass a new Program"
        ) from None
    return known[-1]


def _has(code: Any, name: str) -> bool:
    """Whether compiled code has a kernel of that name."""
    return name in _symbols(code) or name in entry_names(text_of(code))


def _symbols(code: Any) -> dict[str, str]:
    """C++ names that were compiled, and their names in the PTX."""
    given = getattr(code, "symbol_mapping", None) or getattr(code, "_sym_map", None) or {}
    return {_decoded(name): _decoded(entry) for name, entry in given.items()}


def _decoded(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def text_of(code: Any) -> str:
    """The text of an ObjectCode."""
    __tracebackhide__ = True
    kind = getattr(code, "code_type", getattr(code, "_code_type", None))
    if kind != "ptx":
        raise ValueError(
            f"an ObjectCode holds {kind}, which is machine code, and the emulator runs PTX: pass "
            'the Program, or program.compile("ptx")'
        )
    text = code.code
    return _decoded(text).rstrip("\0")


def _launch(args: tuple[Any, ...]) -> tuple[Any, Any, tuple[Any, ...], dict[str, Any]]:
    """grid, block, the arguments, and options of the call: of a LaunchConfig if there is one."""
    __tracebackhide__ = True
    if not args or type(args[0]).__name__ != "LaunchConfig":
        return (*calls.split("a cuda.core program", args), {})
    config = args[0]
    options: dict[str, Any] = {"shared_bytes": int(config.shmem_size or 0)}
    if getattr(config, "cluster", None):
        options["cluster"] = tuple(config.cluster)
    if getattr(config, "is_cooperative", False):
        options["cooperative"] = True
    return tuple(config.grid), tuple(config.block), args[1:], options


def source(what: Any, name: str | None) -> tuple[str, str | None, tuple[str, ...]]:
    """What a Kernel is made of: calls.source_of."""
    __tracebackhide__ = True
    kind = type(what).__name__
    if kind not in ("Program", "ObjectCode"):
        raise TypeError(f"expected a Program or an ObjectCode of cuda.core, found {kind}")
    code = _object_code(what, name) if kind == "Program" else what
    ptx = text_of(code)
    if name is None and len(entry_names(ptx)) != 1:
        calls.refuse_names(entry_names(ptx))
    return ptx, name and _symbols(code).get(name, name), ()


def adapt(what: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """check(program, grid, block, *args, name="scale") or check(program, config, *args)."""
    __tracebackhide__ = True
    name = calls.take_name(options)
    ptx, entry, _ = source(what, name)
    grid, block, rest, launch = _launch(args)
    kernel = _core.Kernel(ptx, entry)
    rest = tuple(map(calls.host_array, rest))
    return calls.plain(kernel, (grid, block, *rest), launch | options)
