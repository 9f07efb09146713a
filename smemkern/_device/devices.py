"""The devices that calls can run on, and a description of this installation."""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import _core
from .._render.document import Facts, Node, as_text, in_notebook, text
from .._render.rows import Rows


class Device(NamedTuple):
    """A device. Its name is what to pass as `device`. Fields that do not apply are None."""

    name: str  # "cuda:0", "emu"
    description: str
    compute_capability: tuple[int, int] | None
    multiprocessors: int | None
    clock_mhz: float | None
    memory_bytes: int | None
    shared_bytes: int | None  # the maximum per block, after opting in

    @property
    def sm(self) -> int:
        """The compute capability as in "sm_90"; 0 without one."""
        major, minor = self.compute_capability or (0, 0)
        return 10 * major + minor

    @property
    def _facts(self) -> str:
        facts = [self.description]
        if self.compute_capability:
            facts.append("sm_{}{}".format(*self.compute_capability))
        if self.multiprocessors:
            facts.append(f"{self.multiprocessors} SMs")
        if self.clock_mhz:
            facts.append(f"{self.clock_mhz:.0f} MHz")
        if self.memory_bytes:
            facts.append(f"{self.memory_bytes / 2**30:.0f} GiB")
        if self.shared_bytes:
            facts.append(f"{self.shared_bytes / 2**10:.0f} KiB of shared memory per block")
        return ", ".join(facts)

    def _nodes(self) -> list[Node]:
        return [Facts([(self.name, self._facts)])]

    def _repr_html_(self) -> str:
        return in_notebook(self)


class Devices(Rows[Device]):
    """Shown with a line per device."""

    __slots__ = ()

    def _nodes(self) -> list[Node]:
        return [Facts([(device.name, device._facts) for device in self])]

    __repr__ = as_text


def devices() -> Devices:
    """The GPUs that the driver reports, then the emulator, which is always available."""
    gpus = [
        Device(f"cuda:{ordinal}", name, divmod(sm, 10), sms, clock_khz / 1000, memory, shared)
        for ordinal, name, sm, sms, clock_khz, memory, shared, _driver in _core.devices()
    ]
    threads = len(os.sched_getaffinity(0))
    emulator = Device("emu", f"PTX emulator on {threads} CPU threads", *[None] * 5)
    return Devices((*gpus, emulator))


def config_facts() -> list[tuple[str, str]]:
    import platform

    import numpy as np

    config = _core.config()
    return [
        ("smemkern", config["version"]),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("numpy", np.__version__),
        ("driver", config["driver"]),
        ("nvrtc", config["nvrtc"]),
        ("images", config["images"]),
        *((device.name, device._facts) for device in devices()),
    ]


def show_config() -> None:
    """Print version, devices, driver, NVRTC and folders, as needed in a bug report."""
    print(text([Facts(config_facts())]))
