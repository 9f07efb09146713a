"""The PEP 517 backend: setuptools' own, asking for the CUDA wheels too where no toolkit is.

It has a folder to itself because pip takes whatever lies beside a backend for the metadata of any
package that is asked for: beside setup.py, the egg-info of an earlier build for setuptools' own.
"""

from __future__ import annotations

import sys
from pathlib import Path

import setuptools
from setuptools import build_meta as _setuptools
from setuptools.build_meta import *  # noqa: F403

sys.path.append(str(Path(__file__).resolve().parents[2]))
from buildtools import targets, toolkit  # noqa: E402

if int(setuptools.__version__.split(".")[0]) < 77:
    raise ImportError(
        f"building smemkern needs setuptools 77 or newer; this is {setuptools.__version__}. "
        "Build with isolation (pip's default), or first: pip install -U 'setuptools>=77' 'numpy>=2'"
    )


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    return _setuptools.get_requires_for_build_wheel(config_settings) + _wheels()


def get_requires_for_build_editable(config_settings=None) -> list[str]:
    return _setuptools.get_requires_for_build_editable(config_settings) + _wheels()


def _wheels() -> list[str]:
    return toolkit.missing_wheels(targets.wants_machine_code())
