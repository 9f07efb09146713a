"""Modules with one mistake each: what a hostile text may say, by kind (module_mistakes.txt).

A mistake stands in an entry that is added to a random module, so that it meets other surroundings
with each seed; or it is an edit of the random module's own text, that changes a size, an alignment,
an offset, a number, a name or a line, wherever it may hit.

A mistake is refused in words, or, where it makes sense at run time, the kernel ends within its
limit of instructions.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from module_run import argument, printing
from module_writer import Module

SIZES = ("0", "1", "3", "7", "8", "9", "15", "16", "17", "24", "33", "100", "1024", "32000")
HUGE = (
    *("9223372036854775807", "-9223372036854775808", "9223372036854775800", "524288", "-9"),
    *("18446744073709551615", "4294967296", "4294967295", "-4294967296", "2147483648", "-1"),
)
COUNTS = (*SIZES, "65536", "4294967295", "4294967296", "4294967297", "18446744073709551615", "-1")
ALIGNS = ("0", "1", "2", "3", "5", "32", "128", "4096", "65536", "131072", "4294967296", "-8")
NAMES = (
    *("one", "list", "proto", "END", "out", "broken", "nowhere", "entry0", "data", "tile", "v0"),
    *("%r0", "%d0", "%p0", "%tid.x", "_", "f0_0", "empty", "vprintf", "format"),
)
GARBAGE = (
    *("0", "1", "7", "0x7fffffffffff", "0xffffffffffffffff", "0x10000000000", "0x80000000000"),
    *("0x70000000000", "0x8000000000000000", "0xdeadbeefcafebabe", "0x20000000000"),
)
DRAWN = {"n": SIZES, "m": SIZES, "o": SIZES, "c": COUNTS, "a": ALIGNS, "h": HUGE, "g": GARBAGE}
DRAWN |= {"x": NAMES, "y": NAMES, "w": ("1", "2", "4", "8"), "k": ("0", "1", "31", "32", "33")}

SHORT = {
    "USE": "mul.wide.u32 %d3, %r0, 8; add.s64 %d3, %out, %d3; mov.b64 %d1, r; mov.b32 %r5, 0;"
    " U: ld.local.u8 %d2, [%d1]; mad.lo.u64 %d4, %d4, 31, %d2; add.s64 %d1, %d1, 7;"
    " add.u32 %r5, %r5, 7; setp.lt.u32 %p2, %r5, {n}; @%p2 bra U; st.global.b64 [%d3], %d4;",
    "ONE": "ld.param.b8 %r1, [r]; mov.b64 %d1, r; ld.local.b64 %d2, [%d1+{o}];"
    " st.global.b64 [%out], %d2;",
    "WGMMA": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3},",
    "TENSOR": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
    "BULK": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
}

COMMON = """
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail
(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func (.param .b32 r) nowhere(.param .b32 p);
.global .align 16 .b32 data[16] = {1, 2, 3};
.global .align 1 .b8 format[16] = {37, 100, 32, 37, 115, 10, 0};
.func empty() { ret; }
.func (.param .b32 r) one(.param .b32 p)
{ .reg .b32 %r; ld.param.b32 %r, [p]; st.param.b32 [r], %r; ret; }
.func (.param .align 8 .b8 r[16]) two(.param .align 8 .b8 p[16], .param .b32 q)
{ .reg .b64 %d; ld.param.b64 %d, [p+8]; st.param.b64 [r], %d; st.param.b64 [r+8], %d; ret; }
.func (.param .align 1 .b8 r[9]) odd(.param .align 1 .b8 p[15], .param .align 1 .b8 q[9])
{ .reg .b32 %r; ld.param.b8 %r, [q+8]; st.param.b8 [r+8], %r; ret; }
"""

ENTRY = """
.visible .entry broken(.param .u64 out, .param .u64 other)
{
.reg .b32 %r<9>; .reg .b64 %d<9>, %out; .reg .f32 %f<4>; .reg .pred %p<3>;
.shared .align 128 .b8 tile[512];
ld.param.u64 %out, [out]; mov.u32 %r0, %tid.x; mov.b32 %r1, 3; mov.b32 %r2, 4; mov.b32 %r3, 5;
mov.b64 %d0, 1; mov.b64 %d1, 2; mov.b64 %d2, 3; mov.b64 %d4, 4;
and.b32 %r4, %r0, 1; setp.ne.u32 %p0, %r4, 0;
mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
BODY
END: ret;
}
"""


@dataclass
class Kind:
    name: str
    refused: bool  # always
    module: str
    body: str


@cache
def kinds() -> list[Kind]:
    """The rows of module_mistakes.txt."""
    text = Path(__file__).with_suffix(".txt").read_text()
    found = []
    for part in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        title, *lines = part.rstrip().splitlines()
        module = "\n".join(line[2:] for line in lines if line.startswith("> "))
        body = "\n".join(line for line in lines if not line.startswith("> "))
        found.append(Kind(title.removesuffix(" !"), title.endswith(" !"), module, body))
    return found


def written(kind: Kind, surroundings: str, random: Random) -> str:
    """A module with the mistake."""
    n = random.choice((3, 60, 900))
    long = {
        "CHAIN": "a0: .branchtargets END, END; "
        + " ".join(f"a{k + 1}: .branchtargets a{k}, a{k};" for k in range(n))
        + f" brx.idx %r0, a{n};",
        "DEEP": "{" * random.choice((40, 50000)),
        "OPEN": "{" * random.choice((300, 50000)),
        "PARENS": "(" * random.choice((300, 50000)) + "1",
        "LONG": "n" * random.choice((300, 50000)),
    }
    drawn = {letter: random.choice(values) for letter, values in DRAWN.items()}
    parts = []
    for text in (kind.module, ENTRY.replace("BODY", kind.body)):
        for word, value in (SHORT | long).items():
            text = re.sub(rf"\b{word}\b", value, text)
        parts.append(re.sub(r"\{([a-z])\}", lambda m: drawn.get(m[1], m[0]), text))
    common = COMMON
    if "vprintf(" in surroundings:
        common = re.sub(r"\.extern [^;]*vprintf[^;]*;", "", common)
    return surroundings + common + "\n".join(parts)


# ---- edits of the random module's own text ----

Edit = Callable[[list[str], Random], None]
NUMBERS = (*SIZES, *HUGE, *ALIGNS)


def replaced(pattern: str, choices: tuple[str, ...]) -> Edit:
    """One place where group 1 of the pattern gets another text."""

    def edit(lines: list[str], random: Random) -> None:
        places = [(k, m) for k, line in enumerate(lines) for m in re.finditer(pattern, line)]
        if places:
            k, m = random.choice(places)
            lines[k] = lines[k][: m.start(1)] + random.choice(choices) + lines[k][m.end(1) :]

    return edit


def name_for_name(lines: list[str], random: Random) -> None:
    """A name, or a register, for another one of the text."""
    pattern = r"[%A-Za-z_]\w*"
    words = [(k, m) for k, line in enumerate(lines) for m in re.finditer(pattern, line)]
    k, m = random.choice(words)
    lines[k] = lines[k][: m.start()] + random.choice(words)[1][0] + lines[k][m.end() :]


def line_dropped(lines: list[str], random: Random) -> None:
    del lines[random.randrange(3, len(lines))]


def line_twice(lines: list[str], random: Random) -> None:
    lines.insert(random.randrange(3, len(lines)), random.choice(lines))


def function_in_function(lines: list[str], random: Random) -> None:
    """All of a function again, anywhere."""
    starts = [k for k, line in enumerate(lines) if line == "{" and ".func" in lines[k - 1]]
    if starts:
        first = random.choice(starts) - 1
        last = next(k for k in range(first, len(lines)) if lines[k] == "ret;") + 2
        at = random.randrange(3, len(lines))
        lines[at:at] = lines[first:last]


TYPES = ("b8", "u8", "b16", "f16", "b32", "f32", "b64", "f64", "b128", "pred", "u16", "texref")
EDITS: dict[str, Edit] = {
    "edit: size of a prototype's": replaced(r"callprototype.*_\[(\d+)\]", SIZES),
    "edit: size of a variable's": replaced(r"^\.param.*\[(\d+)\]", SIZES),
    "edit: size of a parameter's": replaced(r"\.(?:func|entry).*\[(\d+)\]", SIZES),
    "edit: size": replaced(r"\[(\d+)\]", COUNTS),
    "edit: alignment": replaced(r"\.align (\d+)", ALIGNS),
    "edit: offset": replaced(r"\[[%\w]+\+(\d+)\]", NUMBERS),
    "edit: type": replaced(r"\.([bsuf](?:8|16|32|64|128))\b", TYPES),
    "edit: type of a parameter": replaced(r"\.param .*?\.([bsuf](?:8|16|32|64|128))\b", TYPES),
    "edit: arguments": replaced(r"call.*?(\(.*\))", ("()", "(%r0)", "(%r0, %d0, 7)", "(_)", "")),
    "edit: result": replaced(r"call\S* (\(\w+\))", ("()", "(%r0)", "(%d0)", "(%r0, %r1)", "")),
    "edit: callee": replaced(r"call[^(]*\(?[^)]*\)?, (%?\w+)", (*NAMES, "L1")),
    "edit: targets": replaced(r"targets (\w+)", (*NAMES, "L1", "L2", "c1", "c2")),
    "edit: initialiser": replaced(r"= \{?(.*?)[,}]", (*HUGE, "v0", "f0_0", "calls0", "{", "1.5")),
    "edit: number": replaced(r"\b(\d+)\b", NUMBERS),
    "edit: state space": replaced(
        r"\.(param|local|global|const|shared)", ("param", "local", "reg")
    ),
    "edit: name": name_for_name,
    "edit: a line less": line_dropped,
    "edit: a line more": line_twice,
    "edit: a function more": function_in_function,
}


def module(seed: int) -> tuple[str, bool, str, str]:
    """The kind, whether it must be refused, the text, and the entry to run."""
    random = Random(seed)
    surroundings = Module(seed).text()
    rows, edits = kinds(), list(EDITS.items())
    if (k := seed % (len(rows) + 2 * len(edits))) < len(rows):
        row = rows[k]
        return row.name, row.refused, written(row, surroundings, random), "broken"
    name, edit = edits[(k - len(rows)) % len(edits)]
    lines = surroundings.splitlines()
    edit(lines, random)
    return name, False, "\n".join(lines) + "\n", "entry0"


@dataclass
class End:
    """How a module with a mistake ended."""

    seed: int
    kind: str
    refused: bool  # must be
    how: str  # the name of the exception, "ran", or "died" with the signal
    left: str = ""  # a digest of what it left in its arrays and printed
    message: str = ""


def run(seed: int) -> End:
    import smemkern

    kind, refused, text, entry = module(seed)
    arrays = [np.zeros(8192, np.uint8), np.zeros(8192, np.uint8)]
    arguments: list[object] = list(arrays)
    if entry == "entry0":
        launch = Module(seed).entries[0]
        arguments += [argument(shape, bits) for shape, bits in launch.scalars]
    threads = (1, 32, 64, 64 if entry == "entry0" else 128)[seed % 4]
    lines: list[str] = []
    try:
        with printing("emu", lines):
            kernel = smemkern.Kernel(text, entry)
            limits = {"max_instructions": 100_000, "timeout": 20}
            kernel(1, threads, *arguments, device="emu", **limits)
    except (smemkern.Error, ValueError, TypeError, OverflowError, MemoryError) as error:
        return End(seed, kind, refused, type(error).__name__, message=str(error))
    left = b"".join(a.tobytes() for a in arrays) + "".join(lines).encode(errors="replace")
    return End(seed, kind, refused, "ran", hashlib.sha256(left).hexdigest()[:8])


def run_apart(some: range, **environment: str) -> list[End]:
    """Each in a process that may die; a new one goes on behind it."""
    found: list[End] = []
    while len(found) < len(some):
        first = some.start + len(found)
        path = os.pathsep.join(p for p in sys.path if p)
        child = subprocess.run(
            [sys.executable, __file__, str(first), str(some.stop)],
            env=os.environ | {"PYTHONPATH": path} | environment,
            capture_output=True,
            text=True,
        )
        found += [End(**json.loads(line)) for line in child.stdout.splitlines()]
        if child.returncode:
            seed = some.start + len(found)
            kind, refused, *_ = module(seed)
            said = child.stderr.strip().splitlines()[-1:]
            found.append(End(seed, kind, refused, f"died {child.returncode}", "", *said))
    return found


def main() -> None:
    warnings.simplefilter("ignore")  # of printing too much
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        faulthandler.dump_traceback_later(60, exit=True)
        print(json.dumps(asdict(run(seed))), flush=True)


if __name__ == "__main__":
    main()
