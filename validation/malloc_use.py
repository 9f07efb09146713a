"""The memory in use by malloc, for validation/leaks.py, load.py and the tests."""

from __future__ import annotations

import ctypes


class Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks used free keepcost".split()
    ]


def used() -> int:
    """Bytes that are allocated with malloc, including blocks with their own mapping."""
    ask = ctypes.CDLL(None).mallinfo2
    ask.restype = Mallinfo
    info = ask()
    return info.used + info.hblkhd
