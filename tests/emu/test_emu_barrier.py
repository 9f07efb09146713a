"""Which warps a barrier counts: ones that wait, ones that only arrive, ones that have exited."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

# Warp 1 waits for what warp 2 writes, which comes late: it counts to 2000 first.
KERNEL = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .shared .align 4 .b32 late[32];
    .reg .pred %p, %again;
    .reg .b32 %lane, %warp, %thread, %at, %count, %value;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %thread, %tid.x; shr.u32 %warp, %thread, 5; and.b32 %lane, %thread, 31;
    mad.wide.u32 %out, %thread, 4, %out;
    mov.u32 %at, late; mad.lo.u32 %at, %lane, 4, %at;
    mov.u32 %count, 0; mov.u32 %value, 0;
    setp.lt.u32 %p, %thread, 32; @%p st.shared.u32 [%at], 0;
    bar.sync 7;
    setp.eq.u32 %p, %warp, 0; @%p bra FIRST;
    setp.eq.u32 %p, %warp, 1; @%p bra READER;
WRITER:
    add.u32 %count, %count, 1; setp.lt.u32 %again, %count, 2000; @%again bra WRITER;
    add.u32 %value, %thread, 1000; st.shared.u32 [%at], %value;
    WRITES
    ret;
FIRST:
    ARRIVES
    ret;
READER:
    READS
    ld.shared.u32 %value, [%at]; st.global.u32 [%out], %value;
    ret;
}
"""


def run(first: str, writes: str, reads: str) -> np.ndarray:
    """What the lanes of warp 1 read; the order in which warps run is the emulator's."""
    out = np.zeros(96, "u4")
    text = KERNEL.replace("ARRIVES", first).replace("WRITES", writes).replace("READS", reads)
    smemkern.Kernel(text, "k")(1, 96, out, device="emu", max_instructions=10**6)
    return out[32:64]


WRITTEN = 1000 + np.arange(64, 96)


@pytest.mark.parametrize(
    ("first", "writes", "reads"),
    [
        # All that live: warp 0 does not arrive, and does not count once it has exited.
        ("", "bar.sync 0;", "bar.sync 0;"),
        # Half of warp 0 arrives, and the rest of it exits.
        (
            "setp.lt.u32 %p, %lane, 16; @%p bar.sync 0;",
            "bar.sync 0;",
            "bar.sync 0;",
        ),
        # A count: warp 0 arrives and exits. It counts.
        ("bar.arrive 1, 96;", "bar.arrive 1, 96;", "bar.sync 1, 96;"),
        # A count without warp 0.
        ("", "bar.arrive 1, 64;", "bar.sync 1, 64;"),
        # Of a cluster's barrier all that live: a warp that arrived and exited does not count.
        (
            "barrier.cluster.arrive;",
            "barrier.cluster.arrive; barrier.cluster.wait;",
            "barrier.cluster.arrive; barrier.cluster.wait;",
        ),
    ],
)
def test_waits_for_the_late_warp(first: str, writes: str, reads: str) -> None:
    assert run(first, writes, reads).tolist() == WRITTEN.tolist()


DELAY = "LATER: add.u32 %count, %count, 1; setp.lt.u32 %again, %count, 500; @%again bra LATER;"


@pytest.mark.parametrize(("first", "second"), [("", DELAY), (DELAY, "")], ids=["0", "1"])
def test_a_warp_that_arrived_and_exited_counts(first: str, second: str) -> None:
    """bar.sync 1, 64 of warps 0 and 1, whichever comes first; warp 2 has no part in it."""
    read = run(f"{first} bar.arrive 1, 64;", "", f"{second} bar.sync 1, 64;")
    assert read.tolist() == [0] * 32


def test_a_warp_that_exited_without_arriving_does_not_count() -> None:
    with pytest.raises(smemkern.LaunchError, match="deadlock|wait"):
        run("", "", "bar.sync 1, 64;")
