"""Calls of the API other than random products and transposes, each with the expected result.

validation/load.py runs them from many threads at once. All threads share KERNEL and RACE; some
calls compile their own kernel, empty the caches, or are invalid.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import smemkern
from smemkern import reference

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
# z[i] = x[i] + value, repeated `rounds` times.
ADDS = (
    HEAD
    + """// {number}
.visible .entry adds(.param .u64 z, .param .u64 x, .param .u32 value, .param .u32 rounds)
{{
    .reg .u64 %z, %x, %i; .reg .u32 %t, %b, %v, %w, %n; .reg .pred %more;
    ld.param.u64 %z, [z]; ld.param.u64 %x, [x]; ld.param.u32 %v, [value]; ld.param.u32 %n, [rounds];
    mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %t, %b, 64, %t; mul.wide.u32 %i, %t, 4;
    add.u64 %z, %z, %i; add.u64 %x, %x, %i; ld.global.u32 %w, [%x]; add.u32 %w, %w, %v;
AGAIN:
    st.global.u32 [%z], %w; sub.u32 %n, %n, 1; setp.ne.u32 %more, %n, 0; @%more bra AGAIN;
    ret;
}}
"""
)
RACES = (
    HEAD
    + """.visible .entry races(.param .u64 z)
{
    .reg .u64 %z; .reg .u32 %t, %v; .shared .align 4 .b8 tile[4];
    ld.param.u64 %z, [z]; mov.u32 %t, %tid.x; st.shared.u32 [tile], %t; ld.shared.u32 %v, [tile];
    st.global.u32 [%z], %v; ret;
}
"""
)
KERNEL = smemkern.Kernel(ADDS.format(number=0), "adds")
RACE = smemkern.Kernel(RACES, "races")
CHECKED = smemkern.Kernel(RACES, "races", check=True)
FOREVER = 1 << 31


def numbers(random: Random, count: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(random.randbytes(4 * count), "u4").copy()


def fails(error: type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def adds(kernel: smemkern.Kernel, random: Random, device: str) -> None:
    blocks, value = random.randrange(1, 5), random.randrange(1 << 31)
    x, z = numbers(random, 64 * blocks), np.zeros(64 * blocks, "u4")
    kernel(blocks, 64, z, x, np.uint32(value), np.uint32(2), device=device)
    assert (z == x + np.uint32(value)).all()


def shared_kernel(random: Random, device: str) -> None:
    adds(KERNEL, random, device)


def fresh_kernel(random: Random, device: str) -> None:
    adds(smemkern.Kernel(ADDS.format(number=random.randrange(200)), "adds"), random, device)


def stopped_kernel(random: Random, _device: str) -> None:
    x, z = numbers(random, 64), np.zeros(64, "u4")
    given = (1, 64, z, x, np.uint32(1), np.uint32(FOREVER))
    stop: Any = random.choice([{"max_instructions": 5000}, {"timeout": 0.01}])
    fails(
        TimeoutError if "timeout" in stop else smemkern.LaunchError,
        lambda: KERNEL(*given, device="emu", **stop),
    )
    assert not z.any()


@functools.cache
def first_counts(variant: str) -> tuple[int, int]:
    return counts(variant)


def counts(variant: str) -> tuple[int, int]:
    a = np.ones((32, 32), "f4")
    t = smemkern.trace("gemm", a, a, variant=variant)
    assert (t.result == 32).all() and not t.hazards
    return sum(row.wavefronts for row in t.shared), sum(row.sectors for row in t.global_)


def traces(random: Random, _device: str) -> None:
    variant = random.choice(["tiled", "conflicted", "padded", "swizzle", "pipelined", "tma"])
    assert counts(variant) == first_counts(variant)


def hazards(random: Random, _device: str) -> None:
    z = np.zeros(1, "u4")
    found = smemkern.trace(RACE, 1, random.choice([32, 64, 96]), z).hazards
    assert found and all("race" in str(hazard) for hazard in found), found
    fails(smemkern.HazardError, lambda: CHECKED(1, 64, z))


def probes(random: Random, device: str) -> None:
    row = random.choice(list(smemkern.variants("probe")))
    x = np.arange(random.randrange(1 << 14, 1 << 15), dtype="f4")
    result = smemkern.probe(x, variant=row.name, device=device)
    assert np.array_equal(result, reference.probe(x, variant=row.name))


def models(random: Random, _device: str) -> None:
    stride = random.randrange(1, 65)
    degree = np.gcd(stride, 32)
    assert smemkern.banks.conflict_degree(stride) == degree
    assert smemkern.banks.wavefronts([4 * stride * lane for lane in range(32)]) == degree
    sectors = {4 * stride * lane // 32 for lane in range(32)}
    assert smemkern.coalescing.sectors([4 * stride * lane for lane in range(32)]) == len(sectors)
    assert 0 < smemkern.occupancy(256, random.randrange(16, 129)).fraction <= 1


def wrong_calls(random: Random, device: str) -> None:
    a, x = np.ones((3, 4), "f4"), np.zeros(4, "u4")
    wrong: list[tuple[type[Exception], Callable[[], Any]]] = [
        (ValueError, lambda: smemkern.gemm(a, a, device=device)),
        (ValueError, lambda: smemkern.gemm(a, a.T, variant="none", device=device)),
        (TypeError, lambda: smemkern.transpose(a, out=3, device=device)),
        (TypeError, lambda: KERNEL(1, 1, x, device=device)),
        (ValueError, lambda: KERNEL(0, 1, x, x, 1, 1, device=device)),
        ((smemkern.Error, ValueError), lambda: smemkern.Kernel("nonsense {", "k")),  # type: ignore
        (smemkern.NoDeviceError, lambda: smemkern.gemm(a, a.T, device="cuda:99")),
    ]
    fails(*random.choice(wrong))


def forgets(_random: Random, device: str) -> None:
    assert smemkern.empty_cache(device) >= 0


CALLS = (
    *(shared_kernel, shared_kernel, fresh_kernel, fresh_kernel, stopped_kernel, traces, hazards),
    *(probes, models, wrong_calls, forgets),
)


def check(random: Random, device: str) -> None:
    """Runs one random call and checks its result."""
    random.choice(CALLS)(random, device)
