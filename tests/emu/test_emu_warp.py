"""Instructions by which the lanes of a warp see each other: shuffles, votes, matches, reductions.

Each runs for one warp, in all lanes and in some of them, and is compared with a plain Python loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import smemkern

LANES = 32
FULL = 0xFFFFFFFF
MASKS = {"all": FULL, "some": 0x9E3779B9, "one": 0x00010000}


def kernel_text(instruction: str, results: int, wide: bool) -> str:
    """Lanes of the mask run it; the others leave their results as they were.

    %a: the lane's value, 64 bits wide or 32; %b and %c: two more words; %mask: the lanes that run
    it. Results: %d, %e.
    """
    loads = "".join(
        f"ld.param.u64 %base, [p{k}]; mad.wide.u32 %at, %lane, {size}, %base; "
        f"ld.global.b{8 * size} %{name}, [%at];\n"
        for k, (name, size) in enumerate((("a", 8 if wide else 4), ("b", 4), ("c", 4)))
    )
    stores = "".join(
        f"ld.param.u64 %base, [p{3 + k}]; mad.wide.u32 %at, %lane, 4, %base; "
        f"st.global.b32 [%at], %{name};\n"
        for k, name in enumerate("de"[:results])
    )
    return f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry warp(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3,
                     .param .u64 p4, .param .u32 lanes)
{{
    .reg .b64 %base, %at; .reg .b{64 if wide else 32} %a; .reg .pred %p, %q, %in;
    .reg .b32 %b, %c, %d, %e, %lane, %mask, %bit;
    mov.u32 %lane, %laneid;
    ld.param.u32 %mask, [lanes];
    {loads}
    setp.ne.u32 %q, %b, 0;
    shr.u32 %bit, %mask, %lane;
    and.b32 %bit, %bit, 1;
    setp.eq.u32 %in, %bit, 0;
    @%in bra DONE;
    {instruction}
    {stores}
DONE:
    ret;
}}
"""


@dataclass(frozen=True)
class Case:
    """reference(a, b, c, mask): the results of each lane, from the lists of all lanes."""

    name: str
    instruction: str
    reference: Callable[..., list[tuple[int, ...]]]
    values: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]
    results: int = 1
    wide: bool = False


def words(rng, high=1 << 32):
    return rng.integers(0, high, LANES, dtype=np.uint32)


def shuffle(mode: str):
    """PTX's pseudo-code: c holds the clamp in bits 0-4 and the segment mask in bits 8-12."""

    def reference(a, b, c, mask):
        results = []
        for lane in range(LANES):
            offset, clamp, segment = b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31
            highest = (lane & segment) | (clamp & ~segment)
            lowest = lane & segment
            source, valid = {
                "up": (lane - offset, lane - offset >= highest),
                "down": (lane + offset, lane + offset <= highest),
                "bfly": (lane ^ offset, (lane ^ offset) <= highest),
                "idx": (lowest | (offset & ~segment), (lowest | (offset & ~segment)) <= highest),
            }[mode]
            source = source if valid else lane
            results.append((a[source] if mask >> source & 1 else None, int(valid)))
        return results

    return reference


def shuffle_values(mode: str):
    def values(rng):
        segment = 0x1F & ~(rng.choice([1, 2, 4, 8, 16, 32]) - 1)
        clamp = 0 if mode == "up" else 0x1F
        control = np.full(LANES, segment << 8 | clamp, dtype=np.uint32)
        return words(rng), np.full(LANES, rng.integers(0, 32), dtype=np.uint32), control

    return values


def uniform(function):
    """Of the values that the lanes of the mask hold, one result for all of them."""

    def reference(a, b, c, mask):
        inside = [k for k in range(LANES) if mask >> k & 1]
        return [(function(a, b, inside),)] * LANES

    return reference


def bits_where(lanes, holds) -> int:
    return sum(1 << k for k in lanes if holds(k))


def signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def reduced(function, is_signed=False):
    def result(a, b, inside):
        values = [signed(a[k]) if is_signed else a[k] for k in inside]
        total = values[0]
        for value in values[1:]:
            total = function(total, value)
        return total & FULL

    return uniform(result)


def match_any(a, b, c, mask):
    inside = [k for k in range(LANES) if mask >> k & 1]
    return [(bits_where(inside, lambda k, v=a[lane]: a[k] == v),) for lane in range(LANES)]


def match_all(a, b, c, mask):
    inside = [k for k in range(LANES) if mask >> k & 1]
    same = len({a[k] for k in inside}) == 1
    return [(mask if same else 0, int(same))] * LANES


def few(rng):
    return rng.integers(0, 3, LANES, dtype=np.uint32), words(rng, 2), words(rng)


def few_wide(rng):
    high = rng.integers(0, 2, LANES, dtype=np.uint64) << np.uint64(40)
    return high | np.uint64(7), words(rng, 2), words(rng)


def equal(rng):
    return np.full(LANES, rng.integers(0, 9), dtype=np.uint32), words(rng, 2), words(rng)


def any_words(rng):
    return words(rng), words(rng, 2), words(rng)


PREDICATE = "selp.u32 %e, 1, 0, %p;"
CASES = [
    Case(
        f"shfl.{mode}",
        f"shfl.sync.{mode}.b32 %d|%p, %a, %b, %c, %mask; {PREDICATE}",
        shuffle(mode),
        shuffle_values(mode),
        results=2,
    )
    for mode in ("up", "down", "bfly", "idx")
]
CASES += [
    Case(
        f"vote.{mode}-{name}",
        f"vote.sync.{mode}.pred %p, {source}, %mask; selp.u32 %d, 1, 0, %p;",
        uniform(lambda a, b, inside, f=f, n=negated: int(f([bool(b[k]) != n for k in inside]))),
        values,
    )
    for mode, f in (
        ("all", all),
        ("any", any),
        ("uni", lambda held: len(set(held)) == 1),
    )
    for source, negated in (("%q", False), ("!%q", True))
    for name, values in (
        (f"mixed{source}", few),
        (f"false{source}", lambda rng: (words(rng), np.zeros(LANES, np.uint32), words(rng))),
        (f"true{source}", lambda rng: (words(rng), np.ones(LANES, np.uint32), words(rng))),
    )
]
CASES += [
    Case(
        "vote.ballot",
        "vote.sync.ballot.b32 %d, %q, %mask;",
        uniform(lambda a, b, inside: bits_where(inside, lambda k: b[k])),
        few,
    ),
    Case(
        "vote.ballot.not",
        "vote.sync.ballot.b32 %d, !%q, %mask;",
        uniform(lambda a, b, inside: bits_where(inside, lambda k: not b[k])),
        few,
    ),
    Case(
        "activemask",
        "activemask.b32 %d;",
        uniform(lambda a, b, inside: bits_where(inside, lambda k: True)),
        few,
    ),
    Case("match.any.b32", "match.any.sync.b32 %d, %a, %mask;", match_any, few),
    Case("match.any.b64", "match.any.sync.b64 %d, %a, %mask;", match_any, few_wide, wide=True),
]
CASES += [
    Case(
        f"match.all.b{64 if wide else 32}-{name}",
        f"match.all.sync.b{64 if wide else 32} %d|%p, %a, %mask; {PREDICATE}",
        match_all,
        values,
        results=2,
        wide=wide,
    )
    for name, values, wide in (
        ("differ", few, False),
        ("equal", equal, False),
        ("wide", few_wide, True),
    )
]
CASES += [
    Case(
        f"redux.{op}.{t}", f"redux.sync.{op}.{t} %d, %a, %mask;", reduced(f, t == "s32"), any_words
    )
    for op, f, types in (
        ("add", lambda x, y: x + y, ("u32", "s32")),
        ("min", min, ("u32", "s32")),
        ("max", max, ("u32", "s32")),
        ("and", lambda x, y: x & y, ("b32",)),
        ("or", lambda x, y: x | y, ("b32",)),
        ("xor", lambda x, y: x ^ y, ("b32",)),
    )
    for t in types
]


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_instruction(case: Case, mask: int) -> None:
    rng = np.random.default_rng([mask, len(case.name)])
    kernel = smemkern.Kernel(kernel_text(case.instruction, case.results, case.wide), "warp")
    for _ in range(20):
        a, b, c = case.values(rng)
        results = [np.full(LANES, 0xDEADBEEF, dtype=np.uint32) for _ in range(2)]
        kernel(1, LANES, a, b, c, *results, mask, device="emu")
        expected = case.reference(a.tolist(), b.tolist(), c.tolist(), mask)
        for lane in range(LANES):
            for k in range(case.results):
                want = expected[lane][k] if mask >> lane & 1 else 0xDEADBEEF
                if want is not None:  # the value of a lane that does not take part is unspecified
                    assert results[k][lane] == want, (case.name, lane, k)


@pytest.mark.parametrize("threads", [10, 32], ids=["short-warp", "exited"])
@pytest.mark.parametrize(
    "case", [case for case in CASES if "%mask" in case.instruction and "shfl" not in case.name],
    ids=lambda case: case.name,
)  # fmt: skip
def test_members_that_do_not_exist(case: Case, threads: int, drawn: np.random.Generator) -> None:
    """A full mask names threads that a short warp lacks, or that have exited. They take no part:
    not in the mask that match.all returns either, as numba-cuda's test of it expects of a GPU."""
    text = kernel_text(case.instruction.replace("%mask", "0xffffffff"), case.results, case.wide)
    kernel = smemkern.Kernel(text, "warp")
    for _ in range(20):
        a, b, c = case.values(drawn)
        mask = int(drawn.integers(1, 1 << threads))
        results = [np.full(LANES, 0xDEADBEEF, dtype=np.uint32) for _ in range(2)]
        kernel(1, threads, a, b, c, *results, mask, device="emu", timeout=20)
        expected = case.reference(a.tolist(), b.tolist(), c.tolist(), mask)
        for lane in range(LANES):
            for k in range(case.results):
                want = expected[lane][k] if mask >> lane & 1 else 0xDEADBEEF
                assert results[k][lane] == want, (case.name, hex(mask), a, b, c, lane, k)
