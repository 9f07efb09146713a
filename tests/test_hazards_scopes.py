"""Which accesses a flag orders: the rules of the PTX memory model, each with one token less.

Most cases are litmus tests, in the format of validation/memory_model/program.py. Columns run in
turn, each from its first operation to its last, but for barriers. x is data, f and g are flags.
"""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

import litmus
import smemkern
from memory_model import program


def reported(columns: str, cluster: int = 1, together: bool = False) -> set[str]:
    """The locations with a race, where threads run in turn; together: in a cooperative launch."""
    text = f"PTX case\n{{ x=0; f=0; g=0; }}\n{columns}\nexists (x == 0)"
    test = dataclasses.replace(program.read(text, "case"), cluster=cluster)
    machine = program.Machine(test)
    while not machine.done() or machine.waits:
        machine.step(machine.runnable()[0])
    found = litmus.execute(test, test.blocks, machine, one_by_one=True, together=together)
    assert found is not None
    return found


MESSAGE = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1   | ld.weak r1, x         ;
"""
IN_BLOCK = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        ;
 st.weak x, 1          | ld.acquire.cta r0, f  ;
 st.release.cta f, 1   | ld.weak r1, x         ;
"""
FENCES = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.relaxed.sys r0, f  ;
 fence.acq_rel.gpu     | fence.acq_rel.sys     ;
 st.relaxed.gpu f, 1   | ld.weak r1, x         ;
"""
FENCES_IN_BLOCK = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        ;
 st.weak x, 1          | ld.relaxed.cta r0, f  ;
 fence.acq_rel.cta     | fence.sc.cta          ;
 st.relaxed.cta f, 1   | ld.weak r1, x         ;
"""
CHAIN = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0                 | P2@cta 2,gpu 0        ;
 st.weak x, 1          | atom.relaxed.gpu.exch r0, f, 2 | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1   |                                | ld.weak r1, x         ;
"""
LATER_WRITE = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.relaxed.gpu r0, f  ;
 st.release.gpu f, 1   | fence.acq_rel.gpu     ;
 st.relaxed.gpu f, 2   | ld.weak r1, x         ;
"""
TRANSITIVE = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        | P2@cta 1,gpu 0        ;
 st.weak x, 1          | ld.acquire.cta r0, f  | ld.acquire.gpu r0, g  ;
 st.release.cta f, 1   | st.release.gpu g, 1   | ld.weak r1, x         ;
"""
AFTER_BARRIER = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        | P2@cta 1,gpu 0        ;
 st.weak x, 1          |                       | ld.acquire.gpu r0, f  ;
 bar.cta.sync 0        | bar.cta.sync 0        | ld.weak r1, x         ;
                       | st.release.gpu f, 1   |                       ;
"""
FENCE_SC = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        | P2@cta 1,gpu 0        ;
 st.weak x, 1          |                       | ld.relaxed.gpu r0, f  ;
 fence.sc.gpu          |                       | fence.sc.sys          ;
 bar.cta.sync 0        | bar.cta.sync 0        | ld.weak r1, x         ;
                       | st.relaxed.gpu f, 1   |                       ;
"""
BLOCK_ACQUIRES = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        | P2@cta 1,gpu 0        ;
 st.weak x, 1          | ld.acquire.gpu r0, f  |                       ;
 st.release.gpu f, 1   | bar.cta.sync 0        | bar.cta.sync 0        ;
                       |                       | ld.weak r1, x         ;
"""
COUNTER = """
 P0@cta 0,gpu 0                 | P1@cta 1,gpu 0                 ;
 atom.relaxed.gpu.add r0, f, 1  | atom.relaxed.gpu.add r0, f, 1  ;
"""
# A flag, the tokens that make it weaker, and the locations that race then.
WEAKER = [
    (MESSAGE, ("st.release.gpu", "st.release.cta"), {"x", "f"}),
    (MESSAGE, ("ld.acquire.gpu", "ld.acquire.cta"), {"x", "f"}),
    (MESSAGE, ("st.release.gpu", "st.relaxed.gpu"), {"x"}),
    (MESSAGE, ("ld.acquire.gpu", "ld.relaxed.gpu"), {"x"}),
    (MESSAGE, ("st.release.gpu f", "st.weak f"), {"x", "f"}),
    (MESSAGE, ("ld.acquire.gpu", "ld.weak"), {"x", "f"}),
    (IN_BLOCK, ("st.release.cta", "st.relaxed.cta"), {"x"}),
    (IN_BLOCK, ("ld.acquire.cta", "ld.relaxed.cta"), {"x"}),
    (FENCES, ("fence.acq_rel.gpu", "fence.acq_rel.cta"), {"x"}),
    (FENCES, ("fence.acq_rel.sys", "fence.acq_rel.cta"), {"x"}),
    (FENCES, ("fence.acq_rel.gpu", ""), {"x"}),
    (FENCES, ("fence.acq_rel.sys", ""), {"x"}),
    (FENCES, ("st.relaxed.gpu", "st.relaxed.cta"), {"x", "f"}),
    (FENCES_IN_BLOCK, ("fence.acq_rel.cta", ""), {"x"}),
    (FENCES_IN_BLOCK, ("fence.sc.cta", ""), {"x"}),
    (CHAIN, ("atom.relaxed.gpu.exch r0, f", "st.relaxed.gpu f"), {"x"}),
    (CHAIN, ("atom.relaxed.gpu", "atom.relaxed.cta"), {"x", "f"}),
    (LATER_WRITE, ("st.relaxed.gpu f", "st.weak f"), {"x", "f"}),
    (LATER_WRITE, ("st.release.gpu f", "st.release.gpu g"), {"x"}),
    (TRANSITIVE, ("st.release.gpu", "st.release.cta"), {"x", "g"}),
    (TRANSITIVE, ("ld.acquire.cta", "ld.relaxed.cta"), {"x"}),
    (AFTER_BARRIER, ("st.release.gpu", "st.release.cta"), {"x", "f"}),
    (AFTER_BARRIER, ("bar.cta.sync 0        | bar.cta.sync 0", " | "), {"x"}),
    (FENCE_SC, ("fence.sc.gpu", "fence.acq_rel.gpu"), {"x"}),
    (FENCE_SC, ("fence.sc.sys", "fence.acq_rel.sys"), {"x"}),
    (FENCE_SC, ("fence.sc.gpu", "fence.sc.cta"), {"x"}),
    (BLOCK_ACQUIRES, ("bar.cta.sync 0        | bar.cta.sync 0", " | "), {"x"}),
    (COUNTER, ("atom.relaxed.gpu", "atom.relaxed.cta"), {"f"}),
]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(("columns", "tokens", "racy"), WEAKER)
def test_each_token_is_needed(columns, tokens, racy, together):
    assert tokens[0] in columns
    assert reported(columns, together=together) == set()
    assert reported(columns.replace(*tokens, 1), together=together) == racy


@pytest.mark.parametrize(
    ("columns", "tokens", "racy"),
    [case for case in WEAKER if ".cta" in case[1][1] and "@cta 1" in case[0]],
)
def test_the_scope_of_a_cluster_is_between_those_of_block_and_gpu(columns, tokens, racy):
    """With .cluster in place of .gpu, there are races unless the blocks are of one cluster. There,
    .cta still is too narrow."""

    def narrower(text: str) -> str:
        return text.replace(".gpu", ".cluster").replace(".sys", ".cluster")

    in_cluster = narrower(columns)
    weaker = in_cluster.replace(*map(narrower, tokens), 1)
    size = 4 if "@cta 2" in columns else 2
    assert weaker != in_cluster
    assert reported(in_cluster, size) == set()
    assert reported(weaker, size) == racy
    assert reported(in_cluster, together=True)  # in blocks that are no cluster


STRONG_OF_TWO_SCOPES = """
 P0@cta 0,gpu 0         | P1@cta 0,gpu 0         | P2@cta 1,gpu 0         ;
 st.relaxed.cta f, 1    | st.relaxed.gpu f, 2    | ld.relaxed.gpu r0, f   ;
"""
NARROW_IN_ANOTHER_BLOCK = """
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0         | P2@cta 1,gpu 0         ;
 st.relaxed.gpu f, 1    | ld.acquire.gpu r0, f   | st.relaxed.cta f, 3    ;
                        | st.relaxed.gpu f, 2    |                        ;
"""
MANY_SCOPES = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        | P2@cta 0,gpu 0        | P3@cta 1,gpu 0       ;
 st.relaxed.gpu f, 1    | st.relaxed.cta f, 2    | st.relaxed.sys f, 3   | ld.relaxed.gpu r0, f ;
 st.relaxed.gpu f, 1    | st.relaxed.gpu f, 2    | st.relaxed.gpu f, 3   |                      ;
"""


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("columns", [STRONG_OF_TWO_SCOPES, NARROW_IN_ANOTHER_BLOCK, MANY_SCOPES])
def test_a_later_strong_access_hides_none_before_it(columns, together):
    assert reported(columns, together=together) == {"f"}
    assert reported(columns.replace(".cta f", ".gpu f"), together=together) == set()


A_RELEASE_BETWEEN = """
 P0@cta 0,gpu 0        | P1@cta 0,gpu 0        | P2@cta 1,gpu 0        ;
 st.weak x, 1          |                       | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1   |                       | ld.weak r1, x         ;
 bar.cta.sync 0        | bar.cta.sync 0        |                       ;
                       | st.release.gpu f, 2   |                       ;
 bar.cta.sync 0        | bar.cta.sync 0        |                       ;
 st.relaxed.gpu f, 3   |                       |                       ;
"""
A_NARROW_RELEASE_BETWEEN = """
 P0@cta 0,gpu 0        | P1@cta 1,gpu 0        ;
 st.weak x, 1          | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1   | ld.weak r1, x         ;
 st.release.cta f, 2   |                       ;
 st.relaxed.gpu f, 3   |                       ;
"""


@pytest.mark.parametrize("together", [False, True])
def test_a_later_write_belongs_to_its_threads_release(together):
    """Whatever is written to the flag in between, which may be a race of its own."""
    assert reported(A_RELEASE_BETWEEN, together=together) == set()
    weaker = A_RELEASE_BETWEEN.replace("st.release.gpu f, 1", "st.relaxed.gpu f, 1")
    assert reported(weaker, together=together) == {"x"}
    assert reported(A_NARROW_RELEASE_BETWEEN, together=together) == {"f"}


@pytest.mark.parametrize("fences", [("acq_rel",), ("acq_rel", "sc")])
def test_random_programs_as_the_model_has_them(fences):
    """Programs of a few loads, stores, atomics, fences and barriers have races where the model says
    so, which shares no code with the detector. With fence.sc it may report more: see hazards.md."""
    seed = random.SystemRandom().randrange(1 << 30)
    rng = random.Random(seed)
    suite = litmus.Suite(3, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(litmus, "FENCES", fences)
        for k in range(60):
            suite.add(litmus.random_test(rng, f"seed {seed}, test {k}"))
    assert [m for m in suite.misses if "sc" not in fences or " missed " in m] == []
    assert suite.cells["race, report"] > 20
    assert suite.cells["none, none"] > 20


# ---- the litmus runner itself

INTERLEAVED = """
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0         ;
 st.relaxed.gpu x, 1    | ld.relaxed.gpu r0, x   ;
 ld.relaxed.gpu r0, f   | st.relaxed.gpu f, 1    ;
"""
SPINS = """
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0         ;
 st.weak x, 1           | LC00:                  ;
 st.release.gpu f, 1    | ld.acquire.gpu r0, f   ;
                        | bne r0, 1, LC00        ;
                        | ld.weak r1, x          ;
"""


def litmus_test(columns: str, condition: str) -> program.Litmus:
    return program.read(f"PTX case\n{{ x=0; f=0; }}\n{columns}\n{condition}", "case")


def test_operations_of_blocks_interleave():
    """Neither block can run first as a whole and leave that. The emulator's registers have it."""
    test = litmus_test(INTERLEAVED, "exists (P0:r0 == 1 /\\ P1:r0 == 1)")
    assert litmus.judge_outcome(test, True) == "allowed, shown"
    assert litmus.judge_outcome(test, False) == "forbidden, shown"
    found = litmus.run_to(test, ["P0:r0 == 1", "P1:r0 == 1"])
    assert found and [s.thread for s in found.trace] == [0, 1, 1, 0]


def test_an_outcome_that_no_interleaving_has():
    test = litmus_test(INTERLEAVED, "exists (P0:r0 == 0 /\\ P1:r0 == 0 /\\ x == 0)")
    assert litmus.judge_outcome(test, False) == "forbidden, not shown"
    assert litmus.judge_outcome(test, True) == "allowed, but weak: not shown"


@pytest.mark.parametrize("weaker", [False, True])
def test_a_loop_that_waits_for_another_block(weaker):
    columns = SPINS.replace("st.release", "st.relaxed") if weaker else SPINS
    done = list(litmus.runs(litmus_test(columns, "exists (P1:r1 == 1)"), 8, random.Random(5)))
    assert any(len([s for s in run.trace if s.op.kind == "branch"]) > 1 for run in done)
    assert all(run.agrees and run.reported == ({"x"} if weaker else set()) for run in done)


# ---- what litmus tests do not have

HEAD = ".version 8.6\n.target sm_90\n.address_size 64\n"
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 data, .param .u64 flag) {{
    .reg .u64 %x, %f, %d; .reg .u32 %b, %v; .reg .pred %p, %q;
    .shared .align 8 .b64 bar;
    ld.param.u64 %x, [data]; ld.param.u64 %f, [flag];
    mov.u32 %b, %{index}; setp.ge.u32 %p, %b, {count};
    {before}
    @%p bra READ;
    st.global.u32 [%x], %b;
    {write}
    {end}
READ:
    {read}
    ld.global.u32 %v, [%x];
    {end}
}}"""
)


def traced(grid: int, block: int, **parts: str) -> tuple[smemkern.Hazard, ...]:
    parts = {"before": "", "end": "ret;", **parts}
    kernel = smemkern.Kernel(KERNEL.format(**parts), "k")
    return smemkern.trace(
        *(kernel, grid, block, np.zeros(1, "u4"), np.zeros(1, "u8")), hazards=True
    ).hazards


def blocks(write: str, read: str) -> set[str]:
    """The first of two blocks writes the data and then the flag, the second one reads both."""
    return {h.kind for h in traced(2, 1, index="ctaid.x", count="1", write=write, read=read)}


VOLATILE = (
    "membar.gl; st.volatile.global.u32 [%f], 1;",
    "ld.volatile.global.u32 %v, [%f]; membar.gl;",
)
WIDE = "st.release.gpu.global.u64 [%f], 1;", "ld.acquire.gpu.global.u64 %d, [%f];"


@pytest.mark.parametrize(
    ("flag", "old", "new"),
    [
        (VOLATILE, "membar.gl; st", "membar.cta; st"),
        (VOLATILE, "%v, [%f]; membar.gl", "%v, [%f]; membar.cta"),
        (VOLATILE, "membar.gl; st", "fence.proxy.async; st"),
        (WIDE, "ld.acquire.gpu.global.u64 %d", "ld.acquire.gpu.global.u32 %v"),
        (WIDE, "st.release.gpu.global.u64", "st.release.gpu.global.u32"),
    ],
)
def test_flags_between_blocks(flag, old, new):
    """Volatile accesses are relaxed ones; a proxy fence is none; accesses of other widths do not
    synchronise."""
    weaker = [text.replace(old, new) for text in flag]
    assert weaker != list(flag)
    assert blocks(*flag) == set()
    assert "RAW" in blocks(*weaker)


INIT = """mov.u32 %v, bar; @!%p mbarrier.init.shared::cta.b64 [%v], 1; bar.sync 0;"""
ARRIVE = "mov.u32 %v, bar; mbarrier.arrive.release.cta.shared::cta.b64 _, [%v];"
WAIT = """mov.u32 %v, bar;
W: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q, [%v], 0; @!%q bra W;"""
REMOTE = """mov.u32 %v, bar; mapa.shared::cluster.u32 %v, %v, 1;
mbarrier.arrive.release.SCOPE.shared::cluster.b64 _, [%v];"""
CLUSTER = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;"


@pytest.mark.parametrize(
    ("before", "write", "read", "racy"),
    [
        (INIT, ARRIVE, WAIT, False),
        (INIT, ARRIVE.replace("release", "relaxed"), WAIT, True),
        (INIT, "fence.acq_rel.cta;" + ARRIVE.replace("release", "relaxed"), WAIT, False),
        (INIT, ARRIVE, WAIT.replace("acquire", "relaxed"), True),
        (INIT, ARRIVE, WAIT.replace("acquire", "relaxed") + "fence.acq_rel.cta;", False),
        ("", CLUSTER, CLUSTER, False),
        ("", RELAXED, CLUSTER, True),
        ("", "fence.acq_rel.cluster;" + RELAXED, CLUSTER, False),
    ],
)
def test_relaxed_barriers(before, write, read, racy):
    found = traced(1, 2, index="tid.x", count="1", before=before, write=write, read=read)
    assert [h.kind for h in found] == ["RAW"] * racy


@pytest.mark.parametrize(
    ("before", "write", "read", "racy"),
    [
        ("", CLUSTER, CLUSTER, False),
        ("", "fence.acq_rel.cluster;" + RELAXED, CLUSTER, False),
        ("", "fence.acq_rel.gpu;" + RELAXED, CLUSTER, False),
        ("", "fence.acq_rel.cta;" + RELAXED, CLUSTER, True),
        ("", RELAXED, CLUSTER, True),
        (
            INIT + CLUSTER,
            REMOTE.replace("SCOPE", "cluster"),
            WAIT.replace("cta.sh", "cluster.sh"),
            False,
        ),
        (
            INIT + CLUSTER,
            REMOTE.replace("SCOPE", "cta"),
            WAIT.replace("cta.sh", "cluster.sh"),
            True,
        ),
        (INIT + CLUSTER, REMOTE.replace("SCOPE", "cluster"), WAIT, True),
        (
            INIT + CLUSTER,
            REMOTE.replace("release.SCOPE.", ""),
            WAIT.replace("acquire.cta.", ""),
            False,
        ),
    ],
)
def test_scopes_between_the_blocks_of_a_cluster(before, write, read, racy):
    """A fence or an mbarrier operation of .cta scope orders nothing for the other block."""
    text = KERNEL.replace(
        ".param .u64 flag)", ".param .u64 flag) .explicitcluster .reqnctapercluster 2"
    )
    parts = {"before": before.replace("@!%p mb", "mb"), "write": write, "read": read}
    ptx = text.format(index="cluster_ctarank", count="1", end=CLUSTER + "ret;", **parts)
    arrays = np.zeros(1, "u4"), np.zeros(1, "u8")
    trace = smemkern.trace(smemkern.Kernel(ptx, "k"), 2, 1, *arrays)
    assert [h.kind for h in trace.hazards] == ["RAW"] * racy


@pytest.mark.parametrize(
    ("first", "aligned", "found"),
    [(32, "", False), (32, ".aligned", False), (16, "", False), (16, ".aligned", True)],
)
def test_threads_at_different_instructions_of_one_cluster_barrier(first, aligned, found):
    """With .aligned all threads of a warp must be at one instruction."""
    sync = f"barrier.cluster.arrive{aligned}; barrier.cluster.wait{aligned};"
    ptx = (
        HEAD
        + f""".visible .entry k() .explicitcluster .reqnctapercluster 2 {{
    .reg .u32 %t; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.ge.u32 %p, %t, {first};
    @%p bra UPPER;
    {sync}
    ret;
UPPER:
    {sync}
    ret;
}}"""
    )
    trace = smemkern.trace(smemkern.Kernel(ptx, "k"), 2, 64)
    assert {h.kind for h in trace.hazards} == ({"barrier"} if found else set())


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("access", ["ld.weak r0, x", "ld.relaxed.cta r0, x", "st.relaxed.gpu x, 1"])
def test_each_block_must_signal(n, access):
    """Each of n blocks accesses x and signals. The last one acquires the signals and writes x. If
    any block, whichever, does not signal by a release, there is a race."""

    def found(silent: int | None) -> set[str]:
        orders = ["relaxed" if k == silent else "release" for k in range(n)]
        columns = [
            [f"P{k}@cta {k},gpu 0" for k in range(n + 1)],
            [*[access] * n, "ld.acquire.gpu r0, f"],
            [*(f"atom.{order}.gpu.add r1, f, 1" for order in orders), "st.weak x, 9"],
        ]
        return reported("\n".join(" | ".join(line) + " ;" for line in columns))

    assert found(None) == set()
    assert all(found(silent) == {"x"} for silent in range(n))


LEAVES = """
extern "C" __global__ void k(int *y) {
    __shared__ int s;
    int t = threadIdx.x;
    if (t == 32) s = y[t];
    @
    if (t >= 32) return;
    % __syncthreads();
    y[t] = s;
}"""


@pytest.mark.parametrize("fence", ["", "__threadfence_block();"])
@pytest.mark.usefixtures("nvrtc")
def test_a_barrier_does_not_order_what_exited_threads_did(fence):
    def kinds(first: str) -> set[str]:
        source = LEAVES.replace("@", first).replace("%", fence)
        kernel = smemkern.Kernel(source, "k", ("-std=c++17",))
        trace = smemkern.trace(kernel, 1, 64, np.zeros(64, "i4"), hazards=True)
        return {h.kind for h in trace.hazards}

    assert kinds("__syncthreads();") == set()
    assert len(kinds("") & {"RAW", "WAR"}) == 1
