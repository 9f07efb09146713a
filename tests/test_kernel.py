"""Kernel: the user's own code, from PTX and from CUDA C++."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from checks import environment

AXPY = """
// a comment before the version
.version 7.0
.target sm_80
.address_size 64

.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    .reg .pred %p;
    .reg .f32 %f<4>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r2, %r3, %r4;
    setp.ge.s32 %p, %r2, %r1;
    @%p bra DONE;
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mul.wide.s32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    st.global.f32 [%rd5], %f3;
DONE:
    ret;
}
"""

# Stores its argument, of a type that each test fills in.
STORE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 y, .param .{type} value)
{{
    .reg .b64 %rd<2>;
    .reg .{type} %v;
    ld.param.u64 %rd1, [y];
    ld.param.{type} %v, [value];
    cvta.to.global.u64 %rd1, %rd1;
    st.global.{type} [%rd1], %v;
    ret;
}}
"""


@pytest.fixture(scope="module")
def axpy():
    return smemkern.Kernel(AXPY, "axpy")


def test_ptx(axpy, device, rng):
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    before = x.copy(), y.copy()
    assert axpy(8, 128, x, y, 2.5, 1000, device=device) is None
    fused = (2.5 * before[0].astype(np.float64) + before[1]).astype(np.float32)
    assert np.array_equal(y, fused)
    assert np.array_equal(x, before[0])


def test_read_only_arrays_are_inputs(axpy, device):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    x.flags.writeable = False
    axpy(1, 64, x, y, 1.0, 64, device=device)
    assert np.all(y == 1)


def test_writing_to_a_read_only_array_does_not_reach_it(axpy, device):
    y = np.zeros(64, np.float32)
    y.flags.writeable = False
    try:
        axpy(1, 64, np.ones(64, np.float32), y, 1.0, 64, device=device)
    except smemkern.LaunchError:
        assert device == "emu"
    assert np.all(y == 0)


def test_two_views_of_one_memory(axpy, device):
    memory = np.arange(96, dtype=np.float32)
    axpy(1, 64, memory[:64], memory[32:], 10.0, 64, device=device)
    index = np.arange(96)
    # Both warps read before the other's write, or after it: only the first 32 sums are certain.
    assert np.array_equal(memory[:32], index[:32])
    assert np.array_equal(memory[32:64], index[32:64] + 10 * index[:32])


def test_one_array_twice(axpy, device):
    x = np.arange(64, dtype=np.float32)
    axpy(1, 64, x, x, 1.0, 64, device=device)
    assert np.array_equal(x, 2 * np.arange(64))


def test_empty_array(axpy, device):
    axpy(1, 32, np.empty(0, np.float32), np.empty(0, np.float32), 1.0, 0, device=device)


@pytest.mark.parametrize(
    ("kind", "dtype", "values"),
    [
        ("u8", "u1", [0, 255, np.uint8(7)]),
        ("s16", "i2", [-32768, 32767]),
        ("u32", "u4", [0, 2**32 - 1, True]),
        ("s32", "i4", [-(2**31), 2**31 - 1, np.int32(5), np.uint32(6)]),
        ("u64", "u8", [0, 2**64 - 1]),
        ("s64", "i8", [-(2**63), 2**63 - 1]),
        ("f32", "f4", [1, 0.1, np.float32(0.1), float("inf"), True]),
        ("f64", "f8", [1, 0.1, np.float64(0.1)]),
        ("b32", "f4", [0.5, np.float32(0.1)]),
        ("b32", "u4", [7, np.uint32(7)]),
        ("b16", "f2", [np.float16(0.1)]),
        ("u8", "?", [True, np.True_]),
        ("u64", "u8", [np.uint64(2**63)]),
    ],
)
def test_scalars(kind, dtype, values, device):
    kernel = smemkern.Kernel(STORE.format(type=kind), "store")
    for value in values:
        y = np.zeros(1, dtype)
        kernel(1, 1, y, value, device=device)
        assert y[0] == np.array(value).astype(dtype)


def test_null_pointer(device):
    kernel = smemkern.Kernel(STORE.format(type="u64"), "store")
    y = np.ones(1, "u8")
    kernel(1, 1, y, None, device=device)
    assert y[0] == 0


@pytest.mark.parametrize(
    ("kind", "value", "exception"),
    [
        ("u8", 256, OverflowError),
        ("s16", -32769, OverflowError),
        ("u32", 2**32, OverflowError),
        ("u64", 2**64, OverflowError),
        ("s64", -(2**63) - 1, OverflowError),
        ("u32", 1.5, TypeError),
        ("f32", "1", TypeError),
        ("f32", None, TypeError),
        ("f32", 1j, TypeError),
        ("u32", np.zeros(1), TypeError),
        ("f64", np.zeros(1), TypeError),
        ("u64", b"1234", ValueError),
        ("f32", 1e39, OverflowError),
        ("f32", np.float64(1), TypeError),
        ("f32", np.float16(1), TypeError),
        ("f32", np.int32(1), TypeError),
        ("s32", np.int64(1), TypeError),
        ("s32", np.float32(1), TypeError),
        ("u32", None, TypeError),
        ("f64", None, TypeError),
        ("u64", "1", TypeError),
        ("u64", [1], TypeError),
        ("b16", 1.0, TypeError),
    ],
)
def test_scalars_that_do_not_fit(kind, value, exception):
    kernel = smemkern.Kernel(STORE.format(type=kind), "store")
    with pytest.raises(exception, match="argument 1"):
        kernel(1, 1, np.zeros(1), value, device="emu")


def test_wrong_calls(axpy):
    x, y = np.ones((2, 64), np.float32)
    for args, exception, message in [
        ((), TypeError, r"\(grid, block, \*args\)"),
        ((1, 64), TypeError, "takes 4 arguments but 0"),
        ((1, 64, x, y, 1.0, 64, 3), TypeError, "takes 4 arguments but 5"),
        ((0, 64, x, y, 1.0, 64), ValueError, r"grid\.x = 0 is not within 1\.\.2147483647"),
        ((1, (8, 8, 65), x, y, 1.0, 64), ValueError, r"block\.z = 65 is not within 1\.\.64"),
        ((1, (32, 33), x, y, 1.0, 64), ValueError, "at most 1024 threads, not 1056"),
        (((1, 2, 3, 4), 64, x, y, 1.0, 64), ValueError, "1 to 3"),
        ((1.5, 64, x, y, 1.0, 64), TypeError, "float"),
        ((1, 64, x[::2], y, 1.0, 64), ValueError, "not contiguous.*ascontiguousarray"),
        ((1, 64, x.astype(">f4"), y, 1.0, 64), TypeError, ">f4.*native byte order"),
        ((1, 64, x.astype(object), y, 1.0, 64), TypeError, "object"),
    ]:
        with pytest.raises(exception, match=message):
            axpy(*args, device="emu")
    with pytest.raises(ValueError, match="shared_bytes must not be negative"):
        axpy(1, 64, x, y, 1.0, 64, shared_bytes=-1)
    with pytest.raises(ValueError, match="device 'emu' has none"):
        axpy(1, 64, x, y, 1.0, 64, stream=1, device="emu")


def test_no_such_entry():
    with pytest.raises(ValueError, match="no kernel 'saxpy'; it has: axpy"):
        smemkern.Kernel(AXPY, "saxpy")
    assert smemkern.Kernel(AXPY, None).name == "axpy"


HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"


def test_entries_are_listed():
    """Those with a body, as many as fit, and how many more there are."""
    others = ".func helper() { ret; }\n.entry declared();\n"
    text = HEADER + others + "".join(f".entry k{n}() {{ ret; }}\n" for n in range(3))
    with pytest.raises(ValueError, match=r"no kernel 'helper'; it has: k0, k1, k2$"):
        smemkern.Kernel(text, "helper")
    with pytest.raises(ValueError, match=r"no kernel 'declared'; it has: k0, k1, k2$"):
        smemkern.Kernel(text, "declared")
    with pytest.raises(ValueError, match="several kernels; name one of: k0, k1, k2$"):
        smemkern.Kernel(text, None)
    names = [f"{'long' * 24}_{n:03}" for n in range(100)]
    text = HEADER + "".join(f".entry {name}() {{ ret; }}\n" for name in names)
    with pytest.raises(ValueError, match=r" and \d+ more$") as error:
        smemkern.Kernel(text, "none")
    listed = str(error.value).partition("it has: ")[2].split(", ")
    assert listed[:-1] == names[: len(listed) - 1] and len(listed) > 15
    assert listed[-1] == f"and {100 - len(listed) + 1} more"


def test_options_are_not_for_ptx():
    with pytest.raises(ValueError, match="PTX already"):
        smemkern.Kernel(AXPY, "axpy", ("-G",))


def test_text_that_is_not_well_formed():
    with pytest.raises(
        smemkern.KernelImageError,
        match=r"PTX line 3: expected '\.param', '\.reg' or '\)', found '{'",
    ):
        smemkern.Kernel(".version 7.0\n.target sm_80\n.visible .entry k( {", "k")


def test_access_outside_every_buffer_is_named(axpy):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(smemkern.LaunchError, match="axpy"):
        axpy(64, 128, x, y, 1.0, 64 * 128, device="emu")
    assert np.all(y == 0), "nothing partial is written"


def test_unknown_instruction_is_named():
    ptx = AXPY.replace("fma.rn.f32 %f3, %f1, %f2, %f3;", "frobnicate.f32 %f3, %f1;")
    kernel = smemkern.Kernel(ptx, "axpy")
    x, y = np.ones((2, 64), np.float32)
    with pytest.raises(smemkern.UnsupportedInstructionError, match=r"frobnicate\.f32"):
        kernel(1, 64, x, y, 1.0, 64, device="emu")


def test_repr_is_as_one_writes_it(nvrtc):
    source = "template <int N> __global__ void add(float *x) { x[threadIdx.x] += N; }"
    kernel = smemkern.Kernel(source, "add<3>")
    assert repr(kernel) == "<smemkern.Kernel add<3> with 1 parameter>"


def test_repr_and_attributes(axpy):
    assert repr(axpy) == "<smemkern.Kernel axpy with 4 parameters>"

    assert axpy.ptx == AXPY
    assert axpy.shared_bytes == 0
    with pytest.raises(AttributeError, match="not writable"):
        axpy.name = "other"
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (smemkern.Kernel,), {})


# ---- CUDA C++


REVERSE = """
extern "C" __global__ void reverse(const float *x, float *y, int n)
{
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x] = x[i];
    __syncthreads();
    if (i < n) y[n - 1 - i] = SCALE * tile[threadIdx.x];
}
"""


def test_cuda_source(device, rng, nvrtc):
    kernel = smemkern.Kernel(REVERSE, "reverse", ("-DSCALE=3",))
    assert ".entry reverse" in kernel.ptx
    x = rng.standard_normal(1000).astype(np.float32)
    y = np.empty_like(x)
    kernel((4, 1, 1), (256,), x, y, 1000, shared_bytes=1024, device=device)
    assert np.array_equal(y, np.float32(3) * x[::-1])


def test_structs(device, nvrtc):
    source = """
    struct pair { float a; double b[2]; char c; };
    extern "C" __global__ void unpack(double *y, pair p) { y[0] = p.a; y[1] = p.b[1]; y[2] = p.c; }
    """
    dtype = np.dtype([("a", "f4"), ("b", "f8", 2), ("c", "i1")], align=True)
    value = np.array((1.5, (2.5, 3.5), -4), dtype)[()]
    kernel = smemkern.Kernel(source, "unpack")
    for argument in (value, value.tobytes(), np.array(value), np.array([value])):
        y = np.zeros(3)
        kernel(1, 1, y, argument, device=device)
        assert np.array_equal(y, [1.5, 3.5, -4])
    with pytest.raises(
        TypeError, match=r"a struct of 32 bytes; pass a tuple of its members, or bytes"
    ):
        kernel(1, 1, np.zeros(3), 1.0, device=device)
    with pytest.raises(ValueError, match="has 3 bytes, the kernel's parameter has 32"):
        kernel(1, 1, np.zeros(3), b"abc", device=device)
    with pytest.raises(TypeError, match="array of 24 bytes.*struct of 32 bytes.*by value"):
        kernel(1, 1, np.zeros(3), np.zeros(3), device=device)
    with pytest.raises(ValueError, match="not contiguous"):
        kernel(1, 1, np.zeros(3), np.zeros(8)[::2], device=device)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("float2", [3 - 4j, np.complex64(3 - 4j), np.array([3, -4], "f4")]),
        ("double2", [3 - 4j, np.complex128(3 - 4j)]),
    ],
)
def test_complex_numbers(kind, values, device, nvrtc):
    kernel = smemkern.Kernel(
        f"__global__ void parts(double *y, {kind} z) {{ y[0] = z.x; y[1] = z.y; }}", "parts"
    )
    for value in values:
        y = np.zeros(2)
        kernel(1, 1, y, value, device=device)
        assert np.array_equal(y, [3, -4])
    if kind == "float2":
        with pytest.raises(OverflowError, match="argument 1"):
            kernel(1, 1, y, 1e300j, device=device)
    with pytest.raises(TypeError, match="argument 0"):
        kernel(1, 1, 1j, 1j, device=device)


# ---- names


NAMES = """
template <typename T, int N> __global__ void fill(T *y) { y[threadIdx.x] = N; }
namespace inner { __global__ void plain(float *y) { *y = 3; } }
extern "C" __global__ void c(float *y) { *y = 4; }
__device__ void helper(float *y) {}
"""


@pytest.mark.parametrize(
    ("name", "entry", "value"),
    [
        ("fill<float, 16>", "_Z4fillIfLi16EEvPT_", 16),
        ("inner::plain", "_ZN5inner5plainEPf", 3),
        ("_ZN5inner5plainEPf", "_ZN5inner5plainEPf", 3),
        ("c", "c", 4),
    ],
)
def test_names(name, entry, value, device, nvrtc):
    kernel = smemkern.Kernel(NAMES, name)
    assert kernel.name == entry
    y = np.zeros(1, "f4")
    kernel(1, 1, y, device=device)
    assert y[0] == value


@pytest.mark.parametrize("name", ["plain", "fill<float>", "helper", "_Z1xv", None])
def test_names_that_are_no_kernel(name, nvrtc):
    with pytest.raises(ValueError, match="kernel"):
        smemkern.Kernel(NAMES, name)


def test_only_entry(nvrtc):
    assert smemkern.Kernel("__global__ void one(float *y) { *y = 1; }", None).name == "_Z3onePf"


@pytest.mark.parametrize("header", ["cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h"])
def test_headers_are_found(header, nvrtc):
    from smemkern._compiler import nvrtc as place

    if not place.include_options():
        pytest.skip("CUDA's headers are not installed")
    source = f"#include <{header}>\n__global__ void k(float *y) {{ *y = 1; }}"
    y = np.zeros(1, "f4")
    smemkern.Kernel(source, "k")(1, 1, y, device="emu")
    assert y[0] == 1


def test_compile_error_has_the_log(nvrtc):
    with pytest.raises(smemkern.CompileError, match="undeclared_name"):
        smemkern.Kernel('extern "C" __global__ void k(float *y) { *y = undeclared_name; }', "k")


def test_options_must_be_strings(nvrtc):
    with pytest.raises(TypeError, match="options must be strings, not int"):
        smemkern.Kernel(REVERSE, "reverse", (3,))


def test_trace_of_a_kernel(nvrtc):
    source = """
    extern "C" __global__ void column(float *y)
    {
        __shared__ float tile[32][32];
        tile[threadIdx.x][0] = threadIdx.x;
        __syncthreads();
        y[threadIdx.x] = tile[threadIdx.x][0];
    }
    """
    kernel = smemkern.Kernel(source, "column")
    assert kernel.shared_bytes == 4096
    y = np.zeros(32, np.float32)
    t = smemkern.trace(kernel, 1, 32, y)
    assert t.result is None
    assert np.array_equal(y, np.arange(32))
    assert [(row.line, row.op, row.requests, row.wavefronts) for row in t.shared] == [
        (5, "store", 1, 32),
        (7, "load", 1, 32),
    ]


def test_no_nvrtc_says_what_to_install():
    code = (
        "import smemkern, smemkern._compiler.nvrtc as place\n"
        "place.library = lambda: None\n"
        "if smemkern._core.config()['nvrtc'][0].isdigit(): print('on the system')\n"
        "else:\n"
        "    try: smemkern.Kernel('__global__ void k() {}', 'k')\n"
        "    except smemkern.CompileError as error: print(error)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    if shown == "on the system\n":
        pytest.skip("NVRTC is installed on the system, where it cannot be hidden")
    assert "pip install '.[nvrtc]' in the clone" in shown


def test_a_source_that_is_missing_is_named(tmp_path):
    code = f"""
import numpy, smemkern
smemkern._core.configure({str(tmp_path)!r}, {str(tmp_path)!r})
try: smemkern.gemm(numpy.ones((4, 4)), numpy.ones((4, 4)), variant="tiled", device="emu")
except FileNotFoundError as error: print(error)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.stdout == f"kernel source gemm_tiled.cu is not in {tmp_path}\n", done.stderr


def test_an_error_of_the_search_for_the_compiler_is_passed_on():
    code = """
import smemkern._compiler.nvrtc as place
def library():
    raise OSError("no disk")
place.library = library
import smemkern
for call in (smemkern._core.config, lambda: smemkern.Kernel("__global__ void k() {}", "k")):
    try: call()
    except OSError as error: print(error)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("no disk\n" * 2, "")


@pytest.mark.parametrize("start", ["-m", "-c", "file"])
def test_no_library_of_the_current_folder(tmp_path, start):
    """Nor headers: it is no place where packages are installed."""
    for name in ("cu13/lib", "cuda_nvrtc/lib", "cuda_runtime/include", "cu13/include"):
        (tmp_path / "nvidia" / name).mkdir(parents=True)
    for name in ("cu13/lib/libnvrtc.so.99", "cuda_nvrtc/lib/libnvrtc.so.98"):
        (tmp_path / "nvidia" / name).write_bytes(b"not a library")
    for name in ("cuda_runtime/include/cuda_fp16.h", "cu13/include/cuda_fp16.h"):
        (tmp_path / "nvidia" / name).touch()
    code = (
        "import smemkern._compiler.nvrtc as place; print(place.library(), place.include_options())"
    )
    (tmp_path / "program.py").write_text(code)
    how = {"-m": ["-m", "program"], "-c": ["-c", code], "file": ["program.py"]}[start]
    given = environment()

    def shown():
        command = [sys.executable, *how]
        done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert str(tmp_path) not in shown()
    given["PYTHONPATH"] += f":{tmp_path}"  # here somebody has said so
    assert str(tmp_path) in shown()


ESCAPE = "a\x1b[31m\x07\x9b1m\x7f\r\x01üÀ~\x80\x9f\xa0.cu"
SHOWN = "a?[31m???1m???üÀ~????\xa0.cu"


def named(name):
    return (
        f'.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "{name}"\n'
        ".visible .entry k(.param .u64 x)\n{\n.reg .b64 %d<2>; .reg .b32 %r<2>;\n"
        ".shared .b32 s[4];\n.loc 1 3 1\nld.param.u64 %d0, [x];\nld.shared.u32 %r0, [s];\n"
        "st.global.u32 [%d0], %r0;\n.loc 1 4 1\n{more}\nret;\n}\n"
    )


def test_names_of_files_are_printable():
    """PTX may come from anybody, and a terminal obeys control characters."""
    x = np.zeros(1, "u4")
    seen = smemkern.trace(
        smemkern.Kernel(named(ESCAPE).replace("{more}", ""), "k"), 1, 1, x, hazards=True
    )
    assert seen.hazards
    assert {row.file for row in seen.shared} == {hazard.file for hazard in seen.hazards} == {SHOWN}
    for text in (repr(seen), str(seen), seen._repr_html_(), *map(str, seen.hazards)):
        assert not set(text) & set("\x1b\x07\x9b\x7f\r\x01")
    unknown = smemkern.Kernel(named(ESCAPE).replace("{more}", "nonsense;"), "k")
    with pytest.raises(smemkern.UnsupportedInstructionError) as caught:
        unknown(1, 1, x, device="emu")
    assert SHOWN in str(caught.value)


def test_messages_are_printable():
    kernel = named("a.cu").replace("{more}", "")
    with pytest.raises(ValueError, match=r"no kernel '\?\[31m'"):
        smemkern.Kernel(kernel, "\x1b[31m")


def test_the_log_of_the_compiler_is_printable(nvrtc):
    source = '#line 7 "a\x1b[31mb.cu"\nextern "C" __global__ void k() { nonsense }'
    with pytest.raises(smemkern.CompileError) as caught:
        smemkern.Kernel(source, "k")
    assert "nonsense" in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))]
)
def test_copies(copied, tmp_path):
    """They need neither the file nor a compiler."""
    file = tmp_path / "axpy.ptx"
    file.write_text(AXPY)
    kernel = smemkern.Kernel(file, "axpy", check=True)
    file.unlink()
    same = copied(kernel)
    assert (same.name, same.ptx, same.source) == (kernel.name, kernel.ptx, kernel.source)
    assert (same.file, same.compiler, same.check) == (str(file), None, True)


def test_a_copy_of_a_compiled_source(nvrtc):
    """Its lines have the source's name, and its arrays are checked by the declaration."""
    source = 'extern "C" __global__ void k(float *x) { x[threadIdx.x / 2] = threadIdx.x; }'
    same = pickle.loads(pickle.dumps(smemkern.Kernel(source, "k", ["-DN=3"])))
    trace = smemkern.trace(same, 1, 32, np.zeros(32, np.float32))
    assert [hazard.line for hazard in trace.hazards] == [1]
    with pytest.raises(TypeError, match="float"):
        same(1, 32, np.zeros(32, np.int32))
