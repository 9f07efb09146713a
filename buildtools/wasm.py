"""`python -m buildtools.wasm OUT`: the emulator as one WebAssembly module, OUT/lab.wasm.

csrc/core, csrc/emu and csrc/lab, compiled by clang for wasm32-wasi. The compiler is Zig's, from the
package ziglang: the dependency group `lab` of pyproject.toml. A normal build needs neither.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import registry, rows_c

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
OBJECTS = ROOT / "build" / "wasm"
FOLDERS = ("core", "emu", "lab")
HEADERS = ("lab/api.h",)  # their functions are the module's exports

COMPILE = ["-std=gnu17", "-O3", "-msimd128", "-ffp-contract=off", "-fvisibility=hidden", "-Icsrc"]
COMPILE += ["-mno-bulk-memory"]  # a memory.copy of a register's 128 bytes takes longer than moves
COMPILE += ["-DCPU_VARIANTS=0", "-Wall", "-Wextra", "-Werror"]
# 64-bit sizes must not become 32-bit ones unseen. clang also warns where gcc does not.
COMPILE += ["-Wshorten-64-to-32", "-Wno-bitwise-instead-of-logical"]
STACK_BYTES = 4 << 20  # from address 0 on, so that an overflow traps
MAX_MEMORY_BYTES = 1 << 31
LINK = ["-O3", "-s", "-mexec-model=reactor", f"-Wl,-z,stack-size={STACK_BYTES}"]
LINK += [f"-Wl,--max-memory={MAX_MEMORY_BYTES}", "-Wl,--no-entry"]


class WasmError(RuntimeError):
    """The compiler is missing, or failed."""


def _compiler() -> list[str]:
    command = [sys.executable, "-m", "ziglang"]
    if subprocess.run([*command, "version"], capture_output=True).returncode:
        raise WasmError("the package ziglang is missing: pip install --group lab")
    return [*command, "cc", "-target", "wasm32-wasi"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise WasmError(done.stderr + done.stdout)


def _sources() -> list[Path]:
    generated = OBJECTS / "registry_rows.c"
    text = rows_c.c_source(registry.read(CSRC / "kernels"))
    if not generated.exists() or generated.read_text() != text:
        generated.write_text(text)
    found = [file for name in FOLDERS for file in sorted((CSRC / name).rglob("*.c"))]
    # Those that take longest are begun first.
    return [generated, *sorted(found, key=lambda file: not file.name.startswith("cpu_"))]


def _is_stale(target: Path) -> bool:
    """Whether an object is older than the files that its compiler listed, or this file."""
    listing = target.with_suffix(".d")
    if not target.exists() or not listing.exists():
        return True
    names = listing.read_text().replace("\\\n", " ").split()[1:]
    files = [ROOT / name for name in names] + [Path(__file__)]
    made = target.stat().st_mtime
    return any(not file.exists() or file.stat().st_mtime > made for file in files)


def _compile(compiler: list[str], source: Path) -> Path:
    name = os.path.relpath(source, ROOT)
    target = OBJECTS / (name.replace(os.sep, "-") + ".o")
    if _is_stale(target):
        listing = target.with_suffix(".d")
        _run([*compiler, *COMPILE, "-MMD", "-MF", str(listing), "-c", name, "-o", str(target)])
    return target


def exports() -> list[str]:
    """The functions of the headers, which JavaScript can call."""
    found = []
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (CSRC / header).read_text(), flags=re.DOTALL)
        found += re.findall(r"\b(lab_\w+)\(", text)
    return found


def _objects(compiler: list[str]) -> list[Path]:
    """Compiles what has changed; another process that needs the same waits for it."""
    OBJECTS.mkdir(parents=True, exist_ok=True)
    with open(OBJECTS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            return list(pool.map(lambda source: _compile(compiler, source), _sources()))


def build(out: Path) -> Path:
    """Compiles what has changed, and links. Returns the module."""
    out.mkdir(parents=True, exist_ok=True)
    compiler = _compiler()
    objects = _objects(compiler)
    module = out / "lab.wasm"
    named = [f"-Wl,--export={name}" for name in exports()]
    _run([*compiler, *LINK, *named, *map(str, objects), "-o", str(module)])
    return module


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m buildtools.wasm", description=__doc__)
    parser.add_argument("out", type=Path, help="a folder")
    try:
        module = build(parser.parse_args().out)
    except (WasmError, registry.TableError) as error:
        sys.exit(f"error: {error}")
    print(f"{module}: {module.stat().st_size} bytes")


if __name__ == "__main__":
    main()
