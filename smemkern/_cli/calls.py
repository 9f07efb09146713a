"""The arguments of commands that specify a call: of an operation, or of a kernel in a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from .._compiler import parameters
from .._compiler.kernel_file import SUFFIXES, kernel_in
from .._trace import argspec
from . import common, compiling

OPERATIONS = ("gemm", "transpose", "probe")


def add_call(parser: argparse.ArgumentParser) -> None:
    """The arguments of trace and profile that specify a call."""
    what = parser.add_argument(
        "what", help=f"{', '.join(OPERATIONS)}, or a file of CUDA C++ or PTX"
    )
    common.completed(what, _callable)
    parser.add_argument(
        "--shape", type=int, nargs="+", metavar="N", help="gemm: M N K; transpose: rows cols"
    )
    variant = parser.add_argument("--variant", metavar="NAME", help='variant ("auto")')
    common.completed(variant, common.variant_names)
    parser.add_argument(
        "--dtype", default="float32", metavar="NAME", help="type of the random data (float32)"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=INT",
        help="a parameter of the variant: tile=16",
    )
    add_kernel_arguments(parser.add_argument_group("for a kernel in a file"), required=False)


def _callable(prefix: str, **_: Any) -> list[str]:
    return [*OPERATIONS, *kernel_files(prefix)]


def kernel_files(prefix: str, **_: Any) -> list[str]:
    from argcomplete.completers import FilesCompleter

    return [*FilesCompleter(SUFFIXES)(prefix)]


def add_kernel_arguments(parser: argparse._ActionsContainer, *, required: bool) -> None:
    """The arguments that specify a launch of a kernel in a file."""
    parser.add_argument(
        "--kernel", metavar="NAME", help="its name (default: the only kernel of the file)"
    )
    for name, what in (("--grid", "blocks: 4, or 4,2"), ("--block", "threads per block: 256")):
        parser.add_argument(name, type=_extent, required=required, metavar="X[,Y[,Z]]", help=what)
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="an argument of the kernel: f32[1024], f32[64,64]=random, 5, i32=5, file.npy, "
        "{5,f32[64]} (a struct), tensor{f32[64,64],box=16x32} (a tensor map)",
    )
    parser.add_argument(
        "--shared-bytes", type=int, default=0, metavar="N", help="dynamic shared memory (0)"
    )
    parser.add_argument(
        "--cluster", type=_extent, metavar="X[,Y[,Z]]", help="blocks per cluster: 2, or 2,2"
    )
    parser.add_argument(
        "--cooperative", action="store_true", help="all blocks are resident at the same time"
    )
    compiling.add_compile_options(parser)
    compiling.add_limits(parser)


def _extent(text: str) -> tuple[int, ...]:
    try:
        return argspec.extent(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def call_of(chosen: argparse.Namespace) -> tuple[str | _core.Kernel, list[Any], dict[str, Any]]:
    """The operation or Kernel of the command line, its arguments and keywords.

    Raises
    ------
    ValueError, OSError, smemkern.Error
        If the command line, a file or a kernel is invalid.
    """
    if chosen.what in OPERATIONS:
        return _operation(chosen)
    path = Path(chosen.what)
    if not path.suffix:
        raise ValueError(
            f"expected {', '.join(OPERATIONS)}, or a .cu or .ptx file; found {chosen.what!r}"
        )
    if chosen.grid is None or chosen.block is None:
        raise ValueError("a kernel in a file needs --grid and --block")
    return kernel_call(path, chosen)


def kernel_call(
    path: Path, chosen: argparse.Namespace
) -> tuple[_core.Kernel, list[Any], dict[str, Any]]:
    """The Kernel of a file, with its arguments and keywords, from add_kernel_arguments()."""
    kernel = kernel_in(path, chosen.kernel, compiling.options(chosen))
    given = argspec.arguments(chosen.arg)
    if wrong := parameters.number_for_pointer(kernel, given):
        raise ValueError(wrong)
    args = [chosen.grid, chosen.block, *given]
    launch = {
        "shared_bytes": chosen.shared_bytes,
        "cluster": chosen.cluster,
        "cooperative": chosen.cooperative,
        **compiling.limits(chosen),
    }
    return kernel, args, launch


def _operation(chosen: argparse.Namespace) -> tuple[str, list[Any], dict[str, Any]]:
    lengths = {"gemm": 3, "transpose": 2, "probe": 1}[chosen.what]
    shape = (
        chosen.shape or {"gemm": [64, 64, 64], "transpose": [64, 64], "probe": [4096]}[chosen.what]
    )
    if len(shape) != lengths or min(shape) < 0:
        raise ValueError(f"--shape of {chosen.what} should be {lengths} lengths, not {shape}")
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
            raise ValueError(f"--param should be NAME=INT, such as tile=16, not {param}") from None
    return chosen.what, args, keywords
