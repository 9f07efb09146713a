// One access to shared memory, drawn: lanes at the left, banks beside them, and at the right a time
// table of the banks, one column per wavefront. A conflict is a bank whose row is long.

import {el, lanesText, many, onResize, runs, svg} from "./dom.js";
import {LANES, lanesOf} from "./recording.js";

const BANKS = 32;
const WORD = 4;
const ROW = 13.5;
const TOP = 34;
const LABEL = 12.5;  // pixels that a lane's number in a cell needs

/** The banks that a lane of this width uses at a byte address. */
function banksOf(address, width) {
  const first = Math.floor(address / WORD);
  const last = Math.floor((address + width - 1) / WORD);
  return Array.from({length: last - first + 1}, (_, i) => (first + i) % BANKS);
}

/** The lanes that each bank serves in each wavefront: table[bank][wave] = [lanes]. */
function schedule(request) {
  const table = Array.from({length: BANKS}, () => []);
  for (const lane of lanesOf(request.active)) {
    const wave = request.waves ? request.waves[lane] : 0;
    for (const bank of banksOf(request.addresses[lane], request.width)) {
      (table[bank][wave] ??= []).push(lane);
    }
  }
  return table;
}

/**
 * Whether the wavefronts of the lanes are known: then no bank serves two words in one of them. Of
 * copies by cp.async only the number of wavefronts is.
 */
function isScheduled(request) {
  const words = new Map();
  for (const lane of lanesOf(request.active)) {
    const first = Math.floor(request.addresses[lane] / WORD);
    const wave = request.waves ? request.waves[lane] : 0;
    for (const [i, bank] of banksOf(request.addresses[lane], request.width).entries()) {
      const key = wave * BANKS + bank;
      if ((words.get(key) ?? first + i) !== first + i) return false;
      words.set(key, first + i);
    }
  }
  return true;
}

/** What the picture shows, in sentences that hold for every access. */
export function reasons(request) {
  const {cost, ideal} = request;
  if (!isScheduled(request)) {
    const count = `${many(cost, "wavefront")} where ${ideal} would be the fewest`;
    return [`The hardware takes ${count}. Which lanes each of them serves is not known.`];
  }
  const busy = schedule(request).map((waves) => waves.filter(Boolean).length);
  const most = Math.max(...busy);
  const busiest = busy.flatMap((count, bank) => (count === most ? [bank] : []));
  const idle = busy.filter((count) => !count).length;
  const found = [];
  if (cost > ideal) {
    const which = busiest.length === 1 ? `Bank ${busiest[0]} has` : `Banks ${runs(busiest)} have`;
    const each = busiest.length === 1 ? "" : " each";
    const items = request.width > WORD ? "pieces of different words" : "different words";
    const why = `so the warp waits for ${many(cost, "wavefront")}.`;
    found.push(`${which} ${most} ${items}${each} to serve, one per wavefront, ${why}`);
    if (idle)
      found.push(`Meanwhile ${many(idle, "bank")} ${idle === 1 ? "has" : "have"} nothing to do.`);
  } else {
    const fewest = many(ideal, "wavefront");
    found.push(`No bank has more to serve than the fewest possible, ${fewest}: no conflict.`);
  }
  return found;
}

const isStore = (request) => /store|stmatrix|write|atomic/.test(request.operation);

export class AccessPicture {
  /** @param {HTMLElement} container @param {(wave: number | null) => void} onWave */
  constructor(container, onWave = null) {
    this.onWave = onWave ?? ((wave) => this.show(this.request, wave));
    this.request = null;
    this.wave = null;
    this.lane = null;
    this.timer = null;
    this.build(container);
    this.stop = onResize(this.frame, () => this.draw());
  }

  build(container) {
    this.play = el("button", {type: "button", click: () => this.toggle()}, "▶ Play");
    this.slider = el("input", {
      type: "range",
      min: 0,
      step: 1,
      "aria-label": "Wavefront",
      input: () =>
        this.onWave(Number(this.slider.value) - 1 < 0 ? null : Number(this.slider.value) - 1),
    });
    const step = (by) => () => this.move(by);
    this.controls = el(
      "div",
      {class: "waves-bar"},
      el("button", {type: "button", "aria-label": "Previous wavefront", click: step(-1)}, "◀"),
      this.slider,
      el("button", {type: "button", "aria-label": "Next wavefront", click: step(1)}, "▶"),
      this.play,
    );
    this.frame = el("div", {
      class: "access-picture",
      tabindex: 0,
      role: "group",
      keydown: (event) => this.key(event),
      "aria-label":
        "Lanes, banks and wavefronts. Left and right go to another wavefront, up and down to a lane",
    });
    this.detail = el("p", {class: "detail", "aria-live": "polite"});
    this.legend = el("p", {class: "legend"});
    container.append(this.controls, this.detail, this.frame, this.legend);
  }

  destroy() {
    this.pause();
    this.stop();
  }

  /** Shows a request: all of it, or one wavefront (0, 1, ...). */
  show(request, wave = null) {
    if (request !== this.request) {
      this.lane = null;
      if (!request || wave === null) this.pause();
    }
    this.request = request;
    this.wave = wave;
    this.draw();
  }

  // ---- controls

  move(by) {
    if (!this.request) return;
    const next = this.wave === null ? (by > 0 ? 0 : this.request.cost - 1) : this.wave + by;
    this.lane = null;
    this.onWave(next < 0 || next >= this.request.cost ? null : next);
  }

  toggle() {
    if (this.timer) return this.pause();
    const milliseconds = this.request.cost > 8 ? 280 : 700;
    this.timer = setInterval(() => {
      if (this.wave !== null && this.wave + 1 >= this.request.cost) this.pause();
      else this.move(1);
    }, milliseconds);
    this.play.textContent = "❚❚ Pause";
    if (this.wave !== null && this.wave + 1 >= this.request.cost)
      this.onWave(0);
    else
      this.move(1);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶ Play";
  }

  key(event) {
    const waves = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const lanes = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!this.request || (!waves && !lanes)) return;
    event.preventDefault();
    event.stopPropagation();
    if (waves) return this.move(waves);
    const active = lanesOf(this.request.active);
    const at = active.indexOf(this.lane) + lanes;
    this.point(active[(at + active.length) % active.length]);
  }

  /** Marks one lane, and tells of it. */
  point(lane) {
    this.lane = lane;
    this.mark();
    this.tell();
  }

  // ---- drawing

  draw() {
    const {request} = this;
    this.frame.replaceChildren();
    this.count = request && isScheduled(request) ? Math.max(1, request.cost) : 0;
    this.controls.hidden = this.count < 2;
    if (!this.count) this.wave = null;
    if (!request || !this.frame.clientWidth) return;
    this.slider.max = request.cost;
    this.slider.value = this.wave === null ? 0 : this.wave + 1;
    this.slider.setAttribute(
      "aria-valuetext", this.wave === null ? "all" : `wavefront ${this.wave + 1}`
    );
    this.table = schedule(request);
    this.layOut();
    const picture = svg(
      "svg",
      {width: this.width, height: TOP + BANKS * ROW + 6, role: "img", "aria-label": this.summary()}
    );
    picture.append(
      this.heads(), this.columns(), this.paths(), this.lanes(), this.banks(), this.cells()
    );
    this.frame.append(picture);
    this.mark();
    this.tell();
    this.legend.textContent =
      `A bank serves one word per wavefront, to all lanes that want that word. ${this.marksText()}`;
  }

  /** What the marks of the picture mean. */
  marksText() {
    const {cost, ideal} = this.request;
    if (!this.count) return "";
    if (this.wave !== null)
      return "Solid: served in this wavefront. Pale: served before. Dashed: still waiting.";
    const table =
      "Right: each bank's time table. A number is the lane that it serves in that wavefront, " +
      "×8 are eight lanes with the same word, grey is idle.";
    return cost > ideal ? `${table} Red: wavefronts beyond the fewest possible.` : table;
  }

  /** Positions: lanes, a gap for the lines, banks, and the columns of wavefronts. */
  layOut() {
    const room = Math.max(300, this.frame.clientWidth);
    const box = room < 480 ? 22 : 30;
    const waves = this.count;
    const gap = room < 480 ? 66 : Math.min(160, room * 0.22);
    const rest = room - 2 * box - gap - 12;
    this.cell = Math.max(5, Math.min(waves < 2 ? 46 : 26, rest / Math.max(1, waves)));
    this.box = box;
    this.bankX = box + gap;
    this.waveX = this.bankX + box + 8;
    this.width = Math.max(room, this.waveX + waves * this.cell + 4);
  }

  y(row) {
    return TOP + row * ROW;
  }

  /** "done", "now", "later" of a wavefront; "all" if none is chosen. */
  state(wave) {
    if (this.wave === null) return "all";
    return wave < this.wave ? "done" : wave === this.wave ? "now" : "later";
  }

  heads() {
    const group = svg("g", {class: "heads"});
    const waves = this.count;
    const add = (x, y, text, anchor = "start") =>
      group.append(svg("text", {x, y, "text-anchor": anchor}, text));
    add(0, 12, this.box < 30 ? "lane" : "lanes");
    add(this.bankX, 12, this.box < 30 ? "bank" : "banks");
    const isWide = waves * this.cell > 150;
    const head = waves > 1 ? (isWide ? "wavefronts: time →" : "time →") : "wavefront";
    if (waves) add(this.waveX, 12, head);
    const every = Math.ceil(20 / this.cell);
    for (let wave = 0; wave < waves; wave++) {
      const isShown =
        wave === this.wave || (wave % every === 0 && Math.abs(wave - (this.wave ?? -99)) >= every);
      if (isShown)
        group.append(svg(
          "text",
          {
            x: this.waveX + (wave + 0.5) * this.cell,
            y: 28,
            "text-anchor": "middle",
            class: this.state(wave)
          },
          `${wave + 1}`
        ));
    }
    return group;
  }

  columns() {
    const group = svg("g");
    if (this.wave === null) return group;
    group.append(svg("rect", {
      class: "column-now",
      x: this.waveX + this.wave * this.cell,
      y: TOP - 3,
      width: this.cell,
      height: BANKS * ROW + 4,
      rx: 3
    }));
    return group;
  }

  paths() {
    const {request} = this;
    const group = svg("g", {class: isStore(request) ? "paths" : "paths from-bank"});
    const lanes = lanesOf(request.active);
    const waveOf = (lane) => (request.waves ? request.waves[lane] : 0);
    lanes.sort(
      (a, b) => Number(waveOf(a) === this.wave) - Number(waveOf(b) === this.wave)
    );  // the current ones on top
    for (const lane of lanes) {
      const banks = banksOf(request.addresses[lane], request.width);
      group.append(svg("path", {
        d: this.path(lane, banks),
        class: `path ${this.state(waveOf(lane))}${banks.length > 1 ? " band" : ""}`,
        "data-lane": lane
      }));
    }
    return group;
  }

  /** A curve from a lane to its bank, or a band to its banks. */
  path(lane, banks) {
    const x0 = this.box + 1;
    const x1 = this.bankX - 1;
    const middle = (x0 + x1) / 2;
    const y0 = this.y(lane) + ROW / 2;
    const top = this.y(banks[0]) + ROW / 2;
    if (banks.length === 1) return `M${x0} ${y0}C${middle} ${y0} ${middle} ${top} ${x1} ${top}`;
    const [a, b] = [this.y(banks[0]) + 2, this.y(banks.at(-1)) + ROW - 2];
    const there = `M${x0} ${y0 - 2}C${middle} ${y0 - 2} ${middle} ${a} ${x1} ${a}`;
    return `${there}L${x1} ${b}C${middle} ${b} ${middle} ${y0 + 2} ${x0} ${y0 + 2}Z`;
  }

  lanes() {
    const {request} = this;
    const group = svg("g");
    for (let lane = 0; lane < LANES; lane++) {
      const isActive = (request.active >>> lane) & 1;
      const state = isActive ? this.state(request.waves ? request.waves[lane] : 0) : "off";
      group.append(
        this.boxed(0, this.y(lane), this.box, `lane ${state}`, `${lane}`, {"data-lane": lane})
      );
    }
    return group;
  }

  banks() {
    const group = svg("g");
    this.table.forEach((waves, bank) => {
      const count = waves.filter(Boolean).length;
      const isNow = this.wave !== null && waves[this.wave];
      const state = !count ? "off" : isNow ? "now" : "all";
      group.append(this.boxed(this.bankX, this.y(bank), this.box, `bank ${state}`, `${bank}`, {}));
    });
    return group;
  }

  boxed(x, y, width, name, text, attributes) {
    return svg(
      "g",
      {
        class: name,
        ...attributes,
        mouseenter: "data-lane" in attributes ? () => this.point(attributes["data-lane"]) : null
      },
      svg("rect", {x, y: y + 1, width, height: ROW - 2, rx: 3}),
      svg("text", {x: x + width / 2, y: y + ROW - 4, "text-anchor": "middle"}, text),
    );
  }

  cells() {
    const group = svg("g");
    this.table.forEach((waves, bank) => {
      for (let wave = 0; wave < this.count; wave++) {
        const lanes = waves[wave];
        const x = this.waveX + wave * this.cell;
        if (!lanes) {
          const name = wave === this.wave ? "idle column-now" : "idle";
          const place = {x: x + 0.5, y: this.y(bank) + 1, width: this.cell - 1, height: ROW - 2};
          group.append(svg("rect", {class: name, ...place, rx: 2}));
          continue;
        }
        const over = wave >= this.request.ideal ? " over" : "";
        const text = this.cell < LABEL ? "" : lanes.length > 1 ? `×${lanes.length}` : `${lanes[0]}`;
        const name = `cell ${this.state(wave)}${over}${this.cell < 18 ? " small" : ""}`;
        const cell = this.boxed(x + 0.5, this.y(bank), this.cell - 1, name, text, {});
        cell.addEventListener("mouseenter", () => this.point(lanes[0]));
        cell.addEventListener("click", () => this.onWave(wave));
        group.append(cell);
      }
    });
    return group;
  }

  mark() {
    for (const marked of this.frame.querySelectorAll(".marked")) marked.classList.remove("marked");
    if (this.lane === null) return;
    for (const found of this.frame.querySelectorAll(`[data-lane="${this.lane}"]`))
      found.classList.add("marked");
  }

  // ---- words

  summary() {
    const {cost, ideal, active} = this.request;
    const numbers = `${many(cost, "wavefront")}, the fewest possible ${ideal}`;
    return `${lanesText(lanesOf(active))}: ${numbers}. ${reasons(this.request).join(" ")}`;
  }

  tell() {
    const text = this.lane !== null ? this.laneText(this.lane)
      : this.wave !== null          ? this.waveText()
                                    : reasons(this.request).join(" ");
    if (this.detail.textContent !== text) this.detail.textContent = text;
  }

  laneText(lane) {
    const {request} = this;
    if (!((request.active >>> lane) & 1)) return `Lane ${lane} does not take part.`;
    const address = request.addresses[lane];
    const banks = banksOf(address, request.width);
    const wave = request.waves ? request.waves[lane] : 0;
    const name = request.name?.(address);
    const where = `byte ${address}, word ${Math.floor(address / WORD)}`;
    const bank = `bank${banks.length > 1 ? "s" : ""} ${runs(banks)}`;
    const served = this.count ? `, served in wavefront ${wave + 1} of ${request.cost}` : "";
    return `Lane ${lane}: ${name ? `${name}, ` : ""}${where}, ${bank}${served}.`;
  }

  waveText() {
    const {request, wave} = this;
    const waves = request.waves ?? [];
    const active = lanesOf(request.active);
    const now = active.filter((lane) => waves[lane] === wave);
    const later = active.filter((lane) => waves[lane] > wave);
    const head = `Wavefront ${wave + 1} of ${request.cost}: `;
    if (!now.length) return `${head}the hardware tries again.`;
    const banks = [
      ...new Set(now.flatMap((lane) => banksOf(request.addresses[lane], request.width)))
    ].sort((a, b) => a - b);
    const isPlural = banks.length > 1;
    const verb = isStore(request) ? (isPlural ? "take words from" : "takes a word from")
      : isPlural                  ? "deliver words to"
                                  : "delivers a word to";
    const names = [...new Set(now.map((lane) => request.name?.(request.addresses[lane])))];
    const name = names.length === 1 && names[0] ? ` (${names[0]})` : "";
    const rest = later.length
      ? `${many(later.length, "lane")} still wait${later.length === 1 ? "s" : ""}.`
      : "All lanes are served.";
    const subject = `bank${isPlural ? "s" : ""} ${runs(banks)}`;
    return `${head}${subject} ${verb} ${lanesText(now)}${name}. ${rest}`;
  }
}

const LINE = 128;
const SECTOR = 32;

/** One access to global memory: the 32-byte sectors of each 128-byte line, with their lanes. */
export class SectorPicture {
  constructor(container) {
    this.frame = el("div", {class: "sectors"});
    container.append(this.frame);
  }

  show(request) {
    this.frame.replaceChildren();
    if (!request) return;
    const lines = new Map();
    for (const lane of lanesOf(request.active)) {
      const first = Math.floor(request.addresses[lane] / SECTOR);
      const last = Math.floor((request.addresses[lane] + request.width - 1) / SECTOR);
      for (let sector = first; sector <= last; sector++) {
        const line = Math.floor((sector * SECTOR) / LINE);
        if (!lines.has(line)) lines.set(line, [[], [], [], []]);
        lines.get(line)[sector % (LINE / SECTOR)].push(lane);
      }
    }
    const rows = [...lines.entries()].sort(
                                       (a, b) => a[0] - b[0]
    ).map(([line, sectors]) => this.row(request, line, sectors));
    const head = el(
      "tr",
      {},
      el("th", {scope: "col"}, "128-byte line"),
      ...[0, 32, 64, 96].map((byte) => el("th", {scope: "col"}, `+${byte}`))
    );
    this.frame.append(
      el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)),
      el(
        "p",
        {class: "legend"},
        "Global memory moves sectors of 32 bytes. A cell is a sector, with the lanes that use it."
      ),
    );
  }

  row(request, line, sectors) {
    const name = request.name?.(line * LINE) ?? `byte ${line * LINE}`;
    const cells = sectors.map(
      (lanes) => el("td", {class: lanes.length ? "used" : ""}, lanes.length ? runs(lanes, 3) : "")
    );
    return el("tr", {}, el("th", {scope: "row"}, name), ...cells);
  }
}
