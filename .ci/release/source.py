"""The tree that a release is made of, and its source distribution."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

from steps import ROOT, Failed, call, version

NOT_SHIPPED = (".gitignore",)


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


def build(tools: Path, dist: Path) -> str:
    call(tools / "python", "-m", "build", "--sdist", "--outdir", dist, ROOT, where=dist)
    call(tools / "twine", "check", "--strict", archive(dist), where=ROOT)
    return f"{archive(dist).name}, {archive(dist).stat().st_size / 1e6:.1f} MB"


def archive(dist: Path) -> Path:
    return dist / f"smemkern-{version()}.tar.gz"


def is_complete(dist: Path) -> str:
    """Every file that git has, nothing that it has not."""
    with tarfile.open(archive(dist)) as tar:
        held = {member.name.partition("/")[2] for member in tar if not member.isdir()}
    tracked = set(call("git", "ls-files", where=ROOT).split("\n")) - {"", *NOT_SHIPPED}
    made = {name for name in held if name in ("PKG-INFO", "setup.cfg") or ".egg-info" in name}
    if missing := sorted(tracked - held):
        raise Failed(f"missing: {' '.join(missing)}: add them to MANIFEST.in")
    if extra := sorted(held - tracked - made):
        raise Failed(f"too many: {' '.join(extra)}: take them out in MANIFEST.in")
    return f"{len(tracked)} files"


def unpack(dist: Path, work: Path, images_of_clone: bool) -> Path:
    """The folder that every wheel is built in. The first one compiles the kernel images there; they
    do not depend on the Python, and the build takes them for the others, as it does in a clone,
    because each lies with the digest of what it was made of."""
    with tarfile.open(archive(dist)) as tar:
        tar.extractall(work, filter="data")
    source = work / f"smemkern-{version()}"
    stamps = ROOT / "build" / "images.json"
    if images_of_clone and stamps.exists():  # it has been built in
        (source / "build").mkdir()
        shutil.copy(stamps, source / "build")
        shutil.copytree(ROOT / "smemkern" / "images", source / "smemkern" / "images")
    return source
