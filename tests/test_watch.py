"""smemkern.watch: calls are counted, and do what they do without it."""

import threading

import numpy as np
import pytest

import smemkern

FLIP = """extern "C" __global__ void flip(const float *x, float *y) {
    __shared__ float tile[32][33];
    tile[threadIdx.y][threadIdx.x] = x[32 * threadIdx.y + threadIdx.x];
    __syncthreads();
    y[32 * threadIdx.y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}"""


@pytest.fixture
def flip(nvrtc):
    return smemkern.Kernel(FLIP, "flip")


def arrays():
    x = np.random.default_rng().standard_normal((32, 32)).astype(np.float32)
    return x, np.zeros_like(x)


def test_kernels_and_operations(flip):
    x, y = arrays()
    call = smemkern.gemm  # taken before the watch
    with smemkern.watch() as seen:
        flip(1, (32, 32), x, y)
        assert (y == x.T).all() and (seen.requests, seen.wavefronts) == (64, 64)
        c = call(x, x, variant="conflicted", tile=32)
        assert np.allclose(c, x @ x, atol=1e-4)
        t = smemkern.transpose(x, device="emu")
        assert (t == x.T).all()
        assert (smemkern.probe(np.ones(64, np.float32)) == 1).any()
        smemkern.trace(flip, 1, (32, 32), x, y)
    assert [one.launch.op for one in seen.traces] == [
        *("Kernel", "gemm", "transpose", "probe", "Kernel")
    ]
    plain = smemkern.trace("gemm", x, x, variant="conflicted", tile=32)
    assert seen.traces[1].shared_wavefronts == plain.shared_wavefronts
    assert seen.conflict_factor == max(row.factor for row in plain.shared) > 8
    assert seen.sectors == sum(row.sectors for one in seen.traces for row in one.global_)
    assert seen.hazards == 0
    flip(1, (32, 32), x, y)
    smemkern.gemm(x, x)
    assert len(seen.traces) == 5  # not after its end


def test_watches_inside_of_each_other_and_errors(flip):
    x, y = arrays()
    with smemkern.watch(hazards=False) as outer:
        flip(1, (32, 32), x, y)
        with smemkern.watch() as inner:
            flip(1, (32, 32), x, y)
        with pytest.raises(ZeroDivisionError), smemkern.watch():
            1 / 0  # noqa: B018
        flip(1, (32, 32), x, y)
    assert (len(outer.traces), len(inner.traces)) == (3, 1)
    assert [one.checked for one in outer.traces] == [False, True, False]
    y[:] = 0
    flip(1, (32, 32), x, y)
    assert (y == x.T).all() and len(outer.traces) == 3


def test_errors_are_those_without_it(flip):
    x, y = arrays()
    short = np.zeros(31, np.float32)
    for args in ((1, (32, 32), x), (1, (32, 32), x, 3), (0, 1, x, y)):
        with pytest.raises(Exception, match=".") as plain:
            flip(*args, device="emu")  # 3 is an address, by which a GPU is lost
        with smemkern.watch(), pytest.raises(plain.type, match=".") as watched:
            flip(*args, device="emu")
        assert str(plain.value) == str(watched.value)
    with pytest.raises(ValueError, match="variant"), smemkern.watch():
        smemkern.gemm(x, x, variant="none")
    with (
        smemkern.watch() as seen,
        pytest.raises(smemkern.LaunchError, match="out of bounds"),
    ):
        flip(1, (32, 32), x, short, device="emu")
    assert seen.hazards == 1 and not short.any()


def test_hazards_do_not_raise(nvrtc):
    racy = smemkern.Kernel(FLIP.replace("__syncthreads();", ""), "flip")
    x, y = arrays()
    with smemkern.watch() as seen:
        racy(1, (32, 32), x, y)
    assert seen.hazards > 0 and y.any()
    checked = smemkern.Kernel(racy.source, "flip", check=True)
    with smemkern.watch() as seen, pytest.raises(smemkern.HazardError, match="race"):
        checked(1, (32, 32), x, y)
    assert seen.hazards > 0


def test_calls_of_all_threads(flip):
    def work():
        for _ in range(5):
            x, y = arrays()
            flip(1, (32, 32), x, y)
            assert (y == x.T).all()

    with smemkern.watch() as seen:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(seen.traces) == 20 and seen.wavefronts == 20 * 64


def test_a_gpu_is_left_alone(monkeypatch):
    """A call that names a GPU goes there: without one it says so, as without the watch."""
    if smemkern.devices()[0].name != "emu":
        pytest.skip("there is a GPU")
    a = np.ones((4, 4), np.float32)
    with smemkern.watch() as seen, pytest.raises(smemkern.NoDeviceError, match="."):
        smemkern.gemm(a, a, device="cuda")
    assert (seen.on_gpu, seen.traces) == (1, [])


class InDeviceMemory:
    def __dlpack_device__(self):
        return (2, 0)


class OfNumba:
    __cuda_array_interface__ = {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [(InDeviceMemory(), True), (OfNumba(), True), (np.ones(3), False), (3, False), (None, False)],
)
def test_arrays_on_a_gpu_are_known(given, expected):
    from smemkern._trace import watch

    assert watch._on_gpu((1, 1, given), {}) == expected
    assert watch._on_gpu((1,), {"out": given}) == expected
    assert not watch._on_gpu((given,), {"device": "emu"})
