"""smemkern.occupancy against NVIDIA's own calculator, the driver, and figures made by hand."""

import ctypes
import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU

ARCHITECTURES = smemkern.architectures()
LIMITERS = ("registers", "shared memory", "warps", "blocks", "barriers")
UNKNOWN_DEVICE = 2  # cudaOccError
HERE = Path(__file__).parent


def header_folders():
    """Where a cuda_occupancy.h may be: beside nvcc, and in the wheels of the CUDA Toolkit."""
    nvcc = shutil.which("nvcc")
    if nvcc:
        yield Path(nvcc).resolve().parent.parent / "include"
    wheels = importlib.util.find_spec("nvidia")
    for folder in wheels.submodule_search_locations if wheels else ():
        yield from (found.parent for found in Path(folder).rglob("cuda_occupancy.h"))
    yield Path("/usr/local/cuda/include")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = next((f for f in header_folders() if (f / "cuda_occupancy.h").exists()), None)
    compiler = shutil.which("cc") or shutil.which("gcc")
    if folder is None or compiler is None:
        pytest.skip("no cuda_occupancy.h (a part of the CUDA Toolkit) or no C compiler here")
    library = tmp_path_factory.mktemp("occupancy") / "reference.so"
    source = HERE / "occupancy_reference.c"
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", f"-I{folder}", str(source), "-o", str(library)],
        check=True,
    )
    return ctypes.CDLL(str(library)).reference


def run_reference(reference, arch, threads, registers, dynamic, static, carveout, barriers, opt_in):
    n = len(threads)
    blocks, limits = np.empty(n, np.int32), np.empty((n, 5), np.int32)
    allocated, bad = np.empty(n, np.int64), ctypes.c_int(-1)
    major, minor = arch.compute_capability
    columns = [
        *(np.full(n, value, np.int32) for value in (major, minor, arch.threads)),
        *(
            np.full(n, value, np.int64)
            for value in (arch.shared_per_sm, arch.shared_per_block, arch.shared_reserved)
        ),
        *(np.ascontiguousarray(column, np.int32) for column in (threads, registers)),
        *(np.ascontiguousarray(column, np.int64) for column in (dynamic, static)),
        *(np.ascontiguousarray(column, np.int32) for column in (carveout, barriers)),
    ]
    pointers = [c.ctypes.data_as(ctypes.c_void_p) for c in columns]
    outputs = [x.ctypes.data_as(ctypes.c_void_p) for x in (blocks, limits, allocated)]
    status = reference(n, *pointers, int(opt_in), *outputs, ctypes.byref(bad))
    if status == UNKNOWN_DEVICE:
        pytest.skip(f"the cuda_occupancy.h of this toolkit does not know {arch.sm}")
    assert status == 0, f"cuda_occupancy.h refuses kernel {bad.value} on {arch.sm}: error {status}"
    return blocks, limits, allocated


def random_kernels(rng, arch, n):
    """Half of the sizes anywhere, half beside the edges where a rounding shows."""
    edge = np.arange(0, arch.shared_per_sm + 2049, arch.shared_unit)
    dynamic = np.where(
        rng.random(n) < 0.5,
        rng.integers(0, arch.shared_per_sm + 2048, n),
        np.maximum(rng.choice(edge, n) + rng.integers(-1, 2, n), 0),
    )
    dynamic = np.where(rng.random(n) < 0.5, dynamic // rng.integers(1, 33, n), dynamic)
    static = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 48 * 1024, n))
    threads = np.where(rng.random(n) < 0.5, rng.integers(1, 1100, n), 32 * rng.integers(1, 34, n))
    registers = np.where(rng.random(n) < 0.5, rng.integers(0, 256, n), 8 * rng.integers(0, 32, n))
    return threads, registers, dynamic, static, rng.integers(0, 17, n)


def check(reference, rng, arch, n, carveout, opt_in):
    threads, registers, dynamic, static, barriers = random_kernels(rng, arch, n)
    given = np.full(n, -1 if carveout is None else carveout)
    blocks, limits, allocated = run_reference(
        reference, arch, threads, registers, dynamic, static, given, barriers, opt_in
    )
    ours = smemkern.occupancy(
        threads,
        registers,
        dynamic,
        arch.sm,
        static_bytes=static,
        carveout=carveout,
        barriers=barriers,
        opt_in=opt_in,
    )
    np.testing.assert_array_equal(ours.blocks, blocks)
    np.testing.assert_array_equal(ours.shared_bytes, allocated)
    for i, name in enumerate(LIMITERS):
        np.testing.assert_array_equal(ours.limits[name], limits[:, i], err_msg=name)
    assert 0 < np.count_nonzero(blocks) < n
    return n


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda row: row.sm)
def test_equal_to_cuda_occupancy(reference, arch, rng):
    """13 architectures x 30 000: blocks, all limits and the allocated shared memory."""
    done = sum(check(reference, rng, arch, 1000, percent, True) for percent in range(0, 101, 5))
    done += check(reference, rng, arch, 5000, None, True)
    done += check(reference, rng, arch, 4000, None, False)
    assert done == 30_000


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda row: row.sm)
def test_more_registers_than_a_thread_has(reference, arch):
    blocks = smemkern.occupancy(32, np.array([255, 256, 257]), arch=arch.sm).blocks
    assert blocks[0] > 0
    assert blocks[1:].tolist() == [0, 0]


def brute_force(arch, threads, registers, shared):
    """Blocks placed one by one on an SM, from the rule's text."""
    warps = -(-threads // 32)
    a_warp = -(-registers * 32 // 256) * 256
    partitions = [arch.registers // 4] * 4
    # Warps fill whichever partitions have room; only their number matters.
    room = [p // a_warp if a_warp else 10**6 for p in partitions]
    shared_block = -(-(shared + arch.shared_reserved) // arch.shared_unit) * arch.shared_unit
    left_shared, left_warps, blocks = arch.shared_per_sm, arch.warps, 0
    while (
        blocks < arch.blocks
        and left_warps >= warps
        and left_shared >= shared_block
        and sum(room) >= warps
    ):
        for _ in range(warps):
            room[room.index(max(room))] -= 1
        left_warps, left_shared, blocks = left_warps - warps, left_shared - shared_block, blocks + 1
    if shared > arch.shared_per_block or a_warp * -(-warps // 4) * 4 > 65536:
        return 0
    return blocks


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=lambda row: row.sm)
def test_equal_to_placing_blocks(arch, rng):
    for _ in range(300):
        threads = int(rng.integers(1, 1025))
        registers = int(rng.integers(0, 256))
        shared = int(rng.integers(0, arch.shared_per_sm + 1))
        ours = smemkern.occupancy(threads, registers, shared, arch.sm)
        assert ours.blocks == brute_force(arch, threads, registers, shared), (threads, registers)
        assert ours.warps == ours.blocks * -(-threads // 32)
        assert ours.fraction == ours.warps / arch.warps
        assert ours.blocks == ours.limits[ours.limiter] == min(ours.limits.values())


def test_by_hand():
    # 256 threads of 64 registers: 8 warps of 2048; 65536 / 2048 / 8 = 4 blocks.
    o = smemkern.occupancy(256, 64, 0, "sm_90")
    assert (o.blocks, o.warps, o.fraction, o.limiter) == (4, 32, 0.5, "registers")
    assert o.registers == 16384
    # 48 KiB and the driver's 1 KiB: 4 of them in 228 KiB.
    o = smemkern.occupancy(128, 32, 48 * 1024, "sm_90")
    assert (o.blocks, o.limiter, o.shared_bytes) == (4, "shared memory", 49 * 1024)
    assert smemkern.occupancy(1024, 32, 0, "sm_86").limiter == "warps"
    assert smemkern.occupancy(32, 16, 0, "sm_90").limiters == ("blocks",)
    assert smemkern.occupancy(256, 64, 49152, "H200").limiters == ("registers", "shared memory")
    assert smemkern.occupancy(256, 64, 228 * 1024).blocks == 0
    assert smemkern.occupancy(32, 32, barriers=16).limiter == "barriers"


def test_curve():
    threads = np.arange(32, 1025, 32)
    curve = smemkern.occupancy(threads, 40, np.array([[0], [20000]]), "sm_80")
    assert curve.blocks.shape == curve.limiter.shape == curve.fraction.shape == (2, 32)
    for i, shared in enumerate((0, 20000)):
        for j, t in enumerate(threads):
            one = smemkern.occupancy(int(t), 40, shared, "sm_80")
            assert (one.blocks, one.limiter) == (curve.blocks[i, j], curve.limiter[i, j])
            assert type(one.blocks) is int and type(one.limiter) is str
    with pytest.raises(ValueError, match="for arrays"):
        _ = curve.limiters
    assert "arrays of shape (2, 32)" in repr(curve)


@pytest.mark.parametrize(
    "wrong, error, says",
    [
        (dict(threads=0), ValueError, "threads should be at least 1"),
        (dict(threads=1.5), TypeError, "threads should be an integer"),
        (dict(registers=-1), ValueError, "registers should be at least 0"),
        (dict(shared_bytes=-1), ValueError, "shared_bytes"),
        (dict(carveout=228 * 1024 + 1), ValueError, "0..100, or bytes up to 233472"),
        (dict(carveout=-1), ValueError, "0..100"),
        (dict(arch="sm_61"), ValueError, "there are: sm_70"),
        (dict(arch="Riva"), ValueError, "is not known"),
        (dict(arch=9.0), TypeError, "not float"),
    ],
)
def test_refused(wrong, error, says):
    with pytest.raises(error, match=says):
        smemkern.occupancy(**{"threads": 256, "registers": 32, **wrong})


@pytest.mark.parametrize("name", ["sm_90", "sm_90a", "compute_90", "90", 90, "9.0", (9, 0), "h200"])
def test_names_of_an_architecture(name):
    assert smemkern.occupancy(32, 32, arch=name).arch.sm == "sm_90"
    assert smemkern.occupancy(32, 32, arch="sm_101").arch.sm == "sm_110"


def test_table():
    """Combined, per SM and per block, KiB, as the vendor's documents print them."""
    known = {
        "sm_70": (128, 96, 96),
        "sm_75": (96, 64, 64),
        "sm_80": (192, 164, 163),
        "sm_86": (128, 100, 99),
        "sm_89": (128, 100, 99),
        "sm_90": (256, 228, 227),
        "sm_100": (256, 228, 227),
        "sm_120": (128, 100, 99),
    }
    rows = {row.sm: row for row in ARCHITECTURES}
    for sm, kib in known.items():
        row = rows[sm]
        have = (row.l1_and_shared, row.shared_per_sm, row.shared_per_block)
        assert tuple(b // 1024 for b in have) == kib, sm
    assert "228" in repr(ARCHITECTURES)
    for row in ARCHITECTURES:
        assert row.threads == 32 * row.warps and row.source


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_equal_to_the_driver(nvrtc, tmp_path):
    """cuOccupancyMaxActiveBlocksPerMultiprocessor on kernels of many sizes."""
    driver = ctypes.CDLL("libcuda.so.1")
    capability = next(d.compute_capability for d in smemkern.devices() if d.compute_capability)
    arch = next(row for row in ARCHITECTURES if row.compute_capability == capability)

    def call(name, *args):
        status = getattr(driver, name)(*args)
        assert status == 0, (name, status)

    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxPushCurrent_v2", context)
    try:
        for registers in (16, 32, 64, 128, 255):
            source = f"""extern "C" __global__ __launch_bounds__(1024 / {max(registers // 64, 1)})
                void k(float *x) {{ extern __shared__ float s[]; __shared__ float t[100];
                t[threadIdx.x % 100] = x[threadIdx.x]; float sum = 0;
                #pragma unroll
                for (int i = 0; i < {registers}; i++) sum += x[i * 32] * s[i] + t[i % 100];
                __syncthreads(); x[threadIdx.x] = sum + t[(threadIdx.x + 1) % 100]; }}"""
            ptx = smemkern.Kernel(source, "k").ptx.encode()
            image, kernel = ctypes.c_void_p(), ctypes.c_void_p()
            call("cuModuleLoadData", ctypes.byref(image), ptx)
            call("cuModuleGetFunction", ctypes.byref(kernel), image, b"k")
            attribute = {}
            for name, number in (("threads", 0), ("static", 1), ("registers", 4)):
                value = ctypes.c_int()
                call("cuFuncGetAttribute", ctypes.byref(value), number, kernel)
                attribute[name] = value.value
            for dynamic in (0, 1000, 20000, 47000, 100000, arch.shared_per_block - 400):
                if dynamic > arch.shared_per_block - attribute["static"]:
                    continue
                call("cuFuncSetAttribute", kernel, 8, dynamic)
                for threads in range(1, attribute["threads"] + 1, 31):
                    blocks = ctypes.c_int()
                    call(
                        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                        ctypes.byref(blocks),
                        kernel,
                        threads,
                        ctypes.c_size_t(dynamic),
                    )
                    ours = smemkern.occupancy(
                        threads,
                        attribute["registers"],
                        dynamic,
                        arch.sm,
                        static_bytes=attribute["static"],
                    )
                    assert ours.blocks == blocks.value, (threads, dynamic, attribute)
            call("cuModuleUnload", image)
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(context))
        call("cuDevicePrimaryCtxRelease_v2", device)
