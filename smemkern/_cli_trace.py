"""python -m smemkern trace: counts of a variant, or of a kernel in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from . import _argspec, _core

OPERATIONS = ("gemm", "transpose", "probe")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What trace and profile share: which call it is."""
    parser.add_argument("what", help=f"{', '.join(OPERATIONS)}, or a file of CUDA C++ or PTX")
    parser.add_argument("--shape", type=int, nargs="+", help="gemm: M N K; transpose: rows cols")
    parser.add_argument("--variant", help="of the operation")
    parser.add_argument("--dtype", default="float32", help="of random data (float32)")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=INT", help="of the variant: tile=16"
    )
    add_kernel_arguments(parser.add_argument_group("of a kernel in a file"), required=False)


def add_kernel_arguments(parser: argparse._ActionsContainer, *, required: bool) -> None:
    """What makes a launch of a kernel in a file."""
    parser.add_argument("--kernel", help="its name; by default the only one of the file")
    for name, what in (("--grid", "blocks: 4, or 4,2"), ("--block", "threads of a block: 256")):
        parser.add_argument(name, type=_argspec.extent, required=required, help=what)
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="an argument of the kernel: f32[1024], f32[64,64]=random, i32=5, file.npy",
    )
    parser.add_argument("--shared-bytes", type=int, default=0, help="dynamic shared memory")
    parser.add_argument(
        "--option", action="append", default=[], help="for the compiler: --option=-DTILE=32"
    )


def call_of(chosen: argparse.Namespace) -> tuple[str | _core.Kernel, list[Any], dict[str, Any]]:
    """What to trace, its arguments and keywords.

    Raises
    ------
    ValueError, OSError, smemkern.Error
        With what is wrong about the command line.
    """
    if chosen.what in OPERATIONS:
        return _operation(chosen)
    path = Path(chosen.what)
    if not path.suffix:
        raise ValueError(f"{chosen.what!r} is none of {', '.join(OPERATIONS)}, and no file")
    if chosen.grid is None or chosen.block is None:
        raise ValueError("a kernel in a file needs --grid and --block")
    return kernel_call(path, chosen)


def kernel_call(
    path: Path, chosen: argparse.Namespace
) -> tuple[_core.Kernel, list[Any], dict[str, Any]]:
    """The same of a kernel in a file, whose arguments are add_kernel_arguments'."""
    kernel = _core.Kernel(path.read_text(encoding="utf-8"), chosen.kernel, tuple(chosen.option))
    args = [chosen.grid, chosen.block, *_argspec.arguments(chosen.arg)]
    return kernel, args, {"shared_bytes": chosen.shared_bytes}


def _operation(chosen: argparse.Namespace) -> tuple[str, list[Any], dict[str, Any]]:
    lengths = {"gemm": 3, "transpose": 2, "probe": 1}[chosen.what]
    shape = (
        chosen.shape or {"gemm": [64, 64, 64], "transpose": [64, 64], "probe": [4096]}[chosen.what]
    )
    if len(shape) != lengths or min(shape) < 0:
        raise ValueError(f"--shape of {chosen.what} is {lengths} lengths, not {shape}")
    rng = np.random.default_rng(0)
    shapes = (
        [(shape[0], shape[2]), (shape[2], shape[1])] if chosen.what == "gemm" else [tuple(shape)]
    )
    dtype = np.dtype(chosen.dtype)
    args = [rng.standard_normal(one).astype(dtype) for one in shapes]
    keywords: dict[str, Any] = {"variant": chosen.variant} if chosen.variant else {}
    for param in chosen.param:
        name, _, value = param.partition("=")
        try:
            keywords[name] = int(value)
        except ValueError:
            raise ValueError(f"--param {param}: NAME=INT is wanted, as in tile=16") from None
    return chosen.what, args, keywords


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("trace", help="count what the hardware would count, line by line")
    add_arguments(parser)
    parser.add_argument("--blocks", type=int, help="run only the first so many blocks")
    parser.add_argument("--annotate", action="store_true", help="print the source with its counts")
    parser.add_argument("--html", metavar="FILE", help="write a page")


def run(chosen: argparse.Namespace) -> int:
    from ._observe import trace

    try:
        what, args, keywords = call_of(chosen)
        found = trace(what, *args, blocks=chosen.blocks, **keywords)
        print(found.annotate() if chosen.annotate else found)
        if chosen.html:
            found.to_html(chosen.html)
    except (OSError, ValueError, TypeError, OverflowError, _core.Error) as error:
        print(f"smemkern trace: {error}", file=sys.stderr)
        return 2
    return 0
