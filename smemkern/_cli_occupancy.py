"""python -m smemkern occupancy: blocks of a kernel that an SM holds, and what limits them."""

from __future__ import annotations

import argparse


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("occupancy", help="blocks that an SM holds, and what limits them")
    parser.add_argument("--threads", type=int, default=256, help="of a block (256)")
    parser.add_argument("--registers", type=int, required=True, help="of a thread")
    parser.add_argument("--shared", type=int, default=0, help="bytes of a block (0)")
    parser.add_argument("--arch", default="sm_90", help="'sm_90', '9.0' or a device: 'H200'")
    parser.add_argument("--curve", action="store_true", help="over all block sizes")


def run(args: argparse.Namespace) -> int:
    import numpy as np

    from ._occupancy import UNLIMITED, occupancy
    from ._table import Right, table

    one = occupancy(args.threads, args.registers, args.shared, args.arch)
    print(
        f"{one.arch.sm} ({one.arch.name}): {one.blocks} blocks of {args.threads} threads an SM, "
        f"{one.warps} of {one.arch.warps} warps, {one.fraction:.1%}"
    )
    print(f"limited by {' and '.join(one.limiters)}")
    print(f"a block takes {one.registers} registers and {one.shared_bytes} bytes of shared memory")
    limits = {k: "no limit" if v == UNLIMITED else v for k, v in one.limits.items()}
    print("blocks by each:", ", ".join(f"{name} {limit}" for name, limit in limits.items()))
    if args.curve:
        sizes = np.arange(32, 1025, 32)
        curve = occupancy(sizes, args.registers, args.shared, args.arch)
        rows = [
            (int(t), int(b), int(w), Right(f"{f:.1%}"), "#" * round(40 * f), str(limiter))
            for t, b, w, f, limiter in zip(
                sizes, curve.blocks, curve.warps, curve.fraction, curve.limiter, strict=True
            )
        ]
        print(table(("threads", "blocks", "warps", "share", "", "limited by"), rows))
    return 0
