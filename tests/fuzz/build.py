r"""Compiles the fuzz targets, each from the sources it is about, with AddressSanitizer and UBSan.

    python tests/fuzz/build.py FOLDER            with clang: for libFuzzer
    python tests/fuzz/build.py FOLDER --replay   with any compiler: runs files and their mutations
    python tests/fuzz/build.py FOLDER --short    the first if there is clang, else the second; then
                                                 both programs run for some seconds, as in CI

FOLDER/ptx is what fuzz_ptx begins with: the texts that libFuzzer has kept (corpus.tar.xz), and
those of tests/corpus/ptx. A long run, which keeps what it finds in FOLDER/found:

    FOLDER/fuzz_ptx -fork=2 -seed=1 -max_len=3000 -timeout=25 -rss_limit_mb=3000 \
        -malloc_limit_mb=6000 FOLDER/found FOLDER/ptx
    FOLDER/fuzz_core -fork=2 -seed=1 -max_len=600 -timeout=25 FOLDER/found_core
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CSRC = ROOT / "csrc"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CHECKED = "-DEMU_CHECKED"  # canaries around what kernels reach: csrc/emu/guarded.h
TARGETS = {
    "fuzz_ptx": ["fuzz_ptx.c", "mutate_lines.c"],
    "fuzz_core": ["fuzz_core.c", "../flows/flow_order.c"],
}


def sources() -> list[Path]:
    """All of csrc that knows neither Python nor a driver; some files are parts of others."""
    parts = {*CSRC.glob("emu/alu_*.c"), *CSRC.glob("emu/matrix_*.c")}
    files = {*CSRC.glob("emu/*.c"), *CSRC.glob("core/*.c")} - parts
    return [
        *sorted(files),
        *(CSRC / "cuda" / f"{name}.c" for name in ("cache", "includes", "sha256")),
    ]


def registry_rows(folder: Path) -> Path:
    """The table of variants, as the build makes C of it."""
    sys.path.insert(0, str(ROOT))
    from buildtools import registry, rows_c

    path = folder / "registry_rows.c"
    path.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    return path


def corpus(folder: Path) -> Path:
    """The texts that fuzz_ptx begins with."""
    texts = folder / "ptx"
    texts.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / "corpus.tar.xz") as archive:
        for member in archive:
            (texts / Path(member.name).name).write_bytes(archive.extractfile(member).read())
    for path in (ROOT / "tests" / "corpus" / "ptx").glob("*.ptx"):
        shutil.copy(path, texts)
    return texts


def lines(texts: Path) -> str:
    """Each line of the texts that differs from those before in more than names and numbers."""
    kinds: dict[str, str] = {}
    for path in sorted(texts.iterdir()):
        for line in path.read_text(errors="replace").splitlines():
            line = line.strip()
            if 0 < len(line) < 200 and line.isascii():
                kinds.setdefault(re.sub(r"[%$]\w+|\b\d\w*", "#", line), line)
    quoted = [
        '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n",' for line in kinds.values()
    ]
    return "static const char *const lines[] = {\n" + "\n".join(quoted) + "\n};\n"


def build(folder: Path, replay: bool, only: list[str] | None = None) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which(os.environ.get("CC", "gcc").split()[0] if replay else "clang")
    if not compiler:
        raise SystemExit("no C compiler" if replay else "no clang; --replay does without it")
    (folder / "lines.h").write_text(lines(corpus(folder)))
    flags = ["-std=gnu17", "-O1", "-g1", CHECKED, *SANITIZERS, f"-I{CSRC}", f"-I{folder}", "-w"]
    if not replay:
        flags.append("-fsanitize=fuzzer-no-link")
    objects = folder / "objects"
    objects.mkdir(exist_ok=True)

    def compile_one(source: Path) -> Path:
        target = objects / f"{source.parent.name}_{source.stem}.o"
        subprocess.run([compiler, *flags, "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        common = list(pool.map(compile_one, [*sources(), registry_rows(folder)]))
    programs = []
    for name in only or TARGETS:
        own = [compile_one(HERE / file) for file in TARGETS[name]]
        own += [compile_one(HERE / "replay.c")] if replay else ["-fsanitize=fuzzer"]
        program = folder / name
        command = [compiler, *SANITIZERS, *common, *own, "-o", program, "-lm", "-pthread"]
        subprocess.run(command, check=True)
        programs.append(program)
    return programs


SECONDS = 10  # of each program's short run


def short(folder: Path) -> None:
    """Fails if a program stops with a report."""
    replay = shutil.which("clang") is None
    texts = folder / "ptx"
    for program in build(folder, replay):
        inputs = sorted(map(str, texts.iterdir())) if program.name == "fuzz_ptx" else []
        if replay:
            options = ["-runs=5", "-seed=1", *(inputs[::10] or [str(HERE / "fuzz_core.c")])]
        else:
            found = folder / f"found_{program.name}"
            found.mkdir()
            options = [f"-max_total_time={SECONDS}", "-seed=1", "-max_len=3000", "-timeout=25"]
            options += ["-rss_limit_mb=3000", "-malloc_limit_mb=6000", found]
            options += [texts] if inputs else []
        subprocess.run([program, *options], check=True, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    if given.short:
        return short(given.folder)
    for program in build(given.folder, given.replay):
        print(program)


if __name__ == "__main__":
    main()
