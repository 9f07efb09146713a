"""Random modules leave what the model in Python says, and what a GPU left; mistakes are refused.

Seeds are drawn anew in each run, and named where a test fails: validation/random_modules.py --show
and --show-mistake write such a module.
"""

from __future__ import annotations

import hashlib
import zlib
from random import SystemRandom

import module_mistakes as mistakes
import module_run as modules
import pytest
from module_writer import Module

from checks import HAS_GPU, record

RUN = record("random-modules")
EVERY = 10  # of the modules in the record
FRESH = 40  # modules of a test


def fresh(n: int) -> range:
    first = SystemRandom().randrange(1 << 30)
    return range(first, first + n)


@pytest.mark.parametrize("all_of_ptx", [False, True], ids=["as ptxas", "all of PTX"])
@pytest.mark.parametrize("part", range(3))
def test_the_emulator_leaves_what_the_model_leaves(part: int, all_of_ptx: bool) -> None:
    wrong = {}
    for seed in fresh(FRESH):
        module = Module(seed, all_of_ptx)
        left = modules.run(module, "emu")
        wrong[seed] = modules.differences(left, modules.model(module), modelled=True)
    assert not {seed: entries for seed, entries in wrong.items() if entries}


def test_the_long_run_is_whole() -> None:
    assert RUN["count"] >= 20000
    # What differs, leaves memory, or makes ptxas end by a signal, does not where ptxas does not
    # optimise.
    assert all(one["optimiser"] for one in (*RUN["differ"], *RUN["errors"]))


@pytest.mark.skipif(not RUN or "digests" not in RUN, reason="no run is recorded")
def test_the_emulator_leaves_what_the_gpu_left() -> None:
    differs = {one["seed"] for one in RUN["differ"]}
    seeds = range(RUN["seed"], RUN["seed"] + len(RUN["digests"]), EVERY)
    known, wrong = 0, []
    for seed, digest in zip(seeds, RUN["digests"][::EVERY], strict=True):
        module = Module(seed)
        if digest[:8] == f"{zlib.crc32(module.text().encode()):08x}":
            known += 1
            left = modules.flat(modules.run(module, "emu"))
            if seed not in differs and digest[8:] != hashlib.sha256(left).hexdigest()[:8]:
                wrong.append(seed)
    assert not wrong
    # Else modules have changed so much that they should run on a GPU again.
    assert known >= 0.8 * len(seeds)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_both_devices_leave_the_same() -> None:
    import random_modules  # which needs ptxas and CuPy where they differ

    differences = (random_modules.difference(seed, False)[1] for seed in fresh(50))
    assert not [one for one in differences if one and not one["optimiser"]]


@pytest.fixture(scope="module")
def ends() -> list[tuple[mistakes.End, mistakes.End]]:
    """Each kind of mistake, in two processes whose malloc fills memory with different bytes."""
    rows = len(mistakes.kinds()) + 2 * len(mistakes.EDITS)
    first = SystemRandom().randrange(1 << 20) * rows
    some = range(first, first + rows)
    both = [mistakes.run_apart(some, MALLOC_PERTURB_=byte) for byte in ("85", "170")]
    return list(zip(*both, strict=True))


def test_mistakes_end_in_words(ends: list[tuple[mistakes.End, mistakes.End]]) -> None:
    died = [end for both in ends for end in both if end.how.startswith("died")]
    assert not died
    taken = [end for end, _ in ends if end.refused and end.how == "ran"]
    assert not taken
    vague = [end for end, _ in ends if end.how != "ran" and len(end.message) < 20]
    assert not vague
    # Most mistakes are some; that of the others is no more than an odd number.
    assert sum(end.how != "ran" for end, _ in ends) > len(ends) / 2


def test_mistakes_leave_no_byte_of_the_host(
    ends: list[tuple[mistakes.End, mistakes.End]],
) -> None:
    assert not [(one, other) for one, other in ends if one != other]


def test_a_module_is_made_of_its_seed_alone() -> None:
    texts = [Module(seed).text() for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]
    assert (modules.inputs(Module(3)) == modules.inputs(Module(3))).all()


def test_a_wrong_byte_is_found() -> None:
    """One bit of one initialised variable, in the model only."""
    found = 0
    for seed in range(20):
        module = Module(seed)
        before = modules.model(module)
        for number, bits in module.variables.objects.items():
            module.variables.objects[number] = bytes([bits[0] ^ 1]) + bits[1:]
            break
        found += bool(modules.differences(before, modules.model(module), modelled=True))
    assert found >= 10  # some modules do not read the first variable


def test_modules_use_everything() -> None:
    text = "".join(Module(seed, seed % 2 == 1).text() for seed in range(250))
    for word in (
        *(".calltargets", ".callprototype", ".branchtargets", "brx.idx", "call.uni", "@%p0 call"),
        *("0xff00(f0", "generic(v0)", "cvta.local", "cvta.param", "cvta.shared", "cvta.const"),
        *(".weak .func", ".visible .func", "vprintf", "@%p0 exit", "ld.local", "ld.param.v2"),
        *(".param .align 1 .b8", ".param .b128", ".param .f16", "st.param.v2.b64", ".v4 .u8"),
    ):
        assert word in text, word
