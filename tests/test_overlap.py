"""Launches of one call overlap: all but the first, and a kernel waits for the launch before."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smemkern
from checks import IMAGES, environment

SEVERAL = sorted(  # of rows whose launches overlap
    path.name for path in IMAGES.glob("gemm_*.ptx") if "griddepcontrol" in path.read_text()
)
TOUCHES = re.compile(r"\b(ld\.global|st\.global|atom\.|red\.|cp\.async|cp\.reduce)")


def kernels(ptx: str) -> dict[str, str]:
    """By name: the text from a kernel's name to that of the next one."""
    return dict(re.findall(r"\.entry (\w+)\((.*?)(?=\.entry|\Z)", ptx, re.DOTALL))


def test_rows_of_several_launches_overlap():
    rows = {name.split("-")[0].removeprefix("gemm_") for name in SEVERAL}
    assert rows >= {
        "tma",
        "tf32",
        "tf32x3",
        "fp16x3",
        "fp16x3_guarded",
        "fp16x1",
        "fp16",
        "bf16",
        "fp64",
        "skinny",
    }
    assert rows >= {"mma_tf32x3", "mma_fp16", "mma_bf16", "skinny_mma", "sliced_k"}


@pytest.mark.parametrize("image", SEVERAL)
def test_every_kernel_waits_before_it_touches_memory(image):
    ptx = (IMAGES / image).read_text()
    assert int(re.search(r"^\.target sm_(\d+)", ptx, re.MULTILINE)[1]) >= 90
    for name, body in kernels(ptx).items():
        assert body.count("griddepcontrol.launch_dependents;") == 1, name
        assert body.count("griddepcontrol.wait;") == 1, name
        touch = TOUCHES.search(body)
        assert touch is None or body.index("griddepcontrol.wait;") < touch.start(), name


CASES = [  # variant, order of A, keywords, what is launched
    ("tf32x3", "F", {"split": 1}, ["_pack", "_b"]),
    ("fp16x3", "C", {"split": 2}, ["_pack", "_b", "_reduce"]),
    ("fp16x3_guarded", "F", {"split": 1}, ["_pack", "_b"]),
    ("fp16x1", "C", {"split": 1}, ["_pack", ""]),
    ("tf32", "F", {"split": 1, "swapped": 2}, ["_pack", "_64_swapped_a"]),
    ("tma", "F", {}, ["_pack", ""]),
    ("mma_tf32x3", "C", {"split": 2}, ["", "_reduce"]),
    ("skinny", "C", {"split": 2}, ["_16", "_reduce"]),
    ("sliced_k", "C", {"split": 2}, ["", "_reduce"]),
    ("naive", "C", {}, [""]),
]


def operands(order):
    rng = np.random.default_rng(5)
    a = rng.standard_normal((12, 260)).astype("f4")
    return np.asarray(a, order=order), rng.standard_normal((260, 64)).astype("f4")


@pytest.mark.parametrize(("variant", "order", "keywords", "launches"), CASES)
def test_all_launches_but_the_first(variant, order, keywords, launches):
    plan = smemkern._core.plan("gemm", operands(order), {"variant": variant, **keywords})
    assert [one["entry"] for one in plan["launches"]] == [f"gemm_{variant}{e}" for e in launches]
    assert [one["overlaps"] for one in plan["launches"]] == [False, True, True][: len(launches)]


def batches():
    """Of these one stride does not describe all: one call, launches for each."""
    return np.ones((2, 1, 40, 41), "f4"), np.ones((1, 2, 41, 24), "f4")


def test_launches_of_several_batches():
    """They have one workspace, so each waits for the last one."""
    for variant, product in (("tf32", "_64"), ("tf32x3", "_b")):
        keywords = {"variant": variant, **({"swapped": 1} if variant == "tf32" else {})}
        plan = smemkern._core.plan("gemm", batches(), keywords)
        ends = ["_pack", product, "_pack", product]
        assert [one["entry"] for one in plan["launches"]] == [f"gemm_{variant}{e}" for e in ends]
        assert [one["overlaps"] for one in plan["launches"]] == [False, True, True, True]
        assert smemkern.trace("gemm", *batches(), variant=variant).hazards == ()


# Each in a process of its own: devices keep images by their name.
TRACE = """
import json, os, sys
import smemkern
from test_overlap import batches, found, operands
variant, order, keywords, *folders = sys.argv[1:]
given = operands(order) if order else batches()
for folder in folders:
    if os.fork() == 0:
        smemkern._core.configure(images=folder, kernels=smemkern._core.config()["kernels"])
        print(json.dumps(found(given, variant, json.loads(keywords))), flush=True)
        os._exit(0)
    os.wait()
"""


def found(given, variant, keywords):
    hazards = smemkern.trace("gemm", *given, variant=variant, **keywords).hazards
    return [(h.kind, h.file, h.message) for h in hazards]


def found_in_each(folders, variant, order, keywords):
    done = subprocess.run(
        [sys.executable, "-c", TRACE, variant, order, json.dumps(keywords), *folders],
        cwd=Path(__file__).parent,
        env=environment(Path(__file__).parent),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    of_each = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(of_each) == len(folders)
    return of_each


def write_mutant(folder, image, entry):
    """The image, in a new folder, without the wait of one kernel."""
    ptx = (IMAGES / f"{image}.ptx").read_text()
    body = kernels(ptx)[entry]
    mutant = ptx.replace(body, body.replace("griddepcontrol.wait;", ""))
    assert mutant != ptx
    folder.mkdir()
    (folder / f"{image}.ptx").write_text(mutant)
    return folder


@pytest.mark.parametrize(("variant", "order", "keywords", "launches"), CASES[:-1])
def test_a_missing_wait_is_found(tmp_path, variant, order, keywords, launches):
    image = smemkern._core.plan("gemm", operands(order), {"variant": variant, **keywords})["image"]
    assert found(operands(order), variant, keywords) == []
    folders = [
        write_mutant(tmp_path / f"launch{number}", image, f"gemm_{variant}{end}")
        for number, end in enumerate(launches)
    ]
    of_each = found_in_each(folders, variant, order, keywords)
    for number, hazards in enumerate(of_each):
        assert {kind for kind, *_ in hazards} == ({"overlap"} if number else set())
        assert all("griddepcontrol.wait" in message for *_, message in hazards)


def test_a_wait_covers_one_launch(tmp_path):
    """Who has not waited leaves the launches before to nobody: the next one waits for it alone."""
    keywords = {"variant": "mma_tf32x3", "split": 2}
    plan = smemkern._core.plan("gemm", batches(), keywords)
    ends = ["", "_reduce", "", "_reduce"]
    assert [one["entry"] for one in plan["launches"]] == [f"gemm_mma_tf32x3{e}" for e in ends]
    assert found(batches(), "mma_tf32x3", {"split": 2}) == []
    folder = write_mutant(tmp_path / "mutant", plan["image"], "gemm_mma_tf32x3_reduce")
    [hazards] = found_in_each([folder], "mma_tf32x3", "", {"split": 2})
    files = {file.rpartition("/")[2] for _, file, _ in hazards}
    assert files == {"split_k.cuh", "common.cuh"}  # sums read, and the next batch's written
