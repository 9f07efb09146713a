"""What only device "cuda" has: the caller's stream, and many threads on one GPU."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, assert_gemm, assert_same_bits

pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")


def test_callers_stream(rng):
    """The call runs in the caller's stream, so after what is queued there."""
    cupy = pytest.importorskip("cupy")
    a, b = rng.standard_normal((2, 300, 300)).astype("f4")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        busy = cupy.ones((4096, 4096), "f4")
        for _ in range(20):
            busy = busy @ busy * np.float32(1e-4)
        queued = cupy.cuda.Event()
        queued.record()
    result = smemkern.gemm(a, b, device="cuda", stream=stream.ptr)
    assert queued.done
    assert_gemm(result, a, b)
    x = rng.standard_normal((70, 90))
    assert_same_bits(smemkern.transpose(x, device="cuda", stream=stream.ptr), x.T.copy())
    stream.synchronize()


def test_threads(rng):
    def work(seed):
        local = np.random.default_rng(seed)
        m, n, k = local.integers(1, 200, 3)
        exact = local.standard_normal((m, k)), local.standard_normal((k, n))
        for row in smemkern.variants("gemm"):
            for dtype in row.dtypes:
                a, b = (x.astype(dtype) for x in exact)
                assert_gemm(smemkern.gemm(a, b, variant=row.name, device="cuda"), a, b, row=row)
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(64)))


def test_numbered_device(rng):
    a, b = rng.standard_normal((2, 40, 40))
    assert_gemm(smemkern.gemm(a, b, device="cuda:0"), a, b)
    with pytest.raises((ValueError, smemkern.NoDeviceError), match="cuda:99"):
        smemkern.gemm(a, b, device="cuda:99")
