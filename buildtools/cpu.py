"""For which CPUs the emulator's vector code is compiled: csrc/emu/base/cpu.h.

Its files are the slowest of the C files. $SMEMKERN_CPU = "all" compiles them for every CPU of the
platform, for a result that goes elsewhere. The default, "native", compiles them for this CPU, and
for any other one quickly: the result runs there too, but slowly.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "SMEMKERN_CPU"
CPUINFO = Path("/proc/cpuinfo")
BASELINE = "cpu_baseline.c"

V3, V4 = 1, 2  # CPU_BUILDS_V3, CPU_BUILDS_V4
# What cpu_level() in cpu.c asks for, in Linux's names; the best first.
_NEEDS = (
    (V4, {"avx512f", "avx512cd", "avx512dq", "avx512vl"}),
    (V3, {"avx2", "fma", "bmi2"}),
)


class CpuError(ValueError):
    """$SMEMKERN_CPU has an unknown value."""


def variants() -> int:
    """CPU_VARIANTS: a sum of V3 and V4, of which other platforms compile none."""
    text = os.environ.get(VARIABLE, "native").strip().lower()
    if text == "all":
        return V3 + V4
    if text != "native":
        raise CpuError(f'{VARIABLE}={text}: expected "native" or "all"')
    flags = _flags_here()
    return next((variant for variant, needs in _NEEDS if needs <= flags), 0)


def _flags_here() -> set[str]:
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def flags(source: str, variants: int) -> list[str]:
    """Further compiler flags of a file: vector code is optimised for the CPUs that it is for."""
    if not Path(source).name.startswith("cpu_"):
        return []
    return ["-O0"] if source.endswith(BASELINE) and variants in (V3, V4) else ["-O3"]
