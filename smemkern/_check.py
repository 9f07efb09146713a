"""python -m smemkern check: run a kernel of a file on the emulator and say what is wrong with it.

    python -m smemkern check sum.cu --kernel sum --grid 4 --block 256 \\
        --arg 'f32[1024]=random' --arg 'f32[4]' --arg i32=1024

Arguments of the kernel, in order, each one of

    f32[64,64]           an array of zeros; also =random, =ones, =arange, =0.5 and so on
    i32=5                a number
    data.npy             an array from a file

with the types i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64. Exit status: 0 nothing found, 1 hazards,
2 the command or the kernel could not be understood.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np

from . import _core
from ._hazards import Hazard, place
from ._observe import trace

CLEAN, FOUND, USAGE = 0, 1, 2
_SPEC = re.compile(r"([iuf])(8|16|32|64)(?:\[([0-9,\s]+)\])?(?:=(.+))?")


class UsageError(ValueError):
    """Something in the command line that has no meaning."""


def argument(spec: str) -> object:
    """An array or a number out of its short form."""
    if spec.endswith(".npy"):
        try:
            return np.ascontiguousarray(np.load(spec))
        except (OSError, ValueError) as error:
            raise UsageError(f"--arg {spec}: {error}") from None
    found = _SPEC.fullmatch(spec.strip())
    if not found or (found[1], found[2]) == ("f", "8"):
        raise UsageError(
            f"--arg {spec}: write f32[1024], f32[64,64]=random, i32=5, or a file's name.npy"
        )
    dtype = np.dtype(f"{found[1]}{int(found[2]) // 8}")
    value = found[4] or "zeros"
    if found[3] is None:
        return _number(spec, dtype, value)
    shape = tuple(int(size) for size in found[3].replace(" ", "").split(",") if size)
    return _array(spec, dtype, shape, value)


def _number(spec: str, dtype: np.dtype, value: str) -> int | float:
    try:
        return float(value) if dtype.kind == "f" else int(value, 0)
    except ValueError:
        raise UsageError(f"--arg {spec}: a number takes its value, as in {spec[:3]}=5") from None


def _array(spec: str, dtype: np.dtype, shape: tuple[int, ...], value: str) -> np.ndarray:
    if value == "zeros":
        return np.zeros(shape, dtype)
    if value == "ones":
        return np.ones(shape, dtype)
    if value == "arange":
        return np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    if value == "random":
        rng = np.random.default_rng(0)
        if dtype.kind == "f":
            return rng.standard_normal(shape).astype(dtype)
        return rng.integers(0, 100, shape).astype(dtype)
    try:
        return np.full(shape, float(value)).astype(dtype)
    except ValueError:
        raise UsageError(
            f"--arg {spec}: {value!r} should be zeros, ones, arange, random or a number"
        ) from None


def extent(text: str) -> tuple[int, ...]:
    """ "4", "4,2" or "4x2x1"."""
    try:
        sizes = tuple(int(size) for size in re.split(r"[,x]", text))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3:
        raise argparse.ArgumentTypeError(f"{text!r}: write 4, or 4,2, or 4,2,1")
    return sizes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="CUDA C++ (.cu) or PTX (.ptx)")
    parser.add_argument("--kernel", help="its name; by default the only one of the file")
    parser.add_argument("--grid", type=extent, required=True, help="blocks: 4, or 4,2")
    parser.add_argument("--block", type=extent, required=True, help="threads of a block: 256")
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
    parser.add_argument(
        "--equal-writes", action="store_true", help="report races that write equal values, too"
    )


def run(chosen: argparse.Namespace) -> int:
    """The command; returns its exit status."""
    try:
        source = chosen.file.read_text()
        kernel = _core.Kernel(source, chosen.kernel, tuple(chosen.option))
        arguments = [argument(spec) for spec in chosen.arg]
        found = trace(
            kernel,
            chosen.grid,
            chosen.block,
            *arguments,
            shared_bytes=chosen.shared_bytes,
            equal_writes=chosen.equal_writes,
        )
    except (OSError, ValueError, TypeError, OverflowError, _core.Error) as error:
        print(f"smemkern check: {error}", file=sys.stderr)
        return USAGE
    for number, hazard in enumerate(found.hazards, 1):
        print(f"{number}. {hazard.message}")
        print(quote(hazard, chosen.file))
    if found.hazards:
        ended = " (the run ended there)" if found.incomplete else ""
        many = "1 hazard" if len(found.hazards) == 1 else f"{len(found.hazards)} hazards"
        print(f"{chosen.file}: kernel {kernel.name}: {many}{ended}")
        return FOUND
    print(f"{chosen.file}: kernel {kernel.name}: no hazards")
    return CLEAN


def quote(hazard: Hazard, file: Path) -> str:
    """The lines of the source that a hazard is about."""
    quoted = []
    pairs = {(hazard.file, hazard.line), (hazard.other_file, hazard.other_line)}
    for name, line in sorted(pairs, key=str):
        text = _line(name, line, file) if line else None
        if text is not None:
            quoted.append(f"     {place(name, line):>20} | {text}")
    return "\n".join(quoted) + "\n"


def _line(name: str | None, line: int, file: Path) -> str | None:
    """NVRTC calls the text of a file kernel.cu."""
    own = name is None or Path(name).name in ("kernel.cu", file.name)
    try:
        lines = (file if own else Path(str(name))).read_text().splitlines()
    except OSError:
        return None
    return lines[line - 1] if line <= len(lines) else None
