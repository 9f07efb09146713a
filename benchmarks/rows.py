"""The variants and the parameter sets that the build compiled: benchmarks need no compiler."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Appended, not prepended: the installed smemkern must shadow the one in the source tree.
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from buildtools import registry  # noqa: E402


@cache
def table() -> dict[tuple[str, str], registry.Row]:
    """The rows of csrc/kernels/variants.toml by op and name, in the order of the ladder."""
    return {(row.op, row.name): row for row in registry.read(ROOT / "csrc" / "kernels")}


def parameter_sets(row) -> list[dict[str, int]]:
    """The parameter sets of a row (or of a smemkern.Variant): first the default, as {}."""
    default, *others = table()[row.op, row.name].prebuilt
    return [{}, *({k: v for k, v in s.items() if v != default[k]} for s in others)]
