"""The report of `smemkern run`: suppressions, samples, choices, and what Ctrl-C leaves."""

import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smemkern._compiler.demangle import demangled
from smemkern._compiler.wording import shortened
from smemkern._reports import suppressions
from smemkern._trace.callers import load_address
from smemkern._trace.program import Known

PTX = Path(__file__).resolve().parent / "kernels.ptx"


@pytest.fixture
def calls(driver_calls, run_program):
    def run(words, *options):
        return run_program(*options, driver_calls, PTX, *words.split())

    return run


def document(calls, words, *options):
    status, out, _ = calls(words, "--json", *options)
    return status, json.loads(out)


# ---- suppressions ----


def test_rules_that_are_written_suppress_all(calls, tmp_path):
    rules, words = tmp_path / "known", "fill race texref beyond"
    _, out, _ = calls(words, "--gen-suppressions", rules)
    assert f"wrote {rules}" in " ".join(out.split())
    found = [rule.name.split()[0] for rule in suppressions.read(rules)]
    assert sorted(found) == ["WAW", "leak", "out-of-bounds", "unsupported-call"]
    options = ("--error-exitcode", "9", "--suppressions", rules)
    status, left = document(calls, words, *options)
    assert status == 0 and not left["misuses"] and not left["unsupported"]
    assert not any(kernel["hazards"] for kernel in left["kernels"])
    assert [one["count"] for one in left["suppressed"]] == [1] * 4
    _, out, _ = calls(words, *options)
    assert "0 hazards" in out and "4 findings suppressed" in out


def test_other_findings_stay(calls, tmp_path):
    rules = tmp_path / "known"
    rules.write_text("{\n  races of another kernel\n  kind: WAW\n  kernel: sum*\n}\n")
    status, out, _ = calls("fill race free", "--error-exitcode", "9", "--suppressions", rules)
    assert status == 9 and "0 findings suppressed" in out
    assert "no finding matches the rule 'races of another kernel'" in " ".join(out.split())


def test_suppressed_findings_are_in_no_report(calls, tmp_path):
    rules, page, sarif = tmp_path / "known", tmp_path / "r.html", tmp_path / "r.sarif"
    rules.write_text("{\n a race\n kind: W?W\n kernel: r*\n}\n{\n leaks\n kind: leak\n}\n")
    calls("fill race", "--suppressions", rules, "--html", page, "--sarif", sarif)
    assert json.loads(sarif.read_text())["runs"][0]["results"] == []
    assert "WAW race" not in page.read_text()


FOUND = Known("RAW", ("_Z4tileILi8EEvPf", "tile<8>"), ("tile.cu:10", "tile.cu:12"))
PATTERNS = [
    ("kind: RAW", True),
    ("kind: *", True),
    ("kind: RA", False),
    ("kernel: tile<?>", True),
    ("kernel: _Z4tile*", True),
    ("kernel: [t]ile<8>", False),
    ("line: tile.cu:12", True),
    ("line: tile.cu:1", False),
    ("kind: RAW\nkernel: tile*\nline: *:10", True),
    ("kind: WAR\nkernel: tile*", False),
]


@pytest.mark.parametrize(("text", "matches"), PATTERNS)
def test_patterns(tmp_path, text, matches):
    file = tmp_path / "known"
    file.write_text(f"# a comment\n{{\nname\n{text}\n}}\n")
    assert suppressions.Suppressions([file])(FOUND) is matches


WRONG = [
    ("RAW", "1: expected '{', found 'RAW'"),
    ("{\nname\nkind: RAW", "expected '}' at the end"),
    ("{\nname\n}", "3: a rule needs at least one"),
    ("{\nname\nsort: RAW\n}", "3: expected 'kind: '"),
    ("{\nname\nkind:\n}", "3: expected 'kind: '"),
    ("{\nname\nkind: RAW\nkind: WAR\n}", "4: a second 'kind'"),
]


@pytest.mark.parametrize(("text", "why"), WRONG)
def test_files_that_are_wrong(calls, tmp_path, text, why):
    file = tmp_path / "known"
    file.write_text(text)
    status, out, err = calls("fill add free", "--suppressions", file)
    assert status == 2 and why in err and not out


# ---- choices ----


def test_expressions_that_are_wrong(calls):
    status, out, err = calls("fill add free", "--kernel", "a[")
    assert status == 2 and "'a['" in err and not out


def test_a_sample_runs_all_blocks(calls):
    n, seed = random.randrange(1, 50), random.randrange(1000)
    options = ("--sample", str(n), "--seed", str(seed))
    _, found = document(calls, "blocks free", *options)
    [kernel] = found["kernels"]
    [row] = kernel["global"]
    assert (kernel["blocks"], kernel["grid_blocks"], row["requests"]) == (n, 100, 4 * n), seed
    _, out, _ = calls("blocks back show free", *options)
    assert "0 198\n" in out and f"a sample: {n} of 100 blocks examined" in " ".join(out.split())
    assert "0 wrong calls" in out  # all that was copied back counts as written


def test_a_sample_of_all_blocks_is_none(calls):
    _, found = document(calls, "blocks free", "--sample", "100")
    assert found["kernels"][0]["blocks"] == 100
    _, out, _ = calls("blocks free", "--sample", "100")
    assert "sample" not in out


# ---- Ctrl-C ----


@pytest.fixture
def interrupted(driver_calls):
    """interrupted(words, number): the output of a run that gets a signal once it is ready."""

    def run(words, number=signal.SIGINT):
        command = [sys.executable, "-m", "smemkern", "run", driver_calls, PTX, *words.split()]
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert "ready\n" in iter(started.stdout.readline, "")
        time.sleep(0.5)
        if number == signal.SIGINT:  # as a terminal sends it
            os.killpg(started.pid, number)
        else:
            started.send_signal(number)
        out, _ = started.communicate(timeout=60)
        return started.returncode, " ".join(out.split())

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_in_a_kernel(interrupted, number):
    """The report has what the kernel did until then, and where it was."""
    status, out = interrupted("fill add ready spin free", number)
    assert status == 128 + number
    assert re.search(r"interrupted; .*thread \(0, 0, 0\) is at", out), out
    assert "spin: 1 launch at driver_calls.c" in out and "2 kernels, 2 launches" in out
    assert "the program did not come to its end" in out and "free 0" not in out


def test_the_report_of_a_kernel_with_much_memory_comes_soon(interrupted):
    """What is looked through at a launch's end, 16 GiB here, is left at a signal."""
    start = time.monotonic()
    status, out = interrupted("large ready sweep", signal.SIGTERM)
    assert status == 128 + signal.SIGTERM and time.monotonic() - start < 20
    assert "sweep: 1 launch at driver_calls.c" in out and "interrupted" in out


def test_interrupt_in_the_hosts_code(interrupted):
    status, out = interrupted("fill add ready sleep free")
    assert status == 128 + signal.SIGINT and "1 kernel, 1 launch: 0 hazards" in out


def test_progress_is_shown_in_a_terminal(driver_calls):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "smemkern", "run", driver_calls, PTX, "fill", "spin"]
    started = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    while b"blocks" not in shown:
        shown += os.read(ours, 1000)
    os.killpg(started.pid, signal.SIGINT)
    started.wait(timeout=60)
    os.close(ours)
    assert b"spin: 0 of 1 blocks, 1 s" in shown


# ---- lines ----


def test_programs_whose_file_is_damaged(driver_calls, tmp_path, draw):
    """A program may replace its own file, or a library that it has loaded."""
    whole = bytearray(driver_calls.read_bytes())
    whole[16:18] = b"\x02\x00"  # ET_EXEC
    path = tmp_path / "program"
    path.write_bytes(whole)
    assert load_address(str(path)) is not None
    for _ in range(300):
        damaged = whole[: draw.choice([40, 63, 64, 200, len(whole)])]
        for _ in range(draw.randrange(1, 6)):
            damaged[draw.randrange(32, min(len(damaged), 200))] = draw.choice([0, 255, 128, 7])
        path.write_bytes(damaged)
        found = load_address(str(path))
        assert found is None or 0 <= found < 2**64


def test_a_program_that_crashes_ends_with_its_signal(driver_calls, run_program):
    status, out, _ = run_program(driver_calls, PTX, "fill", "crash")
    assert status == 134 and "did not come to its end (SIGABRT); this is what it did" in out


def test_long_names_are_shortened_from_within():
    name = demangled("_Z1kI" + 3 * "St5tupleIJSt4pairIidES0_IfiEEE" + "iEvv").written
    assert shortened(name, len(name)) == name
    assert shortened(name, 100) == f"k<{3 * 'std::tuple<...>, '}int>"
    assert shortened(name, 20) == "k<...>" and shortened("a->b", 1) == "a->b"
    assert shortened("operator<", 3).startswith("operator<")
