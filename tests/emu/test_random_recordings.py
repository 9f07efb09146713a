"""Recordings of random programs and modules: at their end is what the run leaves."""

from __future__ import annotations

import random

import numpy as np
import program_writer as programs
import pytest
from module_run import OUTPUT, THREADS, UNTOUCHED, argument, inputs, model
from module_writer import TRAIL, Module

import smemkern


@pytest.fixture
def seed():
    seed = random.randrange(1 << 30)
    print("seed", seed)
    return seed


def test_programs(seed):
    """A window has the same states as the whole, and its end is what the program leaves."""
    ptx = programs.module({"program": programs.statements(seed)})
    left = programs.run(ptx, "program", seed, "emu")
    values, sums = programs.inputs(seed), np.zeros(2 * programs.TOTALS, np.uint32)
    call = (smemkern.Kernel(ptx, "program"), 1, programs.THREADS, values, sums)
    replay = smemkern.replay(*call)
    replay.seek(replay.total)
    found = np.concatenate([replay.memory(k).view(np.uint8) for k in range(2)])
    np.testing.assert_array_equal(found[: left.size], left)
    first = random.Random(seed).randrange(replay.total)
    part = smemkern.replay(*call, first=first, steps=50).seek(first)
    replay.seek(first)
    for name, value in part.registers.items():
        np.testing.assert_array_equal(value, replay.registers[name])
    for k in range(2):
        np.testing.assert_array_equal(part.memory(k), replay.memory(k))


@pytest.mark.parametrize("all_of_ptx", [False, True])
def test_modules(seed, all_of_ptx):
    """Modules with functions, pointers to them and variables of all spaces."""
    module = Module(seed, all_of_ptx, small=True)
    text = module.text()
    for launch, (want, _) in zip(module.entries, model(module), strict=True):
        out = np.full((THREADS, OUTPUT), UNTOUCHED, np.uint8)
        scalars = [argument(shape, bits) for shape, bits in launch.scalars]
        kernel = smemkern.Kernel(text, launch.entry)
        call = (kernel, launch.grid, launch.block, out, inputs(module), *scalars)
        replay = smemkern.replay(*call, blocks=launch.grid)
        assert replay.count == replay.total
        replay.seek(replay.total)
        found = replay.memory(0).view(np.uint8)[: out.size].reshape(out.shape)
        kernel(launch.grid, launch.block, out, inputs(module), *scalars, device="emu")
        if len(module.entries) == 1:
            np.testing.assert_array_equal(found[:, : 8 * TRAIL], want[:, : 8 * TRAIL])
        np.testing.assert_array_equal(found, out)
