// Where to go in a recording: lines, barriers, conflicts, hazards. Every function returns the index
// of a step, or null if there is none.

import {lowerBound} from "./recording.js";

/** The source position that a reader of the page can see: [file, line], or null. */
export function position({header}, instruction) {
  if (!instruction) return null;
  const places = [[instruction.file, instruction.line], ...(instruction.callers ?? [])];
  const shown = places.find(([file]) => file !== null && header.files[file]?.text);
  if (shown) return shown;
  return header.files[instruction.file] ? places[0] : null;
}

/** A file's name without its folders. */
export function fileName({header}, file) {
  return header.files[file].name.split("/").at(-1);
}

/** "kernel.cu:6", or the line of the PTX. */
export function placeText(recording, instruction) {
  const place = position(recording, instruction);
  return place ? `${fileName(recording, place[0])}:${place[1]}`
               : `PTX line ${instruction?.ptx_line}`;
}

/** The same as a text, to compare: without line information, the line of the PTX. */
function lineKey(recording, instruction) {
  const place = position(recording, instruction);
  return place ? place.join(":") : `ptx:${instruction?.ptx_line}`;
}

const NOUNS = {
  ...{load: "read", ldmatrix: "read", store: "write", stmatrix: "write", atomic: "update"},
  ...{copy_async_read: "copy", copy_async_write: "copy", bulk_read: "copy", bulk_write: "copy"},
};

export class Steps {
  /** @param {import("./recording.js").Recording} recording */
  constructor(recording) {
    this.recording = recording;
    this.keys = recording.header.instructions.map((one) => lineKey(recording, one));
    this.hazards = recording.header.hazards ?? [];
    this.markers = {};
  }

  key(k) {
    return this.keys[this.recording.columns.step_instruction[k]];
  }

  /** The warp's next step, or the one before. `warp` null: of any warp. */
  instruction(k, warp, by) {
    const {recording} = this;
    if (warp === null) return k + by >= 0 && k + by <= recording.count ? k + by : null;
    return by > 0 ? recording.nextOf(warp, k + 1) : recording.previousOf(warp, k);
  }

  /** The first step of the next line, or of the line before. */
  line(k, warp, by) {
    const {recording} = this;
    const here = k < recording.count && recording.warpAt(k) === warp ? this.key(k) : null;
    let next = this.instruction(k, warp, by);
    while (next !== null && this.key(next) === here) next = this.instruction(next, warp, by);
    if (next === null || by > 0) return next;
    let before = this.instruction(next, warp, -1);
    while (before !== null && this.key(before) === this.key(next)) {
      next = before;
      before = this.instruction(next, warp, -1);
    }
    return next;
  }

  /** Steps that arrive at a barrier, by warp. */
  barrier(k, warp, by) {
    const {recording} = this;
    const {event_kind} = recording.columns;
    this.markers.barriers ??= unique(
      [...event_kind.keys()].filter(
                              (i) => isBarrier(recording.header.event_kinds[event_kind[i]])
      ).map((i) => recording.eventSteps[i]),
    );
    return along(
      this.markers.barriers, k, by, (step) => recording.columns.step_warp[step] === warp
    );
  }

  /** The warp's next step with an access to shared memory. */
  shared(k, warp, by) {
    const {recording} = this;
    const {accessSteps} = recording;
    this.markers.shared ??= unique(
      [...accessSteps.keys()].filter((i) => recording.isShared(i)).map((i) => accessSteps[i])
    );
    return along(
      this.markers.shared,
      k,
      by,
      (step) => warp === null || recording.columns.step_warp[step] === warp
    );
  }

  /**
   * The next access to shared memory with at least `ways` times the fewest wavefronts, of any
   * warp.
   */
  conflict(k, ways, by) {
    const name = `conflicts ${ways}`;
    this.markers[name] ??= unique(this.recording.conflicts(ways).map((one) => one.k));
    return along(this.markers[name], k, by);
  }

  /** The next access of a hazard. */
  hazard(k, by) {
    this.markers.hazards ??=
      unique(this.hazards.flatMap(
                           (hazard) => hazard.parties.map((party) => this.ofParty(party))
      ).filter((step) => step !== null));
    return along(this.markers.hazards, k, by);
  }

  /** The index of the step of a hazard's access, or null if it is outside of the window. */
  ofParty(party) {
    if (party?.step === null || party?.step === undefined) return null;
    const k = party.step - this.recording.first;
    return k >= 0 && k < this.recording.count ? k : null;
  }

  /** The next step of the warp at a line; behind the last one, the last before. */
  toLine(k, warp, file, line) {
    return this.toKey(k, warp, `${file}:${line}`);
  }

  toPtxLine(k, warp, line) {
    const {header, columns} = this.recording;
    return this.search(
      k, warp, (step) => header.instructions[columns.step_instruction[step]].ptx_line === line
    );
  }

  toKey(k, warp, key) {
    return this.search(k, warp, (step) => this.key(step) === key);
  }

  /**
   * Forwards to a step that matches and whose predecessor does not; then backwards; then in
   * another warp.
   */
  search(k, warp, matches) {
    const steps = this.recording.stepsOf(warp);
    const starts = (i) => matches(steps[i]) && (i === 0 || !matches(steps[i - 1]));
    const found = [...steps.keys()].filter(starts).map((i) => steps[i]);
    return found.find((step) => step > k) ?? found.filter((step) => step < k).at(-1) ??
      this.inOtherWarp(k, warp, matches) ?? found[0] ?? null;
  }

  inOtherWarp(k, warp, matches) {
    const {count, columns} = this.recording;
    const suits = (step) => columns.step_warp[step] !== warp && matches(step);
    for (let step = k + 1; step < count; step++)
      if (suits(step)) return step;
    for (let step = k - 1; step >= 0; step--)
      if (suits(step)) return step;
    return null;
  }

  /** Whether a conflict costs more than another, or as much in a warp before. */
  isWorse(one, other) {
    const [a, b] = [one.cost / one.ideal, other.cost / other.ideal];
    return a > b || (a === b && this.recording.warpAt(one.k) < this.recording.warpAt(other.k));
  }

  /** Conflicts by line, the costliest first: {key, place, count, cost, ideal, worst: {k, ...}}. */
  conflictLines() {
    const {recording} = this;
    const lines = new Map();
    for (const one of recording.conflicts()) {
      const key = this.key(one.k);
      if (!lines.has(key)) {
        lines.set(key, {
          key,
          place: position(recording, recording.instruction(one.k)),
          count: 0,
          cost: 0,
          ideal: 0,
          worst: one
        });
      }
      const line = lines.get(key);
      line.count++;
      line.cost += one.cost;
      line.ideal += one.ideal;
      if (this.isWorse(one, line.worst)) line.worst = one;
    }
    return [...lines.values()].sort((a, b) => b.cost - b.ideal - (a.cost - a.ideal));
  }

  /** "kernel.cu:6" of step k. */
  place(k) {
    return placeText(this.recording, this.recording.instruction(k));
  }

  /** "read", "write": what step k does to memory. */
  noun(k) {
    const accesses = k === null ? [] : this.recording.accesses(k);
    const nouns = new Set(accesses.map(({operation}) => NOUNS[operation] ?? "access"));
    return nouns.size === 1 ? [...nouns][0] : "access";
  }
}

const isBarrier = (name) =>
  name === "barrier_arrive" || name === "mbarrier_wait" || name === "mbarrier_arrive";

const unique = (steps) => Uint32Array.from(new Set(steps)).sort();

/** The nearest of the sorted steps beyond k that suits. */
function along(steps, k, by, suits = () => true) {
  let at = lowerBound(steps, k);
  if (by > 0 && steps[at] === k) at++;
  for (let i = by > 0 ? at : at - 1; i >= 0 && i < steps.length; i += by)
    if (suits(steps[i])) return steps[i];
  return null;
}
