"""validation/referee.py: its verdicts on made-up cases, its formulas, and its records."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "validation" / "referee.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="not a source tree")


def module(name):
    return importlib.import_module(name)


KERNEL = """typedef int data_t;
#include "indigo_cuda.h"

__global__ void test_kernel(int *nindex, int *nlist, data_t *data1, data_t *data2, int numv)
{
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  %s
}

void serial_code() { host_only(); }
"""
BODIES = {
    "add": "if (i < numv) atomicAdd(data1, 1);",
    "add_atomicBug": "if (i < numv) data1[0]++;",
    "flag_atomicBug": "if (i < numv) data1[0] = 1;",
    "add_boundsBug": "data1[i] = i;",
    "add_boundsBug_atomicBug": "data2[i] = i; data1[0] = i;",
    "cas": "if (i < numv) { int old = *data1, a;"
    " do { a = old; old = atomicCAS(data1, a, a + 1); } while (a != old); }",
}
LABELS = {
    "add": "clean",
    "add_atomicBug": "race",
    "flag_atomicBug": "race",
    "add_boundsBug": "bounds",
    "add_boundsBug_atomicBug": "race",
    "cas": "clean",
}


@pytest.fixture
def suite(tmp_path):
    """A folder like Indigo's, with a graph of 70 vertices in a ring."""
    (tmp_path / "input").mkdir()
    (tmp_path / "indigo_sources" / "some").mkdir(parents=True)
    n = 70
    words = np.array([n, n, *range(n + 1), *((i + 1) % n for i in range(n))], "<i4")
    words.tofile(tmp_path / "input" / "ring.egr")
    for name, body in BODIES.items():
        (tmp_path / "indigo_sources" / "some" / f"{name}.cu").write_text(KERNEL % body)
    return tmp_path


def test_verdicts(suite, nvrtc):
    referee = module("referee")
    cases = module("labels.indigo").cases(suite)
    assert {case.name: case.label for case in cases} == LABELS
    for case in cases:
        judged = referee.judge(case)
        said = {form: referee.says(judged[form]) for form in case.forms}
        assert said == dict.fromkeys(case.forms, case.label), case.name
        assert "reason" not in judged


def test_arguments(suite):
    [exact, *_] = runs = list(module("labels.indigo").cases(suite)[0].runs())
    assert [len(a) for a in exact.arguments[:4]] == [71, 70, 70, 70]
    assert exact.arguments[4] == 70
    assert exact.arguments[2][0] == 0 and exact.arguments[2].max() < 70
    assert len(runs) == 4 and {len(run.arguments[0]) for run in runs} == {71, 71 + 66560}


def test_an_error_is_no_verdict_on_races(suite, nvrtc):
    file = suite / "indigo_sources" / "some" / "broken.cu"
    file.write_text(KERNEL % "undeclared();")
    [case] = [case for case in module("labels.indigo").cases(suite) if case.name == "broken"]
    judged = module("referee").judge(case)
    assert module("referee").says(judged["optimised"]) == "error"
    assert judged["reason"] is None


def test_command(suite, nvrtc):
    command = [sys.executable, str(SCRIPT), "indigo", str(suite)]
    done = subprocess.run([*command, "--print"], capture_output=True, text=True, check=True)
    record = json.loads(done.stdout)
    assert record["matrix"]["optimised"]["race"]["race"] == 3
    empty = subprocess.run([*command[:-1], str(suite / "input")], capture_output=True, text=True)
    assert empty.returncode == 2 and "no cases of indigo" in empty.stderr


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("7", 7),
        ("min((4 * n), 32)", 20),
        ("Σ_{i | 0 ≤ i ≤ (n - 1)} 1", 5),
        ("Σ_{i | 0 ≤ i ≤ (n - 1)} Σ_{j | i ≤ j ≤ (n - 1)} 1", 15),
        ("Σ_{j | 0 ≤ j ≤ ⌊(ub - lb) / step⌋} 1", 4),
        ("Σ_{i | 0 ≤ i ≤ ((n << 2) - 1)} i", 190),
        ("Σ_{i | 1 ≤ i ≤ ⌊log₂((n + 4))⌋} 1", 3),
        ("if ((n < 4)) then 1 else 3", 3),
        ("if ((lb < 4)) then 1 else 3", 1),
    ],
)
def test_formulas(formula, value):
    assert (
        module("labels.formula").value_of(formula, {"n": 5, "lb": 2, "ub": 9, "step": 2}) == value
    )


# ---- kernels that a suite's own compiler has compiled

PTX = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n, .param .u64 scratch) {
    .reg .b32 %t, %v, %n;
    .reg .b64 %a, %b;
    .reg .pred %q;
    .shared .align 8 .b64 bar;
    .shared .align 4 .b32 tile[64];
    ld.param.u64 %a, [p];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %b, %t, 4, %a;
    BODY
    ret;
}
"""
SHARED = """mov.u32 %v, tile;
    mad.lo.u32 %v, %t, 4, %v;
    st.shared.u32 [%v], %t;
    BARRIER
    xor.b32 %t, %t, %n;
    mov.u32 %v, tile;
    mad.lo.u32 %v, %t, 4, %v;
    ld.shared.u32 %v, [%v];
    st.global.u32 [%b], %v;"""
COMPILED = {
    "right": ("clean", SHARED.replace("BARRIER", "bar.sync 0;")),
    "missing": ("race", SHARED.replace("BARRIER", "")),
    "stuck": (
        "deadlock",
        "setp.eq.u32 %q, %t, 0;\n@%q mbarrier.init.shared.b64 [bar], 2;\nbar.sync 0;\n"
        "L: mbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n@!%q bra L;",
    ),
    "unmade": ("barrier", "mbarrier.arrive.shared.b64 %a, [bar];"),
}


@pytest.fixture
def compiled(tmp_path):
    """A folder like that of suites/triton_tests.py."""
    made = {}
    for name, (label, body) in COMPILED.items():
        (tmp_path / f"{name}.ptx").write_text(PTX.replace("BODY", body))
        made[name] = {
            "label": label,
            "messages": [],
            "entry": "k",
            "grid": [1, 1, 1],
            "cluster": 1,
            "threads": 64,
            "shared_bytes": 0,
            "arrays": [{"shape": [64], "dtype": "int32", "fill": "zeros"}],
            "arguments": [
                {"array": 0},
                {"number": 33, "dtype": "int32"},
                {"number": 0, "dtype": "int64"},
            ],
            "ptx": f"{name}.ptx",
        }
    record = {"triton": "0", "cases": made, "left_out": {"other": "why"}}
    (tmp_path / "cases.json").write_text(json.dumps(record))
    return tmp_path


def test_verdicts_of_compiled_kernels(compiled):
    referee = module("referee")
    cases = module("labels.consan").cases(compiled)
    assert {case.name: case.label for case in cases} == {n: c[0] for n, c in COMPILED.items()}
    for case in cases:
        judged = referee.judge(case)
        assert referee.says(judged["compiled"]) == case.label, (case.name, judged)
        assert "unoptimised" not in judged
    assert module("labels.cutracer").extra(compiled)["left_out"] == {"other": "why"}
    assert module("labels.consan").cases(compiled / "nothing") == []


def test_arguments_of_compiled_kernels(compiled):
    file = compiled / "cases.json"
    record = json.loads(file.read_text())
    row = record["cases"]["right"]
    row["arrays"] = [
        {"shape": [4, 64], "dtype": "float16", "fill": "random"},
        {"shape": [2, 3], "dtype": "int32", "fill": "arange"},
    ]
    tile = {"array": 0, "block_size": [2, 64], "swizzle": 3}
    row["arguments"] = [{"array": 0}, {"map": tile}, {"array": 1}]
    row["cluster"] = 2
    file.write_text(json.dumps(record))
    [run] = module("labels.consan").cases(compiled)[0].runs()
    array, of_array, numbers = run.arguments
    assert array.dtype == np.float16 and array.shape == (4, 64) and array.std() > 0.5
    assert type(of_array).__name__ == "TensorMap"
    assert numbers.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert run.cluster == 2 and run.block == (64,)


class Marked:
    """A mark of pytest."""

    def __init__(self, name, *args, **kwargs):
        self.name, self.args, self.kwargs = name, args, kwargs


@pytest.fixture
def triton_tests(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent / "suites")
    return module("triton_tests")


def test_labels_are_what_a_test_expects(triton_tests):
    def test(FAULT, device, run_wrapper, monkeypatch, num_ctas):
        result = tests.run_in_process(None)
        if FAULT == "none":
            assert result.exc is None
            assert result.driver_stderr_output == ""
        else:
            assert "device-side assert" in str(result.exc)
            message = "Deadlock detected" if FAULT == "stuck" else "Buffer has outstanding reads"
            assert message in result.driver_stderr_output

    class tests:
        pass

    test.pytestmark = [
        Marked("skipif", False, reason="never"),
        Marked("parametrize", "FAULT", ["none", "stuck", "race"]),
    ]
    rows = triton_tests.parameters(test)
    assert len(rows) == 9 and {row["num_ctas"] for row in rows} == {1, 2, 4}
    labels = {row["FAULT"]: triton_tests.expectation(tests, test, row)[0] for row in rows}
    assert labels == {"none": "clean", "stuck": "deadlock", "race": "race"}
    assert triton_tests.skipped(test) == ""
    test.pytestmark.append(Marked("skipif", True, reason="another GPU"))
    assert triton_tests.skipped(test) == "another GPU"


def test_launches_as_the_kernel_takes_them(triton_tests):
    recorder = triton_tests.triton_recorder
    tensor = recorder.maker("random")((4, 64), dtype=recorder.DTYPES["float16"])
    assert tensor.stride() == (64, 1) and tensor.reshape(256).shape == (256,)

    class Descriptor:
        base, shape, strides = tensor, [4, 64], [64, 1]

    class kernel:
        class metadata:
            tensordesc_meta = ({"swizzle": 3, "elem_size": 2, "block_size": [2, 64]},)

    signature = ["tensordesc<fp16[2,64]>", "constexpr", "*fp16", "i32"]
    made = recorder.arguments(kernel, signature, [Descriptor(), True, tensor, 7])
    assert made["arrays"] == [{"shape": (4, 64), "dtype": "float16", "fill": "random"}]
    numbers = [row.get("number") for row in made["arguments"]]
    assert numbers == [None, 4, 64, 64, 1, None, 7, 0, 0]
    assert made["arguments"][0]["map"]["array"] == made["arguments"][5]["array"] == 0


@pytest.mark.parametrize("name", ["indigo", "faial", "consan", "cutracer"])
def test_records(name):
    """The matrix counts the cases, and every difference from a label has a reason."""
    referee = module("referee")
    record = module("records").read(f"referee-{name}")
    for form, found in record["matrix"].items():
        assert found == referee.matrix(record["cases"], form)
    for case, one in record["cases"].items():
        differs = any(referee.says(one[form]) != one["label"] for form in record["matrix"])
        assert differs == bool(one.get("reason")), case
    for row in record.get("costs", []):
        assert (row["counted"] != row["expected"]) == bool(row.get("reason")), row
