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
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import smemkern
import smemkern.mistakes
from chromium import browser
from corpus import CASES
from lab_cases import operands, recorded, variant_case

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "emu"), str(HERE / "lab")]

pytestmark = pytest.mark.skipif(find_spec("ziglang") is None, reason="pip install --group lab")

SEED = time.time_ns() % 2**32  # printed with each failure
PROGRAMS, ROWS, MATRICES, TENSORS = 40, 60, 60, 30


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
            for launch in work.launches:
                kernel = smemkern.Kernel(case.file.read_text(), launch.name, case.options)
                size = {"shared_bytes": launch.shared_bytes} if launch.shared_bytes else {}
                kernel(launch.grid, launch.block, *launch.args, **size)
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


def random_tensor(rng):
    """An array, and the box, start and keywords of a copy from it."""
    dtype = rng.choice(["u1", "i1", "i2", "f2", "i4", "f4", "u8", "f8"])
    size = np.dtype(dtype).itemsize
    swizzle = rng.choice([None, "32B", "64B", "128B"])
    widest = int(swizzle[:-1]) if swizzle else 256
    rank = rng.randint(1, 5)
    steps = [rng.choice([1, 1, 1, 2, 3, 8]) for _ in range(rank - 1)] + [1]
    box = [rng.randint(1, 9) for _ in range(rank - 1)]
    box.append(16 * rng.randint(1, widest // 16) // size)
    shape = [rng.randint(1, 9) for _ in range(rank - 1)] + [16 * rng.randint(1, 20) // size]
    start = [rng.randint(0, n - 1) for n in shape[:-1]]
    start.append(16 * rng.randint(0, shape[-1] * size // 16) // size)
    fill = "nan" if dtype[0] == "f" and rng.random() < 0.3 else None
    return dtype, shape, box, start, {"swizzle": swizzle, "steps": tuple(steps), "fill": fill}


def tensor_map_cases():
    import test_tensor_map as tensors

    rng, values = random.Random(SEED), np.random.default_rng(SEED)
    for _ in range(TENSORS):
        dtype, shape, box, start, how = random_tensor(rng)
        with recorded(f"{dtype}{shape}, box {box} at {start}, {how}") as recording:
            array = tensors.random_array(values, shape, dtype)
            tensors.load(array, tuple(box), start, "emu", **how)
        yield recording.case()
    with recorded("pointers to tensor maps") as recording:
        arrays = [tensors.random_array(values, (rng.randint(9, 40), 32), "f4") for _ in "ab"]
        maps = [smemkern.TensorMap(array, (8, 16)) for array in arrays]
        out = np.zeros(1024, "u1")
        tensors.kernel("load_pointers", 2)(1, 32, *maps, rng.randint(0, 8), out, shared_bytes=2048)
    yield recording.case()


FUSED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry fused(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {
    .reg .u32 %t, %b, %n;
    .reg .u64 %x, %at, %i;
    .reg .f64 %a, %f, %c;
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %t, %b, %n, %t;
    mul.wide.u32 %i, %t, 8;
    ld.param.u64 %x, [pa];
    add.u64 %at, %x, %i;
    ld.global.f64 %a, [%at];
    ld.param.u64 %x, [pb];
    add.u64 %at, %x, %i;
    ld.global.f64 %f, [%at];
    ld.param.u64 %x, [pc];
    add.u64 %at, %x, %i;
    ld.global.f64 %c, [%at];
    fma.rn.f64 %c, %a, %f, %c;
    ld.param.u64 %x, [pd];
    add.u64 %at, %x, %i;
    st.global.f64 [%at], %c;
    ret;
}
"""


def short_doubles(rng, n, exponents):
    """Doubles of few significant bits, whose products and sums are often half-way between two."""
    bits = rng.integers(1, 54, n)
    whole = rng.integers(0, 1 << 53, n) >> (53 - bits)
    sizes = np.ldexp(whole.astype("f8"), rng.integers(-exponents, exponents + 1, n))
    return sizes * rng.choice([-1.0, 1.0], n)


def fused_cases():
    """fma.rn.f64, which has code of its own where there is no such instruction."""
    rng = np.random.default_rng(SEED)
    n = 1 << 14
    with np.errstate(all="ignore"):
        any_bits = [rng.integers(0, 1 << 64, n, dtype="u8").view("f8") for _ in "abc"]
        short = [short_doubles(rng, n, 60) for _ in "abc"]
        a, b = short_doubles(rng, n, 400), short_doubles(rng, n, 400)
        half = np.spacing(np.abs(a * b)) * rng.choice([-0.5, 0.5, 0.25, 1, 1.5], n)
        mixed = [short_doubles(rng, n, 1000) for _ in "abc"]
        for one in mixed:
            one[rng.random(n) < 0.02] = rng.choice([0, -0.0, np.inf, -np.inf, np.nan, 5e-324])
        zeros = [rng.choice([0.0, -0.0, 1.0, -1.0, 2.0**-440, 2.0**440], n) for _ in "abc"]
        sets = {"any bits": any_bits, "short": short, "cancels": (a, b, -(a * b))}
        sets |= {"half": (a, b, half), "mixed": mixed, "zeros": zeros}
    for name, three in sets.items():
        with recorded(f"fma.rn.f64 of {name}") as recording:
            out = np.zeros(n)
            smemkern.Kernel(FUSED, "fused")(n // 128, 128, *three, out)
        yield recording.case()


SETS = [corpus_cases, variant_cases, mistake_cases, program_cases, instruction_cases, matrix_cases]
SETS += [tensor_map_cases, fused_cases]
COMPILED = (corpus_cases, tensor_map_cases)


@pytest.mark.parametrize("cases", SETS, ids=lambda made: made.__name__)
def test_same_as_native(cases, module, tmp_path, request):
    if cases in COMPILED:
        request.getfixturevalue("nvrtc")
    made = list(cases())
    assert made
    differences = repeat(module, made, tmp_path)
    assert not differences, f"seed {SEED}: {differences}"


BAD_TENSORS = [
    ({"type": "complex64"}, "there is no type 'complex64'"),
    ({"type": ""}, "there is no type ''"),
    ({"box": [4]}, "box needs 2 numbers"),
    ({"box": None}, "box needs 2 numbers"),
    ({"box": [4, 7]}, "28 bytes .* must be a multiple of 16"),
    ({"box": [257, 8]}, "the box has 257 elements in dimension 1"),
    ({"box": [0, 8]}, "the box has 0 elements"),
    ({"box": [-1, 8]}, "the box of dimension 1 from the innermost is -1"),
    ({"box": [1e300, 8]}, "must be a whole number"),
    ({"box": [1.5, 8]}, "is 1.5; it must be a whole number"),
    ({"box": ["x", 8]}, "must be a whole number"),
    ({"box": [4, 64], "swizzle": "128B"}, "more than the 128 bytes of the swizzle"),
    ({"swizzle": "256B"}, "expected a swizzle of 32B, 64B, 128B, found 256B"),
    ({"swizzle": "toString"}, "expected a swizzle"),
    ({"element_strides": [1, 2]}, "the element stride of dimension 0 .* is 2"),
    ({"element_strides": [9, 1]}, "the element stride of dimension 1 .* is 9"),
    ({"element_strides": [1]}, "element_strides needs 2 numbers"),
    ({"fill": "zero"}, "expected nan or nothing as fill, found zero"),
    ({"type": "int32", "fill": "nan"}, "int32 has no NaN"),
    ({"shape": [5, 17]}, "68 bytes apart; that must be a multiple of 16"),
    ({"shape": [6, 64]}, "the tensor ends after its array of 1280 bytes"),
    ({"shape": [2**32, 2**32]}, "tensor map: "),
    ({"shape": [0, 64]}, "dimension 1 from the innermost has 0 elements"),
    ({"shape": [], "box": [], "element_strides": []}, "a tensor of 0 dimensions"),
    (
        {"shape": [1] * 5 + [4], "box": [1] * 5 + [4], "element_strides": [1] * 6},
        "a tensor of 6 dimensions",
    ),
    ({"offset": 8}, "begins at byte 8 .* must be a multiple of 16"),
    ({"offset": 16}, "the tensor ends after its array"),
    ({"offset": -16}, "begins at byte -16"),
    ({"buffer": 77}, "there is no buffer 77"),
]


def tensor_case(name):
    """A launch whose first argument is a tensor map of a 5 x 64 array."""
    import test_tensor_map as tensors

    with recorded(name) as recording:
        tensors.load(np.ones((5, 64), "f4"), (4, 8), (0, 0), "emu")
    case = recording.case()
    case["steps"][0]["launch"]["args"][0]["tensor"]["element_strides"] = [1, 1]
    return case


def test_bad_tensor_maps_are_errors(nvrtc, module, tmp_path):
    good = tensor_case("good")
    cases = [good]
    for k, (change, _) in enumerate(BAD_TENSORS):
        case = {**deepcopy(good), "name": str(k)}
        case["steps"][0]["launch"]["args"][0]["tensor"] |= change
        cases.append(case)
    number = {**deepcopy(good), "name": "number"}
    args = number["steps"][0]["launch"]["args"]
    args[3] = args[0]
    found = repeat(module, [*cases, number], tmp_path)
    assert "good" not in found
    for k, (change, expected) in enumerate(BAD_TENSORS):
        assert re.search(f"LabError: .*{expected}", found.get(str(k), "")), (
            change,
            found.get(str(k)),
        )
    assert "argument 4 is a tensor map, but the kernel's parameter has 4 bytes" in found["number"]


def cuda_sources():
    """What people and random writers wrote: most of it compiles, the rest has a message."""
    import lab_programs
    import random_accesses

    from buildtools.exercises import exercises

    files = [case.file for case in CASES if case.file.suffix == ".cu"]
    files += (ROOT / "csrc" / "kernels").rglob("*.cu")
    yield from (file.read_text() for file in dict.fromkeys(files))
    for exercise in exercises():
        yield from (text for text in exercise.values() if "__global__" in str(text))
    rng = np.random.default_rng(SEED)
    for k in range(PROGRAMS):
        yield lab_programs.Writer(rng, bool(k % 2)).program()
        yield random_accesses.Writer(rng).program()


def test_its_compiler_makes_the_same_ptx(module, tmp_path):
    from lab_compiler import CompileError, compiled

    sources = [text for text in cuda_sources() if isinstance(text, str)]
    there = visit(module, sources, tmp_path, "compileCases")
    n_compiled = 0
    for source, found in zip(sources, there, strict=True):
        try:
            expected = compiled(source)
            n_compiled += 1
        except CompileError as wrong:
            expected = f"LabError: {wrong}"
        assert found == expected, f"seed {SEED}:\n{source}"
    assert 2 * PROGRAMS < n_compiled < len(sources)


RATED_SIZES = {
    "gemm": {"m": 128, "n": 128, "k": 128},
    "transpose": {"rows": 512, "cols": 512},
    "probe": {"n": 1 << 18},
}
TRIES, RATE, RATED = 5, 0.25, 20


def native_milliseconds(case):
    """The shortest of some traced runs."""
    plan = case["steps"][0]["plan"]
    arrays = operands(plan["op"], plan["dtype"], plan["sizes"], np.random.default_rng(0))
    options = {"variant": plan["variant"], "device": "emu"}
    best, end = np.inf, time.perf_counter() + 0.2
    while time.perf_counter() < end:
        begin = time.perf_counter()
        smemkern._core.observe(plan["op"], arrays, options, trace=True)
        best = min(best, time.perf_counter() - begin)
    return 1e3 * best


def rated_cases():
    values = np.random.default_rng(SEED)
    for row in random.Random(SEED).sample(smemkern.variants(), RATED):
        dtype = next((name for name in ("float32", "b32") if name in row.dtypes), row.dtypes[0])
        one = variant_case(row, dtype, RATED_SIZES[row.op], values)
        one["steps"] = [{**one["steps"][0], "after": []}]
        yield one


def test_a_quarter_of_the_native_rate(module, tmp_path):
    """Variants, drawn at random, of one host thread, in traced runs. What seems to be slower is
    measured again: the machine has other work."""
    slow = list(rated_cases())
    best = {case["name"]: (np.inf, np.inf) for case in slow}
    for attempt in range(TRIES):  # each twice as long, for the browser's compiler has to end
        asked = {"rounds": 4 << attempt, "cases": slow}
        there = visit(module, asked, tmp_path, "rateCases")
        for case, time_there in zip(slow, there, strict=True):
            native, known = best[case["name"]]
            best[case["name"]] = min(native, native_milliseconds(case)), min(known, time_there)
        rates = {name: native / there for name, (native, there) in best.items()}
        slow = [case for case in slow if rates[case["name"]] < RATE]
        if not slow:
            break
    assert not slow, f"seed {SEED}: {[(c['name'], best[c['name']]) for c in slow]} ms, native first"


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
