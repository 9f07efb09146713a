"""Runs NVIDIA's cuda-samples under `smemkern run`, and writes which pass.

    python validation/cuda_samples.py CHECKOUT [--only TEXT] [--seconds 900] [--write]

A sample passes if it compiles, ends with status 0 and prints no "FAILED". CHECKOUT is a folder of
https://github.com/NVIDIA/cuda-samples. Samples that need graphics, a library beside cudart, or
several files of other languages are listed with that reason. Takes nvcc.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cuda-samples.json"
LIBRARIES = {  # in CMakeLists.txt: why the sample is left out
    "OpenGL|GLUT|GLEW|freeglut|glfw|Vulkan|EGL|D3D|DirectX|X11": "graphics",
    "MPI": "MPI",
    "OpenMP": "OpenMP",
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


def compile_sample(folder: Path, checkout: Path, out: Path, arch: str) -> str:
    """The compiler's complaint; empty: it compiled."""
    listed = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", cmake(folder))
    files = [
        folder / one for one in re.findall(r"[\w./-]+\.(?:cu|cpp|c)\b", listed[1] if listed else "")
    ]
    options = ["-O2", "-g", "-lineinfo", "-std=c++17", f"-arch={arch}", f"-I{checkout / 'Common'}"]
    if "CUDA_SEPARABLE_COMPILATION ON" in cmake(folder):
        options.append("-rdc=true")
    if "extended-lambda" in cmake(folder):
        options.append("--extended-lambda")
    command = ["nvcc", "-w", *options, f"-I{folder}", *map(str, files), "-o", str(out)]
    command += ["-lcuda", f"-L{out.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
    return "" if done.returncode == 0 else (lines or ["it does not compile"])[0][:200]


def run_sample(program: Path, folder: Path, limit: float) -> dict[str, object]:
    report = program.parent / "report.json"
    command = [sys.executable, "-m", "smemkern", "run", "--json", str(program)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=folder)
    except subprocess.TimeoutExpired:
        return {"result": "fail", "why": f"not done after {limit:.0f} s"}
    report.write_text(done.stdout)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"result": "fail", "why": done.stderr.strip().splitlines()[-1:]}
    hazards = Counter(row["kind"] for kernel in found["kernels"] for row in kernel["hazards"])
    if done.returncode == 2 and not found["unsupported"]:
        return {"result": "left out", "why": "it waives itself on this device"}
    failed = done.returncode != 0 or re.search(r"\bFAIL", done.stderr)
    whys = [one["call"] for one in found["unsupported"]]
    whys += [one["message"][:160] for one in found["misuses"] if one["kind"] == "module"]
    whys += [error[:160] for kernel in found["kernels"] for error in kernel["errors"]]
    if re.search(r"sdkFindFilePath: file <\S+> not found", done.stderr):
        return {"result": "left out", "why": "it loads device code that its own build makes"}
    told = [line for line in done.stderr.splitlines() if re.search(r"error|FAIL", line, re.I)]
    told = [
        re.sub(r"/\S+/(?=[^/\s]+)", "", line)[:160] for line in told
    ]  # no folders of this machine
    return {
        "result": "fail" if failed else "pass",
        "status": done.returncode,
        **({"why": (whys or told or ["status"])[:3]} if failed else {}),
        "kernels": len(found["kernels"]),
        "launches": sum(kernel["launches"] for kernel in found["kernels"]),
        "hazards": dict(hazards),
        "misuses": dict(Counter(one["kind"] for one in found["misuses"])),
    }


def examine(folder: Path, checkout: Path, arch: str, limit: float) -> dict[str, object]:
    why = left_out(folder)
    if why:
        return {"result": "left out", "why": why}
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, folder.name)
        driver = ROOT / "smemkern" / "driver" / "libcuda.so.1"
        (out.parent / "libcuda.so").symlink_to(driver)
        complaint = compile_sample(folder, checkout, out, arch)
        if complaint:
            return {"result": "left out", "why": f"nvcc: {complaint}"}
        return run_sample(out, folder, limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="samples whose path contains this text")
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--limit", type=float, default=60, help="seconds per sample")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no sample after that")
    parser.add_argument("--write", action="store_true", help=f"update {RESULTS.name}")
    chosen = parser.parse_args()
    started, rows = time.monotonic(), {}
    for folder in samples(chosen.checkout):
        name = str(folder.relative_to(chosen.checkout / "Samples"))
        if chosen.only not in name or time.monotonic() - started > chosen.seconds:
            continue
        rows[name] = examine(folder, chosen.checkout, chosen.arch, chosen.limit)
        print(f"{name}: {rows[name]}", flush=True)
    print(dict(counts_of(rows)))
    if chosen.write:
        before = json.loads(RESULTS.read_text())["samples"] if RESULTS.is_file() else {}
        rows = dict(sorted((before | rows).items()))
        document = {"arch": chosen.arch, "counts": counts_of(rows), "samples": rows}
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")


def counts_of(rows: dict[str, dict[str, object]]) -> Counter[str]:
    return Counter(str(row["result"]) for row in rows.values())


if __name__ == "__main__":
    main()
