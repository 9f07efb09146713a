"""Numbers of a trace from the machine code: parsing, equations, an H200's counts, missing tools.

machine_code_h200.json.xz holds the PTX of machine_code_kernels.cu (nvcc 13.0, -arch=sm_90
-lineinfo), what ptxas 13.0 and nvdisasm print of it, and Nsight Compute's counts of that machine
code on an H200. So most tests here need neither the tools nor a GPU.
"""

import json
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import smemkern
from smemkern._compiler import cuda_tools
from smemkern._compiler.cuda_tools import Compiled, Resources, ToolError
from smemkern._trace import machine_code
from smemkern._trace.machine_code import Contradiction, Equations, Instruction

ROOT = Path(__file__).resolve().parent
RECORD = json.loads(lzma.decompress((ROOT / "machine_code_h200.json.xz").read_bytes()))
CALLS = RECORD["calls"]
# Rows whose numbers do not follow: guarded accesses, blocks without an instruction that tells how
# often they run, and requests of different cost.
SILENT = {
    "branches": 3,
    "mixed": 2,
    "pattern_by_step": 1,
    "reduction": 2,
    "tiles_own_row": 1,
    "transpose": 1,
}
needs_ptxas = pytest.mark.skipif(not cuda_tools.find("ptxas"), reason="needs ptxas")
needs_tools = pytest.mark.skipif(
    not all(map(cuda_tools.find, cuda_tools.NAMES)), reason="needs ptxas and nvdisasm"
)


def kernel(name):
    return smemkern.Kernel(RECORD["ptx"], name)


def trace(name, **kw):
    call = CALLS[name]
    x = np.linspace(-1, 1, 4096, dtype=np.float32)
    return smemkern.trace(
        kernel(name), call["grid"], call["block"], x, np.zeros_like(x), call["n"], **kw
    )


def plain(rows):
    return [row for row in rows if row.op in ("load", "store")]


@pytest.fixture
def recorded(monkeypatch):
    """ptxas and nvdisasm, as recorded."""

    def compiled(ptx, entry, arch):
        assert ptx == RECORD["ptx"]
        return Compiled(Resources(**CALLS[entry]["resources"]), entry.encode())

    monkeypatch.setattr(machine_code, "compiled", compiled)
    monkeypatch.setattr(machine_code, "disassembly", lambda cubin: CALLS[cubin.decode()]["listing"])


@pytest.fixture
def without_tools(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(cuda_tools, "_places", lambda name: iter(()))


# ---- the equations


def test_equations(rng):
    """A sum is found just if it is a combination of the equations, and then it is right."""
    found = 0
    for _ in range(300):
        blocks = int(rng.integers(1, 8))
        runs = rng.integers(0, 50, blocks)
        known = rng.integers(0, 4, (int(rng.integers(0, blocks + 2)), blocks))
        asked = rng.integers(0, 4, blocks)
        if rng.random() < 0.5 and len(known):
            asked = rng.integers(0, 3, len(known)) @ known
        equations = Equations()
        for row in known:
            equations.add(_row(row), int(row @ runs))
        rank = np.linalg.matrix_rank
        follows = not len(known) or rank(np.vstack([known, asked])) == rank(known)
        follows = follows and (len(known) > 0 or not asked.any())
        assert equations.value(_row(asked)) == (asked @ runs if follows else None), (known, asked)
        found += follows
    assert 50 < found < 300


def _row(counts):
    return {k: Fraction(int(c)) for k, c in enumerate(counts) if c}


def test_contradiction():
    equations = Equations()
    equations.add({0: Fraction(1), 1: Fraction(2)}, 10)
    equations.add({1: Fraction(1)}, 3)
    with pytest.raises(Contradiction, match=r"the sum of \[0\] is off by 1"):
        equations.add({0: Fraction(2)}, 9)


# ---- parsing


def test_instructions():
    listing = """
.text.other:
        /*0000*/                   LDS R1, [R2] ;
//-----
.text.k:
\t//## File ".nv_debug_ptx_txt", line 12
        /*0000*/              @!P0 STS.U16 [R5], R2 ;
        /*0010*/                   LDS.128 R4, [R0+0x10] ;
        /*0020*/              @P1 BRA `(.L_x_1) ;
\t//## File ".nv_debug_ptx_txt", line 14
        /*0030*/                   LDS.64 R4, [UR4] ;
.L_x_1:
        /*0040*/              @!UP0 EXIT ;
//-----
"""
    assert machine_code.instructions(listing, "k") == [
        Instruction(0, "STS.U16", True, 12),
        Instruction(0, "LDS.128", False, 12),
        Instruction(0, "BRA", True, 12),
        Instruction(1, "LDS.64", False, 14),
        Instruction(2, "EXIT", True, 14),
    ]
    opcodes = ("LDS", "LDS.U8", "STS.U16", "LDS.64", "STS.128")
    assert [*map(machine_code.width_of, opcodes)] == [4, 1, 2, 8, 16]


def test_statements_are_those_of_the_entry():
    ptx = """.visible .entry k1(.param .u64 p)
{ ret; }
.visible .entry k(
    .param .u64 p
)
{
    .reg .f32 %f<4>; // ld.shared.f32 %f0, [%r0];
    ld.shared.f32 %f1, [%r1];
    add.f32 %f1, %f1, %f1; add.f32 %f1, %f1, %f1;
    @!%p1 st.shared.v2.f32 [%r1+8], {%f1, %f1};
}
.func other() { ret; }
"""
    found = machine_code.code_of(ptx, "k").statements
    assert {line: (s.opcode, s.guarded) for line, s in found.items()} == {
        8: ("ld.shared.f32", False),
        10: ("st.shared.v2.f32", True),
    }


# ---- an H200's counts


@pytest.mark.parametrize("name", CALLS)
def test_counts_of_an_h200(name, recorded):
    """The rows that follow from the machine code, with the model for the others, against ncu."""
    call, found = CALLS[name], trace(name, machine_code=True)
    sources = [row.machine_source for row in plain(found.shared)]
    assert sources.count("model") == SILENT.get(name, 0)
    said = {
        f"shared {op} {what}": sum(
            getattr(row, f"machine_{what}") for row in found.shared if row.op == op
        )
        for op in ("load", "store")
        for what in ("requests", "wavefronts")
    }
    said["ideal"] = sum(row.machine_ideal for row in found.shared)
    measured = call["measured"]
    assert said == {what: measured[what] for what in said}
    # A launch has at least 16 registers per thread.
    assert max(found.machine_code.resources.registers, 16) == measured["registers"]


SINGLE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p;
    .shared .align 16 .b8 tile[4096];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    ld.global.s32 %r2, [%rd2];
    setp.lt.s32 %p, %r2, 0;
    mov.u32 %r3, tile;
    add.s32 %r3, %r3, %r2;
    @!%p {access};
    ret;
}}
"""


@pytest.mark.parametrize("op", ["ld", "st"])
@pytest.mark.parametrize(("width", "vector"), [(4, ""), (8, ".v2"), (16, ".v4")])
def test_ideal_of_single_requests_of_an_h200(op, width, vector):
    """Random requests, broadcasts, strides, and some lanes (offsets of others are negative)."""
    registers = ", ".join(f"%f{k}" for k in range(width // 4))
    operands = [f"{{{registers}}}" if vector else registers, "[%r3]"]
    access = f"{op}.shared{vector}.f32 " + ", ".join(operands if op == "ld" else operands[::-1])
    k = smemkern.Kernel(SINGLE.format(access=access), "k")
    cases = [case[2:] for case in RECORD["requests"] if case[:2] == [op, width]]
    assert len(cases) == 30
    for offsets, ideal in cases:
        offsets = np.array(offsets, np.int32)
        [row] = smemkern.trace(k, 1, 32, offsets, hazards=False).shared
        assert row.machine_ideal == ideal, offsets


@pytest.mark.parametrize("name", CALLS)
def test_occupancy_of_an_h200(name):
    """With the carve-out that the driver chose, in bytes and as a percentage."""
    call, measured = CALLS[name], CALLS[name]["measured"]
    for carveout in (measured["carveout"], measured["carveout"] * 100 // (228 * 1024)):
        found = smemkern.occupancy(
            call["block"],
            measured["registers"],
            static_bytes=call["resources"]["static_shared"],
            carveout=carveout,
        )
        assert {limit: found.limits[limit] for limit in measured["limits"]} == measured["limits"]


def test_loops_that_ptxas_unrolls_need_the_machine_code(recorded):
    """Else the test above would pass with the model alone."""
    differ = set()
    for name in CALLS:
        model, read = trace(name), trace(name, machine_code=True)
        for a, b in zip(model.shared, read.shared, strict=True):
            assert (a.requests, a.wavefronts, a.ideal) == (b.requests, b.wavefronts, b.ideal)
            if a.machine_requests != b.machine_requests:
                differ.add(name)
    assert differ == {"tiles8", "tiles9", "tiles12"}


def test_joined_rows_have_an_ideal_of_their_own(recorded):
    """Four scalar loads of one address cost 4 wavefronts; as one of 16 bytes 2, its fewest."""
    load = max(trace("rows8_unroll8", machine_code=True).shared, key=lambda row: row.requests)
    assert load.machine_requests == load.requests // 4
    assert load.machine_wavefronts == load.machine_ideal == load.requests // 2
    assert (load.factor, load.machine_factor) == (1.0, 1.0)


def test_ideal_as_joined_without_the_machine_code():
    """A lane's four words, 64 bytes apart: 16 lanes' accesses in the same four banks."""
    ptx = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<4>; .reg .f32 %f<5>;
    .shared .align 16 .b8 tile[2048];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 6;
    mov.u32 %r3, tile;
    add.s32 %r3, %r3, %r2;
    ld.shared.f32 %f1, [%r3];
    ld.shared.f32 %f2, [%r3+4];
    ld.shared.f32 %f3, [%r3+8];
    ld.shared.f32 %f4, [%r3+12];
    ret;
}
"""
    t = smemkern.trace(smemkern.Kernel(ptx, "k"), 1, 32, np.zeros(1), hazards=False)
    rows = t.shared
    assert sum(row.wavefronts for row in rows) == 4 * 16
    assert sum(row.ideal for row in rows) == 4
    lanes = 64 * np.arange(32)
    wide = smemkern.banks.wavefronts(lanes, width=16)
    assert sum(row.machine_wavefronts for row in rows) == wide == 16
    assert sum(row.machine_ideal for row in rows) == smemkern.banks.ideal(lanes, width=16) == 4
    assert t.machine_conflict_factor == 4.0
    assert t.conflict_factor == 16.0


def test_a_wrong_number_of_executions_silences_all_rows(recorded, monkeypatch):
    """A machine store that runs twice as often as the PTX says contradicts the others."""
    listing = CALLS["tiles8"]["listing"]
    store = re.search(r"\n.*STS \[.*\n", listing)[0]
    wrong = listing.replace(store, store * 2)
    assert wrong != listing
    monkeypatch.setattr(machine_code, "disassembly", lambda cubin: wrong)
    assert {row.machine_source for row in trace("tiles8", machine_code=True).shared} == {"model"}


def test_an_access_of_an_unknown_line_silences_all_rows(recorded, monkeypatch):
    listing = CALLS["tiles8"]["listing"]
    at = listing.index("\tLDS") if "\tLDS" in listing else listing.index("LDS")
    start = listing.rindex("line ", 0, at)
    wrong = listing[:start] + re.sub(r"line \d+", "line 1", listing[start:], count=1)
    monkeypatch.setattr(machine_code, "disassembly", lambda cubin: wrong)
    assert {row.machine_source for row in trace("tiles8", machine_code=True).shared} == {"model"}


# ---- what is shown


def test_shown(recorded, tmp_path):
    t = trace("tiles8", machine_code=True)
    text = repr(t)
    assert "as joined" in text
    assert "machine code" in text
    assert "ptxas 13.0.88 for sm_90: 40 registers per thread, no spills" in text
    assert f"occupancy: {t.occupancy.blocks} blocks per SM" in text
    page = t.to_html()
    assert "as joined by ptxas" in page
    assert "by the machine code in 4 of 4 rows" in page
    [line] = [line for line in t.annotate().splitlines() if line.split()[:2] == ["6144", "6144"]]
    assert line.split()[4:8] == ["1536", "3072", "3072", "1.00"]


def test_nothing_joined_adds_no_column():
    text = trace("transpose").annotate()
    assert "as joined" not in text
    assert "as joined by ptxas" not in trace("transpose").to_html()
    assert "as joined" not in repr(trace("transpose"))


# ---- without the tools


def test_without_tools_the_numbers_are_the_models(without_tools):
    asked, plain_ = trace("tiles8", machine_code=True), trace("tiles8")
    assert list(map(repr, asked.shared)) == list(map(repr, plain_.shared))
    assert {row.machine_source for row in asked.shared} == {"model"}
    assert asked.machine_code.resources is None
    assert asked.occupancy is None
    assert "machine code was not read: ptxas was not found" in repr(asked)
    assert asked.machine_code.note in repr(asked)


def test_without_nvdisasm_there_are_registers(recorded, monkeypatch):
    def missing(cubin):
        raise ToolError("nvdisasm was not found")

    monkeypatch.setattr(machine_code, "disassembly", missing)
    t = trace("tiles8", machine_code=True)
    assert t.machine_code.resources.registers == 40
    assert t.machine_code.note == "nvdisasm was not found"
    assert {row.machine_source for row in t.shared} == {"model"}


def test_occupancy_without_ptxas_is_an_estimate(without_tools):
    found = smemkern.occupancy(512, kernel("tiles8"))
    assert found.registers_from.startswith("estimate from the PTX: ptxas was not found")
    assert found.registers_per_thread == kernel("tiles8").live_registers
    assert found.shared_bytes == 4096 + 1024
    assert "estimate from the PTX" in smemkern._render.document.text(found._nodes())


def fake_tool(folder, name, script):
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{script}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("script", "note"),
    [
        (
            "print('ptxas fatal   : Unsupported .version 99.9'); raise SystemExit(255)",
            "Unsupported",
        ),
        ("print('Cuda compilation tools, V13.0.88')", "did not print the registers"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "did not print the registers"),
    ],
)
def test_a_failing_ptxas_is_reported(tmp_path, monkeypatch, script, note):
    fake_tool(tmp_path, "ptxas", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cuda_tools, "_kept", {})
    t = trace("transpose", machine_code=True)
    assert note in t.machine_code.note
    assert note in smemkern.occupancy(256, kernel("transpose")).registers_from


def test_a_tool_that_does_not_end_is_stopped(tmp_path, monkeypatch):
    fake_tool(tmp_path, "nvdisasm", "import time; time.sleep(60)")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(cuda_tools, "SECONDS", 0.2)
    with pytest.raises(ToolError, match=r"nvdisasm did not end within 0.2 s"):
        cuda_tools.disassembly(b"")


def test_a_wrong_architecture_is_refused():
    with pytest.raises(ValueError, match="sm_42"):
        trace("transpose", machine_code="sm_42")


@pytest.mark.parametrize(
    ("target", "asked", "used"),
    [
        ("sm_80", None, "sm_90"),
        ("sm_80", "sm_86", "sm_86"),
        ("sm_90", "sm_86", "sm_90"),
        ("sm_90a", "sm_90", "sm_90a"),
        ("sm_100f", None, "sm_100f"),
    ],
)
def test_architecture(target, asked, used):
    ptx = f".version 8.0\n.target {target}, debug\n.address_size 64\n"
    assert cuda_tools.arch_for(ptx, asked) == used


# ---- with the tools


@needs_ptxas
@pytest.mark.parametrize("name", ["tiles8", "transpose", "mixed"])
def test_resources_are_those_of_the_object_file(name, tmp_path):
    """ptxas's options and our parsing, against `ptxas -v` on the whole module."""
    text = tmp_path / "all.ptx"
    text.write_text(RECORD["ptx"])
    command = [cuda_tools.find("ptxas"), "-v", "-arch=sm_90", "-o", os.devnull, str(text)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    part = said.split(f"'{name}'")[1]
    used = re.search(r"Used (\d+) registers", part)[1]
    assert trace(name, machine_code=True).machine_code.resources.registers == int(used)
    assert smemkern.occupancy(128, kernel(name)).registers_per_thread == int(used)


@needs_ptxas
def test_spills_are_reported():
    """Registers are limited to 16 by the PTX itself."""
    head, entry, rest = RECORD["ptx"].partition(".visible .entry tiles8(")
    parameters, closing, body = rest.partition(")")
    limited = head + entry + parameters + closing + "\n.maxnreg 16" + body
    resources = cuda_tools.compiled(limited, "tiles8").resources
    assert resources.registers <= 24
    assert resources.stack > 0
    assert resources.spill_loads > 0
    assert "spills" in resources.told()


@needs_tools
@pytest.mark.parametrize("name", ["tiles8", "own_rows16", "stores_joined"])
def test_the_tools_themselves(name):
    """Other versions of ptxas may join otherwise, but the rows are certain with those too."""
    t = trace(name, machine_code=True)
    assert t.machine_code.note is None
    assert {row.machine_source for row in t.shared} == {"machine code"}
    if t.machine_code.resources.ptxas == RECORD["ptxas"]:
        measured = CALLS[name]["measured"]
        loads = sum(row.machine_requests for row in t.shared if row.op == "load")
        assert loads == measured["shared load requests"]


DEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p<2>;
    .shared .align 16 .b8 tile[8192];
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r8, [n];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd2, %rd1, %rd2;
    mov.u32 %r4, 0;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r7, tile;
    add.s32 %r7, %r7, %r2;
OUTER:
    .pragma "nounroll";
    mov.u32 %r3, %r7;
    add.s32 %r7, %r7, 512;
    mov.u32 %r5, 0;
INNER:
    ld.shared.u32 %r6, [%r3];
    xor.b32 %r4, %r4, %r6;
    st.global.u32 [%rd2], %r4;
    add.s32 %r3, %r3, 4;
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, 4;
    @%p0 bra INNER;
    add.s32 %r8, %r8, -1;
    setp.gt.s32 %p1, %r8, 0;
    @%p1 bra OUTER;
    ret;
}
"""


@needs_tools
def test_a_store_that_ptxas_leaves_out_counts_nothing():
    """Of four steps of the inner loop it keeps the last store: not one per execution."""
    kernel = smemkern.Kernel(DEAD, "k")
    [row] = smemkern.trace(kernel, 1, 32, np.zeros(32, "u4"), 6, machine_code=True).shared
    assert (row.machine_source, row.machine_requests) == ("model", 24)


@needs_tools
def test_a_variant():
    a = np.ones((64, 64), np.float32)
    t = smemkern.trace("gemm", a, a, variant="tiled", machine_code="H200")
    assert {row.machine_source for row in t.shared} == {"machine code"}
    assert t.machine_code.resources.arch == "sm_90"


def test_tools_are_found_in_toolkits_and_wheels(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    wheel = tmp_path / "nvidia" / "cu13" / "bin"
    wheel.mkdir(parents=True)
    fake_tool(wheel, "nvdisasm", "")
    monkeypatch.setattr(cuda_tools, "wheels", lambda: iter([tmp_path / "nvidia"]))
    assert cuda_tools.find("nvdisasm") == str(wheel / "nvdisasm")
    toolkit = tmp_path / "toolkit" / "bin"
    toolkit.mkdir(parents=True)
    fake_tool(toolkit, "nvdisasm", "")
    monkeypatch.setenv("CUDA_HOME", str(toolkit.parent))
    assert cuda_tools.find("nvdisasm") == str(toolkit / "nvdisasm")
    monkeypatch.setenv("PATH", str(wheel))
    assert cuda_tools.find("nvdisasm") == shutil.which("nvdisasm") == str(wheel / "nvdisasm")
