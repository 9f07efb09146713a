"""The generated parts of docs/run.md: which programs of public suites, and which tests of Python
packages, run on the emulator."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from cells import Record, markdown
from records import read

SUITES = ("cuda-samples", "hecbench", "rodinia", "llm-c")
RESULTS = {
    "pass": "pass",
    "ends": "end, check nothing",
    "fail": "fail",
    "too slow": "too slow",
    "left out": "left out",
}
# Why programs fail, are too slow or are left out, in words for what a record says, or for single
# programs.
CAUSES = {
    "bn-cuda": "its data are in the source, for one size",
    "columnarSolver-cuda": "its search finds the key only with all its steps",
    "rsbench-cuda|sw4ck-cuda": "its check knows the results of one size",
    "morphology-cuda|sosfil-cuda": "its result depends on a race that is reported",
    r"test_gpt2_fp32.cu\b(?!, activations)": "reads what nobody wrote, and a race that is reported",
    "test_gpt2_fp32.cu": "its result depends on a race that is reported",
    "bscan-cuda|btree-cuda": "a lane's mask lacks the lane itself, which PTX leaves undefined",
    "tqs-cuda": "its result depends on a race that is reported",
    "perlin-cuda|threadcpy-cuda": "reads past the end of an array, which is reported",
    "unfold-cuda": "adds to memory that nobody wrote, which is reported",
    "shmembench-cuda": "its checksum includes memory that nobody wrote",
    "texture references": "texture references, which CUDA 12 removed",
    "graphics": "graphics",
    "waives": "waives itself: needs several GPUs or other features",
    "does not compile": "does not compile with nvcc 13 by itself",
    "data|before it calls CUDA": "ends without its data files, or before it calls CUDA",
    "launches no kernel": "launches no kernel",
    "its Makefile": "its Makefile has no rule for it",
    "needs|library|NVRTC|libNVVM|NvSci|MPI": "another library",
}


def first_of(causes: dict[str, str], told: str) -> str:
    return next((text for known, text in causes.items() if re.search(known, told)), "not yet known")


def cause(name: str, row: Record) -> str:
    return first_of(CAUSES, f"{name}: {row.get('why')}")


def known() -> dict[str, Record]:
    found = {suite: read(f"programs-{suite}") for suite in SUITES}
    return {suite: record for suite, record in found.items() if record}


def suites() -> str:
    lines = []
    for record in known().values():
        rows = record["programs"].values()
        counts = [sum(row["result"] == result for row in rows) for result in RESULTS]
        racy = sum(bool(row.get("racy")) for row in rows)
        lines.append((record["repository"], record["of"], len(rows), *counts, racy))
    header = ("suite", "programs", "tried", *RESULTS.values(), "with races")
    return markdown(header, [tuple(map(str, line)) for line in lines], 1)


def causes() -> str:
    """Programs that fail or are too slow by name, those left out as a number."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for suite, record in known().items():
        for name, row in record["programs"].items():
            if row["result"] in ("fail", "too slow", "left out"):
                found[row["result"], suite, cause(name, row)].append(name.rpartition("/")[2])
    lines = [
        (
            result,
            suite,
            why,
            ", ".join(f"`{one}`" for one in names) if result != "left out" else "",
            str(len(names)),
        )
        for (result, suite, why), names in sorted(found.items())
    ]
    return markdown(("result", "suite", "why", "programs", "number"), lines, 4)


PACKAGES = {"numba": "numba-cuda", "cupy": "CuPy"}
# Why tests fail, in words for what a record says.
TEST_CAUSES = {
    "time out": "not done within the time",
    "status 137": "needs more memory than the machine has",
    "cubin|NO_BINARY_FOR_GPU": "the test loads machine code",
    "CUSOLVER|CUBLAS|C[uU]FFT|CURAND|CUSPARSE|NCCL|nccl": "another library, which is machine code",
    "multi_?gpu|device ordinal": "needs several GPUs",
    "test_cpu_and_cuda": "Numba 0.68 and this numba-cuda stamp files in different ways",
    "test_struct_model_type_arr": "writes ten elements to arrays of one, which is reported",
    "test_set_registers": "numbers of registers are those of the PTX",
    "lto|LTO": "link-time optimisation, whose input is no PTX",
}


def test_cause(name: str, row: Record) -> str:
    told = " ".join(map(str, (name, row["result"], row.get("why"), row.get("errors"))))
    return first_of(TEST_CAUSES, told)


def counted(row: Record) -> bool:
    """Of a sample: it launches kernels, or does not pass."""
    return bool(row["launches"]) or row["result"] not in ("passed", "skipped")


def frameworks() -> str:
    lines = []
    for framework, package in PACKAGES.items():
        if record := read(f"framework-tests-{framework}"):
            rows = [row for row in record["tests"].values() if counted(row)]
            results = Counter(row["result"] for row in rows)
            failed = results["failed"] + results["time out"]
            lines.append(
                (package, record["version"], record["of"], len(rows))
                + (results["passed"], results["skipped"], failed, record["seed"])
            )
    header = ("package", "version", "functions", "sample", "pass", "skipped", "fail", "seed")
    return markdown(header, [tuple(map(str, line)) for line in lines], 2)


def failed_tests() -> str:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for framework, package in PACKAGES.items():
        for name, row in (read(f"framework-tests-{framework}") or {"tests": {}})["tests"].items():
            if row["result"] in ("failed", "time out"):
                test = name.rpartition("::")[2].partition("[")[0]
                found[package, test_cause(name, row)].append(f"`{test}`")
    lines = [
        (package, why, ", ".join(names), str(len(names)))
        for (package, why), names in sorted(found.items())
    ]
    return markdown(("package", "why", "tests", "number"), lines, 3)


def tutorials() -> str:
    lines = []
    record = read("triton-tutorials") or {"tutorials": {}}
    for name, row in record["tutorials"].items():
        if row["result"] == "left out":
            lines.append((name, "", "", "", f"left out: {row['why']}"))
            continue
        compared, hazards = len(row["comparisons"]), len(row["hazards"])
        numbers = (len(row["kernels"]), row["launches"], compared)
        found = f", {hazards} hazards" if hazards else ""
        lines.append((name, *map(str, numbers), row["result"] + found))
    header = ("tutorial", "kernels", "launches", "arrays compared", "result")
    return markdown(header, lines, 1)


def parts() -> dict[str, str]:
    return {
        "suites": suites(),
        "causes": causes(),
        "frameworks": frameworks(),
        "failed tests": failed_tests(),
        "tutorials": tutorials(),
    }
