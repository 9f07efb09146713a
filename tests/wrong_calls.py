"""The table of test_wrong_calls.py: calls, and how each is refused."""

import numpy as np
import pytest

import smemkern
from smemkern.banks import Layout, bank, conflict_degree, suggest

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p; .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [x]; ld.param.f32 %f0, [factor]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x; setp.ge.u32 %p, %r1, %r0; @%p ret;
    mul.wide.u32 %rd1, %r1, 4; add.s64 %rd1, %rd0, %rd1;
    ld.global.f32 %f1, [%rd1]; mul.f32 %f1, %f1, %f0; st.global.f32 [%rd1], %f1;
    ret;
}
"""
scale = smemkern.Kernel(PTX, "scale")
forever = smemkern.Kernel(
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry forever(.param .u64 x) {"
    " .reg .b64 %rd<2>; ld.param.u64 %rd0, [x]; st.global.u32 [%rd0], 7; L: bra L; }",
    None,
)
struct = smemkern.Kernel(
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry struct(.param .align 8 .b8 s[24]) { ret; }",
    None,
)


def ones(*shape, dtype="f4"):
    return np.ones(shape, dtype)


def filled(*shape, dtype="f4"):
    """What a call could write; the test looks for arrays of 7s in a call's arguments."""
    return np.full(shape, 7, dtype)


def read_only(*shape):
    array = filled(*shape)
    array.flags.writeable = False
    return array


S = ones(8, 8)
D = ones(8, 8, dtype="f8")
gemm, transpose, probe, trace = smemkern.gemm, smemkern.transpose, smemkern.probe, smemkern.trace
Kernel, bench, occupancy = smemkern.Kernel, smemkern.bench, smemkern.occupancy


def case(name, exception, words, function, *args, **kwargs):
    return pytest.param(exception, words, function, args, kwargs, id=name)


class Liar:
    """An object with the attributes that it is given."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array today")


class Speaks:
    def __init__(self, device, capsule=None):
        self.device, self.capsule = device, capsule

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **_keywords):
        return self.capsule


GEMM = [
    case("1-d shapes", ValueError, "size 5 is different from 4", gemm, ones(4), ones(5)),
    case("batches of 0 and 2", ValueError, "broadcast", gemm, ones(0, 8, 8), ones(2, 8, 8)),
    case("uint8", TypeError, r"a has dtype uint8.*astype", gemm, ones(8, 8, dtype="u1"), S),
    case("structured", TypeError, "are taken", gemm, ones(8, 8, dtype=[("x", "f4")]), S),
    case("string", TypeError, "dtype", gemm, "ab", S),
    case("None", TypeError, "dtype object", gemm, None, S),
    case("dict", TypeError, "dtype object", gemm, {}, S),
    case("ragged list", ValueError, "inhomogeneous", gemm, [[1.0], [1.0, 2.0]], S),
    case("raises on conversion", RuntimeError, "no array today", gemm, NoArray(), S),
    case("out of one dimension", ValueError, r"\(8,\).*\(8, 8\)", gemm, S, S, out=filled(8)),
    case("out of 0 dimensions", ValueError, r"\(\)", gemm, S, S, out=np.array(7.0, "f4")),
    case("out of a batch", ValueError, r"\(3, 8, 8\)", gemm, S, S, out=filled(3, 8, 8)),
    case("out uint8", TypeError, "uint8.*float32", gemm, S, S, out=filled(8, 8, dtype="u1")),
    case("out int32", TypeError, "int32", gemm, S, S, out=filled(8, 8, dtype="i4")),
    case("out bytes", TypeError, "ndarray, not bytes", gemm, S, S, out=bytes(256)),
    case("out a scalar", TypeError, "ndarray, not numpy.float32", gemm, S, S, out=np.float32(7)),
    case("out read-only", ValueError, "out is read-only", gemm, S, S, out=read_only(8, 8)),
    case("beta without out", ValueError, "pass out=", gemm, S, S, beta=0.5),
    case("beta NaN without out", ValueError, "pass out=", gemm, S, S, beta=float("nan")),
    case("alpha a list", TypeError, "alpha.*list", gemm, S, S, alpha=[1.0]),
    case("alpha huge", OverflowError, "too large", gemm, S, S, alpha=10**400),
    case("beta bytes", TypeError, "beta must be a real number", gemm, S, S, beta=b"1"),
    case("accuracy unknown", ValueError, "'tf32' or 'tf32-norm'", gemm, S, S, accuracy="x"),
    case("accuracy a number", TypeError, "accuracy must be", gemm, S, S, accuracy=3),
    case("device empty", ValueError, "not ''", gemm, S, S, device=""),
    case("device Emu", ValueError, "not 'Emu'", gemm, S, S, device="Emu"),
    case("device negative", ValueError, "'cuda:-1'", gemm, S, S, device="cuda:-1"),
    case(
        "device of 10 digits", ValueError, "cuda:1234567890", gemm, S, S, device="cuda:1234567890"
    ),
    case("device a surrogate", UnicodeError, "surrogates", gemm, S, S, device="\ud800"),
    case("device with NUL", ValueError, "null character", gemm, S, S, device="emu\0x"),
    case("stream on emu", ValueError, "'emu' has none", gemm, S, S, device="emu", stream=5),
    case("stream a string", TypeError, "stream must be None", gemm, S, S, stream="5"),
    case(
        "stream too large",
        OverflowError,
        "not the address of a CUDA stream",
        gemm,
        S,
        S,
        stream=1 << 80,
        device="emu",
    ),
    case(
        "stream protocol lies",
        TypeError,
        "__cuda_stream__",
        gemm,
        S,
        S,
        stream=Liar(__cuda_stream__=3),
    ),
    case("devices empty", ValueError, "1 to .* GPUs", gemm, S, S, devices=[]),
    case("devices a string", ValueError, "devices must be", gemm, S, S, devices="cuda"),
    case("devices emu", ValueError, "devices must be", gemm, S, S, devices=["emu"]),
    case("devices negative", ValueError, "devices must be", gemm, S, S, devices=[-1]),
    case("devices huge", ValueError, "devices must be", gemm, S, S, devices=[1 << 70]),
    case("devices 2**32", ValueError, "devices must be", gemm, S, S, devices=[1 << 32]),
    case("devices too many", ValueError, "devices must be", gemm, S, S, devices=[0] * 1000),
    case("devices beside device", ValueError, "devices", gemm, S, S, devices=[0], device="emu"),
    case("max_memory 0", ValueError, "above 0", gemm, S, S, max_memory=0),
    case("max_memory negative", ValueError, "above 0, or None, not -1", gemm, S, S, max_memory=-1),
    case("max_memory a float", TypeError, "integer", gemm, S, S, max_memory=1e9),
    case("progress a number", TypeError, "progress must be a bool", gemm, S, S, progress=3),
    case("split on a row without", ValueError, "split", gemm, S, S, variant="naive", split=2),
    case("tile negative", ValueError, r"4\.\.32", gemm, S, S, variant="tiled", tile=-5),
    case("tile None", TypeError, "must be an integer", gemm, S, S, variant="tiled", tile=None),
    case("variant empty", ValueError, "no variant ''", gemm, S, S, variant=""),
    case("variant bytes", TypeError, "must be a string", gemm, S, S, variant=b"tiled"),
    case("variant a surrogate", UnicodeError, "surrogates", gemm, S, S, variant="\udfff"),
    case(
        *("variant of another op", ValueError, "no variant 'sector_aligned'", gemm, S, S),
        variant="sector_aligned",
    ),
    case("dtype of another variant", TypeError, "float64", gemm, D, D, variant="tf32"),
    case("keyword with NUL", ValueError, "null character", gemm, S, S, **{"a\0b": 1}),
]

TRANSPOSE = [
    case("12 bytes", TypeError, "1, 2, 4, 8 or 16 bytes", transpose, ones(4, 4, dtype="S12")),
    case("out too small", ValueError, r"\(3, 4\)", transpose, ones(3, 4), out=filled(3, 4)),
    case("out of another dtype", TypeError, "int32", transpose, S, out=filled(8, 8, dtype="i4")),
    case("out read-only", ValueError, "read-only", transpose, ones(3, 4), out=read_only(4, 3)),
    case("out a list", TypeError, "not list", transpose, S, out=[[0.0] * 8] * 8),
    case("accuracy", TypeError, "'accuracy'", transpose, S, accuracy=1),
    case("devices", TypeError, "devices", transpose, S, devices=[0]),
    case("two arrays", TypeError, "1 positional argument but 2", transpose, S, S),
    case("keyword twice", TypeError, "multiple values", transpose, S, a=S),
    case("unknown parameter", ValueError, "no parameter", transpose, S, variant="tiled", tile=3),
    case("scalar", ValueError, "0 dimensions", transpose, 1.5),
    case("bytes", TypeError, "1, 2, 4, 8 or 16 bytes", transpose, b"abc"),
    case(
        "64 dimensions and a bad type",
        TypeError,
        "dtype object",
        transpose,
        ones(*[1] * 60, dtype="O"),
    ),
]

PROBE = [
    case("empty", ValueError, "reads .* elements", probe, ones(0), variant="coalescing"),
    case("float16", TypeError, "astype", probe, ones(4096, dtype="f2")),
    case("parameter", ValueError, "legal", probe, ones(4096), stride=-1),
    case("unknown parameter", ValueError, "no parameter", probe, ones(4096), step=1),
    case("device", ValueError, "'emu', 'cuda'", probe, ones(4096), device="tpu"),
    case("variant", ValueError, "there are: stride_read", probe, ones(4096), variant="tiled"),
    case("a scalar", ValueError, "dimensions", probe, np.float32(3)),
]

KERNEL = [
    case("no entry", ValueError, "no kernel 'none'; it has: scale", Kernel, PTX, "none"),
    case("source not text", TypeError, "must be a str or a path", Kernel, 3, "x"),
    case(
        "source bytes",
        TypeError,
        "must be a str or a path, not bytes",
        Kernel,
        PTX.encode(),
        "scale",
    ),
    case("no source", TypeError, "source_or_ptx", Kernel),
    case("name a number", TypeError, "must be str or None", Kernel, PTX, 3),
    case("source with NUL", ValueError, "null", Kernel, PTX + "\0", "scale"),
    case(
        "empty PTX",
        smemkern.KernelImageError,
        "expected '.target'",
        Kernel,
        ".version 8.0",
        None,
    ),
    case("PTX cut off", smemkern.KernelImageError, "line", Kernel, PTX[:300], "scale"),
    case("options for PTX", ValueError, "options are for CUDA", Kernel, PTX, None, ("-DX=1",)),
    case("options a number", TypeError, "not iterable", Kernel, "int x;", None, 3),
    case("options of numbers", TypeError, "options must be strings", Kernel, "int x;", None, [3]),
    case("no grid", TypeError, "grid, block", scale),
    case("no block", TypeError, "grid, block", scale, 1),
    case("grid 0", ValueError, r"grid.x = 0", scale, 0, 32, filled(32), 1.0, 32),
    case("grid negative", ValueError, r"grid.x = -1", scale, -1, 32, filled(32), 1.0, 32),
    case("grid of 4", ValueError, "tuple of 1 to 3", scale, (1,) * 4, 1, filled(32), 1.0, 32),
    case("grid empty", ValueError, "tuple of 1 to 3", scale, (), 1, filled(32), 1.0, 32),
    case("grid a float", TypeError, "integer", scale, 1.5, 1, filled(32), 1.0, 32),
    case("grid too large", ValueError, r"grid.y = 65536", scale, (1, 65536), 1, filled(8), 1.0, 8),
    case("grid of 80 bits", ValueError, "not within", scale, 1 << 80, 1, filled(8), 1.0, 8),
    case("block of 1025", ValueError, "1024", scale, 1, 1025, filled(32), 1.0, 32),
    case("block of 2048", ValueError, "at most 1024", scale, 1, (64, 32), filled(8), 1.0, 8),
    case("block z of 65", ValueError, "block.z = 65", scale, 1, (1, 1, 65), filled(8), 1.0, 8),
    case("too few arguments", TypeError, "takes 3 arguments but 2", scale, 1, 1, filled(8), 1.0),
    case("too many", TypeError, "takes 3 arguments but 4", scale, 1, 1, filled(8), 1.0, 8, 9),
    case("a float for n", TypeError, "pass an int", scale, 1, 1, filled(8), 1.0, 8.0),
    case("n too large", OverflowError, "32 bits", scale, 1, 1, filled(8), 1.0, 1 << 33),
    case("n too negative", OverflowError, "32 bits", scale, 1, 1, filled(8), 1.0, -(1 << 31) - 1),
    case("float too large", OverflowError, "4 bytes", scale, 1, 1, filled(8), 1e300, 8),
    case("array for n", TypeError, "not a pointer", scale, 1, 1, filled(8), 1.0, filled(1)),
    case("int64 for n", TypeError, "argument 2", scale, 1, 1, filled(8), 1.0, np.int64(8)),
    case("float64 for float", TypeError, "argument 1", scale, 1, 1, filled(8), np.float64(1), 8),
    case("complex", TypeError, "complex", scale, 1, 1, filled(8), 1j, 8),
    case("a string", TypeError, "argument 1", scale, 1, 1, filled(8), "1", 8),
    case("a list", TypeError, "argument 0", scale, 1, 1, [1.0], 1.0, 8),
    case("strided", ValueError, "not contiguous", scale, 1, 1, filled(16)[::2], 1.0, 8),
    case("objects", TypeError, "plain numbers", scale, 1, 1, ones(8, dtype="O"), 1.0, 8),
    case("swapped bytes", TypeError, "native", scale, 1, 1, ones(8, dtype=">f4"), 1.0, 8),
    case("struct as int", TypeError, "struct", struct, 1, 1, 3),
    case("struct of 23 bytes", ValueError, "23 bytes.*24", struct, 1, 1, bytes(23)),
    case("struct an array", TypeError, "struct of 24", struct, 1, 1, filled(7)),
    case(
        "shared negative", ValueError, "negative", scale, 1, 1, filled(8), 1.0, 8, shared_bytes=-1
    ),
    case(
        "shared too large",
        smemkern.LaunchError,
        "at most 232448",
        *(scale, 1, 1, filled(8), 1.0, 8),
        shared_bytes=1 << 40,
        device="emu",
    ),
    case("keyword", TypeError, "threads", scale, 1, 1, filled(8), 1.0, 8, threads=2),
    case(
        "past the end",
        smemkern.LaunchError,
        "out of bounds.*past the end of a buffer",
        *(scale, 1, 32, filled(31), 2.0, 32),
        device="emu",
    ),
    case(
        "written read-only",
        smemkern.LaunchError,
        "read-only",
        *(scale, 1, 8, read_only(8), 2.0, 8),
        device="emu",
    ),
    case(
        "null pointer",
        smemkern.LaunchError,
        "null pointer",
        *(scale, 1, 8, None, 2.0, 8),
        device="emu",
    ),
    case(
        "no end",
        smemkern.LaunchError,
        "max_instructions = 10000",
        *(forever, 1, 1, filled(8)),
        max_instructions=10_000,
        device="emu",
    ),
    case(
        "limit 0",
        ValueError,
        "max_instructions must be at least 1",
        *(forever, 1, 1, filled(8)),
        max_instructions=0,
        device="emu",
    ),
    case(
        "limit a float",
        TypeError,
        "integer",
        *(forever, 1, 1, filled(8)),
        max_instructions=1e6,
        device="emu",
    ),
]

LIARS = [
    case(
        "interface no dict", TypeError, "must be a dict", gemm, Liar(__cuda_array_interface__=3), S
    ),
    case("interface empty", TypeError, "data", gemm, Liar(__cuda_array_interface__={}), S),
    case("dlpack no tuple", TypeError, "pair of ints", gemm, Speaks(3), S),
    case("dlpack of strings", TypeError, "as an integer", gemm, Speaks(("a", "b")), S),
    case(
        "dlpack device raises",
        RuntimeError,
        "device is down",
        gemm,
        Speaks(RuntimeError("device is down")),
        S,
    ),
    case("dlpack on a TPU", ValueError, "device type 99", gemm, Speaks((99, 0)), S),
    case("dlpack no capsule", TypeError, "dtype object", gemm, Speaks((1, 0), 5), S),
    case(
        "kernel: interface empty",
        TypeError,
        "data",
        scale,
        1,
        1,
        Liar(__cuda_array_interface__={}),
        1.0,
        8,
    ),
    case(
        "kernel: dlpack no capsule",
        ValueError,
        "PyCapsule",
        scale,
        1,
        1,
        Speaks((1, 0), None),
        1.0,
        8,
    ),
    case(
        "exchange no capsule",
        ValueError,
        "PyCapsule",
        gemm,
        type("X", (), {"__dlpack_c_exchange_api__": 3})(),
        S,
    ),
]

MODELS = [
    case("trace nothing", ValueError, "matmul", trace, "matmul", S, S),
    case("trace a number", TypeError, "expected a smemkern.Kernel, .* found int", trace, 3),
    case(
        "trace on a GPU",
        ValueError,
        "counts on the emulator",
        trace,
        "gemm",
        S,
        S,
        device="cuda",
    ),
    case(
        "trace blocks outside",
        ValueError,
        "counted from 0",
        trace,
        "gemm",
        S,
        S,
        blocks=[10**9],
    ),
    case(
        "trace blocks of floats",
        TypeError,
        "blocks should be an int",
        trace,
        "gemm",
        S,
        S,
        blocks=[1.5],
    ),
    case("layout of 0 rows", ValueError, "rows", Layout, 0, 32),
    case("layout negative", ValueError, "pad", Layout, 8, 8, pad=-1),
    case("layout itemsize 3", ValueError, "itemsize", Layout, 8, 8, itemsize=3),
    case("layout swizzle", ValueError, "swizzle", Layout, 8, 8, swizzle="spiral"),
    case("layout of floats", ValueError, "integer", Layout, 8.5, 8),
    case("access unknown", ValueError, "diagonally", Layout(32, 32).cost, "diagonally"),
    case("suggest nothing", ValueError, "accesses is empty", suggest, 32, 32, 4, []),
    case("suggest 0 columns", ValueError, "cols", suggest, 32, 0, 4, ["row"]),
    case("bank of an arch", ValueError, "sm_3x", bank, 0, arch="sm_3x"),
    case("degree of width 3", ValueError, "width", conflict_degree, 1, width=3),
    case("degree of 0 banks", ValueError, "banks", conflict_degree, 1, banks=0),
    case("occupancy of 0 threads", ValueError, "threads", occupancy, 0, 32),
    case("occupancy negative", ValueError, "registers", occupancy, 128, -1),
    case("occupancy arch", ValueError, "sm_99", occupancy, 128, 32, arch="sm_99"),
    case("occupancy strings", TypeError, "threads should be", occupancy, "many", 32),
    case("occupancy carveout", ValueError, "carveout", occupancy, 128, 32, carveout=-1),
    case("bench op", ValueError, "op", bench, op="matmul", device="emu"),
    case(
        "bench variant",
        ValueError,
        "nothing",
        bench,
        [(64, 64, 64)],
        variants=["nothing"],
        device="emu",
    ),
    case("bench seconds", ValueError, "seconds", bench, [(64, 64, 64)], seconds=-1, device="emu"),
    case("bench shapes", ValueError, "shape", bench, [(64,)], device="emu"),
    case("choices accuracy", ValueError, "accuracy", smemkern.choices, 64, 64, 64, accuracy="half"),
    case("choices shape", ValueError, "m should not be negative", smemkern.choices, -1, 64, 64),
    case("variants op", ValueError, "matmul", smemkern.variants, "matmul"),
    case("choices dtype", ValueError, "dtype", smemkern.choices, 64, 64, 64, dtype="int8"),
    case("choices of strings", TypeError, "not supported between", smemkern.choices, "a", 64, 64),
    case(
        "bench dtype",
        ValueError,
        "not 'int3'",
        bench,
        [(64, 64, 64)],
        dtypes=["int3"],
        device="emu",
    ),
    case("bench device", smemkern.NoDeviceError, "tpu", bench, [(64, 64, 64)], device="tpu"),
    case(
        "roofline shape", ValueError, "shape of gemm", smemkern.roofline, "gemm", (64,), "float32"
    ),
    case(
        "roofline dtype",
        ValueError,
        "int3",
        smemkern.roofline,
        "gemm",
        (64, 64, 64),
        "int3",
    ),
    case(
        "roofline op",
        ValueError,
        "should be 'gemm'",
        smemkern.roofline,
        "matmul",
        (64, 64, 64),
        "float32",
    ),
    case("sectors width", ValueError, "width", smemkern.coalescing.sectors, np.arange(32), width=3),
    case("sectors of 33 lanes", ValueError, "32", smemkern.coalescing.sectors, np.arange(33)),
    case(
        "tensor map of a list", TypeError, "must be numpy.ndarray", smemkern.TensorMap, [1.0], (1,)
    ),
    case("tensor map box", ValueError, "box", smemkern.TensorMap, ones(64, 64), (0, 8)),
    case(
        "tensor map rank", ValueError, "box has 1 elements", smemkern.TensorMap, ones(64, 64), (8,)
    ),
    case(
        "tensor map swizzle",
        ValueError,
        "swizzle",
        smemkern.TensorMap,
        ones(64, 64),
        (8, 8),
        swizzle="x",
    ),
    case("texture of a list", TypeError, "must be numpy.ndarray", smemkern.Texture, [1.0]),
    case("texture of doubles", TypeError, "not of float64", smemkern.Texture, np.ones(4)),
    case("texture address", ValueError, "address", smemkern.Texture, ones(4), address=("x",)),
    case("texture border", TypeError, "number", smemkern.Texture, ones(4), border=("x",)),
    case("surface channels", ValueError, "channels", smemkern.Surface, ones(4), channels=3),
    case("textures", TypeError, "textures", scale, 1, 8, ones(8), 1.0, 8, textures={"t": 3}),
    case("empty_cache", ValueError, "'emu', 'cuda'", smemkern.empty_cache, "tpu"),
]

ALL = [*GEMM, *TRANSPOSE, *PROBE, *KERNEL, *LIARS, *MODELS]
