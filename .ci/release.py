"""What has to hold before a release, as one command; it uploads nothing.

    python .ci/release.py                       every Python that a release has wheels for
    python .ci/release.py 3.12 3.14t            these, or paths of interpreters
    python .ci/release.py --out dist --reuse-images

Checks that the tree, the version, the changelog and the tag agree; builds the source distribution;
from it, unpacked, one wheel a Python, each in an isolated environment; audits them (auditwheel:
manylinux, stripped), looks at what is in them, and installs each in a fresh environment without a
compiler, where the demo and a part of the tests run from outside the clone. One more wheel is built
as by a user who has no nvcc. Prints a table, and exits with 1 if anything failed.

Python 3.11 or newer, pip and a C and C++ compiler; what else it needs goes into its own folder.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")
LARGEST_WHEEL = 15_000_000  # bytes
# Of wheels: with sm_100 and sm_120 they are 18 MB. The driver compiles PTX there, a kernel once.
ARCHITECTURES = "80;90a"
TESTS = "test_api test_arguments test_gemm_orders test_transpose test_banks test_trace_rows"
NOT_SHIPPED = (".gitignore",)


class Failed(Exception):
    """A check that did not hold, and why."""


class Report:
    """Steps by name: passed, failed or left out, and a word on each."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, float]] = []

    def step(self, name: str, run: Callable[[], str | None]) -> bool:
        print(f"==> {name}", flush=True)
        start = time.monotonic()
        try:
            said, outcome = run() or "", "passed"
        except (Failed, OSError) as error:
            said, outcome = str(error), "FAILED"
        self.rows.append((name, outcome, said, time.monotonic() - start))
        print(f"    {outcome}: {said}", flush=True)
        return outcome == "passed"

    def table(self) -> str:
        width = max(len(row[0]) for row in self.rows)
        return "\n".join(
            f"{name:{width}}  {outcome}  {seconds:6.1f} s  {(said.splitlines() or [''])[0]}"
            for name, outcome, said, seconds in self.rows
        )

    @property
    def failed(self) -> bool:
        return any(outcome == "FAILED" for _, outcome, _, _ in self.rows)


def call(*command: str | Path, where: Path, env: dict[str, str] | None = None) -> str:
    """What the command prints; Failed, with the end of that, if it does not succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=where,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-25:])
        raise Failed(f"{Path(command[0]).name} {command[1]} exits with {done.returncode}\n{end}")
    return done.stdout


# ---- the tree


def version() -> str:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def tree_is_clean() -> str:
    if changed := call("git", "status", "--porcelain", where=ROOT).strip():
        raise Failed(f"not committed: {' '.join(changed.split())}")
    return call("git", "rev-parse", "--short=12", "HEAD", where=ROOT).strip()


def changelog_names_version() -> str:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"(?m)^## (\S+) \((.*)\)$", text)
    if heading is None or heading[1] != version():
        found = heading[0] if heading else "no heading"
        raise Failed(f"CHANGELOG.md begins with {found!r}, pyproject.toml says {version()}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2]):
        raise Failed(f"CHANGELOG.md: {heading[1]} is ({heading[2]}); write the day, as 2026-01-31")
    return heading[0][3:]


def tag_fits() -> str:
    tag = f"v{version()}"
    if tag not in call("git", "tag", where=ROOT).split():
        return f"{tag} is not there yet: git tag -a {tag}, when all of this has passed"
    if tag not in call("git", "tag", "--points-at", "HEAD", where=ROOT).split():
        raise Failed(f"{tag} is another commit: raise the version in pyproject.toml")
    return tag


# ---- the source distribution


def build_sdist(tools: Path, out: Path) -> str:
    call(tools / "python", "-m", "build", "--sdist", "--outdir", out, ROOT, where=out)
    call(tools / "twine", "check", "--strict", sdist(out), where=ROOT)
    return f"{sdist(out).name}, {sdist(out).stat().st_size / 1e6:.1f} MB"


def sdist(out: Path) -> Path:
    return out / f"smemkern-{version()}.tar.gz"


def sdist_is_complete(out: Path) -> str:
    """Every file that git has, nothing that it has not."""
    with tarfile.open(sdist(out)) as archive:
        members = (name.partition("/")[2] for name in archive.getnames() if "/" in name)
        folders = {m.name.partition("/")[2] for m in archive.getmembers() if m.isdir()}
        held = set(members) - folders
    tracked = set(call("git", "ls-files", where=ROOT).split("\n")) - {"", *NOT_SHIPPED}
    made = {name for name in held if name in ("PKG-INFO", "setup.cfg") or ".egg-info" in name}
    if missing := sorted(tracked - held):
        raise Failed(f"missing: {' '.join(missing)}: add them to MANIFEST.in")
    if extra := sorted(held - tracked - made):
        raise Failed(f"too many: {' '.join(extra)}: take them out in MANIFEST.in")
    return f"{len(tracked)} files"


def unpack(out: Path, work: Path, reuse_images: bool) -> Path:
    shutil.rmtree(work, ignore_errors=True)
    with tarfile.open(sdist(out)) as archive:
        archive.extractall(work, filter="data")
    source = work / f"smemkern-{version()}"
    if reuse_images:  # each with the digest of what it was made of, which the build checks
        (source / "build").mkdir()
        shutil.copy(ROOT / "build" / "images.json", source / "build")
        shutil.copytree(ROOT / "smemkern" / "images", source / "smemkern" / "images")
    return source


# ---- wheels


def interpreter(name: str) -> Path | None:
    """`name` is a version, "3.14t" is free-threaded, or a path."""
    if "/" in name:
        return Path(name)
    pyenv = Path.home() / ".pyenv" / "versions"
    found = [*pyenv.glob(f"{name.rstrip('t')}.*/bin/python{name}")]
    named = shutil.which(f"python{name}")
    for candidate in ([Path(named)] if named else []) + found:
        if not subprocess.run([candidate, "-c", ""], capture_output=True).returncode:
            return candidate
    return None


def build_wheel(python: Path, source: Path, out: Path) -> str:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    own = out / "venv" / "bin" / "python"
    call(python, "-m", "venv", out / "venv", where=out)
    call(own, "-m", "pip", "install", "-q", "build", where=out)
    env = os.environ | {"SMEMKERN_CUDA_ARCHS": ARCHITECTURES}
    call(own, "-m", "build", "--wheel", "--outdir", out, source, where=out, env=env)
    return wheel(out).name


def wheel(folder: Path) -> Path:
    return next(folder.glob("*.whl"))


def audit(tools: Path, raw: Path, out: Path) -> str:
    env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    auditwheel = (tools / "auditwheel", "repair", "--strip", "--wheel-dir", raw / "repaired")
    call(*auditwheel, wheel(raw), where=raw, env=env)
    repaired = wheel(raw / "repaired")
    if "manylinux" not in repaired.name:
        raise Failed(f"auditwheel made {repaired.name}, which is for no manylinux")
    shutil.copy(repaired, out)
    return repaired.name


def look_into(path: Path, source: Path) -> str:
    size = path.stat().st_size
    if size > LARGEST_WHEEL:
        raise Failed(f"{size / 1e6:.1f} MB, where {LARGEST_WHEEL / 1e6:.0f} are the most")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        [library] = [name for name in names if name.startswith("smemkern/_core.") and ".so" in name]
        code = archive.read(library)
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        described = archive.read(metadata).decode()
    kernels = {p.relative_to(source / "csrc").as_posix() for p in source.glob("csrc/kernels/*")}
    wanted = {f"smemkern/{name}" for name in kernels if (source / "csrc" / name).is_file()}
    wanted |= {"smemkern/py.typed", "smemkern/_core.pyi", "smemkern/dask.py"}
    if missing := sorted(wanted - set(names)):
        raise Failed(f"missing: {' '.join(missing)}")
    strange = [n for n in names if not re.match(r"smemkern/|smemkern-[^/]*\.dist-info/", n)]
    if strange:
        raise Failed(f"not smemkern's: {' '.join(strange)}")
    if not any(name.endswith("licenses/LICENSE") for name in names):
        raise Failed("no LICENSE")
    if f"\nVersion: {version()}\n" not in described:
        raise Failed(f"METADATA does not say Version: {version()}")
    if str(source).encode() in code or str(Path.home()).encode() + b"/" in code:
        raise Failed(f"{library} has paths of this machine in it")
    images = sum(name.endswith(".fatbin") for name in names)
    return f"{size / 1e6:.1f} MB, {images} kernel images"


def test_wheel(python: Path, path: Path, work: Path) -> str:
    """In a new environment, with nothing but its own programs on PATH, outside the clone."""
    shutil.rmtree(work, ignore_errors=True)
    venv, place = work / "venv", work / "place"
    place.mkdir(parents=True)
    call(python, "-m", "venv", venv, where=work)
    own = venv / "bin" / "python"
    keep = {k: v for k, v in os.environ.items() if not re.match("CUDA|NVCC|PYTHON|CC$|SMEMKERN", k)}
    env = keep | {"PATH": str(venv / "bin"), "PYTHONWARNINGS": "error::RuntimeWarning"}
    binary = ("--only-binary", ":all:", "--no-compile")

    call(own, "-m", "pip", "install", "-q", *binary, path, where=place, env=env)
    call(own, "-m", "smemkern", "demo", where=place, env=env)
    gil = "import sys, smemkern; print(getattr(sys, '_is_gil_enabled', lambda: True)())"
    with_gil = call(own, "-c", gil, where=place, env=env).strip() == "True"
    threaded = "import sysconfig; print(bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    if with_gil == (call(own, "-c", threaded, where=place, env=env).strip() == "True"):
        raise Failed("importing smemkern turns the GIL on in free-threaded Python")

    needs = ("pytest", "pytest-xdist", "pytest-benchmark", "hypothesis", "ml_dtypes")
    call(own, "-m", "pip", "install", "-q", *binary, *needs, where=place, env=env)
    shutil.copy(ROOT / "pyproject.toml", place)  # pytest's settings
    shutil.copytree(ROOT / "tests", place / "tests")
    files = [f"tests/{name}.py" for name in TESTS.split()]
    said = call(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files, where=place, env=env)
    return f"demo; {said.splitlines()[-1].strip('= ')}"


def build_without_nvcc(python: Path, archive: Path, out: Path) -> str:
    """PTX only, which takes the compiler's wheels and a third of the time."""
    folders = os.environ["PATH"].split(os.pathsep)
    path = os.pathsep.join(f for f in folders if not os.access(Path(f, "nvcc"), os.X_OK))
    keep = {k: v for k, v in os.environ.items() if k not in ("NVCC", "CUDA_HOME", "CUDA_PATH")}
    env = keep | {"PATH": path, "SMEMKERN_CUDA_ARCHS": "none"}
    venv = out / "venv"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    call(python, "-m", "venv", venv, where=out)
    said = call(venv / "bin" / "python", "-m", "pip", "install", "-v", archive, where=out, env=env)
    by = re.search(r"kernel images .* by (\S+)", said)
    if by is None or "site-packages" not in by[1]:
        raise Failed(f"compiled by {by and by[1]}, not by the wheels' nvcc")
    call(venv / "bin" / "python", "-m", "smemkern", "demo", where=out, env=env)
    return "by the wheels' nvcc; demo"


def steps(names: list[str], out: Path, reuse_images: bool, report: Report) -> None:
    work = ROOT / "build" / "release"  # ignored by git
    tools = work / "tools" / "bin"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    out.mkdir(parents=True, exist_ok=True)

    report.step("tree", tree_is_clean)
    report.step("changelog", changelog_names_version)
    report.step("tag", tag_fits)

    def install_tools() -> None:
        call(sys.executable, "-m", "venv", work / "tools", where=work)
        call(tools / "python", "-m", "pip", "install", "-q", "-U", "pip>=25.1", where=work)
        call(tools / "python", "-m", "pip", "install", "-q", "--group", "release", where=ROOT)

    if not report.step("tools", install_tools):
        return
    if not report.step("sdist", lambda: build_sdist(tools, out)):
        return
    report.step("sdist's files", lambda: sdist_is_complete(out))
    source = unpack(out, work / "source", reuse_images)
    pythons = {name: interpreter(name) for name in names}
    for name, python in pythons.items():
        report.step(f"{name} wheel", lambda n=name, p=python: one_wheel(n, p, source, tools, out))
        if report.rows[-1][1] == "passed":
            path = out / report.rows[-1][2]
            report.step(f"{name} contents", lambda w=path: look_into(w, source))
            report.step(f"{name} tests", lambda p=python, w=path: test_wheel(p, w, work / "test"))
    if first := next(filter(None, pythons.values()), None):
        report.step(
            "without nvcc", lambda: build_without_nvcc(first, sdist(out), work / "without-nvcc")
        )


def one_wheel(name: str, python: Path | None, source: Path, tools: Path, out: Path) -> str:
    if python is None:
        raise Failed(f"no python{name} on PATH or in pyenv")
    raw = source.parent / "raw"
    build_wheel(python, source, raw)
    return audit(tools, raw, out)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="*", default=list(PYTHONS), help="versions, or paths")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="for what is built")
    parser.add_argument(
        "--reuse-images", action="store_true", help="take the clone's kernel images: a rehearsal"
    )
    options = parser.parse_args()
    report = Report()
    steps(options.python, options.out.resolve(), options.reuse_images, report)
    print(f"\n{report.table()}\n")
    print("FAILED" if report.failed else f"{options.out} can be uploaded, which this does not do")
    return report.failed


if __name__ == "__main__":
    sys.exit(main())
