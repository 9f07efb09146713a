"""Machine code made small: what only a debugger of PTX reads is blanked, and the rest compressed.

With line numbers on, ptxas writes the whole text of the PTX into each cubin, from sm_100 on twice,
and for each instruction its line there: more than half of a cubin, once for each chip, of a text
that lies beside it anyway. The lines of the CUDA source, which profilers show, are in another
section and stay. Sections are blanked where they are, so that nothing else in the file moves, and
compress to nothing.
"""

from __future__ import annotations

import struct

BLANKED = (".nv_debug_ptx_txt", ".nv.merc.nv_debug_ptx_txt", ".nv_debug_line_sass")

# nvcc's manual: --compress-mode is of 12.8. What "size" writes needs the driver of 12.4, which is
# older than the one that machine code of such a toolkit asks for.
SMALLEST_SINCE = (12, 8)

# ELF-64, little-endian: e_shoff; e_shentsize, e_shnum, e_shstrndx; and of a section its header.
_SECTIONS, _COUNTS, _HEADER = (0x28, "<Q"), (0x3A, "<HHH"), "<IIQQQQ"


class NotElfError(ValueError):
    """Not an ELF file of 64 bits in little-endian order."""


def blanked(cubin: bytes) -> bytes:
    """The cubin without the contents of those sections."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise NotElfError(f"a cubin begins with {cubin[:6]!r}, not with ELF's magic number")
    (table,) = struct.unpack_from(_SECTIONS[1], cubin, _SECTIONS[0])
    size, count, names = struct.unpack_from(_COUNTS[1], cubin, _COUNTS[0])
    headers = [struct.unpack_from(_HEADER, cubin, table + i * size) for i in range(count)]
    strings = headers[names][4]
    out = bytearray(cubin)
    for name, _, _, _, offset, length in headers:
        start = strings + name
        if cubin[start : cubin.index(b"\0", start)].decode() in BLANKED:
            out[offset : offset + length] = bytes(length)
    return bytes(out)


def compression(version: tuple[int, int]) -> list[str]:
    """fatbinary's options, by the toolkit's version."""
    return ["--compress-all", *(["--compress-mode=size"] if version >= SMALLEST_SINCE else [])]
