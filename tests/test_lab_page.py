"""The laboratory page in a headless browser, opened from a folder, beside the native package."""

import base64
import functools
import http.server
import json
import re
import secrets
import shlex
import threading
import time
import zlib

import numpy as np
import pytest

import smemkern
import smemkern.mistakes
from buildtools import lab_page
from chromium import tab
from lab_pages import lab

MOST_BYTES = 3_850_000
DTYPES = {"b8": "u1", "b16": "u2", "b32": "f4", "b64": "f8", "b128": "c16", "bfloat16": None}
RACE = """__global__ void pass(const float *x, float *y, int n) {
    __shared__ float s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    y[t] = t < n ? s[t ^ 1 ^ 32] : 0.0f;
}
"""
LAUNCH = {
    "grid": [1],
    "block": [64],
    "arguments": [
        {"name": "x", "type": "float32", "shape": [64], "fill": "range"},
        {"name": "y", "type": "float32", "shape": [64], "fill": "constant", "value": 0},
        {"name": "n", "type": "int32", "value": 64},
    ],
}


@pytest.fixture(scope="module")
def browser():
    path = lab()
    with tab() as page:
        page.address = path.as_uri()
        page.look(1280, 900, reduced=True)
        yield page


@pytest.fixture
def page(browser):
    """The browser; its page may not have complained at the end."""
    browser.console.clear()
    browser.requests.clear()
    yield browser
    assert not browser.console
    assert all(url.startswith(("file:", "blob:", "about:")) for url in browser.requests)


def visit(page, fragment):
    page.open(f"{page.address}#{fragment}")
    page.run("lab.shown", timeout=120)


def fragment_of(document):
    packed = zlib.compress(json.dumps(document).encode())
    return "v1=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def test_it_is_one_small_file(browser):
    text = lab().read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    head = text[: text.index("<body>")]
    assert "default-src 'none'" in head  # nothing can be loaded
    assert not [word for word in ("<link", "<img", "src=", "@import") if word in head]


def test_it_loads_from_a_folder_within_seconds(page):
    began = time.monotonic()
    visit(page, "start")
    assert time.monotonic() - began < 20
    assert page.run("document.querySelector('h2').textContent") == "Your first bank conflict"


def test_it_loads_from_a_site(browser, tmp_path):
    (tmp_path / "lab.html").write_bytes(lab().read_bytes())
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    handler.log_message = lambda *args: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.requests.clear()
        address = f"http://127.0.0.1:{server.server_port}/lab.html"
        browser.open(f"{address}#gallery/transpose/tiled")
        browser.run("lab.shown")
        assert browser.run("document.querySelectorAll('.chip.bad').length") >= 1
        server.shutdown()
    asked = [url for url in browser.requests if not url.startswith(("blob:", "about:"))]
    assert {url.split("#")[0] for url in asked} == {address}


# ---- the first experiment


def first(page):
    return page.run(
        """({verdict: lab.page.first.verdict.textContent, kind: lab.page.first.verdict.className,
        tile: document.querySelector(".after .tile.now b").textContent,
        chips: [...document.querySelectorAll(".first .chip")].map((one) => one.textContent),
        late: document.querySelectorAll(".square.late").length,
        hazards: document.querySelectorAll(".first .hazards").length})"""
    )


def test_the_first_experiment_shows_a_conflict_and_cures_it(page):
    visit(page, "")
    shown = first(page)
    assert "32-way bank conflict" in shown["verdict"] and "bad" in shown["kind"]
    assert shown["chips"] == ["×1", "×32"] and shown["late"] == 31 and not shown["hazards"]
    page.run("document.querySelector('.primary.big').click()")
    page.until("lab.page.first.now === 'padded'")
    shown = first(page)
    assert "1 wavefront" in shown["verdict"] and "good" in shown["kind"]
    assert shown["chips"] == ["×1", "×1"] and shown["late"] == 0 and shown["tile"] == "32"
    page.run("document.querySelector('[data-stage=swizzled]').click()")
    page.until("lab.page.first.now === 'swizzled'")
    assert first(page)["chips"] == ["×1", "×1"]
    page.run("document.querySelector('.primary.big').click()")
    page.until("lab.page.first.now === 'plain'")
    assert "32-way" in first(page)["verdict"]


def test_the_stages_transpose(page):
    visit(page, "")
    for stage in ("plain", "padded", "swizzled"):
        page.run(f"lab.page.first.show('{stage}')")
        got = page.run(
            f"""lab.page.engine.call("run", lab.page.first.found.{stage}.task)
            .then(({{arrays}}) => Array.from(new Float32Array(arrays[1].buffer)))"""
        )
        np.testing.assert_array_equal(np.reshape(got, (32, 32)), np.arange(1024).reshape(32, 32).T)


def test_a_replay_opens(page):
    visit(page, "")
    page.run("[...document.querySelectorAll('.after button')].at(-2).click()")
    page.until("document.querySelector('.smk-replay h2') !== null")
    assert "transpose" in page.run("document.querySelector('.smk-replay h2').textContent")
    assert "kernel.cu" in page.run("document.querySelector('.smk-replay').textContent")


# ---- the gallery


ROWS = [(row.op, row.name) for row in smemkern.variants()]


def rows_of_page(trace):
    return sorted(
        (
            one["shared"],
            (one["file"] or "").split("/")[-1],
            *(one[name] for name in ("line", "access", "width", "requests", "wavefronts")),
            *(one[name] for name in ("ideal", "worst")),
        )
        for one in trace["sites"]
    )


def rows_of_native(trace):
    names = ("line", "op", "width", "requests")
    shared = [(True, row, row.wavefronts) for row in trace.shared]
    every = [*shared, *((False, row, row.sectors) for row in trace.global_)]
    return sorted(
        (is_shared, row.file or "", *(getattr(row, name) for name in names), cost, row.ideal)
        + (row.worst,)
        for is_shared, row, cost in every
    )


def without_name(message):
    """A fault's array has a name in the page, where Python says "argument 0"."""
    return re.sub(r"; that is [^,]+,", "; that is it,", message)


def same_counts(found, native):
    assert rows_of_page(found) == rows_of_native(native)
    assert found["warpInstructions"] == native.warp_instructions
    assert found["barriers"] == native.barriers and found["flops"] == native.flops
    assert found["sharedBytes"] == native.launch.shared_bytes
    words = [one["words"] for one in found["hazards"] if not one["benign"]]
    messages = [hazard.message for hazard in native.hazards]
    assert sorted(map(without_name, words)) == sorted(map(without_name, messages))


def mixed(x):
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return x ^ (x >> np.uint64(15))


def array(seed, dtype, *shape):
    """The data of the gallery: floats from -1 to 1 by a hash of the seed and the index. What a
    transpose moves does not matter."""
    name = DTYPES.get(dtype, dtype)
    if dtype in DTYPES and name:
        return np.zeros(shape, name)
    index = np.arange(np.prod(shape), dtype=np.uint64)
    start = np.uint64(seed * 0x9E3779B9 & 0xFFFFFFFF)
    hashed = mixed((mixed(index ^ start) + np.uint64(seed)) & np.uint64(0xFFFFFFFF))
    values = -1 + 2 * (hashed >> np.uint64(8)) / 2**24
    return values.astype(name or pytest.importorskip("ml_dtypes").bfloat16).reshape(shape)


@pytest.mark.parametrize(("op", "name"), ROWS, ids=lambda part: part)
def test_a_gallery_entry_counts_as_the_native_trace(page, op, name):
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    visit(page, f"gallery/{op}/{name}")
    names = {"gemm": "mnk", "transpose": ("rows", "cols"), "probe": "n"}[op]
    most = 130 if op == "gemm" else 300
    sizes = {} if op == "probe" else {name: int(rng.integers(1, most)) for name in names}
    found = page.run(
        f"""(async () => {{
        const pane = lab.page.gallery.current;
        Object.assign(pane.sizes, {json.dumps(sizes)});
        await pane.run();
        return {{call: pane.call, trace: pane.result?.trace,
          error: document.querySelector(".pane [role=alert]")?.textContent ?? null}};
        }})()""",
        timeout=300,
    )
    assert found["error"] is None, (seed, sizes)
    call = found["call"]
    shapes = {"gemm": ("mk", "kn"), "transpose": [("rows", "cols")], "probe": ["n"]}[op]
    arrays = [
        array(1 + at, call["dtype"], *(call["sizes"][side] for side in shape))
        for at, shape in enumerate(shapes)
    ]
    native = smemkern.trace(op, *arrays, variant=name, **call["params"])
    same_counts(found["trace"], native)


def test_the_gallery_has_every_variant_and_mistake(page):
    visit(page, "gallery")
    links = page.run("[...document.querySelectorAll('.card')].map((one) => one.hash)")
    expected = [*ROWS, *(("mistake", row.name) for row in smemkern.mistakes.rows())]
    assert sorted(links) == sorted(f"#gallery/{op}/{name}" for op, name in expected)


@pytest.mark.parametrize("row", smemkern.mistakes.rows(), ids=lambda row: row.name)
def test_a_mistake_is_found_in_the_same_words(page, row):
    visit(page, f"gallery/mistake/{row.name}")
    shown = page.run(
        """({error: document.querySelector(".pane [role=alert]")?.textContent ?? null,
        trace: lab.page.gallery.current.result?.trace ?? null,
        hazards: [...document.querySelectorAll(".hazards li")].map((one) => one.textContent)})"""
    )
    try:
        native = row.trace()
    except smemkern.Error as error:  # a launch that is refused
        assert shown["error"] in str(error) or str(error) in shown["error"]
        return
    assert shown["error"] is None
    same_counts(shown["trace"], native)
    assert len(shown["hazards"]) == len(native.hazards) >= 1


def test_packed_ptx_is_restored_in_the_page(page):
    rng = np.random.default_rng(secrets.randbits(32))
    visit(page, "gallery")
    images = list(lab_page.gallery_images(lab_page.registry.read(lab_page.KERNELS)))
    for at in rng.choice(len(images), 6, replace=False):
        expected = (lab_page.MADE / f"{images[at].name}.ptx").read_text(encoding="utf-8")
        assert page.run(f"lab.page.gallery.data.images[{at}].ptx") == expected, images[at].name


# ---- the editor


def opened(page, source, launch=LAUNCH, **more):
    visit(page, fragment_of({"source": source, "launch": launch, **more}))
    return page.run(
        """({error: document.querySelector(".editor [role=alert]")?.textContent ?? null,
        trace: lab.page.bench.result?.trace ?? null,
        marked: [...document.querySelectorAll(".code:not([hidden]) .row.mark-error .number")]
          .map((one) => Number(one.textContent))})"""
    )


def test_a_race_is_shown_at_its_line(page):
    shown = opened(page, RACE)
    assert shown["error"] is None
    [hazard] = [one for one in shown["trace"]["hazards"] if not one["benign"]]
    assert (hazard["kind"], hazard["line"], hazard["other"]["line"]) == ("RAW", 5, 4)
    assert page.run("document.querySelector('.row.mark-hazard .number').textContent") == "5"


@pytest.mark.parametrize("line", range(1, 7))
def test_an_error_is_shown_at_its_line(page, line):
    lines = RACE.splitlines()
    lines[line - 1] = lines[line - 1].replace(";", " @;").replace("{", "@ {").replace("}", "@ }")
    shown = opened(page, "\n".join(lines))
    assert f"kernel.cu:{line}:" in shown["error"]
    assert shown["marked"] == [line]


def test_an_error_of_ptx_is_shown_at_its_line(page):
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  nonsense;\n}\n"
    shown = opened(page, "", {**LAUNCH, "arguments": []}, ptx=ptx)
    assert "PTX line 5" in shown["error"] and shown["marked"] == [5]


def test_an_endless_kernel_can_be_stopped(page):
    visit(page, "edit")
    source = "__global__ void f(int *x) { while (true) x[0] = x[0] + 1; }"
    launch = {"grid": [1], "block": [32], "arguments": []}
    launch["arguments"] = [{"name": "x", "type": "int32", "shape": [1], "fill": "range"}]
    page.run(f"lab.page.bench.show({json.dumps({'source': source, 'launch': launch})})")
    page.run("void (lab.page.bench.form.limit.value = 2 ** 39, lab.page.bench.run())")
    page.until("lab.page.bench.status.textContent.includes('Stop ends it')")
    page.run("lab.page.bench.stopButton.click()")
    page.until("lab.page.bench.status.textContent === 'Stopped.'")
    page.run("lab.page.bench.form.limit.value = 1000")
    page.run("lab.page.bench.run()")
    assert "instructions" in page.run("lab.page.bench.alert.textContent")
    page.run(f"lab.page.bench.show({json.dumps({'source': RACE, 'launch': LAUNCH})})")
    assert page.run("lab.page.bench.run().then((found) => found.trace.hazards.length)") == 1


WRONG_FIELDS = {
    "grid": (["", "0", "1,2,3,4", "x", "1.5", "-1", "99999999999"], "grid: expected"),
    "block": (["", "2048", "1e9"], "block: expected"),
    "shared": (["-1", "x", "999999"], "dynamic shared bytes: expected"),
}


@pytest.mark.parametrize("field", WRONG_FIELDS)
def test_wrong_launches_are_explained(page, field):
    visit(page, "edit")
    values, message = WRONG_FIELDS[field]
    for value in values:
        page.run(f"lab.page.bench.form.{field}.value = {json.dumps(value)}; lab.page.bench.run()")
        assert page.run("document.querySelector('.editor [role=alert]').textContent").startswith(
            message
        )


# ---- links


def random_call(rng):
    """A kernel, command-line arguments for it, and its number of hazards."""
    n = int(rng.integers(33, 200))
    fills = ["arange", "random", "ones", "zeros", "0.1", "7"]
    text = f"""extern "C" __global__ void k(const float *x, double *y, int n, float a) {{
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[(t * {int(rng.integers(1, 40))}) % 256] = t < n ? a * x[t] : 0.0f;
    {"__syncthreads();" if rng.random() < 0.5 else ""}
    y[t] = s[t];  // <b>"&amp;" </script>
}}
"""
    args = [
        f"f32[{n}]={fills[rng.integers(len(fills))]}",
        f"f64[{int(rng.integers(256, 300))}]",
        f"i32={n}",
        "0.5",
    ]
    words = f"--grid {rng.integers(1, 3)} --block {32 * rng.integers(2, 9)}"
    return text, words, args


def shared_link(command, tmp_path, words, args):
    options = " ".join(f"--arg {shlex.quote(arg)}" for arg in args)
    return command.json(f"share {tmp_path}/k.cu {words} {options}")


@pytest.mark.parametrize("turn", range(6))
def test_a_shared_kernel_shows_what_trace_counts(page, command, tmp_path, nvrtc, turn):
    seed = secrets.randbits(32)
    text, words, args = random_call(np.random.default_rng(seed))
    (tmp_path / "k.cu").write_text(text)
    link = shared_link(command, tmp_path, f"{words} --link", args)["link"]
    visit(page, link.split("#")[1])
    shown = page.run(
        """(async () => ({trace: lab.page.bench.result?.trace, content: lab.page.bench.content,
        error: document.querySelector(".editor [role=alert]")?.textContent ?? null,
        again: await lab.parts.contentOf(await lab.parts.fragmentOf(lab.page.bench.content))}))()"""
    )
    assert shown["error"] is None, seed
    assert shown["content"]["source"] == text and shown["again"] == shown["content"]
    kernel = smemkern.Kernel(str(tmp_path / "k.cu"))
    grid, block = (int(words.split()[at]) for at in (1, 3))
    rng = np.random.default_rng(0)
    from smemkern._trace import argspec

    given = [argspec.argument(arg, rng) for arg in args]
    same_counts(shown["trace"], smemkern.trace(kernel, grid, block, *given))


TENSOR = """typedef unsigned long long u64;
struct alignas(64) CUtensorMap { char bytes[128]; };
__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void load(const __grid_constant__ CUtensorMap map, float *out, int row) {
    __shared__ alignas(128) float tile[8][8];
    __shared__ u64 full;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(at(&full)));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(at(tile)), "l"(&map), "r"(4), "r"(row), "r"(at(&full)) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred done; A: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;"
                 "@!done bra A;}" :: "r"(at(&full)) : "memory");
    for (int i = threadIdx.x; i < 64; i += 32) out[i] = tile[i / 8][i % 8];
}
"""


def test_a_tensor_map_travels_in_a_link(page, command, tmp_path, nvrtc):
    """Every second row of the box, with NaN where the array has ended."""
    rng = np.random.default_rng(seed := secrets.randbits(32))
    row, rows = int(rng.integers(0, 9)), int(rng.integers(12, 20))
    (tmp_path / "k.cu").write_text(TENSOR)
    map_text = f"tensor{{f32[{rows},12]=arange,box=16x8,element_strides=2x1,fill=nan}}"
    words = "--grid 1 --block 32 --arch sm_90 --link"
    link = shared_link(command, tmp_path, words, [map_text, "f32[64]", str(row)])["link"]
    visit(page, link.split("#")[1])
    content = page.run("lab.page.bench.content")
    assert page.run("document.querySelector('.editor [role=alert]')?.textContent") is None
    tensor = content["launch"]["arguments"][0]["tensor"]
    assert tensor == {"box": [16, 8], "element_strides": [2, 1], "fill": "nan"}
    out = page.run(
        "[...new Float32Array(lab.page.bench.result.arrays[1].slice().buffer)].map(String)"
    )
    padded = np.full((40, 12), np.nan, "f4")
    padded[:rows] = np.arange(rows * 12).reshape(rows, 12)
    expected = padded[row : row + 16 : 2, 4:]
    np.testing.assert_array_equal(np.array(out, "f4").reshape(8, 8), expected, f"seed {seed}")


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ("8", "map: expected the box as 2 positive integers"),
        ("8, x", "map: expected the box as 2 positive integers"),
        ("8, 7", "must be a multiple of 16"),
        ("300, 4", "the box has 300 elements"),
    ],
)
def test_a_wrong_tensor_map_is_explained(page, box, message):
    source = "__global__ void load(const CUtensorMap *map, float *out) { out[threadIdx.x] = 0; }"
    ptx = """.version 8.0\n.target sm_90\n.address_size 64
    .visible .entry load(.param .u64 map, .param .u64 out) { ret; }"""
    visit(page, "edit")
    page.run(
        f"lab.page.bench.show({{ptx: {json.dumps(ptx)}, source: {json.dumps(source)}}}),"
        f"lab.page.bench.form.rows[0].tensor.box.value = {json.dumps(box)}"
    )
    assert page.run("lab.page.bench.form.rows.length") == 2
    page.run("lab.page.bench.run()")
    assert message in page.run("document.querySelector('.editor [role=alert]').textContent")


def test_a_shared_file_opens_without_a_gallery(page, command, tmp_path, nvrtc):
    (tmp_path / "k.cu").write_text(RACE)
    out = tmp_path / "race.html"
    args = ["f32[64]=arange", "f32[64]", "64"]
    words = f"--grid 1 --block 64 -o {out} --page {lab()}"
    assert shared_link(command, tmp_path, words, args)["output"] == str(out)
    assert out.stat().st_size < 1_500_000
    page.open(out.as_uri())
    page.run("lab.shown")
    assert page.run("document.querySelectorAll('.hazards li').length") == 1
    assert page.run("lab.page.bench.state.file") == "k.cu"


def test_the_share_button_makes_the_same_link(page):
    opened(page, RACE)
    page.run("lab.page.bench.shareButton.click()")
    link = page.until("document.querySelector('.link')?.value")
    before = page.run("lab.page.bench.content")
    visit(page, link.split("#")[1])
    assert page.run("lab.page.bench.content") == before


def bomb():
    return base64.urlsafe_b64encode(zlib.compress(b"[" * (200 << 20), 9)).decode()


HOSTILE = {
    "empty": "v1=",
    "no base64": "v1=%%%",
    "html": "v1=<img src=x onerror=hacked=1>",
    "no deflate": "v1=AAAA",
    "version": "v2=AAAA",
    "no json": "v1=" + base64.urlsafe_b64encode(zlib.compress(b"{")).decode(),
    "list": fragment_of([]),
    "null": fragment_of(None),
    "number": fragment_of(7),
    "no launch": fragment_of({"source": "x"}),
    "source": fragment_of({"source": {"toString": 1}, "launch": LAUNCH}),
    "nothing": fragment_of({"launch": LAUNCH}),
    "grid": fragment_of({"source": RACE, "launch": {**LAUNCH, "grid": ["<b>"]}}),
    "proto": fragment_of(
        {"source": RACE, "launch": {**LAUNCH, "arguments": [{"type": "__proto__"}]}}
    ),
    "type": fragment_of(
        {"source": RACE, "launch": {**LAUNCH, "arguments": [{"type": "toString", "shape": [1]}]}}
    ),
    "size": fragment_of(
        {
            "source": RACE,
            "launch": {
                **LAUNCH,
                "arguments": [{"name": "x", "type": "float64", "shape": [2**20, 2**20]}],
            },
        }
    ),
    "tensor": fragment_of(
        {
            "source": RACE,
            "launch": {
                **LAUNCH,
                "arguments": [{**LAUNCH["arguments"][0], "tensor": {"box": {"length": 1}}}],
            },
        }
    ),
    "many": fragment_of({"source": RACE, "launch": {**LAUNCH, "arguments": [None] * 100}}),
}


@pytest.mark.parametrize("name", [*HOSTILE, "bomb"])
def test_a_hostile_link_gets_a_message(page, name):
    visit(page, HOSTILE[name] if name in HOSTILE else f"v1={bomb()}")
    error = page.run("document.querySelector('.editor [role=alert]').textContent")
    assert error.startswith("This link ")
    assert page.run("typeof hacked") == "undefined"
    assert page.run("lab.page.bench.run().then((found) => found.trace.hazards.length)") == 0


def test_texts_of_a_link_are_only_text(page):
    evil = "<img src=x onerror='globalThis.hacked=1'><script>globalThis.hacked=1</script>"
    launch = json.loads(json.dumps(LAUNCH))
    launch["arguments"][0]["name"] = evil
    for source in (RACE + f"// {evil}\n</script>{evil}", f"{evil}\n"):
        opened(page, source, launch, file=f"{evil}.cu", kernel=evil)
        page.run("lab.page.bench.shareButton.click()")
        page.until("document.querySelector('.link') !== null")
        assert page.run("document.querySelectorAll('img, main script').length") == 0
        assert page.run("typeof hacked") == "undefined"


@pytest.mark.parametrize("turn", range(4))
def test_a_damaged_link_never_breaks_the_page(page, turn):
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    whole = fragment_of({"source": RACE, "launch": LAUNCH})
    document = json.dumps({"source": RACE, "launch": LAUNCH})
    for _ in range(10):
        if rng.random() < 0.5:
            letters = list(whole)
            for at in rng.integers(3, len(letters), rng.integers(1, 5)):
                letters[at] = chr(rng.integers(45, 123))
            fragment = "".join(letters)
        else:  # another document
            at = int(rng.integers(len(document)))
            cut = document[:at] + document[at + int(rng.integers(1, 9)) :]
            packed = zlib.compress(cut.encode())
            fragment = "v1=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
        visit(page, fragment)
        told = page.run(
            "Boolean(document.querySelector('.editor [role=alert]') ?? lab.page.bench.result)"
        )
        assert told, (seed, fragment)


# ---- exercises


EXERCISES = range(1, 13)


@pytest.mark.parametrize("number", EXERCISES)
def test_an_exercise_is_solved_by_its_solution_only(page, number):
    visit(page, f"exercises/{number}")
    exercise = page.run(f"lab.page.exercises.list[{number - 1}]")
    page.until("!lab.page.exercises.bench.running")
    assert page.run("lab.page.exercises.check()", timeout=120) is False
    for _ in range(len(exercise["hints"])):
        page.run("lab.page.exercises.more.click()")
    assert page.run("lab.page.exercises.hints.children.length") == len(exercise["hints"])
    page.run("lab.page.exercises.more.click()")
    assert exercise["solution"] in page.run("lab.page.exercises.hints.textContent")
    page.run(
        f"""(() => {{ const {{bench, answers}} = lab.page.exercises;
        bench.source.area.value = {json.dumps(exercise["solution"])};
        bench.source.area.dispatchEvent(new Event("input"));
        for (const {{question, field}} of answers) field.value = question.answer; }})()"""
    )
    solved = page.run("lab.page.exercises.check()", timeout=120)
    assert solved is True, page.run("lab.page.exercises.verdict.textContent")
    assert page.run("document.querySelectorAll('.path .solved').length") >= 1


def test_progress_is_kept_or_said_not_to_be(page):
    visit(page, "exercises/2")
    page.until("!lab.page.exercises.bench.running")
    page.run("lab.page.exercises.check()")
    kept = page.run("localStorage.getItem('smemkern-lab:exercises')")
    assert json.loads(kept)
    forbid = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=forbid)["identifier"]
    try:
        visit(page, "exercises/2")
        page.until("!lab.page.exercises.bench.running")
        page.run("lab.page.exercises.check()")
        assert "keeps nothing" in page.run("lab.page.exercises.verdict.textContent")
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


# ---- everybody's page


VIEWS = ("start", "gallery", "gallery/transpose/tiled", "gallery/mistake/missing_barrier")
VIEWS += ("edit", "banks", "banks?pad=-1", "exercises/1", "exercises/3")
CONTRAST = """
(() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = numbers(color).map((x) => x / 255)
      .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if ((numbers(color)[3] ?? 1) === 1) return color;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const style = getComputedStyle(element);
    const text = texts.currentNode.textContent.trim();
    const hidden = element.closest("script, style, noscript, option, svg, :disabled");
    if (!text || hidden || !element.checkVisibility()) continue;
    const [a, b] = [light(style.color), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_text_has_contrast_and_no_page_is_too_wide(page, view, dark):
    try:
        for width in (360, 1280):
            page.look(width, 800, dark=dark, reduced=True)
            visit(page, view)
            assert page.run("document.documentElement.scrollWidth") <= width
            assert page.run(CONTRAST) == []
    finally:
        page.look(1280, 900, reduced=True)


def test_everything_has_a_name_and_is_reached_by_keyboard(page):
    for view in VIEWS:
        visit(page, view)
        unnamed = page.run(
            """[...document.querySelectorAll("button, a, input, select, textarea")]
            .filter((one) => one.checkVisibility() && !one.textContent.trim() &&
              !one.ariaLabel && !one.labels?.length).map((one) => one.outerHTML)"""
        )
        assert unnamed == [], view
        unreached = page.run(
            """[...document.querySelectorAll(".scroll")]
            .filter((one) => one.scrollWidth > one.clientWidth && one.tabIndex < 0)
            .map((one) => one.className)"""
        )
        assert unreached == [], view


CONTROLS = {"button", "link", "textbox", "combobox", "checkbox", "slider", "spinbutton"}
CONTROLS |= {"searchbox", "tab", "image", "application", "grid", "region", "toolbar"}


def tree(page):
    """(role, name, names of the groups around it) of what a screen reader finds."""
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    by_id = {node["nodeId"]: node for node in nodes}

    def text(node, what):
        return (node.get(what) or {}).get("value", "")

    def groups(node):
        found = []
        while node := by_id.get(node.get("parentId")):
            if text(node, "role") in ("group", "region", "toolbar"):
                found.append(text(node, "name"))
        return tuple(found)

    return [(text(n, "role"), text(n, "name"), groups(n)) for n in nodes if not n["ignored"]]


@pytest.mark.parametrize("view", [*VIEWS, "replay"])
def test_a_screen_reader_can_tell_all_controls_apart(page, view):
    visit(page, "start" if view == "replay" else view)
    if view == "replay":
        page.run(
            """[...document.querySelectorAll("main button")]
            .find((one) => one.textContent.startsWith("Replay")).click()"""
        )
        page.until("document.querySelector('.smk-replay h2') !== null")
    page.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    controls = [one for one in tree(page) if one[0] in CONTROLS]
    assert [one for one in controls if not one[1].strip()] == []
    fields = [one for one in controls if one[0] not in ("link", "button", "image")]
    assert len(fields) == len(set(fields)), fields
    shown = [name for role, name, _ in controls if role == "button" and name.startswith("show")]
    assert len(shown) == len(set(shown))


def test_paper_is_light_and_has_no_buttons(page):
    """The source that is printed is whole, whatever the window shows of it."""
    visit(page, "gallery/gemm/conflicted")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    try:
        page.call("Emulation.setEmulatedMedia", media="print", features=dark)
        assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.run(
            "[...document.querySelectorAll('button')].every((b) => !b.checkVisibility())"
        )
        text, margin = page.run(
            """[".code textarea", ".code .margin"].map((name) => {
            const one = document.querySelector(name);
            return [one.scrollHeight, one.clientHeight]; })"""
        )
        assert text[0] <= text[1] + 1
        assert margin[0] <= margin[1] + 1
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
        page.look(1280, 900, reduced=True)


def test_the_first_experiment_shows_the_first_warp(page):
    """After a barrier the warp that arrived last runs first; all have the same conflict."""
    visit(page, "start")
    assert "warp 0 is served" in page.run("lab.page.first.banksCaption.textContent")


def test_a_replay_begins_at_a_hazard_of_any_block_and_step(page):
    """Beyond the first window of steps, in the last block, in a kernel of the editor."""
    source = """__global__ void late(float *x) {
    __shared__ float s[64];
    float sum = 0;
    for (int i = 0; i < 9000; i++) sum += i;
    s[threadIdx.x] = sum;
    if (blockIdx.x + blockIdx.y == 3) x[threadIdx.x] = s[63 - threadIdx.x];
}
"""
    arguments = [{"name": "x", "type": "float32", "shape": [64], "fill": "range"}]
    opened(page, source, {"grid": [2, 3], "block": [64], "arguments": arguments})
    page.run("[...document.querySelectorAll('.hazards button')].at(-1).click()")
    page.until("document.querySelector('.smk-replay h2') !== null", timeout=120)
    text = page.run("document.querySelector('.smk-replay .place').textContent")
    assert text.endswith(":6"), text
    assert page.run(
        "[...document.querySelectorAll('.replay button')].map((b) => b.textContent)[0]"
    ) == ("Earlier steps")
