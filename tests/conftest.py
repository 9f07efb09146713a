import ctypes
import gc

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU
from command import Commands


@pytest.fixture(scope="module", autouse=True)
def short_collections():
    """Hides what exists before a file's tests, some half a million objects, from the garbage
    collector: a gc.collect() of theirs looks only at what they made, and takes no 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def poisoned_memory():
    """glibc fills what malloc returns with 0xfe: an output that a kernel forgets is -1.7e38."""
    m_perturb = -6
    ctypes.CDLL(None).mallopt(m_perturb, 0x01)


@pytest.fixture(
    params=[
        "emu",
        pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")),
    ]
)
def device(request):
    return request.param


@pytest.fixture
def rng():
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def nvrtc():
    if not smemkern._core.config()["nvrtc"][0].isdigit():
        pytest.skip("NVRTC is not installed: pip install smemkern[nvrtc]")


@pytest.fixture
def command(capsys, monkeypatch):
    """The command line as a pipe sees it, whoever runs the tests."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "SMEMKERN_TRACEBACK"):
        monkeypatch.delenv(name, raising=False)
    return Commands(capsys)


@pytest.fixture
def short_demo(monkeypatch):
    """The demonstration of those variants that its conclusion speaks of, on small matrices."""
    spoken = "naive coalesced tiled conflicted padded swizzle register_tiled".split()
    rows = [row for row in smemkern.variants() if row.name in spoken and row.op != "probe"]
    monkeypatch.setattr("smemkern.demo.variants", lambda: rows)
    monkeypatch.setattr("smemkern.demo.COUNTED", 64)
