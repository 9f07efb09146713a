"""The laboratory's compiler (csrc/lab/compiler) as a shared library, and comparisons with NVRTC."""

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import smemkern

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [*sorted((ROOT / "csrc/lab/compiler").glob("*.c")), ROOT / "csrc/emu/base/arena.c"]


class CompileError(Exception):
    pass


def c_compiler():
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1])
    if not compiler:
        pytest.skip("no C compiler")
    return compiler


@cache
def library():
    folder = tempfile.mkdtemp(prefix="lab_compiler_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = f"{folder}/lab.so"
    flags = ["-std=c17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(
        [c_compiler(), *flags, f"-I{ROOT / 'csrc'}", *map(str, SOURCES), "-o", target], check=True
    )
    lib = ctypes.CDLL(target)
    text, size = ctypes.c_char_p, ctypes.c_size_t
    lib.lab_compile.argtypes = [text, text, size, text, size]
    lib.lab_compile.restype = ctypes.c_void_p
    return lib


def compiled(source, name="kernel.cu"):
    """The PTX of a CUDA source, by the laboratory's compiler."""
    raw = source if isinstance(source, bytes) else source.encode()
    error = ctypes.create_string_buffer(512)
    found = library().lab_compile(name.encode(), raw, len(raw), error, len(error))
    if not found:
        raise CompileError(error.value.decode(errors="replace"))
    ptx = ctypes.string_at(found).decode()
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(found)
    return ptx


@cache
def kernels(source, name=None):
    """(by the laboratory's compiler, by NVRTC)"""
    return smemkern.Kernel(compiled(source), name), smemkern.Kernel(source, name)


def shared_rows(trace):
    """{(line, operation, width): (requests, wavefronts)}, as the PTX has them."""
    return {(r.line, r.op, r.width): (r.requests, r.wavefronts) for r in trace.shared}


def hazards(trace):
    """The pairs of lines; which access came first depends on how many instructions are between."""
    return {tuple(sorted((h.line, getattr(h, "other_line", None) or 0))) for h in trace.hazards}


def as_tuple(size):
    return tuple(size) if isinstance(size, list) else size


class Run:
    """A launch of one kernel on copies of the arguments: the arrays afterwards, and the trace."""

    def __init__(self, kernel, grid, block, args, shared_bytes=0):
        self.args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        size = {"shared_bytes": shared_bytes} if shared_bytes else {}
        self.trace = smemkern.trace(kernel, as_tuple(grid), as_tuple(block), *self.args, **size)

    def arrays(self):
        return [a for a in self.args if isinstance(a, np.ndarray)]


def same_bits(a, b):
    return a.tobytes() == b.tobytes()
