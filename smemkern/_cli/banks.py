"""python -m smemkern banks: the wavefronts of a stride; a conflict-free layout of a tile."""

from __future__ import annotations

import argparse
from typing import Any

from .common import Answer

SUMMARY = "bank conflicts of a stride; a conflict-free layout of a tile"
ABOUT = """\
Prints the wavefronts that a warp's accesses to shared memory cost. Shared memory has
32 banks of 4 bytes, and an access costs as many wavefronts as its busiest bank has
different words. Without options, a table of strides. With --stride, the words and
lanes of each conflicting bank. With --tile, the cheapest layout (padding, XOR swizzle,
TMA's swizzles) that is free of conflicts for the given accesses."""
EXAMPLES = (
    (
        "banks --stride 16",
        """\
stride 16 on sm_90: 16 wavefronts
load of 4 bytes by 32 lanes: 16 wavefronts, ideal 1
  bank 0, 16 ways: word 0 by lane 0; word 32 by lane 2; word 64 by lane 4;
    13 more
  bank 16, 16 ways: word 16 by lane 1; word 48 by lane 3; word 80 by lane 5;
    13 more""",
    ),
    (
        "banks --tile 32x32 --access row --access column",
        """\
32 x 32 elements of 4 bytes: row, column
Layout(32, 32, swizzle='xor') is free of conflicts
layout                        wasted share wavefronts ideal worst ...
Layout(32, 32, swizzle='xor')      0 0.0 %         64    64     1 yes
...
Layout(32, 32, pad=1)            128 3.1 %         64    64     1 yes
...
Layout(32, 32)                     0 0.0 %       1056    64    32 no""",
    ),
)
NEXT = (
    "trace gemm --variant conflicted: a kernel with such conflicts. In a notebook, "
    "smemkern.banks.Layout(32, 32, pad=1) draws the tile."
)
FOUND = "no layout of --tile is free of conflicts"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stride", type=int, metavar="N", help="elements between consecutive lanes"
    )
    parser.add_argument("--width", type=int, default=4, metavar="N", help="bytes per lane (4)")
    parser.add_argument("--op", default="load", help="load, store, atomic, ldmatrix, ... (load)")
    parser.add_argument("--arch", default="sm_90", help="sm_10 to sm_37 have older rules (sm_90)")
    parser.add_argument("--tile", metavar="ROWSxCOLS", help="a tile in shared memory")
    parser.add_argument(
        "--itemsize", type=int, default=4, metavar="N", help="bytes per element of the tile (4)"
    )
    parser.add_argument(
        "--access",
        action="append",
        metavar="PATTERN",
        help="row, column, row:16B, ldmatrix, 'store column', ...; repeatable (row, column)",
    )


def run(chosen: argparse.Namespace) -> Answer:
    from .. import banks

    data: dict[str, Any] = {"strides": None, "stride": None, "tile": None}
    if chosen.tile is not None:
        return _tile(chosen, data)
    if chosen.stride is not None:
        return _stride(chosen, data)
    table = banks.stride_table(width=chosen.width, op=chosen.op)
    return Answer({**data, "strides": list(table)}, table._nodes())


def _tile(chosen: argparse.Namespace, data: dict[str, Any]) -> Answer:
    from .. import banks
    from .._render.document import Heading

    rows, _, cols = chosen.tile.partition("x")
    if not (rows.isdigit() and cols.isdigit()):
        raise ValueError(f"--tile should be like 32x32, not {chosen.tile}")
    accesses = chosen.access or ["row", "column"]
    found = banks.suggest(int(rows), int(cols), chosen.itemsize, accesses)
    _, *table = found._nodes()
    title = f"{rows} x {cols} elements of {chosen.itemsize} bytes: {', '.join(accesses)}"
    data["tile"] = {
        "rows": int(rows),
        "cols": int(cols),
        "itemsize": chosen.itemsize,
        "accesses": accesses,
        "conflict_free": found.conflict_free,
        "best": _choice(found.best),
        "plain": None if found.before is None else _choice(found.before),
        "alternatives": [_choice(choice) for choice in found.alternatives],
    }
    return Answer(
        data, [Heading(title), Heading(found._answer), *table], int(not found.conflict_free)
    )


def _choice(choice: Any) -> dict[str, Any]:
    layout = choice.layout
    named = isinstance(layout.swizzle, str | None)
    return {
        "layout": repr(layout),
        "pad": layout.pad,
        "swizzle": layout.swizzle if named else list(layout.swizzle),
        **{name: value for name, value in choice._asdict().items() if name != "layout"},
    }


def _stride(chosen: argparse.Namespace, data: dict[str, Any]) -> Answer:
    from .. import banks
    from .._banks.wavefronts import generation_of
    from .._render.document import Heading, Node

    lanes = [abs(chosen.stride) * chosen.width * lane for lane in range(32)]
    cost = banks.wavefronts(lanes, chosen.width, chosen.op, arch=chosen.arch)
    nodes: list[Node] = [Heading(f"stride {chosen.stride} on {chosen.arch}: {cost} wavefronts")]
    stride: dict[str, Any] = {
        "stride": chosen.stride,
        "width": chosen.width,
        "op": chosen.op,
        "arch": chosen.arch,
        "wavefronts": cost,
        "ideal": None,
        "conflicts": None,
    }
    if generation_of(chosen.arch) >= 5:
        request = banks.explain(lanes, chosen.width, chosen.op)
        nodes += request._nodes()
        stride["ideal"] = request.ideal
        stride["conflicts"] = [
            {
                "group": group,
                "bank": bank,
                "words": [{"word": word, "lanes": by} for word, by in words.items()],
            }
            for group, bank, words in request.conflicts
        ]
    return Answer({**data, "stride": stride}, nodes)
