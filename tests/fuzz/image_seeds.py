"""Inputs that fuzz_image begins with: fat binaries, compressed texts, and texts to link."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

ZSTD, LZ4 = 0x8000, 0x2000  # flags of an entry
MAX_TEXT = 6000


def entry(stored: bytes, plain: int, flags: int, sm: int, kind: int = 1) -> bytes:
    padding = bytes(-len(stored) % 8)
    sizes = (len(stored) + len(padding), len(stored), 0, 0, sm, 0, 0)
    head = struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, *sizes, flags, 0, plain)
    return head + stored + padding


def fat_binary(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def sized(data: bytes) -> bytes:
    return struct.pack("<H", len(data)) + data


def by_zstd(text: bytes, level: int) -> bytes | None:
    if not shutil.which("zstd"):
        return None
    command = ["zstd", "-c", "--no-check", f"-{level}"]
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def as_lz4(text: bytes) -> bytes:
    """One sequence of literals, then a match of the last 4 bytes and 5 more literals."""
    n = len(text) - 9
    long = b"".join([bytes([255]) * ((n - 15) // 255), bytes([(n - 15) % 255])]) if n > 14 else b""
    end = b"\x04\x00" + bytes([5 << 4]) + text[-5:]
    return bytes([min(n, 15) << 4]) + long + text[:n] + end


def write(folder: Path, texts: list[bytes], seed: int) -> None:
    rng = Random(seed)
    for number, text in enumerate(texts):
        text = text[: rng.choice([100, 1000, MAX_TEXT])].ljust(20)
        repeated = text[:-5][:-4] + text[-13:-9] + text[-5:]  # what as_lz4 makes
        lz4, zstd = as_lz4(text), by_zstd(text, rng.choice([1, 3, 19]))
        plain = fat_binary(entry(text, 0, 0, rng.choice([50, 80, 90, 120])))
        inputs = [b"\x00" + plain, b"\x03" + struct.pack("<H", len(repeated)) + lz4]
        inputs += [b"\x00" + fat_binary(entry(lz4, len(repeated), LZ4, 90))]
        inputs += [b"\x04" + bytes([rng.randrange(256)]) + text]
        if zstd:
            one = fat_binary(entry(zstd, len(text), ZSTD, 80), entry(b"code", 0, 0, 90, kind=2))
            inputs += [b"\x00" + one, b"\x01" + sized(plain) + sized(one)]
            inputs += [b"\x02" + struct.pack("<H", len(text)) + zstd]
        for k, data in enumerate(inputs):
            (folder / f"image{number}_{k}").write_bytes(data)
