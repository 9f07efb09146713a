"""Builds what pyproject.toml describes: the extension, and through buildtools/ the kernels."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # setuptools runs this file without its folder on the path

from buildtools.commands import BuildExt, BuildPy  # noqa: E402

os.chdir(ROOT)
FOLDERS = ("module", "pipeline", "core", "cuda", "emu")
SOURCES = sorted(str(file) for name in FOLDERS for file in Path("csrc", name).rglob("*.c"))
SOURCES.sort(key=lambda file: "/cpu_" not in file)  # those that take longest are begun first
FLAGS = ["-std=gnu17", "-O3", "-g1", "-ffp-contract=off", "-fvisibility=hidden", "-Wall", "-Wextra"]
FLAGS += ["-MMD"]  # which files each object is made of, for buildtools/commands.py
if os.environ.get("SMEMKERN_WERROR") == "1":
    FLAGS.append("-Werror")  # ours to see; a user's newer compiler may warn of more

setup(
    ext_modules=[
        Extension(
            "smemkern._core",
            sources=SOURCES,
            depends=["setup.py", "pyproject.toml"],  # flags and version: compile everything anew
            include_dirs=["csrc"],
            extra_compile_args=FLAGS,
            libraries=["dl", "pthread", "m"],
        )
    ],
    cmdclass={"build_py": BuildPy, "build_ext": BuildExt},
)
