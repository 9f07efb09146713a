"""When a result of the candidate is right: tolerances, and which elements differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .inputs import Array

_RTOL = {2: 4e-3, 4: 2e-5, 8: 1e-12}  # by bytes of a float


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
            return unequal(expected, found)
        with np.errstate(all="ignore"):
            both_nan = np.isnan(expected) & np.isnan(found)
            if self.equal_bits:
                return ~both_nan & (unequal(expected, found))
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


def unequal(one: Array, other: Array) -> Array:
    """Which elements have different bits; of structs, not counting the bytes between fields."""
    if one.dtype.names:
        different = np.zeros(one.shape, bool)
        for name in one.dtype.names:
            field = unequal(one[name], other[name])
            different |= field.reshape(*one.shape, -1).any(-1)
        return different
    kind = "u" if one.itemsize in (1, 2, 4, 8) else "V"
    plain, second = (np.asarray(array, order="C") for array in (one, other))
    return np.asarray(plain.view(f"{kind}{one.itemsize}") != second.view(f"{kind}{one.itemsize}"))


def largest_finite(arrays: Sequence[Array]) -> float:
    """The largest finite number."""
    largest = 0.0
    for array in arrays:
        if array.dtype.kind == "f":
            wide = np.abs(array.astype(np.float64))
            largest = max(largest, float(np.max(wide, initial=0.0, where=np.isfinite(wide))))
    return largest
