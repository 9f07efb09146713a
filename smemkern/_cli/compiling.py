"""Options that every command has which compiles or runs a kernel of a file."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from .. import _core
from . import common

SUFFIXES = ("cu", "cuh", "ptx")


def add_compile_options(parser: argparse._ActionsContainer, *, arch: bool = True) -> None:
    """Options of compilers. `arch`: also --arch, which some commands have for another purpose."""
    parser.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR", help="folder of headers"
    )
    parser.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME[=X]", help="a macro"
    )
    parser.add_argument("--std", metavar="NAME", help="C++ standard: c++14, c++17, c++20")
    if arch:
        parser.add_argument("--arch", metavar="NAME", help="compile for sm_90a, ... (sm_80)")
    parser.add_argument(
        "-G", dest="debug", action="store_true", help="compile as written, without optimising"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        help="another compiler option: --option=--fmad=false",
    )


def add_limits(parser: argparse._ActionsContainer) -> None:
    """Limits of a run."""
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--max-instructions",
        type=_count,
        metavar="N",
        help="stop after N warp instructions, for kernels that may never end",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, found {text!r}")
    return value


def _count(text: str) -> int:
    try:
        value = int(float(text)) if re.fullmatch(r"\d+e\d{1,2}", text) else int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, found {text!r}")
    return value


def options(chosen: argparse.Namespace, *, arch: bool = True) -> tuple[str, ...]:
    """The compiler options of the command line."""
    found = [f"-I{folder}" for folder in chosen.include]
    found += [f"-D{macro}" for macro in chosen.define]
    if chosen.std:
        found.append(f"--std={chosen.std}")
    if arch and chosen.arch:
        name = re.fullmatch(r"(?:sm_|compute_)?(\d{2,3}[af]?)", chosen.arch)
        if name is None:
            raise ValueError(f"--arch should be like sm_90a, not {chosen.arch}")
        found.append(f"-arch=compute_{name[1]}")
    if chosen.debug:
        found.append("--device-debug")
    return (*found, *chosen.option)


def limits(chosen: argparse.Namespace) -> dict[str, Any]:
    """The limits of the command line, as keywords of a call."""
    named = {"timeout": chosen.timeout, "max_instructions": chosen.max_instructions}
    return {name: value for name, value in named.items() if value is not None}


def kernel_in(path: Path, name: str | None, given: tuple[str, ...]) -> _core.Kernel:
    """A Kernel of a file."""
    from .._compiler.compile import can_compile

    path.open("rb").close()  # the error of a missing file comes first
    if path.suffix == ".ptx":
        if given:
            raise ValueError(f"{given[0]} needs CUDA C++; a .ptx file is run as it is")
    elif not can_compile():
        raise common.Missing(
            "compiling CUDA C++ needs NVRTC, which is not installed: pip install '.[nvrtc]' in the "
            "clone; or nvcc on PATH; or pass a PTX file, made by nvcc -ptx"
        )
    return _core.Kernel(path, name, given)
