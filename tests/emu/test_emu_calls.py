"""Calls: what is passed arrives byte by byte, and a call that does not fit its function is refused.

What arrives is computed here, from the layout that PTX gives parameters. No byte may come from
anywhere else: the arguments' bytes differ by lane, and results that a function does not write are
the pattern of unwritten memory.
"""

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<4>;
ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 8, %rd0;"""
ADD = """.func (.param .b32 r) f(.param .b32 a) {
.reg .b32 %r<2>; ld.param.b32 %r1, [a]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }"""


def kernel(functions, body):
    entry = f".visible .entry k(.param .u64 x) {{ {REGISTERS}\n{body}\nret; }}"
    return smemkern.Kernel(f"{HEAD}{functions}\n{entry}", "k")


def run(functions, body, threads=32):
    x = np.zeros(threads, "u8")
    kernel(functions, body)(1, threads, x, device="emu", max_instructions=1_000_000)
    return x


# ---- what arrives ----


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("before", [0, 1, 3, 7, 8, 9, 12, 13, 15, 16, 17, 31])
@pytest.mark.parametrize("size", [1, 5, 8, 16, 17, 40])
def test_bytes_of_any_alignment(before, size, pointer):
    """Parameters of bytes lie where the ones before end, across 16-byte chunks of local memory."""
    lead = f".param .align 1 .b8 z[{before}]" if before else ""
    formal = f"{lead}{', ' if lead else ''}.param .align 1 .b8 a[{size}]"
    copies = "".join(
        f"ld.param.b8 %h1, [a+{k}]; add.u16 %h1, %h1, {k}; st.param.b8 [r+{k}], %h1; "
        for k in range(size)
    )
    f = f".func (.param .align 1 .b8 r[{size}]) f({formal}) {{ .reg .b16 %h<2>; {copies} ret; }}"
    stores = "".join(
        f"mad.lo.u32 %r1, %r0, 7, {11 * k}; cvt.u16.u32 %h1, %r1; st.param.b8 [p+{k}], %h1; "
        for k in range(size)
    )
    call, prototype = "call (q), f,", ""
    if pointer:
        unnamed = formal.replace(" z[", " _[").replace(" a[", " _[")
        prototype = f"t: .callprototype (.param .align 1 .b8 _[{size}]) _ ({unnamed});"
        call = "mov.u64 %rd2, f; call (q), %rd2,"
    call += f" ({'z, ' if before else ''}p){', t' if pointer else ''};"
    sums = "mov.u64 %rd3, 0; " + "".join(
        f"ld.param.u8 %rd4, [q+{k}]; mad.lo.u64 %rd3, %rd4, {2 * k + 1}, %rd3; "
        for k in range(size)
    )
    x = run(
        f,
        f"{prototype} {{ .param .align 1 .b8 p[{size}]; .param .align 1 .b8 q[{size}];"
        f" {lead + ';' if lead else ''} {stores} {call} {sums} }} st.global.u64 [%rd1], %rd3;",
    )
    lanes = np.arange(32, dtype="u8")[:, None]
    k = np.arange(size, dtype="u8")
    want = ((lanes * 7 + 11 * k + k) % 256 * (2 * k + 1)).sum(1)
    assert (x == want).all()


@pytest.mark.parametrize("before", range(0, 17, 3))
def test_a_register_across_chunks(before):
    """A 64-bit register for a parameter that one byte aligns leaves the next lane's bytes alone."""
    lead = f".param .align 1 .b8 z[{before}]" if before else ""
    f = f""".func (.param .b64 r) f({lead}{"," if lead else ""} .param .align 1 .b64 a) {{
    .reg .b64 %rd<3>; mov.u64 %rd1, 0; {
        "".join(
            f"ld.param.u8 %rd2, [a+{k}]; shl.b64 %rd2, %rd2, {8 * k}; or.b64 %rd1, %rd1, %rd2; "
            for k in range(8)
        )
    } st.param.b64 [r], %rd1; ret; }}"""
    x = run(
        f,
        f"{{ {lead + ';' if lead else ''} cvt.u64.u32 %rd2, %r0;"
        "mad.lo.u64 %rd2, %rd2, 0x0123456789abcdef, 0x1122334455667788;"
        f"call (%rd3), f, ({'z, ' if before else ''}%rd2); st.global.u64 [%rd1], %rd3; }}",
    )
    lanes = np.arange(32, dtype="u8")
    assert (x == lanes * np.uint64(0x0123456789ABCDEF) + np.uint64(0x1122334455667788)).all()


def test_several_results():
    """ptxas refuses more than one in .param; here each has its own place."""
    f = """.func (.param .b32 a, .param .b64 b) f() {
    st.param.b32 [a], 5; st.param.b64 [b], 6; ret; }"""
    body = "call (%r1, %rd2), f, (); mad.wide.u32 %rd2, %r1, 100, %rd2; st.global.u64 [%rd1], %rd2;"
    assert (run(f, body) == 506).all()


@pytest.mark.parametrize(
    ("given", "kind", "want"),
    [
        ("1.5", "f32", 0x3FC00000),
        ("0f40400000", "f32", 0x40400000),
        ("1.5", "f64", 0x3FF8000000000000),
        ("-2", "b64", 2**64 - 2),
        ("0x123456789", "b32", 0x23456789),
        ("300", "b16", 300),
    ],
)
def test_immediates_have_the_parameters_type(given, kind, want):
    size = int(kind[1:])
    f = f""".func (.param .b{size} r) f(.param .{kind} a) {{ .reg .b{size} %v;
    ld.param.b{size} %v, [a]; st.param.b{size} [r], %v; ret; }}"""
    body = f".reg .b{size} %v; call (%v), f, ({given}); st.global.b{size} [%rd1], %v;"
    assert (run(f, body) == want).all()


def test_a_result_that_nobody_takes():
    assert (run(ADD, "call (_), f, (%r0); st.global.u32 [%rd1], 3;") == 3).all()


def test_lists_of_targets():
    """By .calltargets the first function says what is passed; the pointer says which is called."""
    g = ADD.replace("f(", "g(").replace("add.u32 %r1, %r1, 1", "mul.lo.u32 %r1, %r1, 3")
    body = (
        "t: .calltargets f, g; and.b32 %r1, %r0, 1; setp.eq.u32 %p, %r1, 0;"
        "mov.u64 %rd2, f; mov.u64 %rd3, g; selp.b64 %rd2, %rd2, %rd3, %p;"
        "call (%r2), %rd2, (%r0), t; st.global.u32 [%rd1], %r2;"
    )
    lanes = np.arange(32)
    assert (run(ADD + g, body) == np.where(lanes % 2, lanes * 3, lanes + 1)).all()


@pytest.mark.parametrize("kind", ["u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("n", [2, 4, 8])
@pytest.mark.parametrize("pointer", [False, True])
def test_vectors_in_registers(n, kind, pointer):
    """`.reg .v4 .u32 a`: the result is the argument in reverse, times the other argument."""
    vector, names = f".v{n} .{kind}", "xyzwefgh"[:n]
    moves = "".join(
        f"cvt.u64.{kind} t, a.{name}; mul.lo.u64 t, t, b; cvt.{kind}.u64 r.{other}, t; "
        for name, other in zip(names, reversed(names), strict=True)
    )
    f = f""".func (.reg {vector} r) f(.reg {vector} a, .reg .u64 b) {{
    .reg .u64 t; {moves} ret; }}"""
    call, prototype = "call (o), f,", ""
    if pointer:
        of = f".param {vector} _"
        prototype = f"t: .callprototype ({of}) _ ({of}, .param .u64 _);"
        call = "mov.u64 %rd2, f; call (o), %rd2,"
    body = f".reg {vector} i, o; mov.u64 %rd3, 0;"
    for k, name in enumerate(names):
        body += f"mad.lo.u32 %r1, %r0, {3 * k + 1}, {k}; cvt.{kind}.u32 i.{name}, %r1; "
    body += f"{prototype} {call} (i, 5){', t' if pointer else ''};"
    for k, name in enumerate(names):
        body += f"cvt.u64.{kind} %rd4, o.{name}; mad.lo.u64 %rd3, %rd4, {2 * k + 1}, %rd3; "
    x = run(f, body + "st.global.u64 [%rd1], %rd3;")
    lanes = np.arange(32, dtype="u8")
    results = [
        ((lanes * (3 * k + 1) + k) * 5).astype(np.dtype(kind.replace("u", "uint")))
        for k in range(n)
    ]
    sums = (r.astype("u8") * np.uint64(2 * k + 1) for k, r in enumerate(reversed(results)))
    assert (x == sum(sums)).all()


# ---- what does not fit ----

VECTOR = """.func (.reg .v2 .u32 r) f(.reg .v2 .u32 a) { mov.u32 r.x, a.y; mov.u32 r.y, a.x; ret; }
"""

BYTES = ".func (.param .b32 r) f(.param .align 1 .b8 a[8]) { st.param.b32 [r], 1; ret; }"
PROTOTYPE = "t: .callprototype (.param .b32 _) _ (.param .b32 _);"
REFUSED = {
    "a wider register": (ADD, "call (%r1), f, (%rd0);", "argument 1 of the call does not match"),
    "a narrower register": (ADD, "call (%r1), f, (%h0);", "argument 1 .* 4 bytes aligned to 4"),
    "a wider result": (ADD, "call (%rd1), f, (%r0);", "result 1 of the call does not match"),
    "a predicate": (ADD, "call (%r1), f, (%p);", "argument 1"),
    "a register for bytes": (BYTES, "call (%r1), f, (%rd0);", "8 bytes aligned to 1"),
    "more bytes": (BYTES, "{.param .align 1 .b8 p[9]; call (%r1), f, (p);}", "argument 1"),
    "fewer bytes": (BYTES, "{.param .align 1 .b8 p[7]; call (%r1), f, (p);}", "argument 1"),
    "another alignment": (BYTES, "{.param .align 8 .b8 p[8]; call (%r1), f, (p);}", "argument 1"),
    "a larger result": (
        ADD,
        "{.param .align 4 .b8 q[4096]; call (q), f, (%r0);}",
        "result 1 of the call does not match that of f: expected 4 bytes",
    ),
    "too few arguments": (ADD, "call (%r1), f, ();", "the call of f has 0 arguments, expected 1"),
    "too many arguments": (ADD, "call (%r1), f, (%r0, %r0);", "f has 2 arguments, expected 1"),
    "no result": (ADD, "call f, (%r0);", "f has 0 results, expected 1"),
    "an operand too many": (ADD, PROTOTYPE + "call (%r1), f, (%r0), t;", "too many operands"),
    "a kernel": (".entry g(.param .u64 a) { ret; }", "call g, (%rd0);", "g is a kernel"),
    "a variable": (".global .b32 v;", "call v, ();", "target of a call must be a function"),
    "a pointer without a prototype": (
        ADD,
        "mov.u64 %rd2, f; call (%r1), %rd2, (%r0);",
        "callprototype or .calltargets",
    ),
    "a pointer and a label": (
        ADD,
        "L: mov.u64 %rd2, f; call (%r1), %rd2, (%r0), L;",
        "callprototype or .calltargets",
    ),
    "a longer vector": (VECTOR, "call ({%r1, %r2}), f, ({%r1, %r2, %r3});", "argument 1"),
    "a shorter result": (VECTOR, "call ({%r1}), f, ({%r1, %r2});", "result 1 of the call"),
    "other components": (VECTOR, "call ({%r1, %r2}), f, ({%r1, %h2});", "argument 1"),
    "a vector of vectors": (VECTOR, "call ({%r1, %r2}), f, ({%r1, {%r1, %r2}});", "argument 1"),
    "constants for a result": (VECTOR, "call ({%r1, 2}), f, ({1, 2});", "result 1 of the call"),
    "an empty vector": (VECTOR, "call ({%r1, %r2}), f, ({});", "argument 1|expected"),
    "a vector for a scalar": (ADD, "call (%r1), f, ({%h0, %h1});", "argument 1"),
    "a scalar for a vector": (VECTOR, "call ({%r1, %r2}), f, (%rd0);", "argument 1"),
    "an array in registers": (
        ".func f(.reg .v2 .u32 a[2]) { ret; }",
        "",
        "'a' is in a register and cannot be an array",
    ),
    "vprintf with a vector": (
        ".extern .func (.param .b32 r) vprintf(.param .v2 .b32 a, .param .b64 b);",
        "call (%r1), vprintf, ({%r0, %r0}, %rd0);",
        "vprintf is declared with other parameters",
    ),
    "no bytes at all": (".func (.param .b8 r[0]) f() { ret; }", "", "array of 0 elements"),
    "an argument of no bytes": ("", "{ .param .b8 p[0]; }", "array of 0 elements"),
    "vprintf with other arguments": (
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b32 b);",
        "call (%r1), vprintf, (%rd0, %r0);",
        "vprintf is declared with other parameters",
    ),
    "vprintf with a large result": (
        ".extern .func (.param .align 8 .b8 r[512]) vprintf(.param .b64 a, .param .b64 b);",
        "{ .param .align 8 .b8 q[512]; call (q), vprintf, (%rd0, %rd0); }",
        "vprintf is declared with other parameters",
    ),
    "a list that names a list": (
        "",
        "L: t: .branchtargets L; u: .branchtargets t; brx.idx %r0, u;",
        "'t' is a list of targets or a prototype",
    ),
    "a list that names itself": ("", "t: .branchtargets t; brx.idx %r0, t;", "'t' is a list"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_runs(name):
    functions, body, match = REFUSED[name]
    x = np.zeros(32, "u8")

    def make_and_call():  # the reader refuses some, decoding the others
        made = kernel(functions, "st.global.u32 [%rd1], 1;" + body)
        made(1, 32, x, device="emu")

    with pytest.raises(smemkern.KernelImageError, match=match):
        make_and_call()
    assert not x.any()


@pytest.mark.parametrize(
    "function",
    [
        ADD.replace(".b32 r)", ".b64 r)"),
        ADD.replace(".b32 r)", ".align 8 .b8 r[4096])"),
        ADD.replace(".b32 a)", ".align 4 .b8 a[64])"),
        ADD.replace(".b32 a)", ".b32 a, .param .b32 b)"),
        ADD.replace(".func (.param .b32 r)", ".func").replace("st.param.b32 [r], %r1;", ""),
    ],
)
def test_a_pointer_to_another_kind_of_function(function):
    """The prototype says what is copied, so a function of other sizes is not entered."""
    body = f"{PROTOTYPE} mov.u64 %rd2, f; call (%r1), %rd2, (%r0), t; st.global.u32 [%rd1], %r1;"
    assert (run(ADD, body) == np.arange(32) + 1).all()
    x = np.zeros(32, "u8")
    other = kernel(function, body)
    with pytest.raises(smemkern.LaunchError, match="call of f .* differ from those of t"):
        other(1, 32, x, device="emu")
    assert not x.any()


@pytest.mark.parametrize("first", [0, 1])
def test_the_texts_of_two_modules_are_joined(first):
    """As a linker would: one has what the other declares .extern."""
    texts = [
        f"{HEAD}.extern .func (.param .b32 r) far(.param .b32 a);\n.extern .global .b32 table[4];\n"
        f".visible .entry k(.param .u64 x) {{ {REGISTERS}\n"
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r0; call (r), far, (a); "
        "ld.param.b32 %r1, [r]; } ld.global.b32 %r2, [table+8]; add.u32 %r1, %r1, %r2;\n"
        "cvt.u64.u32 %rd2, %r1; st.global.u64 [%rd1], %rd2; ret; }\n",
        f"{HEAD}.visible .global .align 4 .b32 table[4] = {{5, 6, 7, 8}};\n"
        + ADD.replace(".func", ".visible .func").replace(" f(", " far("),
    ]
    x = np.zeros(32, "u8")
    smemkern.Kernel(texts[first] + texts[1 - first], "k")(1, 32, x, device="emu")
    assert (x == np.arange(32) + 1 + 7).all()
    with pytest.raises(smemkern.KernelImageError, match="'table' is used but only declared"):
        smemkern.Kernel(texts[0], "k")


def test_a_chain_of_lists_is_read_at_once():
    """Each list names the one before twice: 2**60 targets, if lists could name lists."""
    chain = "".join(f"L{k + 1}: .branchtargets L{k}, L{k}; " for k in range(60))
    with pytest.raises(smemkern.KernelImageError, match="is a list of targets"):
        kernel("", f"L0: {chain} brx.idx %r0, L60;")
