"""python -m smemkern: help, what goes wrong, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import run_programs
import smemkern
from command import is_like, write_examples
from smemkern import _core
from smemkern.__main__ import COMMANDS, main
from smemkern._cli import info
from smemkern._compiler import nvcc
from smemkern._performance import ncu
from test_trace_rows import PTX

SHELL = [sys.executable, "-m", "smemkern"]
MACHINES = tuple(name for name in COMMANDS if name != "completion")


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """A folder with sum.cu and k.ptx, which is the current one."""
    write_examples(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- help


def test_there_are_the_commands_of_the_contract(command):
    assert command.run("--help") == 0
    for name, module in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(module.SUMMARY)}$", command.out, re.M)
    names = "info demo bench trace banks occupancy profile check ci run judge share debug"
    assert {*MACHINES} == {*names.split()}
    assert command.run("--version") == 0
    assert command.out == f"smemkern {smemkern.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(command, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command.run(f"{name} --help") == 0
    for part in ("example:", "see also:", "exit status:", "  0  success", f"smemkern {name}"):
        assert part in command.out
    assert ("    1  " in command.out) == bool(COMMANDS[name].FOUND)
    for option in ("--json", "--color", "--traceback"):
        assert option in command.out
    about, example = command.out.split("example:")
    assert max(map(len, about.splitlines())) <= 80
    assert max(map(len, example.splitlines())) <= 80


EXAMPLES = [
    pytest.param(words, output, id=words.split()[0] + f"-{i}")
    for module in COMMANDS.values()
    for i, (words, output) in enumerate(module.EXAMPLES)
    if module not in map(COMMANDS.get, ("demo", "profile", "completion"))  # demo: test_demo.py
]


@pytest.mark.parametrize(("words", "output"), EXAMPLES)
def test_examples_are_what_is_printed(command, kernels, words, output, nvrtc):
    if words.startswith("run "):
        run_programs.compiled(kernels, "sum", text=run_programs.page_source())
    assert command.run(words) == ("race" in output)
    assert is_like(command.out, output), command.out


# ---- what goes wrong

WRONG = [
    ("", "COMMAND"),
    ("trac", "invalid choice: 'trac'"),
    ("trace", "what"),
    ("trace gem", "expected gemm"),
    ("trace missing.cu --grid 1 --block 32", "missing.cu: No such file or directory"),
    ("trace k.ptx", "needs --grid"),
    ("trace k.ptx --grid 0 --block 32", "positive integers"),
    ("trace gemm --shape 3", "3 lengths"),
    ("trace gemm --param tile", "NAME=INT"),
    ("trace gemm --variant tiled --param tile=5000", "tile"),
    ("trace gemm --variant tild", "tiled"),
    ("trace gemm --dtype int8", "int8"),
    ("trace gemm --blocks 0", "blocks"),
    ("banks --stride 1 --width 3", "1, 2, 4, 8 or 16"),
    ("banks --tile 32", "like 32x32"),
    ("banks --op read", "op should be"),
    ("banks --stride two", "invalid int value"),
    ("occupancy", "--registers"),
    ("occupancy --registers 32 --arch sm_61", "there are: sm_70"),
    ("occupancy --registers 32 --threads 0", "at least 1"),
    ("bench --shape 3x --device emu", "4095x4097x4093"),
    ("bench --variant tild --device emu", "no variant 'tild'"),
    ("bench gemm", "unrecognized arguments: gemm; see python -m smemkern bench --help"),
    ("demo --device gpu", "device must be"),
    ("check k.ptx --grid 1", "--block"),
    ("info --color sometimes", "auto"),
    ("completion tcsh", "bash"),
]


@pytest.mark.parametrize(("words", "why"), WRONG, ids=[words for words, _ in WRONG])
def test_usage(command, kernels, words, why):
    assert command.run(words) == 2
    assert not command.out
    assert command.err.count("\n") == 1 and command.err.endswith("\n")
    assert "smemkern" in command.err and "error: " in command.err and why in command.err


def test_source_that_does_not_compile(command, tmp_path, nvrtc):
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k(float *x) { undefined(x); }")
    assert command.run(f"check {file} --kernel k --grid 1 --block 32") == 2
    assert "undefined" in command.err and "Traceback" not in command.err


def test_nothing_to_run_on(command, kernels, monkeypatch):
    assert command.run("bench --shape 8 --device cuda:99") == 3
    assert "device='emu'" in command.err
    monkeypatch.setattr(ncu, "find_ncu", _fails(_core.Error("there is no ncu")))
    assert command.run("profile gemm") == 3
    assert "there is no ncu" in command.err
    monkeypatch.setattr(_core, "config", lambda: {"nvrtc": "not found"})
    monkeypatch.setattr(nvcc, "stamp", lambda: None)
    assert command.run("check sum.cu --grid 1 --block 32") == 3
    assert "pip install '.[nvrtc]' in the clone" in command.err
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert command.run("completion bash") == 3
    assert "'.[cli]'" in command.err


def _fails(error):
    def raises(*_args, **_kw):
        raise error

    return raises


@pytest.mark.parametrize(
    ("error", "status", "says"),
    [
        (_core.LaunchError("no room"), 4, "no room"),
        (_core.UnsupportedInstructionError("cannot run foo.bar"), 4, "foo.bar"),
        (MemoryError(), 4, "smaller shapes"),
        (KeyError("x"), 4, "KeyError: 'x'; this is a bug: please report what --traceback shows"),
        (_core.DriverTooOldError("old"), 3, "old"),
        (PermissionError(13, "Permission denied", "k.cu"), 2, "k.cu: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_end(command, monkeypatch, error, status, says):
    monkeypatch.setattr(info, "run", _fails(error))
    assert command.run("info") == status
    assert says in command.err and command.err.count("\n") == 1
    assert command.run("info --traceback") == status
    assert ("Traceback" in command.err) == (status != 130)
    monkeypatch.setenv("SMEMKERN_TRACEBACK", "1")
    assert command.run("info") == status
    assert ("Traceback" in command.err) == (status != 130)


def test_hazards_are_status_1(command, kernels, nvrtc):
    words = "--grid 4 --block 256 --arg f32[1000]=random --arg f32[4] --arg i32=1000"
    for name in ("check", "trace"):
        assert command.run(f"{name} sum.cu {words}") == 1
    for name in ("check", "trace"):
        assert command.run(f"{name} ref.cu {words}") == 0


def test_tile_without_a_good_layout_is_status_1(command):
    assert command.run("banks --tile 32x32 --access column") == 0
    assert command.run("banks --tile 128x16 --access row:16B --access column") == 1
    assert "no padding and no swizzle" in command.out


# ---- as a process


def process(words, **kw):
    environment = {**os.environ, "PYTHONUNBUFFERED": "", **kw.pop("env", {})}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*SHELL, *words.split()], stdout=pipe, stderr=pipe, env=environment, text=True, **kw
    )


def test_status_of_the_process():
    with process("banks --stride 33") as child:
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and "1 wavefronts" in out and not err
    with process("banks --tile 3") as child:
        out, err = child.communicate(timeout=60)
    assert child.returncode == 2 and not out and err.startswith("python -m smemkern banks: error")


@pytest.mark.parametrize("words", ["occupancy --registers 64 --curve", "banks --tile 8x8 --json"])
def test_a_reader_that_has_gone_is_no_error(words):
    with process(words) as child:
        child.stdout.close()
        err = child.stderr.read()
        assert child.wait(timeout=60) == 141
    assert not err


def processor_seconds(pid):
    """More than Python needs to begin, however busy the machine is: then the emulator runs."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def heeds_interrupts():
    """Processes are started so, also by tests that run in a shell's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupt(heeds_interrupts):
    """While the emulator runs, which is C and holds no lock that Python would need."""
    with process("trace gemm --variant conflicted --shape 2048 2048 2048") as child:
        deadline = time.monotonic() + 60
        while processor_seconds(child.pid) < 1.5 and time.monotonic() < deadline:
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert err == "interrupted\n" and not out


def test_console_script():
    from importlib.metadata import entry_points

    scripts = [e for e in entry_points(group="console_scripts") if e.name == "smemkern"]
    if not scripts:
        pytest.skip("smemkern is not installed here")
    assert scripts[0].load() is main


def test_modules_of_commands_are_alike():
    for module in COMMANDS.values():
        for name in ("SUMMARY", "ABOUT", "NEXT"):
            assert getattr(module, name).strip()
        assert module.EXAMPLES and isinstance(module.FOUND, str)


def test_what_is_optional_is_imported_when_it_is_used():
    code = "import sys, smemkern.__main__; smemkern.__main__.main(['banks']); "
    code += "print([m for m in ('rich', 'tqdm', 'argcomplete', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


# ---- commands


def test_trace_of_a_variant(command, tmp_path):
    page = tmp_path / "out.html"
    words = "trace gemm --variant conflicted --shape 64 64 64"
    assert command.run(f"{words} --param tile=16 --blocks 2 --html {page}") == 0
    assert "traced 2 of 16 blocks" in command.out and "gemm_conflicted.cu:" in command.out
    assert "tile16" in page.read_text(encoding="utf-8")
    assert command.run(f"{words} --annotate --dtype float64") == 0
    assert "wavefronts" in command.out
    assert command.run("trace transpose --shape 33 65") == 0


def test_trace_of_a_file(command, kernels):
    assert command.run("trace k.ptx --kernel k --grid 2 --block 32 --arg i32[64]") == 0
    assert "deep.cuh:30" in command.out


def test_trace_of_clusters(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("k.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {"
        " .reg .b32 %r<3>; .reg .b64 %d<2>; ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x;"
        " mov.u32 %r1, %cluster_nctarank; mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;"
        " st.global.u32 [%d0], %r1; ret; }"
    )
    words = "trace k.ptx --grid 8 --block 1 --arg i32[8]"
    for options in ("--cluster 4", "--cluster 2,1,1 --cooperative", "--cluster 4 --blocks 1"):
        assert command.run(f"{words} {options}") == 0
    assert "traced 4 of 8 blocks" in command.out
    assert command.run(f"{words} --cluster 3") == 4
    assert "must divide the grid" in command.err


def test_trace_says_how_far_it_is():
    told = []
    a = np.ones((64, 64), np.float32)
    t = smemkern.trace("gemm", a, a, variant="naive", progress=lambda *at: told.append(at))
    assert told[-1] == (t.blocks, t.blocks)
    told.clear()
    smemkern.trace("gemm", a, a, variant="tiled", blocks=3, progress=lambda *at: told.append(at))
    assert told[-1] == (3, 3)
    with pytest.raises(ZeroDivisionError):
        smemkern.trace("gemm", a, a, progress=lambda done, all: 1 / 0)
