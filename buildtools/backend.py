"""The PEP 517 backend: setuptools' own, asking for the CUDA wheels too where nvcc is missing."""

from __future__ import annotations

from importlib import metadata

from setuptools import build_meta as _setuptools
from setuptools.build_meta import *  # noqa: F403

from . import toolkit

# setuptools.__version__ may be wrong: it asks importlib.metadata, to which pip's own finder for
# backend-path answers with whatever lies there, as the egg-info of an earlier build.
_found = metadata.distributions(name="setuptools")
_version = next((each.version for each in _found if each.name == "setuptools"), "0")
if int(_version.split(".")[0]) < 77:
    raise ImportError(
        f"building smemkern needs setuptools 77 or newer; this is {_version}. "
        "Build with isolation (pip's default), or first: pip install -U 'setuptools>=77' 'numpy>=2'"
    )


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    return _setuptools.get_requires_for_build_wheel(config_settings) + _wheels()


def get_requires_for_build_editable(config_settings=None) -> list[str]:
    return _setuptools.get_requires_for_build_editable(config_settings) + _wheels()


def _wheels() -> list[str]:
    return [] if toolkit.system_nvcc() else toolkit.WHEELS
