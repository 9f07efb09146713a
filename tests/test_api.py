"""The package as a whole: what it exports, what it costs; threads, signals, memory."""

import gc
import importlib.metadata
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

import smemkern
from checks import assert_gemm


def python(code, **env):
    """The output of a fresh interpreter."""
    import os

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_that_is_exported_exists():
    for name in smemkern.__all__:
        assert getattr(smemkern, name) is not None


@pytest.mark.parametrize("name", ["gemm", "transpose", "probe", "trace", "variants", "Kernel"])
def test_everything_is_documented(name):
    import inspect

    public = getattr(smemkern, name)
    assert len(public.__doc__.splitlines()) > 5
    assert inspect.signature(public)


def test_version():
    assert smemkern.__version__ == importlib.metadata.version("smemkern")


def test_exceptions():
    from smemkern import errors

    for name in errors.__all__:
        exception = getattr(errors, name)
        assert exception is getattr(smemkern, name)
        assert issubclass(exception, errors.Error)
        assert exception.__doc__
    assert not issubclass(errors.Error, ValueError)


def test_exceptions_can_be_pickled():
    import pickle

    error = pickle.loads(pickle.dumps(smemkern.LaunchError("why")))
    assert type(error) is smemkern.LaunchError
    assert str(error) == "why"


def test_import_is_cheap():
    code = (
        "import time, numpy; t = time.process_time(); import smemkern;"
        "print(time.process_time() - t)"  # of the processor: other processes may be busy
    )
    assert min(float(python(code)) for _ in range(5)) < 0.150


def test_import_opens_no_driver_and_no_compiler():
    code = (
        "import smemkern; maps = open('/proc/self/maps').read();"
        "print('libcuda' in maps, 'libnvrtc' in maps, 'libcudart' in maps)"
    )
    assert python(code).split() == ["False"] * 3


def test_devices():
    *gpus, last = smemkern.devices()
    assert last.name == "emu"
    for i, gpu in enumerate(gpus):
        assert gpu.name == f"cuda:{i}"
        assert gpu.compute_capability >= (5, 0)
        assert gpu.shared_bytes >= 48 * 1024


def test_show_config(capsys):
    smemkern.show_config()
    shown = capsys.readouterr().out
    for word in (smemkern.__version__, np.__version__, "driver", "nvrtc", "emu"):
        assert word in shown


def test_info_command():
    done = subprocess.run(
        [sys.executable, "-m", "smemkern", "info"], capture_output=True, text=True, check=True
    )
    assert "emu" in done.stdout


def test_default_device_is_the_gpu_if_there_is_one(rng):
    a, b = rng.standard_normal((2, 9, 9))
    best = "cuda" if len(smemkern.devices()) > 1 else "emu"
    assert np.array_equal(smemkern.gemm(a, b), smemkern.gemm(a, b, device=best))


# ---- threads and signals


def test_threads_get_their_own_results(device, rng):
    wrong = []

    def work(seed):
        own = np.random.default_rng(seed)
        for _ in range(20):
            a, b = own.standard_normal((2, 33, 33))
            try:
                assert_gemm(smemkern.gemm(a, b, variant="tiled", device=device), a, b)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_gil_is_released():
    """Another thread makes progress while the emulator works."""
    a = np.ones((600, 600), np.float32)
    done = threading.Event()
    beats = []

    def beat():
        while not done.wait(0.005):
            beats.append(time.perf_counter())

    thread = threading.Thread(target=beat)
    thread.start()
    start = time.perf_counter()
    smemkern.gemm(a, a, variant="naive", device="emu")
    stop = time.perf_counter()
    done.set()
    thread.join()
    within = [t for t in beats if start < t < stop]
    assert len(within) >= 3


class Alarm(Exception):
    pass


def interrupted(handler, run):
    """How long `run` went on after a signal whose handler raises."""
    fired = []

    def note(*_):
        fired.append(time.perf_counter())
        handler()

    before = signal.signal(signal.SIGALRM, note)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises((KeyboardInterrupt, Alarm)) as raised:
            run()
        return time.perf_counter() - fired[0], raised.type
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_signal_stops_a_run_and_leaves_out_alone():
    a = np.ones((3000, 3000), np.float32)
    out = np.full((3000, 3000), 5, np.float32)

    def alarm():
        raise Alarm

    def run():
        smemkern.gemm(a, a, out=out, variant="naive", device="emu")

    delays, raised = zip(*(interrupted(alarm, run) for _ in range(3)), strict=True)
    assert set(raised) == {Alarm}
    assert min(delays) < 0.2  # the best of them: the machine may be busy with other things
    assert np.all(out == 5)


def test_control_c():
    a = np.ones((3000, 3000), np.float32)
    _, raised = interrupted(
        lambda: signal.default_int_handler(signal.SIGINT, None),
        lambda: smemkern.gemm(a, a, variant="tiled", device="emu"),
    )
    assert raised is KeyboardInterrupt


# ---- memory


def calls():
    a, b = np.ones((2, 17, 19)), np.ones((19, 23))
    out = np.ones((2, 17, 23))
    yield lambda: smemkern.gemm(a, b, device="emu")
    yield lambda: smemkern.gemm(a.astype("f4"), b[:, ::-1], variant="tiled", pad=1, device="emu")
    yield lambda: smemkern.gemm(a[::-1, :, ::-1], b, out=out, beta=2, device="emu")
    yield lambda: smemkern.transpose(a[:, ::2], device="emu")
    yield lambda: smemkern.trace("gemm", a, b)
    yield lambda: smemkern._measure("gemm", a, b, repeat=2, device="emu")
    yield lambda: smemkern._core.plan("gemm", (a, b), {})
    yield smemkern.devices
    yield smemkern._core.variants
    yield smemkern._core.config
    for wrong in (
        lambda: smemkern.gemm(a, b[1:], device="emu"),
        lambda: smemkern.gemm(a, b.astype(int), device="emu"),
        lambda: smemkern.gemm(a, b, out=out[0], device="emu"),
        lambda: smemkern.gemm(a, b, variant="none", device="emu"),
        lambda: smemkern.gemm(a, b, variant="tiled", tile=99, device="emu"),
        lambda: smemkern.gemm(a, b, device="cuda:99"),
        lambda: smemkern.transpose(a[0, 0], device="emu"),
        lambda: smemkern.probe(a, device="emu"),
    ):
        yield lambda wrong=wrong: pytest.raises((TypeError, ValueError, smemkern.Error), wrong)


@pytest.mark.parametrize("call", list(calls()))
def test_nothing_leaks(call):
    def grown(times):
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        grown(20)
        # A lost object is at least 16 bytes a call, each time; free lists come and go by some
        # thousand in all, and where memory is not used again at once (AddressSanitizer)
        # str(dtype) alone takes 25 KB at first.
        assert any(grown(400) < 400 * 16 for _ in range(8))
    finally:
        tracemalloc.stop()


def test_operands_keep_their_reference_counts(rng):
    a, b = rng.standard_normal((2, 20, 20))
    out = np.zeros((20, 20))
    dtype = a.dtype
    counts = [sys.getrefcount(x) for x in (a, b, out, dtype)]
    for _ in range(50):
        smemkern.gemm(a, b, out=out, device="emu")
        smemkern.transpose(a, out=out, device="emu")
    assert [sys.getrefcount(x) for x in (a, b, out, dtype)] == counts


def test_the_module_can_be_loaded_twice():
    """Its state is its own: a second copy works, and the first is not disturbed."""
    code = (
        "import sys, numpy as np, smemkern as first\n"
        "for name in [n for n in sys.modules if n.startswith('smemkern')]: del sys.modules[name]\n"
        "import smemkern as second\n"
        "assert first.Error is not second.Error\n"
        "a = np.eye(5)\n"
        "assert (first.gemm(a, a, device='emu') == second.gemm(a, a, device='emu')).all()\n"
        "del first; import gc; gc.collect()\n"
        "print(second.gemm(a, a, device='emu').sum())"
    )
    assert float(python(code)) == 5
