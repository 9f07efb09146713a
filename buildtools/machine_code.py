"""Reduces the size of machine code: zeroes what only a PTX debugger reads, compresses the rest.

With line numbers on, ptxas writes the whole text of the PTX into each cubin, from sm_100 on twice,
and the PTX line of each instruction. That is more than half of a cubin, once per chip, and the text
is in the .ptx file anyway. The lines of the CUDA source, which profilers show, are in another
section and stay. Sections are zeroed in place, so that no offset in the file changes; zeros
compress to almost nothing.
"""

from __future__ import annotations

import struct

BLANKED = (".nv_debug_ptx_txt", ".nv.merc.nv_debug_ptx_txt", ".nv_debug_line_sass")

# nvcc's manual: --compress-mode exists since 12.8. The output of "size" needs a driver of 12.4 or
# newer, and machine code of such a toolkit needs a newer one anyway.
SMALLEST_SINCE = (12, 8)

# ELF-64, little-endian: e_shoff; e_shentsize, e_shnum, e_shstrndx; a section header.
_SECTIONS, _COUNTS, _HEADER = (0x28, "<Q"), (0x3A, "<HHH"), "<IIQQQQ"


class NotElfError(ValueError):
    """Not a 64-bit little-endian ELF file."""


def blanked(cubin: bytes) -> bytes:
    """The cubin with the contents of the BLANKED sections set to zero."""
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise NotElfError(
            f"expected a 64-bit ELF cubin, found a file that begins with {cubin[:6]!r}"
        )
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
    """fatbinary's compression options, by the toolkit's version."""
    return ["--compress-all", *(["--compress-mode=size"] if version >= SMALLEST_SINCE else [])]
