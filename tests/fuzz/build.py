r"""Compiles the fuzz targets, each from the sources it is about, with AddressSanitizer and UBSan.

    python tests/fuzz/build.py FOLDER            with clang: for libFuzzer
    python tests/fuzz/build.py FOLDER --replay   with any compiler: runs files and their mutations
    python tests/fuzz/build.py FOLDER --short    the first if there is clang, else the second; then
                                                 all programs run for some seconds, as in CI

FOLDER/ptx is what fuzz_ptx begins with: the texts that libFuzzer has kept (corpus.tar.xz), those
of tests/corpus/ptx, and random modules, right ones and some with a mistake (module_writer.py and
module_mistakes.py in tests/emu): --modules of them, from --seed on. A long run, which keeps what
it finds in FOLDER/found:

    FOLDER/fuzz_ptx -seed=1 -max_len=16000 -timeout=25 -rss_limit_mb=3000 \
        -malloc_limit_mb=6000 FOLDER/found FOLDER/ptx
    FOLDER/fuzz_core -seed=1 -max_len=600 -timeout=25 FOLDER/found_core

validation/fuzz.py does so, and keeps a record.
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
from random import Random

import image_seeds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CSRC = ROOT / "csrc"
MOST_BYTES = 16000  # of an input
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
CHECKED = "-DEMU_CHECKED"  # canaries around what kernels reach: csrc/emu/base/guarded.h
# Not -fsanitize=fuzzer-no-link: that looks at each comparison, too, at half of the executions.
COVERAGE = "-fsanitize-coverage=inline-8bit-counters,pc-table"
TARGETS = {
    "fuzz_ptx": ["fuzz_ptx.c", "mutate_lines.c"],
    "fuzz_core": ["fuzz_core.c", "../pipeline/task_order.c"],
    "fuzz_image": ["fuzz_image.c", *sorted(map(str, CSRC.glob("driver/*.c")))],
}
SEEDS = {"fuzz_ptx": "ptx", "fuzz_image": "images"}  # the folder of what a target begins with


def sources() -> list[Path]:
    """All of csrc that knows neither Python nor a driver."""
    return [
        *sorted(CSRC.glob("emu/**/*.c")),
        *sorted([*CSRC.glob("core/*.c"), *CSRC.glob("pipeline/plan/*.c")]),
        *(CSRC / "cuda" / f"{name}.c" for name in ("cache", "includes", "sha256")),
    ]


def registry_rows(folder: Path) -> Path:
    """The table of variants, as the build makes C of it."""
    sys.path.insert(0, str(ROOT))
    from buildtools import registry, rows_c

    path = folder / "registry_rows.c"
    path.write_text(rows_c.c_source(registry.read(CSRC / "kernels")))
    return path


def modules(texts: Path, count: int, seed: int) -> None:
    """Random modules, small ones: half of them with a mistake of any kind, half of them right."""
    sys.path.append(str(ROOT / "tests" / "emu"))
    import module_mistakes
    from module_writer import HEADER, Module

    kinds = module_mistakes.kinds()
    for k in range(seed, seed + count // 2):
        text = Module(k, k % 2 == 0, small=True).text()
        mistake = module_mistakes.written(kinds[k % len(kinds)], HEADER, Random(k))
        for name, module in (("module", text), ("mistake", mistake)):
            if len(module) < MOST_BYTES:
                (texts / f"{name}{k}.ptx").write_text(module)


def corpus(folder: Path, count: int, seed: int) -> Path:
    """The texts that fuzz_ptx begins with."""
    texts = folder / SEEDS["fuzz_ptx"]
    texts.mkdir(parents=True, exist_ok=True)
    with tarfile.open(HERE / "corpus.tar.xz") as archive:
        for member in archive:
            (texts / Path(member.name).name).write_bytes(archive.extractfile(member).read())
    for path in (ROOT / "tests" / "corpus" / "ptx").glob("*.ptx"):
        shutil.copy(path, texts)
    modules(texts, count, seed)
    return texts


def images(folder: Path, texts: Path, seed: int) -> None:
    """What fuzz_image begins with."""
    target = folder / SEEDS["fuzz_image"]
    target.mkdir(exist_ok=True)
    some = Random(seed).sample(sorted(texts.iterdir()), 30)
    image_seeds.write(target, [path.read_bytes() for path in some], seed)


def lines(texts: Path) -> str:
    """Each line of the texts that differs from those before in more than names and numbers; those
    of calls and what they name come first."""
    kinds: dict[str, str] = {}
    varying = re.compile(r"[%$]\w+|\b\d\w*|\b(?<!\.)[A-Za-z]+\d\w*")
    calls = re.compile(r"call|targets|prototype|\.func|\.param .*;|\(.*\)|= *{?[a-z]")
    for path in sorted(texts.iterdir()):
        for line in path.read_text(errors="replace").splitlines():
            line = line.strip()
            if 0 < len(line) < 300 and line.isascii():
                kinds.setdefault(varying.sub("#", line), line)
    ordered = sorted(kinds.values(), key=lambda line: not calls.search(line))
    few = sum(bool(calls.search(line)) for line in ordered)
    quoted = ['"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n",' for line in ordered]
    table = "static const char *const lines[] = {\n" + "\n".join(quoted) + "\n};\n"
    return f"enum {{ n_lines_of_calls = {few} }};\n{table}"


def build(
    folder: Path, replay: bool, only: list[str] | None = None, count: int = 200, seed: int = 1
) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which(os.environ.get("CC", "gcc").split()[0] if replay else "clang")
    if not compiler:
        raise SystemExit("no C compiler" if replay else "no clang; --replay does without it")
    texts = corpus(folder, count, seed)
    (folder / "lines.h").write_text(lines(texts))
    images(folder, texts, seed)
    flags = ["-std=gnu17", "-O1", "-g1", CHECKED, *SANITIZERS, f"-I{CSRC}", f"-I{folder}", "-w"]
    if not replay:
        flags.append(COVERAGE)
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
        command = [compiler, *SANITIZERS, *common, *own, "-o", program, "-lm", "-pthread", "-ldl"]
        subprocess.run(command, check=True)
        programs.append(program)
    return programs


SECONDS = 10  # of each program's short run


def short(folder: Path) -> None:
    """Fails if a program stops with a report."""
    replay = shutil.which("clang") is None
    for program in build(folder, replay):
        seeds = folder / SEEDS[program.name] if program.name in SEEDS else None
        inputs = sorted(map(str, seeds.iterdir())) if seeds else []
        if replay:
            options = ["-runs=5", "-seed=1", *(inputs[::10] or [str(HERE / "fuzz_core.c")])]
        else:
            found = folder / f"found_{program.name}"
            found.mkdir()
            options = [
                f"-max_total_time={SECONDS}",
                "-seed=1",
                f"-max_len={MOST_BYTES}",
                "-timeout=25",
            ]
            options += ["-rss_limit_mb=3000", "-malloc_limit_mb=6000", found]
            options += [seeds] if seeds else []
        subprocess.run([program, *options], check=True, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--modules", type=int, default=2000, help="random modules in the corpus")
    parser.add_argument("--seed", type=int, default=1, help="of the first random module")
    given = parser.parse_args()
    if given.short:
        return short(given.folder)
    for program in build(given.folder, given.replay, count=given.modules, seed=given.seed):
        print(program)


if __name__ == "__main__":
    main()
