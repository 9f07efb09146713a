// Source text with counts in the margin. One component shows and edits: a text area beside a margin
// that scrolls with it.
import { h, number } from "./dom.js";
import { factorOf, sum } from "./counts.js";

const MOST_LINES = 6000; // longer texts, such as the PTX of a large kernel, have no margin

const COLUMNS = [
  ["wavefronts", "wavefronts of shared memory", ({ shared }) => count(shared, "wavefronts")],
  ["factor", "wavefronts / fewest possible", ({ shared }) => factorChip(shared)],
  ["sectors", "32-byte sectors of global memory", ({ global }) => count(global, "wavefronts")],
];

const count = (rows, name) => (rows.length ? number(sum(rows, name)) : "");

function factorChip(shared) {
  if (!shared.length) return "";
  const factor = factorOf(shared);
  const text = `×${factor < 10 && factor % 1 ? factor.toFixed(2) : Math.round(factor)}`;
  return h("span", { class: factor > 1 ? "chip bad" : "chip good" }, text);
}

export class CodeView {
  /**
   * @param {object} options label, readOnly, rows (visible lines), onchange
   */
  constructor({ label, readOnly = false, rows = 16, onchange = () => {}, sectors = true }) {
    this.lines = new Map();
    this.marks = new Map(); // line -> "error" | "hazard" | "look"
    this.margin = h("div", { class: "margin", "aria-hidden": "true" });
    this.area = h("textarea", {
      "aria-label": label,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      readonly: readOnly,
    });
    this.head = h("div", { class: "code-head", "aria-hidden": "true" });
    this.body = h("div", { class: "code-body" }, this.margin, this.area);
    this.element = h("div", { class: "code" }, this.head, this.body);
    this.columns = sectors ? COLUMNS : COLUMNS.filter(([name]) => name !== "sectors");
    this.rows = rows;
    this.area.addEventListener("input", () => {
      this.clear();
      onchange(this.area.value);
    });
    this.area.addEventListener("keydown", (event) => this.#indent(event));
    new ResizeObserver(() => (this.margin.style.height = `${this.area.offsetHeight}px`)).observe(this.area);
    this.area.addEventListener("scroll", () => (this.margin.scrollTop = this.area.scrollTop));
    this.margin.addEventListener("wheel", (event) => (this.area.scrollTop += event.deltaY), {
      passive: true,
    });
  }

  get text() {
    return this.area.value;
  }

  /** Shows a text without counts. */
  show(text) {
    this.area.value = text;
    this.clear();
  }

  clear() {
    this.lines = new Map();
    this.marks = new Map();
    this.#draw();
  }

  /** @param {Map<number, object>} lines of counts.js's byLine */
  showCounts(lines) {
    this.lines = lines ?? new Map();
    this.marks = new Map();
    for (const [line, found] of this.lines) if (found.hazards.length) this.marks.set(line, "hazard");
    this.#draw();
  }

  /** Marks a line and brings it into view. */
  mark(line, kind) {
    this.marks.set(line, kind);
    this.#draw();
    this.reveal(line);
  }

  reveal(line) {
    const height = this.area.scrollHeight / Math.max(1, this.#lineCount());
    const top = (line - 1) * height;
    if (top < this.area.scrollTop || top > this.area.scrollTop + this.area.clientHeight - height)
      this.area.scrollTop = Math.max(0, top - this.area.clientHeight / 3);
  }

  #lineCount() {
    return this.area.value.split("\n").length;
  }

  /** Tab indents while there is a selection or text before it; Escape lets Tab move on. */
  #indent(event) {
    if (event.key === "Escape") this.leaving = true;
    else if (event.key === "Tab" && !event.shiftKey && !this.area.readOnly && !this.leaving) {
      event.preventDefault();
      this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
      this.area.dispatchEvent(new Event("input"));
    } else if (event.key !== "Shift") this.leaving = false;
  }

  #draw() {
    const count = this.#lineCount();
    const counted = this.lines.size > 0;
    this.element.classList.toggle("counted", counted);
    this.area.style.height = `calc(${Math.min(Math.max(count, 4), this.rows)} * var(--line-height) + 30px)`;
    this.head.replaceChildren(
      ...(counted
        ? this.columns.map(([name, title]) => h("span", { class: `cell ${name}`, title }, name))
        : []),
    );
    if (count > MOST_LINES) return this.margin.replaceChildren();
    const rows = [];
    for (let line = 1; line <= count; line++) rows.push(this.#row(line));
    this.margin.replaceChildren(...rows, h("div", { class: "row end" }));
    this.margin.scrollTop = this.area.scrollTop;
  }

  #row(line) {
    const found = this.lines.get(line);
    const mark = this.marks.get(line);
    const sign = { error: "✖", hazard: "!", look: "▶" }[mark] ?? "";
    const cells = found
      ? this.columns.map(([name, , cell]) => h("span", { class: `cell ${name}` }, cell(found)))
      : this.columns.map(([name]) => h("span", { class: `cell ${name}` }));
    return h(
      "div",
      { class: `row ${mark ? `mark-${mark}` : ""} ${found ? "has" : ""}` },
      this.lines.size ? cells : [],
      h("span", { class: "sign" }, sign),
      h("span", { class: "number" }, line),
    );
  }
}
