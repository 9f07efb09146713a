// Shared memory as a grid: one cell per element, coloured and numbered by who wrote it last.

import {context, el, many, onResize, theme} from "./dom.js";
import {warpText} from "./lanes.js";
import {lanesOf} from "./recording.js";
import {placeText} from "./steps.js";
import {format, registerTypes, typeBytes} from "./values.js";

const GRID_LEFT = 34;
const GRID_TOP = 18;
const HEIGHT = 17;
const MOST_ROWS = 64;  // of one picture
const CELLS = {
  writer: "warp that wrote it",
  value: "value",
  lane: "lane that wrote it",
  bank: "bank"
};

/** The declared arrays of a block's shared memory, and what lies outside of them. */
export function sharedArrays({header}, block) {
  const {shared, launch} = header.blocks[block];
  const bytes = header.memories[shared]?.bytes ?? 0;
  const declared = (header.shared ?? [])
                     .filter((array) => array.launch === launch && array.offset < bytes)
                     .map((array) => ({...array, bytes: array.bytes || bytes - array.offset}))
                     .sort((a, b) => a.offset - b.offset);
  const end = declared.reduce((most, {offset, bytes: own}) => Math.max(most, offset + own), 0);
  if (end >= bytes) return declared;
  return [
    ...declared,
    {
      name: declared.length ? "the rest" : "shared memory",
      offset: end,
      bytes: bytes - end,
      element: null,
      cols: null
    }
  ];
}

/** "tile[3][4]" of a byte offset in a block's shared memory, or null. */
export function elementName(arrays, address) {
  const array = arrays.find(({offset, bytes}) => address >= offset && address < offset + bytes);
  if (!array) return null;
  const at = Math.floor((address - array.offset) / elementBytes(array));
  if (!array.cols) return `${array.label ?? array.name}[${at}]`;
  return `${array.label ?? array.name}[${Math.floor(at / array.cols)}][${at % array.cols}]`;
}

function elementBytes(array) {
  if (array.element) return array.element;
  const declared = typeBytes(array.type);
  return declared > 1 ? declared : typeBytes(array.accessed ?? "b32");
}

export class SharedView {
  constructor(container, recording) {
    this.recording = recording;
    this.types = registerTypes(recording);
    this.settings = new Map();  // of each array that the reader changed: cols, type
    this.cell = null;
    this.build(container);
    this.stop = onResize(this.scroll, () => this.draw());
  }

  build(container) {
    const change = () => this.changed();
    this.array = el("select", {change: () => this.pick()});
    this.cols = el("input", {type: "number", min: 1, max: 1024, change});
    this.type = el(
      "select",
      {change},
      ...["f32", "s32", "u32", "b32", "f16", "bf16", "f64", "u8"].map(
        (name) => el("option", {}, name)
      )
    );
    this.shows = el(
      "select",
      {change: () => this.draw()},
      ...Object.entries(CELLS).map(([value, text]) => el("option", {value}, text))
    );
    this.top =
      el("input", {type: "number", min: 0, step: 32, ".value": 0, change: () => this.draw()});
    this.topLabel = el("label", {}, "from row ", this.top);
    this.canvas = el("canvas", {role: "img"});
    this.scroll = el(
      "div",
      {
        class: "shared-grid",
        tabindex: 0,
        role: "group",
        "aria-label": "Cells of shared memory; the arrow keys go from one to the next",
        keydown: (event) => this.key(event),
        mousemove: (event) => this.hover(event),
        click: (event) => this.hover(event)
      },
      this.canvas,
    );
    this.detail = el("p", {class: "detail", "aria-live": "polite"});
    this.legend = el("p", {class: "legend"});
    const label = (text, field) => el("label", {}, `${text} `, field);
    container.append(
      el(
        "div",
        {class: "row"},
        label("array", this.array),
        label("columns", this.cols),
        label("type", this.type),
        label("cells show", this.shows),
        this.topLabel
      ),
      this.detail,
      this.scroll,
      this.legend,
    );
  }

  destroy() {
    this.stop();
  }

  /** State at k, the accesses of step k, and the state before which the reader was at `before`. */
  show(block, k, before, accesses, wave) {
    const {recording} = this;
    const isNew = this.block !== block;
    Object.assign(this, {block, k, before, wave});
    this.memory = recording.header.blocks[block].shared;
    this.accesses = accesses.filter((access) => access.memory === this.memory);
    if (isNew) this.fill();
    this.follow();
    this.draw();
  }

  fill() {
    this.arrays = sharedArrays(this.recording, this.block);
    this.array.replaceChildren(
      ...this.arrays.map(({name, label}, i) => el("option", {value: i}, label ?? name))
    );
    this.pick();
  }

  /** Shows the array that the access is to. */
  follow() {
    const [access] = this.accesses;
    if (!access) return;
    const address = access.addresses[lanesOf(access.active)[0]];
    const at =
      this.arrays.findIndex(({offset, bytes}) => address >= offset && address < offset + bytes);
    if (at >= 0 && at !== Number(this.array.value)) {
      this.array.value = at;
      this.pick();
    }
    const row = Math.floor((address - this.own.offset) / this.bytes / this.columns);
    const from = Number(this.top.value);
    if (at >= 0 && (row < from || row >= from + MOST_ROWS)) this.top.value = row - (row % 32);
  }

  get own() {
    return this.arrays[this.array.value];
  }

  get bytes() {
    return typeBytes(this.type.value);
  }

  get columns() {
    return Math.max(1, Number(this.cols.value) || 32);
  }

  pick() {
    const {own} = this;
    this.top.value = 0;
    this.cell = null;
    if (!own) return;
    const known = this.settings.get(own.name);
    this.type.value = known?.type ?? this.guess(own);
    if (!this.type.value) this.type.value = "b32";
    this.cols.value = known?.cols ?? (own.cols || Math.max(1, Math.floor(128 / this.bytes)));
    this.draw();
  }

  /** The type to show an array by: as declared, or that of what is stored. */
  guess(array) {
    const size = elementBytes(array);
    for (const type of [array.type, array.accessed]) {
      if (type && typeBytes(type) === size && !/^b\d/.test(type))
        return type.replace(/^s16|^u16/, "b32");
    }
    const stored = this.storedType(array);
    if (stored && typeBytes(stored) === size) return stored;
    return {1: "u8", 2: "f16", 8: "f64"}[size] ?? "b32";
  }

  storedType(array) {
    const {recording} = this;
    const {indices} = recording.writes(this.memory);
    const {write_word, write_step, step_instruction} = recording.columns;
    const inside = indices.find(
      (i) => write_word[i] * 4 >= array.offset && write_word[i] * 4 < array.offset + array.bytes &&
        write_step[i] < recording.count
    );
    if (inside === undefined) return null;
    const {reads} = recording.header.instructions[step_instruction[write_step[inside]]];
    return reads.length ? this.types[reads.at(-1)] : null;
  }

  changed() {
    if (this.own) this.settings.set(this.own.name, {cols: this.columns, type: this.type.value});
    this.draw();
  }

  // ---- drawing

  draw() {
    if (this.k === undefined || !this.scroll.clientWidth) return;
    const {own} = this;
    if (!own) {
      this.canvas.hidden = true;
      this.detail.textContent = "This block has no shared memory.";
      return;
    }
    this.canvas.hidden = false;
    this.state = this.recording.memory(this.memory, this.k);
    this.earlier =
      this.before === null ? null : this.recording.memory(this.memory, this.before).last;
    this.touched = this.touchedElements();
    this.measure(own);
    this.paint();
    this.tell();
  }

  measure(own) {
    const count = Math.ceil(own.bytes / this.bytes);
    this.allRows = Math.ceil(count / this.columns);
    this.from = Math.max(0, Math.min(Number(this.top.value) || 0, this.allRows - 1));
    this.rows = Math.min(this.allRows - this.from, MOST_ROWS);
    this.topLabel.hidden = this.allRows <= MOST_ROWS;
    const room = this.scroll.clientWidth - GRID_LEFT - 2;
    const least = {value: 44, writer: 11, lane: 11, bank: 11}[this.shows.value];
    this.width = Math.max(least, Math.min(26, room / this.columns));
    if (this.shows.value === "value")
      this.width = Math.max(least, Math.min(60, room / this.columns));
    this.count = count;
  }

  /** The elements that the current access touches: {element: [lanes]}. */
  touchedElements() {
    const found = new Map();
    for (const access of this.accesses) {
      for (const lane of lanesOf(access.active)) {
        const first = Math.floor((access.addresses[lane] - this.own.offset) / this.bytes);
        const last =
          Math.floor((access.addresses[lane] + access.width - 1 - this.own.offset) / this.bytes);
        for (let at = first; at <= last; at++) found.set(at, [...(found.get(at) ?? []), lane]);
      }
    }
    return found;
  }

  paint() {
    const colour = theme(this.scroll);
    const width = GRID_LEFT + this.columns * this.width + 2;
    const height = GRID_TOP + this.rows * HEIGHT + 2;
    const drawing = context(this.canvas, width, height);
    drawing.fillStyle = colour("bg");
    drawing.fillRect(0, 0, width, height);
    drawing.font = "10px ui-monospace, monospace";
    drawing.textBaseline = "middle";
    this.paintHeads(drawing, colour);
    for (let row = 0; row < this.rows; row++) {
      for (let column = 0; column < this.columns; column++) {
        const at = (this.from + row) * this.columns + column;
        if (at < this.count)
          this.paintCell(
            drawing, colour, at, GRID_LEFT + column * this.width, GRID_TOP + row * HEIGHT
          );
      }
    }
    this.canvas.setAttribute(
      "aria-label", `${this.own.label ?? this.own.name}: ${this.allRows} rows of ${this.columns}`
    );
    this.legend.textContent =
      "Stroke: never written. Colour: the warp that wrote it. Dot: changed by the step before." +
      (this.accesses.length ? " Solid: what this access touches; the number is the lane." : "");
  }

  paintHeads(drawing, colour) {
    drawing.fillStyle = colour("dim");
    drawing.textAlign = "center";
    const every = Math.ceil(18 / this.width);
    for (let column = 0; column < this.columns; column += every)
      drawing.fillText(column, GRID_LEFT + (column + 0.5) * this.width, GRID_TOP / 2);
    drawing.textAlign = "right";
    for (let row = 0; row < this.rows; row++)
      drawing.fillText(this.from + row, GRID_LEFT - 6, GRID_TOP + (row + 0.5) * HEIGHT);
  }

  paintCell(drawing, colour, at, x, y) {
    const writer = this.writer(at);
    const lanes = this.touched.get(at);
    const [w, h] = [this.width - 1, HEIGHT - 1];
    const isWritten = writer !== null;
    drawing.fillStyle = lanes ? colour("accent")
      : isWritten
      ? `hsl(${(writer.warp ?? 0) * 137.5 + 200} ${colour("cell-s")} ${colour("cell-l")})`
      : colour("soft");
    drawing.fillRect(x, y, w, h);
    if (!isWritten) hatch(drawing, colour(lanes ? "on-accent" : "line"), x, y, w, h);
    drawing.fillStyle = lanes ? colour("on-accent") : colour("cell-fg");
    drawing.textAlign = "center";
    const text =
      lanes ? (lanes.length > 1 ? `×${lanes.length}` : `${lanes[0]}`) : this.cellText(at, writer);
    if (text && this.width >= 6 * text.length + 1)
      drawing.fillText(text, x + w / 2, y + h / 2 + 0.5, w);
    if (this.isChanged(at)) {
      drawing.fillStyle = lanes ? colour("on-accent") : colour("fg");
      drawing.beginPath();
      drawing.arc(x + w - 3, y + 3, 1.8, 0, 7);
      drawing.fill();
    }
    if (at === this.cell) {
      drawing.strokeStyle = colour("fg");
      drawing.lineWidth = 2;
      drawing.strokeRect(x + 1, y + 1, w - 2, h - 2);
    }
  }

  cellText(at, writer) {
    const shows = this.shows.value;
    if (shows === "bank") return `${Math.floor(this.address(at) / 4) % 32}`;
    if (shows === "value")
      return writer || this.state.values[this.wordOf(at)] ? this.value(at) : "";
    if (!writer) return "";
    if (shows === "lane") return `${writer.lane}`;
    return writer.warp === null ? "?" : `${this.recording.header.warps[writer.warp].warp}`;
  }

  address(at) {
    return this.own.offset + at * this.bytes;
  }

  wordOf(at) {
    return Math.floor(this.address(at) / 4);
  }

  /** Who wrote an element last, or null. */
  writer(at) {
    const word = this.wordOf(at);
    const found = this.recording.wordAfter(this.memory, word, this.state.last[word]);
    return found.written ? found : null;
  }

  isChanged(at) {
    const word = this.wordOf(at);
    return this.earlier !== null && this.earlier[word] !== this.state.last[word];
  }

  value(at) {
    const address = this.address(at);
    const word = this.wordOf(at);
    const {values} = this.state;
    if (this.bytes === 8) return format([values[word], values[word + 1]], this.type.value);
    return format([values[word] >>> (8 * (address % 4))], this.type.value);
  }

  // ---- one cell

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - GRID_LEFT) / this.width);
    const row = Math.floor((event.clientY - box.top - GRID_TOP) / HEIGHT);
    const at = (this.from + row) * this.columns + column;
    if (
      column < 0 || column >= this.columns || row < 0 || row >= this.rows || at >= this.count ||
      at === this.cell
    )
      return;
    this.select(at);
  }

  select(at) {
    this.cell = at;
    this.paint();
    this.tell();
  }

  key(event) {
    const by =
      {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns}[event.key];
    if (!by || !this.own) return;
    event.preventDefault();
    event.stopPropagation();
    const start = this.from * this.columns;
    const next = this.cell === null ? start : this.cell + by;
    if (next >= start && next < Math.min(this.count, start + this.rows * this.columns))
      this.select(next);
  }

  tell() {
    const text = this.cell === null
      ? "Point at a cell, or use the arrow keys, for its value and its writer."
      : this.words(this.cell);
    if (this.detail.textContent !== text) this.detail.textContent = text;
  }

  words(at) {
    const address = this.address(at);
    const {own} = this;
    const index = this.columns > 1 && this.allRows > 1
      ? `[${Math.floor(at / this.columns)}][${at % this.columns}]`
      : `[${at}]`;
    const writer = this.writer(at);
    const by = writer ? this.writerWords(writer) : "never written";
    const touched = this.touched.get(at);
    const now = touched
      ? ` Touched now by ${many(touched.length, "lane")}: ${touched.slice(0, 8).join(", ")}.`
      : "";
    const where = `byte ${address}, bank ${Math.floor(address / 4) % 32}`;
    return `${own.label ?? own.name}${index} = ${this.value(at)}; ${where}; ${by}.${now}`;
  }

  writerWords({warp, lane, step, instruction}) {
    const {header, first} = this.recording;
    const who = warp === null ? "a warp that is not recorded"
                              : `${warpText(this.recording, warp)}, lane ${lane}`;
    const where = instruction === null
      ? ""
      : ` at ${placeText(this.recording, header.instructions[instruction])}`;
    const when = step === null ? " before the recording begins" : `, step ${first + step}`;
    return `written by ${who}${where}${when}`;
  }
}

function hatch(drawing, colour, x, y, w, h) {
  drawing.strokeStyle = colour;
  drawing.lineWidth = 1;
  drawing.beginPath();
  drawing.moveTo(x, y + h);
  drawing.lineTo(x + Math.min(w, h), y + h - Math.min(w, h));
  drawing.stroke();
}
