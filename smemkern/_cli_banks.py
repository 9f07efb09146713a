"""python -m smemkern banks: what a stride costs; which layout of a tile is free of conflicts."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "banks",
        help="bank conflicts of a stride; a layout without conflicts for a tile",
        description="Without arguments, the table of strides. With --stride, who waits for whom. "
        "With --tile, the cheapest layout that is free of conflicts for the accesses given.",
    )
    parser.add_argument("--stride", type=int, help="elements from lane to lane")
    parser.add_argument("--width", type=int, default=4, help="bytes of a lane (4)")
    parser.add_argument("--op", default="load", help="load, store, atomic, ldmatrix, ... (load)")
    parser.add_argument("--arch", default="sm_90", help="sm_90; sm_10 to sm_37 for the past")
    parser.add_argument("--tile", metavar="ROWSxCOLS", help="a tile in shared memory")
    parser.add_argument("--itemsize", type=int, default=4, help="bytes of its elements (4)")
    parser.add_argument(
        "--access", action="append", help="row, column, row:16B, ldmatrix, 'store column', ..."
    )


def run(args: argparse.Namespace) -> int:
    from . import banks
    from ._wavefronts import generation_of

    if args.tile is not None:
        rows, _, cols = args.tile.partition("x")
        if not (rows.isdigit() and cols.isdigit()):
            raise ValueError(f"--tile should be as 32x32, not {args.tile}")
        accesses = args.access or ["row", "column"]
        print(f"{rows} x {cols} elements of {args.itemsize} bytes: {', '.join(accesses)}")
        print(banks.suggest(int(rows), int(cols), args.itemsize, accesses))
        return 0
    if args.stride is None:
        print(banks.stride_table(width=args.width, op=args.op))
        return 0
    lanes = [abs(args.stride) * args.width * lane for lane in range(32)]
    cost = banks.wavefronts(lanes, args.width, args.op, arch=args.arch)
    print(f"stride {args.stride} on {args.arch}: {cost} wavefronts")
    if generation_of(args.arch) >= 5:
        print(banks.explain(lanes, args.width, args.op))
    return 0
