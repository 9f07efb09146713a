"""Blocks of a cluster that share tiles: each copies a part to all of them."""

import math
import shutil
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_same_bits, launches, random_matrix

ROWS = [row for row in smemkern.variants("gemm") if "multicast" in row.params]
PER_ROW = pytest.mark.parametrize(
    ("row", "dtype"), [pytest.param(row, row.dtypes[0], id=row.name) for row in ROWS]
)
TILE = {"block_m": 64, "block_n": 64, "split": 1}


def operands(rng, shape, layout, dtype):
    m, n, k = shape
    a = random_matrix(rng, (m, k) if layout[0] == "N" else (k, m), dtype)
    b = random_matrix(rng, (k, n) if layout[1] == "N" else (n, k), dtype)
    return a if layout[0] == "N" else a.T, b if layout[1] == "N" else b.T


@PER_ROW
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize(
    ("multicast", "multicast_a"), [(2, 1), (4, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 2)]
)
def test_no_hazards_no_conflicts_and_the_same_bits(
    row, dtype, layout, multicast, multicast_a, rng, draw
):
    """Of any number of tiles: some blocks of a cluster may have none."""
    shape = 8 * draw.randint(1, 50), 8 * draw.randint(1, 30), 8 * draw.randint(1, 50)
    swapped, split = draw.choice([1, 2]), draw.choice([1, 3])
    a, b = operands(rng, shape, layout, dtype)
    chosen = {**TILE, "split": split, "swapped": swapped}
    shared = {"multicast": multicast, "multicast_a": multicast_a}
    trace = smemkern.trace("gemm", a, b, variant=row.name, **chosen, **shared)
    assert trace.hazards == ()
    if split == 1:  # those that add parts have idle lanes at C's edges: test_summed_tiles.py
        assert [r for r in trace.shared if r.wavefronts != r.ideal] == []
    alone = smemkern.gemm(
        a, b, variant=row.name, device="emu", **chosen, multicast=1, multicast_a=1
    )
    assert_same_bits(trace.result, alone)
    assert_gemm(trace.result, a, b, row=row)


@PER_ROW
@pytest.mark.parametrize("multicast", [1, 2, 4])
@pytest.mark.parametrize("multicast_a", [1, 2])
def test_tiles_are_read_once_per_cluster(row, dtype, multicast, multicast_a):
    """Eight x two tiles of 64 x 64, ten steps of 128 bytes of K. Each block receives its own."""
    k = 1280 // np.dtype(dtype).itemsize
    a, b = np.zeros((8 * 64, k), dtype), np.zeros((2 * 64, k), dtype).T
    shared = {"multicast": multicast, "multicast_a": multicast_a}
    trace = smemkern.trace("gemm", a, b, variant=row.name, **TILE, swapped=1, **shared)
    copies = [r for r in trace.global_ if r.op == "bulk" and r.direction == "read"]
    tiles = 16 * 10 * 64 * 128  # bytes
    assert sum(r.bytes for r in copies) == tiles // multicast_a + tiles // multicast
    assert sum(r.sectors for r in copies) == 2 * tiles // 32


@PER_ROW
def test_a_rectangle_of_tiles_is_a_cluster(row, dtype):
    """9 x 2 tiles, of the transposes too: 3 clusters of four per column, with three empty tiles."""
    for m, n, swapped in ((9 * 64, 2 * 64, 1), (2 * 64, 9 * 64, 2)):
        a, b = np.zeros((m, 256), dtype), np.zeros((n, 256), dtype).T
        a, b = (np.asfortranarray(a), np.ascontiguousarray(b)) if swapped == 2 else (a, b)
        for multicast, multicast_a in ((1, 1), (2, 1), (4, 1), (1, 2), (4, 2)):
            shared = {"multicast": multicast, "multicast_a": multicast_a}
            *_, last = launches(a, b, row, **TILE, swapped=swapped, **shared)
            clusters = math.ceil(9 / multicast) * 2 // multicast_a
            assert last["grid"][:2] == (clusters, multicast * multicast_a)
            assert max(1, last["cluster"]) == multicast * multicast_a


def test_thin_tiles_ignore_it():
    for row in (row for row in ROWS if row.name != "tf32"):
        a, b = np.zeros((640, 640), row.dtypes[0]), np.zeros((640, 16), row.dtypes[0])
        given = {"block_m": 64, "block_n": 8, "split": 1}
        plans = [launches(a, b, row, **given, multicast=n, multicast_a=n) for n in (1, 2)]
        assert [one["cluster"] for one in plans[0]] == [one["cluster"] for one in plans[1]]


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        (
            "if (lane < r.sharing) barrier_arrive_of_rank(empty, r.first + lane)",
            "if (lane == 0) arrive_4",
        ),
        ("        barrier_wait(r.empty + 8 * r.at, r.parity ^ 1);", ";"),
        ("cluster_arrive();\n        cluster_wait();", "__syncthreads();"),
    ],
    ids=[
        "a stage is filled when all blocks have read it",
        "blocks wait for each other before they exit",
        "barriers are there",
    ],
)
def test_each_wait_is_needed(there, instead, tmp_path, nvrtc):
    """Without one the race is found. Compiled from sources, in a process of its own: modules stay
    loaded."""
    kernels = shutil.copytree(smemkern._core.config()["kernels"], tmp_path / "kernels")
    header = kernels / "include" / "wgmma_ring.cuh"
    text = header.read_text()
    assert text.count(there) == 1
    arrive_4 = "for (int i = 0; i < r.sharing; i++) barrier_arrive(empty)"
    header.write_text(text.replace(there, instead.replace("arrive_4", arrive_4)))
    code = (
        "import sys, numpy as np, smemkern\n"
        "smemkern._core.configure(sys.argv[1], sys.argv[2])\n"
        "a, b = np.ones((256, 1024), 'f4'), np.ones((1024, 64), 'f4')\n"
        "trace = smemkern.trace('gemm', a, b, variant='tf32', block_m=64, block_n=64, split=1,\n"
        "                       swapped=1, multicast=4)\n"
        "print(len(trace.hazards), *trace.hazards, sep='\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "no images"), str(kernels)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[0]) > 0
