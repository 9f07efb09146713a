import ctypes

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU


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
