"""Every limit of the reader and of a block: just within it, just past it, and named in the error.

docs/reliability.md lists them; each row's number is looked for there.
"""

from pathlib import Path

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
ENTRY = ".visible .entry k(.param .u64 x) { .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p; "
PAGE = Path(__file__).resolve().parents[1] / "docs" / "reliability.md"


def body(text):
    return f"{ENTRY}{text} ret; }}"


def nested(n):
    return body("{" * n + "}" * n)


def parentheses(n):
    return body("mov.u32 %r0, " + "(" * n + "1" + ")" * n + ";")


def variable(space, n, outside=True):
    text = f".{space} .align 1 .b8 v[{n}];"
    return text + body("") if outside else body(text)


def parameters(n):
    return f".func f(.param .align 1 .b8 p[{n}]) {{ ret; }}" + body("")


def initialised(n):
    return f".global .align 1 .b8 v[{n}] = {{1}};" + body("")


# The limit as the page says it, a text at the limit, one past it, what the error says.
READER = {
    "braces": ("126", nested(125), nested(126), "braces are nested deeper than 126"),
    "parentheses": ("128", parentheses(128), parentheses(129), "nested deeper than 128"),
    "operands": (
        "3 levels",
        body("mov.b64 %rd0, {%r0, %r1};"),
        body("mov.b64 %rd0, {{{{{%r0}}}}};"),
        "nested deeper than any in PTX",
    ),
    "modifiers": (
        "16 modifiers",
        None,
        body("mov" + ".b32" * 17 + " %r0, 1;"),
        "'mov' has more than 16 modifiers",
    ),
    "a range of registers": (
        "2²⁴",
        body(".reg .b32 %q<16777216>; mov.u32 %q7, 1;"),
        body(".reg .b32 %q<16777217>;"),
        "the number of registers .* 16777216",
    ),
    "dimensions": (
        "8 dimensions",
        ".global .b8 v" + "[1]" * 8 + ";" + body(""),
        ".global .b8 v" + "[1]" * 9 + ";" + body(""),
        "more than 8 dimensions",
    ),
    "an alignment": (
        "65536",
        ".global .align 65536 .b8 v[4];" + body(""),
        ".global .align 131072 .b8 v[4];" + body(""),
        "an alignment .* 65536",
    ),
    "constant variables": (
        "64 KiB",
        variable("const", 65536),
        variable("const", 65537),
        "more than 65536 bytes",
    ),
    "local variables": (
        "512 KiB",
        variable("local", 524288, False),
        variable("local", 524289, False),
        "more than 524288 bytes",
    ),
    "parameters": ("64 KiB", parameters(65536), parameters(65537), "more than 65536 bytes"),
    "global variables": (
        "4 GiB",
        variable("global", 2**32),
        variable("global", 2**32 + 1),
        "4294967296",
    ),
    "a shared variable": (
        "16 MiB",
        variable("shared", 2**24),
        variable("shared", 2**24 + 1),
        "more than 16777216 bytes",
    ),
    "initial values": (
        "64 MiB",
        initialised(2**26),
        initialised(2**26 + 4096),
        "brings the initialised variables to more than",
    ),
    "files": (
        "65536 files",
        '.file 65536 "a.cu"\n' + body(""),
        '.file 65537 "a.cu"\n' + body(""),
        "a file number .* 65536",
    ),
    "instructions": (
        "2²² instructions",
        body("ret;" * (2**22 - 1)),
        body("ret;" * 2**22),
        "more than 4194304 instructions",
    ),
    "targets of branches": (
        "2²²",
        body(f"t: .branchtargets {','.join(['L'] * 2000)}; L: " + "brx.idx %r0, t;" * 1000),
        body(f"t: .branchtargets {','.join(['L'] * 2000)}; L: " + "brx.idx %r0, t;" * 2200),
        "more than 4194304 targets",
    ),
}


@pytest.mark.parametrize("name", READER)
def test_of_the_reader(name):
    said, within, past, match = READER[name]
    if within:
        smemkern.Kernel(HEAD + within, "k")
    with pytest.raises(smemkern.KernelImageError, match=match):
        smemkern.Kernel(HEAD + past, "k")
    assert said in PAGE.read_text(), "docs/reliability.md does not name the limit"


@pytest.mark.long(instead="the other limits")
def test_of_a_text():
    """256 MiB: the reader looks at the size before anything else."""
    text = HEAD + body("") + "\n" * (256 << 20)
    with pytest.raises(smemkern.KernelImageError, match="at most 268435456 are supported"):
        smemkern.Kernel(text, "k")
    assert "256 MiB" in PAGE.read_text()


def test_of_calls():
    """256 calls deep: the entry's is the first."""
    f = """.func f(.param .b32 n) { .reg .b32 %r<2>; .reg .pred %p; ld.param.b32 %r1, [n];
    setp.eq.u32 %p, %r1, 0; @%p ret; sub.u32 %r1, %r1, 1; call f, (%r1); ret; }"""
    x = np.zeros(4, "u4")
    for depth in (254, 255):
        text = HEAD + f + body(f"call f, ({depth});")
        smemkern.Kernel(text, "k")(1, 1, x, device="emu")
    text = HEAD + f + body("call f, (256);")
    k = smemkern.Kernel(text, "k")
    with pytest.raises(smemkern.LaunchError, match="the emulator allows 256 calls"):
        k(1, 1, x, device="emu")
    assert "256 calls" in PAGE.read_text()


def test_of_the_stack():
    """Local memory of all calls of a thread together: 512 KiB, and not 16 bytes more."""
    x, half = np.zeros(4, "u4"), 1 << 18
    for more in (0, 16):
        f = f".func f() {{ .local .align 16 .b8 v[{half + more}]; .reg .b32 %r; " + (
            "ld.local.u32 %r, [v]; ret; }"
        )
        local = f".local .align 16 .b8 w[{half}]; ld.local.u32 %r1, [w]; call f;"
        k = smemkern.Kernel(HEAD + f + body(local), "k")
        if not more:
            k(1, 1, x, device="emu")
    with pytest.raises(smemkern.LaunchError, match="256 calls and 524288 bytes per thread"):
        k(1, 1, x, device="emu")


def test_of_shared_memory():
    x = np.zeros(4, "u4")
    k = smemkern.Kernel(HEAD + body(""), "k")
    k(1, 1, x, shared_bytes=227 << 10, device="emu")
    with pytest.raises(smemkern.LaunchError, match="at most 232448 are possible"):
        k(1, 1, x, shared_bytes=(227 << 10) + 1, device="emu")
    assert "227 KiB" in PAGE.read_text()
