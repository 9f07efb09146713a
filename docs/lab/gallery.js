// The gallery: every shipped kernel and the deliberate mistakes, each with its shape and parameters.
import { button, h, many, select } from "./dom.js";
import { CodeView } from "./code.js";
import { byLine, sum } from "./counts.js";
import { hazardList, summary, tables } from "./results.js";
import { Stopped } from "./engine.js";
import { showReplay } from "./replaying.js";
import { arraysOf, workerLaunch } from "./launch.js";
import { whyConflict } from "./why.js";

const OPS = { transpose: "Transposes", gemm: "Matrix products", probe: "Probes of memory", mistake: "Mistakes to find" };

/** Shapes: name -> [label, smallest, largest, first]. */
const SIZES = {
  gemm: { m: ["rows of A", 1, 256, 64], n: ["columns of B", 1, 256, 64], k: ["columns of A", 1, 256, 64] },
  transpose: { rows: ["rows", 1, 512, 64], cols: ["columns", 1, 512, 64] },
  probe: { n: ["elements", 32, 65536, 4096] },
};
const SEED = 1;

const baseName = (file) => file.split("/").pop();
const plainName = (name) => name.replaceAll("_", " ");

const setText = (set) => Object.entries(set).map(([name, value]) => `${name} ${value}`).join(", ");

export class Gallery {
  /** @param {object} options engine; data: Promise of {images, sources, mistakes}; open(content) */
  constructor({ engine, data, open }) {
    Object.assign(this, { engine, open });
    this.ready = data.then(async (found) => {
      this.data = found;
      this.variants = await engine.call("variants");
      this.#list();
    });
    this.list = h("nav", { class: "cards", "aria-label": "kernels" });
    this.detail = h("div", { class: "detail-pane" });
    this.intro = h(
      "div",
      {},
      h("h2", {}, "Gallery"),
      h("p", {}, "Every kernel that smemkern ships, and mistakes that only the detector sees. Choose one; it runs at once."),
    );
    this.element = h(
      "section",
      { class: "gallery" },
      this.intro,
      this.list,
      this.detail,
    );
    this.ready.catch((error) => this.list.replaceChildren(h("div", { class: "error", role: "alert" }, error.message)));
  }

  /** All entries: {op, name, summary, row | mistake}. */
  get entries() {
    const rows = this.variants
      .filter((row) => this.#images(row).length)
      .map((row) => ({ op: row.op, name: row.name, summary: row.summary, row }));
    const mistakes = this.data.mistakes.map((mistake) => ({ op: "mistake", name: mistake.name, summary: mistake.summary, mistake }));
    return [...rows, ...mistakes];
  }

  #images(row) {
    return this.data.images.filter((image) => image.op === row.op && image.variant === row.name);
  }

  #list() {
    const card = ({ op, name, summary }) =>
      h("a", { href: `#gallery/${op}/${name}`, class: "card" }, h("b", {}, plainName(name)), h("span", {}, summary));
    const groups = Object.entries(OPS).map(([op, title]) => {
      const own = this.entries.filter((entry) => entry.op === op);
      return h("div", {}, h("h3", {}, `${title} (${own.length})`), h("div", { class: "grid" }, own.map(card)));
    });
    this.list.replaceChildren(...groups);
  }

  /** Leads from one kernel to all others. */
  #chooser(path) {
    const groups = Object.entries(OPS).map(([op, title]) => {
      const own = this.entries.filter((entry) => entry.op === op);
      const options = own.map(({ name }) => h("option", { value: `${op}/${name}`, selected: path === `${op}/${name}` }, plainName(name)));
      return h("optgroup", { label: title }, options);
    });
    const go = (event) => (location.hash = `#gallery/${event.target.value}`);
    return h(
      "div",
      { class: "bar" },
      h("a", { href: "#gallery", class: "button" }, "← All kernels"),
      h("label", {}, "kernel ", h("select", { onchange: go }, groups)),
    );
  }

  /** Shows "op/name"; nothing for "". */
  async show(path) {
    await this.ready.catch(() => {});
    if (!this.variants) return;
    this.current?.leave();
    this.intro.hidden = this.list.hidden = Boolean(path);
    if (!path) return this.detail.replaceChildren();
    const entry = this.entries.find((one) => `${one.op}/${one.name}` === path);
    if (!entry) return this.detail.replaceChildren(h("div", { class: "error", role: "alert" }, `There is no kernel ${path} here.`));
    const make = entry.mistake ? MistakePane : VariantPane;
    this.current = new make(this, entry);
    this.detail.replaceChildren(this.#chooser(path), this.current.element);
    scrollTo(0, 0);
    await this.current.run();
  }
}

/** A kernel with its controls, source and results. */
class Pane {
  constructor(gallery, entry) {
    Object.assign(this, { gallery, entry, engine: gallery.engine });
    this.code = new CodeView({ label: "source with counts", readOnly: true, rows: 26 });
    this.files = h("select", { "aria-label": "file", onchange: () => this.#showFile(this.files.value) });
    this.status = h("p", { class: "status", role: "status" });
    this.results = h("div", { class: "results" });
    this.more = h("div", {});
    this.replay = h("div", {});
    this.stop = button("Stop", () => this.engine.stop(), { hidden: true });
    this.bar = h("div", { class: "bar" }, this.stop);
    this.element = h("div", { class: "pane" });
  }

  /** Title, text and controls above the source. */
  build(title, text, controls) {
    this.element.append(
      h("h2", {}, title),
      h("p", {}, text),
      controls,
      this.status,
      this.results,
      h("label", { class: "file" }, "source ", this.files),
      this.code.element,
      this.bar,
      this.more,
      this.replay,
    );
  }

  leave() {
    clearTimeout(this.timer);
    this.left = true;
  }

  /** Runs again soon after the last of several changes. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), 150);
  }

  async run() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const slow = setTimeout(() => {
      this.status.textContent = "running …";
      this.stop.hidden = false;
    }, 300);
    try {
      if (this.busy) this.engine.stop();
      this.busy = true;
      const found = await this.measure();
      found.why = await whyConflict(this.engine, found.trace);
      if (turn === this.turn) this.busy = false;
      if (turn === this.turn && !this.left) this.#show(found);
    } catch (error) {
      if (turn === this.turn) this.busy = false;
      if (turn === this.turn && !this.left) this.#failed(error);
    } finally {
      clearTimeout(slow);
      if (turn === this.turn) this.stop.hidden = true;
    }
  }

  #failed(error) {
    this.result = null;
    this.status.textContent = error instanceof Stopped ? "Stopped." : "";
    if (error instanceof Stopped) return;
    this.results.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
  }

  #show(found) {
    const { trace, launches, why } = found;
    this.result = found;
    const launched = launches
      .map(({ entry, grid, block, sharedBytes }) => `${entry}: grid ${grid.join(" x ")}, block ${block.join(" x ")}, ${many(sharedBytes ?? 0, "dynamic shared byte")}`)
      .join("; ");
    this.status.textContent = `${launched}.`;
    this.lines = byLine(trace);
    this.#listFiles();
    this.results.replaceChildren(
      summary(trace),
      hazardList(trace, (hazard) => this.#showHazard(hazard), (hazard) => this.showReplay(hazard)),
    );
    const all = h("details", {}, h("summary", {}, "All counts, as smemkern trace prints them"), tables(trace));
    this.more.replaceChildren(why, all);
  }

  #listFiles() {
    const own = this.mainFile;
    const names = [...new Set([own, ...[...this.lines.keys()].map(baseName)])].filter((name) => this.textOf(name) !== undefined);
    const kept = names.includes(this.files.value) ? this.files.value : this.#busiest(names);
    this.files.replaceChildren(...names.map((name) => h("option", { selected: name === kept }, name)));
    this.#showFile(kept);
  }

  /** The main file, unless all that it does is call code of headers: then that which does most. */
  #busiest(names) {
    const costs = new Map(names.map((name) => [name, 0]));
    for (const [file, lines] of this.lines)
      for (const { inlined, shared, global } of lines.values())
        if (!inlined && costs.has(baseName(file)))
          costs.set(baseName(file), costs.get(baseName(file)) + sum([...shared, ...global], "wavefronts"));
    const most = [...costs].reduce((a, b) => (b[1] > a[1] ? b : a));
    return costs.get(this.mainFile) ? this.mainFile : most[0];
  }

  textOf(name) {
    return this.gallery.data.sources[name];
  }

  #showFile(name) {
    this.code.show(this.textOf(name) ?? "");
    const found = [...this.lines].find(([file]) => baseName(file) === name);
    this.code.showCounts(found?.[1]);
    const first = found && Math.min(...found[1].keys());
    if (first) this.code.reveal(first);
  }

  #showHazard(hazard) {
    const name = baseName(String(hazard.file));
    if (this.textOf(name) === undefined) return;
    this.files.value = name;
    this.#showFile(name);
    if (hazard.other?.line && hazard.other.file === hazard.file) this.code.mark(hazard.other.line, "look");
    this.code.mark(hazard.line, "hazard");
    this.code.element.scrollIntoView({ block: "nearest" });
  }

  showReplay(hazard = null) {
    if (!this.result) return null;
    const { grid } = this.result.launches[0];
    return showReplay({ engine: this.engine, container: this.replay, grid, ...this.recording(), hazard });
  }
}

class VariantPane extends Pane {
  constructor(gallery, entry) {
    super(gallery, entry);
    const { row } = entry;
    this.images = gallery.data.images.filter((image) => image.op === row.op && image.variant === row.name);
    this.mainFile = `${row.op}_${row.name}.cu`;
    this.runtime = {};
    this.chosen = { dtype: this.images[0].dtype, params: { ...this.images[0].params } };
    this.sizes = Object.fromEntries(Object.entries(SIZES[row.op]).map(([name, [, , , first]]) => [name, first]));
    this.controls = h("fieldset", { class: "fields" });
    this.#draw();
    const differs = row.differsFrom ? ` Compare it with “${row.differsFrom}”.` : "";
    this.build(`${row.op}: ${plainName(row.name)}`, `${row.summary}.${differs}`, this.controls);
    this.bar.append(button("Replay", () => this.showReplay()));
    if (row.differsFrom) this.bar.append(h("a", { class: "button", href: `#gallery/${row.op}/${row.differsFrom}` }, `Show ${plainName(row.differsFrom)}`));
  }

  #draw() {
    const { row } = this.entry;
    const dtypes = [...new Set(this.images.map((image) => image.dtype))];
    const legend = h("legend", {}, "Shape and parameters");
    const sizes = Object.entries(SIZES[row.op]).map(([name, [label, low, high]]) => this.#slider(name, label, low, high));
    const dtype = select(dtypes, this.chosen.dtype, (event) => this.#take({ dtype: event.target.value }), { name: "dtype" });
    this.controls.replaceChildren(legend, ...sizes, h("label", {}, "type ", dtype), ...row.params.map((param) => this.#param(param)));
  }

  #slider(name, label, low, high) {
    const value = this.sizes[name];
    const out = h("input", { type: "number", min: low, max: high, value, "aria-label": label, class: "short" });
    const slider = h("input", { type: "range", min: low, max: high, value, "aria-label": `${label}, slider`, name });
    const take = (text) => {
      const number = Number(text);
      if (!Number.isInteger(number) || number < low || number > high) return void out.setAttribute("aria-invalid", "true");
      out.removeAttribute("aria-invalid");
      out.value = slider.value = this.sizes[name] = number;
      this.later();
    };
    slider.oninput = () => take(slider.value);
    out.oninput = () => take(out.value);
    return h("label", { class: "slider" }, h("span", {}, label), slider, out);
  }

  /** A parameter that is compiled in, with the values of this page's images; or one of the launch. */
  #param(param) {
    if (param.runtime) return this.#runtimeParam(param);
    const own = this.images.filter((image) => image.dtype === this.chosen.dtype);
    const values = [...new Set(own.map((image) => image.params[param.name]))].sort((a, b) => a - b);
    const take = (event) => this.#take({ param: [param.name, Number(event.target.value)] });
    const attributes = { name: param.name, title: param.doc, disabled: values.length < 2 };
    const pick = select(values, this.chosen.params[param.name], take, attributes);
    return h("label", {}, `${param.name} `, pick, h("span", { class: "dim" }, ` ${param.doc}`));
  }

  #runtimeParam({ name, doc, first, last, legal, fallback }) {
    const value = this.runtime[name] ?? fallback;
    const take = (event) => {
      const wanted = Number(event.target.value);
      const right = Number.isInteger(wanted) && (legal ? legal.includes(wanted) : wanted >= first && wanted <= last);
      event.target.toggleAttribute("aria-invalid", !right);
      if (!right) return;
      this.runtime[name] = wanted;
      this.later();
    };
    const field = legal
      ? select(legal, value, take, { name, title: doc })
      : h("input", { type: "number", min: first, max: last, value, name, title: doc, class: "short", oninput: take });
    return h("label", {}, `${name} `, field, h("span", { class: "dim" }, ` ${doc}`));
  }

  /** Takes the image that has the changed value and most of the others. */
  #take({ dtype = this.chosen.dtype, param = null }) {
    const wanted = { ...this.chosen.params, ...(param ? { [param[0]]: param[1] } : {}) };
    const fits = this.images.filter((image) => image.dtype === dtype && (!param || image.params[param[0]] === param[1]));
    const alike = (image) => Object.entries(wanted).filter(([name, value]) => image.params[name] === value).length;
    const best = fits.reduce((a, b) => (alike(b) > alike(a) ? b : a));
    this.chosen = { dtype, params: { ...best.params } };
    this.#draw();
    this.later();
  }

  get call() {
    const { op, name } = this.entry;
    return { op, variant: name, dtype: this.chosen.dtype, params: { ...this.chosen.params, ...this.runtime }, sizes: this.sizes };
  }

  get task() {
    const { dtype, params } = this.chosen;
    const image = this.images.find((one) => one.dtype === dtype && setText(one.params) === setText(params));
    return { ptx: image.ptx, declared: image.declared, call: this.call, seed: SEED };
  }

  async measure() {
    const { plan, trace } = await this.engine.call("runVariant", this.task);
    return { trace, launches: plan.launches };
  }

  recording() {
    const { ptx, ...task } = this.task;
    const texts = { ptx, sources: this.gallery.data.sources, title: `${task.call.op} ${task.call.variant}` };
    return { job: "recordVariant", task: { ptx, ...task }, texts };
  }
}

class MistakePane extends Pane {
  constructor(gallery, entry) {
    super(gallery, entry);
    const { mistake } = entry;
    this.mainFile = `${mistake.name}.cu`;
    this.launch = {
      grid: [mistake.grid, 1, 1],
      block: [mistake.block, 1, 1],
      shared_bytes: mistake.shared_bytes,
      arguments: [
        { name: "x", type: "float32", shape: [mistake.elements], fill: "range" },
        { name: "y", type: "float32", shape: [mistake.elements], fill: "constant", value: 0 },
        ...(mistake.takes_n ? [{ name: "n", type: "int32", value: mistake.elements }] : []),
      ],
    };
    const controls = h(
      "fieldset",
      { class: "fields" },
      h("legend", {}, "Launch"),
      this.#number("grid", "blocks", 1, 64),
      this.#number("block", "threads per block", 1, 1024),
      this.#elements(),
    );
    this.build(`Mistake: ${plainName(mistake.name)}`, `${mistake.summary}. The emulator says in words what goes wrong, and where.`, controls);
    this.bar.append(button("Replay", () => this.showReplay()));
    this.#repair();
  }

  /** Leads to the editor, if the page's compiler knows all that the source uses. */
  async #repair() {
    const { mistake } = this.entry;
    const { name: kernel, source, ptx, declared } = mistake;
    try {
      await this.engine.call("compile", { source });
      const open = () => this.gallery.open({ source, file: this.mainFile, ptx, declared, kernel, launch: this.launch });
      this.bar.append(button("Repair it in the editor", open));
    } catch {
      const why = "It uses headers that this page does not have, so it can be looked at, but not edited, here.";
      this.bar.append(h("span", { class: "dim" }, why));
    }
  }

  #field(label, value, low, high, take) {
    const field = h("input", { type: "number", min: low, max: high, value, class: "short" });
    field.oninput = () => {
      const wanted = Number(field.value);
      const right = Number.isInteger(wanted) && wanted >= low && wanted <= high;
      field.toggleAttribute("aria-invalid", !right);
      if (!right) return;
      take(wanted);
      this.later();
    };
    return h("label", {}, `${label} `, field);
  }

  #number(name, label, low, high) {
    return this.#field(label, this.launch[name][0], low, high, (value) => (this.launch[name] = [value, 1, 1]));
  }

  #elements() {
    return this.#field("elements", this.entry.mistake.elements, 1, 1 << 20, (value) => {
      for (const argument of this.launch.arguments) {
        if (argument.shape) argument.shape = [value];
        else argument.value = value;
      }
    });
  }

  get task() {
    const { mistake } = this.entry;
    return { ptx: mistake.ptx, declared: mistake.declared, launch: workerLaunch(this.launch, mistake.name) };
  }

  async measure() {
    const { trace } = await this.engine.call("run", this.task);
    const { grid, block, shared_bytes } = this.launch;
    return { trace, launches: [{ entry: this.entry.name, grid, block, sharedBytes: shared_bytes }] };
  }

  recording() {
    const { mistake } = this.entry;
    return { job: "record", task: this.task, texts: { ptx: mistake.ptx, sources: this.gallery.data.sources, title: mistake.name, arrays: arraysOf(this.launch) } };
  }
}
