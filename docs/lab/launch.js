// The form of a launch: grid, block, dynamic shared memory, arguments.
import { button, h, select } from "./dom.js";
import { FILLS, bytesOf, check, isInteger, itemBytes, typeNames } from "./values.js";

const LIMITS = { grid: [2 ** 31 - 1, 65535, 65535], block: [1024, 1024, 64] };

const FILL_NAMES = { constant: "one value", range: "0, 1, 2, …", random: "random", data: "as given" };

/** "32, 8" as [32, 8, 1]. Throws an Error that says what is expected. */
export function extent(text, name) {
  const parts = String(text)
    .split(/[,x×\s]+/)
    .filter(Boolean)
    .map(Number);
  const right = parts.length >= 1 && parts.length <= 3;
  if (!right || !parts.every((n, axis) => Number.isInteger(n) && n >= 1 && n <= LIMITS[name][axis]))
    throw Error(`${name}: expected one to three positive integers, as in 32, 8; found “${text}”`);
  return [...parts, 1, 1].slice(0, 3);
}

const extentText = (lengths) => {
  const last = lengths.findLastIndex((n) => n !== 1);
  return lengths.slice(0, Math.max(1, last + 1)).join(", ");
};

function wholeNumber(text, name, low, high) {
  const value = Number(text);
  if (String(text).trim() === "" || !Number.isInteger(value) || value < low || value > high)
    throw Error(`${name}: expected an integer from ${low} to ${high}, found “${text}”`);
  return value;
}

export class LaunchForm {
  constructor({ onchange = () => {}, maxInstructions = 2e7 } = {}) {
    this.onchange = onchange;
    this.grid = h("input", { class: "short", value: "1", oninput: onchange });
    this.block = h("input", { class: "short", value: "32", oninput: onchange });
    this.shared = h("input", { class: "short", value: "0", inputmode: "numeric", oninput: onchange });
    this.limit = h("input", { class: "short", value: maxInstructions, inputmode: "numeric" });
    this.list = h("div", { class: "arguments" });
    this.rows = [];
    this.element = h(
      "fieldset",
      { class: "launch" },
      h("legend", {}, "Launch"),
      h(
        "div",
        { class: "fields" },
        h("label", {}, "grid (blocks) ", this.grid),
        h("label", {}, "block (threads) ", this.block),
        h("label", {}, "dynamic shared bytes ", this.shared),
        h("label", {}, "stop after warp instructions ", this.limit),
      ),
      this.list,
      h("p", {}, button("Add an argument", () => this.#add({ name: this.#freeName(), type: "float32", shape: [1024], fill: "constant", value: 0 }), { class: "small" })),
    );
  }

  #freeName() {
    const names = new Set(this.rows.map((row) => row.name.value));
    return [..."xyzabcdefgh"].find((name) => !names.has(name)) ?? `argument${names.size}`;
  }

  /** Fills the form from a launch: {grid, block, shared_bytes, arguments}. */
  fill(launch) {
    this.grid.value = extentText(launch.grid);
    this.block.value = extentText(launch.block);
    this.shared.value = launch.shared_bytes ?? 0;
    this.cluster = launch.cluster;
    this.cooperative = launch.cooperative;
    this.rows = [];
    this.list.replaceChildren();
    for (const argument of launch.arguments) this.#add(argument, false);
  }

  /** The launch that the form describes. Throws an Error that names the field. */
  read() {
    const launch = {
      grid: extent(this.grid.value, "grid"),
      block: extent(this.block.value, "block"),
      shared_bytes: wholeNumber(this.shared.value, "dynamic shared bytes", 0, 232448),
      arguments: this.rows.map((row) => row.read()),
    };
    if (this.cluster) launch.cluster = this.cluster;
    if (this.cooperative) launch.cooperative = true;
    return launch;
  }

  get maxInstructions() {
    return wholeNumber(this.limit.value, "stop after warp instructions", 1, 2 ** 40);
  }

  #add(argument, tell = true) {
    const row = new ArgumentRow(argument, this.onchange, () => {
      this.rows = this.rows.filter((other) => other !== row);
      row.element.remove();
      this.onchange();
    });
    this.rows.push(row);
    this.list.append(row.element);
    if (tell) this.onchange();
  }
}

class ArgumentRow {
  constructor(argument, onchange, onremove) {
    this.data = argument.data;
    const field = (value, name, title) =>
      h("input", { class: `short ${name}`, value, "aria-label": title, title, oninput: onchange });
    this.name = field(argument.name ?? "x", "name", "name");
    this.type = select(typeNames, argument.type, onchange, { "aria-label": "type" });
    this.kind = select(
      [["array", "array"], ["scalar", "number"], ["tensor", "tensor map"]],
      argument.tensor ? "tensor" : argument.shape ? "array" : "scalar",
      () => this.#changed(onchange),
      { "aria-label": "array, number or tensor map" },
    );
    this.shape = field((argument.shape ?? [1024]).join(", "), "shape", "lengths");
    const fills = FILLS.filter((fill) => fill !== "data" || argument.fill === "data");
    this.fill = select(
      fills.map((fill) => [fill, FILL_NAMES[fill]]),
      argument.fill ?? "constant",
      () => this.#changed(onchange),
      { "aria-label": "fill" },
    );
    this.value = field(argument.value ?? 0, "value", "value");
    this.seed = field(argument.seed ?? 1, "seed", "seed of the random numbers");
    this.tensor = new TensorFields(argument.tensor ?? {}, field, onchange);
    this.low = argument.low;
    this.high = argument.high;
    this.labels = {
      shape: h("label", {}, "lengths ", this.shape),
      fill: h("label", {}, "fill ", this.fill),
      value: h("label", {}, "value ", this.value),
      seed: h("label", {}, "seed ", this.seed),
      ...this.tensor.labels,
    };
    this.element = h(
      "div",
      { class: "argument", role: "group" },
      this.name,
      this.kind,
      this.type,
      Object.values(this.labels),
      button("×", onremove, { class: "small", "aria-label": "remove this argument", title: "remove" }),
    );
    this.name.addEventListener("input", () => this.#named());
    this.#named();
    this.#changed(() => {});
  }

  /** Screen readers say which argument a field belongs to. */
  #named() {
    this.element.setAttribute("aria-label", `argument ${this.name.value}`);
  }

  #changed(onchange) {
    const array = this.kind.value !== "scalar";
    this.labels.shape.hidden = this.labels.fill.hidden = !array;
    this.labels.value.hidden = array && this.fill.value !== "constant";
    this.labels.seed.hidden = !array || this.fill.value !== "random";
    for (const label of Object.values(this.tensor.labels)) label.hidden = this.kind.value !== "tensor";
    onchange();
  }

  #number(text, name) {
    const value = Number(text);
    if (String(text).trim() === "" || Number.isNaN(value))
      throw Error(`${this.name.value}: expected ${name} to be a number, found “${text}”`);
    return value;
  }

  read() {
    const name = this.name.value.trim() || "argument";
    const type = this.type.value;
    const argument = { name, type };
    if (this.kind.value === "scalar") argument.value = this.#number(this.value.value, "the value");
    else {
      argument.shape = numbersOf(this.shape.value);
      argument.fill = this.fill.value;
      if (argument.fill === "constant") argument.value = this.#number(this.value.value, "the value");
      if (argument.fill === "data") argument.data = this.data;
      if (argument.fill === "random") {
        argument.seed = this.#number(this.seed.value, "the seed");
        argument.low = this.low ?? (isInteger(type) ? 0 : -8);
        argument.high = this.high ?? (isInteger(type) ? 99 : 8);
      }
      if (this.kind.value === "tensor") argument.tensor = this.tensor.read();
    }
    check(argument);
    return argument;
  }
}

const numbersOf = (text) => text.split(/[,x×\s]+/).filter(Boolean).map(Number);

/** The fields of a tensor map. Their values are checked with those of the argument. */
class TensorFields {
  constructor({ box = [16, 16], swizzle = null, element_strides: steps, fill = null }, field, onchange) {
    this.box = field(box.join(", "), "box", "box: lengths of one copy");
    this.steps = field(steps?.join(", ") ?? "", "steps", "element strides; empty: 1");
    const swizzles = [["", "none"], ...["32B", "64B", "128B"].map((name) => [name, name])];
    this.swizzle = select(swizzles, swizzle ?? "", onchange, { "aria-label": "swizzle" });
    this.fill = select([["", "0"], ["nan", "NaN"]], fill ?? "", onchange, { "aria-label": "value outside of the array" });
    this.labels = {
      box: h("label", {}, "box ", this.box),
      swizzle: h("label", {}, "swizzle ", this.swizzle),
      steps: h("label", {}, "element strides ", this.steps),
      outside: h("label", {}, "outside ", this.fill),
    };
  }

  read() {
    const tensor = { box: numbersOf(this.box.value) };
    if (this.swizzle.value) tensor.swizzle = this.swizzle.value;
    if (this.steps.value.trim()) tensor.element_strides = numbersOf(this.steps.value);
    if (this.fill.value) tensor.fill = this.fill.value;
    return tensor;
  }
}

/** What worker.js takes as a launch. */
export function workerLaunch(launch, entry) {
  return {
    entry,
    grid: launch.grid,
    block: launch.block,
    sharedBytes: launch.shared_bytes,
    cluster: launch.cluster,
    cooperative: launch.cooperative,
    args: launch.arguments.map((argument) => {
      const { name, type, shape } = argument;
      if (!shape) return { value: argument.value };
      const columns = shape.length > 1 ? shape.at(-1) : 0;
      const tensor = argument.tensor && { ...argument.tensor, type, shape };
      return { bytes: bytesOf(argument), name: { name, element: itemBytes(type), columns }, tensor };
    }),
  };
}

/** What a recording is told of a launch's arrays. */
export function arraysOf(launch) {
  return launch.arguments
    .filter((argument) => argument.shape)
    .map(({ name, type, shape }) => {
      const item = itemBytes(type);
      const strides = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, item));
      return { name, dtype: type, shape, strides, offset: 0 };
    });
}

const C_TYPES = {
  float: "float32",
  double: "float64",
  int: "int32",
  unsigned: "uint32",
  "unsigned int": "uint32",
  "long long": "int64",
  "unsigned long long": "uint64",
  size_t: "uint64",
  short: "int16",
  "unsigned short": "uint16",
  char: "int8",
  "signed char": "int8",
  "unsigned char": "uint8",
};

/** Arguments for the first kernel of a source: arrays of 1024 for pointers, 1024 for numbers. */
export function argumentsOf(source) {
  const plain = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, " ");
  const found = /__global__[^;{}]*?\(([^()]*)\)\s*\{/.exec(plain);
  if (!found) return [];
  return found[1]
    .split(",")
    .filter((part) => part.trim())
    .map((part) => {
      if (/\bCUtensorMap\b/.test(part)) {
        const name = /(\w+)\s*$/.exec(part)?.[1] ?? "map";
        return { name, type: "float32", shape: [64, 64], fill: "range", tensor: { box: [16, 16] } };
      }
      const pointer = part.includes("*");
      const words = part.replace(/\b(const|volatile|__restrict__)\b|\*/g, " ").trim().split(/\s+/);
      const name = words.length > 1 ? words.pop() : "x";
      const type = C_TYPES[words.join(" ")] ?? "float32";
      return pointer ? { name, type, shape: [1024], fill: "range" } : { name, type, value: 1024 };
    });
}
