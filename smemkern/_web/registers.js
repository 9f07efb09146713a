// The registers of the warp: those of the current instruction first, with what has changed.

import {el} from "./dom.js";
import {LANES, lanesOf, NONE} from "./recording.js";
import {registerTypes, summary, values} from "./values.js";

const MOST_REGISTERS = 100;  // rows

export class RegistersView {
  constructor(container, recording) {
    this.recording = recording;
    this.types = registerTypes(recording);
    this.open = new Set();
    this.body = el("tbody");
    this.caption = el("p", {class: "legend"});
    this.filter = el("input", {
      type: "search",
      placeholder: "name",
      "aria-label": "Show registers whose name contains",
      input: () => this.draw()
    });
    this.laneHead = el("th", {scope: "col"});
    const head = el(
      "tr",
      {},
      el("th", {scope: "col"}, "name"),
      el("th", {scope: "col"}, "type"),
      this.laneHead,
      el("th", {scope: "col"}, "all lanes")
    );
    container.append(
      el("div", {class: "row"}, el("label", {}, "find ", this.filter), this.caption),
      el(
        "div",
        {class: "register-table", tabindex: 0, role: "region", "aria-label": "Registers"},
        el("table", {}, el("thead", {}, head), this.body)
      ),
    );
    this.locals = this.namesOfLocals();
  }

  /** The names that the debug information gives to registers. */
  namesOfLocals() {
    const names = new Map();
    for (const {name, register} of this.recording.header.locals ?? []) {
      if (Number.isInteger(register)) names.set(register, name);
    }
    return names;
  }

  /** State at k, and what changed since the state at `before`. */
  show(warp, k, before, lane) {
    Object.assign(this, {warp, k, before, lane});
    this.draw();
  }

  draw() {
    if (this.k === undefined) return;
    const instruction = this.recording.instruction(this.k);
    const own = instruction && this.recording.warpAt(this.k) === this.warp
      ? instruction
      : {reads: [], writes: []};
    this.laneHead.textContent = `lane ${this.lane}`;
    const listed = this.listed(own);
    const rows = listed.slice(0, MOST_REGISTERS).map((register) => this.row(register, own));
    this.body.replaceChildren(...rows);
    const more = listed.length - rows.length;
    const legend = "Bold with a dot: changed by the step before. → what this instruction writes.";
    this.caption.textContent = more ? `${legend} ${more} more: find them by name.`
      : rows.length ? legend
                    : "No register has been written yet.";
  }

  /** Registers of the instruction, then changed ones, then the rest in the order of the program. */
  listed({reads, writes}) {
    const {header} = this.recording;
    const wanted = this.filter.value.trim().toLowerCase();
    const rank = (register) => {
      if (reads.includes(register) || writes.includes(register)) return 0;
      return this.isChanged(register) ? 1 : 2;
    };
    const matches = (register) => !wanted ||
      `${header.registers[register].name} ${this.locals.get(register) ?? ""}`
        .toLowerCase()
        .includes(wanted);
    return [...header.registers.keys()]
      .filter(
        (register) => matches(register) &&
          (rank(register) < 2 || this.recording.isWritten(this.warp, register, this.k))
      )
      .map((register) => [rank(register), register])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, register]) => register);
  }

  isChanged(register) {
    const {recording, warp, k, before} = this;
    if (before === null) return false;
    return recording.registerChange(warp, register, k) !==
      recording.registerChange(warp, register, before);
  }

  row(register, {reads, writes}) {
    const {recording} = this;
    const {name} = recording.header.registers[register];
    const type = this.types[register];
    const now = this.texts(register, this.k);
    const then = writes.includes(register)
      ? this.texts(register, Math.min(this.k + 1, recording.count))
      : null;
    const lanes = lanesOf(recording.header.warps[this.warp].lanes & NONE);
    const role =
      [reads.includes(register) ? "read" : "", writes.includes(register) ? "written" : ""]
        .filter(Boolean)
        .join(", ");
    const arrow = (was, will) =>
      (will !== null && will !== undefined ? `${was === null ? "" : `${was} `}→ ${will}`
                                           : (was ?? "not written"));
    const isOpen = this.open.has(register);
    const cells = [
      el(
        "th",
        {scope: "row"},
        el(
          "button",
          {
            type: "button",
            "data-register": register,
            "aria-expanded": isOpen,
            click: () => this.toggle(register),
            title: "All 32 lanes"
          },
          this.isChanged(register) ? el("span", {class: "dot", title: "changed"}, "● ") : null,
          this.locals.get(register) ?? name
        ),
        role ? el("small", {}, ` ${role}`) : null
      ),
      el("td", {class: "type"}, type),
      el("td", {class: "value"}, arrow(now && now[this.lane], then && then[this.lane])),
      el(
        "td",
        {class: "all"},
        arrow(now && summary(now, lanes), then && summary(then, lanes)),
        isOpen && now
          ? el(
              "div",
              {class: "every"},
              ...now.map((text, lane) => el("span", {}, el("small", {}, `${lane} `), text))
            )
          : null
      ),
    ];
    return el(
      "tr",
      {class: `register${this.isChanged(register) ? " changed" : ""}${role ? " own" : ""}`},
      ...cells
    );
  }

  /** The values of all lanes before step k, or null; "unset" where a lane has not written it. */
  texts(register, k) {
    const bits = this.recording.register(this.warp, register, k);
    if (!bits) return null;
    const type = this.types[register];
    const written = this.recording.writtenLanes(this.warp, register, k);
    const isAddress = bits.length === 2 * LANES && type !== "f64";
    return values(bits, type).map((text, lane) => {
      if (!((written >>> lane) & 1)) return "unset";
      return (isAddress && this.address(bits[2 * lane], bits[2 * lane + 1])) || text;
    });
  }

  /** An address in an argument array, as the array's name and an offset; else null. */
  address(low, high) {
    const {arrays = [], first_array} = this.recording.header;
    const array = arrays[(high >>> 8) - first_array];
    const offset = (high % 256) * 2 ** 32 + low;
    return array ? `${array.name ?? "array"}${offset ? ` + ${offset}` : ""}` : null;
  }

  toggle(register) {
    if (!this.open.delete(register)) this.open.add(register);
    this.draw();
    this.body.querySelector(`[data-register="${register}"]`)?.focus();
  }
}
