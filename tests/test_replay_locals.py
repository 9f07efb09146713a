"""Variables of the source, by the debug information of the PTX."""

import random
import re

import numpy as np
import pytest

import smemkern
from smemkern._compiler.debug_info import variables

SOURCE = """
struct pair { short first; double second; };
__device__ __noinline__ float twice(float given) { float result = 2 * given; return result; }
__global__ void k(int *x, float scale, unsigned char step) {
    __shared__ short tile[4][32];
    double history[3];
    long long total = 0;
    pair p;
    for (int i = 0; i < 3; i++) {
        history[i] = x[i] * scale + threadIdx.x;
        total += x[i];
    }
    p.first = (short)total;
    p.second = history[1];
    tile[1][threadIdx.x] = p.first + step;
    float last = twice(scale);
    x[threadIdx.x] = (int)(total + last + p.second + tile[1][31 - threadIdx.x]);
}
"""
LAST = 1 + SOURCE.splitlines().index("    float last = twice(scale);")


@pytest.fixture(scope="module")
def debugged():
    if not smemkern._core.config()["nvrtc"]:
        pytest.skip("no NVRTC here")
    return smemkern.Kernel(SOURCE, options=("-G",))


def test_values(debugged):
    x = np.random.default_rng().integers(-100, 100, 32).astype("i4")
    first = x.copy()
    replay = smemkern.replay(debugged, 1, 32, x, np.float32(0.5), np.uint8(7))
    assert replay.run_to(line=LAST)
    found, lanes = replay.locals, np.arange(32)
    total = int(first[:3].sum())
    np.testing.assert_array_equal(found["total"], np.full(32, total, np.int64))
    assert found["total"].dtype == np.int64
    history = first[:3] * 0.5 + lanes[:, None]
    np.testing.assert_array_equal(found["history"], history)
    assert found["history"].dtype == np.float64
    np.testing.assert_array_equal(found["scale"], np.full(32, 0.5, np.float32))
    tile = replay.shared(name="tile")  # compilers do not always describe it
    assert tile.shape == (4, 32)
    np.testing.assert_array_equal(tile[1].view(np.int16), np.full(32, total + 7, np.int16))
    assert replay.header["locals"][0]["function"] in range(len(replay.header["functions"]))


def test_variables_of_functions(debugged):
    found = {(v.function.lstrip("_Z0123456789"), v.name): v for v in variables(debugged.ptx)}
    names = {name for _, name in found}
    assert {"given", "result", "history", "total", "i", "step", "p"} <= names
    history = next(v for v in found.values() if v.name == "history")
    assert (history.dtype, history.size, history.shape) == ("f8", 24, (3,))
    assert next(v for v in found.values() if v.name == "step").parameter


def test_no_debug_information():
    kernel = smemkern.Kernel(SOURCE)
    assert variables(kernel.ptx) == ()
    replay = smemkern.replay(kernel, 1, 32, np.zeros(32, "i4"), np.float32(1), np.uint8(0))
    assert replay.locals == {}


def test_malformed_debug_information(debugged):
    """Whatever the bytes are, there are variables or none, and a replay of them works."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    lines = debugged.ptx.splitlines()
    data = [k for k, line in enumerate(lines) if re.match(r"\s*\.b(8|16|32|64) ", line)]
    for _ in range(60):
        changed = list(lines)
        for at in rng.sample(data, 3):
            changed[at] = rng.choice(
                ["", ".b8 255", ".b32 4294967295", ".b64 $L__tmp1", ".b8 0", ".b32 .debug_loc+9999"]
            )
        found = variables("\n".join(changed))
        assert all(len(v.places) > 0 and v.size >= 0 for v in found)
    variables.cache_clear()
