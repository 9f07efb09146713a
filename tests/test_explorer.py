"""The bank explorer of the laboratory page in a headless browser, beside smemkern.banks.

One visit does everything: a script asks the page's model thousands of questions, operates its form,
and returns the answers.
"""

import json
import secrets
from collections import defaultdict

import numpy as np
import pytest

from chromium import tab
from lab_pages import lab
from smemkern import _core, banks

WORDS = 600  # requests whose explanation is compared
OPS = ("load", "store", "ldmatrix", "stmatrix")
SWIZZLES = (None, "xor", "xor:2B", "xor:4B", "xor:8B", "xor:16B", "32B", "64B", "128B")
# What visitors do: the address behind #, and what the page should then say.
WRONG = {
    "rows=0": ("rows", "rows should be an integer from 1 to 256, not “0”."),
    "cols=": ("cols", "columns should be an integer from 1 to 256, not “”."),
    "pad=-1": ("pad", "padding should be an integer from 0 to 128"),
    "request=32": ("request", "request should be an integer from 0 to 31"),
    "lanes=0-40": ("lanes", "not “0-40”"),
    "lanes=5-2": ("lanes", "not “5-2”"),
    "lanes=all": ("lanes", "not “all”"),
    "swizzle=bits&bits=3,4": ("bits", "three numbers from 0 to 20"),
    "swizzle=bits&bits=3,4,2": (None, "is not a permutation"),
    "swizzle=bits&bits=3,1,3": (None, "splits elements of 4 bytes"),
    "swizzle=64B": (None, "needs rows of 64 bytes"),
    "swizzle=xor:2B": (None, "do not divide into 2-byte chunks"),
    "swizzle=xor&cols=31": (None, "needs an even number of chunks"),
    "width=2": (None, "2 bytes per lane are less than an element of 4 bytes"),
    "width=16&pad=1": (None, "does not keep vectors of 16 bytes whole and aligned"),
    "width=16&cols=30": (None, "do not divide into vectors of 4"),
    "op=ldmatrix&rows=12": (None, "accesses 8 rows at a time"),
    "pattern=custom&row=lane&column=lane %2B": ("column", "expected a number or a name at the end"),
    "pattern=custom&row=(lane&column=0": ("row", "expected )"),
    "pattern=custom&row=lane lane&column=0": ("row", "unexpected lane"),
    "pattern=custom&row=lane&column=warp": (None, "unknown name warp; there are lane, rows, cols"),
    "pattern=custom&row=lane %2B 1&column=0": (None, "Lane 31 accesses row 32, column 0"),
    "pattern=custom&row=0&column=0 / (lane - 3)": (None, "division by 0"),
    "pattern=custom&row=0&column=9999999*9999999*999": (None, "not an integer below 2^53"),
    "pattern=custom&row=&column=0": ("row", "expected a number"),
    "pattern=custom&row=0&column=<b>": ("column", "unexpected <"),
    "pattern=address&address=lane * 2": (None, "Lane 1 has the address 2, which is not a multiple"),
    "pattern=address&address=-4": (None, "Lane 0 has the address -4"),
    "pattern=stride&stride=x": ("stride", "elements apart should be an integer"),
    "pattern=stride&stride=64": (None, "Lane 16 accesses row 32"),
}
RIGHT = {
    "": 32,
    "pattern=row": 1,
    "pad=1": 1,
    "swizzle=xor": 1,
    "request=31&pattern=row": 1,
    "pattern=row&width=16": 4,
    "pattern=address&address=0&width=16": 2,
    "pattern=address&address=0&width=16&op=store": 4,
    "pattern=address&address=lane %25 4 * 16&width=16": 4,
    "pattern=address&address=(lane ^ 1) << 3 | 0x1000&width=8": 2,
    "pattern=address&address=threadIdx.x / 2 * 128&lanes=0-3,30": 3,
    "pattern=custom&row=lane / 8&column=lane %25 8 * 4": 4,
    "pattern=custom&row=-(0 - lane)&column=0&lanes=": 0,
    "cols=64&itemsize=2&op=ldmatrix": 32,
    "cols=64&itemsize=2&op=ldmatrix&swizzle=128B": 4,
    "cols=64&itemsize=2&op=stmatrix&swizzle=bits&bits=3,4,3": 4,
    "pattern=tile&block=4x8&cols=33&request=1": 4,
    "nonsense=1&swizzle=unheard&op=erase": 32,  # a foreign address: not used
}

SCRIPT = r"""
async (asked) => {
const told = {}, explorer = lab.page.explorer, engine = lab.page.engine, parts = lab.parts;
const active = (mask) => Array.from({length: 32}, (_, lane) => Boolean(mask >>> lane & 1));
const requests = asked.requests.map(([width, op, mask, address]) =>
  parts.asked({address, active: active(mask), width, op}));
told.requests = (await engine.call("banks", {requests})).map((one) => [one.wavefronts, one.ideal]);
told.words = [];
for (const [k, [width, op, mask, address]] of asked.requests.slice(0, asked.words).entries()) {
  const request = parts.asked({address, active: active(mask), width, op});
  told.words.push(await engine.call("explain", {requests: [request], array: asked.arrays[k]}));
}
const tried = (question) => { try { return question(); } catch (error) { return null; } };
told.layouts = asked.layouts.map(([rows, cols, itemsize, pad, swizzle, points]) => tried(() => {
  const layout = new parts.Layout(rows, cols, itemsize, pad, swizzle);
  return [layout.bytes, layout.wasted, ...points.map((point) => layout.address(...point))];
}));
const lists = asked.patterns.map(([shape, pattern, width, op]) => tried(() => {
  const layout = new parts.Layout(...shape), [rows, cols, itemsize] = shape;
  return parts.pattern(pattern, rows, cols, width / itemsize).map((points) =>
    parts.asked(parts.requestOf(layout, points, width, op)));
}));
told.patterns = [];
for (const list of lists) {
  const found = list && (await engine.call("banks", {requests: list}));
  told.patterns.push(found && found.map((one) => one.wavefronts));
}
const element = explorer.element, text = (selector) => element.querySelector(selector)?.textContent;
const cost = () => Number(element.querySelector(".answer .tile b")?.textContent);
const shown = async (at) => {
  await explorer.show(Object.fromEntries(new URLSearchParams(at)));
  const invalid = element.querySelector("[aria-invalid]");
  return {answer: text(".answer"), error: text(".answer .error"), invalid: invalid && invalid.name,
    python: explorer.python.textContent, query: decodeURIComponent(explorer.query),
    pictures: !explorer.pictures.hidden, cost: cost()};
};
told.pages = {};
for (const at of asked.pages) told.pages[at] = await shown(at);
const settled = () => explorer.update();
told.examples = [];
for (const one of explorer.examples.children) {
  one.click();
  await settled();
  const marked = element.querySelectorAll(".choices [aria-pressed=true]");
  const pressed = [...marked].map((one) => one.textContent);
  told.examples.push({name: one.textContent, pressed, error: text(".answer .error") ?? null,
    cost: cost(), python: explorer.python.textContent});
}
await shown("");
const press = (key) => explorer.served.box.dispatchEvent(
  new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
told.keys = ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp"].map((key) => {
  press(key);
  return explorer.served.detail.textContent;
});
explorer.others.querySelector("button").click();
await settled();
told.other = {pad: explorer.state.pad, cost: cost()};
return told;
}
"""


def random_requests(rng):
    """(width, op, mask, addresses): no order, few words, strides, rows of a tile, pairs; many
    with idle lanes, whose addresses are anything."""
    requests = []
    lanes = np.arange(32)
    for n in range(12_000):
        op = OPS[n % 4] if n % 8 < 4 else OPS[n % 2]
        width = 16 if op.endswith("matrix") else (1, 2, 4, 8, 16)[n % 5]
        kind = rng.integers(6)
        if kind == 0:  # anywhere in the largest shared memory
            items = rng.integers(0, 232448 // width, 32)
        elif kind == 1:  # few words, which lanes share
            items = rng.integers(0, rng.integers(1, 100), 32)
        elif kind == 2:
            items = rng.integers(0, 64) + lanes * rng.integers(0, 130)
        elif kind == 3:  # down a tile
            items = lanes // (1 << rng.integers(0, 6)) * rng.integers(1, 70) + lanes % 8
        elif kind == 4:  # neighbours share, perhaps with one exception
            items = rng.integers(0, 200, 32)[lanes & ~int(rng.choice([1, 2, 3]))]
            if rng.random() < 0.5:
                items[rng.integers(32)] = rng.integers(200)
        else:
            items = rng.permutation(lanes) * rng.choice([1, 2, 32, 33])
        mask = int(rng.integers(1 << 32)) if n % 3 == 0 else (1 << 32) - 1
        if n % 30 == 0:
            mask &= int(rng.integers(1 << 32)) & int(rng.integers(1 << 32))
        address = items * width
        idle = ~(mask >> lanes & 1).astype(bool)
        requests.append((width, op, mask, np.where(idle, rng.integers(0, 1 << 20, 32), address)))
    return requests


def drawn_array(rng, width, op, mask, addresses):
    """An array that may hold the request's addresses, or None."""
    if rng.random() < 0.3:
        return None
    element = int(rng.choice([1, 2, 4, 8, 16]))
    columns = int(rng.choice([0, rng.integers(1, 80)]))
    active = addresses[mask >> np.arange(32) & 1 == 1]
    reach = int(active.max()) + width if len(active) else 64
    size = reach if rng.random() < 0.8 else int(rng.integers(16, 4096))
    return {"name": "tile", "at": 0, "bytes": size, "element": element, "columns": columns}


def random_layouts(rng, n):
    """Arguments of Layout, a good part of them refused."""
    for _ in range(n):
        itemsize = int(rng.choice([1, 2, 4, 8, 16]))
        cols = int(rng.choice([rng.integers(1, 80), 8, 16, 32, 64]))
        swizzle = SWIZZLES[rng.integers(len(SWIZZLES))]
        if rng.random() < 0.3:
            swizzle = tuple(int(x) for x in rng.integers((0, 0, 1), (5, 6, 6)))
        pad = int(rng.integers(0, 5)) if rng.random() < 0.4 else 0
        yield int(rng.integers(1, 40)), cols, itemsize, pad, swizzle


def answers(layout, points):
    return [layout.bytes, layout.wasted, *(layout.address(r, c) for r, c in points)]


def tried(question):
    try:
        return question()
    except ValueError:
        return None


@pytest.fixture(scope="module")
def visit():
    """What was asked, and what the page told."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    layouts = []
    for shape in random_layouts(rng, 1500):
        points = [[int(rng.integers(shape[0])), int(rng.integers(shape[1]))] for _ in range(24)]
        layouts.append((*shape, points))
    patterns = [
        (shape, name, int(shape[2] * rng.choice([1, 1, 2, 4])), ("load", "store")[rng.integers(2)])
        for shape in random_layouts(rng, 400)
        for name in rng.choice(["row", "column", "8x4", "4x8", "2x16", "1x32"], 2, replace=False)
    ]
    patterns = [(shape, str(name), width, op) for shape, name, width, op in patterns if width <= 16]
    requests = random_requests(rng)
    arrays = [drawn_array(rng, *request) for request in requests[:WORDS]]
    asked = {
        "words": WORDS,
        "arrays": arrays,
        "requests": [(w, op, mask, address.tolist()) for w, op, mask, address in requests],
        "layouts": layouts,
        "patterns": patterns,
        "pages": [*WRONG, *RIGHT],
    }
    with tab() as page:
        page.open(f"{lab().as_uri()}#banks")
        page.run("lab.shown")
        told = page.run(f"({SCRIPT})({json.dumps(asked)})", timeout=300)
        assert not page.console
        assert all(url.startswith(("file:", "blob:")) for url in page.requests)
    print(f"seed {seed}")
    return asked | {"requests": requests}, told


def test_wavefronts_are_those_of_banks(visit):
    asked, told = visit
    assert len(asked["requests"]) == len(told["requests"]) >= 10_000
    kinds = defaultdict(list)
    for request, answer in zip(asked["requests"], told["requests"], strict=True):
        kinds[request[:2]].append((*request[2:], *answer))
    assert len(kinds) == 12
    seen = set()
    for (width, op), rows in kinds.items():
        mask, address, cost, ideal = map(np.array, zip(*rows, strict=True))
        np.testing.assert_array_equal(cost, banks.wavefronts(address, width, op, mask))
        np.testing.assert_array_equal(ideal, banks.ideal(address, width, op, mask))
        seen |= {(width, op, count) for count in cost}
    assert len(seen) > 150, "costs should differ, or little was tested"


def test_words_are_those_of_python(visit):
    """The explanation of a conflict, and the layout without it."""
    asked, told = visit
    n_layouts = 0
    rows = zip(
        asked["requests"][:WORDS], told["requests"], asked["arrays"], told["words"], strict=False
    )
    for (width, op, mask, address), costs, array, words in rows:
        used = np.where(mask >> np.arange(32) & 1, address, 0)
        request = (op, tuple(map(int, used)), mask, width, *costs)
        shape = array and tuple(
            array[name] for name in ("name", "at", "bytes", "element", "columns")
        )
        assert (words["conflict"] or "") == _core.explain_request(request, shape)
        layout = shape and _core.explain_layout([request], shape)
        assert words["layout"] == layout
        n_layouts += layout is not None
    assert n_layouts > WORDS / 10


def test_layouts_are_those_of_python(visit):
    asked, told = visit
    refused = 0
    for (*shape, points), answer in zip(asked["layouts"], told["layouts"], strict=True):
        expected = tried(lambda s=shape, p=points: answers(banks.Layout(*s), p))
        assert answer == expected, shape
        refused += expected is None
    assert 300 < refused < 1200


def test_patterns_are_those_of_python(visit):
    asked, told = visit
    refused = 0
    for (shape, order, width, op), answer in zip(asked["patterns"], told["patterns"], strict=True):
        name = f"{op} {order if order in ('row', 'column') else f'tile:{order}'}:{width}B"
        expected = tried(lambda s=shape, n=name: banks.Layout(*s).wavefronts(n).tolist())
        assert answer == expected, (shape, name)
        refused += expected is None
    assert 100 < refused < len(asked["patterns"]) - 150


@pytest.mark.parametrize("at", WRONG)
def test_wrong_inputs_are_explained(visit, at):
    field, message = WRONG[at]
    shown = visit[1]["pages"][at]
    assert message in shown["error"]
    assert shown["invalid"] == field
    assert not shown["pictures"]


def test_what_goes_with_an_access_that_a_layout_tears(visit):
    said = visit[1]["pages"]["width=16&pad=1"]["answer"].split(": ")[-1]
    assert said == "plain pad 4 swizzle xor:16B"


def test_the_example_that_is_shown_is_marked(visit):
    assert all(example["pressed"] == [example["name"]] for example in visit[1]["examples"])


@pytest.mark.parametrize("at", RIGHT)
def test_pages_and_the_python_that_they_show(visit, at):
    shown = visit[1]["pages"][at]
    assert "error" not in shown
    assert shown["pictures"]
    assert shown["cost"] == RIGHT[at] == run(shown["python"])
    state = shown["query"].removeprefix("?").replace("+", " ")
    kept = "" if "nonsense" in at else at.replace("%25", "%")
    assert sorted(state.split("&")) == sorted(kept.split("&"))


def test_every_example(visit):
    examples = visit[1]["examples"]
    assert len(examples) >= 12
    for example in examples:
        if example["name"] == "float4, +1":  # is there to be refused
            assert "does not keep vectors" in example["error"]
        else:
            assert example["error"] is None
            assert run(example["python"]) == example["cost"], example["name"]


def run(python):
    """The first count that the code makes."""
    lines = python.split("\n\n", 1)
    names = {}
    exec(lines[0], names)
    body = lines[1]
    if body.startswith("layout = "):
        make, ask, *_ = body.splitlines()
        exec(make, names)
        return int(eval(ask, names))
    return eval(body, names).cost


def test_arrow_keys_go_from_cell_to_cell(visit):
    first, second, third, fourth = visit[1]["keys"]
    assert first.startswith("Wavefront 1, bank 0: word 0 (byte 0) for lane 0")
    assert second == third and second.startswith(
        "Wavefront 2, bank 0: word 32 (byte 128) for lane 1"
    )
    assert fourth == first


def test_a_layout_that_is_offered_is_taken(visit):
    assert visit[1]["other"] == {"pad": "1", "cost": 1}
