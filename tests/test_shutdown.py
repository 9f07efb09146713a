"""The interpreter ends while threads are in calls: exit status 0, nothing crashes or hangs.

Each test is a process of its own. At exit Python ends daemon threads wherever they next take the
GIL; csrc/module/detached.h says what is done about that.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from checks import environment

START = """
    import atexit, os, signal, sys, threading, time
    import numpy, smemkern
    H = ".version 8.3\\n.target sm_90\\n.address_size 64\\n.visible .entry k(.param .u64 x) "
    endless = smemkern.Kernel(H + "{ L: bra L; }", "k")
    short = smemkern.Kernel(H + "{ ret; }", "k")
    a, x = numpy.ones((512, 512), "f4"), numpy.zeros(8, "f4")
    def start(*works, daemon=True):
        threads = [threading.Thread(target=work, daemon=daemon) for work in works]
        for thread in threads:
            thread.start()
        return threads
    def ever(work):
        def run():
            while True:
                work()
        return run
"""
# What threads do, again and again.
WORKS = {
    "products": "smemkern.gemm(a, a, device='emu')",
    "transposes": "smemkern.transpose(a, device='emu')",
    "short kernels": "short(4, 32, x, device='emu')",
    "endless kernels": "endless(64, 256, x, device='emu')",
    "traces": "smemkern.trace('gemm', a, a)",
    "progress": "smemkern.trace('gemm', a, a, progress=lambda done, of: time.sleep(0.01))",
    "checked": "smemkern.trace(endless, 4, 64, x, hazards=True)",
    "timed": "smemkern._core.observe('gemm', (a, a), {'device': 'emu'}, repeat=50)",
}


def run(code: str, *arguments: str, start: str = START) -> subprocess.CompletedProcess:
    program = textwrap.dedent(start) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Fatal" not in done.stderr and "Sanitizer" not in done.stderr, done.stderr
    return done


def ends_well(code: str, *arguments: str, status: int = 0) -> str:
    done = run(code, *arguments)
    assert (done.returncode, done.stderr) == (status, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("work", WORKS)
def test_daemon_threads_at_any_moment(work: str) -> None:
    """Moments are drawn anew in each run of the tests; a failure says which."""
    for _ in range(3):
        moment = random.uniform(0, 0.25)
        began = time.monotonic()
        ends_well(f"start(*4 * [ever(lambda: {WORKS[work]})]); time.sleep({moment})")
        assert time.monotonic() - began < 20, moment


def test_daemon_threads_of_every_kind() -> None:
    calls = ", ".join(f"ever(lambda: {work})" for work in WORKS.values())
    for _ in range(3):
        ends_well(f"start({calls}); time.sleep({random.uniform(0, 0.4)})")


def test_calls_that_have_ended_are_not_waited_for() -> None:
    """Hooks of atexit run in the reverse of their order: the extension's between these two."""
    before = """
    import atexit, time
    began = []
    atexit.register(lambda: print(time.monotonic() - began[0]))
    """
    code = "short(4, 32, x, device='emu'); atexit.register(lambda: began.append(time.monotonic()))"
    done = run(code, start=before + START)
    assert done.returncode == 0 and float(done.stdout) < 1  # of 5 seconds at most


def test_other_threads_are_waited_for() -> None:
    """As Python does: what they began they end."""
    code = """
    b = numpy.random.default_rng(1).random((96, 96), "f4")
    def work():
        c = smemkern.gemm(b, b, device="emu")
        print(f"{abs(c - b @ b).max() < 1e-3}\\n", end="")
    start(*4 * [work], daemon=False)
    """
    assert ends_well(code).split() == ["True"] * 4


@pytest.mark.parametrize(
    ("leave", "status"),
    [("sys.exit(3)", 3), ("os._exit(5)", 5), ("os.kill(os.getpid(), signal.SIGTERM)", -15)],
)
def test_ways_to_leave(leave: str, status: int) -> None:
    code = "start(*2 * [ever(lambda: %s)], ever(lambda: %s)); time.sleep(0.1); %s"
    ends_well(code % (WORKS["products"], WORKS["endless kernels"], leave), status=status)


def test_an_exception_in_the_main_thread() -> None:
    done = run(f"start(ever(lambda: {WORKS['endless kernels']})); time.sleep(0.1); 1 / 0")
    assert done.returncode == 1 and done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_control_c_while_python_waits_for_a_thread() -> None:
    """Its kernel never ends; Ctrl-C ends Python's waiting, and with it the kernel."""
    code = f"""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup, as a parent, ignores it
    start(lambda: {WORKS["endless kernels"]}, daemon=False)
    def again():
        while True:  # on a busy machine the first may come before Python waits
            time.sleep(0.4)
            os.kill(os.getpid(), signal.SIGINT)
    start(again)
    """
    began = time.monotonic()
    done = run(code)
    assert done.returncode in (0, -signal.SIGINT, 1) and time.monotonic() - began < 20
    assert "KeyboardInterrupt" in done.stderr


def test_who_waits_at_exit_for_a_thread_that_is_stopped() -> None:
    """A hook that was there before the package was imported runs after ours: the call raises."""
    begin = """
    import atexit
    threads, errors = [], []
    def wait():
        threads[0].join()
        print(type(errors[0]).__name__, errors[0], flush=True)
    atexit.register(wait)
    """
    code = """
    def work():
        try:
            endless(4, 64, x, device="emu")
        except BaseException as error:
            errors.append(error)
    threads += start(work)
    time.sleep(0.1)
    """
    done = run(code, start=textwrap.dedent(begin) + textwrap.dedent(START))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "RuntimeError the interpreter is ending: the call was stopped"


def test_calls_at_the_end() -> None:
    """The thread that ends the interpreter may call until the end; no other begins anything."""
    begin = """
    import atexit, threading
    def last():
        print(smemkern.gemm(numpy.eye(3, dtype="f4"), x[:3] + 2, device="emu").tolist())
        said = []
        def call():
            try:
                short(1, 1, x, device="emu")
            except RuntimeError as error:
                said.append(str(error))
        try:
            thread = threading.Thread(target=call)
            thread.start()
        except RuntimeError:  # Python's own, from 3.12 on
            said.append("the interpreter is ending: nothing new is run")
        else:
            thread.join()
        print(*said, flush=True)
    atexit.register(last)
    """
    done = run("", start=textwrap.dedent(begin) + textwrap.dedent(START))
    assert done.stdout.split("\n")[:2] == [
        "[2.0, 2.0, 2.0]",
        "the interpreter is ending: nothing new is run",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    code = f"""
    import warnings
    warnings.simplefilter("ignore")
    start(ever(lambda: {WORKS["endless kernels"]}))
    time.sleep(0.1)
    if (child := os.fork()) == 0:
        began = time.monotonic()
        atexit._run_exitfuncs()
        os._exit(time.monotonic() - began > 2)
    print(os.waitpid(child, 0)[1])
    """
    assert ends_well(code).strip() == "0"


SUB = '''
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    program = """if True:
        import threading
        try:
            import numpy, smemkern
            a = numpy.ones((64, 64), "f4")
            work = lambda: smemkern.gemm(a, a, device="emu")
            try:
                threading.Thread(target=work, daemon=False).start()
            except RuntimeError:  # 3.10 has no threads there
                work()
        except Exception:  # NumPy refuses, or fails in a second one
            pass"""
    import warnings
    warnings.simplefilter("ignore")
    start(*2 * [ever(lambda: smemkern.gemm(a, a, device="emu"))])
    kinds = [("isolated",), ("legacy",)] if sys.version_info >= (3, 13) else [(), ()]
    for kind in kinds:
        number = interpreters.create(*kind)
        interpreters.run_string(number, program)
        interpreters.destroy(number)
    before = numpy.ones((2, 2), "f4")
    assert (smemkern.gemm(before, before, device="emu") == 2).all()
'''


def test_sub_interpreters() -> None:
    """The end of one stops no call of another."""
    done = run(SUB)
    if "No module named" in done.stderr and "interpreters" in done.stderr:
        pytest.skip("no module for sub-interpreters")
    assert done.returncode == 0, done.stderr


def test_there_is_no_wait_where_nothing_runs() -> None:
    code = "t = time.monotonic(); atexit._run_exitfuncs(); print(time.monotonic() - t)"
    assert float(ends_well(code)) < 0.5


def test_results_are_not_touched_after_the_end() -> None:
    """A call that was stopped writes no array, as any call that fails."""
    begin = """
    import atexit
    atexit.register(lambda: print(out.tolist(), flush=True))
    """
    code = """
    out = numpy.full(4, 7, "f4")
    writer = smemkern.Kernel(H + "{ .reg .u64 %x; ld.param.u64 %x, [x];"
                             " st.global.f32 [%x], 1.0; L: bra L; }", "k")
    start(lambda: writer(1, 1, out, device="emu"))
    time.sleep(0.1)
    """
    done = run(code, start=textwrap.dedent(begin) + textwrap.dedent(START))
    assert done.returncode == 0, done.stderr
    assert np.fromstring(done.stdout.strip()[1:-1], sep=",").tolist() == [7] * 4


def test_compilers(nvrtc) -> None:
    """NVRTC cannot be stopped: it is waited for."""
    code = """
    source = "extern \\"C\\" __global__ void k(float *x) { x[0] = %d; }"
    n = iter(range(1 << 30))
    os.environ["SMEMKERN_CACHE_DIR"] = sys.argv[1]
    start(*2 * [ever(lambda: smemkern.Kernel(source % next(n), "k"))])
    time.sleep(0.2)
    """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ends_well(code, folder)
