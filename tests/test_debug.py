"""smemkern debug: where it stops and what it says, on kernels whose accesses are known, on random
racy ones, and on commands that make no sense."""

import io
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from smemkern import mistakes
from smemkern._debug.expressions import Scope, Wrong
from smemkern._debug.opening import session_of_call
from smemkern._debug.table import COMMANDS, Interpreter, Quit, find
from smemkern._debug.terminal import Debugger
from smemkern._replay.record import STEPS

pytestmark = pytest.mark.usefixtures("nvrtc")

SEED = random.SystemRandom().randrange(1 << 32)
PERMUTED = """extern "C" __global__ void permuted(const int *to, const int *from, int *y) {
    __shared__ int s[128];
    const int t = threadIdx.x;
    s[to[t]] = t + 1000;
    __syncthreads();
    y[t] = s[from[t]];
}"""


@pytest.fixture
def rng(request):
    print("seed", SEED)
    return np.random.default_rng([SEED, *request.node.name.encode()])


def session_of(source, grid, block, *args, blocks=16, window=STEPS, **options):
    kernel = smemkern.Kernel(source) if isinstance(source, str) else source
    return session_of_call(kernel, (grid, block, *args), options, blocks=blocks, steps=window)


class Driver:
    """Commands in, output out; all of it at most 80 columns wide."""

    def __init__(self, session):
        self.session = session
        self.interpreter = Interpreter(session)

    def __call__(self, line):
        lines = self.interpreter.run(line)
        assert all(len(one.expandtabs(8)) <= 80 for one in lines), lines
        return "\n".join(lines)


def permuted(rng, threads=128, **options):
    to, given = rng.integers(0, 128, threads), rng.permutation(128)[:threads]
    to, given = to.astype(np.int32), given.astype(np.int32)
    session = session_of(
        PERMUTED, (1,), (threads,), to, given, np.zeros(threads, np.int32), **options
    )
    return to, given, session


def stops(driver, command):
    """(step, warp) of all stops in one direction."""
    found = []
    while "Watchpoint" in (out := driver(command)) or "watchpoint" in out:
        found.append((driver.session.step, driver.session.warp))
    return found


# ---- watchpoints ----


@pytest.mark.parametrize("attempt", range(6))
def test_watchpoints_stop_at_the_accesses_that_there_are(rng, attempt):
    """An element's writers and readers follow from the two index arrays."""
    to, given, session = permuted(rng)
    driver = Driver(session)
    element = int(rng.choice(to))
    writers = sorted({int(t) // 32 for t in np.flatnonzero(to == element)})
    readers = sorted({int(t) // 32 for t in np.flatnonzero(given == element)})
    for command, warps in (("watch", writers), ("rwatch", readers), ("awatch", writers + readers)):
        driver("delete")
        driver("start")
        driver(f"{command} s[{element}]")
        forward = stops(driver, "continue")
        assert sorted(warp for _, warp in forward) == sorted(warps)
        assert session.is_at_end
        assert stops(driver, "reverse-continue") == forward[::-1]
    if writers:
        driver("goto end")
        session.warp = 0
        out = driver(f"print s[{element}]")
        value = int(re.match(r"\$\d+ = (\d+)", out)[1])
        assert value - 1000 in np.flatnonzero(to == element)
        lane = int(re.search(r"lane\s+(\d+)", out)[1])
        warp = int(re.search(r"warp\s+(\d+)", out)[1])
        assert 32 * warp + lane == value - 1000


def test_values_before_and_after_a_write(rng):
    to, given, session = permuted(rng, threads=32)
    driver = Driver(session)
    element = int(to[7])
    driver(f"watch s[{element}]")
    out = driver("continue")
    written = max(int(t) for t in np.flatnonzero(to == element)) + 1000
    assert f"New value = {written}" in out and "Watchpoint 1, s[" in out
    assert driver(f"p s[{element}]").endswith("- (never written)")
    driver("stepi")
    assert driver(f"p s[{element}]").startswith(f"$2 = {written} (written by")
    assert driver("p from[threadIdx.x] - from[laneid]").endswith("= 0 in all lanes")


def test_conditions_and_threads(rng):
    to, given, session = permuted(rng)
    driver = Driver(session)
    driver("break 6 if threadIdx.x == 77")
    driver("continue")
    assert session.warp == 2
    driver("delete")
    driver("start")
    driver("tbreak 4")
    driver("continue")
    assert session.points == [] and session.machine.place(session.step).line == 4


# ---- hazards ----


def racy_source(rng):
    """Writes and reads of shared elements by index, with barriers left out at random."""
    barrier = ["", "__syncthreads();"]
    parts = ["s[t] = x[t];", rng.choice(barrier)]
    for _ in range(int(rng.integers(1, 4))):
        a, b = (int(n) for n in rng.integers(1, 64, 2))
        parts.append(
            str(
                rng.choice(
                    [
                        f"v += s[(t + {a}) % 64];",
                        f"s[(t + {a}) % 64] = v + t;",
                        f"s[(t * {2 * b + 1} + {a}) % 64] += v;",
                        f"if (t % 3 == 0) s[(t + {a}) % 64] = t * {b};",
                        f"y[(t + {a}) % 64] = v + {b};",
                    ]
                )
            )
        )
        parts.append(str(rng.choice(barrier)))
    body = "\n    ".join(parts)
    return f"""extern "C" __global__ void racy(const float *x, float *y) {{
    __shared__ float s[64];
    const int t = threadIdx.x;
    float v = 1;
    {body}
    y[t] = v + s[t];
}}"""


@pytest.mark.parametrize("attempt", range(8))
def test_back_from_the_second_access_to_the_first(rng, attempt):
    """Of every hazard of a random program: a watchpoint on its element, backwards."""
    source = racy_source(rng)
    print(source)
    x = rng.standard_normal(64).astype(np.float32)
    session = session_of(source, (1,), (64,), x, np.zeros(64, np.float32))
    driver = Driver(session)
    check_hazards(driver)
    for number, hazard in enumerate(session.machine.header["hazards"], 1):
        steps = [party["step"] for party in hazard["parties"]]
        if len(steps) < 2 or None in steps or steps[0] == steps[1]:
            continue
        first = min(hazard["parties"], key=lambda party: party["step"])
        driver(f"goto {min(steps)}")
        assert session.warp == first["thread"][0] // 32
        out = driver(f"watch hazard {number}")
        name = re.search(r": (\S+) by thread", out)[1]
        driver("delete")
        driver(f"goto {max(steps)}")
        driver(f"awatch {name}")  # an ordinary watchpoint comes there, too
        assert min(steps) in [step for step, _ in stops(driver, "rc")]
        assert driver(f"explain hazard {number}").startswith(f"{number}. {hazard['kind']}")


def check_hazards(driver):
    """Back from the second access of each hazard: the watchpoint stops at the first."""
    machine, checked = driver.session.machine, 0
    for number, hazard in enumerate(machine.header["hazards"], 1):
        driver(f"explain hazard {number}")
        steps = [party["step"] for party in hazard["parties"]]
        if len(steps) < 2 or None in steps or steps[0] == steps[1]:
            continue
        if hazard["kind"] not in ("RAW", "WAR", "WAW", "async-read", "async-write"):
            continue
        driver("delete")
        driver(f"goto {max(steps)}")
        driver(f"watch hazard {number}")
        out = driver("reverse-continue")
        assert driver.session.step == min(steps), (hazard, out)
        checked += 1
    return checked


@pytest.mark.parametrize("row", mistakes.rows(), ids=lambda row: row.name)
def test_mistakes(row):
    """Also where a fault ends the run, or the launch is refused."""
    kernel = smemkern.Kernel(row.ptx, row.name)
    grid, block = (row.grid,), (row.block,)
    session = session_of(kernel, grid, block, *row.arguments(), shared_bytes=row.shared_bytes)
    driver = Driver(session)
    races = {"missing_barrier", "missing_wait", "early_release"}
    assert check_hazards(driver) == (row.name in races)
    for line in ("run", "info hazards", "info warps", "info barriers", "info registers", "bt"):
        try:
            driver(line)
        except Wrong as wrong:
            assert re.search("has ended|no register|nothing has run", str(wrong))


# ---- moving ----


def test_back_is_the_inverse_of_forward(rng):
    _, _, session = permuted(rng)
    driver = Driver(session)
    seen = [(session.step, session.warp)]
    for _ in range(15):
        driver("stepi")
        seen.append((session.step, session.warp))
    for step, warp in seen[-2::-1]:
        driver("reverse-stepi")
        assert (session.step, session.warp) == (step, warp)
    assert "No more reverse-execution history." in driver("rc")
    lines = []
    while not session.is_at_end and session.at is not None and len(lines) < 50:
        lines.append(session.machine.place(session.at).line)
        driver("step")
    assert lines == sorted(lines)  # there is no loop
    assert lines[-1] >= 6


def test_next_steps_over_calls_and_step_into_them():
    source = """__device__ __noinline__ int twice(int *s, int i) {
    s[i] += 1;
    return 2 * s[i];
}
__device__ __forceinline__ int thrice(int *s, int i) {
    s[i] += 5;
    return 3 * s[i];
}
extern "C" __global__ void calls(int *y) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    int a = twice(s, threadIdx.x);
    int b = thrice(s, threadIdx.x);
    y[threadIdx.x] = a + b;
}"""
    session = session_of(source, (1,), (32,), np.zeros(32, np.int32))
    driver = Driver(session)
    lines = set()
    while session.at is not None:
        lines.add(session.machine.place(session.at).line)
        driver("next")
    assert not lines & {2, 3, 6, 7} and {11, 12, 14} <= lines
    driver("start")
    lines = set()
    depths = {}
    while session.at is not None:
        line = session.machine.place(session.at).line
        lines.add(line)
        depths[line] = driver("bt").splitlines()
        driver("step")
    assert {2, 6} <= lines
    assert [one.split()[1] for one in depths[2]] == ["twice", "calls"]
    assert depths[6][0].startswith("#0  thrice () at ") and depths[6][0].endswith(":6")
    assert re.search(r"calls \(\) at .*:13", depths[6][1])
    for name, line in (("twice", 1), ("thrice", 5), ("calls", 9)):
        driver("start")
        driver("delete")
        driver(f"break {name}")
        driver("continue")
        assert session.machine.place(session.step).line in (line, line + 1, line + 2)
        assert driver("bt").split()[1] == name
        assert ("ended" in driver("continue")) or name == "calls"
    with pytest.raises(Wrong, match="no function four"):
        driver("break four")
    driver("delete")
    driver("start")
    driver("advance 2")
    driver("finish")
    assert session.machine.place(session.at).line in (11, 12, 13)
    driver("reverse-step")
    assert session.machine.place(session.at).line in (2, 3)
    driver("reverse-finish")
    assert session.machine.place(session.at).line in (11, 12)


@pytest.mark.parametrize("window", [7, 40])
def test_windows_are_passed_in_both_directions(rng, window):
    """A recording in small windows stops where one in a single window does."""
    to, given = rng.integers(0, 128, 128), rng.permutation(128)
    args = to.astype(np.int32), given.astype(np.int32), np.zeros(128, np.int32)
    element = int(to[3])
    found = []
    for size in (STEPS, window):
        driver = Driver(session_of(PERMUTED, (1,), (128,), *args, window=size))
        driver(f"watch s[{element}]")
        forward = stops(driver, "continue")
        found.append((forward, stops(driver, "reverse-continue")))
        driver("delete")
        for command in ("next", "stepi", "reverse-next", "reverse-stepi"):
            driver("goto end" if "reverse" in command else "start")
            driver("warp 0")
            found[-1] += (walked(driver, command),)
    assert found[0][:4] == found[1][:4] and found[0][5] == found[1][5]
    assert set(found[0][4]) <= set(found[1][4])  # a window's beginning may be within a line


def walked(driver, command):
    """The steps that a command comes to, one after the other."""
    seen = []
    for _ in range(200):
        try:
            out = driver(command)
        except Wrong:
            break
        if "history" in out or "has ended" in out:
            break
        seen.append(driver.session.step)
    return seen


# ---- what it shows ----


CONFLICT = """extern "C" __global__ void column(const float *x, float *y) {
    __shared__ float tile[32][32];
    const int c = threadIdx.x, r = threadIdx.y;
    tile[r][c] = x[32 * r + c];
    __syncthreads();
    y[32 * r + c] = tile[c][r];
}"""


def test_a_conflict_in_words_and_as_a_picture():
    x = np.arange(1024, dtype=np.float32)
    session = session_of(CONFLICT, (1,), (32, 32), x, np.zeros(1024, np.float32))
    driver = Driver(session)
    out = driver("advance conflict 4")
    assert "conflict over 4 ways" in out and session.machine.place(session.step).line == 6
    words = " ".join(driver("explain").split())
    r = session.machine.header["warps"][session.warp]["warp"]
    assert f"read rows 0, 1, 2, ... and 31 of column {r}:" in words
    assert f"all 32 in bank {r}." in words and "32 wavefronts where 1 would be ideal" in words
    assert "c ^ (r % 32), an XOR swizzle. It costs no memory" in words
    picture = driver("banks").splitlines()
    rows = [line for line in picture if line.startswith("wave")]
    assert len(rows) == 16 and picture[-1] == "... and 16 more wavefronts"
    half = "0-15" if r < 16 else "16-31"
    for wave, row in enumerate(rows):  # each serves one lane, in this bank
        cells = row.removeprefix(f"wave {wave}").split()
        assert cells[0] == half and cells[1 + r % 16] == str(wave)
        assert cells[1:].count(".") == 15
    table = driver("lanes")
    assert f"{r * 4:#x}" in table and table.count("\n") > 16
    assert re.search(r"^ +31 +0xf80|31 +0xf", table, re.M)
    assert driver("print tile[3]").splitlines()[1].split()[1] == "96"
    assert driver("print tile[2][5]").startswith("$2 = 69 (written by block (0,0,0) warp 2 lane 5")
    driver("lane 4")
    assert driver("print threadIdx.x").endswith("= 4")
    assert driver("print tile[threadIdx.x][1]").startswith("$4 = 129 (written by")
    driver("lane all")


def test_barriers_and_lanes():
    session = session_of(CONFLICT, (1,), (32, 32), np.zeros(1024, "f4"), np.zeros(1024, "f4"))
    driver = Driver(session)
    driver("advance barrier")
    assert driver("info barriers") == "No thread of the block waits at a barrier."
    first = session.machine.header["warps"][session.warp]["warp"]
    driver("stepi" if session.at is not None else "start")
    driver(f"goto {session.machine.events('barrier_arrive')[0] + 1}")
    out = driver("info barriers")
    assert f"warp {first} lanes 0-31 at " in out and "not there yet" in out
    driver(f"warp {first}")
    assert "waits at barrier 0" in driver("info lanes")
    assert driver("info warps").count("\n") == 32


def test_expressions_against_python(rng):
    _, _, session = permuted(rng, threads=64)
    session.step = session.machine.steps_of(1)[3]
    session.warp = 1
    scope = Scope(session.machine, 1, session.step)
    t = np.arange(32, 64)
    for text, expected in [
        ("threadIdx.x * 3 - 7", t * 3 - 7),
        ("%tid.x%5", t % 5),
        ("-threadIdx.x / 2", np.trunc(-t / 2)),
        ("(1 << 4) + 0x1F & ~3", np.array((1 << 4) + 0x1F & ~3)),
        ("threadIdx.x > 40 && laneid < 20 || !warpid", (t > 40) & (t - 32 < 20)),
        ("threadIdx.x % 4 == 1 != 0", (t % 4 == 1) != 0),
        ("1 + 2 * 3 - 4 / 5", np.array(7)),
        ("1.5 * 4", np.array(6.0)),
        ("blockDim.x * gridDim.x + blockIdx.x", np.array(64)),
    ]:
        assert np.array_equal(scope.value(text), expected), text


@pytest.mark.parametrize(
    "text, match",
    [
        ("", "no place|ends too early"),
        ("s[128]", "outside 0 to 127"),
        ("s[-1]", "outside"),
        ("s[1.5]", "integer"),
        ("s", "dimensions"),
        ("s[0][0]", "expected the end|dimensions"),
        ("nothing", "no nothing here"),
        ("%nope", "no register %nope"),
        ("1 / 0", "division by zero"),
        ("1 << 99", "0 to 63"),
        ("1.5 & 1", "integers"),
        ("(1", r"expected '\)'"),
        ("1 +", "ends too early"),
        ("1 2", "expected the end"),
        ("@", "expected an expression"),
        ("(" * 500, "nested too deeply"),
        ("-" * 500 + "1", "nested too deeply"),
        ("*99999999", "no contents"),
        ("99999999999999999999", "too large"),
    ],
)
def test_wrong_expressions(rng, text, match):
    _, _, session = permuted(rng, threads=32)
    with pytest.raises(Wrong, match=match):
        session.scope.value(text)


# ---- commands ----


def test_variables_of_the_source():
    """With -G: by name, in conditions, and arrays of a thread."""
    source = """extern "C" __global__ void named(const int *x, int *y) {
    const int t = threadIdx.x;
    int own[4];
    for (int i = 0; i < 4; i++)
        own[i] = x[t] * 10 + i;
    int sum = 0;
    for (int i = 0; i < 4; i++)
        sum += own[i];
    y[t] = sum;
}"""
    kernel = smemkern.Kernel(source, "named", ("--device-debug",))
    x = np.arange(100, 132, dtype=np.int32)
    driver = Driver(session_of(kernel, (1,), (32,), x, np.zeros(32, np.int32)))
    driver("break 9 if t == 7")
    driver("continue")
    assert driver.session.machine.place(driver.session.step).line == 9
    driver("lane 7")
    assert driver("print t").endswith("= 7")
    assert driver("print own[2]").endswith(f"= {1070 + 2}")
    assert driver("print own[t % 4] - sum").endswith(f"= {1073 - 4286}")
    assert "sum = 4286" in driver("info locals")
    with pytest.raises(Wrong, match="from 0 to 3"):
        driver("print own[4]")
    with pytest.raises(Wrong, match="name an element"):
        driver("print own")


def test_display_and_conditions_that_fail(rng):
    _, _, session = permuted(rng, threads=32)
    driver = Driver(session)
    assert driver("display threadIdx.x + 1").startswith("1: threadIdx.x + 1 = by lane")
    driver("lane 3")
    assert driver("stepi").endswith("1: threadIdx.x + 1 = 4")
    driver("undisplay 1")
    assert "1: threadIdx" not in driver("stepi")
    with pytest.raises(Wrong, match="no display number 1"):
        driver("undisplay 1")
    driver("break 6 if %nope == 1")
    assert "Error in testing condition 1: there is no register %nope" in driver("continue")
    assert session.machine.place(session.step).line == 6


def test_a_fault_ends_the_run():
    row = next(row for row in mistakes.rows() if row.name == "out_of_bounds")
    kernel = smemkern.Kernel(row.ptx, row.name)
    driver = Driver(session_of(kernel, (row.grid,), (row.block,), *row.arguments()))
    out = " ".join(driver("continue").split())
    assert re.match(r"\[The kernel was stopped at step \d+: kernel out_of_bounds", out)
    assert "out of bounds" in out and "]" in out
    step = driver.session.machine.header["fault"]["step"]
    driver("reverse-stepi")
    assert driver.session.step == step
    assert driver.session.machine.instruction(step)["opcode"] in ("ld", "st")


def test_every_command_has_help_and_a_unique_name():
    session = session_of(PERMUTED, (1,), (32,), *(np.zeros(32, np.int32) for _ in range(3)))
    driver = Driver(session)
    names = [name for command in COMMANDS for name in command.names]
    assert len(names) == len(set(names))
    listed = driver("help")
    for command in COMMANDS:
        assert re.search(rf"^{re.escape(command.names[0])}\b", listed, re.M)
        assert driver(f"help {command.names[-1]}").startswith(command.names[0])
    assert find("cont").names[0] == "continue" and find("reverse-c").names[0] == "reverse-continue"
    assert find("s").names[0] == "step" and find("c").names[0] == "continue"
    with pytest.raises(Wrong, match="ambiguous"):
        find("re")
    with pytest.raises(Wrong, match="undefined"):
        find("xyzzy")
    with pytest.raises(Quit, match="^$"):
        driver("q")


def test_an_empty_line_repeats():
    session = session_of(PERMUTED, (1,), (32,), *(np.zeros(32, np.int32) for _ in range(3)))
    driver = Driver(session)
    driver("stepi 2")
    driver("")
    assert session.step == 4
    driver("info line")
    assert driver("") == "" and session.step == 4


def test_completion():
    session = session_of(PERMUTED, (1,), (32,), *(np.zeros(32, np.int32) for _ in range(3)))
    complete = Interpreter(session).completions
    assert {"watch", "warp", "where"} == set(complete("w"))
    assert complete("info ba") == ["banks", "barriers"]
    assert {"from", "s", "threadIdx.x", "to", "y"} <= set(complete("print "))


def test_nonsense_is_refused_and_nothing_else(rng):
    """Random commands with random arguments: an output or a reason, never a traceback."""
    _, _, session = permuted(rng, threads=64)
    interpreter = Interpreter(session)
    words = ["s[3]", "1", "12", "s", "if", "threadIdx.x", "==", "hazard", "conflict", "%r1", "0x",
             "-1", "*5", ":", "foo.cu:3", "[", "]", "(", "&&", "99999999999", "all", "/x", "",
             "begin", "end", "barrier", "1-3", ",", "y[1]", "s[threadIdx.x]", "\x00"]  # fmt: skip
    names = [name for command in COMMANDS for name in command.names if command.names[0] != "quit"]
    for _ in range(400):
        given = [str(rng.choice(words)) for _ in range(int(rng.integers(0, 5)))]
        line = " ".join([str(rng.choice(names)), *given])
        try:
            lines = interpreter.run(line)
        except Wrong:
            continue
        assert all(isinstance(one, str) for one in lines), line


def test_scripts_stop_at_an_error_and_pipes_go_on():
    session = session_of(PERMUTED, (1,), (32,), *(np.zeros(32, np.int32) for _ in range(3)))
    shown = []
    debugger = Debugger(session, shown.append)
    debugger.script(["echo one", "wrong", "echo two"])
    assert shown[0] == "one" and "two" not in shown and debugger.ran[-1].failed
    debugger.pipe(io.StringIO("wrong\necho three\nquit\necho four\n"))
    assert "three" in shown and "four" not in shown


# ---- the command ----


@pytest.fixture
def sum_call(tmp_path, monkeypatch):
    from command import write_examples

    write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "debug sum.cu --grid 1 --block 64 --arg 'f32[64]=random' --arg f32[1] --arg i32=64"


def test_exit_statuses_and_json(command, sum_call, tmp_path):
    (tmp_path / "cmds").write_text("# a comment\nbreak 9\ncontinue\n")
    assert command.run(f"{sum_call} -x cmds -ex 'print threadIdx.x'") == 0
    assert "Breakpoint 1, sum.cu:9" in command.out and "(smemkern) break 9" in command.out
    assert command.run(f"{sum_call} -ex 'break 99' -ex 'echo no'") == 1
    assert "(smemkern) echo no" not in command.out
    assert command.run(f"{sum_call} -x missing") == 2
    data = command.json(f"{sum_call} -ex 'break 9' -ex continue")
    assert [one["command"] for one in data["commands"]] == ["break 9", "continue"]
    assert data["commands"][1]["step"] > 0 and data["hazards"][0]["kind"] == "RAW"


def test_pipes(sum_call, tmp_path):
    import shlex

    done = subprocess.run(
        [sys.executable, "-m", "smemkern", *shlex.split(sum_call)],
        input="break 9\n\ncontinue\nnonsense\nquit\n",
        text=True,
        capture_output=True,
        cwd=tmp_path,
    )
    assert done.returncode == 1 and not done.stderr
    assert "Breakpoint 1, sum.cu:9" in done.stdout and "Undefined command" in done.stdout


@pytest.mark.parametrize("with_toolkit", [True, False], ids=["prompt_toolkit", "readline"])
def test_at_a_terminal(sum_call, tmp_path, with_toolkit):
    import os

    pexpect = pytest.importorskip("pexpect")
    if with_toolkit:
        pytest.importorskip("prompt_toolkit")
    code = "import sys; from smemkern.__main__ import main; "
    if not with_toolkit:
        code += "sys.modules['prompt_toolkit'] = None; "
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": "1"}
    import shlex

    args = ["-c", f"{code}sys.exit(main(sys.argv[1:]))", *shlex.split(sum_call)]
    child = pexpect.spawn(
        sys.executable,
        args,
        env=env,
        cwd=tmp_path,
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 90),
    )

    def repeat(send, expected):
        """Until it is seen: a line editor that starts does not see what comes early."""
        for _ in range(20):
            send()
            if child.expect([expected, pexpect.TIMEOUT], timeout=1.5) == 0:
                return
        raise AssertionError(f"{expected} was not seen")

    child.expect("Type help")
    child.expect("smemkern")
    child.send("break 9\r")
    child.expect("Breakpoint 1 at sum.cu:9")
    child.send("cont\r")
    child.expect("Breakpoint 1, sum.cu:9")
    child.send("info warp\t\r")
    child.expect("Id  block")
    child.send("nonsense\r")
    child.expect("Undefined command")
    repeat(child.sendintr, "Quit")
    child.send("print 40 + 2\r")
    child.expect(r"\$1 = 42")
    child.expect(r"\(smemkern\)")
    repeat(child.sendeof, pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_replay_goes_on_in_the_debugger(monkeypatch, capsys):
    replay = smemkern.replay(
        PERMUTED, 1, 32, *(np.arange(32, dtype=np.int32) for _ in range(3)), blocks=1
    )
    replay.seek(5)
    monkeypatch.setattr("sys.stdin", io.StringIO("info line\nquit\n"))
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    replay.debug()
    assert "step 5 of" in capsys.readouterr().out
