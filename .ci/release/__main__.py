"""What has to hold before a release, as one command; it uploads nothing.

    python .ci/release                        every Python that a release has wheels for
    python .ci/release 3.12 /opt/bin/python3.14t      these: versions, or paths
    python .ci/release --rehearsal 3.11       before the changelog has its date
    python .ci/release --arm64 FOLDER         and a wheel for aarch64, tried out by qemu

Checks that the tree, the version, the changelog and the tag agree; builds the source distribution;
from it, unpacked, one wheel a Python, each in an isolated environment, with NVIDIA's compiler
wheels; audits them (auditwheel: manylinux), looks at what is in them, and installs each
in a new environment without a compiler, where the demo and a part of the tests run from outside the
clone. Builds once more with this machine's nvcc, if it has one. Tries each extra. What passed is in
build/release/dist. Prints a table, and exits with 1 if anything failed.

Python 3.11 or newer, pip and a C and C++ compiler; what else it needs goes into its own folder.
CONTRIBUTING.md says where FOLDER comes from.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import arm64
import extras
import source
import wheels
from steps import ROOT, Report, call, environment, surroundings

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.14t")
WORK = ROOT / "build" / "release"  # ignored by git
DIST = WORK / "dist"


def install_tools() -> str:
    own = environment(sys.executable, WORK / "tools")
    call(own, "-m", "pip", "install", "-q", "-U", "pip>=25.1", where=WORK)
    call(own, "-m", "pip", "install", "-q", "--group", "release", where=ROOT)
    return call(own.parent / "auditwheel", "--version", where=WORK).split(" installed")[0]


def make_wheel(report: Report, name: str, python: Path, tools: Path, unpacked: Path) -> Path | None:
    """The steps of one wheel, which is in DIST if all of them passed."""
    work = WORK / name
    audited = work / "audited"
    passed = (
        report.step(f"{name} wheel", wheels.build, python, unpacked, work)
        and report.step(f"{name} audit", wheels.audit, tools, work)
        and report.step(f"{name} contents", wheels.look_into, audited, unpacked)
        and report.step(f"{name} tests", wheels.try_out, name, python, audited, work)
    )
    return Path(shutil.copy(wheels.in_folder(audited), DIST)) if passed else None


def make_arm64_wheel(
    report: Report, root: Path, pythons: dict[str, Path], tools: Path, unpacked: Path
) -> None:
    python = pythons[arm64.version_of(root)]
    work = WORK / "aarch64"
    audited = work / "audited"
    if (
        report.step("aarch64 wheel", arm64.build, python, unpacked, root, work)
        and report.step("aarch64 audit", wheels.audit, tools, work)
        and report.step("aarch64 contents", wheels.look_into, audited, unpacked)
        and report.step("aarch64 tests", arm64.try_out, tools, audited, root, work)
    ):
        shutil.copy(wheels.in_folder(audited), DIST)


def build_with_nvcc(python: Path) -> str:
    """From the archive, as pip does for who has no wheel; PTX only, a third of the time."""
    own = environment(python, WORK / "with-nvcc")
    env = surroundings(SMEMKERN_CUDA_ARCHS="none")
    said = call(own, "-m", "pip", "install", "-v", source.archive(DIST), where=WORK, env=env)
    call(own, "-m", "smemkern", "demo", where=WORK, env=env)
    images, compiler = wheels.compiled(said)
    return f"{images} by {compiler}; demo"


def steps(names: list[str], rehearsal: bool, root: Path | None, report: Report) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    DIST.mkdir(parents=True)
    if rehearsal:
        report.leave_out("tree, changelog, tag", "a rehearsal")
    else:
        report.step("tree", source.tree_is_clean)
        report.step("changelog", source.changelog_names_version)
        report.step("tag", source.tag_fits)

    tools, pythons = WORK / "tools" / "bin", dict[str, Path]()
    if not (
        report.step("Pythons", wheels.find_all, names, pythons)
        and report.step("tools", install_tools)
        and report.step("sdist", source.build, tools, DIST)
        and report.step("sdist's files", source.is_complete, DIST)
    ):
        return
    unpacked = source.unpack(DIST, WORK / "source", images_of_clone=rehearsal)
    made = {
        name: wheel
        for name, python in pythons.items()
        if (wheel := make_wheel(report, name, python, tools, unpacked))
    }
    if lacking := arm64.lacks(root, pythons):
        report.leave_out("aarch64", lacking)
    else:
        make_arm64_wheel(report, root, pythons, tools, unpacked)

    first = next(iter(pythons.values()))
    if shutil.which("nvcc"):
        report.step("with nvcc", build_with_nvcc, first)
    else:
        report.leave_out("with nvcc", "there is none here")
    if made:
        name, wheel = next(iter(made.items()))
        for extra in extras.PROGRAMS:
            report.step(
                f"[{extra}]", extras.try_out, extra, pythons[name], wheel, WORK / "extras" / extra
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="*", default=list(PYTHONS), help="versions, or paths")
    parser.add_argument(
        "--rehearsal",
        action="store_true",
        help="of any commit; kernel images that fit are taken from the clone",
    )
    parser.add_argument("--arm64", type=Path, metavar="FOLDER", help="with an arm64 Python")
    options = parser.parse_args()
    report = Report()
    steps(options.python, options.rehearsal, options.arm64 and options.arm64.resolve(), report)
    print(f"\n{report.table()}\n")
    passed = f"passed: upload {DIST}, which this does not do"
    print("FAILED" if report.failed else "a rehearsal passed" if options.rehearsal else passed)
    return report.failed


if __name__ == "__main__":
    sys.exit(main())
