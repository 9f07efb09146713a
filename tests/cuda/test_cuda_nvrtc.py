"""Compiling with the real NVRTC, where it is installed (wheel or toolkit), through the cache."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from test_cuda_cache import Cache, Header
from test_cuda_driver import CODES

SOURCE = """#include "scale.h"
extern "C" __global__ void scaled(float *x) { x[threadIdx.x] *= SCALE; }
"""
HEADERS = (("scale.h", "#define SCALE 3.0f\n"),)
OPTIONS = ("--gpu-architecture=compute_80", "-lineinfo")


class Status(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 4000)]


def wheel_library() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or [] if spec else []:
        for path in sorted(Path(root).glob("**/libnvrtc.so.*")):
            return path
    return None


class Nvrtc:
    def __init__(self, library: Path, path: Path | None) -> None:
        self.library = ctypes.CDLL(str(library))
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]
        self.library.nvrtc_set_library(bytes(path) if path else None)

    def version(self) -> tuple[int, str]:
        status = Status()
        return self.library.nvrtc_version(ctypes.byref(status)), status.message.decode()

    def compile(
        self,
        source: str = SOURCE,
        *,
        name: str = "scaled.cu",
        entry: str | None = None,
        headers: Sequence[tuple[str, str]] = HEADERS,
        options: Sequence[str] = OPTIONS,
        cache: Path | None = None,
    ) -> tuple[str, str]:
        """Code and PTX, or code and message with NVRTC's log."""
        c_headers = (Header * len(headers))(*[Header(n.encode(), t.encode()) for n, t in headers])
        c_options = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        ptx, size, status = ctypes.c_void_p(), ctypes.c_size_t(), Status()
        code = self.library.nvrtc_compile(
            source.encode(),
            name.encode(),
            entry.encode() if entry else None,
            c_headers,
            len(headers),
            c_options,
            len(options),
            bytes(cache) if cache else None,
            ctypes.byref(ptx),
            ctypes.byref(size),
            ctypes.byref(status),
        )
        assert code == status.code
        if code:
            log = ctypes.string_at(ptx.value) if ptx.value else b""
            self.free(ptx)
            return CODES[code], (status.message + b"\n" + log).decode(errors="replace")
        text = ctypes.string_at(ptx.value, size.value + 1)
        self.free(ptx)
        assert text.endswith(b"\0") and b"\0" not in text[:-1]
        return CODES[code], text[:-1].decode()


@pytest.fixture
def nvrtc(fresh_copy: Callable[[str], Path]) -> Nvrtc:
    compiler = Nvrtc(fresh_copy("libnvrtc_test.so"), wheel_library())
    version, why = compiler.version()
    if not version:
        pytest.skip(why)
    assert version >= 11000
    return compiler


def entries(cache: Path) -> list[Path]:
    return sorted(cache.glob("*.ptx"))


def test_compile(nvrtc: Nvrtc) -> None:
    code, ptx = nvrtc.compile()
    assert code == "OK"
    assert ".target sm_80" in ptx and ".entry scaled" in ptx and "scaled.cu" in ptx


def test_entry(nvrtc: Nvrtc, tmp_path: Path) -> None:
    """The first line says the kernel's name in the PTX; the cache tells entries apart."""
    source = "template <int N> __global__ void fill(int *y) { *y = N; }"
    for _ in range(2):
        for n in (3, 4):
            code, ptx = nvrtc.compile(source, entry=f"fill<{n}>", cache=tmp_path)
            assert code == "OK"
            first, rest = ptx.split("\n", 1)
            assert first == f"// entry: _Z4fillILi{n}EEvPi"
            assert f".entry {first.split()[-1]}(" in rest
    assert len(entries(tmp_path)) == 2
    code, message = nvrtc.compile(source, entry="fil<3>")
    assert code == "VALUE" and "fil<3>" in message
    code, message = nvrtc.compile("__global__ void k() { x; }", entry="k")
    assert code == "COMPILE" and '"x" is undefined' in message


def test_error_log(nvrtc: Nvrtc) -> None:
    code, message = nvrtc.compile(SOURCE.replace("x[threadIdx", "y[threadIdx"))
    assert code == "COMPILE"
    assert "scaled.cu(2)" in message and '"y" is undefined' in message
    code, message = nvrtc.compile(options=["--no-such-option"])
    assert code == "COMPILE" and "no-such-option" in message
    code, message = nvrtc.compile("#error " + "long " * 2000)
    assert code == "COMPILE" and message.count("long") >= 2000
    code, message = nvrtc.compile("#error " + "long " * 100_000)
    assert code == "COMPILE" and len(message) < 2**18 + 1000


def test_errors_are_not_cached(nvrtc: Nvrtc, tmp_path: Path) -> None:
    assert nvrtc.compile("nonsense", cache=tmp_path)[0] == "COMPILE"
    assert entries(tmp_path) == []


def test_cache_hit(nvrtc: Nvrtc, cuda_library: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = nvrtc.compile(cache=cache)
    assert first == nvrtc.compile()
    (found,) = entries(cache)
    # what is in the cache is what is given: so it was not compiled again
    Cache(cuda_library).store(cache, bytes.fromhex(found.stem), b"from the cache")
    assert nvrtc.compile(cache=cache) == ("OK", "from the cache")


def test_corrupted_entry_is_compiled_again(nvrtc: Nvrtc, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = nvrtc.compile(cache=cache)
    (found,) = entries(cache)
    whole = found.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole.replace(b"scaled", b"scales")):
        found.write_bytes(damaged)
        assert nvrtc.compile(cache=cache) == first
        assert found.read_bytes() == whole


def test_all_that_matters_is_in_the_key(nvrtc: Nvrtc, tmp_path: Path) -> None:
    variations = (
        {},
        {"source": SOURCE + "\n"},
        {"name": "other.cu"},
        {"headers": [("scale.h", "#define SCALE 4.0f\n")]},
        {"headers": [*HEADERS, ("unused.h", "")]},
        {"options": OPTIONS[:1]},
        {"options": [*OPTIONS, "-DX=1"]},
        {"options": [*OPTIONS, "-D", "X=1"]},
    )
    for i, variation in enumerate(variations):
        assert nvrtc.compile(cache=tmp_path, **variation)[0] == "OK"
        assert len(entries(tmp_path)) == i + 1
    for variation in variations:
        nvrtc.compile(cache=tmp_path, **variation)
    assert len(entries(tmp_path)) == len(variations)


def test_what_is_read_from_files_is_not_cached(nvrtc: Nvrtc, tmp_path: Path) -> None:
    cache, header = tmp_path / "cache", tmp_path / "scale.h"
    include = f"--include-path={tmp_path}"
    for scale in ("5.0f", "6.0f"):
        header.write_text(f"#define SCALE {scale}\n")
        options = [*OPTIONS, include]
        assert nvrtc.compile(headers=(), options=options, cache=cache)[0] == "OK"
        bare = SOURCE.split("\n", 1)[1]
        options = [*OPTIONS, f"--pre-include={header}"]
        assert nvrtc.compile(bare, headers=(), options=options, cache=cache)[0] == "OK"
    assert not cache.exists()


def test_given_headers_come_first(nvrtc: Nvrtc, tmp_path: Path) -> None:
    """Else an entry could depend on a file beside the source."""
    (tmp_path / "scale.h").write_text("#error from the file\n")
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert nvrtc.compile(name=str(tmp_path / "scaled.cu"))[0] == "OK"
        assert nvrtc.compile(options=[*OPTIONS, f"-I{tmp_path}"])[0] == "OK"
    finally:
        os.chdir(before)


def test_libraries_that_are_none(
    fresh_copy: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_text("not a library")
    for i, path in enumerate((broken, tmp_path / "absent.so", Path("libm.so.6"))):
        compiler = Nvrtc(fresh_copy(f"libnvrtc_test_{i}.so"), path)
        version, why = compiler.version()
        if version:
            continue  # the system has one, and it was found after the broken one
        assert str(path) in why and "libnvrtc.so.12" in why and "pip install" in why
        assert compiler.compile()[0] == "COMPILE"
