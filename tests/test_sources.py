"""Sources as people have them: whole .cu files, headers beside them, names, options, messages."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import environment
from smemkern import _core
from smemkern._compiler import compile as compiling
from smemkern._compiler.demangle import demangled, normal
from smemkern._compiler.includes import Includes
from smemkern._compiler.outline import Outline, every

WHOLE = """\
#include <algorithm>
#include <cstdint>
#include <float.h>
#include <iostream>
#include <map>
#include <math.h>
#include <string>
#include <vector>
#include "nowhere/to/be/found.h"
#include "sub/scale.cuh"

#define CHECK(call) do { cudaError_t e = call; if (e != cudaSuccess) exit(1); } while (0)
static std::map<std::string, int> table;

template <typename T, int N> __global__ void scaled(const T *x, T *y, uint32_t n) {
    uint32_t i = blockIdx.x * N + threadIdx.x;
    if (i < n) y[i] = std::max(scale(x[i]), T(-FLT_MAX)) + (x[i] == INFINITY ? 1 : T(M_PI) * 0);
}

struct Timer { std::string name; std::vector<double> seconds; ~Timer() { std::cout << name; } };

void reference(const std::vector<float> &x, std::vector<float> &y) {
    for (auto v : x) y.push_back(2 * v);
}

int main(int argc, char **argv) {
    const int block = 64;
    std::vector<float> x(1000), y;
    float *a, *b;
    CHECK(cudaMalloc(&a, 4000));
    CHECK(cudaMalloc(&b, 4000));
    cudaMemcpy(a, x.data(), 4000, cudaMemcpyHostToDevice);
    scaled<float, block><<<(1000 + block - 1) / block, block>>>(a, b, 1000);
    CHECK(cudaDeviceSynchronize());
    reference(x, y);
    fprintf(stderr, "%s %zu\\n", argv[0], y.size());
}
"""
SCALE = "#pragma once\ntemplate <class T> __device__ T scale(T x) {\n    return 2 * x;\n}\n"


@pytest.fixture
def project(tmp_path, monkeypatch, nvrtc):
    """A file with host code, and its header; compiled by NVRTC alone, with a cache of its own."""
    monkeypatch.setenv("SMEMKERN_COMPILER", "nvrtc")
    monkeypatch.setenv("SMEMKERN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "scale.cuh").write_text(SCALE)
    file = tmp_path / "whole.cu"
    file.write_text(WHOLE)
    return file


def run(kernel, rng, n=777):
    x, y = rng.standard_normal(n).astype("f4"), np.zeros(n, "f4")
    kernel(-(-n // 64), 64, x, y, n, device="emu")
    return x, y


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_a_program_compiles_as_it_is(project, rng, kind, monkeypatch):
    monkeypatch.chdir("/")
    kernel = smemkern.Kernel(kind(project), None)  # the launch in main() instantiates it
    assert demangled(kernel.name).written == "scaled<float, 64>"
    x, y = run(kernel, rng)
    assert np.array_equal(y, 2 * x)
    assert kernel.file == str(project)
    assert kernel.source == WHOLE
    assert "without host code" in kernel.compiler


def test_a_template_that_nothing_instantiates(project, rng):
    kernel = smemkern.Kernel(project, "scaled<double, 32>")
    x, y = rng.standard_normal(50), np.zeros(50)
    kernel(2, 32, x, y, 50, device="emu")
    assert np.array_equal(y, 2 * x)
    project.write_text("template <int N> __global__ void lonely(int *x) { *x = N; }\n")
    with pytest.raises(ValueError, match=r"whole.cu has no kernel but templates.*lonely<int N>"):
        smemkern.Kernel(project, None)


@pytest.mark.long(instead="the same file by NVRTC")
def test_nvcc_gives_the_same_numbers(project, rng, monkeypatch):
    """Where nvcc and a host compiler are found."""
    if compiling.nvcc.stamp() is None:
        pytest.skip("there is no nvcc")
    project.write_text(WHOLE.replace('#include "nowhere/to/be/found.h"\n', ""))
    monkeypatch.setenv("SMEMKERN_COMPILER", "nvcc")
    try:
        kernel = smemkern.Kernel(project, None)
    except smemkern.CompileError as error:
        pytest.skip(f"nvcc does not work here: {error}")
    x, y = run(kernel, rng)
    assert np.array_equal(y, 2 * x)
    other = smemkern.Kernel(project, "scaled<float, 128>")
    assert demangled(other.name).written == "scaled<float, 128>"


def test_headers_are_part_of_what_the_cache_knows(project, rng, monkeypatch):
    compiled = []
    real = _core.nvrtc_compile
    monkeypatch.setattr(_core, "nvrtc_compile", lambda *a: compiled.append(1) or real(*a))
    smemkern.Kernel(project, None)
    first = len(compiled)
    assert first > 0
    smemkern.Kernel(project, None)
    assert len(compiled) == first
    (project.parent / "sub" / "scale.cuh").write_text(SCALE.replace("2 * x", "3 * x"))
    x, y = run(smemkern.Kernel(project, None), rng)
    assert len(compiled) > first
    assert np.array_equal(y, 3 * x)


MEMBERS = """\
#include <ostream>
#include <string>
#include "nowhere/library.h"
struct Ray {
    float x, y;
    friend std::ostream &operator<<(std::ostream &out, const Ray &ray);
    static std::string name;
    using Table = std::map<std::string, int>;
    void load(const std::string &file);
    virtual_memory::Pool *pool(std::string name) const;
    __device__ float at(float t) const;
};
__device__ float Ray::at(float t) const { return x + y * t; }
void Ray::load(const std::string &file) { x = std::stof(file); }
__global__ void follow(const Ray *rays, float *out) {
    static_assert(sizeof(Ray) == 8, "");
    out[threadIdx.x] = rays[threadIdx.x].at(2);
}
"""


def test_members_of_the_host_leave_their_class(project, rng):
    """Those that take no place in it; a class of declared device functions stays, too."""
    project.write_text(MEMBERS)
    kernel = smemkern.Kernel(project, "follow")
    rays, out = rng.standard_normal((32, 2)).astype("f4"), np.zeros(32, "f4")
    kernel(1, 32, rays.view([("x", "f4"), ("y", "f4")]), out, device="emu")
    np.testing.assert_allclose(out, rays[:, 0] + rays[:, 1] * 2, rtol=1e-6)


def test_a_launch_of_a_lambda_over_host_data(project):
    """The lambda's data are of the host, so that nothing tells which instance is launched."""
    project.write_text(
        """\
#include <vector>
template <class F> __global__ void each(int n, F f) { if (threadIdx.x < n) f(threadIdx.x); }
__global__ void one(int *x) { x[0] = 1; }
int main() {
    std::vector<int> data(32);
    int *x = data.data();
    each<<<1, 32>>>(32, [=] __device__(int i) { x[i] = i; });
    one<<<1, 1>>>(x);
}
"""
    )
    assert smemkern.Kernel(project).name == "_Z3onePi"


def test_spellings_of_gcc(project, rng):
    """nvcc takes them in device code; `main` is there so that this is no plain source."""
    project.write_text(
        """\
#include <stdio.h>
__global__ void odd(const int *x, int *y) {
    register int i = threadIdx.x;
    __const __typeof__(i) bits = __builtin_popcount(x[i]);
    typeof(x[i] + 1) first = __builtin_clz(x[i]);
    u_int32_t turned;
    __asm__ __volatile__("brev.b32 %0, %1;" : "=r"(turned) : "r"(x[i]));
    __int128 wide = (__int128)x[i] * x[i] * x[i];
    y[4 * i] = bits, y[4 * i + 1] = first, y[4 * i + 2] = turned, y[4 * i + 3] = wide >> 64;
}
int main() { odd<<<1, 32>>>(nullptr, nullptr); return 0; }
"""
    )
    x, y = rng.integers(-(2**31), 2**31, 32).astype("i4"), np.zeros((32, 4), "i4")
    smemkern.Kernel(project, "odd")(1, 32, x, y, device="emu")
    for value, found in zip(x.tolist(), y.tolist(), strict=True):
        text = f"{value & 0xFFFFFFFF:032b}"
        turned = int(text[::-1], 2)
        signed = turned - 2**32 if turned >= 2**31 else turned
        zeros = len(text) - len(text.lstrip("0"))
        assert found == [text.count("1"), zeros, signed, value**3 >> 64]


@pytest.mark.parametrize("member", ["std::string name;", "virtual void save(std::ostream &);"])
def test_members_that_take_place_are_errors(project, member):
    project.write_text(MEMBERS.replace("float x, y;", f"float x, y; {member}"))
    with pytest.raises(smemkern.CompileError, match="not found: nowhere/library.h\n") as caught:
        smemkern.Kernel(project, "follow")
    assert 'namespace "std" has no member' in str(caught.value)


def test_a_log_is_whole(nvrtc):
    """So that all host code that fails is left out at once."""
    wrong = "".join(f"void f{n}() {{ unknown_{n}(); }}\n" for n in range(60))
    with pytest.raises(smemkern.CompileError) as caught:
        _core.nvrtc_compile(wrong, "wrong.cu", None, (), (), ("-default-device",))
    assert all(f'"unknown_{n}" is undefined' in str(caught.value) for n in range(60))


def test_host_types_of_device_code_are_errors(project):
    """What a kernel uses is never left out."""
    project.write_text(
        "#include <string>\nstruct P { std::string name; float *p; };\n"
        "__global__ void k(P p) { *p.p = 1; }\nint main() {}\n"
    )
    with pytest.raises(smemkern.CompileError, match=r"whole.cu\(\d\): error(.|\n)*__CUDACC_RTC__"):
        smemkern.Kernel(project, None)


def test_compile_errors_have_the_files_own_names(project, monkeypatch):
    monkeypatch.chdir(project.parent)
    (project.parent / "sub" / "scale.cuh").write_text(SCALE.replace("2 * x", "2 * missing"))
    with pytest.raises(smemkern.CompileError) as raised:
        smemkern.Kernel("whole.cu", None)
    assert re.search(r"sub/scale.cuh\(3\): error: identifier \"missing\"", str(raised.value))
    assert "warning" not in str(raised.value)


def test_includes_in_circles_end(project):
    project.write_text('#include "a.cuh"\n__global__ void k(int *x) { *x = A; }\n')
    (project.parent / "a.cuh").write_text('#pragma once\n#include "b.cuh"\n#define A 3\n')
    (project.parent / "b.cuh").write_text('#include "a.cuh"\n#include "../whole/none.h"\n')
    x = np.zeros(1, "i4")
    smemkern.Kernel(project, None)(1, 1, x, device="emu")
    assert x[0] == 3


# ---- names ----

NAMES = {
    "_Z1kB5cxx11i": ("k", "k(int)"),
    "_Z1kILb1EEv1aIXT_EE": ("k<true>", "k<true>(a<true>)"),
    "_Z5scalePfi": ("scale", "scale(float *, int)"),
    "_ZN5space5scaleEPKd": ("space::scale", "space::scale(const double *)"),
    "_Z4tileIfLi16ELb1EEvPT_PKS0_": ("tile<float, 16, true>", None),
    "_Z1kIN1a1bILj3EEEEvT_": ("k<a::b<3u>>", "k<a::b<3u>>(a::b<3u>)"),
    "_ZN12_GLOBAL__N_11kEv": ("k", "k()"),
    "_Z1kPFvPKiE": ("k", "k(void (*)(const int *))"),
    "_Z1kRA4_A8_f": ("k", "k(float (&)[4][8])"),
    "scale": ("scale", "scale"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_demangled(name):
    written, whole = NAMES[name]
    assert demangled(name).written == written
    assert whole is None or demangled(name).whole == whole


@pytest.mark.parametrize(
    ("one", "other"),
    [("k< float,16u >", "k<float, 16>"), ("k<(unsigned int)4>", "k<4>"), ("k<half>", "k<__half>")],
)
def test_spellings_of_one_name(one, other):
    assert normal(one) == normal(other)


def test_hostile_names_end_soon():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    alive = [
        "_Z" + "P" * 3000 + "i",
        "_Z1k" + "I" * 3000,
        "_Z1k" + "".join(f"1a{'S_' * k}" for k in range(50)),
        "_Z1fIJ" + "S_S_" * 900,
        "_ZN" + "1aI" * 1200,
        "_Z1fIS_IS_IS_EE" + "IS0_S0_ES1_" * 300,
    ]
    letters = "_ZNIEJLSTPKRO0123456789abcdfijklmvx"
    for _ in range(3000):
        name = list(rng.choice([*NAMES, "_Z4tileIfLi16EEvPT_PKS0_"]))
        for _ in range(rng.randrange(4)):
            name[rng.randrange(len(name))] = rng.choice(letters)
        alive.append("".join(name))
    begun = time.monotonic()
    for name in alive:
        assert len(demangled(name).whole) < 20000, seed
    assert time.monotonic() - begun < 20, seed


def test_hostile_sources_end_soon():
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    pieces = re.findall(r"\w+|\s+|\S", WHOLE)
    texts = [
        "{" * 20000,
        "/*" * 20000,
        "a<" * 20000,
        "(" * 20000 + ")",
        '"' * 9999,
        "#if 0\n" * 9999,
    ]
    texts += [f"{opened} " * 3000 for opened in ("namespace {", "struct A {", "f() {", "if (x)")]
    texts += [f"{opened} " * 3000 + "}" * 3000 for opened in ("namespace {", "f() { if (x) {")]
    for _ in range(200):
        own = rng.choices(pieces, k=rng.randrange(400))
        texts.append("".join(own))
    begun = time.monotonic()
    for text in texts:
        for item in every(Outline(text).items):
            assert 0 <= item.start <= item.end <= len(text), seed
    assert time.monotonic() - begun < 30, seed


# ---- the command line ----

LOOP = """\
template <class T> __global__ void wait(T *x, int n) {
    while (x[0] == T(0)) {
        x[1] += n;
    }
}
template __global__ void wait<float>(float *, int);
template __global__ void wait<double>(double *, int);
"""


@pytest.fixture
def command(tmp_path, nvrtc):
    def run(command, text, *words):
        file = tmp_path / "own name.cu"
        file.write_text(text)
        return subprocess.run(
            [sys.executable, "-m", "smemkern", command, str(file), *words],
            capture_output=True,
            text=True,
            cwd="/",
            env={**os.environ, "COLUMNS": "400"},
        )

    return run


def test_kernels_are_listed_as_one_writes_them(command):
    done = command("check", LOOP, "--grid=1", "--block=1")
    assert done.returncode == 2
    assert "name one of: wait<double>, wait<float>" in done.stderr


@pytest.mark.parametrize("name", ["check", "trace"])
@pytest.mark.parametrize("limit", ["--max-instructions=1e5", "--timeout=1"])
def test_an_endless_kernel_says_where_it_loops(command, name, limit):
    own = ["--kernel=wait<float>", "--grid=1", "--block=32", "--arg=f32[32]", "--arg=i32=0"]
    done = command(name, LOOP, *own, limit)
    assert done.returncode == 4
    assert re.search(r"is at own name.cu:[23], in (the loop of lines 2 to 3|a loop)", done.stderr)


def test_missing_arguments_are_named(command):
    own = ["--kernel=wait<float>", "--grid=1", "--block=32", "--arg=f32[32]"]
    done = command("check", LOOP, *own)
    assert "wait<float>(float *x, int n) takes 2 arguments but 1 was given" in done.stderr
    assert "missing: 1 (int n)" in done.stderr


@pytest.mark.parametrize("spec", ["f64[32]", "i32[32]", "f16[32]"])
def test_arrays_of_another_type_are_refused(command, spec):
    own = ["--kernel=wait<float>", "--grid=1", "--block=32", f"--arg={spec}", "--arg=i32=0"]
    done = command("check", LOOP, *own)
    assert done.returncode == 2
    assert "but the kernel's parameter is float *x; pass float32" in done.stderr


DYNAMIC = """\
#include "add.h"
extern "C" __global__ void k(unsigned char *x) {
    extern __shared__ int s[];
#ifdef BAD
    s[threadIdx.x] = 1;
#endif
    x[threadIdx.x] = ADD;
}
"""


def test_compile_options(command, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "add.h").write_text("#define ADD OTHER\n")
    own = ["--grid=1", "--block=2", "--arg=u8[1]", "-I", str(tmp_path / "folder"), "-DOTHER=3"]
    done = command("check", DYNAMIC, *own, "--std=c++20", "--arch=sm_90")
    assert done.returncode == 1
    assert "the kernel writes 1 byte of global memory" in done.stdout
    assert "own name.cu:7" in done.stdout
    done = command("check", DYNAMIC, *own, "-D", "BAD")
    assert "no dynamic shared memory was given" in done.stdout


HEADER_RACE = """\
#include "shift.cuh"
__global__ void k(float *x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    shift(s);
    x[threadIdx.x] = s[threadIdx.x];
}
"""
SHIFT = """\
__device__ __forceinline__ void shift(float *s) {
    s[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
"""


def test_a_hazard_in_a_header_shows_its_source_and_callers(command, tmp_path):
    (tmp_path / "shift.cuh").write_text(SHIFT)
    done = command("check", HEADER_RACE, "--grid=1", "--block=64", "--arg=f32[64]")
    assert "shift.cuh:2 |     s[threadIdx.x] = s[(threadIdx.x + 1) % 64];" in done.stdout
    assert "own name.cu:6 |     shift(s);  (calls it)" in done.stdout


def test_nvrtc_takes_the_builtins_beside_it(nvrtc):
    """By itself it looks in the system's folders only, where they are if there is a toolkit."""
    text = """
import random, re, smemkern
smemkern.Kernel(f'extern "C" __global__ void k(int *x) {{ *x = {random.getrandbits(30)}; }}', "k")
print(*sorted(set(re.findall(r"/\\S*nvrtc\\S*", open("/proc/self/maps").read()))))
"""
    ran = subprocess.run([sys.executable, "-c", text], env=environment(), stdout=subprocess.PIPE)
    files = [Path(file) for file in ran.stdout.decode().split()]
    builtins = [file for file in files if file.name.startswith("libnvrtc-builtins")]
    [library] = [file for file in files if file not in builtins]
    assert [file.parent for file in builtins] == [library.parent]


@pytest.mark.parametrize("part", ["/*", 'R"(', '"'])
def test_texts_that_nothing_closes_have_an_outline(part):
    """Each is one token up to the end; that takes no time that grows with its square."""
    text = f"int before; {part * 100_000}"
    assert [item.kind for item in Outline(text).items][0] == "simple"
    assert not Includes(f"#pragma once\n{text}", Path("kernel.cu"), "kernel.cu", []).missing


@pytest.mark.parametrize("has_host_code", [False, True])
def test_warnings_of_a_long_line(nvrtc, has_host_code):
    """A compiler prints the line with each, which took minutes here."""
    main = "int main() {}" * has_host_code
    number = int(np.random.default_rng().integers(1, 2**30))  # not in the cache
    text = f"{main} __global__ void k(int *x) {{ {f'{number};' * 40_000} *x = 1; }}"
    began = time.monotonic()
    assert smemkern.Kernel(text, "k").name
    with pytest.raises(smemkern.CompileError, match="comment unclosed|unterminated comment"):
        smemkern.Kernel(f"{main} {'/*' * 200_000}")
    assert time.monotonic() - began < 20


def test_kernels_of_libraries_alone(tmp_path):
    """A program that only calls CUB or Thrust: their kernels are named without their arguments."""
    one = "template <typename T> __global__ void reduce(T *x) { *x = 1; }"
    instances = "".join(f"template __global__ void reduce<{t}>({t} *);" for t in ("int", "float"))
    source = f"namespace cub {{ namespace detail {{ {one} {instances} }} }}"
    with pytest.raises(
        ValueError, match=r"no kernel of its own, and 2 of the .* includes: cub::detail::reduce$"
    ):
        smemkern.Kernel(source)
    mine = smemkern.Kernel(source + "__global__ void mine() {}")
    assert "mine" in mine.name
