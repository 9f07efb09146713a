"""setmaxnreg: which blocks go on and which wait for ever, against a model of the pool."""

from __future__ import annotations

import random
import re
import subprocess
import sys

import numpy as np
import pytest

import smemkern
from checks import environment

HEAD = """
.version 8.3
.target sm_90a
.address_size 64
"""
ENTRY = """
.visible .entry k(.param .u64 out)
DIRECTIVES
{
    .reg .pred %p;
    .reg .b32 %group, %thread;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %thread, %tid.x; shr.u32 %group, %thread, 7;
    mad.wide.u32 %out, %thread, 4, %out;
BODY
    st.global.u32 [%out], 1;
    ret;
}
"""


def kernel(directives, body):
    text = ENTRY.replace("DIRECTIVES", directives).replace("BODY", body)
    return smemkern.Kernel(HEAD + text, "k")


def run(directives, body, threads, **words):
    out = np.zeros(threads, "u4")
    kernel(directives, body)(1, threads, out, device="emu", max_instructions=10**6, **words)
    assert out.all()


def step(number, group, count, direction):
    """A warpgroup's setmaxnreg."""
    return f"""
    setp.ne.u32 %p, %group, {group}; @%p bra L{number};
    setmaxnreg.{direction}.sync.aligned.u32 {count};
L{number}:"""


def phases(plan):
    """plan: for each phase, the count of each warpgroup before and after it."""
    body, number = [], 0
    for before, after in plan:
        groups = list(range(len(after)))
        random.Random(len(body)).shuffle(groups)
        for group in groups:
            if before[group] != after[group]:
                direction = "inc" if after[group] > before[group] else "dec"
                body.append(step(number, group, after[group], direction))
                number += 1
        body.append("bar.sync 0;")
    return "\n".join(body)


# Directives, the largest .inc, and the registers per thread that ptxas 13.0 then gives the kernel
# (cuobjdump -res-usage). 0: ptxas drops setmaxnreg (C7508).
AT_LAUNCH = [
    ("", 232, 0),
    (".maxntid 384, 1, 1", 232, 0),
    (".reqntid 384, 1, 1", 232, 0),
    (".minnctapersm 1", 232, 0),
    (".maxntid 384, 1, 1 .minnctapersm 1", 232, 168),
    (".reqntid 384 .minnctapersm 1", 232, 168),
    (".maxntid 8, 48 .minnctapersm 1", 232, 168),
    (".maxntid 288 .minnctapersm 1", 232, 168),
    (".maxntid 384 .minnctapersm 1", 160, 160),
    (".maxntid 384 .minnctapersm 1", 24, 24),
    (".maxntid 384 .minnctapersm 2", 232, 80),
    (".maxntid 384 .minnctapersm 3", 232, 56),
    (".maxntid 384 .minnctapersm 5", 232, 32),
    (".maxntid 384 .minnctapersm 6", 232, 0),
    (".maxntid 416 .minnctapersm 1", 232, 128),
    (".maxntid 128 .minnctapersm 16", 232, 32),
    (".maxntid 128 .minnctapersm 17", 232, 0),
    (".maxntid 128 .minnctapersm 1", 232, 232),
    (".maxntid 256 .minnctapersm 1", 232, 232),
    (".maxntid 256 .minnctapersm 1", 128, 128),
    (".maxntid 640 .minnctapersm 1", 232, 96),
    (".maxntid 896 .minnctapersm 1", 232, 72),
    (".maxntid 1024 .minnctapersm 2", 232, 32),
    (".maxnreg 168", 232, 168),
    (".maxnreg 168", 160, 160),
    (".maxnreg 165 .maxntid 384", 232, 165),
    (".maxnreg 100 .maxntid 384 .minnctapersm 1", 232, 100),
    (".maxnreg 250 .maxntid 384 .minnctapersm 1", 232, 168),
    (".maxnreg 200 .maxntid 512 .minnctapersm 2", 232, 64),
    (".maxnreg 200 .minnctapersm 2", 232, 200),
    (".maxnreg 200 .maxnreg 100", 232, 100),
    (".maxnreg 8", 232, 24),
    (".maxnreg 300", 232, 232),
]


@pytest.mark.parametrize(("directives", "inc", "registers"), AT_LAUNCH)
def test_registers_at_launch(directives, inc, registers):
    """A .dec to one unit more than a warp has is an error that says how many it has. The .inc is
    not executed: it is there for ptxas's rule."""
    has = -(-registers // 8) * 8
    body = f"setmaxnreg.dec.sync.aligned.u32 {has + 8 if has else 256};\n"
    body += f"bra END; setmaxnreg.inc.sync.aligned.u32 {inc};\nEND:"
    threads = 384 if ".reqntid" in directives else 128
    if not registers:
        run(directives, body, threads)
        return
    with pytest.raises(
        smemkern.LaunchError, match=rf"but the warp has {has} \(.*starts with {has}\)"
    ):
        run(directives, body, threads)


@pytest.mark.parametrize(("threads", "has"), [(128, 0), (256, 240), (384, 168), (512, 128)])
def test_wgmma_without_minnctapersm(threads, has):
    """As ptxas 13.0 compiles such kernels: C7508 with 128 threads, and with more none."""
    body = f"setmaxnreg.dec.sync.aligned.u32 {has + 8 if has else 256};\n"
    body += "bra END; setmaxnreg.inc.sync.aligned.u32 240;\n"
    body += ".reg .b32 %d<4>; .reg .b64 %x; "
    body += "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %x, %x, "
    body += "1, 1, 1, 0, 0;\nEND:"
    if not has:
        run(f".maxntid {threads}", body, threads)
        return
    with pytest.raises(smemkern.LaunchError, match=rf"but the warp has {has} "):
        run(f".maxntid {threads}", body, threads)


def test_the_largest_inc_of_a_function_counts():
    """ptxas caps the registers at launch by the largest .inc, also one in a function."""
    function = """
.func f() { setmaxnreg.inc.sync.aligned.u32 216; ret; }
"""
    text = ENTRY.replace("DIRECTIVES", ".maxnreg 200").replace(
        "BODY", "setmaxnreg.dec.sync.aligned.u32 200; setmaxnreg.inc.sync.aligned.u32 200; call f;"
    )
    out = np.zeros(128, "u4")
    launched = smemkern.Kernel(HEAD + function + text, "k")
    with pytest.raises(
        smemkern.LaunchError, match="waits for 216 registers per thread; it has 200"
    ):
        launched(1, 128, out, device="emu")


@pytest.mark.parametrize("times", range(6))
def test_random_plans(times):
    """Phases between block barriers. All warps go on if and only if their counts add up to no more
    than what the block was launched with."""
    seed = random.SystemRandom().randrange(2**32)
    draw = random.Random(seed)
    print("seed", seed)
    for _ in range(8):
        warps = draw.randint(1, 24)
        groups = -(-warps // 4)
        sizes = [min(4, warps - 4 * g) for g in range(groups)]
        start = 8 * draw.randint(3, min(24, 64 // groups * 2))
        counts, plan, hangs = [start] * groups, [], False
        while len(plan) < 4 and not hangs:
            after = [draw.choice([c, 8 * draw.randint(3, 32)]) for c in counts]
            while draw.random() < 0.8 and sum(map(int.__mul__, after, sizes)) > start * warps:
                after[draw.randrange(groups)] = 8 * draw.randint(3, start // 8)
            plan.append((counts, after))
            hangs = sum(map(int.__mul__, after, sizes)) > start * warps
            counts = after
        # An .inc that is not reached: no cap.
        body = phases(plan) + "\nbra END; setmaxnreg.inc.sync.aligned.u32 256; END:"
        print(warps, start, plan)
        if not hangs:
            run(f".maxnreg {start}", body, 32 * warps)
            continue
        with pytest.raises(smemkern.LaunchError, match="deadlock") as caught:
            run(f".maxnreg {start}", body, 32 * warps)
        text = str(caught.value)
        assert f"launched with {start} registers for each of its {32 * warps} threads" in text
        waits = re.findall(r"warp (\d+), .*waits for (\d+) registers .* has (\d+), and (\d+)", text)
        assert waits
        before, after = plan[-1]
        for warp, wants, has, free in ((int(x) for x in wait) for wait in waits):
            assert (has, wants) == (before[warp // 4], after[warp // 4])
            assert free < wants - has


LIKE_CUTLASS = [  # warpgroups' counts, .maxntid, .minnctapersm
    ((40, 232, 232), 1),
    ((24, 240, 240), 1),
    ((32, 160, 160, 160), 1),
    ((24, 256), 1),
    ((40, 216), 2),
    ((96, 192, 192, 32), 1),
    ((40, 152, 152, 152), 1),
]


@pytest.mark.parametrize(("counts", "blocks"), LIKE_CUTLASS)
def test_usual_counts_go_on(counts, blocks):
    threads = 128 * len(counts)
    directives = f".maxntid {threads}, 1, 1\n.minnctapersm {blocks}"
    launched = 65536 // (threads * blocks) // 8 * 8
    start = min(launched, max(counts), 256)
    run(directives, phases([([start] * len(counts), counts)]), threads)


def test_a_hang_met_on_an_h200():
    """232 + 232 + 48: the SM has as many registers, but the block only 3 x 168."""
    counts = (48, 232, 232)
    body = phases([([168] * 3, counts)])
    expected = (
        r"setmaxnreg.inc waits .*launched with 168 registers for each of its 384 threads(.|\n)*"
        r"waits for 232 registers per thread; it has 168, and 32 are free for one warp at PTX line"
    )
    with pytest.raises(smemkern.LaunchError, match=expected):
        run(".maxntid 384 .minnctapersm 1", body, 384)


def test_a_warp_that_exits_keeps_its_registers():
    """As on an H200, where this kernel does not end. What the warp gave back before it is given."""
    ask = "setp.ne.u32 %p, %group, 0; @!%p bra FIRST; setmaxnreg.inc.sync.aligned.u32 256; FIRST:"
    with pytest.raises(smemkern.LaunchError, match="it has 168, and 0 are free for one warp"):
        run(".maxnreg 168", ask, 256)
    run(".maxnreg 168", step(9, 0, 40, "dec") + ask, 256)
    run(".maxnreg 168", "setmaxnreg.inc.sync.aligned.u32 168;", 70)


def test_blocks_do_not_share_a_pool():
    out = np.zeros(256, "u4")
    body = phases([([128] * 2, (24, 232))])
    kernel(".maxnreg 128", body)(9, 256, out, device="emu")
    assert out.all()


def test_unknown_counts_have_no_effect():
    """As ptxas drops the instructions; more than a block can have, and .inc to less."""
    body = "setmaxnreg.inc.sync.aligned.u32 256; setmaxnreg.inc.sync.aligned.u32 24;"
    run(".maxntid 1024", body, 1024)


@pytest.mark.parametrize("inc", [True, False])
def test_undefined_directions(inc):
    to = 120 if inc else 136
    body = f"setmaxnreg.{'inc' if inc else 'dec'}.sync.aligned.u32 {to};"
    body += "bra END; setmaxnreg.inc.sync.aligned.u32 256; END:"
    expected = rf"setmaxnreg\.{'inc' if inc else 'dec'} to {to} .* but the warp has 128"
    with pytest.raises(smemkern.LaunchError, match=expected):
        run(".maxnreg 128", body, 64)


@pytest.mark.parametrize("directives", ["", ".maxnreg 128"])
def test_some_lanes_of_a_warp(directives):
    body = "setp.lt.u32 %p, %thread, 40; @%p setmaxnreg.dec.sync.aligned.u32 40;"
    with pytest.raises(smemkern.LaunchError, match="8 of the warp's 32 threads execute setmaxnreg"):
        run(directives, body, 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("inc.sync.aligned.u32 20", "to 20 registers; they must be 24 to 256, and a multiple of 8"),
        ("dec.sync.aligned.u32 16", "to 16 registers; they must be 24 to 256"),
        ("inc.sync.aligned.u32 264", "to 264 registers; they must be 24 to 256"),
        ("inc.sync.aligned.u32 250", "to 250 registers; .* a multiple of 8"),
        ("inc.sync.aligned.u32 -8", "to -8 registers; they must be 24 to 256"),
        ("inc.sync.aligned.u32 0", "to 0 registers; they must be 24 to 256"),
        ("inc.sync.aligned.u32 %thread", "takes one integer constant"),
        ("inc.sync.aligned.u32 240.0", "takes one integer constant"),
        ("inc.sync.aligned.u32 40, 40", "takes one integer constant"),
        ("inc.sync.aligned.u32", "takes one integer constant"),
        ("sync.aligned.u32 40", "setmaxnreg"),
        ("inc.dec.sync.aligned.u32 40", "setmaxnreg"),
        ("inc.aligned.u32 40", "setmaxnreg"),
        ("inc.sync.u32 40", "setmaxnreg"),
        ("inc.sync.aligned.b32 40", "setmaxnreg"),
    ],
)
def test_bad_forms(text, message):
    with pytest.raises(smemkern.Error, match=message):
        run(".maxnreg 128", f"setmaxnreg.{text};", 128)


WGMMA = ["bf16", "fp16", "fp16x1", "fp16x3", "fp16x3_guarded", "ozaki2", "tf32", "tf32x3"]
# Images are kept by their names, so a changed one needs a process of its own.
CHANGED = """
import re, sys, pathlib, numpy, ml_dtypes, smemkern
folder, more, variant, dtype = sys.argv[1:]
images = pathlib.Path(smemkern._core.config()["images"])
for file in images.glob(f"gemm_{variant}-*.ptx"):
    text, n = re.subn(r"(setmaxnreg[.]inc[.a-z0-9]* )(\\d+)",
                      lambda m: m[1] + str(int(m[2]) + int(more)), file.read_text())
    assert n
    pathlib.Path(folder, file.name).write_text(text)
smemkern._core.configure(images=folder, kernels=smemkern._core.config()["kernels"])
a, b = numpy.ones((130, 1100), dtype), numpy.ones((1100, 130), dtype)
try:
    split = {} if variant == "ozaki2" else {"split": 1}  # a ring of which both consumers are needed
    smemkern.gemm(a, b, variant=variant, device="emu", **split)
    print("runs")
except smemkern.LaunchError as error:
    print(error)
"""


@pytest.mark.parametrize("variant", WGMMA)
@pytest.mark.parametrize("more", [0, 16])
def test_kernels_of_the_package(variant, more, tmp_path):
    """They run as they are. With 16 registers per consumer thread more they hang on a GPU."""
    dtype = {"bf16": "bfloat16", "fp16": "f2", "ozaki2": "f8"}.get(variant, "f4")
    done = subprocess.run(
        [sys.executable, "-c", CHANGED, tmp_path, str(more), variant, dtype],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    if more:
        assert re.search(r"deadlock(.|\n)*waits for \d+ registers per thread", done.stdout)
    else:
        assert done.stdout == "runs\n"
