"""What smemkern.judge returns: a verdict, its problems, and what both kernels cost."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from .._render.document import Node, Paragraph, Table, as_text, in_notebook
from .._render.table import Cell, Right
from .._trace.hazards import Hazard
from .._trace.observe import Trace

WRONG, RACY, UNWRITTEN, CLEAN = "wrong", "racy", "reads unwritten memory", "clean"
# The first that applies is the verdict. A race or a read of unwritten memory comes before the wrong
# results that it causes.
VERDICTS = (RACY, UNWRITTEN, WRONG, CLEAN)


class Problem(NamedTuple):
    """What is wrong with the candidate, at its first occurrence."""

    verdict: str
    rule: str  # "wrong-result", "no-end", "error", or a hazard's kind
    message: str
    case: str  # the first input case
    argument: int | None = None
    element: tuple[int, ...] | None = None
    expected: float | int | None = None
    found: float | int | None = None
    hazard: Hazard | None = None

    def as_wrong(self) -> Problem:
        """The same problem as a wrong result."""
        return self._replace(verdict=WRONG, rule="wrong-result")

    @property
    def inputs(self) -> str:
        """The case, to add to a message."""
        return f" [{self.case}]" if self.case else ""


class JudgedCase(NamedTuple):
    """An input case and how it went."""

    name: str
    verdict: str  # one of VERDICTS, or "skipped"
    reason: str = ""  # why it was skipped


class Counts(NamedTuple):
    """What a kernel costs, in the case of the first sizes with random contents."""

    requests: int
    wavefronts: int
    sectors: int
    conflict_factor: float  # the largest of any line
    warp_instructions: int
    registers: int  # estimated from the PTX, per thread
    shared_bytes: int  # per block


class Judgement:
    """The verdict on a candidate.

    Attributes
    ----------
    verdict : str
        "racy", "reads unwritten memory", "wrong" or "clean": the first of these that applies.
    problems : list of Problem
    cases : list of JudgedCase
    reference, candidate : Counts or None
        None for a reference in Python, and for a candidate that does not run.
    seed : int
        Makes the same inputs again.
    """

    def __init__(
        self,
        problems: list[Problem],
        judged: list[JudgedCase],
        counts: tuple[Counts | None, Counts | None],
        seed: int,
    ) -> None:
        self.problems, self.cases, self.seed = problems, judged, seed
        self.reference, self.candidate = counts
        found = {problem.verdict for problem in problems}
        self.verdict = next((one for one in VERDICTS if one in found), CLEAN)

    def _nodes(self) -> list[Node]:
        good = self.verdict == CLEAN
        nodes: list[Node] = [Paragraph(f"verdict: {self.verdict}", "good" if good else "bad")]
        nodes += [
            Paragraph(f"{number}. {one.verdict}: {one.message}{one.inputs}", "bad")
            for number, one in enumerate(self.problems, 1)
        ]
        if self.candidate:
            nodes.append(self._table())
        skipped = [one for one in self.cases if one.verdict == "skipped"]
        count = len(self.cases) - len(skipped)
        told = f"{count} case{'s' * (count != 1)}, seed {self.seed}"
        lines = [told, *(f"skipped: {one.name}: {one.reason}" for one in skipped)]
        return [*nodes, Paragraph("\n".join(lines))]

    def _table(self) -> Table:
        assert self.candidate is not None
        none = (None,) * len(Counts._fields)
        pairs = zip(self.reference or none, self.candidate, strict=True)
        rows = [
            (name.replace("_", " "), _number(one), _number(other))
            for name, (one, other) in zip(Counts._fields, pairs, strict=True)
        ]
        return Table(("", "reference", "candidate"), rows)

    __repr__ = as_text
    _repr_html_ = in_notebook


def _number(value: float | int | None) -> Cell:
    if value is None:
        return Right("-")
    return Right(f"{value:.2f}" if isinstance(value, float) else str(value))


def counts_of(kernel: _core.Kernel, trace: Trace | None) -> Counts | None:
    if trace is None:
        return None
    return Counts(
        trace.shared_requests,
        trace.shared_wavefronts,
        sum(row.sectors for row in trace.global_),
        max((row.factor for row in trace.shared), default=1.0),
        trace.warp_instructions,
        kernel.live_registers,
        trace.launch.shared_bytes,
    )
