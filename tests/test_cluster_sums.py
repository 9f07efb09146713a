"""Split-K in one launch: the blocks of a tile are a cluster, which adds the parts of K."""

import shutil

import numpy as np
import pytest

import smemkern
from checks import assert_gemm, assert_gemm_into, launches, random_matrix
from rows import parameter_sets

SMALL = {"block_m": 64, "block_n": 64, "warp_m": 32, "warp_n": 32}
ROWS = [
    row
    for row in smemkern.variants("gemm")
    if row.name in ("mma_tf32", "mma_tf32x3", "mma_fp16", "mma_bf16", "fp64")
]
CASES = [pytest.param(row, row.dtypes[0], id=row.name) for row in ROWS]
PER_ROW = pytest.mark.parametrize(("row", "dtype"), CASES)


def random_call(draw, dtype):
    """Operands in either order, and `out` between other elements."""
    rng, m, n = (
        np.random.default_rng(draw.getrandbits(64)),
        draw.randint(1, 200),
        draw.randint(1, 200),
    )
    k = draw.randint(65, 900)
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    if draw.random() < 0.5:
        a = np.asfortranarray(a)
    if draw.random() < 0.5:
        b = np.asfortranarray(b)
    return a, b, random_matrix(rng, (m, n + 3), dtype)


@PER_ROW
@pytest.mark.parametrize("split", [1, 2, 8, 9])
def test_one_launch_of_clusters(row, dtype, split):
    a, b = np.zeros((70, 2048), dtype), np.zeros((2048, 90), dtype)
    first, *more = launches(a, b, row, split=split, **SMALL)
    assert (first["cluster"], len(more)) == {1: (0, 0), 9: (0, 1)}.get(split, (split, 0))
    assert first["grid"] == ((4, split, 1) if first["cluster"] else (4 * split, 1, 1))


@PER_ROW
def test_large_tiles_have_a_second_launch(row, dtype):
    """128 x 128 sums are 64 KiB or more, which a launch of all blocks reads faster."""
    a, b = np.zeros((128, 2048), dtype), np.zeros((2048, 128), dtype)
    assert [launch["cluster"] for launch in launches(a, b, row, split=4)] == [0, 0]


@PER_ROW
def test_random_calls(row, dtype, draw, device):
    for _ in range(12):
        params = draw.choice([SMALL, *parameter_sets(row)])
        a, b, wide = random_call(draw, dtype)
        out = wide[:, 1:-2] if draw.random() < 0.5 else wide[:, :-3]
        split = draw.randint(2, 8)
        alpha, beta = draw.choice([(1, 0), (-1.5, 0.25)])
        assert_gemm_into(out, a, b, alpha, beta, row, split=split, device=device, **params)


@PER_ROW
def test_same_bits_in_each_run_and_no_hazards(row, dtype, rng):
    a, b = random_matrix(rng, (130, 520), dtype), random_matrix(rng, (520, 70), dtype)
    first = smemkern.trace("gemm", a, b, variant=row.name, split=5, **SMALL)
    again = smemkern.trace("gemm", a, b, variant=row.name, split=5, **SMALL)
    assert first.hazards == ()
    assert first.result.tobytes() == again.result.tobytes()
    assert_gemm(first.result, a, b, row=row)


@PER_ROW
@pytest.mark.parametrize("order", "CF")
def test_whole_tiles_have_no_conflicts(row, dtype, order, rng):
    """Neither in the sums that a block writes nor in those that it reads."""
    a = np.asarray(random_matrix(rng, (128, 512), dtype), order=order)
    b = random_matrix(rng, (512, 128), dtype)
    trace = smemkern.trace("gemm", a, b, variant=row.name, split=4, **SMALL)
    sums = [r for r in trace.shared if r.file == "split_k.cuh" or r.op == "store"]
    assert {r.direction for r in sums} == {"read", "write"}
    assert [r for r in sums if r.wavefronts != r.ideal] == []


@PER_ROW
def test_all_parts_of_what_is_not_finite(row, dtype):
    a, b = np.ones((9, 600), dtype), np.ones((600, 7), dtype)
    a[2, 590], a[3, 5], a[4, 300] = np.inf, np.nan, -np.inf
    a[4, 10] = np.inf
    result = smemkern.gemm(a, b, variant=row.name, split=6, device="emu", **SMALL)
    assert np.isposinf(result[2].astype("f8")).all()
    assert np.isnan(result[[3, 4]].astype("f8")).all()
    assert np.isfinite(np.delete(result.astype("f8"), [2, 3, 4], 0)).all()


SUMS = "split_k.cuh", "struct cluster_parts"
WAITS = {  # (file, what it follows, text)
    "own sums are there": (*SUMS, "        sync();\n"),
    "all have begun": (
        *("mma_gemm.cuh", "const auto meanwhile"),
        "        if (adds) cluster_wait(); /* all have begun */\n",
    ),
    "all sums are there": (*SUMS, "        barrier_wait(barrier, 0);\n"),
    "copies see the sums": (*SUMS, "        fence_async_proxy();\n"),
}


@pytest.mark.parametrize("which", range(len(WAITS)), ids=list(WAITS))
def test_each_wait_is_needed(which, rng, tmp_path, nvrtc):
    """Without one the race is found. Compiled from sources, as these tiles are."""
    before = smemkern._core.config()
    kernels = shutil.copytree(before["kernels"], tmp_path / "kernels")
    file, after, wait = list(WAITS.values())[which]
    header = kernels / "include" / file
    start, end = header.read_text().split(after)
    assert end.count(wait) == 1
    header.write_text(f"{start}{after}{end.replace(wait, '')}")
    a, b = random_matrix(rng, (64, 512), "f8"), random_matrix(rng, (512, 64), "f8")
    alone = {"stages": 2 + which + which // 2}  # of no other test: modules stay loaded
    smemkern._core.configure(str(tmp_path / "no images"), str(kernels))
    try:
        assert smemkern.trace("gemm", a, b, variant="fp64", split=4, **SMALL, **alone).hazards
    except smemkern.LaunchError as error:
        assert "exited before this copy" in str(error)
    finally:
        smemkern._core.configure(before["images"], before["kernels"])
