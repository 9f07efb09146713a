// The page of a recording: puts the views together, and steps.

import {AccessPicture, SectorPicture} from "./access.js";
import {el} from "./dom.js";
import {findings} from "./findings.js";
import {LanesView, warpText} from "./lanes.js";
import {LocalsView} from "./locals.js";
import {NowView} from "./now.js";
import {RegistersView} from "./registers.js";
import {elementName, sharedArrays, SharedView} from "./shared.js";
import {SourceView} from "./source.js";
import {Steps} from "./steps.js";
import {TimeLine} from "./timeline.js";
import {arrayOf} from "./values.js";

const UNITS = [
  ["line", "n", "The next source line of this warp"],
  ["instruction", "i", "The next instruction of this warp"],
  ["wavefront", "w", "The next wavefront of an access to shared memory"],
  ["barrier", "b", "The next barrier that this warp arrives at"],
  ["conflict", "c", "The next bank conflict of any warp"],
  ["hazard", "h", "The next access that is part of a hazard"],
];
const KEYS = [
  ["n, N", "next line, previous line"],
  ["i, I or →, ←", "next instruction, previous instruction, of this warp"],
  [". ,", "next step, previous step, of any warp"],
  ["w, W", "next wavefront, previous wavefront"],
  ["b, B", "next barrier, previous barrier"],
  ["c, C", "next bank conflict, previous bank conflict"],
  ["h, H", "next access of a hazard, previous one"],
  ["], [", "next warp, previous warp"],
  ["space", "play the wavefronts of this access"],
  ["Home, End", "beginning, end"],
  ["?", "these keys"],
];
let made = 0;

export class ReplayView {
  /**
   * @param {HTMLElement} container
   * @param {import("./recording.js").Recording} recording
   * @param {{keyboard?: boolean, onMove?: (view: ReplayView) => void, start?: number}} options
   */
  constructor(container, recording, {keyboard = true, onMove = () => {}, start} = {}) {
    Object.assign(this, {container, recording, onMove});
    this.steps = new Steps(recording);
    this.k = 0;
    this.warp = recording.warpAt(0);
    this.wave = null;
    this.lane = 0;
    this.before = null;
    this.id = `smk-replay-${++made}`;
    this.root = el("div", {class: "smk-replay", id: this.id});
    container.append(this.root);
    this.build();
    this.keyboard = keyboard ? (event) => this.key(event) : null;
    if (keyboard) document.addEventListener("keydown", this.keyboard);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => {
      this.time.base = null;
      this.update();
    };
    this.dark.addEventListener("change", this.redraw);
    this.seek(start ?? this.opening());
  }

  destroy() {
    document.removeEventListener("keydown", this.keyboard);
    this.dark.removeEventListener("change", this.redraw);
    for (const view of [this.picture, this.shared, this.time]) view.destroy();
    this.root.remove();
  }

  /**
   * Where the page opens: the worst conflict, a hazard, an access to shared memory, the beginning.
   */
  opening() {
    const [worst] = this.steps.conflictLines();
    if (worst) return worst.worst.k;
    const [hazard] = this.steps.hazards;
    return (hazard && this.steps.ofParty(hazard.parties[0])) ?? this.steps.shared(-1, null, 1) ?? 0;
  }

  // ---- the parts

  build() {
    const {recording} = this;
    const now = el("div", {class: "now", "aria-live": "polite"});
    this.status = el("p", {class: "status", role: "status"});
    this.root.append(this.head(), findings(this.steps, this), this.bar());
    const panels = {};
    for (const [name, title] of [
           ["access", "This access"],
           ["source", "Source"],
           ["time", "Time"],
           ["lanes", "Lanes of the warp"],
           ["shared", "Shared memory"],
           ["registers", "Registers"]]) {
      const heading = el("h3", {id: `${this.id}-${name}`}, title);
      panels[name] =
        el("section", {class: `panel ${name}`, "aria-labelledby": heading.id}, heading);
    }
    panels.access.querySelector("h3").replaceWith(now);
    this.pictures = el("div");
    this.sectors = el("div");
    panels.access.append(this.pictures, this.sectors);
    const why = el("div", {class: "why"});
    panels.access.append(why);
    this.now = new NowView(now, why, this.steps, (index, party) => this.showHazard(index, party));
    const side =
      el("div", {class: "column"}, panels.source, panels.time, panels.lanes, panels.registers);
    this.root.append(el(
      "div",
      {class: "columns"},
      side,
      el("div", {class: "column main"}, panels.access, panels.shared)
    ));
    this.picture = new AccessPicture(this.pictures, (wave) => this.setWave(wave));
    this.sectorPicture = new SectorPicture(this.sectors);
    this.source = new SourceView(
      panels.source, recording, this.steps, (file, line) => this.runToLine(file, line)
    );
    this.lanes = new LanesView(panels.lanes, recording, (lane) => this.setLane(lane));
    this.locals = new LocalsView(panels.registers, recording);
    this.registers = new RegistersView(panels.registers, recording);
    this.shared = new SharedView(panels.shared, recording);
    this.time = new TimeLine(panels.time, recording, this.steps, (k, warp) => this.scrub(k, warp));
    this.help = this.helpDialog();
    this.root.append(this.help);
  }

  head() {
    const {header, count, first} = this.recording;
    const [launch] = header.launches;
    const extent = (lengths) => lengths.join(" × ").replace(/( × 1)+$/, "");
    const facts = [
      `grid ${extent(launch?.grid ?? [])}`,
      `block ${extent(launch?.block ?? [])}`,
      `steps ${first} to ${first + count} of ${header.total ?? count}`
    ];
    if (header.truncated) facts.push(`the recording ends at its limit of ${header.truncated}`);
    if (header.fault) facts.push(`ended by a fault: ${header.fault.message}`);
    return el(
      "header",
      {class: "head"},
      el("h2", {}, header.title || header.name || header.kernel || "Replay"),
      el("p", {}, facts.join(" · "))
    );
  }

  bar() {
    this.buttons = {};
    const pairs = UNITS.map(([unit, key, title]) => {
      const button = (by, text) =>
        (this.buttons[`${unit}${by}`] = this.stepButton(unit, key, title, by, text));
      return el(
        "div",
        {class: "pair", role: "group", "aria-label": unit},
        button(-1, "◀"),
        el("span", {}, unit),
        button(1, "▶")
      );
    });
    this.ways = el("input", {
      type: "number",
      min: 1,
      max: 32,
      ".value": 2,
      class: "ways",
      "aria-label": "Conflicts of at least this many ways",
      change: () => this.update()
    });
    this.warpChoice = el(
      "select",
      {"aria-label": "Warp", change: () => this.chooseWarp(Number(this.warpChoice.value))},
      ...this.warpOptions()
    );
    this.place = el("span", {class: "place"});
    pairs[4].insertBefore(
      el("label", {title: "Conflicts of at least this many ways"}, "≥ ", this.ways),
      pairs[4].lastChild
    );
    const rest = el(
      "div",
      {class: "bar-rest"},
      this.warpChoice,
      this.place,
      el(
        "button",
        {
          type: "button",
          "aria-label": "Keys",
          title: "Keys (?)",
          click: () => this.help.showModal()
        },
        "?"
      )
    );
    return el(
      "div",
      {class: "bar", role: "toolbar", "aria-label": "Step"},
      el("div", {class: "bar-row"}, el("div", {class: "pairs"}, ...pairs), rest),
      this.status
    );
  }

  stepButton(unit, key, title, by, text) {
    const words =
      by > 0 ? `${title} (${key})` : `${title.replace("next", "previous")} (${key.toUpperCase()})`;
    const label = `${by > 0 ? "Next" : "Previous"} ${unit}`;
    const act = () => this.step(unit, by);
    return el("button", {type: "button", title: words, "aria-label": label, click: act}, text);
  }

  warpOptions() {
    const {recording} = this;
    return recording.header.warps.flatMap(
      (_, warp) =>
        (recording.stepsOf(warp).length ? [el("option", {value: warp}, warpText(recording, warp))]
                                        : [])
    );
  }

  helpDialog() {
    const rows = KEYS.map(
      ([keys, text]) => el(
        "tr",
        {},
        el(
          "th",
          {scope: "row"},
          ...keys.split(
                   /(, | or )/
          ).map((part) => (/^(, | or )$/.test(part) ? part : el("kbd", {}, part)))
        ),
        el("td", {}, text)
      )
    );
    const dialog = el(
      "dialog",
      {"aria-label": "Keys"},
      el("h3", {}, "Keys"),
      el("table", {}, el("tbody", {}, ...rows)),
      el(
        "p",
        {},
        "A click on a line's number runs to that line. In pictures arrow keys go from cell to cell."
      )
    );
    dialog.append(el("button", {type: "button", click: () => dialog.close()}, "Close"));
    return dialog;
  }

  // ---- going

  /**
   * Goes to step k: the state before it executes. Marked are changes since the step `before`, else
   * those of the warp's step before.
   */
  seek(k, warp = null, before = null) {
    const {recording} = this;
    this.k = Math.max(0, Math.min(Math.round(k) || 0, recording.count));
    this.warp = this.k < recording.count ? recording.warpAt(this.k) : (warp ?? this.warp);
    this.before = before ?? recording.previousOf(this.warp, this.k);
    this.wave = null;
    this.status.textContent = "";
    this.picture?.pause();
    this.update();
    this.onMove(this);
    return true;
  }

  /** From the time line: the nearest step of a warp, or any step. */
  scrub(k, warp) {
    const next = warp === null
      ? k
      : (this.recording.nextOf(warp, k) ?? this.recording.previousOf(warp, k) ?? k);
    this.seek(next, warp);
  }

  chooseWarp(warp) {
    this.scrub(this.k, warp);
  }

  step(unit, by) {
    const found = unit === "wavefront" ? this.stepWavefront(by) : this.find(unit, by);
    if (found === true) return true;
    if (found === null) {
      const whose = ["line", "instruction", "barrier"].includes(unit) ? " of this warp" : "";
      return this.say(`There is no ${by > 0 ? "later" : "earlier"} ${unit}${whose}.`);
    }
    return this.seek(found, null, unit === "line" || unit === "instruction" ? this.k : null);
  }

  find(unit, by) {
    const {steps, k, warp} = this;
    if (unit === "line") return steps.line(k, warp, by);
    if (unit === "instruction")
      return steps.instruction(k, warp, by) ??
        (by > 0 && k < this.recording.count ? this.recording.count : null);
    if (unit === "barrier") return steps.barrier(k, warp, by);
    if (unit === "conflict")
      return steps.conflict(k, Math.max(1, Number(this.ways.value) || 1), by);
    return steps.hazard(k, by);
  }

  /** The next wavefront of this access, or the first of the warp's next access. */
  stepWavefront(by) {
    const next = this.wave === null ? (by > 0 ? 0 : -1) : this.wave + by;
    if (next >= 0 && next < this.picture.count) return this.setWave(next);
    const k = this.steps.shared(this.k, this.warp, by);
    if (k === null) return null;
    this.seek(k);
    return this.setWave(by > 0 ? 0 : this.picture.count - 1);
  }

  setWave(wave) {
    this.picture.show(this.request, wave);
    this.wave = this.picture.wave;
    return true;
  }

  setLane(lane) {
    this.lane = lane;
    this.update();
    if (this.request && this.request.kind === "shared") this.picture.point(lane);
  }

  runToLine(file, line) {
    const k = file === "ptx" ? this.steps.toPtxLine(this.k, this.warp, line)
                             : this.steps.toLine(this.k, this.warp, file, line);
    if (k === null) return this.say(`Line ${line} is not executed in these steps.`);
    const isBack = k <= this.k;
    this.seek(k);
    if (isBack) this.say(`This warp does not come to line ${line} again: went back to it.`);
    return true;
  }

  showHazard(index, party = 0) {
    const k = this.steps.ofParty(this.steps.hazards[index]?.parties[party]);
    return k === null ? this.say("That access is not in this window.") : this.seek(k);
  }

  say(text) {
    this.status.textContent = text;
    return false;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    const act = this.isTaken(event) ? null : this.action(event);
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Whether a key belongs to the field or dialog that it was pressed in. */
  isTaken({key, target}) {
    const field = target.closest?.("input, select, textarea, [contenteditable], dialog");
    const isSlider = field?.type === "range";
    return isSlider ? /^(Arrow|Page|Home|End)/.test(key) : Boolean(field);
  }

  action({key, target}) {
    const unit = UNITS.find(([, letter]) => letter === key.toLowerCase());
    if (unit) return () => this.step(unit[0], key === unit[1] ? 1 : -1);
    const {count} = this.recording;
    if (key === " " && target.closest?.("button, summary, a")) return null;
    return {
      ArrowRight: () => this.step("instruction", 1),
      ArrowLeft: () => this.step("instruction", -1),
      ".": () => this.seek(Math.min(this.k + 1, count)),
      ",": () => this.seek(Math.max(this.k - 1, 0)),
      "]": () => this.besideWarp(1),
      "[": () => this.besideWarp(-1),
      " ": () => this.request?.cost > 1 && this.picture.toggle(),
      Home: () => this.seek(0),
      End: () => this.seek(count),
      "?": () => this.help.showModal(),
    }[key];
  }

  besideWarp(by) {
    const options = [...this.warpChoice.options].map((option) => Number(option.value));
    const next = options[options.indexOf(this.warp) + by];
    if (next !== undefined) this.chooseWarp(next);
  }

  // ---- showing

  update() {
    const {recording, k, warp, before} = this;
    const accesses = recording.accesses(k);
    const block = recording.header.warps[warp]?.block ?? 0;
    this.arrays = sharedArrays(recording, block);
    this.request = this.requestOf(accesses);
    this.now.show(k, warp, this.request, this.arrays);
    this.showAccess();
    this.source.show(recording.instruction(k));
    this.lanes.show(warp, k, this.lane);
    this.locals.show(warp, k, before, this.lane);
    this.registers.show(warp, k, before, this.lane);
    this.shared.show(block, k, before, accesses, this.wave);
    this.time.show(k, warp);
    this.showBar();
  }

  /** The access to draw: the one to shared memory, else that to global memory. */
  requestOf(accesses) {
    const access = accesses.find((one) => this.recording.isShared(one.index)) ??
      accesses.find((one) => one.cost > 0) ?? null;
    if (!access) return null;
    const isShared = access.kind === "shared";
    const array = isShared ? null : arrayOf(this.recording, access);
    return {
      ...access,
      array,
      name: (address) => (isShared ? elementName(this.arrays, address) : globalName(array, address))
    };
  }

  showAccess() {
    const isShared = this.request?.kind === "shared";
    this.pictures.hidden = !isShared;
    this.sectors.hidden = !this.request || isShared;
    this.picture.show(isShared ? this.request : null, this.wave);
    this.sectorPicture.show(isShared ? null : this.request);
  }

  showBar() {
    const {recording, k} = this;
    const at = k < recording.count ? this.steps.place(k) : "the end";
    this.place.textContent =
      `step ${recording.first + k} of ${recording.first + recording.count} · ${at}`;
    this.warpChoice.value = this.warp;
    for (const card of this.root.querySelectorAll(".card[data-k]"))
      card.classList.toggle("shown", Number(card.dataset.k) === k);
    for (const [unit] of UNITS.slice(2)) {
      for (const by of [-1, 1])
        this.buttons[`${unit}${by}`].setAttribute("aria-disabled", this.isLast(unit, by));
    }
  }

  isLast(unit, by) {
    if (unit === "wavefront")
      return !(this.request?.kind === "shared") &&
        this.steps.shared(this.k, this.warp, by) === null;
    return this.find(unit, by) === null;
  }

}

/** "x[3][0]" of an address in an argument array. */
function globalName(array, address) {
  if (!array) return null;
  const at = address % 2 ** 40;
  const name = array.name ?? "argument";
  const {shape, strides, offset = 0} = array;
  if (!shape || !strides || strides.length !== 2) {
    const size = strides?.at(-1) || array.bytes / shape?.[0] || 4;
    return `${name}[${Math.floor((at - offset) / size)}]`;
  }
  const row = Math.floor((at - offset) / strides[0]);
  return `${name}[${row}][${Math.floor((at - offset - row * strides[0]) / strides[1])}]`;
}
