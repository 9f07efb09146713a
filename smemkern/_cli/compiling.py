"""Options that every command has which compiles or runs a kernel of a file."""

from __future__ import annotations

import argparse
import re
from typing import Any


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


def add_limits(
    parser: argparse._ActionsContainer,
    timeout: float | None = None,
    max_instructions: int | None = None,
) -> None:
    """Limits of a run, and their defaults."""
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=timeout,
        metavar="S",
        help="stop after S seconds" + (f" ({timeout:g})" if timeout else ""),
    )
    parser.add_argument(
        "--max-instructions",
        type=_count,
        default=max_instructions,
        metavar="N",
        help="stop after N warp instructions, for kernels that may never end"
        + (f" ({max_instructions:,})" if max_instructions else ""),
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
