"""Random programs leave in every register and in memory what a GPU leaves there.

validation/random_programs.py ran them on an H200 and keeps digests: of the programs, since new
instructions change some, and of what they leave.
"""

from __future__ import annotations

import hashlib
import zlib

import numpy as np
import program_writer as programs
import pytest

from checks import HAS_GPU, record

RUN = record("random-programs")
EVERY = 10  # of the programs in the record


def left_by(seed: int, device: str) -> tuple[str, np.ndarray]:
    ptx = programs.module({"program": programs.statements(seed)})
    return ptx, programs.run(ptx, "program", seed, device)


@pytest.mark.skipif(not RUN, reason="not a source tree")
def test_the_emulator_leaves_what_the_gpu_left() -> None:
    assert RUN["count"] >= 20000 and not RUN["errors"]
    assert all(one["optimiser"] for one in RUN["differ"])  # ptxas's mistakes, not the emulator's
    seeds = range(RUN["seed"], RUN["seed"] + len(RUN["digests"]), EVERY)
    known, wrong = 0, []
    for seed, digest in zip(seeds, RUN["digests"][::EVERY], strict=True):
        ptx, left = left_by(seed, "emu")
        if digest[:8] == f"{zlib.crc32(ptx.encode()):08x}":
            known += 1
            if digest[8:] != hashlib.sha256(left.tobytes()).hexdigest()[:8]:
                wrong.append(seed)
    assert not wrong
    # Else instructions have changed so much that the programs should run on a GPU again.
    assert known >= 0.8 * len(seeds)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_both_devices_leave_the_same() -> None:
    seeds = range(10**6, 10**6 + 50)
    both = {s: [left_by(s, device)[1] for device in ("emu", "cuda")] for s in seeds}
    differ = {s: programs.differences(*two) for s, two in both.items()}
    assert not {s: registers for s, registers in differ.items() if registers}


def test_a_program_is_made_of_its_seed_alone() -> None:
    texts = [programs.module({"program": programs.statements(seed)}) for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]
    assert np.array_equal(programs.inputs(3), programs.inputs(3))


def test_a_different_bit_is_found() -> None:
    _, left = left_by(5, "emu")
    other = left.copy()
    other[programs.SLOT * programs.THREADS * 7 + 3] ^= 1
    assert programs.differences(left, other) == [programs.REGISTERS[7][1]]
    other[-1] ^= 1
    assert programs.differences(left, other)[-1] == "totals"


def test_programs_use_everything() -> None:
    """Each kind of statement, and most of the menu, in few programs."""
    text = "".join(programs.module({"p": programs.statements(seed)}) for seed in range(400))
    for word in (
        *("shfl.sync.up", "shfl.sync.bfly", "vote.sync.uni", "vote.sync.ballot", "match.any"),
        *("match.all", "redux.sync.add", "red.global", "red.shared", "call (back)", "ld.local.v2"),
        *("st.shared.f64", "@!%pred_0", "addc", "fma.rn.f32", "cvt.rn.bf16x2", "dp4a", "lop3"),
    ):
        assert word in text, word
