"""What there is to run on, and how this installation is made up."""

from __future__ import annotations

import os
from typing import NamedTuple

from . import _core


class Device(NamedTuple):
    """Something to pass as `device`. What a device does not have is None."""

    name: str  # "cuda:0", "emu"
    description: str
    compute_capability: tuple[int, int] | None
    multiprocessors: int | None
    clock_mhz: float | None
    memory_bytes: int | None
    shared_bytes: int | None  # the most of a block, after opting in


def devices() -> tuple[Device, ...]:
    """The GPUs that the driver shows, then the emulator, which is always there."""
    gpus = [
        Device(f"cuda:{ordinal}", name, divmod(sm, 10), sms, clock_khz / 1000, memory, shared)
        for ordinal, name, sm, sms, clock_khz, memory, shared, _driver in _core.devices()
    ]
    threads = len(os.sched_getaffinity(0))
    emulator = Device("emu", f"PTX emulator on {threads} CPU threads", *[None] * 5)
    return (*gpus, emulator)


def show_config() -> None:
    """Print version, devices, driver, NVRTC and folders: what a bug report should hold."""
    import platform

    import numpy as np

    config = _core.config()
    print(f"smemkern  {config['version']}")
    print(f"python    {platform.python_version()} on {platform.platform()}")
    print(f"numpy     {np.__version__}")
    print(f"driver    {config['driver']}")
    print(f"nvrtc     {config['nvrtc']}")
    print(f"images    {config['images']}")
    for device in devices():
        facts = [device.description]
        if device.compute_capability:
            facts.append("sm_{}{}".format(*device.compute_capability))
        if device.multiprocessors:
            facts.append(f"{device.multiprocessors} SMs")
        if device.clock_mhz:
            facts.append(f"{device.clock_mhz:.0f} MHz")
        if device.memory_bytes:
            facts.append(f"{device.memory_bytes / 2**30:.0f} GiB")
        if device.shared_bytes:
            facts.append(f"{device.shared_bytes / 2**10:.0f} KiB of shared memory a block")
        print(f"{device.name:<9} {', '.join(facts)}")
