"""Compares a candidate kernel with a reference over adversarial inputs: smemkern.judge."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .. import _core
from .inputs import PATTERNS, VALUES, Extent, cases, odd_sizes, template
from .judgement import WRONG, Judgement, Problem
from .runs import FunctionSide, KernelSide, Launch, Limits, compiled
from .tolerance import Tolerance
from .trial import Trial

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
    trial = Trial(side, KernelSide(kernel, launch, limits), templates, tolerance, seed)
    return trial.judge(planned)


def _kernel(given: Source, name: str | None, options: Sequence[str]) -> _core.Kernel:
    if isinstance(given, _core.Kernel):
        return given
    if not isinstance(given, str) or "{" not in given:
        return compiled(Path(given), name, options)
    with TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx" if given.lstrip().startswith(".version") else "kernel.cu")
        file.write_text(given, encoding="utf-8")
        return compiled(file, name, options)


__all__ = ["PATTERNS", "Judgement", "judge"]
