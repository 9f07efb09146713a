"""Seeded random operands of matrix instructions, as bit patterns packed into registers."""

from __future__ import annotations

import numpy as np

LANES = 32

# name: bits, mantissa bits, exponent bits (0: an integer)
ELEMENTS = {
    "f16": (16, 10, 5),
    "bf16": (16, 7, 8),
    "tf32": (32, 23, 8),
    "e4m3": (8, 3, 4),
    "e5m2": (8, 2, 5),
    "f32": (32, 23, 8),
    "f64": (64, 52, 11),
    "s8": (8, 0, 0),
    "u8": (8, 0, 0),
    "s4": (4, 0, 0),
    "u4": (4, 0, 0),
    "b1": (1, 0, 0),
    "s32": (32, 0, 0),
}
FLOATS = ("f16", "bf16", "tf32", "e4m3", "e5m2", "f64")


def random_elements(rng, name: str, shape, spread: str) -> np.ndarray:
    """Bit patterns. spread: "near" one, "wide", "special" (wide, some NaNs and infinities),
    "cancel" (few significands and exponents, so that sums cancel), "tiny" (subnormals and others
    near zero), "codes" (near one, with any metadata).
    """
    bits, mantissa, exponent = ELEMENTS[name]
    raw = rng.integers(0, 1 << bits, shape, dtype=np.uint64)
    if not exponent:
        if name == "s32" and spread == "near":
            return raw & 0xFFFF
        return raw
    top, bias = (1 << exponent) - 1, (1 << (exponent - 1)) - 1
    if spread in ("near", "codes"):
        biased = rng.integers(max(bias - 4, 0), bias + 3, shape, dtype=np.uint64)
    elif spread == "cancel":
        step = min(bias // 3, 7)
        biased = bias + step * rng.integers(-2, 3, shape) // 2
        raw &= np.uint64(1 << (bits - 1) | 1)
        biased = biased.astype(np.uint64)
    elif spread == "tiny":
        biased = rng.integers(0, 4, shape, dtype=np.uint64)
    else:
        last = top + 1 if name == "e4m3" else top
        biased = rng.integers(0, last, shape, dtype=np.uint64)
    sign = raw & np.uint64(1 << (bits - 1))
    fraction = raw & np.uint64((1 << mantissa) - 1)
    values = sign | biased << np.uint64(mantissa) | fraction
    if spread == "wide":
        values = np.where(rng.random(shape) < 0.05, sign, values)  # zeros
    if name == "e4m3":
        nan = (values & 0x7F) == 0x7F
        values = np.where(nan, values ^ 1, values)
    if spread == "special":
        infinity = np.uint64(top << mantissa)
        odd = rng.random(shape)
        values = np.where(odd < 0.01, sign | infinity, values)
        values = np.where(odd > 0.995, sign | infinity | fraction | 1, values)
    return values


# Codes of the metadata of a sparse product: the two indices of a chunk, in ascending order.
CODES = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
CODES_TF32 = (0b0100, 0b1110)


def random_metadata(rng, name: str, shape, any_code: bool = False) -> np.ndarray:
    """Registers of eight codes each."""
    valid = CODES_TF32 if name == "tf32" else CODES
    codes = np.array(range(16) if any_code else valid, np.uint32)
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(rng.choice(codes, (*shape, 8)) << shifts, axis=-1)


def words_of(elements: np.ndarray, name: str) -> np.ndarray:
    """Neighbours on the last axis packed into registers of 32 bits (64 for f64)."""
    bits = ELEMENTS[name][0]
    if bits == 64:
        return elements
    per = 32 // bits
    grouped = elements.reshape(*elements.shape[:-1], -1, per)
    shifts = np.arange(per, dtype=np.uint64) * np.uint64(bits)
    return np.bitwise_or.reduce(grouped << shifts, axis=-1).astype(np.uint32)


HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{k}" for k in range(count)) + "}"
