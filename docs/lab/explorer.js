// The bank explorer: one request of a warp to shared memory, drawn and explained. The address after
// #banks? contains what differs from START, so that a picture can be sent as a link.
import { button, h, many, range, select, svg } from "./dom.js";
import { BANKS, LANES, Layout, WORD, asked, requestOf } from "./layout.js";
import { START, accessOf, isMatrix, isNamed, otherLayouts, pythonOf } from "./access.js";
import { groupsOf, runs } from "./picture.js";
import { wordsOf } from "./words.js";

const EXAMPLES = {
  "a row": { pattern: "row" },
  "a column": {},
  "+1 padding": { pad: "1" },
  "XOR swizzle": { swizzle: "xor" },
  broadcast: { pattern: "address", address: "0" },
  "float4 row": { pattern: "row", width: "16" },
  "float4 column": { width: "16" },
  "float4, +1": { width: "16", pad: "1", pattern: "row" },
  "float4, xor:16B": { width: "16", swizzle: "xor:16B" },
  "double column": { itemsize: "8", width: "8" },
  "half, ldmatrix": { cols: "64", itemsize: "2", op: "ldmatrix", width: "16" },
  "TMA 128B": { cols: "64", itemsize: "2", op: "ldmatrix", width: "16", swizzle: "128B" },
  "stride 2": { pattern: "stride" },
  diagonal: { pattern: "diagonal" },
};
const SWIZZLES = ["none", "xor", "xor:2B", "xor:4B", "xor:8B", "xor:16B", "32B", "64B", "128B", ["bits", "bits, base, shift"]];
const PATTERNS = ["row", "column", ["tile", "block of lanes"], "diagonal", "stride", ["custom", "formula"], "address"];
const FIELDS = {
  Tile: {
    rows: ["rows", { type: "number", min: 1, max: 256 }],
    cols: ["columns", { type: "number", min: 1, max: 256 }],
    itemsize: ["element bytes", [1, 2, 4, 8, 16]],
    pad: ["padding", { type: "number", min: 0, max: 128 }],
    swizzle: ["swizzle", SWIZZLES],
    bits: ["bits, base, shift", {}],
  },
  Access: {
    op: ["operation", ["load", "store", "ldmatrix", "stmatrix"]],
    width: ["bytes per lane", [1, 2, 4, 8, 16]],
    pattern: ["pattern", PATTERNS],
    block: ["rows x lanes", ["1x32", "2x16", "4x8", "8x4", "16x2", "32x1"]],
    request: ["request", { type: "number", min: 0 }],
    stride: ["elements apart", { type: "number" }],
    row: ["row =", {}],
    column: ["column =", {}],
    address: ["address =", {}],
    lanes: ["lanes", {}],
  },
};
const CELL = 23;
const HIGH = 20;
const LEFT = 78;
const TOP = 20;
const MOST_ROWS = 40;
const MOST_COLS = 64;

export class Explorer {
  constructor({ engine }) {
    this.engine = engine;
    this.fields = {};
    this.turn = 0;
    this.answer = h("section", { class: "answer", "aria-live": "polite" });
    this.served = gridBox("Banks from left to right, wavefronts downwards; arrow keys go from cell to cell");
    this.tile = gridBox("Rows and columns of the tile; arrow keys go from cell to cell");
    this.tileCaption = h("figcaption", {});
    this.others = h("table", {});
    this.lanes = h("table", {});
    this.python = h("pre", {});
    this.pictures = this.#pictures();
    this.examples = h("div", { class: "choices", role: "group", "aria-label": "Examples" });
    for (const [name, state] of Object.entries(EXAMPLES)) this.examples.append(button(name, () => this.show(state)));
    this.element = h(
      "section",
      { class: "explorer" },
      h("h2", {}, "Bank explorer"),
      h(
        "p",
        { class: "dim" },
        "One request of a warp to shared memory, which has 32 banks of 4 bytes. In one wavefront a bank delivers one word, to all " +
          "lanes that access it. Change any setting; the address of the page contains the settings.",
      ),
      this.examples,
      h("div", { class: "columns" }, this.#form(), h("div", {}, this.answer, this.pictures)),
    );
  }

  #form() {
    const change = () => this.update();
    const sets = Object.entries(FIELDS).map(([legend, fields]) =>
      h(
        "fieldset",
        {},
        h("legend", {}, legend),
        Object.entries(fields).map(([name, [label, kind]]) => {
          const field = Array.isArray(kind)
            ? select(kind, START[name], change, { name })
            : h("input", { name, spellcheck: "false", oninput: change, ...kind });
          this.fields[name] = field;
          return h("label", {}, `${label} `, field);
        }),
      ),
    );
    const formulas = "In formulas: lane, rows, cols, numbers, + - * / % << >> & ^ | and brackets, as in C.";
    return h("form", { autocomplete: "off", onsubmit: (e) => e.preventDefault() }, sets, h("p", { class: "dim" }, formulas));
  }

  #pictures() {
    const dim = "Numbers are lanes; ×8: eight lanes share the word. Solid: the first word that the bank delivers to this group of lanes. Hatched: further words, in later wavefronts.";
    return h(
      "section",
      {},
      h("h3", {}, "Banks and wavefronts"),
      h("figure", {}, this.served.box, this.served.detail, h("figcaption", {}, dim)),
      h("h3", {}, "The tile"),
      h("figure", {}, this.tile.box, this.tile.detail, this.tileCaption),
      h("h3", {}, "Other layouts for the same access"),
      h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Other layouts" }, this.others),
      h("details", {}, h("summary", {}, "Lane by lane"), h("div", { class: "scroll" }, this.lanes)),
      h("details", { open: true }, h("summary", {}, "The same in Python"), this.python),
    );
  }

  get state() {
    return Object.fromEntries(Object.entries(this.fields).map(([name, field]) => [name, field.value]));
  }

  /** Shows a state: {field: text}; what is left out or unknown is as in START. */
  show(state) {
    for (const [name, field] of Object.entries(this.fields)) {
      field.value = state[name] ?? START[name];
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = START[name];
    }
    return this.update();
  }

  /** The part of the address after #banks, of what differs from START. */
  get query() {
    const changed = Object.entries(this.state).filter(([name, value]) => value !== START[name]);
    return changed.length ? `?${new URLSearchParams(changed)}` : "";
  }

  #fieldsOf(state) {
    const custom = state.pattern === "custom";
    const shown = {
      bits: state.swizzle === "bits",
      width: !isMatrix(state),
      block: state.pattern === "tile",
      request: isNamed(state),
      stride: state.pattern === "stride",
      row: custom,
      column: custom,
      address: state.pattern === "address",
    };
    for (const [name, field] of Object.entries(this.fields)) {
      field.parentElement.hidden = shown[name] === false;
      field.removeAttribute("aria-invalid");
    }
    const at = JSON.stringify(state);
    for (const one of this.examples.children)
      one.setAttribute("aria-pressed", String(JSON.stringify({ ...START, ...EXAMPLES[one.textContent] }) === at));
  }

  /** Reads the form, asks the emulator, and draws. */
  async update() {
    const state = this.state;
    const turn = ++this.turn;
    this.#fieldsOf(state);
    if (location.hash.startsWith("#banks")) history.replaceState(null, "", `#banks${this.query}`);
    try {
      const access = accessOf(state);
      const found = await this.#ask(access);
      if (turn === this.turn) this.#draw(state, access, found);
    } catch (error) {
      if (turn === this.turn) this.#wrong(state, error);
    }
  }

  /** The costs of the request, and of the whole access pattern on this and other layouts. */
  async #ask(access) {
    const { layout, points, requests, request } = access;
    const lists = points ? otherLayouts(layout).map(([pad, swizzle]) => candidate(access, pad, swizzle)) : [];
    const own = requests ? costList(layout, requests, request) : null;
    const [[served], costs, words] = await Promise.all([
      this.engine.call("banks", { requests: [asked(request)] }),
      this.engine.call("costs", { lists: [own, ...lists.map((one) => one.list)] }),
      this.engine.call("explain", { requests: [asked(request)], array: arrayOf(access) }),
    ]);
    return { served, words, all: costs[0], others: lists.map((one, i) => ({ ...one, ...costs[i + 1] })) };
  }

  #draw(state, access, { served, words, all, others }) {
    this.#answer(access, served, words, all);
    this.#drawServed(access.request, served);
    this.#drawTile(access);
    this.#others(access, others);
    this.#laneTable(access, served);
    this.python.textContent = pythonOf(state, access, served);
    this.pictures.hidden = false;
  }

  #wrong(state, error) {
    this.answer.replaceChildren(h("div", { class: "error", role: "alert" }, error.message), error.field ? "" : this.#working(state));
    this.pictures.hidden = true;
    if (error.field) this.fields[error.field].setAttribute("aria-invalid", "true");
  }

  /** Layouts that this access works with, if it does not with the current one. */
  #working(state) {
    const vector = Math.max(1, 16 / Number(state.itemsize));
    const working = [["0", "none"], [`${vector}`, "none"], ["0", "xor"], ["0", "xor:16B"]].filter(([pad, swizzle]) => {
      try {
        accessOf({ ...state, pad, swizzle });
        return true;
      } catch {
        return false;
      }
    });
    if (!working.length) return "";
    const text = ([pad, swizzle]) => (swizzle !== "none" ? `swizzle ${swizzle}` : pad !== "0" ? `pad ${pad}` : "plain");
    const buttons = working.map((one) => [" ", button(text(one), () => this.#take(...one))]);
    return h("p", {}, "Layouts that work with this access:", buttons);
  }

  #take(pad, swizzle) {
    return this.show({ ...this.state, pad: String(pad), swizzle: swizzle ?? "none" });
  }

  #answer({ layout }, served, words, all) {
    const good = (cost, ideal) => (cost <= ideal ? "good" : "bad");
    const tile = (value, label, kind = "") => h("div", { class: `tile ${kind}` }, h("b", {}, value), h("span", {}, label));
    this.answer.replaceChildren(
      h(
        "div",
        { class: "tiles" },
        tile(served.wavefronts, served.wavefronts === 1 ? "wavefront" : "wavefronts", good(served.wavefronts, served.ideal)),
        tile(served.ideal, "the fewest possible"),
        all && all.requests > 1
          ? tile(all.cost, `in all ${all.requests} requests (fewest possible: ${all.ideal})`, good(all.cost, all.ideal))
          : null,
        layout.wasted ? tile(`${layout.wasted} B`, `wasted, of ${layout.bytes} B`) : null,
      ),
      wordsOf({ ...words, layout: served.wavefronts > served.ideal ? words.layout : null }),
    );
  }

  #drawServed(request, served) {
    const span = Math.max(request.width, WORD) / WORD;
    const what = span > 1 ? "chunk" : "word";
    const cells = [];
    const labels = [label(4, 13, "lanes", "start"), label(LEFT - 6, 13, "wave", "end")];
    labels.push(...range(BANKS).map((bank) => label(LEFT + bank * CELL + CELL / 2 - 0.7, 13, bank)));
    let y = TOP;
    for (const group of groupsOf(request, served)) {
      if (!group.wavefronts) continue;
      labels.push(label(4, y + 13.5, `${group.first}–${group.first + group.size - 1}`, "start"));
      for (let index = 0; index < group.wavefronts; index++, y += HIGH) {
        const wave = group.start + index + 1;
        labels.push(label(LEFT - 6, y + 13.5, wave, "end"));
        for (let bank = 0; bank < BANKS; bank += span) {
          const own = group.cells.filter((cell) => cell.wavefront === wave - 1 && cell.bank === bank);
          cells.push(servedCell(own, { bank, span, wave, index, y, what }));
        }
      }
      y += 7;
    }
    this.served.draw(cells, labels, LEFT + BANKS * CELL + 2, y);
  }

  #drawTile({ layout, points, request }) {
    const items = Math.max(1, request.width / layout.itemsize);
    const lanes = new Map();
    points?.forEach((point, lane) => {
      for (let i = 0; point && i < items; i++) {
        const key = `${point[0]},${point[1] + i}`;
        lanes.set(key, [...(lanes.get(key) ?? []), lane]);
      }
    });
    const first = Math.min(...(points ?? []).filter(Boolean).map(([r]) => r), layout.rows - 1);
    const top = points && first >= MOST_ROWS ? Math.min(first, layout.rows - MOST_ROWS) : 0;
    const rows = Math.min(layout.rows - top, MOST_ROWS);
    const cols = Math.min(layout.cols, MOST_COLS);
    const cells = range(rows * cols).map((i) => {
      const [r, c] = [top + Math.floor(i / cols), i % cols];
      return tileCell(layout, r, c, r - top, lanes.get(`${r},${c}`));
    });
    const labels = [
      ...range(cols).map((c) => label(34 + c * CELL + CELL / 2 - 0.7, 13, c)),
      ...range(rows).map((r) => label(26, TOP + r * HIGH + 13.5, top + r, "end")),
    ];
    this.tile.draw(cells, labels, 34 + cols * CELL + 2, TOP + rows * HIGH + 2);
    const part = rows < layout.rows || cols < layout.cols ? ` Rows ${top} to ${top + rows - 1} and columns 0 to ${cols - 1} are shown.` : "";
    const caption = points
      ? "Colours and thin numbers are banks. Framed cells are accessed; their bold numbers are lanes."
      : "Colours and numbers are banks. The addresses come from the formula, not from this tile.";
    this.tileCaption.textContent = caption + part;
  }

  #others({ points, requests }, others) {
    if (!points) {
      const why = "The addresses come from a formula, so there is no layout to change.";
      return this.others.replaceChildren(h("tbody", {}, h("tr", {}, h("td", {}, why))));
    }
    const { pad, swizzle } = this.#current();
    const lines = others.map((one) => ({ ...one, now: one.pad === pad && one.swizzle === swizzle, cost: one.why ? Infinity : one.cost }));
    lines.sort((a, b) => a.cost - b.cost);
    const head = ["layout", `wavefronts${requests ? ", all requests" : ""}`, "fewest possible", "bytes wasted", ""];
    this.others.replaceChildren(
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        lines.map((line) => {
          if (line.why) return h("tr", {}, h("td", {}, line.name), h("td", { colspan: 4, class: "why" }, line.why));
          const show = line.now ? "shown" : button("show", () => this.#take(line.pad, line.swizzle), { class: "small", "aria-label": `show ${line.name}` });
          const cells = [line.name, line.cost, line.ideal, line.wasted, show];
          return h("tr", { class: line.now ? "now" : "" }, cells.map((cell) => h("td", {}, cell)));
        }),
      ),
    );
  }

  #current() {
    const { pad, swizzle } = this.state;
    return { pad: Number(pad), swizzle: swizzle === "none" ? null : swizzle };
  }

  #laneTable({ points, request }, served) {
    const span = Math.max(request.width, WORD) / WORD;
    const head = ["lane", "row, column", "address", "bank", "wavefront"];
    const rows = range(LANES).map((lane) => {
      if (!request.active[lane]) return h("tr", {}, h("td", {}, lane), h("td", { colspan: 4 }, "inactive"));
      const at = request.address[lane];
      const bank = Math.floor(at / WORD) % BANKS;
      const cells = [lane, points ? points[lane].join(", ") : "", at, span > 1 ? `${bank}–${bank + span - 1}` : bank, served.wavefrontOf[lane] + 1];
      return h("tr", {}, cells.map((cell) => h("td", {}, cell)));
    });
    this.lanes.replaceChildren(h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows));
  }
}

/** The tile as an array in shared memory; null where rows and columns are not in their places. */
function arrayOf({ layout, points }) {
  if (!points || layout.swizzle !== null) return null;
  const columns = layout.pitch / layout.itemsize;
  return { name: "tile", at: 0, bytes: layout.bytes, element: layout.itemsize, columns };
}

/** The same access on another layout: what worker.js's "costs" takes, or why it does not fit. */
function candidate({ layout, points, requests, request }, pad, swizzle) {
  const name = [pad && `pad ${pad}`, swizzle && `swizzle ${swizzle}`].filter(Boolean).join(", ") || "plain";
  try {
    const other = new Layout(layout.rows, layout.cols, layout.itemsize, pad, swizzle);
    return { name, pad, swizzle, wasted: other.wasted, list: costList(other, requests ?? [points], request) };
  } catch (error) {
    return { name, pad, swizzle, why: error.message, list: null };
  }
}

function costList(layout, requests, { width, op }) {
  return requests.map((points) => asked(requestOf(layout, points, width, op)));
}

const label = (x, y, text, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor, class: "axis" }, String(text));

function servedCell(own, { bank, span, wave, index, y, what }) {
  const place = { x: LEFT + bank * CELL, y, w: span * CELL };
  if (!own.length) return { ...place, kind: "empty" };
  const lanes = own.map((cell) => cell.lane);
  const number = own[0].chunk;
  return {
    ...place,
    kind: index ? "late" : "served",
    text: lanes.length > 1 ? `×${lanes.length}` : lanes[0],
    says:
      `Wavefront ${wave}, bank${span > 1 ? `s ${bank}–${bank + span - 1}` : ` ${bank}`}: ${what} ${number} ` +
      `(byte ${number * span * WORD}) for lane${lanes.length > 1 ? "s" : ""} ${runs(lanes, 8)}` +
      (index ? `; the bank serves ${many(index, `other ${what}`)} first.` : "."),
  };
}

function tileCell(layout, r, c, line, accessed) {
  const at = layout.address(r, c);
  const bank = Math.floor(at / WORD) % BANKS;
  const last = bank + Math.max(1, layout.itemsize / WORD) - 1;
  const lanes = accessed ? `; lane${accessed.length > 1 ? "s" : ""} ${runs(accessed, 8)}` : "";
  return {
    x: 34 + c * CELL,
    y: TOP + line * HIGH,
    w: CELL,
    kind: accessed ? "bank read" : "bank",
    bank,
    text: accessed ? (accessed.length > 1 ? `×${accessed.length}` : accessed[0]) : bank,
    says: `Row ${r}, column ${c}: byte ${at}, bank${last > bank ? `s ${bank}–${last}` : ` ${bank}`}${lanes}`,
  };
}

/** An SVG whose cells show details under the pointer, or by arrow keys while the box has the focus. */
function gridBox(name) {
  const box = h("div", { class: "scroll picture", tabindex: "0", role: "group", "aria-label": name });
  const detail = h("div", { class: "detail", "aria-live": "polite" });
  let cells = [];
  let now = null;
  const cursor = svg("rect", { class: "cursor", width: 0, height: 0 });
  const visit = (next) => {
    if (!next) return;
    now = next;
    const at = { x: now.x - 1, y: now.y - 1, width: now.w + 0.5, height: HIGH + 0.5 };
    for (const [attribute, value] of Object.entries(at)) cursor.setAttribute(attribute, value);
    detail.textContent = now.says;
  };
  const point = (event) => {
    const from = box.firstChild.getBoundingClientRect();
    const [x, y] = [event.clientX - from.left, event.clientY - from.top];
    visit(cells.find((c) => c.says && x >= c.x && x < c.x + c.w && y >= c.y && y < c.y + HIGH));
  };
  box.addEventListener("pointermove", point);
  box.addEventListener("pointerdown", point);
  box.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [];
    if (dx === undefined) return;
    event.preventDefault();
    visit(nextCell(cells, now, dx, dy));
  });
  const draw = (made, labels, width, height) => {
    cells = made;
    now = null;
    detail.textContent = "";
    cursor.setAttribute("width", 0);
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", class: "grid" });
    picture.append(...labels, ...made.map(drawnCell), cursor);
    box.replaceChildren(picture);
  };
  return { box, detail, draw };
}

function nextCell(cells, now, dx, dy) {
  const inRow = (c) => c.y === now.y && (c.x - now.x) * dx > 0;
  const inColumn = (c) => (c.y - now.y) * dy > 0 && c.x < now.x + now.w && now.x < c.x + c.w;
  const ahead = cells.filter((c) => c.says && (!now || (dx ? inRow(c) : inColumn(c))));
  const distance = (c) => (now ? Math.abs(c.x - now.x) + Math.abs(c.y - now.y) : 0);
  return ahead.sort((a, b) => distance(a) - distance(b))[0];
}

function drawnCell({ x, y, w, kind, bank, text }) {
  return svg(
    "g",
    { class: kind, style: bank === undefined ? null : `--bank:${bank}` },
    svg("rect", { x, y, width: w - 1.5, height: HIGH - 1.5, rx: 2.5 }),
    text === undefined ? null : svg("text", { x: x + w / 2 - 0.7, y: y + 13.5 }, String(text)),
  );
}
