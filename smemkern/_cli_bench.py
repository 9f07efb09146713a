"""python -m smemkern bench: how long variants take on a GPU."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bench",
        help="time variants on a GPU",
        description="Times kernels on random data, between CUDA events, without transfers.",
    )
    parser.add_argument("--op", default="gemm", choices=("gemm", "transpose"))
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        metavar="MxNxK",
        help='may be repeated; one number is a cube (default: the shapes "auto" is fitted to)',
    )
    parser.add_argument(
        "--variant", action="append", help='may be repeated (default: what "auto" chooses among)'
    )
    parser.add_argument("--dtype", action="append", help="may be repeated (default: float32)")
    parser.add_argument("--device", help='"cuda:1"; "emu" times the emulator')
    parser.add_argument(
        "--retune",
        action="store_true",
        help='fit the numbers that "auto" chooses by to this GPU, and keep them for it',
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each time")


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 4096 or 4095x4097x4093") from None


def run(args: argparse.Namespace) -> int:
    import json
    import sys

    from ._bench import ALL_DTYPES, bench
    from .errors import NoDeviceError

    rank = 2 if args.op == "transpose" else 3
    shapes = [s * rank if len(s) == 1 else s for s in args.shape] if args.shape else None
    dtypes = args.dtype or (ALL_DTYPES if args.retune else ("float32",))
    try:
        times = bench(shapes, op=args.op, variants=args.variant, dtypes=dtypes, device=args.device)
    except NoDeviceError as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 2
    if args.json:
        for line in times:
            print(json.dumps(line._asdict()))
    elif not args.retune:
        print(times)
    if args.retune:
        print(times.retune())
    return 0
