"""Measures how TMA loads with type TFLOAT32 or FLOAT32_FTZ round floats on a GPU.

    python validation/tensor_rounding.py      # writes results/tensor-rounding.json

The counts confirm the rules in csrc/emu/isa/tensor_map.c: each element that a GPU loads is
compared, bit for bit, with several candidates. Elements are drawn in four classes. The bits of a
mantissa that TF32 drops are a tie, next to a tie, or random. The driver encodes the maps, since
smemkern.TensorMap has no such types. Needs CuPy.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "benchmarks"), str(HERE.parent)]

import records  # noqa: E402
import smemkern  # noqa: E402
from gpu import facts  # noqa: E402

TYPES = {"FLOAT32": 7, "FLOAT32_FTZ": 10, "TFLOAT32": 11, "TFLOAT32_FTZ": 12}  # of cuda.h
ROW = 256  # elements in a box
DROPPED = 13  # bits of a mantissa
LOAD = f"""
.version 8.3
.target sm_90
.address_size 64
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 to)
{{
    .reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
    .shared .align 128 .b8 tile[{4 * ROW}]; .shared .align 8 .b64 full;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, full; mov.u32 %r3, tile;
    mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [to];
    setp.ne.u32 %p0, %r0, 0; @%p0 bra READY;
    mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], {4 * ROW}; mov.u32 %r4, 0;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
        [%r3], [%rd0, {{%r4, %r1}}], [%r2];
READY: bar.sync 0;
WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    mad.lo.u32 %r4, %r0, 4, %r3; ld.shared.u32 %r5, [%r4];
    mad.lo.u32 %r4, %r1, {ROW}, %r0; mad.wide.u32 %rd2, %r4, 4, %rd1; st.global.u32 [%rd2], %r5;
    ret;
}}
"""


def inputs(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Random floats, as bits, by class."""
    n = rows * ROW
    half = 1 << DROPPED - 1
    near = np.array([0, 1, half - 1, half, half + 1, 2 * half - 1], "u4")
    low = np.where(rng.random(n) < 0.8, rng.choice(near, n), rng.integers(0, 2 * half, n))
    mantissa = (rng.integers(0, 1 << 23 - DROPPED, n) << DROPPED | low).astype("u4")
    sign = rng.integers(0, 2, n).astype("u4") << np.uint32(31)

    def of(exponents: np.ndarray) -> np.ndarray:
        return (sign | exponents.astype("u4") << np.uint32(23) | mantissa).astype("u4")

    return {
        "normal": of(rng.integers(1, 254, n)),
        "largest": of(np.full(n, 254)),
        "subnormal": of(np.zeros(n, "u4")),
        "infinity and NaN": of(np.full(n, 255)),
    }


def candidates(x: np.ndarray) -> dict[str, np.ndarray]:
    """Possible results of a load of these bits."""
    keep, half = np.uint32(0xFFFFFFFF << DROPPED & 0xFFFFFFFF), np.uint32(1 << DROPPED - 1)
    odd = x >> np.uint32(DROPPED) & np.uint32(1)
    finite = (x & np.uint32(0x7F800000)) != 0x7F800000
    flushed = np.where(x & np.uint32(0x7F800000), x, x & np.uint32(0x80000000))
    rounded = {
        "as it is": x,
        "cut": x & keep,
        "nearest, ties away": np.where(finite, (x + half) & keep, x),
        "nearest, ties even": np.where(finite, (x + half - 1 + odd) & keep, x),
    }
    zeros = flushed == (x & np.uint32(0x80000000))
    return rounded | {
        f"{name}, subnormals zero": np.where(zeros, flushed, bits) for name, bits in rounded.items()
    }


def encoded(kind: int, pointer: int, rows: int) -> bytes:
    """The CUtensorMap of a matrix of floats, with one row per box."""
    words, place = ctypes.c_uint64 * 1, ctypes.create_string_buffer(128 + 64)
    to = (ctypes.addressof(place) + 63) & ~63
    driver = ctypes.CDLL("libcuda.so.1")
    failed = driver.cuTensorMapEncodeTiled(
        *(ctypes.c_void_p(to), kind, 2, ctypes.c_void_p(pointer)),
        (ctypes.c_uint64 * 2)(ROW, rows),
        words(4 * ROW),
        (ctypes.c_uint32 * 2)(ROW, 1),
        (ctypes.c_uint32 * 2)(1, 1),
        *(0, 0, 0, 0),
    )
    if failed:
        raise SystemExit(f"cuTensorMapEncodeTiled: error {failed}")
    return ctypes.string_at(to, 128)


def loaded(kind: int, bits: np.ndarray) -> np.ndarray:
    import cupy

    given, out = cupy.asarray(bits), cupy.zeros(bits.size, "u4")
    rows = bits.size // ROW
    kernel = smemkern.Kernel(LOAD, "load")
    kernel(rows, ROW, encoded(kind, given.data.ptr, rows), out, device="cuda")
    cupy.cuda.Device().synchronize()
    return out.get()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1024, help="of 256 elements, in each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=records.RESULTS)
    parser.add_argument("--commit")
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    record: dict[str, Any] = {**facts(options.commit), "seed": options.seed, "differ": {}}
    for name, kind in TYPES.items():
        for group, bits in inputs(rng, options.rows).items():
            got = loaded(kind, bits)
            differ = {rule: int((got != x).sum()) for rule, x in candidates(bits).items()}
            record["differ"].setdefault(name, {})[group] = {"elements": bits.size, **differ}
            right = [rule for rule, count in differ.items() if count == 0]
            print(f"{name:13} {group:17} {', '.join(right) or differ}")
            if not right:
                few = np.flatnonzero(got != bits)[:8]
                print([(hex(bits[k]), hex(got[k])) for k in few])
    path = options.results / "tensor-rounding.json"
    records.write(path, record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
