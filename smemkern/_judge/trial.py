"""Runs both kernels on each case, and collects what is wrong with the candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .compare import Compared, untouched
from .inputs import Array, Case, Template, arguments, poison
from .judgement import (
    CLEAN,
    RACY,
    UNWRITTEN,
    VERDICTS,
    WRONG,
    Counts,
    JudgedCase,
    Judgement,
    Problem,
    counts_of,
)
from .runs import FunctionSide, KernelSide, Outcome
from .tolerance import Tolerance, largest_finite, unequal

_KINDS = {
    **dict.fromkeys(("uninitialised", "unwritten"), UNWRITTEN),
    **dict.fromkeys(("out-of-bounds", "misaligned", "deadlock", "shared-limit"), WRONG),
}  # of hazards; all others are races
_ALIAS, _MOVED = 1 << 40, 1 << 41  # numbers of inputs that are no case


class Runs(NamedTuple):
    """Two runs of one side on equal inputs; the outputs held different bits before."""

    first: Outcome
    second: Outcome


class Unfit(Exception):
    """The reference does not support a case; the message says why."""


class Trial:
    """Both kernels and what they are judged by."""

    def __init__(
        self,
        reference: KernelSide | FunctionSide,
        candidate: KernelSide,
        templates: Sequence[Template],
        tolerance: Tolerance,
        seed: int,
    ) -> None:
        self.reference, self.candidate = reference, candidate
        self.templates, self.tolerance, self.seed = templates, tolerance, seed
        self.counts: tuple[Counts | None, Counts | None] = (None, None)

    def judge(self, planned: Sequence[Case]) -> Judgement:
        problems: dict[tuple[object, ...], Problem] = {}
        judged = []
        for number, case in enumerate(planned):
            if case.aliased and problems:
                continue  # a kernel that is wrong apart says nothing new
            try:
                found = list(self._problems(case, number))
            except Unfit as why:
                if number == 0:
                    raise ValueError(f"{why} [{case.name}]") from why.__cause__
                judged.append(JudgedCase(case.name, "skipped", str(why)))
                continue
            for one in found:
                hazard = one.hazard
                at = hazard and (hazard.kind, hazard.file, hazard.line, hazard.other_line)
                problems.setdefault((one.verdict, one.rule, one.argument, at), one)
            verdicts = {one.verdict for one in found}
            judged.append(
                JudgedCase(case.name, next((v for v in VERDICTS if v in verdicts), CLEAN))
            )
            if any(one.rule == "no-end" for one in found):
                break  # each further case could take as long
        return Judgement(list(problems.values()), judged, self.counts, self.seed)

    # ---- one case

    def _problems(self, case: Case, number: int) -> Iterator[Problem]:
        given, outputs = arguments(self.templates, case, np.random.default_rng((self.seed, number)))
        poisons = [self._poisoned(given, outputs, nans) for nans in (True, False)]
        expected = Runs(*(self._reference(case, one, outputs) for one in poisons))
        self._check_reference(case, expected, poisons, outputs)
        found = Runs(
            *(
                self.candidate.run(_copies(one), case.sizes, at == 0)
                for at, one in enumerate(poisons)
            )
        )
        if number == 0:
            self._remember(expected, found)
        failures = list(_failures(case, found))
        yield from failures
        if not any(run.failure for run in found):
            scale = largest_finite([one for one in given if isinstance(one, np.ndarray)])
            moved = self._moved(case, poisons[0], outputs)
            different = self._differences(case, (expected, found), poisons, moved, scale)
            # Two runs of a racy kernel differ without reading unwritten memory.
            racy = any(one.verdict == RACY for one in failures)
            yield from (one.as_wrong() if racy else one for one in different)

    def _poisoned(self, given: Sequence[Any], outputs: Sequence[bool], nans: bool) -> list[Any]:
        """The arguments, with random bits in the outputs that no candidate can know."""
        rng = np.random.default_rng()
        return [poison(a, rng, nans) if out else a for a, out in zip(given, outputs, strict=True)]

    def _reference(self, case: Case, given: Sequence[Any], outputs: Sequence[bool]) -> Outcome:
        args = _copies(given)
        if isinstance(self.reference, FunctionSide):
            try:
                return self.reference.run(args, outputs)
            except Exception as error:
                raise Unfit(f"the reference raises {type(error).__name__}: {error}") from error
        return self.reference.run(args, case.sizes, True)

    def _check_reference(
        self,
        case: Case,
        runs: Runs,
        poisons: Sequence[Sequence[Any]],
        outputs: Sequence[bool],
    ) -> None:
        for run in runs:
            if run.failure:
                raise Unfit(f"the reference fails: {run.failure}")
            if run.trace and run.trace.hazards:
                raise Unfit(f"the reference has a hazard: {run.trace.hazards[0].message}")
        for at, is_output in enumerate(outputs):
            one, other = runs.first.arrays[at], runs.second.arrays[at]
            if one is None or other is None:
                continue
            kept = untouched(one, other, poisons[0][at], poisons[1][at])
            wrong = self.tolerance.wrong(one, other, self._jitter(one)) & ~kept
            if wrong.any():
                read = "it reads the array before it writes it (then give it a content, such as "
                read = f"{read}=random), or " if is_output else ""
                raise Unfit(
                    f"two runs of the reference differ in argument {at}: {read}its result depends "
                    "on the order of its threads"
                )
        if case.aliased:
            second = case.aliased[1]
            if self.templates[second].is_output and not self._as_apart(case):
                raise Unfit(
                    "the reference gives another result when these arguments are the same array"
                )

    def _as_apart(self, case: Case) -> bool:
        """Whether the reference gives the result that it gives for two arrays."""
        assert case.aliased is not None
        first, second = case.aliased
        rng = np.random.default_rng((self.seed, _ALIAS))
        given, outputs = arguments(self.templates, case._replace(aliased=None), rng)
        apart = self._reference(case, self._poisoned(given, outputs, True), outputs)
        rng = np.random.default_rng((self.seed, _ALIAS))
        given, outputs = arguments(self.templates, case, rng)
        together = self._reference(case, given, outputs)
        one, other = apart.arrays[second], together.arrays[second]
        assert one is not None and other is not None
        return not self.tolerance.wrong(one, other, self._jitter(one)).any()

    def _jitter(self, array: Array) -> float:
        """What two runs of the reference may differ by: atomics add floats in any order."""
        return self.tolerance.relative(array.dtype) * largest_finite([array])

    def _remember(self, expected: Runs, found: Runs) -> None:
        reference = self.reference
        one = isinstance(reference, KernelSide) and counts_of(
            reference.kernel, expected.first.trace
        )
        self.counts = one or None, counts_of(self.candidate.kernel, found.first.trace)

    def _moved(
        self, case: Case, given: Sequence[Any], outputs: Sequence[bool]
    ) -> list[Array | None]:
        """The reference's results for inputs that are moved to neighbouring numbers."""
        none = [None] * len(outputs)
        if not self.tolerance.automatic:
            return [*none]
        rng = np.random.default_rng((self.seed, _MOVED))
        args = _copies(given)
        done = set()
        for array, is_output in zip(args, outputs, strict=True):
            if isinstance(array, np.ndarray) and not is_output and id(array) not in done:
                done.add(id(array))
                _move(array, rng)
        run = self._reference(case, args, outputs)
        return [*none] if run.failure else run.arrays

    def _differences(
        self,
        case: Case,
        runs: tuple[Runs, Runs],
        poisons: Sequence[Sequence[Any]],
        moved: Sequence[Array | None],
        scale: float,
    ) -> Iterator[Problem]:
        """The first wrong element of each argument."""
        expected, found = runs
        seen: set[int] = set()
        for at, right in enumerate(expected.first.arrays):
            if right is None or id(right) in seen:
                continue
            seen.add(id(right))
            before = poisons[0][at], poisons[1][at]
            largest = max(scale, largest_finite([right[unequal(right, before[0])]]))
            if right.dtype.kind == "f" and 0 < scale < np.finfo(right.dtype).tiny:
                largest = np.inf  # flushing all of these inputs to zero is right
            slack = self.tolerance.slack(right, moved[at], largest)
            one, other = (run.arrays[at] for run in found)
            other_right = expected.second.arrays[at]
            assert one is not None and other is not None and other_right is not None
            arrays = Compared(right, other_right, one, other, *before)
            yield from arrays.difference(case, at, self.tolerance, slack)


def _move(array: Array, rng: np.random.Generator) -> None:
    """Moves floats to a neighbouring number. Subnormal ones become zero, as fast math has it."""
    if array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            to = rng.choice(np.array([-np.inf, np.inf], array.dtype), array.shape)
            moved = np.where(np.isfinite(array), np.nextafter(array, to), array)
            array[...] = np.where(np.abs(array) < np.finfo(array.dtype).tiny, 0, moved)


def _copies(given: Sequence[Any]) -> list[Any]:
    """Copies of the arguments; what was one array is one array again."""
    made = {id(one): one.copy() for one in given if isinstance(one, np.ndarray)}
    return [made.get(id(one), one) for one in given]


def _failures(case: Case, runs: Runs) -> Iterator[Problem]:
    """Hazards of a candidate, and runs that did not end well."""
    trace = runs.first.trace
    for hazard in trace.hazards if trace else ():
        verdict = _KINDS.get(hazard.kind, RACY)
        yield Problem(verdict, hazard.kind, hazard.message, case.name, hazard=hazard)
    failed = next((run for run in runs if run.failure), None)
    if failed and not (trace and trace.hazards):
        rule = "no-end" if failed.endless else "error"
        yield Problem(WRONG, rule, failed.failure, case.name)
