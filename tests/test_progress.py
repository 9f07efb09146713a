"""Bars: in a terminal alone, after a while, a count without tqdm, and never on standard output."""

import fcntl
import io
import os
import struct
import subprocess
import sys
import termios

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU, environment
from smemkern._render import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def look(monkeypatch):
    """look() puts a terminal in the place of standard error; not before the test itself runs, as
    pytest puts its own there between the fixtures and the test."""

    def put():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        return stream

    return put


@pytest.fixture
def soon(monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "DELAY", 0)


def test_items_are_all_there(look):
    terminal = look()
    assert list(progress.over([3, 1, 2], "bench", "times")) == [3, 1, 2]
    assert not terminal.getvalue()  # it took no two seconds


def test_bar(look, soon, capsys):
    terminal = look()
    assert list(progress.over(range(3), "bench", "times")) == [0, 1, 2]
    assert "bench" in terminal.getvalue() and "/3" in terminal.getvalue()
    assert not capsys.readouterr().out


@pytest.mark.parametrize("operation", ["gemm", "transpose"])
def test_blocks_of_the_emulator(operation):
    """The function is called at the end, too; True shows a bar."""
    a = np.ones((256, 128), np.float32)
    arrays = (a, a.T) if operation == "gemm" else (a,)
    call, calls = getattr(smemkern, operation), []
    call(*arrays, device="emu", variant="tiled", progress=lambda *at: calls.append(at))
    done, total = zip(*calls, strict=True)
    assert set(total) == {64 if operation == "gemm" else 32}
    assert list(done) == sorted(done) and done[-1] == total[-1]


@pytest.mark.long(instead="the tests of progress=")
@pytest.mark.skipif(HAS_GPU, reason="device None is not the emulator here")
def test_a_slow_call_says_once_that_it_is_emulated():
    text = """
import time, warnings, numpy as np, smemkern
warnings.simplefilter("error")  # so the warned call ends there; on any machine it is a slow one
a = np.ones((4096, 4096), "f4")
def ends_later(done, total):
    if time.monotonic() > started + 1.5:
        raise TimeoutError
for device in ("emu", None, None):
    started = time.monotonic()
    try:
        smemkern.gemm(a, a, device=device, variant="tiled", progress=ends_later)
    except (RuntimeWarning, TimeoutError) as stopped:
        print(type(stopped).__name__, stopped)
"""
    ran = subprocess.run([sys.executable, "-c", text], env=environment(), stdout=subprocess.PIPE)
    named, first, second = ran.stdout.decode().splitlines()
    assert named.split() == second.split() == ["TimeoutError"]
    assert first.startswith("RuntimeWarning this call runs on the emulator, which is slow: there")


def test_nobody_looks(monkeypatch, soon):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    assert list(progress.over(range(3), "bench", "times")) == [0, 1, 2]
    a = np.ones((32, 32), np.float32)
    smemkern.trace("gemm", a, a, variant="naive", progress=True)
    assert not stream.getvalue()
    monkeypatch.setattr(sys, "stderr", None)  # as of pythonw
    assert not progress.is_watched()


@pytest.fixture
def without_tqdm(monkeypatch):
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.setitem(sys.modules, name, None)


def test_a_count_without_tqdm(look, monkeypatch, without_tqdm):
    terminal = look()
    for name in ("DELAY", "INTERVAL"):
        monkeypatch.setattr(progress, name, 0)
    assert list(progress.over(range(3), "bench", "times")) == [0, 1, 2]
    with progress.Meter("trace", "blocks") as meter:
        meter(1, 2)
        meter(2, 2)
    lines = [text.strip() for text in terminal.getvalue().split("\r") if text]
    assert lines == [*(f"bench: {n} of 3 times" for n in (1, 2, 3)), ""] + [
        *(f"trace: {n} of 2 blocks" for n in (1, 2)),
        "",
    ]
    assert terminal.getvalue().endswith("\r")


def test_no_count_of_what_takes_no_time(look, without_tqdm):
    terminal = look()
    assert list(progress.over(range(3), "bench", "times")) == [0, 1, 2]
    assert not terminal.getvalue()


def test_traces_have_a_bar_that_ends(look, soon):
    terminal = look()
    a = np.ones((64, 64), np.float32)
    t = smemkern.trace("gemm", a, a, variant="naive", progress=True)
    assert "trace" in terminal.getvalue() and f"/{t.blocks}" in terminal.getvalue()
    with pytest.raises(ValueError, match="no variant 'none'"):
        smemkern.trace("gemm", a, a, variant="none", progress=True)


def test_traces_say_how_far_they_are():
    told = []
    a = np.ones((256, 256), np.float32)
    t = smemkern.trace("gemm", a, a, variant="conflicted", progress=lambda *at: told.append(at))
    assert told[-1] == (t.blocks, t.blocks) == (64, 64)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {64}
    told.clear()
    smemkern.trace("gemm", a, a, variant="tiled", blocks=3, progress=lambda *at: told.append(at))
    assert told[-1] == (3, 3)
    with pytest.raises(ZeroDivisionError):
        smemkern.trace("gemm", a, a, progress=lambda done, total: 1 / 0)


LONG = {
    "trace": "trace gemm --variant tiled --shape 64 64 64",
    "check": "check k.ptx --grid 2 --block 32 --arg i32[64]",
    "bench": "bench --shape 16 --variant tiled --device emu",
    "demo": "demo --device emu",
}


@pytest.mark.parametrize("name", LONG)
def test_commands_have_one(command, soon, short_demo, name, tmp_path, monkeypatch):
    from test_trace_rows import PTX

    (tmp_path / "k.ptx").write_text(PTX)
    monkeypatch.chdir(tmp_path)
    seen = []
    original = progress._bar
    monkeypatch.setattr(
        progress,
        "_bar",
        lambda total, what, unit: seen.append(what) or original(total, what, unit),
    )
    assert command.run(f"{LONG[name]} --json") == 0
    assert seen[0] == ("trace" if name == "check" else name)


def test_on_a_real_terminal():
    """There is a bar on standard error, and nothing of it on the output."""
    pytest.importorskip("tqdm")
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = "trace gemm --variant conflicted --shape 512 512 512".split()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *words], stderr=slave, stdout=subprocess.PIPE, text=True
    )
    os.close(slave)
    out = child.communicate(timeout=120)[0]
    said = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:
            break
        said += part
    os.close(master)
    assert child.returncode == 0
    assert b"trace" in said and b"blocks" in said
    assert "blocks" not in out and "conflicted" in out


CHILD = """import sys
import smemkern._render.progress
from smemkern.__main__ import main
smemkern._render.progress.DELAY = 0  # a fast machine is done in 50 ms
sys.exit(main(sys.argv[1:]))
"""
