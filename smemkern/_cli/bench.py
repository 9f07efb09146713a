"""python -m smemkern bench: times of variants on a GPU."""

from __future__ import annotations

import argparse

from .common import Answer, completed, device_names, variant_names

SUMMARY = "time variants on a GPU"
ABOUT = """\
Times kernels on random data, between CUDA events and without transfers. Prints the
median and the shortest time of the runs that fit into 20 ms, and the rate for the
median: TFLOP/s for a gemm, TB/s read plus written for a transpose. Without --shape and
--variant it times everything that "auto" chooses among, which takes minutes."""
EXAMPLES = (
    (
        "bench --shape 256 --variant tiled --variant padded --device emu",
        """\
emu: PTX emulator on ... CPU threads

variant      parameters  dtype              shape     ms  best ms    TFLOP/s
gemm tiled               float32  256 x 256 x 256  ...
gemm padded              float32  256 x 256 x 256  ...""",
    ),
)
NEXT = (
    "smemkern.roofline in Python: the attainable rates; profile: the counters of one variant; "
    "--retune, if this GPU is not an H200."
)
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--op", default="gemm", choices=("gemm", "transpose"), help="(gemm)")
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        metavar="MxNxK",
        help="repeatable; one number means a cube (default: many on a GPU, 256 on the emulator)",
    )
    variant = parser.add_argument(
        "--variant",
        action="append",
        metavar="NAME",
        help='repeatable (default: what "auto" chooses among; all of a transpose)',
    )
    completed(variant, variant_names)
    parser.add_argument("--dtype", action="append", metavar="NAME", help="repeatable (float32)")
    device = parser.add_argument(
        "--device", metavar="NAME", help='"cuda:1"; "emu" times the emulator'
    )
    completed(device, device_names)
    parser.add_argument(
        "--retune",
        action="store_true",
        help='fit the cost model of "auto" to this GPU, and store it for this GPU',
    )


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a shape such as 4096 or 4095x4097x4093; found {text!r}"
        ) from None


def run(chosen: argparse.Namespace) -> Answer:
    from .._performance.bench import ALL_DTYPES, bench

    rank = 2 if chosen.op == "transpose" else 3
    shapes = [s * rank if len(s) == 1 else s for s in chosen.shape] if chosen.shape else None
    dtypes = chosen.dtype or (ALL_DTYPES if chosen.retune else ("float32",))
    times = bench(
        shapes, op=chosen.op, variants=chosen.variant, dtypes=dtypes, device=chosen.device
    )
    fits = times.retune() if chosen.retune else None
    data = {
        "device": times.device.name,
        "description": times.device.description,
        "lines": list(times),
        "fits": None if fits is None else list(fits),
    }
    return Answer(data, times._nodes() if fits is None else fits._nodes())
