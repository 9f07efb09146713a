"""Hazards between the blocks of a cluster, and of a cooperative launch: found, and not invented."""

from __future__ import annotations

import numpy as np
import pytest
import test_emu_clusters as clusters
from test_emu_cooperative import GRID_SYNC

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")


def found(source: str, grid: int, block: int, *args: object, **options: object) -> list[str]:
    """The findings as "kind: text of the later line | text of the earlier line"."""
    k = clusters.kernel(source)
    lines = k.source.splitlines()

    def text(line: int | None) -> str:
        return lines[line - 1].strip() if line else "-"

    trace = smemkern.trace(k, grid, block, *args, **options)
    return [f"{h.kind}: {text(h.line)} | {text(h.other_line)}" for h in trace.hazards]


RUNS = {
    "ring": lambda n: (
        clusters.RING.replace("CLUSTER", ""),
        (2 * n, 96, np.ones((2 * n, 96), "i4"), np.zeros((2 * n, 96), "i4"), 3),
        {},
    ),
    "histogram": lambda n: (
        clusters.HISTOGRAM,
        (2 * n, 64, np.arange(700, dtype="u4") % (n * 37), np.zeros(n * 37, "u4"), 700, 37),
        {"shared_bytes": 4 * 37},
    ),
    "async": lambda n: (
        clusters.ASYNC,
        (n, 64, np.ones((n, 64), "i4"), np.zeros((n, 128), "i4")),
        {},
    ),
    "shared to shared": lambda n: (
        clusters.SHARED_TO_SHARED,
        (2 * n, 64, np.ones((2 * n, 64), "i4"), np.zeros((2 * n, 64), "i4")),
        {},
    ),
    "multicast": lambda n: (
        clusters.MULTICAST,
        (n, 64, np.ones(32, "i4"), np.zeros((n, 64), "i4"), 3),
        {},
    ),
}


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("what", RUNS)
def test_correct_kernels_have_no_hazards(what, n):
    source, args, options = RUNS[what](n)
    assert found(source, *args, cluster=n, **options) == []


def test_gemm_with_multicast_has_no_hazards():
    a, b, c = np.ones((32, 64), "f4"), np.ones((64, 128), "f4"), np.zeros((32, 128), "f4")
    maps = smemkern.TensorMap(a, (8, 32)), smemkern.TensorMap(b, (32, 32))
    assert found(clusters.GEMM, (4, 1), 128, *maps, c, 64, cluster=4) == []
    assert (c == 64).all()


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("first", ["sync_cluster();", "__syncthreads();"])
def test_another_blocks_mbarrier_is_initialised_before_a_copy_completes_on_it(first, n):
    """Not only by luck: each block has fenced and waited for its own threads."""
    source = clusters.MULTICAST.replace("tile[t] = -1;", "").replace(
        "= tile[t]", "= tile[t / 2 + 16]"
    )
    source = source.replace("sync_cluster();", first, 1)
    x, out = np.ones(32, "i4"), np.zeros((n, 64), "i4")
    hazards = found(source, n, 64, x, out, (1 << n) - 1, cluster=n)
    assert all(line.startswith("RAW") and "mbarrier.init" in line for line in hazards)
    assert bool(hazards) == (first == "__syncthreads();")
    assert (out == 1).all()


NEIGHBOUR = r"""
extern "C" __global__ void k(int *out) {
    __shared__ int tile[64];
    const unsigned t = threadIdx.x, other = (rank() + 1) % blocks();
    tile[t] = t + rank();
    FIRST
    const int got = there(tile, other)[63 - t];
    LAST
    out[blockIdx.x * 64 + t] = got;
}"""
SYNC = "sync_cluster();"
RELAXED = (
    'asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;"'
    ' ::: "memory");'
)
WRITES, READS = "tile[t] = t + rank();", "const int got = there(tile, other)[63 - t];"


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (SYNC, SYNC, []),
        ("__syncthreads();", SYNC, [f"RAW: {READS} | {WRITES}"]),
        (RELAXED, SYNC, [f"RAW: {READS} | {WRITES}"]),
        ("__threadfence(); " + RELAXED, SYNC, []),
        (SYNC, "", [f"exited: {READS} | }}"]),
        (SYNC, "__syncthreads();", [f"exited: {READS} | }}"]),
    ],
    ids=["right", "no barrier", "relaxed", "fence and relaxed", "no exit", "only the block"],
)
def test_a_neighbours_shared_memory(first, last, expected, n):
    source = NEIGHBOUR.replace("FIRST", first).replace("LAST", last)
    assert sorted(set(found(source, 2 * n, 64, np.zeros(128 * n, "i4"), cluster=n))) == expected


def test_a_block_that_has_already_exited():
    source = """extern "C" __global__ void k(int *out) {
        __shared__ int tile[32];
        tile[threadIdx.x] = 1;
        sync_cluster();
        if (rank()) return;
        int sum = 0;
        for (int i = 0; i < 9999; i++) sum += ((volatile int *)there(tile, 1))[i % 32];
        out[threadIdx.x] = sum;
    }"""
    k = clusters.kernel(source)
    trace = smemkern.trace(k, 2, 32, np.zeros(32, "i4"), cluster=2)
    (hazard,) = trace.hazards
    assert (hazard.kind, hazard.block, hazard.other_block) == ("exited", (0, 0, 0), (1, 0, 0))
    assert trace.incomplete
    assert "shared memory of block 1 of the cluster, which has exited" in hazard.message


def test_writes_of_two_blocks_to_a_third():
    source = """extern "C" __global__ void k(int *out) {
        __shared__ int cell;
        if (rank() == 0) cell = 5;
        sync_cluster();
        if (rank() > 0) there(&cell, 0)[0] = rank();
        sync_cluster();
        if (rank() == 0) out[0] = cell;
    }"""
    text = "if (rank() > 0) there(&cell, 0)[0] = rank();"
    assert found(source, 3, 1, np.zeros(1, "i4"), cluster=3) == [f"WAW: {text} | {text}"]
    assert found(source, 2, 1, np.zeros(1, "i4"), cluster=2) == []


def test_atomics_of_several_blocks_do_not_race_but_a_plain_store_does():
    source = """extern "C" __global__ void k(int *out) {
        __shared__ int cell;
        if (rank() == 0) cell = 0;
        sync_cluster();
        if (rank() < 3) atomicAdd(there(&cell, 0), 1);
        else there(&cell, 0)[0] = 7;
        sync_cluster();
        if (rank() == 0) out[0] = cell;
    }"""
    assert found(source, 3, 1, np.zeros(1, "i4"), cluster=3) == []
    (race,) = found(source, 4, 1, np.zeros(1, "i4"), cluster=4)
    assert "atomicAdd" in race and "else there" in race


def test_a_remote_arrival_that_comes_too_late_to_order():
    source = clusters.ASYNC.replace("wait_cluster(&full, i & 1);", "")
    hazards = found(source, 2, 64, np.ones((2, 64), "i4"), np.zeros((2, 128), "i4"), cluster=2)
    assert any(one.startswith("async-read") for one in hazards)


def test_a_refill_without_the_consumers_arrival():
    source = clusters.ASYNC.replace("wait_cluster(&empty, i & 1);", "")
    hazards = found(source, 2, 64, np.ones((2, 64), "i4"), np.zeros((2, 128), "i4"), cluster=2)
    assert any(one.startswith(("WAR", "async-write", "RAW", "async-read")) for one in hazards)


def test_global_memory_between_blocks_of_a_cluster():
    source = """extern "C" __global__ void k(int *x, int *out) {
        x[blockIdx.x] = blockIdx.x;
        FIRST
        out[blockIdx.x] = x[blockIdx.x ^ 1];
    }"""
    arrays = np.zeros(4, "i4"), np.zeros(4, "i4")
    assert found(source.replace("FIRST", SYNC), 4, 1, *arrays, cluster=2) == []
    (race,) = found(source.replace("FIRST", ""), 4, 1, *arrays, cluster=2)
    assert race.startswith("RAW: out[blockIdx.x] = x")


# ---- cooperative launches ----

GRID = (
    GRID_SYNC
    + r"""
extern "C" __global__ void k(int *x, int *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    x[i] = i;
    FIRST
    const int got = x[(i + 33) % n];
    SECOND
    x[i] = got + 1;
    THIRD
    out[i] = x[(i + 77) % n];
}"""
)


@pytest.mark.parametrize(
    ("first", "second", "third", "kinds"),
    [
        (1, 1, 1, set()),
        (0, 1, 1, {"RAW"}),
        (1, 0, 1, {"WAR"}),
        (1, 1, 0, {"RAW"}),
    ],
)
def test_grid_sync_orders(first, second, third, kinds):
    source = GRID
    for name, there in (("FIRST", first), ("SECOND", second), ("THIRD", third)):
        source = source.replace(name, "grid_sync();" if there else "__syncthreads();")
    x, out = np.zeros(320, "i4"), np.zeros(320, "i4")
    assert {h.split(":")[0] for h in found(source, 5, 64, x, out, cooperative=True)} == kinds
