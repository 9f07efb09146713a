"""What the emulator keeps of kernels that ran: the values of their variables, within a bound."""

import numpy as np
import pytest

import smemkern
from checks import malloc_bytes

MIB = 1 << 20
# Each run returns one more. The text is new to the emulator, and has so many bytes of variables.
COUNTS = """.version 8.0
.target sm_80
.address_size 64
// {name}
.global .align 8 .b8 room[{bytes}];
.global .u32 runs = {name};
.visible .entry counts(.param .u64 x)
{{
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [runs]; add.u32 %r0, %r0, 1;
    st.global.u32 [runs], %r0; st.global.u32 [%rd0], %r0; ret;
}}
"""


def counter(name, size=8):
    kernel, x = smemkern.Kernel(COUNTS.format(name=name, bytes=size), "counts"), np.zeros(1, "u4")

    def run():
        kernel(1, 1, x, device="emu")
        return int(x[0]) - name

    return run


@pytest.fixture(autouse=True)
def empty():
    smemkern.empty_cache("emu")
    yield
    smemkern.empty_cache("emu")


def test_empty_cache_forgets():
    run = counter(1000)
    assert [run(), run()] == [1, 2]
    assert smemkern.empty_cache("emu") > len(COUNTS)
    assert smemkern.empty_cache("emu") == 0
    assert [run(), run()] == [1, 2]


def test_empty_cache_gives_memory_back():
    def rounds(first):
        for name in range(first, first + 40):
            counter(name)()
            smemkern.empty_cache("emu")

    rounds(5000)
    before = malloc_bytes()
    rounds(6000)
    assert malloc_bytes() - before < 40 * 200  # one of these kernels takes some 10 KB


def test_the_number_is_bounded():
    runs = [counter(2000 + 10 * n) for n in range(65)]
    assert [run() for run in runs] == [1] * 65
    assert [run() for run in reversed(runs)] == [2] * 64 + [1]


def test_the_bytes_are_bounded():
    """Pages that nobody touches count, too: nobody knows whether they will be."""
    first, *others = (counter(3000 + 10 * n, 100 * MIB) for n in range(6))
    assert [run() for run in others] == [1] * 5
    assert first() == 1
    assert [run() for run in others[1:]] == [2] * 4, "500 MiB stay"
    assert first() == 2 and others[0]() == 1
    large = counter(4000, 600 * MIB)
    assert [large(), large(), first()] == [1, 2, 1], "what was used last stays, whatever its size"
    assert large() == 1
