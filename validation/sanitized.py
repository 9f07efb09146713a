"""Builds a copy of the tree with a sanitizer, and runs tests or calls there.

    python validation/sanitized.py address                 # the suite: AddressSanitizer, UBSan
    python validation/sanitized.py address --folder F -- tests/test_gemm.py -n 1
    python validation/sanitized.py leaks -- --calls 10000   # validation/leaks.py: LeakSanitizer
    python validation/sanitized.py thread -- --count 40 --most 12  # load.py: ThreadSanitizer
    python validation/sanitized.py driver -- 60 16          # the fake driver's threads, with it too

Arguments after -- go to pytest, leaks.py, load.py or tests/cuda/fake_threads.py. Needs gcc, and the
kernel images of an ordinary build. --folder keeps the copy, so that the next run compiles little.
Python is not instrumented, but allocates with malloc, which AddressSanitizer intercepts.
ThreadSanitizer finds most with a free-threaded Python. Prints reports at the end, and fails if
there are any. A report of UBSan ends its process, and so fails the test. --results FOLDER adds a
row to FOLDER/sanitizers.json, replacing an earlier one of the same kind.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
import records
from records import ROOT


class Sanitizer(NamedTuple):
    flags: str
    libraries: tuple[str, ...]  # loaded before all others
    options: dict[str, str]


BOTH = "-fsanitize=address,undefined -fno-sanitize-recover=undefined", ("libasan.so", "libubsan.so")
# Python and NumPy are not instrumented: neither their locks nor their memory accesses are seen.
THREAD = Sanitizer(
    *("-fsanitize=thread", ("libtsan.so",)),
    {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:history_size=4"},
)
KINDS = {
    "address": Sanitizer(
        *BOTH,
        {
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
        },
    ),
    "leaks": Sanitizer(
        *BOTH,
        {"ASAN_OPTIONS": "detect_leaks=1:fast_unwind_on_malloc=0", "PYTHONMALLOC": "malloc"},
    ),
    "thread": THREAD,
    "driver": THREAD,
}
# Tests that cannot run under AddressSanitizer, and the reasons.
LEFT_OUT = {
    "tests/test_explorer.py": "starts a browser, which does not start with the sanitizer preloaded",
    "tests/test_lab_page.py": "starts a browser, too",
    "tests/test_api.py::test_import_is_cheap": "has a time limit",
    "tests/test_allocations.py": "replaces the sanitizer's allocator with its own",
    "tests/test_sandbox.py::test_no_kernel_takes_all_memory": (
        "measures the process's memory, most of which the sanitizer uses"
    ),
}


def copied(folder: Path) -> None:
    """Copies the files that git tracks, and the kernel images of an ordinary build."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    made = [
        p.relative_to(ROOT) for n in ("images", "kernels") for p in ROOT.glob(f"smemkern/{n}/**/*")
    ]
    if not made:
        raise SystemExit("found no kernel images: run `pip install -e .` first")
    for name in [*listed.stdout.decode().split("\0")[:-1], *made, "build/images.json"]:
        source, target = ROOT / name, folder / name
        if source.is_file() and not (target.exists() and filecmp.cmp(source, target, False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)  # with a new time, so that its targets are rebuilt


def built(folder: Path, kind: str) -> None:
    copied(folder)
    flags = KINDS[kind].flags
    compiled = f"{flags} -fno-omit-frame-pointer -DEMU_CHECKED"  # canaries: csrc/emu/base/guarded.h
    environment = os.environ | {"CFLAGS": compiled, "LDFLAGS": flags}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    if kind == "driver":
        fakes = sorted((folder / "tests" / "cuda").glob("fake_*.c"))
        shared = ["-std=gnu17", "-O1", "-g", "-shared", "-fPIC", "-fvisibility=hidden", flags]
        library = ["-Wl,-soname,libcuda.so.1", "-pthread", "-o", folder / "libcuda.so.1"]
        subprocess.run(["gcc", *shared, *fakes, *library], check=True)


def path_of(library: str) -> str:
    command = ["gcc", f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def environment(folder: Path, kind: str, reports: Path) -> dict[str, str]:
    told = {
        name: f"{value}:log_path={reports / name}" if name.endswith("_OPTIONS") else value
        for name, value in KINDS[kind].options.items()
    }
    if kind == "driver":
        told["LD_LIBRARY_PATH"] = str(folder)
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(map(path_of, KINDS[kind].libraries)),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")])),
        **told,
    }


def command_of(kind: str, reports: Path, given: list[str]) -> list[str]:
    if kind == "address":
        left_out = [f"--deselect={name}" for name in LEFT_OUT]
        return ["-m", "pytest", "-q", "--all", "-p", "no:cacheprovider", *left_out, *given]
    if kind == "leaks":
        return ["validation/leaks.py", *given]
    if kind == "driver":
        return ["tests/cuda/fake_threads.py", *(given or ["60", "16"])]
    return ["validation/load.py", "--device", "emu", "--results", str(reports.parent), *given]


def ours(report: str) -> list[str]:
    """LeakSanitizer's leaks with the extension in the stack: Python never frees some of its own."""
    leaks = re.split(r"\n(?=(?:Direct|Indirect) leak)", report)[1:]
    return [leak for leak in leaks if "_core.cpython" in leak]


def shown(command: list[str], **keywords: object) -> tuple[int, list[str]]:
    """Runs a command and prints its output; returns its status and the last lines."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **keywords
    )
    lines: list[str] = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines = [*lines[-50:], line.strip()]
    return process.wait(), lines


def outcome(kind: str, lines: list[str], folder: Path) -> str:
    """The line of the output that says how much ran."""
    if kind == "thread":
        [path] = folder.glob("load-emu*.json")
        load = records.load(path)["at_once"]
        return f"{load['threads']} threads, {load['calls']} calls, {len(load['failed'])} failed"
    if kind == "address":
        lines = [line.strip("= ") for line in lines if re.search(r"\d (passed|failed).* in ", line)]
    return lines[-1] if lines else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--folder", type=Path, help="for the copy; else a temporary one")
    parser.add_argument("--results", type=Path, help="a folder")
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, given = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    with tempfile.TemporaryDirectory() as temporary:
        folder, reports = options.folder or Path(temporary, "tree"), Path(temporary, "reports")
        reports.mkdir()
        built(folder.resolve(), options.kind)
        command = [sys.executable, *command_of(options.kind, reports, given)]
        started = time.monotonic()
        own = environment(folder.resolve(), options.kind, reports)
        status, lines = shown(command, cwd=folder, env=own)
        row = {
            "kind": options.kind,
            "given": given,
            "said": outcome(options.kind, lines, Path(temporary)),
            "seconds": round(time.monotonic() - started),
            "compiler": records.first_line("gcc", "--version"),
            **records.facts(),
        }
        texts = [path.read_text(errors="replace") for path in sorted(reports.iterdir())]
        if options.kind == "leaks":
            texts = [leak for text in texts for leak in ours(text)]
            status = 0  # LeakSanitizer's, for memory that Python never frees
        for text in texts:
            print(text)
        print(f"{len(texts)} reports of {options.kind}; status {status}")
        if options.results:
            row |= {"reports": len(texts), "status": status}
            records.put_row(options.results / "sanitizers.json", row, "kind")
    return 1 if texts or status else 0


if __name__ == "__main__":
    sys.exit(main())
