"""python -m smemkern occupancy: resident blocks of a kernel per SM, and what limits them."""

from __future__ import annotations

import argparse

from ._cli import Answer

SUMMARY = "resident blocks per SM, and what limits them"
ABOUT = """\
Prints how many blocks of a kernel are resident on an SM: the smallest number that its
registers, shared memory, warps, blocks and barriers allow. `nvcc -Xptxas -v` and
`cuobjdump -res-usage` print a kernel's registers and shared memory."""
EXAMPLES = (
    (
        "occupancy --threads 256 --registers 64 --shared 49152",
        """\
sm_90 (Hopper): 4 blocks of 256 threads per SM, 32 of 64 warps, 50.0%
limited by registers and shared memory
a block takes 16384 registers and 50176 bytes of shared memory

resource       blocks it allows
registers                     4  binds
shared memory                 4  binds
warps                         8
blocks                       32
barriers                     64""",
    ),
)
NEXT = (
    "--curve: all block sizes; --arch: other GPUs. More warps are not always faster: the ladder's "
    "best kernels use an eighth of an SM's warps (docs/models.md)."
)
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=256, metavar="N", help="per block (256)")
    parser.add_argument("--registers", type=int, required=True, metavar="N", help="per thread")
    parser.add_argument("--shared", type=int, default=0, metavar="N", help="bytes per block (0)")
    parser.add_argument(
        "--arch", default="sm_90", help="'sm_90', '9.0' or a device such as 'H200' (sm_90)"
    )
    parser.add_argument("--curve", action="store_true", help="print all block sizes")


def run(chosen: argparse.Namespace) -> Answer:
    import numpy as np

    from ._document import Heading, Node
    from ._occupancy import UNLIMITED, occupancy

    one = occupancy(chosen.threads, chosen.registers, chosen.shared, chosen.arch)
    _, *facts = one._nodes()
    head = (
        f"{one.arch.sm} ({one.arch.name}): {one.blocks} blocks of {chosen.threads} threads per "
        f"SM, {one.warps} of {one.arch.warps} warps, {one.fraction:.1%}"
    )
    nodes: list[Node] = [Heading(head), *facts]
    data = {
        "arch": one.arch.sm,
        "threads": chosen.threads,
        "blocks": one.blocks,
        "warps": one.warps,
        "fraction": one.fraction,
        "limiters": one.limiters,
        "limits": {
            k.replace(" ", "_"): None if v == UNLIMITED else v for k, v in one.limits.items()
        },
        "registers": one.registers,
        "shared_bytes": one.shared_bytes,
        "curve": None,
    }
    if chosen.curve:
        sizes = np.arange(32, 1025, 32)
        curve = occupancy(sizes, chosen.registers, chosen.shared, chosen.arch)
        nodes += curve._curve(sizes)
        data["curve"] = [
            dict(zip(("threads", "blocks", "warps", "fraction", "limiter"), row, strict=True))
            for row in zip(
                sizes, curve.blocks, curve.warps, curve.fraction, curve.limiter, strict=True
            )
        ]
    return Answer(data, nodes)
