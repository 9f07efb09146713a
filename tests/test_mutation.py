"""Kernels with one part of their order removed are reported, and kernels as they are never.

A subset of validation/mutation.py, in a process of its own because it forks.
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import smemkern
from checks import environment, record
from smemkern import mistakes

ROOT = Path(__file__).resolve().parent.parent
HARNESS = ROOT / "validation" / "mutation.py"
needs_tree = pytest.mark.skipif(
    not (HARNESS.exists() and (ROOT / "buildtools").exists()), reason="not a source tree"
)


# The others' runs take long.
ROWS = [
    *("naive", "coalesced", "tiled", "conflicted", "padded", "swizzle", "double_buffer"),
    *("register_tiled", "vectorized", "pipelined", "mma_tf32x3", "simt", "gemm_tma"),
    *(row.name for row in smemkern.variants("probe")),
]


def record_of(folder, *options):
    """What the harness finds out about an image of each of ROWS, of the package under test."""
    results = folder / "mutation.json"
    subprocess.run(
        [sys.executable, HARNESS, "--fast", "--results", results, "--only", *ROWS, *options],
        check=True,
        timeout=300,
        env=environment(),
    )
    return json.loads(results.read_text())


@needs_tree
@pytest.mark.long(instead="test_every_removal_of_the_record_is_accounted_for, and tests of hazards")
def test_each_removal_is_reported(tmp_path):
    kinds = "barrier,wait,commit,arrival,expect,phase,init,proxy"
    record = record_of(tmp_path, "--kinds", kinds)
    clean = record["unmutated"].values()
    assert len(clean) >= len(ROWS)
    assert all(one["findings"] == one["wrong"] == 0 for one in clean)
    assert sum(one["runs"] for one in clean) >= 5 * record["images"] - 20
    noted = [m for m in record["mutants"] if m["verdict"] == "noted"]
    assert noted and all(m["text"].startswith("fence.mbarrier_init") for m in noted)
    assert all(m["kinds"].keys() == {"proxy-init"} for m in noted)
    missed = [m for m in record["mutants"] if m["verdict"] not in ("reported", "noted")]
    # nvcc's header of __syncwarp; NVRTC's PTX names the line that calls it
    sources = {m["source"].split(":")[0] for m in missed}
    assert sources in ({"sm_30_intrinsics.hpp"}, {"mma_words.cuh"})
    assert {(m["verdict"], m["text"]) for m in missed} == {("harmless", "bar.warp.sync \t-1;")}
    assert len(missed) == 4  # the warp's last __syncwarp, of mma_tf32x3's four kernels
    counts = {kind: sum(c.values()) for kind, c in record["figures"].items()}
    assert counts["barrier"] >= 20
    assert counts["wait"] >= 10
    assert counts["commit"] >= 12
    assert counts["phase"] >= 2 and counts["expect"] >= 2 and counts["init"] >= 3


@needs_tree
def test_every_removal_of_the_record_is_accounted_for():
    for mutant in record("mutation")["mutants"]:
        assert mutant["verdict"] in ("reported", "noted", "endless") or (
            mutant["verdict"] in ("harmless", "unseen") and mutant["reason"]
        ), mutant


def harness(name):
    """A module of validation/."""
    return importlib.import_module(name)


@needs_tree
def test_the_page_is_fresh():
    hazard_docs = harness("hazard_docs")
    text = hazard_docs.PAGE.read_text()
    assert hazard_docs.page(text) == text


@needs_tree
@pytest.mark.parametrize(
    "ptx, wanted",
    [
        (
            ["and.pred \t%p3, %p1, %p2;"],
            [(0, "term", "mov.pred %p3, %p1;"), (0, "term", "mov.pred %p3, %p2;")],
        ),
        (
            ["or.pred %p3, %p1, %p2;", "min.s64 %rd2, %rd1, 7;"],
            [
                (0, "term", "mov.pred %p3, %p1;"),
                (0, "term", "mov.pred %p3, %p2;"),
                (1, "choice", "mov.s64 %rd2, %rd1;"),
                (1, "choice", "mov.s64 %rd2, 7;"),
            ],
        ),
        # one check, a size and an address: each alone, and the check itself
        (
            [
                "setp.lt.s64 %p1, %rd1, %rd2;",
                "selp.b64 %rd3, %rd4, %rd5, %p1;",
                "selp.b32 %r1, 4, 0, %p1;",
            ],
            [
                (0, "choice", "mov.pred %p1, -1;"),
                (1, "choice", "mov.b64 %rd3, %rd4;"),
                (2, "choice", "mov.b32 %r1, 4;"),
            ],
        ),
        # the same, the other way round
        (
            [
                "setp.ge.s64 %p1, %rd1, %rd2;",
                "selp.b64 %rd3, 0, %rd5, %p1;",
                "selp.b32 %r1, 0, 4, %p1;",
            ],
            [
                (0, "choice", "mov.pred %p1, 0;"),
                (1, "choice", "mov.b64 %rd3, %rd5;"),
                (2, "choice", "mov.b32 %r1, 4;"),
            ],
        ),
        # the next stage of a ring
        (
            ["setp.eq.s32 %p1, %r1, 3;", "selp.b32 %r2, 0, %r1, %p1;"],
            [(1, "choice", "mov.b32 %r2, %r1;")],
        ),
        # which side the check is for is not known: either
        (
            ["selp.b64 %rd1, %rd2, %rd3, %p1;"],
            [(0, "choice", "mov.b64 %rd1, %rd2;"), (0, "choice", "mov.b64 %rd1, %rd3;")],
        ),
        # results, and how often a loop runs
        (["selp.f32 %f1, %f2, %f3, %p1;", "max.s64 %rd1, %rd2, 1;", "and.b32 %r1, %r2, 7;"], []),
    ],
)
def test_what_can_be_removed_from_a_check(ptx, wanted):
    found = harness("removals.terms").removals([f"\t{line}" for line in ptx])
    assert sorted(found) == sorted(wanted)


@needs_tree
@pytest.mark.long(instead="test_a_result_read_before_it_is_written")
def test_parts_of_checks(tmp_path):
    """The first terms of each image; of the probes, which have none, what their checks choose.

    Of simt and the rows by mma.sync some change nothing, for reasons that the harness asks for.
    """
    options = ("--only-mutants", "--kinds", "term,choice", "--each", "3")
    found = record_of(tmp_path, *options)["mutants"]
    ladder = [m for m in found if not m["image"].startswith(("gemm_simt", "gemm_mma"))]
    terms = [m for m in ladder if m["kind"] == "term" and m["image"].startswith("gemm")]
    assert len(terms) >= 25
    assert {m["verdict"] for m in terms} == {"reported"}
    checks = [m for m in ladder if m["text"].startswith(("setp", "min"))]
    assert len(checks) >= 3
    assert {m["verdict"] for m in checks} == {"reported"}


# What makes each mistake right.
CORRECTIONS = {
    "missing_barrier": ("// __syncthreads();", "__syncthreads();"),
    "divergent_barrier": (
        "if (i < n) {\n        tile[t] = x[i];\n        __syncthreads();\n"
        "        y[i] = tile[t ^ 1];\n    }",
        "tile[t] = i < n ? x[i] : 0;\n    __syncthreads();\n    if (i < n) y[i] = tile[t ^ 1];",
    ),
    "padded_over_limit": ("SIDE = 241, PAD = 1", "SIDE = 241, PAD = 0"),
    "uninitialised": ("__syncthreads();", "if (t == 0) tile[0] = tile[65] = 0;\n__syncthreads();"),
    "out_of_bounds": ("// if (i < n)", "if (i < n)"),
    "missing_wait": ("// asm volatile(", "asm volatile("),
    "early_release": ("// __syncwarp();", "__syncwarp();"),
    "unawaited_refill": ("// barrier_wait(empty,", "barrier_wait(empty,"),
    "wrong_bytes": ("barrier_expect(full, 64);", "barrier_expect(full, sizeof tile);"),
}


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in mistakes.rows()])
def test_corrected_mistakes_are_clean(row):
    wrong, right = CORRECTIONS[row.name]
    assert row.source.count(wrong) == 1
    shared = 241 * 241 * 4 if row.shared_bytes else 0
    headers = Path(smemkern._core.config()["kernels"], "mistakes")
    options = ("-arch=compute_90", f"-I{headers}", f"-I{headers.parent}")
    kernel = smemkern.Kernel(row.source.replace(wrong, right), row.name, options)
    trace = smemkern.trace(kernel, row.grid, row.block, *row.arguments(), shared_bytes=shared)
    assert trace.hazards == ()
    assert not trace.incomplete


@needs_tree
def test_a_result_read_before_it_is_written(tmp_path):
    """The branch on beta, one mutant of each image."""
    options = ("--only-mutants", "--kinds", "value", "--each", "1")
    found = record_of(tmp_path, *options)["mutants"]
    assert len(found) >= 8
    assert all("uninitialised" in mutant["kinds"] for mutant in found), found
