"""The PTX reader: what it refuses, and with which words; what becomes of what it takes."""

import time

import numpy as np
import pytest

import smemkern

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def module(declarations):
    """A module with those declarations from line 4 on, and a kernel."""
    return f"{HEAD}{declarations}\n.visible .entry k() {{ ret; }}\n"


def kernel(body, declarations="", parameters=".param .u64 y"):
    """A kernel whose body starts on line 11; its declarations share line 4."""
    return f"""{HEAD}{declarations}
.visible .entry k({parameters})
{{
.reg .pred %p<4>;
.reg .b32 %r<10>;
.reg .f32 %f<4>;
.reg .b64 %rd<6>;
{body}
ret;
}}
"""


def refusal(ptx):
    with pytest.raises(smemkern.KernelImageError) as info:
        smemkern.Kernel(ptx, "k")
    return str(info.value)


BODIES = {
    "register": ("mov.u32 %q1, 1;", "'%q1' is not declared"),
    "register beyond its range": ("mov.u32 %r10, 1;", "'%r10' is not declared"),
    "register with a leading zero": ("mov.u32 %r01, 1;", "'%r01' is not declared"),
    "range without bounds": (".reg .f32 %g<4000000000>;", "registers is 4000000000; at most"),
    "register without a type": (".reg %x;", "register type"),
    "unknown type": (".reg .q32 %x;", "expected a register type such as .b32, found '.q32'"),
    "register twice": (".reg .b32 %a, %a;", "'%a' is declared twice"),
    "label twice": ("L: mov.u32 %r1, 1; L: mov.u32 %r1, 2;", "'L' is declared twice"),
    "no label": ("bra NOWHERE;", "'NOWHERE' is not declared"),
    "label of an inner scope": ("bra L; { L: mov.u32 %r1, 1; }", "'L' is not declared"),
    "no target": ("t: .branchtargets NOPE; brx.idx %r1, t;", "'NOPE' is not declared"),
    "target that is none": ("t: .branchtargets %r1; brx.idx %r1, t;", "a label or a function"),
    "guard undeclared": ("@%z ret;", "the guard '%z' is not declared"),
    "guard of another type": ("@%r1 ret;", "the guard '%r1' is .b32, not .pred"),
    "address undeclared": ("ld.u32 %r1, [zzz];", "'zzz' is not declared as a register or variable"),
    "address of a kernel": ("ld.u32 %r1, [k];", "'k' is not declared as a register or variable"),
    "no component": ("mov.u32 %r1, %tid;", "'%tid' needs a component"),
    "no such component": ("mov.u32 %r1, %tid.q;", "'%tid' needs a component"),
    "sum of floats": ("mov.f32 %f1, %f2+1;", "is added to '%f2', which is .f32"),
    "sum of registers": ("mov.u32 %r1, %r2+%r3;", "expected a constant, found '%r3'"),
    "sum as a destination": ("mov.u32 %r1+1, %r2;", "writes to a sum; expected a register"),
    "missing semicolon": ("mov.u32 %r1, 1\n", "expected ';', found 'ret'"),
    "stray semicolon": (";", "expected an instruction, a label or a directive, found ';'"),
    "comma at the end": ("mov.u32 %r1, 1,;", "expected a constant, found ';'"),
    "open vector": ("ld.v2.u32 {%r1, %r2, [%rd1];", "expected '}', found ';'"),
    "open address": ("ld.u32 %r1, [%rd1;", "expected ']', found ';'"),
    "pair without a register": ("setp.eq.u32 %p1|5, %r1, 0;", "expected an operand, found '5'"),
    "! without a register": ("setp.eq.and.u32 %p1, %r1, 0, !5;", "expected an operand, found '5'"),
    "octal": ("mov.u32 %r1, 089;", "'089' is not a number"),
    "short float": ("mov.f32 %f1, 0f123;", "'0f123' is not a number"),
    "65 bits": ("mov.u64 %rd1, 99999999999999999999;", "does not fit 64 bits"),
    "letters in a number": ("mov.u32 %r1, 12abc;", "'12abc' is not a number"),
    "two points": ("mov.f32 %f1, 1.5.5;", "expected ';', found '.5'"),
    "division by zero": ("mov.u32 %r1, 1/(2-2);", "divides by zero"),
    "mixed expression": ("mov.f32 %f1, 1.0+2;", "mixes floats and integers"),
    "shifted float": ("mov.f32 %f1, ~1.0;", "'~' does not apply to a float"),
    "strange character": ("mov.u32 %r1, `;", "a character that is not allowed in PTX"),
    "beyond ASCII": ("mov.u32 %r1, é;", "a character that is not allowed in PTX"),
    "open comment": ("/* no end", "unterminated /* comment"),
    "open string": ('.pragma "x', "unterminated string"),
    "modifiers": ("add" + ".x" * 17 + " %r1, %r2, %r3;", "more than 16 modifiers"),
    "deep braces": ("{" * 200, "braces are nested deeper than"),
    "deep parentheses": ("mov.u32 %r1, " + "(" * 500 + "1;", "nested deeper than"),
    "deep minus": ("mov.u32 %r1, " + "-" * 100_000 + "1;", "nested deeper than"),
    "deep conditional": ("mov.u32 %r1, " + "1?" * 100_000 + "1;", "nested deeper than"),
    "deep vectors": ("mov.u32 " + "{" * 500, "nested deeper than"),
    "shared, huge": (".shared .b8 x[1<<60];", "an array size is 1152921504606846976"),
    "shared, large": (".shared .b8 x[1<<28];", "'x' (268435456 bytes) brings the .shared"),
    "local, large": (".local .b8 x[600000];", "to more than 524288 bytes"),
    "shared, initialised": (".shared .b32 x = 1;", "only .global and .const can be initialised"),
    "position": (".loc 1 2;", "expected a constant, found ';'"),
}


@pytest.mark.parametrize("body, words", BODIES.values(), ids=BODIES)
def test_bad_body(body, words):
    message = refusal(kernel(body))
    assert words in message
    assert "PTX line 1" in message, "the line, 11 or close behind it"


DECLARATIONS = {
    "product": (".global .b64 x[1<<31][1<<31];", "more than 4294967296 bytes"),
    "negative": (".global .b64 x[-1];", "an array size is -1"),
    "global": (".global .b8 x[1<<40];", "an array size is 1099511627776; at most"),
    "const": (".const .b8 x[70000];", "to more than 65536 bytes"),
    "unsized": (".global .b8 x[];", "'x' needs a size"),
    "dimensions": (".global .b8 x" + "[1]" * 9 + ";", "more than 8 dimensions"),
    "twice": (".global .b8 x; .global .b8 x;", "'x' is declared twice"),
    "align 3": (".global .align 3 .b8 x;", "a power of two, not 3"),
    "align 0": (".global .align 0 .b8 x;", "a power of two, not 0"),
    "pred": (".global .pred x;", "cannot be .pred"),
    "local": (".local .b8 x;", "belongs in a function"),
    "values": (".global .b8 x[2] = {1, 2, 3};", "more initial values than elements"),
    "row": (".global .b8 x[2][2] = {{1, 2, 3}, {1}};", "too many initial values"),
    "nesting": (".global .b8 x[2] = {{{1}}};", "nested deeper than the array"),
    "a large one": (".global .b8 x[1<<31] = {1};", "initialised variables to more than"),
    "large rows": (".global .b8 x[][1<<30] = {{1}, {1}, {1}};", "initialised variables to more"),
    "integer": (".global .f32 x = 1;", "an integer cannot initialise .f32"),
    "float": (".global .b16 x = 1.0;", "a float cannot initialise .b16"),
    "unknown": (".global .u64 x = y;", "'y' is not declared"),
    "narrow": (".global .b32 y; .global .b32 x = y;", "64-bit integer element, found .b32"),
    "mask": (".global .b32 y; .global .b8 x[8] = {0xff(y), 1};", "the rest of a masked address"),
    "wrong mask": (".global .b32 y; .global .b8 x[8] = {0xff00(y)};", "its other bytes"),
    "parameters": (".entry e(.param .b8 x[100000]) { ret; }", "to more than 65536 bytes"),
    "same parameter": (".entry e(.param .b8 x, .param .b8 x) { ret; }", "'x' is declared twice"),
    "register parameter": (".entry e(.reg .u32 a) { ret; }", "parameters are .param; 'a' is .reg"),
    "array in a register": (".func f(.reg .u32 a[2]) { ret; }", "'a' is in a register"),
    "predicate parameter": (".func f(.reg .pred a) { ret; }", "cannot be .pred"),
    "unknown parameter": (".func f(.local .u32 a) { ret; }", "expected '.param', '.reg' or ')'"),
    "function twice": (".func f() { ret; } .func f() { ret; }", "'f' is defined twice"),
    "nameless": (".entry () { ret; }", "expected a function's name, found '('"),
    "extern body": (".extern .func f() { ret; }", "is .extern and has a body"),
    "section": (".section .debug_str {", "expected '}' to close this line's '{'"),
    "file": ('.file 99999999 "x"', "a file number is 99999999; at most 65536"),
    "word": ("junk", "expected a module directive (.entry, .func, .global, ...), found 'junk'"),
    "address size": (".address_size 32", "only .address_size 64"),
}


@pytest.mark.parametrize("declarations, words", DECLARATIONS.values(), ids=DECLARATIONS)
def test_bad_declaration(declarations, words):
    message = refusal(module(declarations))
    assert words in message
    assert "PTX line 4" in message


@pytest.mark.parametrize(
    "ptx, words",
    [
        (".version abc\n", "expected a version such as 8.0, found 'abc'"),
        (".version 8\n", "expected a version such as 8.0, found '8'"),
        (".version 12345.67\n", "expected a version such as 8.0, found '12345.67'"),
        (".version 8.0\n/* ", "unterminated /* comment"),
        (".version 8.0\n.address_size 64\n", "'.target'"),
        (kernel("")[:-3], "the text ends inside 'k', which starts on line 6"),
        (kernel("mov.u32 %r1,")[:-8], "expected a constant, found the end of the text"),
        (
            f"{HEAD}.extern .global .b32 e; .entry k() "
            "{ .reg .b32 %r; ld.global.u32 %r, [e]; ret; }",
            "'e' is used but only declared .extern",
        ),
    ],
)
def test_bad_text(ptx, words):
    assert words in refusal(ptx)


def test_the_end_of_the_text_may_be_anywhere():
    whole = kernel(".shared .align 4 .b8 x[4]; { mov.u32 %r1, (1+2); } @!%p1 bra L; L: // end")
    for length in range(len(HEAD), len(whole.rstrip()) - 1):
        with pytest.raises(
            (smemkern.KernelImageError, ValueError), match=r"^PTX line \d+: |no \.entry"
        ):
            smemkern.Kernel(whole[:length], "k")


@pytest.mark.parametrize(
    "line",
    [
        "L{i}: bra L{i};",
        "@%p1 bra END;",
        "L{i}: @%p1 bra L{half};",
        "mov.u32 %x{i}, %x{half};",
        "{{ .reg .b32 %z; mov.u32 %z, 1; }}",
        ".shared .b8 s{i}[1000000]; ld.shared.u32 %r1, [s{i}];",
    ],
)
def test_large_functions_are_read_in_time(line):
    lines = (line.format(i=i, half=i // 2) for i in range(20_000))
    ptx = kernel(".reg .b32 %x<20000>;\n" + "\n".join(lines) + "\nEND: ret;")
    start = time.perf_counter()
    smemkern.Kernel(ptx, "k")
    assert time.perf_counter() - start < 5, "quadratic; even a loaded machine takes less"


def test_many_branches_that_share_many_targets():
    labels = [f"L{i}" for i in range(5000)]
    body = f"t: .branchtargets {', '.join(labels)};\n"
    body += "\n".join(f"{label}: brx.idx %r1, t;" for label in labels)
    assert "more than 4194304 targets" in refusal(kernel(body))


# ---- what it takes


def run(ptx, y, *args, **kw):
    smemkern.Kernel(ptx, "k")(1, 32, y, *args, device="emu", **kw)
    return y


STORE = "ld.param.u64 %rd1, [y]; "


def of_64_bits(n, unsigned):
    return n % 2**64 - (0 if unsigned or n % 2**64 < 2**63 else 2**64)


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "/": quotient,
    "%": lambda a, b: a - b * quotient(a, b),
    "<<": lambda a, b: a << b if b < 64 else 0,
    "&": int.__and__,
    "|": int.__or__,
    "^": int.__xor__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
    "==": int.__eq__,
    "!=": int.__ne__,
    "&&": lambda a, b: a and b and 1,
    "||": lambda a, b: (a or b) and 1,
}


@pytest.mark.parametrize("operator", BINARY)
def test_expressions_of_constants(operator):
    """Of 64 bits, signed as long as both sides are."""
    numbers = [0, 1, 2, 3, 7, 63, 2**31, 2**63 - 1, -1, -2, -9, -(2**31), 1 - 2**63]
    texts, values = [], []
    for a, b, u in ((a, b, u) for a in numbers for b in numbers for u in ("", "U")):
        if (operator in "/%" and b == 0) or (operator == "<<" and b < 0) or (u and b < 0):
            continue
        x = of_64_bits(a, u)
        texts.append(f"({x}{u} {operator} {b}{u})")
        values.append(of_64_bits(int(BINARY[operator](x, b)), False))
    table = f".global .align 8 .s64 t[{len(texts)}] = {{{', '.join(texts)}}};"
    copies = "".join(
        f"ld.global.u64 %rd2, [t+{8 * k}]; st.global.u64 [%rd1+{8 * k}], %rd2;"
        for k in range(len(texts))
    )
    got = run(kernel(STORE + copies, table), np.zeros(len(texts), np.int64))
    wrong = [(t, g, v) for t, g, v in zip(texts, got.tolist(), values, strict=True) if g != v]
    assert not wrong


@pytest.mark.parametrize(
    "constant, value",
    [
        ("12", 12),
        ("-5", -5),
        ("0x7fU", 127),
        ("017", 15),
        ("0b101", 5),
        ("(1+2)*4 - 0x10", -4),
        ("1<<4|3", 19),
        ("-7/2", -3),
        ("-7>>1", -4),
        ("7 == 7 ? 10 : 20", 10),
        ("(!5) + ~0", -1),
        ("(.s64)0xffffffffffffffff < 0", 1),
        ("0xffffffffffffffff < 0", 0),
        ("0x8000000000000000 < 0", 0),
        ("0x7fffffffffffffff + 1 < 0", 1),
        ("WARP_SZ", 32),
        ("0f3f800000", 0x3F800000),
    ],
)
def test_constants(constant, value):
    body = STORE + f"mov.b32 %r1, {constant}; st.global.b32 [%rd1], %r1;"
    assert run(kernel(body), np.zeros(1, np.int32))[0] == value


@pytest.mark.parametrize(
    "constant, value",
    [("1.5", 1.5), (".5", 0.5), ("-2e3", -2000), ("0f40490fdb", np.float32(np.pi)), ("1.0+2.0", 3)],
)
def test_float_constants(constant, value):
    body = STORE + f"mov.f32 %f1, {constant}; st.global.f32 [%rd1], %f1;"
    assert run(kernel(body), np.zeros(1, np.float32))[0] == value


def test_parameters_without_a_name():
    f = ".func f(.param .b32 _, .param .b64 _) { ret; }"
    smemkern.Kernel(module(f), "k")(1, 1, device="emu")


def test_initialisers_of_textures_are_passed_over():
    declarations = ".global .texref t = {addr_mode_0 = wrap, { 1 }};\n.global .samplerref s = {};"
    smemkern.Kernel(module(declarations), "k")(1, 1, device="emu")
    assert "'{'" in refusal(module(".global .texref t = 7;"))
    assert "line 4: expected '}' to close this line's '{'" in refusal(
        HEAD + ".global .texref t = { addr_mode_0 = wrap"
    )


def test_initialisers():
    declarations = """
    .global .align 8 .u64 table[] = {generic(later)+4, later, 0x10U, -1};
    .extern .global .b32 later[4];
    """
    with pytest.raises(smemkern.KernelImageError, match="'later' is not declared"):
        smemkern.Kernel(module(declarations), "k")
    declarations = """
    .extern .global .align 4 .b32 later[4];
    .global .align 8 .u64 table[] = {generic(later)+4, 0x10U, -1};
    .global .align 4 .b32 later[4] = {1, {2}, 3};
    .const .f32 rows[2][2] = {{1.5}, {0f3f800000, -2.0}};
    .global .align 1 .u8 packed[9] = {7, 0XFF(generic(later)), 0xFF00(generic(later)),
        0xFF0000(generic(later)), 0xFF000000(generic(later)), 0xFF00000000(generic(later)),
        0xFF0000000000(generic(later)), 0xFF000000000000(generic(later)),
        0xFF00000000000000(generic(later))};
    """
    body = (
        STORE
        + """
    ld.global.u64 %rd2, [table];
    ld.u32 %r1, [%rd2+4]; st.global.u32 [%rd1], %r1;
    ld.global.u32 %r1, [table+16]; st.global.u32 [%rd1+4], %r1;
    ld.global.u32 %r1, later[1]; st.global.u32 [%rd1+8], %r1;
    ld.const.f32 %f1, [rows+12]; cvt.rni.s32.f32 %r1, %f1; st.global.u32 [%rd1+12], %r1;
    ld.const.f32 %f1, [rows+4]; cvt.rni.s32.f32 %r1, %f1; st.global.u32 [%rd1+16], %r1;
    mov.u64 %rd2, packed; mov.u64 %rd3, 0; mov.u32 %r2, 8;
    BYTES: cvt.u64.u32 %rd4, %r2; add.u64 %rd4, %rd2, %rd4; ld.global.u8 %r1, [%rd4];
    cvt.u64.u32 %rd4, %r1; shl.b64 %rd3, %rd3, 8; or.b64 %rd3, %rd3, %rd4;
    sub.u32 %r2, %r2, 1; setp.gt.u32 %p1, %r2, 0; @%p1 bra BYTES;
    ld.u32 %r1, [%rd3]; st.global.u32 [%rd1+20], %r1;
    """
    )
    y = run(kernel(body, declarations), np.zeros(6, np.int32))
    assert y.tolist() == [3, -1, 2, -2, 0, 1]


def test_names_of_inner_scopes_hide_outer_ones():
    body = (
        STORE
        + """
    mov.u32 %r1, 1;
    { .reg .b32 %r<5>; mov.u32 %r1, 2; { .reg .b32 %r1; mov.u32 %r1, 3; bra L; mov.u32 %r1, 4; L: }
      bra L; mov.u32 %r1, 9; L: st.global.u32 [%rd1+4], %r1; }
    L: st.global.u32 [%rd1], %r1;
    """
    )
    assert run(kernel(body), np.zeros(2, np.int32)).tolist() == [1, 2]


def test_vector_registers():
    body = (
        STORE
        + """
    .reg .v4 .b32 %v, %w<3>;
    mov.u32 %v.x, 1; mov.u32 %v.y, 2; mov.u32 %v.z, 3; mov.u32 %v.w, 4;
    st.global.v4.b32 [%rd1], {%v.w, %v.z, %v.y, %v.x};
    ld.global.v4.b32 %w2, [%rd1]; add.u32 %w2.y, %w2.y, 10; st.global.v4.b32 [%rd1+16], %w2;
    """
    )
    y = run(kernel(body), np.zeros(8, np.int32))
    assert y.tolist() == [4, 3, 2, 1, 4, 13, 2, 1]


def test_calls_through_aliases_and_prototypes():
    declarations = """
    .func (.param .b32 r) twice(.param .b32 x);
    .func (.param .b32 r) same(.param .b32 x);
    .alias same, twice;
    .func (.param .b32 r) twice(.param .b32 x)
    { .reg .b32 %a; ld.param.b32 %a, [x]; add.s32 %a, %a, %a; st.param.b32 [r], %a; ret; }
    """
    body = (
        STORE
        + """
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), same, (p);
      ld.param.b32 %r1, [q]; }
    mov.u64 %rd3, twice;
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1;
      proto: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (q), %rd3, (p), proto;
      ld.param.b32 %r1, [q]; }
    st.global.u32 [%rd1], %r1;
    """
    )
    y = run(kernel(body, declarations), np.zeros(32, np.int32))
    assert y.tolist() == [4 * lane for lane in range(32)]


def test_variables_may_name_each_other():
    """In a ring; and each the next one twice, so that there are 2^60 ways through them."""
    chain = ".global .u64 v60[2] = {ring0, 9};" + "".join(
        f".global .u64 v{k}[2] = {{v{k + 1}, v{k + 1}}};" for k in reversed(range(60))
    )
    declarations = f"""
    .extern .global .u64 ring1[2]; .extern .func used();
    .global .u64 ring0[2] = {{ring1, 7}}; .global .u64 ring1[2] = {{ring0, used}}; {chain}
    .shared .b32 tile[8]; .shared .b32 other[1024];
    .func used() {{ .reg .b32 %r; ld.shared.u32 %r, [tile]; ret; }}
    """
    body = STORE + "ld.global.u64 %rd2, [v0+8]; ld.global.u64 %rd3, [%rd2+8];"
    body += "ld.global.u64 %rd3, [ring0+8]; st.global.u64 [%rd1], %rd3;"
    k, y = smemkern.Kernel(kernel(body, declarations), "k"), np.zeros(2, np.int32)
    k(1, 1, y, device="emu")
    assert y.tolist() == [7, 0] and k.shared_bytes == 32


def test_shared_variables_are_those_that_the_kernel_reaches():
    ptx = f"""{HEAD}
    .shared .align 4 .b8 a[100];
    .shared .align 16 .b8 b[64];
    .shared .b64 both;
    .func f() {{ .shared .b32 own; .reg .b32 %r; ld.shared.b32 %r, [both];
                 st.shared.b32 [own], %r; ret; }}
    .entry k1() {{ .reg .b32 %r; ld.shared.b32 %r, [a]; call f; ret; }}
    .entry k2() {{ .reg .b32 %r; ld.shared.b32 %r, [b]; call f; ret; }}
    .entry k3() {{ .reg .b32 %r; ld.shared.b32 %r, [b]; ret; }}
    .entry k4() {{ ret; }}
    """
    sizes = [smemkern.Kernel(ptx, f"k{i}").shared_bytes for i in (1, 2, 3, 4)]
    assert sizes == [116, 116, 64, 0], "`both` has one place, behind a, in all kernels"
