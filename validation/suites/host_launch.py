"""Launches for host/cudart.cpp: its programs run on the emulator, with one array, the arena.

The environment names the PTX of the program: HOST_PTX, paths with colons between. Each entry gets
one parameter more, which the arena is passed to, so that its addresses are valid. Module variables
are moved into the arena, because the host and all kernels share them.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import smemkern
from suites import decode

BASE = 9 << 40
LIMIT = float(os.environ.get("HOST_SECONDS", "60"))  # for one launch
VARIABLE = re.compile(
    r"^[ \t]*(?P<linkage>(?:\.(?:visible|weak|common)[ \t]+)*)\.(?P<space>global|const)[ \t]+"
    r"(?:\.attribute\([^)]*\)[ \t]*)?(?:\.align[ \t]+(?P<align>\d+)[ \t]+)?"
    r"(?:\.v(?P<vector>[24])[ \t]+)?"
    r"\.(?P<type>[busf]\d+)[ \t]+(?P<name>[\w$]+)(?P<n>(?:\[\d*\])*)(?P<value>[ \t]*=[^;]*)?;",
    re.M,
)
LAUNCH_FAILURE = 719

host = ctypes.PyDLL(None)  # keeps the lock of the interpreter
host.host_allocate.restype = ctypes.c_void_p
host.host_allocate.argtypes = [ctypes.c_size_t]
seconds = 0.0


def _bytes(found: re.Match[str]) -> int:
    size = int(found["type"][1:]) // 8 * int(found["vector"] or 1)
    for n in re.findall(r"\[(\d*)\]", found["n"]):
        size *= int(n or 0)
    return size


def _initial(found: re.Match[str], size: int, header: str, to: int) -> None:
    """Runs a kernel that copies the variable's initial value."""
    text = (
        f"{header}\n{found[0]}\n.visible .entry copy(.param .u64 to) {{\n"
        ".reg .u64 %a, %b, %i; .reg .u16 %v; .reg .pred %p;\n"
        f"ld.param.u64 %b, [to]; mov.u64 %a, {found['name']}; mov.u64 %i, 0;\n"
        f"L: ld.{found['space']}.u8 %v, [%a]; st.global.u8 [%b], %v;\n"
        "add.u64 %a, %a, 1; add.u64 %b, %b, 1; add.u64 %i, %i, 1;\n"
        f"setp.lt.u64 %p, %i, {size}; @%p bra L; ret; }}\n"
    )
    value = np.zeros(size, np.uint8)
    smemkern.Kernel(text, "copy")(1, 1, value, device="emu")
    ctypes.memmove(to, value.ctypes.data, size)


class Module:
    """One PTX file, its variables placed in the arena."""

    def __init__(self, path: str) -> None:
        text = decode.COMMENT.sub("", Path(path).read_text())
        header = "\n".join(re.findall(r"^\.(?:version|target|address_size).*", text, re.M))
        self.symbols: dict[str, int] = {}
        for found in VARIABLE.finditer(text):
            size, value = _bytes(found), found["value"] or ""
            names = re.search(r"[a-zA-Z_$][\w$]*", re.sub(r"0[xdfXDF][0-9a-fA-F]+", "", value))
            if not size or names:
                continue
            at = host.host_allocate(size)
            if value:
                _initial(found, size, header, at)
            else:
                ctypes.memset(at, 0, size)
            self.symbols[found["name"]] = at
        moved = self.symbols

        def define(found: re.Match[str]) -> str:
            return "" if found["name"] in moved else found[0]

        text = VARIABLE.sub(define, text)
        text = re.sub(
            r"(?<![\w$%.])[A-Za-z_$][\w$]*",
            lambda m: str(moved[m[0]]) if m[0] in moved else m[0],
            text,
        )
        if moved:
            text = text.replace("ld.const", "ld.global").replace("cvta.const", "cvta.global")
        self.text = text
        self.entries = {entry.name: entry for entry in decode.entries(text)}


@functools.cache
def modules() -> list[Module]:
    return [Module(path) for path in os.environ["HOST_PTX"].split(":")]


def symbol(name: str) -> int:
    return next((m.symbols[name] for m in modules() if name in m.symbols), 0)


@functools.cache
def kernel(name: str) -> tuple[Any, list[tuple[str, int]]]:
    """The kernel, and the kind and the bytes of each of its parameters."""
    module = next(m for m in modules() if name in m.entries)
    text = decode.alone(module.text, name)
    found = next(m for m in decode.ENTRY.finditer(text) if m[1] == name)
    inside = found[2] or ""
    kinds = []
    for p in decode.PARAMETER.finditer(inside):
        kind = re.search(r"\.([busf])(\d+)\s", p["words"])
        each = int(kind[2]) // 8
        kinds.append(("b" if p["n"] else kind[1], each * int(p["n"] or 1)))
    added = (inside.rstrip() + "," if inside.strip() else "") + " .param .u64 host_arena"
    if found[2] is None:
        text = text[: found.end(1)] + f"({added})" + text[found.end(1) :]
    else:
        text = text[: found.start(2)] + added + text[found.end(2) :]
    return smemkern.Kernel(text, name), kinds


def value(kind: str, size: int, at: int) -> Any:
    raw = ctypes.string_at(at, size)
    if kind == "b" or size not in (1, 2, 4, 8):
        return raw
    if kind == "f":
        return float(np.frombuffer(raw, f"f{size}")[0])
    return int.from_bytes(raw, "little", signed=kind == "s")


def launch(
    name: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    args: int,
    cooperative: int,
    cluster: tuple[int, ...],
    used: int,
) -> int:
    """0, or an error of CUDA; its message goes to stderr."""
    global seconds
    begun = time.monotonic()
    try:
        compiled, kinds = kernel(name)
        pointers = ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p))
        values = [value(kind, size, pointers[k]) for k, (kind, size) in enumerate(kinds)]
        arena = np.frombuffer((ctypes.c_uint8 * used).from_address(BASE), np.uint8)
        more = {"cluster": cluster} if cluster[0] else {}
        compiled(
            grid,
            block,
            *values,
            arena,
            shared_bytes=shared,
            device="emu",
            timeout=LIMIT,
            cooperative=bool(cooperative),
            **more,
        )
        return 0
    except (smemkern.Error, TimeoutError, ValueError, TypeError) as error:
        kind = "time limit" if isinstance(error, TimeoutError) else type(error).__name__
        print(f"EMULATOR: {name}: {kind}: {error}", file=sys.stderr, flush=True)
        return LAUNCH_FAILURE
    except Exception:
        traceback.print_exc()
        print("EMULATOR: an error of host_launch.py", file=sys.stderr, flush=True)
        return LAUNCH_FAILURE
    finally:
        seconds += time.monotonic() - begun
        sys.stdout.flush()
