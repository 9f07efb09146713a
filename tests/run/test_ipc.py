"""Memory and events that processes share: cuIpc..., each process with a driver of its own."""

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from smemkern._device.emulated import emulated_device

HERE = Path(__file__).resolve().parent
PTX = HERE / "kernels.ptx"
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
INVALID_VALUE, INVALID_CONTEXT, MAP_FAILED, INVALID_HANDLE = 1, 201, 205, 400
DISABLE_TIMING, INTERPROCESS = 2, 4
PROCESS = [sys.executable, "-u", str(HERE / "ipc_process.py"), str(PTX)]


class Process:
    """A process: p("alloc(4)") evaluates that there."""

    def __init__(self, environment, command=PROCESS):
        self.started = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, expression):
        self.started.stdin.write(expression + "\n")
        self.started.stdin.flush()

    def end(self):
        return ast.literal_eval(self.started.stdout.readline())

    def __call__(self, expression):
        self.begin(expression)
        return self.end()

    def value(self, expression):
        """Of a call that succeeds."""
        code, *values = self(expression)
        assert code == 0, (expression, code)
        return values[0]


@pytest.fixture
def process():
    """process(): another one; process(7): one of --shuffle 7."""
    all_of_them = []

    def start(shuffle=""):
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(DRIVER.parent),
            "SMEMKERN_RUN_DEVICE": emulated_device("h100").described(),
            "SMEMKERN_RUN_SHUFFLE": str(shuffle),
        }
        all_of_them.append(Process(environment))
        return all_of_them[-1]

    yield start
    for one in all_of_them:
        one.started.kill()
        one.started.communicate()


def test_two_processes_read_and_write_one_memory(process, draw):
    a, b = process(), process()
    size = draw.randrange(1, 300_000)
    data, more = draw.randbytes(size), draw.randbytes(size)
    at = a.value(f"alloc({size})")
    assert a(f"put({at}, {data})") == 0
    handle = a.value(f"memory_handle({at})")
    assert a.value(f"memory_handle({at})") == handle  # of one allocation there is one
    there = b.value(f"open_memory({handle!r})")
    assert b(f"extent({there})") == (0, there, size)
    assert b.value(f"get({there}, {size})") == data == a.value(f"get({at}, {size})")
    assert b(f"put({there}, {more})") == 0
    assert a.value(f"get({at}, {size})") == more
    assert b(f"close_memory({there})") == 0
    assert b(f"get({there}, 1)")[0] == INVALID_VALUE
    assert a.value(f"get({at}, {size})") == more
    assert a(f"free({at})") == 0


def test_kernels_of_two_processes(process, draw):
    a, b = process(), process()
    n = draw.randrange(1, 128)
    at = a.value(f"alloc({4 * n})")
    assert a(f"put({at}, bytes({4 * n}))") == 0
    there = b.value(f"open_memory({a.value(f'memory_handle({at})')!r})")
    for one, where in ((a, at), (b, there), (b, there), (a, at)):
        assert one(f"launch('add', {where}, {n})") == one("sync()") == 0
    assert a.value(f"get({at}, {4 * n})") == (4).to_bytes(4, "little") * n


def test_a_kernel_waits_for_a_kernel_of_another_process(process):
    """Also where the other one is launched by what follows the launch: it returns."""
    a, b = process(), process()
    at = a.value("alloc(8)")
    assert a(f"put({at}, bytes(8))") == 0
    there = b.value(f"open_memory({a.value(f'memory_handle({at})')!r})")
    assert a(f"launch('await', {at}, 2)") == 0  # until the first word is not 0
    assert b(f"launch('add', {there}, 1)") == b("sync()") == 0
    assert a("sync()") == 0
    assert b.value(f"get({there}, 8)") == bytes([1, 0, 0, 0, 7, 0, 0, 0])


def test_handles_are_of_whole_allocations(process, draw):
    a, b = process(), process()
    size = draw.randrange(2, 100_000)
    at = a.value(f"alloc({size})")
    inside = at + draw.randrange(1, size)
    assert a(f"memory_handle({inside})") == a(f"memory_handle({at})")
    there = b.value(f"open_memory({a.value(f'memory_handle({inside})')!r})")
    assert b(f"extent({there})") == (0, there, size)
    other = a.value("alloc(4)")
    assert a.value(f"memory_handle({other})") != a.value(f"memory_handle({at})")


def test_memory_is_closed_as_often_as_it_is_opened(process):
    a, b = process(), process()
    handle = a.value(f"memory_handle({a.value('alloc(4)')})")
    there = b.value(f"open_memory({handle!r})")
    assert b.value(f"open_memory({handle!r})") == there
    assert b(f"close_memory({there})") == 0 == b(f"put({there}, b'1234')")
    assert b(f"close_memory({there + 1})") == INVALID_VALUE
    assert b(f"close_memory({there})") == 0
    assert b(f"close_memory({there})") == INVALID_VALUE == b(f"put({there}, b'1234')")
    assert b.value(f"get({b.value(f'open_memory({handle!r})')}, 4)") == b"1234"


def test_wrong_calls(process):
    a, b = process(), process()
    at, managed = a.value("alloc(4096)"), a.value("alloc(4096, managed=True)")
    handle = a.value(f"memory_handle({at})")
    assert a(f"can_share({at})") == (0, 1) and a(f"can_share({managed})") == (0, 0)
    for address in (0, 1, managed, at + 4096, 1 << 60):
        assert a(f"memory_handle({address})")[0] == INVALID_VALUE
    assert a(f"open_memory({handle!r})")[0] == INVALID_CONTEXT  # in the process that made it
    assert a(f"close_memory({at})") == INVALID_VALUE
    for flags in (0, 2, 3):
        assert b(f"open_memory({handle!r}, {flags})")[0] == INVALID_VALUE
    there = b.value(f"open_memory({handle!r})")
    assert b(f"can_share({there})") == (0, 0)
    assert b(f"memory_handle({there})")[0] == INVALID_VALUE
    assert b(f"free({there})") == INVALID_VALUE  # only cuIpcCloseMemHandle ends it
    assert b("new_context()") == 0
    assert b(f"open_memory({handle!r})")[0] == INVALID_HANDLE  # one context for one process
    assert b("pop_context()") == 0 == b(f"close_memory({there})")
    assert a(f"free({at})") == 0
    assert a(f"memory_handle({at})")[0] == INVALID_VALUE
    assert b(f"open_memory({handle!r})")[0] == INVALID_HANDLE


def test_a_handle_with_other_bytes_is_none(process, draw):
    """Also one that names another process, another file of it, or another size."""
    a, b = process(), process()
    used = 56  # bytes; the others are not read
    handle = bytes.fromhex(a.value(f"memory_handle({a.value('alloc(5000)')})"))
    for k in range(used):
        other = bytearray(handle)
        other[k] ^= 1 << draw.randrange(8)
        assert b(f"open_memory({bytes(other).hex()!r})") == (INVALID_HANDLE, 0), k
    for _ in range(50):
        assert b(f"open_memory({draw.randbytes(64).hex()!r})") == (INVALID_HANDLE, 0)
    assert b(f"open_memory({handle.hex()!r})")[0] == 0
    mine = bytearray(handle)  # standard input, a pipe
    for who in (a, b):
        mine[20:28] = who.started.pid.to_bytes(4, "little") + bytes(4)
        assert b(f"open_memory({bytes(mine).hex()!r})") == (INVALID_HANDLE, 0)


def files():
    """What could be left behind."""
    folders = [Path("/dev/shm"), Path("/tmp")]
    return {path for folder in folders if folder.is_dir() for path in folder.glob("*smemkern-ipc*")}


def test_memory_outlives_the_process_that_made_it(process, draw):
    """And only that: nothing is left behind."""
    a, b, c = process(), process(), process()
    data = draw.randbytes(10_000)
    at = a.value("alloc(10_000)")
    assert a(f"put({at}, {data})") == 0
    handle = a.value(f"memory_handle({at})")
    there = b.value(f"open_memory({handle!r})")
    a.started.send_signal(signal.SIGKILL)
    a.started.wait()
    assert b.value(f"get({there}, 10_000)") == data
    assert c(f"open_memory({handle!r})")[0] == INVALID_HANDLE
    assert not files()


def test_large_memory_that_is_not_used_takes_none(process, draw):
    """A handle of 64 GiB, of which some pages were written."""
    a, b = process(), process()
    size = 1 << 36
    at, data = a.value(f"alloc({size})"), draw.randbytes(100)
    spots = [0, draw.randrange(size - 100), size - 100]
    for spot in spots:
        assert a(f"put({at + spot}, {data})") == 0
    there = b.value(f"open_memory({a.value(f'memory_handle({at})')!r})")
    for spot in spots:
        assert b.value(f"get({there + spot}, 100)") == data


@pytest.mark.parametrize("shuffled", [0, 1, 2, 3])
def test_events(process, shuffled, draw):
    shuffle = draw.randrange(1000) if shuffled else ""
    a, b = process(shuffle), process(shuffle)
    at = a.value("alloc(400)")
    made = a.value(f"event({INTERPROCESS | DISABLE_TIMING})")
    there = b.value(f"open_memory({a.value(f'memory_handle({at})')!r})")
    opened = b.value(f"open_event({a.value(f'event_handle({made})')!r})")
    assert b(f"on_event('cuEventQuery', {opened})") == 0  # not recorded yet
    for turn in range(3):  # a, then b, each after the other's event
        assert a(f"put({at}, bytes(400))") == 0
        assert a(f"on_event('cuStreamWaitEvent', 0, {made}, 0)") == 0
        assert a(f"launch('add', {at}, 100)") == a(f"on_event('cuEventRecord', {made}, 0)") == 0
        assert b(f"on_event('cuStreamWaitEvent', 0, {opened}, 0)") == 0
        assert b(f"launch('add', {there}, 100)") == 0
        assert b(f"on_event('cuEventRecord', {opened}, 0)") == 0
        assert a(f"on_event('cuEventSynchronize', {made})") == 0
        assert a.value(f"get({at}, 400)") == (2).to_bytes(4, "little") * 100, turn
    assert b(f"on_event('cuEventDestroy_v2', {opened})") == 0
    assert a(f"on_event('cuEventDestroy_v2', {made})") == 0


def test_wrong_events(process):
    a, b = process(), process()
    both = INTERPROCESS | DISABLE_TIMING
    assert a(f"event({INTERPROCESS})")[0] == INVALID_VALUE
    plain, made = a.value(f"event({DISABLE_TIMING})"), a.value(f"event({both})")
    assert a("event_handle(0)")[0] == INVALID_VALUE
    assert a(f"event_handle({plain})")[0] == a("event_handle(4096)")[0] == INVALID_HANDLE
    handle = a.value(f"event_handle({made})")
    memory = a.value(f"memory_handle({a.value('alloc(4)')})")
    assert a(f"open_event({handle!r})")[0] == INVALID_CONTEXT
    assert b(f"open_event({memory!r})")[0] == MAP_FAILED
    assert b(f"open_event({bytes(64).hex()!r})")[0] == MAP_FAILED
    assert b(f"open_memory({handle!r})")[0] == INVALID_HANDLE
    opened = b.value(f"open_event({handle!r})")
    assert b(f"event_handle({opened})")[0] == INVALID_HANDLE
    a.started.kill()
    a.started.wait()
    assert b(f"open_event({handle!r})")[0] == MAP_FAILED


@pytest.mark.parametrize("shared", [False, True])
def test_what_other_processes_may_have_written_counts_as_written(process, run_json, shared):
    """In the process that allocated it, and where it is opened; also after a copy over it of what
    nobody wrote."""
    other = process()

    def steps(p):
        at, never = p.value("alloc(512)"), p.value("alloc(512)")
        if shared:
            there = other.value(f"open_memory({p.value(f'memory_handle({at})')!r})")
            mine = other.value("alloc(512)")
            opened = p.value(f"open_memory({other.value(f'memory_handle({mine})')!r})")
            assert p(f"copy({at}, {never}, 512)") == p(f"copy({opened}, {never}, 512)") == 0
            for where in (there, mine):
                assert other(f"put({where}, bytes(512))") == 0
            assert p(f"launch('add', {opened}, 128)") == p(f"get({opened}, 512)")[0] == 0
        assert p(f"launch('add', {at}, 128)") == p(f"get({at}, 512)")[0] == 0

    found = run_json(steps)
    kinds = {row["kind"] for kernel in found["kernels"] for row in kernel["hazards"]}
    assert (kinds == set()) == shared, kinds


@pytest.fixture
def run_json(tmp_path):
    """run_json(steps): the report of a process that does these steps."""

    def run(steps):
        out = tmp_path / "report.json"
        words = [sys.executable, "-m", "smemkern", "run", "--json", "--error-exitcode", "9"]
        # The report goes to the standard output that the process does not use.
        code = (
            "import subprocess, sys; sys.exit(subprocess.call(sys.argv[2:], "
            "stdout=open(sys.argv[1], 'w'), stderr=sys.stdout))"
        )
        p = Process(os.environ, [sys.executable, "-c", code, str(out), *words, *PROCESS])
        steps(p)
        p.started.stdin.close()
        p.started.wait()
        return json.loads(out.read_text())

    return run


def test_processes_of_a_run_are_in_one_report(run_json):
    """The program starts another process, and each launches a kernel."""

    def steps(p):
        at = p.value("alloc(400)")
        assert p(f"put({at}, bytes(400))") == 0
        handle = p.value(f"memory_handle({at})")
        code = (
            f"there = open_memory({handle!r})[1]\\n"
            "print(launch('add', there, 100), sync(), close_memory(there))"
        )
        text = (HERE / "ipc_process.py").read_text().rpartition("for line")[0]
        script = f"{text}\n" + code.replace("\\n", "\n")
        assert (
            p(
                "__import__('subprocess').check_output([sys.executable, '-c', "
                f"{script!r}, sys.argv[1]], text=True)"
            )
            == "0 0 0\n"
        )
        assert p(f"launch('add', {at}, 100)") == p("sync()") == p(f"free({at})") == 0

    found = run_json(steps)
    [kernel] = found["kernels"]
    assert kernel["launches"] == 2 and not found["leaks"] and not found["misuses"]
