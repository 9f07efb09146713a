"""python -m smemkern judge: a candidate kernel against a reference, on adversarial inputs."""

from __future__ import annotations

import argparse
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._judge.inputs import VALUES
from .._judge.judge import Judgement, judge
from .._judge.judgement import CLEAN, Problem
from .._reports import findings, formats
from . import calls, common, compiling, results
from .common import Answer

SUMMARY = "compare a kernel with a reference on adversarial inputs"
ABOUT = """\
Runs two kernels on the emulator on the same inputs: random numbers, zeros, NaNs, infinities,
subnormal, large and cancelling numbers, odd sizes, arguments that are one array. Prints a
verdict on the second: wrong, racy, reads unwritten memory, or clean. Below it are the
first wrong element of each kind with its input case, and the counts of both kernels. The
candidate may be untrusted: it runs on the emulator only, with limits, and outputs hold
new random bits before each run."""
EXAMPLES = (
    (
        "judge ref.cu sum.cu --grid 'cdiv(n,256)' --block 256 --size n=1000 --arg 'f32[n]=random' "
        "--arg 'f32[cdiv(n,256)]' --arg i32=n",
        """\
verdict: racy

1. racy: RAW race, shared part[...]: ...
...
                   reference  candidate
requests...
...""",
    ),
)
NEXT = (
    "docs/judge.md: what each verdict means, tolerances, a reference in Python; check: hazards of "
    "one kernel. In Python: smemkern.judge."
)
FOUND = "the verdict is not clean"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    reference = parser.add_argument(
        "reference", help="a .cu or .ptx file, or file.py:function on NumPy arrays"
    )
    candidate = parser.add_argument("file", metavar="candidate", type=Path, help=".cu or .ptx file")
    for action in (reference, candidate):
        common.completed(action, calls.kernel_files)
    _add_launch(parser.add_argument_group("launch; N may be an expression of sizes: cdiv(n,256)"))
    _add_inputs(parser.add_argument_group("inputs and tolerance"))
    formats.add_arguments(parser)


def _add_launch(group: argparse._ActionsContainer) -> None:
    group.add_argument("--grid", required=True, metavar="N[,N[,N]]", help="blocks")
    group.add_argument("--block", required=True, metavar="N[,N[,N]]", help="threads per block")
    group.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="f32[n]=random, i32[n]=random(0,m): inputs; f32[n]: output; i32=n; as in check",
    )
    group.add_argument("--kernel", metavar="NAME", help="the candidate (default: the only kernel)")
    group.add_argument("--shared-bytes", default="0", metavar="N", help="dynamic shared memory (0)")
    group.add_argument("--cluster", metavar="N[,N[,N]]", help="blocks per cluster")
    group.add_argument("--cooperative", action="store_true", help="all blocks are resident")
    compiling.add_compile_options(group)
    for name in ("kernel", "grid", "block", "shared-bytes"):
        group.add_argument(f"--reference-{name}", metavar="X", help="if the reference's differs")


def _add_inputs(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="a size: n=1000"
    )
    group.add_argument("--no-odd-sizes", action="store_true", help="only the sizes of --size")
    group.add_argument(
        "--values", type=_values, default=VALUES, metavar="LIST", help=f"some of {','.join(VALUES)}"
    )
    group.add_argument("--no-aliasing", action="store_true", help="never one array twice")
    group.add_argument("--rtol", type=float, metavar="X", help="relative tolerance (by type)")
    group.add_argument("--atol", type=float, metavar="X", help="absolute tolerance (by the inputs)")
    group.add_argument("--equal-bits", action="store_true", help="no tolerance")
    group.add_argument("--seed", type=int, metavar="N", help="of the inputs (new in each run)")
    compiling.add_limits(group, timeout=20.0, max_instructions=10**9)


def _values(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def run(chosen: argparse.Namespace) -> Answer:
    started = time.perf_counter()
    with formats.quoting():  # what a candidate prints is no part of the verdict
        found = _judged(chosen)
    case = _case(found, chosen, time.perf_counter() - started)
    status = common.FINE if found.verdict == CLEAN else common.FOUND
    return Answer(_data(found, chosen), found._nodes(), status, [case])


def _judged(chosen: argparse.Namespace) -> Judgement:
    return judge(
        _reference(chosen.reference),
        chosen.file,
        chosen.arg,
        grid=chosen.grid,
        block=chosen.block,
        sizes=dict(map(_size, chosen.size)),
        odd=not chosen.no_odd_sizes,
        values=chosen.values,
        aliasing=False if chosen.no_aliasing else None,
        rtol=chosen.rtol,
        atol=chosen.atol,
        equal_bits=chosen.equal_bits,
        shared_bytes=chosen.shared_bytes,
        cluster=chosen.cluster,
        cooperative=chosen.cooperative,
        reference_launch=_reference_launch(chosen),
        name=chosen.kernel,
        reference_name=chosen.reference_kernel,
        options=compiling.options(chosen),
        timeout=chosen.timeout,
        max_instructions=chosen.max_instructions,
        seed=chosen.seed,
    )


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.isdecimal() or int(value) < 1:
        raise ValueError(f"--size should be NAME=N, such as n=1000, not {text}")
    return name, int(value)


def _reference(text: str) -> Path | Callable[..., Any]:
    """A file of a kernel, or a function of a Python file."""
    file, colon, name = text.rpartition(":")
    if not colon or not file.endswith(".py"):
        if text.endswith(".py"):
            raise ValueError(f"{text}: which function? pass {text}:NAME")
        return Path(text)
    names = runpy.run_path(file)
    if not callable(names.get(name)):
        raise ValueError(f"{file} has no function {name!r}")
    return names[name]


def _reference_launch(chosen: argparse.Namespace) -> dict[str, Any]:
    given = {
        "grid": chosen.reference_grid,
        "block": chosen.reference_block,
        "shared_bytes": chosen.reference_shared_bytes,
    }
    return {name: value for name, value in given.items() if value is not None}


def _case(found: Judgement, chosen: argparse.Namespace, seconds: float) -> findings.Case:
    sources = findings.Sources(chosen.file, compiling.options(chosen))
    listed = [finding for problem in found.problems for finding in _of_problem(problem, sources)]
    name = f"judge {chosen.file.name} by {Path(chosen.reference).name}"
    return findings.Case(name, findings.shown(chosen.file), 1, listed, seconds)


def _of_problem(problem: Problem, sources: findings.Sources) -> list[findings.Finding]:
    if problem.hazard:
        listed = [findings.of_hazard(problem.hazard, sources)]
    elif problem.rule == "error":
        listed = findings.of_error(problem.message, sources)
    else:
        place = sources.find(None, None)
        listed = [findings.Finding(problem.rule, problem.message, place)]
    return [
        one._replace(
            message=f"{problem.verdict}: {one.message}{problem.inputs}", rule=_rule(one.rule)
        )
        for one in listed
    ]


def _rule(rule: str) -> str:
    """A candidate that does not run is a finding, and no error of the command."""
    return "does-not-run" if rule == "error" else rule


def _data(found: Judgement, chosen: argparse.Namespace) -> dict[str, Any]:
    keys = "verdict", "rule", "message", "case", "argument", "element", "expected", "found"
    return {
        "reference": chosen.reference,
        "candidate": str(chosen.file),
        "verdict": found.verdict,
        "seed": found.seed,
        "problems": [
            {key: getattr(one, key) for key in keys}
            | {"hazard": one.hazard and results.hazard_data(one.hazard)}
            for one in found.problems
        ],
        "cases": [one._asdict() for one in found.cases],
        "counts": {"reference": found.reference, "candidate": found.candidate},
    }
