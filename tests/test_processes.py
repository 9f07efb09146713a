"""Forks, spawned processes, sub-interpreters; and the cache on disk as users meet it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import smemkern

A = np.arange(35, dtype="f4").reshape(5, 7)


def product(_number=0):
    return smemkern.gemm(A, A.T, variant="tiled", device="emu").tobytes()


def in_child(work):
    """What a forked child's `work` returns as an exit status; a deadlock is one, too."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os._exit(work())
        except BaseException:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_the_emulator_after_a_fork():
    """Its threads end with each call, so a child may go on where its parent was."""
    want = product()
    kernel = smemkern.Kernel(PTX, "seven")

    def work():
        x = np.zeros(32, "u4")
        kernel(1, 32, x, device="emu")
        return 3 if product() == want and (x == 7).all() else 4

    assert in_child(work) == 3
    assert in_child(lambda: in_child(work)) == 3
    assert product() == want


def test_fork_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert set(pool.map_async(product, range(8)).get(60)) == {product()}


def test_spawned_processes():
    """As a module that multiprocessing imports anew."""
    code = """
        import multiprocessing, numpy, smemkern
        def work(n):
            a = numpy.full((n, n), 2, "f4")
            return float(smemkern.gemm(a, a, device="emu").sum())
        if __name__ == "__main__":
            assert work(4) == 64 * 4
            for method in ("spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    assert pool.map(work, [1, 2, 3]) == [4, 32, 108]
            print("right")
    """
    done = run_file(code)
    assert done.stdout.strip() == "right", done.stderr


def run_file(code, **environment):
    """A program of its own, from a file, as spawned processes need it."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(code))
        return subprocess.run(
            [sys.executable, path],
            capture_output=True,
            text=True,
            timeout=120,
            env=os.environ | environment,
        )


SUB = """
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        import _interpreters as interpreters
    import numpy, smemkern
    a = numpy.eye(4, dtype="f4")
    before = smemkern.gemm(a, a, device="emu")
    program = '''
    import warnings
    warnings.simplefilter("ignore")
    try:
        import numpy, smemkern
        a = numpy.eye(4, dtype="f4")
        print("works" if (smemkern.gemm(a, a, device="emu") == a).all() else "wrong", flush=True)
    except (ImportError, TypeError) as error:  # on 3.10 NumPy works in the first one only
        print("refused:", repr(error), flush=True)  # a line
    '''
    import textwrap
    import sys
    words = [("isolated",), ("legacy",)] if sys.version_info >= (3, 13) else [(), ()]
    for kind in words:  # a GIL of its own, or the main one's
        number = interpreters.create(*kind)
        interpreters.run_string(number, textwrap.dedent(program))
        interpreters.destroy(number)
    # Not by == and all(): a second interpreter breaks those of NumPy on 3.10.
    assert smemkern.gemm(a, a, device="emu").tobytes() == before.tobytes()
    print("main goes on", flush=True)
"""


def test_sub_interpreters_work_or_are_refused():
    """NumPy 2 refuses a second interpreter, and with it all that needs it."""
    done = run_file(SUB)
    if "No module named '_interpreters'" in done.stderr:
        pytest.skip("no module for sub-interpreters")
    *subs, last = done.stdout.split("\n")[:-1]
    assert done.returncode == 0 and last == "main goes on", done.stdout + done.stderr
    assert subs and all(line == "works" or line.startswith("refused") for line in subs)


# ---- the cache on disk

COMPILES = """
    import numpy, smemkern
    k = smemkern.Kernel(
        'extern "C" __global__ void seven(unsigned *x) { x[threadIdx.x] = 7; }', "seven")
    x = numpy.zeros(32, "u4")
    k(1, 32, x, device="emu")
    assert (x == 7).all()
"""


@pytest.mark.parametrize(
    "harm", ["cut", "flipped", "empty", "other's", "evil twin", "no directory", "writable by all"]
)
def test_a_damaged_cache_is_not_run(nvrtc, tmp_path, harm):
    """What is on disk is compiled again, or the cache is left alone; the kernel is right anyway."""
    cache = tmp_path / "cache"
    where = {"SMEMKERN_CACHE_DIR": str(cache)}
    assert run_file(COMPILES, **where).returncode == 0
    [entry] = cache.iterdir()
    assert cache.stat().st_mode & 0o777 == 0o700
    whole = entry.read_bytes()
    if harm == "cut":
        entry.write_bytes(whole[: len(whole) // 2])
    elif harm == "flipped":
        entry.write_bytes(whole.replace(b"7", b"8"))
    elif harm == "empty":
        entry.write_bytes(b"")
    elif harm == "other's":
        entry.chmod(0o666)
    elif harm == "evil twin":
        entry.unlink()
        entry.symlink_to(tmp_path / "nothing")
    elif harm == "no directory":
        entry.unlink()
        cache.rmdir()
        cache.write_bytes(b"a file")
    else:
        cache.chmod(0o777)
        entry.write_bytes(whole.replace(b"7", b"8"))
    done = run_file(COMPILES, **where)
    assert done.returncode == 0, done.stderr
    if harm in ("cut", "flipped", "empty", "evil twin"):
        assert entry.read_bytes() == whole
    done = run_file(COMPILES, **where)
    assert done.returncode == 0, done.stderr


PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry seven(.param .u64 x)
{
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [x]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4;
    add.s64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], 7; ret;
}
"""
