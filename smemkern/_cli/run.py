"""python -m smemkern run: a CUDA program, with the emulator in place of driver and GPU."""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .. import _core
from .._device.emulated import EmulatedDevice, emulated_device, names
from .._render.document import Paragraph
from .._reports import formats
from .._reports.suppressions import Suppressions, text_of
from .._trace import program
from . import common, results, run_report
from .common import Answer

SUMMARY = "run a CUDA program on a machine with no GPU, and look for races"
ABOUT = """\
Runs a program as it is, with an emulator in place of the CUDA driver. Then reports for each
kernel its races and other hazards, its bank conflicts line by line, and what it moved; and for
the host uses of freed memory, copies out of bounds and memory that is never freed. The program
needs PTX, which nvcc keeps by default. The exit status is the program's own, or that of
--error-exitcode."""
EXAMPLES = (
    (
        "run --error-exitcode 1 ./sum",
        """\
sum: 1 launch at sum.cu:20, grid (4, 1, 1), block (256, 1, 1)

1. RAW race, shared part[1]: sum.cu:10 reads it in block (0, 0, 0)
   thread (0, 0, 0), ...
...
1 kernel, 1 launch: 1 hazard, 0 wrong calls, 0 unsupported calls, 1 leak""",
    ),
)
NEXT = (
    "docs/run.md: from a source to a found race in three commands; check and trace: one kernel "
    "with arguments from the command line."
)
FOUND = ""

_DRIVER = Path(_core.__file__).parent / "driver" / "libcuda.so.1"
_PYTHON_HOOKS = Path(__file__).resolve().parent.parent / "_python_hooks"
STDERR = 2  # the descriptor
_CHECKS = {"counts": 1, "hazards": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="the program; one in this folder is ./NAME")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    gpu = parser.add_argument(
        "--gpu", default="h100", metavar="NAME", help="the GPU that it sees (default: h100)"
    )
    common.completed(gpu, lambda **_: names())
    parser.add_argument(
        "--kernel",
        metavar="REGEX",
        default="",
        type=_expression,
        help="examine only these kernels: a POSIX extended expression, searched in the name as C++ "
        "writes it and in the mangled one",
    )
    parser.add_argument(
        "--launches",
        type=_positive,
        default=0,
        metavar="N",
        help="examine only the first N launches of each kernel; the others run faster",
    )
    parser.add_argument(
        "--sample",
        type=_positive,
        default=0,
        metavar="N",
        help="examine N blocks of each launch; all blocks run",
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="of the draw of these blocks"
    )
    parser.add_argument(
        "--shuffle",
        type=_seed,
        metavar="SEED",
        help="run work of streams when the program waits for it, in one of the orders that CUDA "
        "allows: shows missing waits",
    )
    parser.add_argument("--counts-only", action="store_true", help="do not look for hazards")
    parser.add_argument(
        "--error-exitcode",
        type=_positive,
        default=0,
        metavar="N",
        help="the exit status if something wrong was found",
    )
    parser.add_argument(
        "--suppressions",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="leave out findings that a rule in this file matches",
    )
    parser.add_argument(
        "--gen-suppressions", metavar="FILE", type=Path, help="write rules for all that was found"
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="write an HTML page")
    results.add_limit(parser)
    formats.add_arguments(parser)


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if not 1 <= value < 2**31:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, found {text!r}")
    return value


def _seed(text: str) -> int:
    value = int(text) if text.isdigit() else -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, found {text!r}")
    return value


def _expression(text: str) -> str:
    """A POSIX extended expression, as the driver compiles it."""
    extended, size = 1, 256
    library = ctypes.CDLL(None)
    compiled, message = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    code = library.regcomp(compiled, text.encode(), extended)
    if code:
        library.regerror(code, compiled, message, size)
        raise argparse.ArgumentTypeError(f"{text!r}: {message.value.decode()}")
    library.regfree(compiled)
    return text


def run(chosen: argparse.Namespace) -> Answer:
    started = time.perf_counter()
    gpu = emulated_device(chosen.gpu)
    words = _words(chosen)
    suppressions = Suppressions(chosen.suppressions)
    with tempfile.TemporaryDirectory(prefix="smemkern-run-") as folder:
        records = Path(folder, "records")
        records.touch()
        for name in ("libcuda.so.1", "libcuda.so"):  # some programs open the second
            Path(folder, name).symlink_to(_DRIVER)
        own = status = _start(words, _environment(chosen, gpu, records), chosen)
        found = program.read(records, suppressions)
    if chosen.gen_suppressions:
        chosen.gen_suppressions.write_text(text_of(found.known()), encoding="utf-8")
    if chosen.html:
        chosen.html.write_text(run_report.page(found), encoding="utf-8")
    cases = run_report.cases(found, chosen, time.perf_counter() - started)
    wrong = any(case.errors for case in cases)
    if wrong and chosen.error_exitcode:
        status = chosen.error_exitcode
    nodes = list(run_report.nodes(found, suppressions, chosen, own))
    written = filter(None, (chosen.gen_suppressions, chosen.html))
    nodes += [Paragraph(f"wrote {file}") for file in written]
    data = run_report.data(found, suppressions, gpu, words, status, chosen)
    return Answer(data, nodes, status, cases)


# ---- the program ----


def _words(chosen: argparse.Namespace) -> list[str]:
    """The program's path and its arguments."""
    words = [chosen.program, *chosen.arguments]
    if words[0] == "--":
        words = words[1:]
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise ValueError(
            f"{words[0] if words else ''!r} is no program; write ./NAME for one in this folder"
        )
    return [path, *words[1:]]


def _environment(chosen: argparse.Namespace, gpu: EmulatedDevice, records: Path) -> dict[str, str]:
    if not _DRIVER.is_file():
        raise FileNotFoundError(2, "the emulator's driver was not built", str(_DRIVER))
    folder = records.parent
    return {
        **os.environ,
        "LD_LIBRARY_PATH": _before("LD_LIBRARY_PATH", folder),
        **_for_python(folder),
        "SMEMKERN_RUN_FILE": str(records),
        "SMEMKERN_RUN_DEVICE": gpu.described(),
        "SMEMKERN_RUN_CHECK": str(_CHECKS["counts" if chosen.counts_only else "hazards"]),
        "SMEMKERN_RUN_KERNEL": chosen.kernel,
        "SMEMKERN_RUN_LAUNCHES": str(chosen.launches),
        "SMEMKERN_RUN_SAMPLE": str(chosen.sample),
        "SMEMKERN_RUN_SEED": str(chosen.seed),
        "SMEMKERN_RUN_SHUFFLE": "" if chosen.shuffle is None else str(chosen.shuffle),
    }


def _before(variable: str, folder: Path) -> str:
    """A list of folders of the environment, with another one before them."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get(variable)]))


def _for_python(folder: Path) -> dict[str, str]:
    """Makes packages hand over PTX in place of machine code; see sitecustomize.py."""
    return {
        "PYTHONPATH": _before("PYTHONPATH", _PYTHON_HOOKS),
        "CUPY_COMPILE_WITH_PTX": "1",
        "CUPY_CACHE_IN_MEMORY": "1",
        "CUPY_ACCELERATORS": "",  # CuPy's own reductions: it has no PTX of CUB's for this GPU
        "TRITON_LIBCUDA_PATH": str(folder),
    }


def _start(words: list[str], environment: dict[str, str], chosen: argparse.Namespace) -> int:
    """Runs the program to its end. Ctrl-C and SIGTERM end it alone, so that the report follows.

    What it prints is kept out of a report on standard output.
    """
    out = STDERR if formats.printed_as(chosen) != "text" else None
    sys.stdout.flush()
    before = [signal.signal(signal.SIGINT, lambda *_: None)]
    try:
        started = subprocess.Popen(words, env=environment, stdout=out)
        before.append(signal.signal(signal.SIGTERM, lambda *_: started.terminate()))
        status = started.wait()
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=False):
            signal.signal(number, handler)
    if out is None:
        print()  # what the program printed may have ended within a line
    return status if status >= 0 else 128 - status
