"""Compares a candidate kernel with a reference over adversarial inputs: smemkern.judge."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._render.document import Node, Paragraph, Table, as_text, in_notebook
from .._render.table import Cell, Right
from .._trace.hazards import Hazard
from .._trace.observe import Trace
from .inputs import (
    PATTERNS,
    VALUES,
    Array,
    Case,
    Extent,
    Template,
    arguments,
    cases,
    odd_sizes,
    poison,
    template,
)
from .runs import FunctionSide, KernelSide, Launch, Limits, Outcome, compiled

WRONG, RACY, UNWRITTEN, CLEAN = "wrong", "racy", "reads unwritten memory", "clean"
# The first that applies is the verdict. A race or a read of unwritten memory comes before the wrong
# results that it causes.
VERDICTS = (RACY, UNWRITTEN, WRONG, CLEAN)
_KINDS = {
    **dict.fromkeys(("uninitialised", "unwritten"), UNWRITTEN),
    **dict.fromkeys(("out-of-bounds", "misaligned", "deadlock", "shared-limit"), WRONG),
}  # of hazards; all others are races
_RTOL = {2: 4e-3, 4: 2e-5, 8: 1e-12}  # by bytes of a float


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


Source = _core.Kernel | str | os.PathLike[str]


def judge(
    reference: Source | Callable[..., Any],
    candidate: Source,
    args: Sequence[Any],
    *,
    grid: Extent,
    block: Extent,
    sizes: Mapping[str, int] | None = None,
    odd: bool = True,
    values: Sequence[str] = VALUES,
    aliasing: bool | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    equal_bits: bool = False,
    shared_bytes: int | str = 0,
    cluster: Extent | None = None,
    cooperative: bool = False,
    reference_launch: Mapping[str, Any] | None = None,
    name: str | None = None,
    reference_name: str | None = None,
    options: Sequence[str] = (),
    timeout: float | None = 20.0,
    max_instructions: int | None = 10**9,
    seed: int | None = None,
) -> Judgement:
    """Judge a candidate kernel by a reference, on the emulator.

    Both run on the same inputs: random numbers, zeros, ones, NaNs, infinities, subnormal, large and
    cancelling numbers, odd sizes, and arguments that are one array. A candidate is compiled in a
    process of its own. Outputs hold random bits before each run, and each run has fresh module
    variables.

    Parameters
    ----------
    reference : Kernel, path of a .cu or .ptx file, text of one, or function
        A function takes the arguments of the kernel as NumPy arrays and numbers. It writes the
        outputs, or returns them; it may compute in float64.
    candidate : Kernel, path of a .cu or .ptx file, or text of one
    args : sequence
        Text as on the command line, with sizes: "f32[n,n]=random" and "i32[n]=random(0,n)" are
        inputs, "f32[n]" an output, "i32=n" a number. Arrays and numbers stay as they are.
    grid, block : int, tuple, or text
        Text may be an expression of sizes: "cdiv(n, 256), 2".
    sizes : dict of str to int
        The sizes of the arguments.
    odd : bool
        Also judge each size at 1, one less, one more, and a prime about half.
    values : sequence of str
        The contents of the arrays with "=random".
    aliasing : bool, optional
        Also pass one array as two arguments. None: an input and an output are one array only if
        the reference is a kernel. A case that the reference itself does not support is skipped.
    rtol, atol : float, optional
        A float is right within atol + rtol * abs(expected). If neither is given, rtol is 2e-5 for
        float32, 4e-3 for float16, 1e-12 for float64, and atol is what rounding errors of the inputs
        explain: 32 times the most by which the reference's result changes if its inputs move to
        neighbouring numbers, at most rtol times the largest number. Integers are equal.
    equal_bits : bool
        Require the same bits of floats; any NaN equals any other.
    shared_bytes, cluster, cooperative
        As in a call of a Kernel; shared_bytes may be an expression.
    reference_launch : dict, optional
        grid, block, shared_bytes, cluster, cooperative of the reference, where they differ.
    name, reference_name : str, optional
        The kernels' names in their files; None: the only kernel.
    options : sequence of str
        Compiler options for both files.
    timeout, max_instructions
        Limits of each run: seconds, warp instructions.
    seed : int, optional
        Of the inputs. None: a new one, so that a candidate cannot know them.

    Returns
    -------
    Judgement

    Raises
    ------
    ValueError
        If an argument is wrong, or the reference is: if it has a hazard, or reads an output.
    CompileError
        If the reference does not compile.

    Examples
    --------
    >>> smemkern.judge("ref.cu", "fast.cu", ["f32[n]=random", "f32[n]", "i32=n"],
    ...     grid="cdiv(n, 256)", block=256, sizes={"n": 1000}).verdict  # doctest: +SKIP
    'clean'
    """
    __tracebackhide__ = True
    unknown = [one for one in values if one not in VALUES]
    if unknown:
        raise ValueError(f"values should be of {', '.join(VALUES)}, not {', '.join(unknown)}")
    launch = Launch(grid, block, shared_bytes, cluster, cooperative)
    limits = Limits(timeout, max_instructions)
    seed = secrets.randbits(48) if seed is None else seed
    other = launch._replace(**(reference_launch or {}))
    side: KernelSide | FunctionSide
    if isinstance(reference, _core.Kernel | str | os.PathLike):
        side = KernelSide(_kernel(reference, reference_name, options), other, limits)
    else:
        side = FunctionSide(reference)
    templates = [template(one) for one in args]
    first = dict(sizes or {})
    every = odd_sizes(first) if odd else [first]
    if aliasing is None:
        aliases = "all" if isinstance(side, KernelSide) else "inputs"
    else:
        aliases = "all" if aliasing else "none"
    planned = list(cases(templates, every, values, aliases))
    tolerance = Tolerance(rtol, atol, equal_bits)
    try:
        kernel = _kernel(candidate, name, options)
    except (_core.Error, ValueError) as error:
        compiles = not isinstance(error, _core.CompileError)
        what = "cannot be loaded" if compiles else "does not compile"
        problem = Problem(WRONG, "error", f"{what}: {error}", "")
        return Judgement([problem], [], (None, None), seed)
    bench = _Bench(side, KernelSide(kernel, launch, limits), templates, tolerance, seed)
    return bench.judge(planned)


def _kernel(given: Source, name: str | None, options: Sequence[str]) -> _core.Kernel:
    if isinstance(given, _core.Kernel):
        return given
    if not isinstance(given, str) or "{" not in given:
        return compiled(Path(given), name, options)
    with TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx" if given.lstrip().startswith(".version") else "kernel.cu")
        file.write_text(given, encoding="utf-8")
        return compiled(file, name, options)


# ---- comparison


class Tolerance(NamedTuple):
    """When a float of the candidate is right. Integers are equal."""

    rtol: float | None
    atol: float | None
    equal_bits: bool

    @property
    def automatic(self) -> bool:
        """Whether neither rtol nor atol was given."""
        return self.rtol is None and self.atol is None and not self.equal_bits

    def relative(self, dtype: np.dtype[Any]) -> float:
        """rtol for this type of floats."""
        if self.automatic:
            return _RTOL.get(dtype.itemsize, 2e-5)
        return self.rtol or 0.0

    def wrong(self, expected: Array, found: Array, slack: float = 0.0) -> Array:
        """Which elements differ by more than the tolerance and `slack`."""
        if expected.dtype.kind != "f":
            return _unequal(expected, found)
        with np.errstate(all="ignore"):
            both_nan = np.isnan(expected) & np.isnan(found)
            if self.equal_bits:
                return ~both_nan & (_unequal(expected, found))
            wide, other = expected.astype(np.float64), found.astype(np.float64)
            allowed = (self.atol or 0.0) + self.relative(expected.dtype) * np.abs(wide)
            finite = np.isfinite(wide) & np.isfinite(other)
            near = np.abs(wide - other) <= allowed + slack
            return ~(both_nan | (wide == other) | (finite & near))

    def slack(self, expected: Array, moved: Array | None, scale: float) -> float:
        """What to add to the tolerance of an array because of its inputs' rounding errors.

        `moved` is the reference's result for inputs that were moved to neighbouring numbers. Sums
        in another order differ by a small multiple of that. `scale` limits it where results jump.
        """
        if not self.automatic or expected.dtype.kind != "f":
            return 0.0
        least = 4 * float(np.finfo(expected.dtype).smallest_subnormal)
        limit = self.relative(expected.dtype) * scale
        if moved is None:
            return min(limit, least)
        with np.errstate(all="ignore"):
            by = np.abs(moved.astype(np.float64) - expected.astype(np.float64))
        step = float(np.max(by, initial=0.0, where=np.isfinite(by)))
        return max(min(_MULTIPLE * step, limit), least)


_MULTIPLE = 32


def _unequal(one: Array, other: Array) -> Array:
    """Which elements have different bits; of structs, not counting the bytes between fields."""
    if one.dtype.names:
        different = np.zeros(one.shape, bool)
        for name in one.dtype.names:
            field = _unequal(one[name], other[name])
            different |= field.reshape(*one.shape, -1).any(-1)
        return different
    kind = "u" if one.itemsize in (1, 2, 4, 8) else "V"
    plain, second = (np.asarray(array, order="C") for array in (one, other))
    return np.asarray(plain.view(f"{kind}{one.itemsize}") != second.view(f"{kind}{one.itemsize}"))


def _scale(arrays: Sequence[Array]) -> float:
    """The largest finite number."""
    largest = 0.0
    for array in arrays:
        if array.dtype.kind == "f":
            wide = np.abs(array.astype(np.float64))
            largest = max(largest, float(np.max(wide, initial=0.0, where=np.isfinite(wide))))
    return largest


class _Runs(NamedTuple):
    """Two runs of one side on equal inputs; the outputs held different bits before."""

    first: Outcome
    second: Outcome


class _Unfit(Exception):
    """The reference does not support a case; the message says why."""


class _Bench:
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
            except _Unfit as why:
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
        expected = _Runs(*(self._reference(case, one, outputs) for one in poisons))
        self._check_reference(case, expected, poisons, outputs)
        found = _Runs(
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
            scale = _scale([one for one in given if isinstance(one, np.ndarray)])
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
                raise _Unfit(f"the reference raises {type(error).__name__}: {error}") from error
        return self.reference.run(args, case.sizes, True)

    def _check_reference(
        self,
        case: Case,
        runs: _Runs,
        poisons: Sequence[Sequence[Any]],
        outputs: Sequence[bool],
    ) -> None:
        for run in runs:
            if run.failure:
                raise _Unfit(f"the reference fails: {run.failure}")
            if run.trace and run.trace.hazards:
                raise _Unfit(f"the reference has a hazard: {run.trace.hazards[0].message}")
        for at, is_output in enumerate(outputs):
            one, other = runs.first.arrays[at], runs.second.arrays[at]
            if one is None or other is None:
                continue
            kept = _kept(one, other, poisons[0][at], poisons[1][at])
            wrong = self.tolerance.wrong(one, other, self._jitter(one)) & ~kept
            if wrong.any():
                read = "it reads the array before it writes it (then give it a content, such as "
                read = f"{read}=random), or " if is_output else ""
                raise _Unfit(
                    f"two runs of the reference differ in argument {at}: {read}its result depends "
                    "on the order of its threads"
                )
        if case.aliased:
            second = case.aliased[1]
            if self.templates[second].is_output and not self._as_apart(case):
                raise _Unfit(
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
        return self.tolerance.relative(array.dtype) * _scale([array])

    def _remember(self, expected: _Runs, found: _Runs) -> None:
        reference = self.reference
        one = isinstance(reference, KernelSide) and _counts(reference.kernel, expected.first.trace)
        self.counts = one or None, _counts(self.candidate.kernel, found.first.trace)

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
        runs: tuple[_Runs, _Runs],
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
            largest = max(scale, _scale([right[_unequal(right, before[0])]]))
            if right.dtype.kind == "f" and 0 < scale < np.finfo(right.dtype).tiny:
                largest = np.inf  # flushing all of these inputs to zero is right
            slack = self.tolerance.slack(right, moved[at], largest)
            one, other = (run.arrays[at] for run in found)
            other_right = expected.second.arrays[at]
            assert one is not None and other is not None and other_right is not None
            arrays = Compared(right, other_right, one, other, *before)
            yield from arrays.difference(case, at, self.tolerance, slack)


class Compared(NamedTuple):
    """One argument after two runs of the reference and two of the candidate."""

    right: Array
    other_right: Array
    one: Array
    other: Array
    before: Array
    other_before: Array

    def difference(
        self, case: Case, at: int, tolerance: Tolerance, slack: float
    ) -> Iterator[Problem]:
        """The problem of the first wrong element."""
        kept = _kept(self.right, self.other_right, self.before, self.other_before)
        changed = _unequal(self.one, self.before)
        other_changed = _unequal(self.other, self.other_before)
        wrong_one = np.where(kept, changed, tolerance.wrong(self.right, self.one, slack))
        wrong_other = np.where(
            kept, other_changed, tolerance.wrong(self.other_right, self.other, slack)
        )
        wrong = wrong_one | wrong_other
        if not wrong.any():
            return
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        pair = (self.one, self.right) if wrong_one[place] else (self.other, self.other_right)
        value, wanted = _shown(pair[0][place]), _shown(pair[1][place])
        where = f"argument {at}, element {place[0] if len(place) == 1 else place}"
        verdict = WRONG
        if kept[place]:
            message = f"{where} is written: {value!r}; the reference leaves it as it was"
        elif not changed[place] and not other_changed[place] and self._was_poison(place):
            message = f"{where} is never written; expected {wanted!r}"
        elif tolerance.wrong(self.one, self.other, slack)[place]:
            verdict = UNWRITTEN
            message = f"{where} differs between two runs on different contents of the outputs: "
            message += f"{value!r}; expected {wanted!r}"
        else:
            message = f"{where} is {value!r}; expected {wanted!r}"
        many = int(wrong.sum())
        message += f"; {many} of {wrong.size} elements are wrong" if many > 1 else ""
        rule = "uninitialised" if verdict == UNWRITTEN else "wrong-result"
        numbers = (wanted, value) if isinstance(value, int | float) else (None, None)
        yield Problem(verdict, rule, message, case.name, at, place, *numbers)

    def _was_poison(self, place: tuple[int, ...]) -> bool:
        return bool(_unequal(self.before, self.other_before)[place])


def _shown(value: Any) -> Any:
    """An element as a Python object."""
    return value.item() if hasattr(value, "item") else value


_ALIAS, _MOVED = 1 << 40, 1 << 41  # numbers of inputs that are no case


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


def _kept(one: Array, other: Array, before: Array, other_before: Array) -> Array:
    """Which elements both runs of the reference left as they were, with different bits."""
    same = ~_unequal(one, before) & ~_unequal(other, other_before)
    return same & _unequal(before, other_before)


def _failures(case: Case, runs: _Runs) -> Iterator[Problem]:
    """Hazards of a candidate, and runs that did not end well."""
    trace = runs.first.trace
    for hazard in trace.hazards if trace else ():
        verdict = _KINDS.get(hazard.kind, RACY)
        yield Problem(verdict, hazard.kind, hazard.message, case.name, hazard=hazard)
    failed = next((run for run in runs if run.failure), None)
    if failed and not (trace and trace.hazards):
        rule = "no-end" if failed.endless else "error"
        yield Problem(WRONG, rule, failed.failure, case.name)


def _counts(kernel: _core.Kernel, trace: Trace | None) -> Counts | None:
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


__all__ = ["PATTERNS", "Judgement", "judge"]
