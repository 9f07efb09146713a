"""smemkern.dask: results are dask's own, K is added by a tree, what is wrong is refused before
anything runs, and a cluster that loses a worker in the middle gives the same result."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, assert_same_bits
from smemkern.reference import gemm_bound

da = pytest.importorskip("dask.array")

SHAPES = [  # chunks that end in odd places, and differ along K
    pytest.param((50, 70), (20, 30), (70, 33), (25, 33), id="matrices"),
    pytest.param((41, 37), (41, 37), (37, 29), (37, 29), id="one-chunk"),
    pytest.param((23, 40), (23, 1), (40, 5), (7, 2), id="narrow-chunks"),
    pytest.param((4, 1, 5, 17), (2, 1, 3, 3), (3, 17, 6), (2, 4, 2), id="batches"),
    pytest.param((6, 9, 12), (1, 9, 5), (6, 12, 8), (4, 6, 8), id="batches-cut-differently"),
    pytest.param((70,), (30,), (70, 33), (25, 10), id="vector-matrix"),
    pytest.param((5, 6, 70), (2, 5, 30), (70,), (25,), id="matrices-vector"),
    pytest.param((70,), (30,), (70,), (25,), id="vector-vector"),
    pytest.param((5, 0), (3, 1), (0, 4), (1, 2), id="no-k"),
    pytest.param((0, 5), (1, 2), (5, 4), (5, 2), id="no-rows"),
]


def arrays(rng, *given, dtype="float64"):
    """Arrays of N(0, 1), and dask's view of them in chunks; given (shape, chunks) each."""
    plain = [rng.standard_normal(shape).astype(dtype) for shape, _ in given]
    return plain, [
        da.from_array(x, chunks=chunks) for x, (_, chunks) in zip(plain, given, strict=True)
    ]


def never_run(shape, chunks, dtype="float32"):
    """A dask array whose chunks cannot be computed."""

    def fail(block_info=None):
        raise AssertionError("a chunk was computed")

    extents = da.core.normalize_chunks(chunks, shape, dtype=dtype)
    return da.map_blocks(fail, chunks=extents, meta=np.empty((0,), dtype))


@pytest.mark.parametrize(("shape_a", "chunks_a", "shape_b", "chunks_b"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_dasks_own(rng, shape_a, chunks_a, shape_b, chunks_b, dtype):
    (a, b), (x, y) = arrays(rng, (shape_a, chunks_a), (shape_b, chunks_b), dtype=dtype)
    ours, theirs = smemkern.dask.gemm(x, y), da.matmul(x, y)
    assert (ours.shape, ours.dtype, ours.chunks) == (theirs.shape, theirs.dtype, theirs.chunks)
    assert type(ours._meta) is np.ndarray and ours._meta.dtype == ours.dtype
    exact, bound = gemm_bound(a, b)
    result, other = ours.compute(), theirs.compute()
    assert result.dtype == ours.dtype and result.shape == ours.shape
    assert np.all(abs(result - exact) <= bound)
    assert np.all(abs(result - other) <= 2 * bound)  # both within the bound of any order of sums


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_partial_products_of_16_bits_are_added_in_float32(rng, dtype):
    """64 of them: added in 16 bits, the last ones would fall below half a unit of the sum."""
    n = 64
    ones = np.ones((1, 8 * n)).astype(dtype)
    x, y = (da.from_array(v, chunks=8) for v in (ones, ones.T))
    x = da.where(da.arange(8 * n, chunks=8) < 8, x * 512, x).astype(dtype)
    exact = 8 * 512 + 8 * (n - 1)
    step = {"float16": 4, "bfloat16": 32}[dtype]
    assert abs(float(smemkern.dask.gemm(x, y, device="emu").compute()[0, 0]) - exact) <= step / 2

    (a, b), (x, y) = arrays(rng, ((20, 50), (7, 9)), ((50, 20), (9, 20)), dtype=dtype)
    result = smemkern.dask.gemm(x, y)
    assert result.dtype == np.dtype(dtype)
    exact, bound = gemm_bound(a, b)
    size = abs(a.astype("f8")) @ abs(b.astype("f8"))
    bits = {"float16": 11, "bfloat16": 8}[dtype]
    assert np.all(abs(result.compute().astype("f8") - exact) <= bound + 2.0**-bits * size)


def test_options_reach_the_kernels(rng):
    (a, b), (x, y) = arrays(rng, ((40, 30), (20, 15)), ((30, 24), (10, 24)), dtype="float32")
    c = smemkern.dask.gemm(x, y, variant="swizzle", tile=16, alpha=-2.5, device="emu")
    exact, bound = gemm_bound(a, b, alpha=-2.5)
    assert np.all(abs(c.compute() - exact) <= bound)
    rough = smemkern.dask.gemm(x, y, accuracy="tf32").compute()
    assert np.all(abs(rough - a @ b) <= 1e-2 * (abs(a) @ abs(b)))
    with pytest.raises(smemkern.NoDeviceError):
        smemkern.dask.gemm(x, y, device="cuda:99").compute()


@pytest.mark.parametrize(("split", "levels"), [(2, 4), (3, 3), (16, 1)])
def test_k_is_added_by_a_tree(rng, monkeypatch, split, levels):
    seen = []
    product = smemkern.dask._product

    def watched(a, b, options):
        seen.append((a.shape, b.shape))
        return product(a, b, options)

    monkeypatch.setattr(smemkern.dask, "_product", watched)
    (a, b), (x, y) = arrays(rng, ((6, 64), (3, 4)), ((64, 5), (4, 5)))  # 16 chunks of K
    c = smemkern.dask.gemm(x, y, split_every=split)
    needs = {
        key: dependencies
        for key, dependencies in c.dask.get_all_dependencies().items()
        if key[0].startswith("smemkern-gemm-sum") and "chunk" not in key[0]
    }
    sums = {name for name, *_ in needs if "partial" in name or "aggregate" in name}
    assert len(sums) == levels
    assert max(len(wanted) for wanted in needs.values()) <= split
    exact, bound = gemm_bound(a, b)
    assert np.all(abs(c.compute(scheduler="sync") - exact) <= bound)
    assert set(seen) == {((3, 4), (4, 5))} and len(seen) == 32


def test_chunks_of_inputs_are_not_written_to():
    ones = np.ones((4, 12))
    x, y = da.from_array(ones, chunks=(4, 3)), da.from_array(ones.T.copy(), chunks=(3, 4))
    c = smemkern.dask.gemm(x, y, split_every=4).persist()
    again = smemkern.dask.gemm(x, y, split_every=2)
    assert (c.compute() == 12).all() and (again.compute() == 12).all() and (ones == 1).all()


@pytest.mark.parametrize(
    ("shape", "chunks"), [((50, 70), (20, 30)), ((3, 2, 9, 8), (2, 1, 4, 5)), ((4, 0), (2, 1))]
)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "c8", "c16", "M8[s]"])
def test_transposes(rng, shape, chunks, dtype):
    a = rng.integers(0, 100, shape).astype("i8").astype(dtype)
    x = da.from_array(a, chunks=chunks)
    turned = smemkern.dask.transpose(x)
    expected = da.swapaxes(x, -1, -2)
    assert (turned.dtype, turned.chunks) == (expected.dtype, expected.chunks)
    assert_same_bits(turned.compute(), np.ascontiguousarray(np.swapaxes(a, -1, -2)))
    assert_same_bits(
        smemkern.dask.transpose(x, variant="naive", device="emu").compute(),
        np.ascontiguousarray(np.swapaxes(a, -1, -2)),
    )


WRONG = [
    (dict(b=((71, 5), 20)), ValueError, "a of shape .* has 70 columns, b .* has 71 rows"),
    (dict(a=((2, 3, 70), 20), b=((3, 70, 5), 20)), ValueError, "batch dimensions .* broadcast"),
    (dict(a=((), ())), ValueError, "a has 0 dimensions"),
    (dict(dtype="int32"), TypeError, "a has dtype int32; float32, float64"),
    (dict(variant="nix"), ValueError, "gemm has no variant 'nix'"),
    (dict(variant="swizzle", tile=24), ValueError, "tile = 24 is not legal"),
    (dict(variant="swizzle", accuracy="tf32"), ValueError, "accuracy is for variant 'auto'"),
    (dict(accuracy="float8"), ValueError, "accuracy must be"),
    (dict(alpha="x"), TypeError, "alpha must be a real number"),
    (dict(split_every=1), ValueError, "split_every must be 2 or more, not 1"),
    (dict(split_every=2.5), TypeError, "float"),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_what_is_wrong_is_refused_before_anything_runs(given, error, message):
    options = dict(given)
    dtype = options.pop("dtype", "float32")
    a = never_run(*options.pop("a", ((50, 70), 20)), dtype=dtype)
    b = never_run(*options.pop("b", ((70, 33), 25)), dtype=dtype)
    with pytest.raises(error, match=message):
        smemkern.dask.gemm(a, b, **options)


def test_other_wrong_arrays():
    x = never_run((8, 8), 4)
    with pytest.raises(TypeError, match=r"b must be a dask array, not ndarray; .*from_array\(b"):
        smemkern.dask.gemm(x, np.ones((8, 8), "f4"))
    with pytest.raises(ValueError, match=r"a has chunks of unknown size .*compute_chunk_sizes"):
        smemkern.dask.gemm(x[x[:, 0] > 0], x)
    masked = x.map_blocks(np.ma.asarray, meta=np.ma.empty((0, 0), "f4"))
    with pytest.raises(
        TypeError, match=r"a must have chunks of NumPy or CuPy, not of type numpy\.ma\..*map_blocks"
    ):
        smemkern.dask.transpose(masked)
    with pytest.raises(ValueError, match="1 dimension where at least 2"):
        smemkern.dask.transpose(never_run((8,), 4))
    with pytest.raises(TypeError, match="dtype object"):
        smemkern.dask.transpose(never_run((8, 8), 4, dtype="O"))


class OnGpu(np.ndarray):
    """Stands for CuPy's arrays where there is none: what is asked of them before a run."""

    __cuda_array_interface__ = None


def test_results_have_the_meta_of_the_chunks():
    x = never_run((8, 8), 4)
    y = da.Array(x.dask, x.name, x.chunks, meta=np.empty((0, 0), "f4").view(OnGpu))
    assert type(smemkern.dask.gemm(y, y)._meta) is OnGpu
    assert type(smemkern.dask.gemm(y[0], y)._meta) is OnGpu
    assert type(smemkern.dask.transpose(y)._meta) is OnGpu
    with pytest.raises(TypeError, match=r"a's are .*OnGpu and b's are numpy\.ndarray.*cupy"):
        smemkern.dask.gemm(y, x)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_chunks_of_cupy_stay_on_the_gpu(rng):
    cupy = pytest.importorskip("cupy")
    (a, b), _ = arrays(rng, ((300, 500), 1), ((500, 200), 1), dtype="float32")
    x, y = (da.from_array(cupy.asarray(v), chunks=128, asarray=False) for v in (a, b))
    c = smemkern.dask.gemm(x, y)
    assert type(c._meta) is cupy.ndarray
    result = c.compute()
    assert type(result) is cupy.ndarray
    exact, bound = gemm_bound(a, b)
    assert np.all(abs(result.get() - exact) <= bound)
    assert (smemkern.dask.transpose(x).compute().get() == a.T).all()


@pytest.mark.parametrize("name", ["Error", "NoDeviceError", "LaunchError", "HazardError"])
def test_errors_come_back_from_workers(name):
    error = pickle.loads(pickle.dumps(getattr(smemkern, name)("why")))
    assert type(error) is getattr(smemkern, name) and str(error) == "why"


def test_without_dask():
    """The package and its other names work; calls say what to install."""
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from smemkern import *\n"
        "try: dask.gemm(1, 2)\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "smemkern.dask needs dask: pip install '.[dask]' in the clone"


@pytest.mark.long(instead="products in one process")
def test_a_worker_is_killed_in_the_middle(rng, tmp_path):
    """One of two processes dies with results that are still needed: they are made again."""
    distributed = pytest.importorskip("distributed")
    (a, b), (x, y) = arrays(rng, ((60, 96), (20, 16)), ((96, 50), (16, 25)), dtype="float32")
    gate = tmp_path / "open"

    def wait_for_the_gate(block, block_info=None):
        """The last chunk of a comes only after the worker's death: nothing is done before it."""
        while block_info[0]["chunk-location"] == (2, 5) and not gate.exists():
            time.sleep(0.01)
        return block

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        processes = client.run(os.getpid)
        assert len(set(processes.values()) - {os.getpid()}) == 2
        slow = x.map_blocks(wait_for_the_gate, dtype=x.dtype)
        future = client.compute(smemkern.dask.gemm(slow, y, device="emu", split_every=2))
        deadline = time.monotonic() + 30
        victim = None
        while victim is None and time.monotonic() < deadline:
            holds = client.has_what()
            victim = next((worker for worker in processes if len(holds[worker]) >= 4), None)
            time.sleep(0.01)
        assert victim is not None, f"no worker has results: {client.has_what()}"
        os.kill(processes[victim], signal.SIGKILL)
        assert not future.done()
        gate.touch()
        result = future.result(timeout=60)
        assert processes[victim] not in client.run(os.getpid).values()
    exact, bound = gemm_bound(a, b)
    assert np.all(abs(result - exact) <= bound)
