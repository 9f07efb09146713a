"""python -m smemkern occupancy: resident blocks of a kernel per SM, and what limits them."""

from __future__ import annotations

import argparse
from pathlib import Path

from .._compiler.kernel_file import kernel_in
from .._core import Kernel
from . import common, compiling
from .calls import kernel_files
from .common import Answer

SUMMARY = "resident blocks per SM, and what limits them"
ABOUT = """\
Prints how many blocks of a kernel are resident on an SM: the smallest number that its
registers, shared memory, warps, blocks and barriers allow. Of a kernel in a file ptxas says
registers and static shared memory, if it is installed; else they are estimated from the PTX."""
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
    what = parser.add_argument(
        "what", nargs="?", metavar="FILE", help="CUDA C++ or PTX, instead of --registers"
    )
    common.completed(what, kernel_files)
    parser.add_argument("--kernel", metavar="NAME", help="its name (the file's only kernel)")
    compiling.add_compile_options(parser, arch=False)
    parser.add_argument("--threads", type=int, default=256, metavar="N", help="per block (256)")
    parser.add_argument("--registers", type=int, metavar="N", help="per thread")
    parser.add_argument(
        "--shared", type=int, default=0, metavar="N", help="bytes per block (0); FILE: dynamic ones"
    )
    parser.add_argument(
        "--carveout",
        type=int,
        metavar="N",
        help="preferred shared memory: percent (0..100), or bytes per SM (largest)",
    )
    parser.add_argument(
        "--arch", default="sm_90", help="'sm_90', '9.0' or a device such as 'H200' (sm_90)"
    )
    parser.add_argument("--curve", action="store_true", help="print all block sizes")


def _registers(chosen: argparse.Namespace) -> int | Kernel:
    """The registers per thread, or the kernel of the file that says them."""
    if (chosen.what is None) == (chosen.registers is None):
        raise ValueError("expected either --registers or a .cu or .ptx file")
    if chosen.what is None:
        return int(chosen.registers)
    options = compiling.options(chosen, arch=False)
    return kernel_in(Path(chosen.what), chosen.kernel, options)


def run(chosen: argparse.Namespace) -> Answer:
    import numpy as np

    from .._device.occupancy import UNLIMITED, occupancy
    from .._render.document import Heading, Node

    registers = _registers(chosen)
    more = {"carveout": chosen.carveout}
    one = occupancy(chosen.threads, registers, chosen.shared, chosen.arch, **more)
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
        "registers_per_thread": one.registers_per_thread,
        "registers_from": one.registers_from,
        "carveout": chosen.carveout,
        "curve": None,
    }
    if chosen.curve:
        sizes = np.arange(32, 1025, 32)
        curve = occupancy(sizes, registers, chosen.shared, chosen.arch, **more)
        nodes += curve._curve(sizes)
        data["curve"] = [
            dict(zip(("threads", "blocks", "warps", "fraction", "limiter"), row, strict=True))
            for row in zip(
                sizes, curve.blocks, curve.warps, curve.fraction, curve.limiter, strict=True
            )
        ]
    return Answer(data, nodes)
