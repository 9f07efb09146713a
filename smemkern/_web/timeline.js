// The time line: one row per warp, all steps from left to right. Drag to go to any step.

import {context, el, onResize, theme} from "./dom.js";
import {warpText} from "./lanes.js";

const NAMES = 66;

export class TimeLine {
  /** @param {(k: number, warp: number | null) => void} onSeek */
  constructor(container, recording, steps, onSeek) {
    this.recording = recording;
    this.steps = steps;
    this.onSeek = onSeek;
    this.window = [0, Math.max(1, recording.count)];
    this.warps =
      [...recording.header.warps.keys()].filter((warp) => recording.stepsOf(warp).length);
    this.build(container);
    this.stop = onResize(this.frame, () => this.draw());
  }

  build(container) {
    const {count} = this.recording;
    const zoom = (by) => () => this.zoom(by);
    this.canvas = el("canvas");
    this.frame = el(
      "div",
      {
        class: "time-frame",
        tabindex: 0,
        role: "slider",
        "aria-label": "Time line: steps of all warps",
        "aria-valuemin": 0,
        "aria-valuemax": count,
        keydown: (event) => this.key(event),
        pointerdown: (event) => this.press(event),
        pointermove: (event) => this.drag(event),
        pointerup: () => (this.held = false),
        pointercancel: () => (this.held = false),
      },
      this.canvas,
    );
    container.append(
      this.frame,
      el(
        "div",
        {class: "row time-row"},
        el("span", {class: "legend"}, this.legend()),
        el("button", {type: "button", "aria-label": "Show a shorter time", click: zoom(0.25)}, "+"),
        el("button", {type: "button", "aria-label": "Show a longer time", click: zoom(4)}, "−"),
      ),
    );
  }

  destroy() {
    this.stop();
  }

  legend() {
    const parts = ["One row per warp."];
    if (this.recording.conflicts().length) parts.push("Red: bank conflict.");
    parts.push("Dark: barrier.");
    if (this.steps.hazards.length) parts.push("▲ hazard.");
    return parts.join(" ");
  }

  show(k, warp) {
    this.k = k;
    this.warp = warp;
    const [from, to] = this.window;
    const length = to - from;
    if (k < from || k > to) this.place(k - length / 2, length);
    this.frame.setAttribute("aria-valuenow", k);
    this.frame.setAttribute(
      "aria-valuetext", `step ${this.recording.first + k}, ${warpText(this.recording, warp)}`
    );
    this.draw();
  }

  zoom(by) {
    const [from, to] = this.window;
    const length = Math.max(32, Math.min(this.recording.count, (to - from) * by));
    this.place(this.k - length / 2, length);
    this.draw();
  }

  place(from, length) {
    const {count} = this.recording;
    const start = Math.max(0, Math.min(from, count - length));
    this.window = [start, Math.min(Math.max(1, count), start + length)];
    this.base = null;
  }

  // ---- drawing

  draw() {
    if (!this.frame.clientWidth || this.k === undefined) return;
    const width = this.frame.clientWidth;
    const row = this.warps.length > 16 ? (this.warps.length > 48 ? 3 : 4) : 16;
    const height = this.warps.length * row + 12;
    if (!this.base || this.base.width !== width) this.base = this.paintBase(width, row, height);
    const drawing = context(this.canvas, width, height);
    drawing.drawImage(this.base.canvas, 0, 0, width, height);
    this.paintCursor(drawing, width, row, height);
  }

  x(k, width) {
    const [from, to] = this.window;
    return NAMES + ((k - from) / (to - from)) * (width - NAMES - 8);
  }

  /** All that does not move. */
  paintBase(width, row, height) {
    const canvas = document.createElement("canvas");
    const drawing = context(canvas, width, height);
    const colour = theme(this.frame);
    drawing.font = "10px ui-monospace, monospace";
    drawing.textBaseline = "middle";
    const every = Math.ceil(13 / row);
    const marks = this.marks();
    this.warps.forEach((warp, i) => {
      if (i % every === 0) {
        drawing.fillStyle = colour("dim");
        drawing.fillText(this.label(warp), 0, Math.max(5, i * row + row / 2), NAMES - 6);
      }
      this.paintWarp(drawing, colour, warp, i * row, row, width, marks);
    });
    this.paintHazards(drawing, colour, width, height);
    return {canvas, width};
  }

  label(warp) {
    const {warps, blocks} = this.recording.header;
    const {block, warp: number} = warps[warp];
    return blocks.length > 1 ? `b${blocks[block].number} w${number}` : `warp ${number}`;
  }

  /** A set of the steps with conflicts, and one of those at barriers. */
  marks() {
    if (this.known) return this.known;
    const {recording} = this;
    const {event_kind} = recording.columns;
    const conflicts = new Set(recording.conflicts().map((one) => one.k));
    const barriers = new Set();
    event_kind.forEach((kind, i) => {
      if (kind === recording.kinds.barrier_arrive) barriers.add(recording.eventSteps[i]);
    });
    return (this.known = {conflicts, barriers});
  }

  paintWarp(drawing, colour, warp, y, row, width, {conflicts, barriers}) {
    const gap = row > 6 ? 2 : row > 3 ? 1 : 0;
    const [from, to] = this.window;
    const pixels = [new Set(), new Set(), new Set()];
    for (const k of this.recording.stepsOf(warp)) {
      if (k < from || k > to) continue;
      const x = Math.floor(this.x(k, width));
      pixels[conflicts.has(k) ? 1 : barriers.has(k) ? 2 : 0].add(x);
    }
    const step = Math.max(1, Math.min(10, this.x(from + 1, width) - this.x(from, width)));
    const names = ["time-step", "bad", "fg"];
    pixels.forEach((found, kind) => {
      drawing.fillStyle = colour(names[kind]);
      const inset = kind || row < 7 ? 0 : row / 5;
      const [w, h] = [Math.max(1.5, step - (step > 3 ? 1 : 0)), row - gap - 2 * inset];
      for (const x of found) drawing.fillRect(x, y + gap / 2 + inset, w, h);
    });
  }

  paintHazards(drawing, colour, width, height) {
    drawing.fillStyle = colour("bad");
    for (const hazard of this.steps.hazards) {
      for (const party of hazard.parties) {
        const k = this.steps.ofParty(party);
        if (k === null || k < this.window[0] || k > this.window[1]) continue;
        const x = this.x(k, width);
        drawing.beginPath();
        drawing.moveTo(x, height - 11);
        drawing.lineTo(x - 5, height - 2);
        drawing.lineTo(x + 5, height - 2);
        drawing.fill();
      }
    }
  }

  paintCursor(drawing, width, row, height) {
    const colour = theme(this.frame);
    const x = this.x(this.k, width);
    const at = this.warps.indexOf(this.warp);
    drawing.strokeStyle = colour("accent");
    drawing.lineWidth = 2;
    drawing.beginPath();
    drawing.moveTo(x + 0.5, 0);
    drawing.lineTo(x + 0.5, height - 6);
    drawing.stroke();
    if (at < 0) return;
    drawing.fillStyle = colour("accent");
    drawing.beginPath();
    drawing.arc(x + 0.5, at * row + row / 2, Math.max(5, row / 3), 0, 7);
    drawing.fill();
    drawing.lineWidth = 1;
    drawing.strokeStyle = colour("bg");
    drawing.stroke();
  }

  // ---- going

  press(event) {
    this.held = true;
    this.frame.setPointerCapture(event.pointerId);
    this.drag(event);
  }

  drag(event) {
    if (!this.held) return;
    const box = this.canvas.getBoundingClientRect();
    const [from, to] = this.window;
    const part = (event.clientX - box.left - NAMES) / (box.width - NAMES - 8);
    const k = Math.round(from + Math.max(0, Math.min(1, part)) * (to - from));
    const row = (box.height - 12) / this.warps.length;
    const warp = this.warps[Math.floor((event.clientY - box.top) / row)] ?? null;
    this.onSeek(Math.min(k, this.recording.count), warp);
  }

  key(event) {
    const page = Math.max(1, Math.round((this.window[1] - this.window[0]) / 20));
    const {count} = this.recording;
    const to = {
      ArrowLeft: this.k - 1,
      ArrowRight: this.k + 1,
      PageUp: this.k - page,
      PageDown: this.k + page,
      Home: 0,
      End: count
    }[event.key];
    const up = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (to === undefined && !up) return;
    event.preventDefault();
    event.stopPropagation();
    if (!up) return this.onSeek(Math.max(0, Math.min(to, count)), null);
    const next = this.warps[this.warps.indexOf(this.warp) + up];
    if (next !== undefined) this.onSeek(this.k, next);
  }
}
