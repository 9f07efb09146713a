// The variables of the source, where the kernel was compiled with debug information (-G).

import {el} from "./dom.js";
import {LANES, lanesOf} from "./recording.js";
import {format, summary, values} from "./values.js";

// By the kind and the bytes of a NumPy type.
const TYPES = {
  ...{f2: "f16", f4: "f32", f8: "f64", i1: "s8", i2: "s16", i4: "s32", i8: "s64"},
  ...{u1: "u8", u2: "u16", u4: "u32", u8: "u64", b1: "u8"},
};
const MOST_ELEMENTS = 8;  // of an array, in a row of the table

/** The variables that the warp has at k: [{name, type, texts: 32 texts}]. */
export function variables(recording, warp, k) {
  const {header} = recording;
  const step = recording.nextOf(warp, k);
  const instruction = step === null ? null : recording.instruction(step);
  const found = new Map();
  for (const local of instruction ? (header.locals ?? []) : []) {
    if (local.function !== instruction.function) continue;
    const line = instruction.ptx_line;
    for (const place of local.places) {
      const isHere = place.from < line && line < place.to;
      const texts = isHere ? textsAt(recording, warp, k, local, place) : null;
      const type = TYPES[local.dtype] ?? "bytes";
      if (texts) found.set(local.name, {name: local.name, type, texts});
    }
  }
  return [...found.values()];
}

function textsAt(recording, warp, k, local, place) {
  const type = TYPES[local.dtype] ?? "u8";
  if (place.register === null) return inFrame(recording, warp, k, local, place, type);
  const bits = recording.register(warp, place.register, k);
  if (!bits) return null;
  const {size} = recording.header.registers[place.register];
  const isLow = bits.length === 2 * LANES && !type.endsWith("64");
  const own = isLow ? bits.filter((_, i) => i % 2 === 0) : bits;
  return values(own, size === 0 ? "pred" : type);
}

/** A variable in the stack frame, which register %SPL points to. */
function inFrame(recording, warp, k, local, place, type) {
  const {header} = recording;
  const memory = header.memories.findIndex((one) => one.kind === "local" && one.warp === warp);
  const {first_register, registers} = header.functions[local.function];
  const own = header.registers.slice(first_register, first_register + registers);
  const pointer = own.findIndex(({name}) => name === "%SPL");
  if (memory < 0 || pointer < 0 || !place.symbol?.includes("depot")) return null;
  const frame = recording.register(warp, first_register + pointer, k);
  if (!frame) return null;
  const begin = frame[0] + (frame[1] % 256) * 2 ** 32 + place.offset;
  const words = recording.memory(memory, k).values;
  if ((begin + local.size) * (LANES / 4) > words.length) return null;
  return Array.from({length: LANES}, (_, lane) => elements(words, lane, begin, local, type));
}

/** The elements of one lane: word number of byte o of lane l is (o / 4) * 32 + l. */
function elements(words, lane, begin, local, type) {
  const bytes = local.dtype ? Number(local.dtype.slice(1)) : 1;
  const count = Math.floor(local.size / bytes);
  const texts = Array.from({length: Math.min(count, MOST_ELEMENTS)}, (_, i) => {
    const at = begin + i * bytes;
    const word = Math.floor(at / 4) * LANES + lane;
    if (bytes === 8) return format([words[word], words[word + LANES]], type);
    return format([words[word] >>> (8 * (at % 4))], type);
  });
  if (!local.shape.length && local.dtype) return texts[0];
  return `[${texts.join(", ")}${count > MOST_ELEMENTS ? ", …" : ""}]`;
}

export class LocalsView {
  constructor(container, recording) {
    this.recording = recording;
    this.body = el("tbody");
    this.laneHead = el("th", {scope: "col"});
    const names = ["variable", "type"].map((text) => el("th", {scope: "col"}, text));
    const head = el("tr", {}, ...names, this.laneHead, el("th", {scope: "col"}, "all lanes"));
    const table = el("table", {}, el("thead", {}, head), this.body);
    const about = {class: "register-table", tabindex: 0, role: "region", "aria-label": "Variables"};
    this.box = el("div", about, table);
    this.box.hidden = !recording.header.locals?.length;
    container.append(this.box);
  }

  show(warp, k, before, lane) {
    if (this.box.hidden) return;
    const was = before === null
      ? new Map()
      : new Map(variables(this.recording, warp, before).map((one) => [one.name, one.texts]));
    const lanes = lanesOf(this.recording.header.warps[warp].lanes);
    this.laneHead.textContent = `lane ${lane}`;
    this.body.replaceChildren(...variables(this.recording, warp, k).map(({name, type, texts}) => {
      const isChanged = before !== null && was.get(name)?.join() !== texts.join();
      const dot = isChanged ? el("span", {class: "dot", title: "changed"}, "● ") : null;
      return el(
        "tr",
        {class: isChanged ? "changed" : ""},
        el("th", {scope: "row"}, dot, name),
        el("td", {class: "type"}, type),
        el("td", {class: "value"}, texts[lane]),
        el("td", {class: "all"}, summary(texts, lanes))
      );
    }));
  }
}
