"""smemkern.roofline and ceilings: against arithmetic by hand, counts, and measured results."""

import json
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import HAS_GPU
from smemkern._device import ceilings
from smemkern._performance.roofline import traffic_of

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "nvidia-h200.json"
H200 = smemkern.ceilings("H200")
# At their shared-memory roof, and ptxas joins some of their loads, which PTX does not show: they
# may pass the roof that is counted from PTX (docs/models.md).
JOINED = {"conflicted", "double_buffer", "register_tiled"}


def test_gemm_by_hand():
    roof = smemkern.roofline("gemm", (4096, 2048, 1024), "float32", "H200")
    assert roof.flops == 2 * 4096 * 2048 * 1024
    assert roof.bytes == 4 * (4096 * 1024 + 1024 * 2048 + 4096 * 2048)
    assert roof.intensity == roof.flops / roof.bytes
    assert roof.binding == "compute" and roof.attainable == pytest.approx(65.0)
    assert roof.seconds["memory"] == roof.bytes / 4.27e12
    assert roof.unit == "TFLOP/s" and "compute" in repr(roof)


def test_binding_changes_at_the_ridge():
    """Below compute / bandwidth memory binds, and attainable is intensity x bandwidth."""
    ridge = 65.0e12 / 4.27e12
    seen = set()
    for k in (1, 8, 16, 30, 31, 64, 1024):
        roof = smemkern.roofline("gemm", (4096, 4096, k), np.float32, H200)
        assert (roof.binding == "compute") == (roof.intensity >= ridge)
        assert roof.attainable == pytest.approx(min(65.0, roof.intensity * 4.27))
        seen.add(roof.binding)
    assert seen == {"compute", "memory"}


def test_batches_and_types():
    one = smemkern.roofline("gemm", (64, 64, 64), "float32", H200)
    many = smemkern.roofline("gemm", (3, 5, 64, 64, 64), "float32", H200)
    assert (many.flops, many.bytes) == (15 * one.flops, 15 * one.bytes)
    assert smemkern.roofline("gemm", (8192,) * 3, "bfloat16", H200).attainable == 790
    assert smemkern.roofline("gemm", (8192,) * 3, "tf32", H200).attainable == 403
    moved = smemkern.roofline("transpose", (7, 100, 200), "complex128", H200)
    assert (moved.flops, moved.bytes) == (0, 2 * 7 * 100 * 200 * 16)
    assert moved.attainable == 4.27 and moved.unit == "TB/s"


@pytest.mark.parametrize(
    "variant, tile", [("naive", 1), ("coalesced", 1), ("tiled", 32), ("padded", 32)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_textbook_reads(variant, tile, dtype):
    """2 M N K reads of global memory, or 2 M N K / TILE."""
    assert traffic_of("gemm", variant, dtype).reads == 2 / tile


def test_traffic_by_the_kernels_comments():
    # A warp's step of k: two shared reads for 32 multiply-adds, or one of them 32 ways; and the
    # tile's two stores, one wavefront each for 32 x 32 words, used 32 times.
    assert traffic_of("gemm", "tiled", "float32").wavefronts == 2 / 32 + 2 / 32 / 32
    conflicted = traffic_of("gemm", "conflicted", "float32").wavefronts
    assert conflicted == (1 + 32) / 32 + (1 + 32) / 32 / 32
    assert traffic_of("gemm", "naive", "float32").wavefronts == 0
    # Of L1, naive asks for 33 sectors, 4 a clock, coalesced for two requests, one a clock.
    assert traffic_of("gemm", "naive", "float32").l1_clocks == 33 / 4 / 32
    assert traffic_of("gemm", "coalesced", "float32").l1_clocks == 2 / 32
    # 32 wavefronts a warp for 256 multiply-adds a lane, and the stores of both tiles.
    assert (
        32 / (32 * 256) < traffic_of("gemm", "vectorized", "float32").wavefronts < 40 / (32 * 256)
    )
    assert traffic_of("transpose", "tiled", "b32").wavefronts == 33 / 32
    assert traffic_of("transpose", "padded", "b32").wavefronts == 2 / 32


@pytest.mark.parametrize("op, shape", [("gemm", (512, 512, 512)), ("transpose", (512, 512))])
def test_variants(op, shape):
    roof = smemkern.roofline(op, shape, "float32", H200)
    rows = roof.variants
    assert {row.variant for row in rows} <= {v.name for v in smemkern.variants(op)}
    assert {"naive", "tiled", "padded", "swizzle", "vectorized"} <= {row.variant for row in rows}
    for row in rows:
        assert row.seconds[row.binding] == max(row.seconds.values())
        work = roof.flops or roof.bytes
        assert row.attainable == pytest.approx(work / max(row.seconds.values()) / 1e12)
        assert row.attainable <= roof.attainable * (1 + 1e-12)
    assert "binding" in repr(rows)


@pytest.mark.long(instead="the roofs of the tests above")
def test_no_variant_was_measured_above_its_roof():
    """Of the committed results, but for those whose loads ptxas joins."""
    results = json.loads(RESULTS.read_text())
    checked, roofs = set(), {}
    for line in results["gemm"]["lines"]:
        problem = tuple(line["shape"]), line["dtype"]
        if problem not in roofs:
            roofs[problem] = smemkern.roofline("gemm", *problem, H200)
        named = {row.variant: row for row in roofs[problem].variants}
        if line["params"] or line["variant"] not in named or line["variant"] in JOINED:
            continue
        assert line["tflops"] <= named[line["variant"]].attainable, line
        checked.add(line["variant"])
    assert {"naive", "coalesced", "tiled", "padded", "swizzle", "vectorized"} <= checked


def test_conflicted_meets_its_roof():
    """Where conflicts bind, the model is a prediction: within 5 % of what was measured."""
    results = json.loads(RESULTS.read_text())
    for line in results["gemm"]["lines"]:
        if line["variant"] == "conflicted" and not line["params"] and line["shape"] == [4096] * 3:
            roof = smemkern.roofline("gemm", tuple(line["shape"]), line["dtype"], H200)
            row = next(row for row in roof.variants if row.variant == "conflicted")
            assert row.binding == "shared"
            assert line["tflops"] == pytest.approx(row.attainable, rel=0.05)


# ---- the kernels that measure ----


@pytest.mark.parametrize("name, real", [("float32", "float"), ("float64", "double")])
def test_multiply_add(nvrtc, name, real, device):
    out = np.zeros(512, name)
    a, b = out.dtype.type(0.5), out.dtype.type(2)
    ceilings.kernel("multiply_add", real)(2, 256, out, a, b, 3, device=device)
    x = np.arange(512)[:, None] % 256 + np.arange(ceilings.CHAINS)
    np.testing.assert_array_equal(out, (((x / 2 + 2) / 2 + 2) / 2 + 2).sum(1).astype(name))


def test_copy(nvrtc, device, rng):
    source = rng.integers(0, 2**32, 3 * ceilings.COPIED // 4, np.uint32)
    target = np.zeros_like(source)
    ceilings.kernel("copy")(3, 256, target, source, device=device)
    np.testing.assert_array_equal(target, source)


def test_read_shared(nvrtc, device):
    out = np.zeros(512, np.uint32)
    ceilings.kernel("read_shared")(2, 256, out, 5, device=device)
    at = np.arange(256)[:, None] + 256 * np.arange(4)
    once = (at ^ (at + 1) ^ (at + 2) ^ (at + 3)).sum(1) * 5
    np.testing.assert_array_equal(out, np.tile(once, 2))


def test_shared_reads_are_what_is_reckoned(nvrtc):
    """Each step moves READ bytes a thread, in 4 wavefronts a request."""
    out = np.zeros(256, np.uint32)
    k = ceilings.kernel("read_shared")
    few, many = (smemkern.trace(k, 1, 256, out, steps) for steps in (2, 3))
    more = many.shared_wavefronts - few.shared_wavefronts
    assert more * 128 == 256 * ceilings.READ


def test_measuring(nvrtc, monkeypatch):
    """The way of a GPU's ceilings, walked on the emulator: the figures mean nothing."""
    fake = smemkern.Device("emu", "fake", (9, 0), 1, 1000.0, 0, 0)
    monkeypatch.setattr(smemkern._device.devices, "devices", lambda: (fake,))
    found = ceilings._measure("emu", steps=20, blocks=2)
    assert (found.device, found.arch, found.multiprocessors) == ("fake", "sm_90", 1)
    assert found.clock == 1e9 and found.memory > 0 and found.shared > 0
    assert min(found.compute["float32"], found.compute["float64"]) > 0


@pytest.mark.parametrize(
    ("name", "teraflops"),  # of float32, from the documents, which round to 0.1
    [
        ("V100", 15.7),
        ("A100", 19.5),
        ("A10", 31.2),
        ("NVIDIA GeForce RTX 3090", 35.6),
        ("T4", 8.1),
        ("RTX 5090", 104.8),
    ]
    + [("l4", 30.3), ("L40S", 91.6), ("rtx4090", 82.6), ("H100", 67), ("h100-pcie", 51)],
)
def test_published(name, teraflops):
    found = smemkern.ceilings(name)
    assert found.compute["float32"] == pytest.approx(teraflops * 1e12, rel=0.005, abs=0.05e12)
    assert found.memory < found.shared < found.compute["float16 matrix"]
    assert found.source.startswith("published peaks, not measured: ")
    roof = smemkern.roofline("gemm", (4096,) * 3, "float16", name)
    assert roof.attainable * 1e12 == pytest.approx(found.compute["float16 matrix"])


def test_the_measured_h200_is_near_the_published_h100():
    """The same multiprocessors at the same clock, with other memory."""
    h100 = smemkern.ceilings("H100")
    for unit in ("float32", "float64"):
        assert h100.compute[unit] == pytest.approx(H200.compute[unit], rel=0.05)
    assert h100.shared == pytest.approx(H200.shared, rel=0.02)


@pytest.mark.skipif(not HAS_GPU, reason="no NVIDIA GPU here")
def test_measured(nvrtc):
    found = smemkern.ceilings()
    assert found is smemkern.ceilings("cuda") and found.source.startswith("measured now")
    lanes = smemkern._device.architectures.architecture(found.arch)
    peak = 2 * lanes.fp32_lanes * found.multiprocessors * found.clock
    assert 0.8 * peak < found.compute["float32"] < 1.05 * peak
    shared = 128 * found.multiprocessors * found.clock
    assert 0.8 * shared < found.shared < 1.05 * shared
    assert 1e11 < found.memory < 2e13
    if "H200" in found.device:
        assert found.memory == pytest.approx(H200.memory, rel=0.1)
        assert found.compute["float64"] == pytest.approx(H200.compute["float64"], rel=0.1)


@pytest.mark.parametrize(
    "args, error, says",
    [
        (("dot", (4, 4), "float32"), ValueError, "'gemm' or 'transpose'"),
        (("gemm", (4, 4), "float32"), ValueError, "M, N, K"),
        (("gemm", (4, 4, 0), "float32"), ValueError, "positive"),
        (("gemm", (4, 4, 4), "int32"), ValueError, "no arithmetic roof is known for int32"),
        (
            ("gemm", (4, 4, 4), "float32", "K80"),
            ValueError,
            "the ceilings of 'K80' are not known; .* 'A100'",
        ),
        (
            ("gemm", (4, 4, 4), "tf32", "V100"),
            ValueError,
            "no arithmetic roof is known for tf32 on NVIDIA V100; known are: float32, float64, flo",
        ),
        (("gemm", (4, 4, 4), "float32", 90), TypeError, "a string, not int"),
        (("gemm", (4, 4, 4), "float32", "cuda:77"), smemkern.NoDeviceError, "cuda:77"),
    ],
)
def test_refused(args, error, says):
    with pytest.raises(error, match=says):
        smemkern.roofline(*args)
