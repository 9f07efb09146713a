"""NVRTC, the compiler of CUDA C++ to PTX that is a library.

It takes half of the time of nvcc, which starts processes for the preprocessor and the compiler, and
needs no compiler of C++ for the host. Its PTX has the same results as nvcc's, to the bit, but not
always the same instructions.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path


class NvrtcError(RuntimeError):
    """The library cannot be loaded, or a source does not compile."""


@functools.lru_cache(maxsize=1)
def _load(library: Path) -> ctypes.CDLL:
    try:
        # NVRTC opens this by its name alone, which a wheel's folder is not searched for.
        for builtins in library.parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))
        loaded = ctypes.CDLL(str(library))
        loaded.nvrtcGetErrorString.restype = ctypes.c_char_p
    except (OSError, AttributeError) as error:
        raise NvrtcError(f"{library} cannot be used: {error}") from None
    return loaded


def version(library: Path) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _load(library).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def compile_to_ptx(library: Path, folder: Path, file: str, options: Sequence[str]) -> str:
    """The PTX of a file in a folder, to which -I options are relative. Warnings are errors."""
    program = _Program(_load(library), (folder / file).read_bytes(), file)
    where = [f"-I{folder / o[2:]}" if o.startswith("-I") else o for o in ("-I.", *options)]
    try:
        return program.compile(where)
    finally:
        program.destroy()


class _Program:
    def __init__(self, library: ctypes.CDLL, source: bytes, name: str) -> None:
        self.library, self.name = library, name
        self.handle = ctypes.c_void_p()
        self.check(
            library.nvrtcCreateProgram(
                ctypes.byref(self.handle), source, name.encode(), 0, None, None
            )
        )

    def destroy(self) -> None:
        self.library.nvrtcDestroyProgram(ctypes.byref(self.handle))

    def check(self, result: int, log: str = "") -> None:
        if result:
            what = self.library.nvrtcGetErrorString(result).decode()
            raise NvrtcError(f"NVRTC, {self.name}: {what}\n{log}")

    def compile(self, options: Sequence[str]) -> str:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        result = self.library.nvrtcCompileProgram(self.handle, len(options), given)
        log = self.text("nvrtcGetProgramLog")
        self.check(result, log)
        if log.strip():
            raise NvrtcError(f"NVRTC, {self.name}: warnings are errors\n{log}")
        return self.text("nvrtcGetPTX")

    def text(self, function: str) -> str:
        """What nvrtcGetPTX or nvrtcGetProgramLog writes; its size includes a final zero."""
        size = ctypes.c_size_t()
        self.check(getattr(self.library, f"{function}Size")(self.handle, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value + 1)
        self.check(getattr(self.library, function)(self.handle, text))
        return text.value.decode(errors="replace")
