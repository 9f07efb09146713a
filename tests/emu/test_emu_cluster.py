"""Clusters of one block; test_emu_clusters.py has larger ones."""

from __future__ import annotations

import numpy as np
import pytest

import smemkern

KERNEL = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) .explicitcluster .reqnctapercluster 1, 1, 1
{
    .shared .align 8 .b32 tile[64];
    .reg .pred %p;
    .reg .b32 %r<12>;
    .reg .b64 %d<8>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %d1, %r0, 4, %d0;
BODY
    ret;
}
"""


def run(body: str, n: int = 64) -> np.ndarray:
    out = np.full(n, -1, "i4")
    smemkern.Kernel(KERNEL.replace("BODY", body), "k")(1, n, out, device="emu")
    return out


def test_barrier_with_arrival_and_wait_apart():
    # Warp 0 writes before it arrives; warp 1 reads after it has waited.
    body = """
    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %r0, 4, %r1;
    st.shared.u32 [%r2], %r0;
    barrier.cluster.arrive.release.aligned;
    mov.u32 %r5, 7;
    barrier.cluster.wait.acquire.aligned;
    xor.b32 %r3, %r0, 63;
    mad.lo.u32 %r2, %r3, 4, %r1;
    ld.shared::cluster.u32 %r4, [%r2];
    barrier.cluster.arrive.relaxed;
    barrier.cluster.wait;
    st.global.u32 [%d1], %r4;
    """
    assert (run(body) == 63 - np.arange(64)).all()


def test_arriving_does_not_wait():
    # Warp 1 waits for a flag that warp 0 writes between its arrival and its wait.
    body = """
    mov.u32 %r1, 0;
    setp.ne.u32 %p, %r0, 0;
    @!%p st.shared.u32 [tile], 0;
    bar.sync 0;
    barrier.cluster.arrive;
    @!%p st.volatile.shared.u32 [tile], 5;
again:
    ld.volatile.shared.u32 %r1, [tile];
    setp.ne.u32 %p, %r1, 5;
    @%p bra again;
    barrier.cluster.wait;
    st.global.u32 [%d1], %r1;
    """
    assert (run(body) == 5).all()


def test_addresses_and_ranks_of_the_only_block():
    body = """
    mov.u32 %r9, 0;
    mov.u32 %r1, tile;
    mapa.shared::cluster.u32 %r2, %r1, %r9;
    sub.u32 %r3, %r2, %r1;
    cvta.shared.u64 %d2, %d2;
    getctarank.shared::cluster.u32 %r4, %r2;
    mov.u32 %r5, %cluster_nctarank;
    mov.u32 %r6, %cluster_ctarank;
    mad.lo.u32 %r7, %r5, 100, %r6;
    add.u32 %r7, %r7, %r3;
    add.u32 %r7, %r7, %r4;
    st.global.u32 [%d1], %r7;
    """.replace("cvta.shared.u64 %d2, %d2;", "")
    assert (run(body, 1) == 100).all()


def test_another_rank_is_a_fault():
    with pytest.raises(
        smemkern.LaunchError, match="block 3 of the cluster, whose ranks are 0 to 0"
    ):
        run("mov.u32 %r1, tile; mov.u32 %r2, 3; mapa.shared::cluster.u32 %r3, %r1, %r2;", 1)
