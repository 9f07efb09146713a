"""Runs NVIDIA's cuda-samples under `smemkern run`, and writes which pass.

    python validation/cuda_samples.py CHECKOUT [--only TEXT] [--build FOLDER] [--write]

A sample passes if it compiles, ends with status 0 and prints no "FAILED". CHECKOUT is a folder of
https://github.com/NVIDIA/cuda-samples. Samples that need graphics, a library beside cudart, or
several files of other languages are listed with that reason. Takes nvcc.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cuda-samples.json"
DRIVER = ROOT / "smemkern" / "driver" / "libcuda.so.1"
PROGRAM = "sample"
LIBRARIES = {  # in CMakeLists.txt: why the sample is left out
    "OpenGL|GLUT|GLEW|freeglut|glfw|Vulkan|EGL|D3D|DirectX|X11": "graphics",
    "MPI": "MPI",
    "cublas|cufft|cusolver|cusparse|curand|npp|nvjpeg|cudla|nvgraph": "a CUDA library",
    "NvSci": "NvSci",
    "nvvm": "libNVVM",
    "nvrtc": "NVRTC at run time",
}


def samples(checkout: Path) -> list[Path]:
    found = sorted(file.parent for file in (checkout / "Samples").rglob("CMakeLists.txt"))
    return [folder for folder in found if "add_executable" in cmake(folder)]


def cmake(folder: Path) -> str:
    return (folder / "CMakeLists.txt").read_text(encoding="utf-8", errors="replace")


def left_out(folder: Path) -> str | None:
    text = cmake(folder)
    for pattern, why in LIBRARIES.items():
        if re.search(
            rf"find_package\([^)]*({pattern})|target_link_libraries\([^)]*({pattern})", text, re.I
        ):
            return why
    return None


def nvcc(*options: str | Path) -> str:
    """The compiler's complaint; empty: it compiled."""
    done = subprocess.run(["nvcc", "-w", *options], capture_output=True, text=True, timeout=900)
    lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
    told = (lines or ["it does not compile"])[0]
    told = re.sub(r"/\S+/(?=[^/\s]+)", "", told)  # no folders of this machine
    return "" if done.returncode == 0 else told[:200]


def device_code(folder: Path, out: Path, target: str) -> str:
    """The fat binaries and PTX that the sample's build makes beside its program."""
    text = cmake(folder)
    named = re.findall(r'"\$\{CMAKE_CURRENT_BINARY_DIR\}/([\w.]+)\.(fatbin|ptx)"', text)
    sources = re.findall(r'KERNEL_SOURCE\w* "\$\{CMAKE_CURRENT_SOURCE_DIR\}/([\w.]+)"', text)
    for (stem, kind), source in zip(named, sources, strict=False):
        complaint = nvcc(f"-{kind}", target, folder / source, "-o", out / f"{stem}.{kind}")
        if complaint:
            return complaint
    return ""


def compile_sample(folder: Path, checkout: Path, out: Path, arch: int) -> str:
    """Makes the program in a folder, beside links to the sample's files."""
    listed = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", cmake(folder))
    files = [
        folder / one for one in re.findall(r"[\w./-]+\.(?:cu|cpp|c)\b", listed[1] if listed else "")
    ]
    target = f"-gencode=arch=compute_{arch},code=compute_{arch}"
    options = ["-O1", "-g", "-lineinfo", "-std=c++17", target, f"-I{checkout / 'Common'}"]
    options += [f"-I{one}" for one in (folder / "inc", folder / "include") if one.is_dir()]
    if "OpenMP" in cmake(folder):
        options += ["-Xcompiler", "-fopenmp"]
    if "extended-lambda" in cmake(folder):
        options.append("--extended-lambda")
    if "no-pie" in cmake(folder):
        options += ["-Xcompiler", "-fno-pie", "-Xlinker", "-no-pie"]
    for one in folder.iterdir():
        (out / one.name).symlink_to(one)
    (out / "libcuda.so").symlink_to(DRIVER)
    options += [f"-I{folder}", *map(str, files), "-o", str(out / PROGRAM), "-lcuda", f"-L{out}"]
    complaint = nvcc(*options)
    if "requires separate compilation" in complaint:
        complaint = nvcc("-rdc=true", *options)
    return complaint or device_code(folder, out, target)


def end_with_parent() -> None:
    """In a child process: it gets SIGTERM if this one is killed, and ends its own program."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def run_limited(command: list[str | Path], limit: float, folder: Path) -> tuple[int, str, str]:
    """Runs a program in a session of its own, which ends with it."""
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=folder,
        start_new_session=True,
        preexec_fn=end_with_parent,
    )
    try:
        out, err = started.communicate(timeout=limit)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    return started.returncode, out, err


NO_KERNEL = ["--kernel", "^$"]  # none is examined


def run_sample(program: Path, limit: float) -> dict[str, object]:
    """A sample that is not done in time runs once more, without observers."""
    command = [sys.executable, "-m", "smemkern", "run", "--json"]
    examined = True
    try:
        status, out, err = run_limited([*command, program], limit, program.parent)
    except subprocess.TimeoutExpired:
        examined = False
    try:
        if not examined:
            status, out, err = run_limited([*command, *NO_KERNEL, program], limit, program.parent)
    except subprocess.TimeoutExpired:
        return {"result": "fail", "why": f"not done after {limit:.0f} s"}
    try:
        found = json.loads(out)
    except ValueError:
        return {"result": "fail", "why": err.strip().splitlines()[-1:]}
    hazards = Counter(row["kind"] for kernel in found["kernels"] for row in kernel["hazards"])
    if status == 2 and not found["unsupported"]:
        return {"result": "left out", "why": "it waives itself on this device"}
    failed = status != 0 or re.search(r"\bFAIL", err)
    whys = [one["call"] for one in found["unsupported"]]
    whys += [one["message"][:160] for one in found["misuses"] if one["kind"] == "module"]
    whys += [error[:160] for kernel in found["kernels"] for error in kernel["errors"]]
    if re.search(r"sdkFindFilePath: file <\S+> not found", err):
        return {"result": "left out", "why": "it loads device code that its own build makes"}
    told = [line for line in err.splitlines() if re.search(r"error|FAIL", line, re.I)]
    told = [
        re.sub(r"/\S+/(?=[^/\s]+)", "", line)[:160] for line in told
    ]  # no folders of this machine
    return {
        "result": "fail" if failed else "pass",
        "status": status,
        **({"why": (whys or told or ["status"])[:3]} if failed else {}),
        **({} if examined else {"examined": False}),
        "kernels": len(found["kernels"]),
        "launches": sum(kernel["launches"] for kernel in found["kernels"]),
        "hazards": dict(hazards),
        "misuses": dict(Counter(one["kind"] for one in found["misuses"])),
    }


def examine(
    folder: Path, checkout: Path, build: Path, arch: int, limit: float
) -> dict[str, object]:
    why = left_out(folder)
    if why:
        return {"result": "left out", "why": why}
    out = build / folder.relative_to(checkout / "Samples")
    complaints = out / "complaint.txt"
    if not complaints.is_file():  # else it was compiled by an earlier run
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        complaints.write_text(compile_sample(folder, checkout, out, arch))
    if complaints.read_text():
        return {"result": "left out", "why": f"nvcc: {complaints.read_text()}"}
    return run_sample(out / PROGRAM, limit) if limit else {"result": "compiled"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="samples whose path contains this text")
    parser.add_argument(
        "--failed", action="store_true", help=f"only those that {RESULTS.name} says"
    )
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--build", type=Path, help="keep compiled programs in this folder")
    parser.add_argument("--limit", type=float, default=60, help="seconds per sample; 0: compile")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no sample after that")
    parser.add_argument("--write", action="store_true", help=f"update {RESULTS.name}")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started, rows = time.monotonic(), {}
    before = json.loads(RESULTS.read_text())["samples"] if RESULTS.is_file() else {}
    checkout = chosen.checkout.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        build = (chosen.build or Path(scratch)).resolve()
        for folder in samples(checkout):
            name = str(folder.relative_to(checkout / "Samples"))
            if chosen.only not in name or time.monotonic() - started > chosen.seconds:
                continue
            if chosen.failed and before.get(name, {}).get("result") != "fail":
                continue
            rows[name] = examine(folder, checkout, build, chosen.arch, chosen.limit)
            print(f"{name}: {rows[name]}", flush=True)
    print(dict(counts_of(rows)))
    if chosen.write:
        rows = dict(sorted((before | rows).items()))
        document = {"arch": f"compute_{chosen.arch}", "counts": counts_of(rows), "samples": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def counts_of(rows: dict[str, dict[str, object]]) -> Counter[str]:
    return Counter(str(row["result"]) for row in rows.values())


if __name__ == "__main__":
    main()
