import ctypes
import gc
import os
import random
import sys
from pathlib import Path

# Before NumPy is imported, here and in the processes of tests: tests run on all cores already, and
# further threads of BLAS would only wait there for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import first_run  # noqa: E402
import smemkern  # noqa: E402
from checks import HAS_GPU  # noqa: E402
from command import Commands  # noqa: E402

# For buildtools/ of the clone; at the end, so that an installed smemkern is found first.
sys.path.append(str(Path(__file__).resolve().parent.parent))


def pytest_addoption(parser):
    parser.addoption(
        "--all", action="store_true", dest="all_tests", help="every test (tests/first_run.py)"
    )
    parser.addoption(
        "--cases", type=int, metavar="N", help="of each test up to N cases, drawn at random"
    )
    parser.addoption("--cases-seed", type=int, help="draws the cases of an earlier run again")


def pytest_configure(config):
    given = getattr(config, "workerinput", {})  # of a worker of xdist, by the hook below
    config.addinivalue_line("markers", "long(instead): left to --all; what a first run has instead")
    config.stash[first_run.CHOSEN] = given.get("first_run", first_run.is_wanted(config))
    seed = config.option.cases_seed
    fresh = random.SystemRandom().randrange(2**32) if seed is None else seed
    config.stash[first_run.SEED] = given.get("cases_seed", fresh)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["first_run"] = node.config.stash[first_run.CHOSEN]
    node.workerinput["cases_seed"] = node.config.stash[first_run.SEED]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session, config, items):
    session.stash[first_run.COLLECTED] = list(items)
    kept = items
    if config.stash[first_run.CHOSEN]:
        kept = first_run.chosen(items)
    elif config.option.cases:
        kept = first_run.drawn(items, config.option.cases, config.stash[first_run.SEED])
    if kept is not items:
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[first_run.CHOSEN]:
        terminalreporter.write_line(first_run.SUMMARY)
    elif config.option.cases:
        seed = config.stash[first_run.SEED]
        terminalreporter.write_line(f"cases drawn again by --cases-seed {seed}")


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


@pytest.fixture
def draw():
    """Random choices, other ones in each run, for a few cases of a large product of them."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"draw = random.Random({seed})")  # which pytest shows on failure
    return random.Random(seed)


@pytest.fixture
def drawn():
    """Random numbers, other ones in each run."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"drawn = np.random.default_rng({seed})")  # which pytest shows on failure
    return np.random.default_rng(seed)


@pytest.fixture(scope="session")
def nvrtc():
    if not smemkern._core.config()["nvrtc"][0].isdigit():
        pytest.skip("NVRTC is not installed: pip install '.[nvrtc]'")


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
