"""Texts of megabytes: read without the GIL, interruptible, within timeout=, in time that grows with
their length, whatever they say."""

from __future__ import annotations

import ctypes
import itertools
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<4000000>; .reg .b64 %d<4>; .reg .pred %p<4>;"


def entry(body: str, before: str = "") -> str:
    return f"{HEAD}{before}.visible .entry k() {{ {REGISTERS}\n{body}\nret; }}\n"


LONG = entry("mov.u32 %r0, 1;\n" * 400_000)  # a second or so
SHORT = entry("")


@pytest.fixture(scope="module", autouse=True)
def plain_memory():
    """Not filled: a newer glibc fills all that is free behind a block that grows, each time."""
    m_perturb = -6
    ctypes.CDLL(None).mallopt(m_perturb, 0)
    yield
    ctypes.CDLL(None).mallopt(m_perturb, 0x01)


class Stop(Exception):
    pass


def seconds_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def interrupted(call: Callable[[], object]) -> float:
    """How long after a signal, whose handler raises, the call has ended."""

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    began = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Stop) as caught:
            call()
        assert caught.value
        return time.perf_counter() - began - 0.1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def long_kernel() -> smemkern.Kernel:
    return smemkern.Kernel(LONG, "k")


@pytest.fixture
def unread(long_kernel: smemkern.Kernel) -> smemkern.Kernel:
    """As nothing is kept of it, its next call reads it."""
    smemkern.empty_cache("emu")
    return long_kernel


def run(kernel: smemkern.Kernel) -> None:
    kernel(1, 1, device="emu")


def test_other_threads_go_on_while_a_text_is_read() -> None:
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.wait(0.005):
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    seconds = seconds_of(lambda: smemkern.Kernel(LONG, "k"))
    done.set()
    thread.join()
    assert ticks[0] > seconds / 0.005 / 10, (ticks, seconds)


def test_an_interrupt_ends_the_reading(unread: smemkern.Kernel) -> None:
    whole = seconds_of(lambda: smemkern.Kernel(LONG, "k"))
    assert interrupted(lambda: smemkern.Kernel(LONG, "k")) < max(0.5, whole / 2)
    assert interrupted(lambda: run(unread)) < max(0.5, whole / 2)
    smemkern.empty_cache("emu")
    assert interrupted(lambda: smemkern.trace(unread, 1, 1)) < max(0.5, whole / 2)
    run(unread)


def test_the_time_to_read_counts(unread: smemkern.Kernel) -> None:
    with pytest.raises(TimeoutError, match="after 0.1 seconds"):
        unread(1, 1, device="emu", timeout=0.1)
    unread(1, 1, device="emu", timeout=600)


def test_a_handler_may_call_what_is_being_read(unread: smemkern.Kernel) -> None:
    ran = []

    def handler(*_: object) -> None:
        ran.append(seconds_of(lambda: run(unread)))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        run(unread)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(ran) == 1


def test_no_call_waits_for_the_reading_of_another(unread: smemkern.Kernel) -> None:
    whole = seconds_of(lambda: smemkern.Kernel(LONG, "k"))
    short = smemkern.Kernel(SHORT, "k")
    thread = threading.Thread(target=run, args=[unread])
    thread.start()
    time.sleep(0.05)
    assert seconds_of(lambda: run(short)) < whole / 2 and thread.is_alive()
    thread.join()


def test_threads_that_read_the_same_share_its_variables(unread: smemkern.Kernel) -> None:
    """Whoever reads first, all calls work on one copy of the module's variables."""
    counting = smemkern.Kernel(
        f"{HEAD}.global .u32 n;\n.visible .entry k() {{ .reg .b32 %r<4>;\n"
        + "mov.u32 %r1, 1;\n" * 20_000
        + "atom.global.add.u32 %r0, [n], 1; ret; }\n"
        + ".visible .entry get(.param .u64 x) { .reg .b32 %r<2>; .reg .b64 %d<2>;"
        " ld.param.u64 %d0, [x]; ld.global.u32 %r0, [n]; st.global.u32 [%d0], %r0; ret; }\n",
        "k",
    )
    get = smemkern.Kernel(counting.ptx, "get")
    threads = [threading.Thread(target=run, args=[counting]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    x = np.zeros(1, "u4")
    get(1, 1, x, device="emu")
    assert x[0] == 8


# ---- texts that a search through lists would make quadratic, 2 to 4 MB each

N = 100_000
MANY = range(N)


def same_hash() -> list[str]:
    """65536 names that FNV-1a does not tell apart: 16 pairs of blocks, each equal from the state
    that those before it lead to."""
    blocks = np.random.default_rng(1).integers(97, 123, (400_000, 8)).astype(np.uint32)
    state, pairs = np.uint32(2166136261), []
    for _ in range(16):
        hashes = np.full(len(blocks), state, np.uint32)
        for column in blocks.T:
            hashes = (hashes ^ column) * np.uint32(16777619)
        order = np.argsort(hashes, kind="stable")
        at = int(np.flatnonzero(np.diff(hashes[order]) == 0)[0])
        pairs.append([bytes(blocks[order[at + k]].astype(np.uint8)).decode() for k in (0, 1)])
        state = hashes[order[at]]
    return ["".join(choice) for choice in itertools.product(*pairs)]


def functions() -> str:
    return "".join(f".func f{i}() {{ ret; }}\n" for i in MANY)


def targets() -> str:
    return ", ".join(f"L{i}" for i in MANY)


HOSTILE = {
    "constants": lambda: entry("".join(f"mov.u32 %r0, {7 * i};\n" for i in range(2 * N))),
    "addresses": lambda: entry(
        "".join(f"mov.u64 %d0, v+{i};\n" for i in range(2 * N)), ".global .b8 v[4];\n"
    ),
    "local addresses": lambda: entry(
        ".local .b8 v[4];" + "".join(f"mov.u64 %d0, v+{i};\n" for i in range(2 * N))
    ),
    "calls": lambda: entry("".join(f"call f{i};\n" for i in MANY), functions()),
    "a chain of calls": lambda: entry(
        f"call f{N - 1};",
        ".func f0() { ret; }\n"
        + "".join(f".func f{i}() {{ call f{i - 1}; ret; }}\n" for i in range(1, N)),
    ),
    "a table of functions": lambda: entry(
        "", f"{functions()}.global .u64 t[{N}] = {{{', '.join(f'f{i}' for i in MANY)}}};\n"
    ),
    "a branch to all of a chain": lambda: entry(
        f"ts: .branchtargets {targets()};\nmov.u32 %r0, 1;\nbrx.idx %r0, ts;\n"
        + "".join(f"L{i}: bar.sync 0;\n" for i in MANY)
    ),
    "names of one hash": lambda: entry("".join(f".reg .b32 {name};\n" for name in same_hash())),
}


@pytest.mark.parametrize("text", HOSTILE)
def test_time_grows_with_the_length(text: str) -> None:
    """Some tenths of a second; each took more than ten."""
    source = HOSTILE[text]()
    began = time.process_time()
    kernel = smemkern.Kernel(source, "k")
    try:
        kernel(1, 1, device="emu", max_instructions=1000, timeout=60)
    except smemkern.LaunchError as error:
        assert "max_instructions" in str(error) or "stack overflow" in str(error)
    assert time.process_time() - began < 8
    smemkern.empty_cache("emu")
