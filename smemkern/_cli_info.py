"""python -m smemkern info: what this installation has."""

from __future__ import annotations

import argparse
import platform

from ._cli import Answer

SUMMARY = "version, devices, driver and compiler"
ABOUT = """\
What this installation found: its version, Python and NumPy, the NVIDIA driver,
NVRTC (which compiles CUDA C of your own), Nsight Compute, and the devices that
kernels can run on, the first of which is taken where none is named. A bug report
should hold it."""
EXAMPLES = (
    (
        "info",
        """\
smemkern  ...
python    ...
numpy     ...
driver    ...
nvrtc     ...
ncu       ...
images    ...
emu       PTX emulator on ... CPU threads""",
    ),
)
NEXT = "demo, which runs every variant on the first device and checks it."
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(chosen: argparse.Namespace) -> Answer:
    import numpy as np

    from . import _core, _ncu
    from ._blocks import Facts
    from ._devices import config_facts, devices

    config = _core.config()
    try:
        ncu = _ncu.find_ncu()
    except _core.Error:
        ncu = None

    def version(text: str) -> str | None:
        return text if text[:1].isdigit() else None

    data = {
        "version": config["version"],
        "python": platform.python_version(),
        "platform": platform.platform(),
        "numpy": np.__version__,
        "driver": version(config["driver"]),
        "nvrtc": version(config["nvrtc"]),
        "ncu": ncu,
        "images": config["images"],
        "devices": list(devices()),
    }
    facts = config_facts()
    facts.insert(5, ("ncu", ncu or "not found; profile needs it: it comes with the CUDA Toolkit"))
    return Answer(data, [Facts(facts)])
