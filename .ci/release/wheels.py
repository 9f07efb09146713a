"""Wheels: built from the unpacked source distribution, audited, looked into, tried out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from steps import ROOT, Failed, call, environment, surroundings, version

LARGEST = 15_000_000  # bytes
# With sm_100 and sm_120 a wheel is 18 MB. The driver compiles PTX there, a kernel once.
ARCHITECTURES = "80;90a"
BINARY = ("--only-binary", ":all:", "--no-compile")
NAMES = "api arguments gemm_tensor transpose banks trace_rows"
TESTS = [f"tests/test_{name}.py" for name in NAMES.split()]
NEEDED_BY_TESTS = ("pytest", "pytest-xdist", "pytest-benchmark", "hypothesis", "ml_dtypes")
# The oldest Python runs with the oldest NumPy that is allowed, the others with the newest.
OLDEST_WITH = {"3.10": ("numpy==2.0.0",)}
# In one process, so that what turns the GIL on there is seen.
RUN_TESTS = """if True:
    import pytest, sys
    failed = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[1:]])
    print("GIL", "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off")
    sys.exit(failed)
"""
LINK = "-shared -s"  # without symbols and line numbers
MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine of an ELF file


def find_all(names: list[str], found: dict[str, Path]) -> str:
    """Fills `found` by short names: 3.12, 3.14t."""
    code = (
        "import sys, sysconfig; t = sysconfig.get_config_var('Py_GIL_DISABLED'); "
        "print('%d.%d' % sys.version_info[:2] + 't' * bool(t))"
    )
    for name in names:
        python = Path(name).absolute() if "/" in name else interpreter(name)
        found[call(python, "-c", code, where=ROOT).strip()] = python
    return " ".join(found)


def interpreter(version: str) -> Path:
    """Of a version; 3.14t is free-threaded."""
    pyenv = Path.home() / ".pyenv" / "versions"
    named = shutil.which(f"python{version}")
    found = pyenv.glob(f"{version.rstrip('t')}.*/bin/python{version}")
    for candidate in [*([Path(named)] if named else []), *found]:
        if not subprocess.run([candidate, "-c", ""], capture_output=True).returncode:
            return candidate  # and not pyenv's word that it is not chosen
    raise Failed(f"no python{version} on PATH or in pyenv; give its path")


def in_folder(folder: Path) -> Path:
    [wheel] = folder.glob("*.whl")
    return wheel


def path_without_nvcc() -> str:
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(f for f in folders if not os.access(Path(f, "nvcc"), os.X_OK))


def compiled(said: str) -> tuple[str, str]:
    """What a build says of the kernel images, and by which compiler."""
    images = re.search(r"smemkern: (\d+ kernel images .*), (\d+ of them) .* by (\S+)", said)
    if images is None:
        raise Failed("the build says nothing of kernel images")
    return f"{images[1]}, {images[2]} compiled", images[3]


def build(python: Path, source: Path, work: Path) -> str:
    """In an isolated environment, by NVIDIA's compiler wheels whatever this machine has."""
    own = environment(python, work / "venv")
    linker = f"{os.environ.get('CC', 'cc')} {LINK}"  # a Python's own may name the folder it is in
    env = surroundings(
        PATH=path_without_nvcc(),
        LDSHARED=linker,
        SMEMKERN_CUDA_ARCHS=ARCHITECTURES,
        SMEMKERN_CPU="all",
    )
    command = (own, "-m", "pip", "wheel", "-v", "--no-deps", "--wheel-dir", work / "built", source)
    images, compiler = compiled(call(*command, where=work, env=env))
    if "site-packages" not in compiler:
        raise Failed(f"the images are by {compiler}, not by the wheels' nvcc")
    return f"{in_folder(work / 'built').name}: {images}"


def audit(tools: Path, work: Path) -> str:
    """What it links to is everywhere from some glibc on, which its name says then."""
    env = surroundings(PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    built, audited = in_folder(work / "built"), work / "audited"
    repair = (tools / "auditwheel", "repair", "--wheel-dir", audited, built)
    call(*repair, where=work, env=env)
    if "manylinux" not in (name := in_folder(audited).name):
        raise Failed(f"auditwheel made {name}, which is for no manylinux")
    call(tools / "twine", "check", "--strict", audited / name, where=work)
    return name


def look_into(folder: Path, source: Path) -> str:
    wheel = in_folder(folder)
    size = wheel.stat().st_size
    if size > LARGEST:
        raise Failed(f"{size / 1e6:.1f} MB, where {LARGEST / 1e6:.0f} are the most")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [library] = [name for name in names if name.startswith("smemkern/_core.") and ".so" in name]
        code = archive.read(library)
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        described = archive.read(metadata).decode()
    kernels = source / "csrc" / "kernels"
    wanted = {
        f"smemkern/kernels/{file.relative_to(kernels)}"
        for file in kernels.rglob("*")
        if file.is_file()
    }
    package = source / "smemkern"
    wanted |= {
        str(file.relative_to(source))
        for kind in ("py", "pyi")
        for file in package.rglob(f"*.{kind}")
    }
    wanted |= {"smemkern_pytest.py", "smemkern/py.typed", "smemkern/timings.json"}
    if missing := sorted(wanted - set(names)):
        raise Failed(f"missing: {' '.join(missing)}")
    strange = [
        n
        for n in names
        if not re.match(r"smemkern/|smemkern_pytest\.py$|smemkern-[^/]*\.dist-info/", n)
    ]
    if strange:
        raise Failed(f"not smemkern's: {' '.join(strange)}")
    if not any(name.endswith("licenses/LICENSE") for name in names):
        raise Failed("no LICENSE")
    if f"\nVersion: {version()}\n" not in described:
        raise Failed(f"METADATA does not say Version: {version()}")
    if str(source).encode() in code or str(Path.home()).encode() + b"/" in code:
        raise Failed(f"{library} has paths of this machine in it")
    machine = next(name for name in MACHINES if wheel.stem.endswith(name))
    if int.from_bytes(code[18:20], "little") != MACHINES[machine]:
        raise Failed(f"{library} is not for {machine}")
    images = sum(name.endswith(".fatbin") for name in names)
    return f"{size / 1e6:.1f} MB, {images} kernel images"


def try_out(name: str, python: Path, audited: Path, work: Path) -> str:
    """In a new environment, with nothing but its own programs on PATH, outside the clone."""
    own = environment(python, work / "test")
    env = surroundings(PATH=str(own.parent), PYTHONWARNINGS="error::RuntimeWarning")
    place = with_tests(work / "place")
    install = (own, "-m", "pip", "install", "-q", *BINARY)

    call(*install, in_folder(audited), *OLDEST_WITH.get(name, ()), where=place, env=env)
    call(own, "-m", "smemkern", "demo", where=place, env=env)
    call(*install, *NEEDED_BY_TESTS, where=place, env=env)
    said = call(own, "-c", RUN_TESTS, *TESTS, where=place, env=env)
    passed, gil = said.splitlines()[-2:]
    if gil != ("GIL off" if name.endswith("t") else "GIL on"):
        raise Failed(f"after the tests Python {name} says: {gil}")
    numpy = call(own, "-c", "import numpy; print(numpy.__version__)", where=place, env=env).strip()
    return f"demo; {passed.strip('= ')}; NumPy {numpy}, {gil}"


def with_tests(place: Path) -> Path:
    """A new folder with the tests and pytest's settings, and no smemkern to import by mistake."""
    place.mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", place)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests", place / "tests", ignore=ignored)
    return place
