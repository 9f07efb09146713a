"""Binary floating point in exact integer arithmetic, to check the emulator's arithmetic against.

Nothing here asks the host's floating-point unit. A finite value is a pair (n, e) that means
n * 2**e, with the integer n of any size; an operation is exact, or, where it cannot be (quotients,
roots), exact but for a sticky lowest bit far below what any format keeps; `Format.encode` rounds
once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import isqrt

NEAREST, ZERO, DOWN, UP, AWAY = "rn", "rz", "rm", "rp", "rna"
ROUNDINGS = (NEAREST, ZERO, DOWN, UP)


@dataclass(frozen=True)
class Nan:
    """A NaN, with the bits it had in its format."""

    bits: int


@dataclass(frozen=True)
class Infinity:
    sign: int


@dataclass(frozen=True)
class Number:
    """n * 2**e; sign tells the zeros apart."""

    n: int
    e: int
    sign: int


Value = Nan | Infinity | Number

STICKY_BITS = 140  # more than any format and any exponent distance within it needs


def number(n: int, e: int, sign_of_zero: int = 0) -> Number:
    return Number(n, e, sign_of_zero if n == 0 else int(n < 0))


@dataclass(frozen=True)
class Format:
    """exponent and mantissa: bits stored; nan: the canonical NaN's bits."""

    name: str
    exponent: int
    mantissa: int
    nan: int
    has_infinity: bool = True

    @cached_property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @cached_property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @cached_property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @cached_property
    def infinity(self) -> int:
        """The bits of infinity; of a format without, of what stands in its place."""
        if not self.has_infinity:
            return self.nan
        return ((1 << self.exponent) - 1) << self.mantissa

    @cached_property
    def largest(self) -> int:
        return self.infinity - 1

    def decode(self, bits: int) -> Value:
        sign = int(bool(bits & self.sign_bit))
        magnitude = bits & (self.sign_bit - 1)
        if magnitude == self.infinity and self.has_infinity:
            return Infinity(sign)
        if magnitude >= self.infinity:
            return Nan(bits)
        exponent, fraction = magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1)
        if exponent:
            fraction |= 1 << self.mantissa
        e = max(exponent, 1) - self.bias - self.mantissa
        return Number(-fraction if sign else fraction, e, sign)

    def is_tiny(self, value: Value, rounding: str = NEAREST) -> bool:
        """Whether it is below the least normal number, rounded as if exponents went on there."""
        if not isinstance(value, Number) or value.n == 0:
            return False
        unbounded = Format(self.name, self.exponent + 8, self.mantissa, 0)
        bits = unbounded.encode(value, rounding) & (unbounded.sign_bit - 1)
        return bits >> self.mantissa <= unbounded.bias - self.bias

    def is_subnormal(self, bits: int) -> bool:
        magnitude = bits & (self.sign_bit - 1)
        return 0 < magnitude < 1 << self.mantissa

    def flush(self, bits: int) -> int:
        return bits & self.sign_bit if self.is_subnormal(bits) else bits

    def encode(self, value: Value, rounding: str = NEAREST, finite: bool = False) -> int:
        """The value's bits, rounded; finite: what overflows becomes the largest number."""
        if isinstance(value, Nan):
            return self.nan
        sign = self.sign_bit if value.sign else 0
        if isinstance(value, Infinity):
            return sign | (self.largest if finite else self.infinity)
        if value.n == 0:
            return sign
        n, e = abs(value.n), value.e
        # The exponent of the last bit kept: mantissa bits below the first one, but not below the
        # least subnormal number's.
        last = max(n.bit_length() - 1 + e - self.mantissa, 1 - self.bias - self.mantissa)
        shift = last - e
        if shift <= 0:
            kept = n << -shift
        else:
            kept, rest, half = n >> shift, n & ((1 << shift) - 1), 1 << (shift - 1)
            away = {
                NEAREST: rest > half or (rest == half and kept & 1),
                AWAY: rest >= half,
                ZERO: False,
                DOWN: rest and value.sign,
                UP: rest and not value.sign,
            }[rounding]
            kept += bool(away)
        if kept.bit_length() > self.mantissa + 1:
            kept, last = kept >> 1, last + 1
        if kept >> self.mantissa:
            biased = last + self.mantissa + self.bias
            magnitude = (biased << self.mantissa) + kept - (1 << self.mantissa)
        else:
            magnitude = kept
        if magnitude > self.largest:
            to_largest = (
                finite
                or rounding == ZERO
                or (rounding == DOWN and not value.sign)
                or (rounding == UP and value.sign)
            )
            magnitude = self.largest if to_largest else self.infinity
        return sign | magnitude


F32 = Format("f32", 8, 23, 0x7FFFFFFF)
F64 = Format("f64", 11, 52, 0x7FF8000000000000)
F16 = Format("f16", 5, 10, 0x7FFF)
BF16 = Format("bf16", 8, 7, 0x7FFF)
TF32 = Format("tf32", 8, 10, 0x3FFFF)
E4M3 = Format("e4m3", 4, 3, 0x7F, has_infinity=False)
E5M2 = Format("e5m2", 5, 2, 0x7F)
FORMATS = {f.name: f for f in (F32, F64, F16, BF16, TF32, E4M3, E5M2)}

NAN = Nan(0)


def negate(a: Value) -> Value:
    if isinstance(a, Nan):
        return a
    if isinstance(a, Infinity):
        return Infinity(1 - a.sign)
    return Number(-a.n, a.e, 1 - a.sign)


def add(a: Value, b: Value, rounding: str = NEAREST) -> Value:
    """The rounding matters only for the sign of an exact zero."""
    if isinstance(a, Nan) or isinstance(b, Nan):
        return a if isinstance(a, Nan) else b
    if isinstance(a, Infinity):
        return NAN if isinstance(b, Infinity) and a.sign != b.sign else a
    if isinstance(b, Infinity):
        return b
    if a.n == 0 and b.n == 0:
        same = a.sign == b.sign
        return Number(0, 0, a.sign if same else int(rounding == DOWN))
    e = min(a.e, b.e)
    return number((a.n << (a.e - e)) + (b.n << (b.e - e)), e, int(rounding == DOWN))


def multiply(a: Value, b: Value) -> Value:
    if isinstance(a, Nan) or isinstance(b, Nan):
        return a if isinstance(a, Nan) else b
    sign = a.sign ^ b.sign
    if isinstance(a, Infinity) or isinstance(b, Infinity):
        zero = any(isinstance(x, Number) and x.n == 0 for x in (a, b))
        return NAN if zero else Infinity(sign)
    return number(a.n * b.n, a.e + b.e, sign)


def multiply_add(a: Value, b: Value, c: Value, rounding: str = NEAREST) -> Value:
    return add(multiply(a, b), c, rounding)


def divide(a: Value, b: Value) -> Value:
    if isinstance(a, Nan) or isinstance(b, Nan):
        return a if isinstance(a, Nan) else b
    sign = a.sign ^ b.sign
    if isinstance(a, Infinity):
        return NAN if isinstance(b, Infinity) else Infinity(sign)
    if isinstance(b, Infinity):
        return Number(0, 0, sign)
    if b.n == 0:
        return NAN if a.n == 0 else Infinity(sign)
    quotient, rest = divmod(abs(a.n) << STICKY_BITS, abs(b.n))
    n = quotient << 1 | bool(rest)
    return number(-n if sign else n, a.e - b.e - STICKY_BITS - 1, sign)


def square_root(a: Value) -> Value:
    if isinstance(a, Nan):
        return a
    if isinstance(a, Number) and a.n == 0:
        return a
    if a.sign:
        return NAN
    if isinstance(a, Infinity):
        return a
    shift = 2 * STICKY_BITS + (a.e & 1)
    n = a.n << shift
    root = isqrt(n)
    return Number(root << 1 | (root * root != n), (a.e - shift) // 2 - 1, 0)


def to_integral(a: Value, rounding: str) -> Value:
    """Rounded to an integer, as a value; a zero keeps the sign."""
    if not isinstance(a, Number) or a.e >= 0:
        return a
    whole, rest = divmod(abs(a.n), 1 << -a.e)
    half = 1 << (-a.e - 1)
    away = {
        NEAREST: rest > half or (rest == half and whole & 1),
        ZERO: False,
        DOWN: rest and a.sign,
        UP: rest and not a.sign,
    }[rounding]
    whole += bool(away)
    return Number(-whole if a.sign else whole, 0, a.sign)


def compare(a: Value, b: Value) -> int | None:
    """-1, 0 or 1; None if unordered."""
    if isinstance(a, Nan) or isinstance(b, Nan):
        return None

    def key(x: Value) -> tuple[int, int, int]:
        if isinstance(x, Infinity):
            return (-1 if x.sign else 1, 0, 0)
        return (0, x.n, x.e)

    ka, kb = key(a), key(b)
    if ka[0] or kb[0]:
        return (ka[0] > kb[0]) - (ka[0] < kb[0])
    e = min(ka[2], kb[2])
    x, y = ka[1] << (ka[2] - e), kb[1] << (kb[2] - e)
    return (x > y) - (x < y)


@cache
def one(fmt: Format) -> int:
    return fmt.encode(number(1, 0))
