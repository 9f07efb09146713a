"""The WebAssembly module gives what the native emulator gives: values, counts and hazards, to the
bit. In a headless browser; under node too where a test is about one case.

The module is built by buildtools.wasm, which needs the package ziglang.
"""

import base64
import html
import json
import random
import re
import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import smemkern
import smemkern.mistakes
from chromium import browser
from corpus import CASES
from lab_cases import NotPlain, operands, recorded, variant_case

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "emu"))

pytestmark = pytest.mark.skipif(find_spec("ziglang") is None, reason="pip install --group lab")

SEED = time.time_ns() % 2**32  # printed with each failure
PROGRAMS, ROWS, MATRICES = 40, 60, 60
# What launches of the page do not take.
NOT_PLAIN = {"tma_tile_copy"}


@pytest.fixture(autouse=True)
def one_host_thread(monkeypatch):
    """As the module has: kernels whose blocks race are repeated in the same order."""
    monkeypatch.setenv("SMEMKERN_EMU_THREADS", "1")


@pytest.fixture(scope="session")
def module(tmp_path_factory):
    out = tmp_path_factory.mktemp("lab")
    subprocess.run([sys.executable, "-m", "buildtools.wasm", out], cwd=ROOT, check=True)
    return out / "lab.wasm"


def classic(file):
    """A module's text as a classic script: a page from a folder cannot import."""
    return re.sub(r"^export ", "", file.read_text(), flags=re.MULTILINE)


def visit(module, cases, folder, function="runCases"):
    """What a function of lab_driver.js says of the cases, in a browser's page."""
    page = folder / "page.html"
    data = json.dumps(cases).replace("<", "\\u003c")
    wasm = base64.b64encode(module.read_bytes()).decode()
    page.write_text(
        f"<!doctype html><body><pre></pre><script>{classic(ROOT / 'docs/lab/emulator.js')}</script>"
        f"<script>{(HERE / 'lab_driver.js').read_text()}</script>"
        f'<script id="cases" type="application/json">{data}</script><script>'
        f'const told = {function}(Emulator, new WebAssembly.Module(fromBase64("{wasm}")),'
        ' JSON.parse(document.getElementById("cases").textContent));'
        'document.getElementById("cases").remove();'
        'document.querySelector("pre").textContent = JSON.stringify(told);'
        "document.querySelectorAll('script').forEach((script) => script.remove());</script>"
    )
    run = subprocess.run(
        [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
        + [f"--user-data-dir={folder}/profile", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
    )
    found = re.search(r"<pre>(.+?)</pre>", run.stdout, re.DOTALL)
    assert found, run.stdout[-2000:] + run.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


def repeat(module, cases, folder):
    """{names: what differs}"""
    told = visit(module, cases, folder)
    assert told["count"] == len(cases)
    return told["differences"]


def corpus_cases():
    for case in CASES:
        with recorded(case.name) as recording:
            work = case.make(np.random.default_rng(SEED))
            try:
                for launch in work.launches:
                    kernel = smemkern.Kernel(case.file.read_text(), launch.name, case.options)
                    size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
                    kernel(launch.grid, launch.block, *launch.args, **size)
            except NotPlain:
                assert case.name in NOT_PLAIN
                continue
        yield recording.case()


def sizes_of(row, rng):
    if row.op == "transpose":
        return {"rows": rng.randint(1, 70), "cols": rng.randint(1, 70)}
    if row.op == "probe":
        return {"n": 16384}
    return {"m": rng.randint(1, 70), "n": rng.randint(1, 70), "k": rng.randint(1, 70)}


def variant_cases():
    rng = random.Random(SEED)
    values = np.random.default_rng(SEED)
    for row in smemkern.variants():
        dtype = rng.choice(row.dtypes)
        yield variant_case(row, dtype, sizes_of(row, rng), values)


def mistake_cases():
    for mistake in smemkern.mistakes.rows():
        with recorded(f"mistake {mistake.name}") as recording:
            kernel = smemkern.Kernel(mistake.ptx, mistake.name)
            size = {"shared_bytes": mistake.shared_bytes}
            kernel(mistake.grid, mistake.block, *mistake.arguments(), **size)
        yield recording.case()


def program_cases():
    import program_writer as programs

    for k in range(PROGRAMS):
        seed = SEED + k
        ptx = programs.module({"program": programs.statements(seed)})
        with recorded(f"random program {seed}") as recording:
            programs.run(ptx, "program", seed, "emu")
        yield recording.case()


@cache
def instruction_rows():
    """Every instruction of the tests of single instructions: edge values, NaNs, all roundings."""
    import importlib

    names = [f.stem for f in (HERE / "emu").glob("test_emu_*.py")]
    modules = [importlib.import_module(name) for name in sorted(names)]
    return [row for m in modules for row in getattr(m, "ROWS", ()) if hasattr(row, "sources")]


def instruction_cases():
    import ptx_rows

    for row in random.Random(SEED).sample(instruction_rows(), ROWS):
        with recorded(f"{row.text} {SEED}") as recording:
            ptx_rows.check(row, "emu")
        yield recording.case()


def matrix_cases():
    import matrix_cases as matrices

    for case, spread in random.Random(SEED).sample(matrices.all_runs(), MATRICES):
        with recorded(f"{case} {spread}") as recording:
            matrices.outputs(case, matrices.run_inputs(case, spread), "emu")
        yield recording.case()


SETS = [corpus_cases, variant_cases, mistake_cases, program_cases, instruction_cases, matrix_cases]


@pytest.mark.parametrize("cases", SETS, ids=lambda made: made.__name__)
def test_same_as_native(cases, module, tmp_path, request):
    if cases is corpus_cases:
        request.getfixturevalue("nvrtc")
    made = list(cases())
    assert made
    differences = repeat(module, made, tmp_path)
    assert not differences, f"seed {SEED}: {differences}"


RATED = [
    ("gemm", "naive", "float32", {"m": 128, "n": 128, "k": 128}),
    ("gemm", "tiled", "float32", {"m": 128, "n": 128, "k": 128}),
    ("gemm", "register_tiled", "float32", {"m": 128, "n": 128, "k": 128}),
    ("gemm", "mma_fp16", "float16", {"m": 128, "n": 128, "k": 128}),
    ("transpose", "tiled", "b32", {"rows": 512, "cols": 512}),
]
TRIES, RATE = 3, 0.25


def native_milliseconds(case):
    """The shortest of some traced runs."""
    plan = case["steps"][0]["plan"]
    arrays = operands(plan["op"], plan["dtype"], plan["sizes"], np.random.default_rng(0))
    options = {"variant": plan["variant"], "device": "emu"}
    best, end = np.inf, time.perf_counter() + 0.3
    while time.perf_counter() < end:
        begin = time.perf_counter()
        smemkern._core.observe(plan["op"], arrays, options, trace=True)
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def test_a_quarter_of_the_native_rate(module, tmp_path):
    """Of one host thread, in traced runs. Both sides take turns: the machine has other work."""
    rng = np.random.default_rng(SEED)
    table = {(row.op, row.name): row for row in smemkern.variants()}
    cases = [variant_case(table[op, name], *rest, rng) for op, name, *rest in RATED]
    native, there = np.full(len(cases), np.inf), np.full(len(cases), np.inf)
    for _ in range(TRIES):
        native = np.minimum(native, [native_milliseconds(case) for case in cases])
        there = np.minimum(there, visit(module, cases, tmp_path, "rateCases"))
        if np.all(native / there >= RATE):
            break
    assert np.all(native / there >= RATE), f"{native} ms here, {there} ms there"


def test_a_difference_is_found(module, tmp_path):
    """A bit of a result, a count and a hazard that are not the module's are named."""
    rng = np.random.default_rng(SEED)
    [row] = [row for row in smemkern.variants("transpose") if row.name == "tiled"]
    one = [variant_case(row, "b32", {"rows": 33, "cols": 20}, rng) for _ in range(3)]
    for name, case in zip(("value", "count", "hazard"), one, strict=True):
        case["name"] = name
    [step] = one[0]["steps"]
    after = bytearray(base64.b64decode(step["after"][1]))
    after[77] ^= 1
    step["after"][1] = base64.b64encode(after).decode()
    one[1]["steps"][0]["trace"]["sites"][1]["wavefronts"] += 1
    one[2]["steps"][0]["trace"]["hazards"].append({"kind": "RAW"})
    differences = repeat(module, one, tmp_path)
    assert "buffer 1: byte 77" in differences["value"]
    assert "trace.sites.1.wavefronts" in differences["count"]
    assert "trace.hazards: 0 items, expected 1" in differences["hazard"]
