"""What the laboratory's compiler refuses, and what any text does to it."""

import os
import random
import shutil
import subprocess

import lab_programs
import numpy as np
import pytest
import random_accesses
from lab_compiler import ROOT, SOURCES, CompileError, c_compiler, compiled

import smemkern


def body(text):
    return f"__global__ void k(float *x, const float *c, int *i, int n) {{\n    {text}\n}}\n"


# (source, where, what): positions are line:column.
ERRORS = [
    (body("x[0] = 1"), "2:13", "expected ';'"),
    (body("x[0] = ;"), "2:12", "expected an expression, found ';'"),
    (body("y = 1;"), "2:5", "'y' is not declared"),
    (body("c[0] = 1;"), "2:10", "cannot assign to 'const float'"),
    (body("1 = n;"), "2:7", "expected a variable or an element to assign to"),
    (body("int n[2]; n = 0;"), "2:17", "expected a variable"),
    (body("int a; int a;"), "2:16", "'a' is declared twice"),
    (body("x[1.5f] = 0;"), "2:6", "expected an array and an integer index"),
    (body("n[0] = 1;"), "2:6", "expected an array and an integer index"),
    (body("x % 2;"), "2:7", "'%' does not take 'float *' and 'int'"),
    (body("x[0] % 2;"), "2:10", "'%' does not take 'float' and 'int'"),
    (body("x = i;"), "2:9", "cannot convert 'int *' to 'float *'"),
    (body("float *p = c;"), "2:16", "cannot convert 'const float *' to 'float *'"),
    (body("int a[n];"), "2:11", "extern __shared__"),
    (body("int a[0];"), "2:10", "expected a size from 1"),
    (body("__shared__ float s[4] = {1};"), "2:22", "no initial value"),
    (body("break;"), "2:5", "'break' outside of a loop"),
    (body("n / 0;"), "2:7", "division by zero"),
    (body("return 1;"), "2:5", "'return' with a value"),
    (body("float4 v; v.q = 1;"), "2:16", "has no member 'q'"),
    (body("float2 v; v.z = 1;"), "2:16", "has no member 'z'"),
    (body("threadIdx.w;"), "2:15", "expected x, y or z"),
    (body("atomicAdd(n, 1);"), "2:5", "expected a pointer"),
    (body("atomicMax(x, 1.0f);"), "2:5", "'atomicMax' is not supported for 'float *'"),
    (body("min(x, x);"), "2:5", "'min' is not supported for 'float *'"),
    (body("fmaxf(1.0f);"), "2:5", "expected 2 arguments of 'fmaxf', found 1"),
    (body("expf(x[0]);"), "2:5", "unknown function 'expf'; use a polynomial"),
    (body('printf("%d", n);'), "2:12", "strings are not supported; kernels here cannot print"),
    (body("switch (n) { }"), "2:5", "switch is not supported; use if and else"),
    (body("int &r = n;"), "2:9", "references are not supported; use pointers"),
    (body("auto f = [](int a) { return a; };"), "2:14", "lambdas are not supported"),
    (body("std::min(1, 2);"), "2:5", "'::' is not supported"),
    (body("goto end;"), "2:5", "goto is not supported"),
    (body("foo_t a;"), "2:5", "'foo_t' is not declared"),
    (body("char c[3] = {1, 2, 3, 4};"), "2:10", "expected at most 3 values, found 4"),
    (body("auto a = {};"), "2:10", "expected a value after 'auto'"),
    (body("static int a = 1;"), "2:16", "static variables are not supported"),
    (body("constexpr int m = n;"), "2:19", "expected a constant"),
    ("struct A { int a; };", "1:1", "own types are not supported"),
    ("typedef int A;", "1:1", "names for types are not supported; use #define"),
    ("int main() { return 0; }", "1:1", "expected a kernel"),
    ("int main() { return 0; ", "1:12", "expected '}' of a host function"),
    ("int f(int a) { return a; }\n" + body("n = f(n);"), "3:9", "write __device__ before it"),
    ("template <int N> __global__ void k() {}", "1:1", "templates are not supported; use #define"),
    ("__global__ int k() { return 0; }", "1:16", "a kernel's type must be void"),
    ("__device__ int f(int a) { return a; }", "1:1", "expected a kernel"),
    ("", "1:1", "expected a kernel"),
    ('#include "mine.h"\n', "1:2", "only headers in <>"),
    ("#define A(x) #x\n", "1:14", "'#' and '##' in macros are not supported"),
    ("#if 1\n__global__ void k() {}\n", "2:22", "expected '#endif'"),
    ("#else\n", "1:2", "'#else' without '#if'"),
    ("__global__ void k() { /* }", "1:23", "expected '*/'"),
    ("__global__ void k() { $ }", "1:23", "unexpected character '$'"),
    ("__global__ void k() { int a = 09; }", "1:31", "expected a number, found '09'"),
    ("__global__ void k() { float a = 1.5z; }", "1:33", "expected a number, found '1.5z'"),
    ("__device__ int f(int a) { return f(a); }\n" + body("n = f(n);"), "1:34", "calls itself"),
    ("__device__ int f(int a);\n" + body("n = f(n);"), "3:9", "declared, but has no body"),
]


@pytest.mark.parametrize(("source", "where", "what"), ERRORS, ids=[e[2][:40] for e in ERRORS])
def test_errors(source, where, what):
    with pytest.raises(CompileError) as raised:
        compiled(source)
    assert str(raised.value).startswith(f"kernel.cu:{where}: "), raised.value
    assert what in str(raised.value)


REFUSALS = ("supported", "headers", "neither", "unknown function", "expected a kernel", "itself")


@pytest.mark.parametrize("part", range(4))
def test_a_source_that_cuda_takes_is_refused_as_such(nvrtc, part, monkeypatch):
    monkeypatch.setenv("SMEMKERN_COMPILER", "nvrtc")
    for source, _, what in ERRORS[part::4]:
        try:
            smemkern.Kernel(source, "k")
        except (smemkern.Error, ValueError):
            continue
        assert any(
            word in what
            for word in (*REFUSALS, "size from 1", "no body", "by zero", "write __device__")
        ), source


def repeated(n):
    """Texts that grow in every way that a text can."""
    calls = "".join(
        f"__device__ int g{k}(int a) {{ return g{k - 1}(a) + g{k - 1}(a); }}\n"
        for k in range(1, 30)
    )
    macros = "".join(f"#define a{k + 1} a{k} a{k}\n" for k in range(60))
    return {
        "parentheses": body(f"x[0] = {'(' * n}1{')' * n};"),
        "open": body("(" * n),
        "sum": body(f"x[0] = {'+'.join(['x[1]'] * n)};"),
        "constants": body(f"x[0] = {'+'.join(['1'] * n)};"),
        "unary": body(f"n = {'!' * n}n;"),
        "minus": body(f"n = {'- ' * n}n;"),
        "blocks": body("{" * n),
        "else if": body("if (n) ; else " * n + ";"),
        "loops": body("for (;;) " * n + ";"),
        "do": body("do " * n + ";" + "while (n);" * n),
        "ternary": body(f"n = {'n ? 1 : ' * n}2;"),
        "assignments": body(f"n {'= n' * n};"),
        "commas": body("n" + ", n = 1" * n + ";"),
        "subscripts": body(f"i{'[i' * n}[0]{']' * n} = 1;"),
        "stars": f"__global__ void k(int {'*' * n}p) {{}}",
        "calls": "__device__ int g0(int a) { return a; }\n" + calls + body("n = g29(n);"),
        "macros": "#define a0 1\n" + macros + body("n = a60;"),
        "empty macros": "#define a0\n" + macros + body("a60"),
        "function macros": "#define f(x) x x\n" + body("f(" * n + "n" + ")" * n),
        "big arguments": "#define f(x)\n#define b " + "n " * n + "\n" + body("f(b)" * n),
        "pointers": body("".join(f"float *p{k} = {f'p{k - 1}' if k else 'x'};" for k in range(n))),
        "late pointers": body(
            "".join(f"float *p{k};" for k in range(n))
            + "".join(f"p{k} = p{k + 1};" for k in range(n - 1))
            + f"p{n - 1} = x; *p0 = 1;"
        ),
        "array": body(f"int a[{100 * n}] = {{1}};"),
        "names": body("".join(f"int v{k};" for k in range(2 * n))),
        "if": "#if " + "(" * n + "1\n",
        "ifs": "#if 1\n" * n,
        "directives": "#" * n,
        "quotes": '"' * n,
        "bytes": bytes(range(256)) * (n // 256),
        "name": "a" * n,
        "members": body("float4 v; v" + ".x" * n + ";"),
        "shared": body("".join(f"__shared__ int s{k}; s{k} = 1;" for k in range(n))),
        "kernels": "".join(f"__global__ void k{k}() {{}}" for k in range(n)),
    }


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("kind", repeated(1))
def test_texts_that_grow(kind, n):
    source = repeated(n)[kind]
    try:
        ptx = compiled(source)
    except CompileError as error:
        assert str(error).startswith("kernel.cu:"), error
    else:
        assert ".entry" in ptx


def test_every_cut_is_an_error_or_ptx():
    source = (ROOT / "docs/lab/exercises/10_histogram/solution.cu").read_text()
    good = 0
    for size in range(len(source)):
        try:
            compiled(source[:size])
        except CompileError as error:
            assert str(error).startswith("kernel.cu:")
        else:
            good += 1
    assert good <= 2  # with and without the last newline


def subset_sources():
    paths = [*ROOT.glob("tests/corpus/*.cu"), *ROOT.glob("docs/lab/exercises/*/*.cu")]
    for path in [*paths, *ROOT.glob("csrc/kernels/mistakes/*.cu")]:
        try:
            compiled(path.read_text())
        except CompileError:
            continue
        yield path


def test_mutations_are_read_by_the_emulator():
    """What compiles, whatever it means, is PTX that the emulator understands."""
    seed = random.SystemRandom().getrandbits(32)
    rng = random.Random(seed)
    texts = [path.read_text() for path in subset_sources()]
    texts += [lab_programs.Writer(np.random.default_rng(seed), True).program()]
    words = "+ - * & ( ) [ ] { } ; , = += ++ < > ? : ! x t i 0 1 2.0f int float char bool".split()
    taken = 0
    for _ in range(1000):
        text = rng.choice(texts)
        for _ in range(rng.choice([1, 1, 2, 3])):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice([*words, ""]) + text[at + rng.randrange(3) :]
        try:
            ptx = compiled(text)
        except CompileError:
            continue
        entry = ptx.split(".entry ")[1].split("(")[0]
        try:
            smemkern.Kernel(ptx, entry)
        except smemkern.Error as error:
            pytest.fail(f"seed {seed}: {error}\n{text}")
        taken += 1
    assert taken > 30


@pytest.mark.skipif(not shutil.which("ptxas"), reason="no ptxas")
def test_ptxas_takes_what_it_makes(tmp_path):
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    rng = np.random.default_rng(seed)
    sources = [path.read_text() for path in subset_sources()]
    sources = [sources[k] for k in rng.permutation(len(sources))[:5]]
    sources += [lab_programs.Writer(rng).program() for _ in range(2)]
    sources += [random_accesses.Writer(rng).program() for _ in range(2)]
    file = tmp_path / "kernel.ptx"
    for source in sources:
        file.write_text(compiled(source))
        command = ["ptxas", "-arch=sm_90", "-O0", "-o", os.devnull, file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"seed {seed}\n{done.stderr}\n{source}"


@pytest.mark.long(instead="the mutations without sanitizers, in Chromium")
def test_mutations_under_sanitizers(tmp_path):
    """Some seconds of what ran for minutes when the compiler was written."""
    program = tmp_path / "mutate"
    flags = ["-std=c17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    source = ROOT / "tests/lab/mutate_sources.c"
    command = [c_compiler(), *flags, f"-I{ROOT / 'csrc'}", source, *SOURCES, "-o", program]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no sanitizers")
    seed = random.SystemRandom().getrandbits(32)
    done = subprocess.run(
        [program, "2", str(seed), *subset_sources()],
        env={**os.environ, "LD_PRELOAD": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"seed {seed}\n{done.stderr[-3000:]}"
    tries, good = (int(word) for word in done.stdout.split() if word.isdigit())
    assert tries > 100 and good > 5
