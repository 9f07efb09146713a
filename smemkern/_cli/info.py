"""python -m smemkern info: describes this installation and machine."""

from __future__ import annotations

import argparse
import platform

from .common import Answer

SUMMARY = "version, devices, driver and compiler"
ABOUT = """\
Prints the versions of smemkern, Python and NumPy, the NVIDIA driver, NVRTC (which
compiles your own CUDA C), Nsight Compute, and the devices that kernels can run on. The
first device is the default. Please include this output in bug reports."""
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
NEXT = "demo: runs and checks every variant on the first device."
FOUND = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has no options of its own."""


def run(chosen: argparse.Namespace) -> Answer:
    import numpy as np

    from .. import _core
    from .._device.devices import config_facts, devices
    from .._performance.ncu import find_ncu
    from .._render.document import Facts

    config = _core.config()
    try:
        ncu = find_ncu()
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
    facts.insert(5, ("ncu", ncu or "not found; profile needs it; it is in the CUDA Toolkit"))
    return Answer(data, [Facts(facts)])
