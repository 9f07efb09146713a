"""The cache on disk and what names its entries; needs no NVRTC."""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import pytest

KEY = bytes(range(32))
TEXT = b".version 8.0\n.target sm_80\n"
MAGIC_BYTES, HEADER_BYTES = 8, 48


class Cache:
    def __init__(self, library: Path) -> None:
        self.library = ctypes.CDLL(str(library))
        self.library.cache_load.restype = ctypes.c_void_p
        self.free = ctypes.CDLL(None).free
        self.free.argtypes = [ctypes.c_void_p]

    def store(self, directory: Path, key: bytes, text: bytes) -> None:
        self.library.cache_store(bytes(directory), key, text, ctypes.c_size_t(len(text)))

    def load(self, directory: Path, key: bytes) -> bytes | None:
        size = ctypes.c_size_t()
        found = self.library.cache_load(bytes(directory), key, ctypes.byref(size))
        if not found:
            return None
        text = ctypes.string_at(found, size.value + 1)
        self.free(found)
        assert text[-1] == 0
        return text[:-1]


@pytest.fixture
def cache(cuda_library: Path) -> Cache:
    return Cache(cuda_library)


def entry(directory: Path, key: bytes = KEY) -> Path:
    return directory / f"{key.hex()}.ptx"


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 100003])
def test_sha256(cuda_library: Path, size: int) -> None:
    library = ctypes.CDLL(str(cuda_library))
    data = random.Random(size).randbytes(size)
    state, digest = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    library.sha256_start(state)
    for start in range(0, size, 333):
        piece = data[start : start + 333]
        library.sha256_add(state, piece, ctypes.c_size_t(len(piece)))
    library.sha256_finish(state, digest)
    assert digest.raw == hashlib.sha256(data).digest()


@pytest.mark.parametrize("text", [TEXT, b"", random.Random(1).randbytes(300000)])
def test_round_trip(cache: Cache, tmp_path: Path, text: bytes) -> None:
    directory = tmp_path / "a" / "b"
    assert cache.load(directory, KEY) is None
    cache.store(directory, KEY, text)
    assert cache.load(directory, KEY) == text
    assert cache.load(directory, KEY[::-1]) is None
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [p.name for p in directory.iterdir()] == [entry(directory).name]
    cache.store(directory, KEY, b"another")
    assert cache.load(directory, KEY) == b"another"


def test_every_corruption_is_seen(cache: Cache, tmp_path: Path) -> None:
    cache.store(tmp_path, KEY, TEXT)
    whole = entry(tmp_path).read_bytes()
    assert len(whole) == HEADER_BYTES + len(TEXT)
    for i in range(len(whole)):
        entry(tmp_path).write_bytes(whole[:i])
        assert cache.load(tmp_path, KEY) is None, f"cut at {i}"
        flipped = bytearray(whole)
        flipped[i] ^= 1 << i % 8
        entry(tmp_path).write_bytes(flipped)
        assert cache.load(tmp_path, KEY) is None, f"flipped at {i}"
    entry(tmp_path).write_bytes(whole + b"\0")
    assert cache.load(tmp_path, KEY) is None
    huge = whole[:MAGIC_BYTES] + (2**63).to_bytes(8, sys.byteorder) + whole[MAGIC_BYTES + 8 :]
    entry(tmp_path).write_bytes(huge)
    assert cache.load(tmp_path, KEY) is None
    entry(tmp_path, KEY[::-1]).write_bytes(whole)
    assert cache.load(tmp_path, KEY[::-1]) is None, "an entry under another's name"
    entry(tmp_path).write_bytes(whole)
    assert cache.load(tmp_path, KEY) == TEXT


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_directory_of_others(cache: Cache, tmp_path: Path, mode: int) -> None:
    cache.store(tmp_path, KEY, TEXT)
    tmp_path.chmod(mode)
    assert cache.load(tmp_path, KEY) is None
    cache.store(tmp_path, KEY[::-1], TEXT)
    assert not entry(tmp_path, KEY[::-1]).exists()
    tmp_path.chmod(0o755)
    assert cache.load(tmp_path, KEY) == TEXT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_foreign_owner(cache: Cache, tmp_path: Path) -> None:
    cache.store(tmp_path, KEY, TEXT)
    os.chown(entry(tmp_path), 12345, 12345)
    assert cache.load(tmp_path, KEY) is None
    os.chown(entry(tmp_path), 0, 0)
    os.chown(tmp_path, 12345, 12345)
    assert cache.load(tmp_path, KEY) is None


def test_not_a_plain_file(cache: Cache, tmp_path: Path) -> None:
    cache.store(tmp_path, KEY, TEXT)
    elsewhere = entry(tmp_path).rename(tmp_path / "elsewhere")
    entry(tmp_path).symlink_to(elsewhere)
    assert cache.load(tmp_path, KEY) is None
    entry(tmp_path).unlink()
    os.mkfifo(entry(tmp_path))
    assert cache.load(tmp_path, KEY) is None
    cache.store(tmp_path, KEY, TEXT)
    assert cache.load(tmp_path, KEY) == TEXT


def test_nowhere_to_write(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for directory in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/smemkern")):
        cache.store(directory, KEY, TEXT)
        assert cache.load(directory, KEY) is None
    cache.library.cache_store(b"", KEY, TEXT, ctypes.c_size_t(len(TEXT)))


def test_full_disk(cache: Cache, tmp_path: Path) -> None:
    """A limit on file size stops the write half-way, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        cache.store(tmp_path, KEY, TEXT * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert cache.load(tmp_path, KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_many_processes(cuda_library: Path, cache: Cache, tmp_path: Path) -> None:
    """Writers of different texts under one key: a reader sees one of them whole, or nothing."""
    program = (
        "import sys, pathlib; from test_cuda_cache import Cache, KEY\n"
        "cache = Cache(pathlib.Path(sys.argv[1])); where = pathlib.Path(sys.argv[2])\n"
        "for i in range(300):\n"
        "    cache.store(where, KEY, sys.argv[3].encode() * 5000)\n"
        "    text = cache.load(where, KEY)\n"
        "    assert text is not None and len(text) == 5000 and len(set(text)) == 1\n"
    )
    command = [sys.executable, "-c", program, str(cuda_library), str(tmp_path)]
    here = Path(__file__).parent
    writers = [subprocess.Popen([*command, letter], cwd=here) for letter in "abc"]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    assert len(list(tmp_path.iterdir())) == 1


class Header(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("text", ctypes.c_char_p)]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", True),
        ("int x; // include what is needed", True),
        ('#include "a.h"\n', True),
        ("  #  include <a.h>  // a", True),
        ('#include "a.h', True),
        ('#include "b.h"', False),
        ('#include "a.h"\n#include "sub/a.h"', False),
        ("#include A", False),
        ('#/**/include "a.h"', False),
        ('/* */ #include "b.h"', False),
        ('#if __has_include("b.h")', False),
        ("#define A 1\nint include;", True),
        ('#pragma once\n#include "a.h"\n', True),
    ],
)
def test_includes(cuda_library: Path, text: str, known: bool) -> None:
    function = ctypes.CDLL(str(cuda_library)).includes_only
    function.restype = ctypes.c_bool
    assert function(text.encode(), (Header * 1)(Header(b"a.h", b"")), 1) is known
