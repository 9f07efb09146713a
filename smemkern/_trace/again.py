"""A call with copies of its arrays, so that it can run again: for replays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._adapters import calls
from .._adapters.calls import Call
from .launch import Launch, launch_of

OPERANDS = {"gemm": ("a", "b"), "transpose": ("a",), "probe": ("x",)}


class Again(NamedTuple):
    """A call that can run again."""

    what: str | _core.Kernel
    args: tuple[Any, ...]
    options: dict[str, Any]
    launch: Launch
    names: tuple[str, ...]  # of the caller's arguments
    numbers: tuple[int, ...] | None  # per parameter the caller's argument; None: an operation
    values: tuple[object, ...]  # the caller's arguments, for messages
    equal_writes: bool = False


def adapted(
    what: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any], Launch, Call | None]:
    """A call as one of a Kernel or an operation. Raises what the call itself would raise."""
    __tracebackhide__ = True
    call = None
    if not isinstance(what, str) or calls.is_source(what):
        call = calls.adapt(what, args, options)
        what, args, options = call.kernel, call.args, call.options
    launch = launch_of(what, args, options)
    if call is not None and call.sources is not None:
        launch = launch._replace(sources=call.sources)
    return what, args, options, launch, call


def _root(array: NDArray[Any]) -> NDArray[Any]:
    while type(array.base) is np.ndarray:
        array = array.base
    return array


def _copied(value: Any, roots: dict[int, Any]) -> Any:
    """Arrays, also in structs, with memory of their own; those that share memory still do."""
    if type(value) is tuple:
        return tuple(_copied(one, roots) for one in value)
    if type(value) is not np.ndarray or value.dtype.hasobject:
        return value
    root = _root(value)
    if not (root.flags.c_contiguous or root.flags.f_contiguous) or root.dtype.hasobject:
        return value.copy()
    if id(root) not in roots:
        whole = np.empty(max(root.nbytes, 1), np.uint8)
        whole[: root.nbytes] = root.reshape(-1, order="A").view(np.uint8)
        roots[id(root)] = (root, whole)
    at = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    made: NDArray[Any] = np.ndarray(
        value.shape, value.dtype, roots[id(root)][1], at if value.size else 0, value.strides
    )
    made.flags.writeable = value.flags.writeable
    return made


def _arrays(value: Any) -> list[NDArray[Any]]:
    if type(value) is tuple:
        return [array for one in value for array in _arrays(one)]
    return [_root(value)] if type(value) is np.ndarray else []


def bytes_of(args: tuple[Any, ...], options: dict[str, Any]) -> int:
    """The memory that a copy of the arguments' arrays takes."""
    roots = {id(array): array.nbytes for array in _arrays((*args, *options.values()))}
    return sum(roots.values())


def again(
    what: str | _core.Kernel,
    args: tuple[Any, ...],
    options: dict[str, Any],
    launch: Launch,
    call: Call | None,
    equal_writes: bool = False,
) -> Again:
    """The call, with copies. `call`: of a Kernel; None: an operation."""
    roots: dict[int, Any] = {}
    copies = tuple(_copied(one, roots) for one in args)
    own = {name: _copied(one, roots) for name, one in options.items()}
    if call is not None:
        return Again(what, copies, own, launch, call.names, call.numbers, call.values, equal_writes)
    assert isinstance(what, str)
    names = (*OPERANDS[what], "the result", "the workspace")
    return Again(what, copies, own, launch, names, None, (None,) * len(names), equal_writes)
