// An editor with its launch and its results. The editor's page, shared links, exercises and the
// gallery's "open in the editor" all use it.
import { button, h, many, number } from "./dom.js";
import { CodeView } from "./code.js";
import { LaunchForm, argumentsOf, arraysOf, workerLaunch } from "./launch.js";
import { arrayList, hazardList, summary, tables } from "./results.js";
import { byLine } from "./counts.js";
import { Stopped } from "./engine.js";
import { showReplay } from "./replaying.js";
import { linkOf } from "./share.js";
import { whyConflict } from "./why.js";

export const SOURCE_FILE = "kernel.cu";

/** The line that an error names: "kernel.cu:7:12: ..." or "PTX line 5: ...". */
function errorPlace(message) {
  const source = /(?:^|\s)(?:kernel\.cu|[\w.-]+\.cu):(\d+)(?::\d+)?:/.exec(message);
  if (source) return { what: "source", line: Number(source[1]) };
  const ptx = /PTX line (\d+)/.exec(message);
  return ptx ? { what: "ptx", line: Number(ptx[1]) } : null;
}

export class Workbench {
  /**
   * @param {object} options engine; rows of the editor; onrun(result) after a run; share: whether
   *   there is a button for links; launch: whether the launch may be edited
   */
  constructor({ engine, rows = 18, onrun = () => {}, share = true, launch = true }) {
    Object.assign(this, { engine, onrun, rows });
    this.state = { source: "", ptx: "", compiled: false };
    this.source = new CodeView({ label: "CUDA source", rows, onchange: (text) => this.#edited("source", text) });
    this.ptx = new CodeView({ label: "PTX", rows, onchange: (text) => this.#edited("ptx", text) });
    this.form = new LaunchForm();
    this.status = h("p", { class: "status", role: "status" });
    this.alert = h("div", {});
    this.results = h("div", { class: "results" });
    this.replay = h("div", { class: "replay" });
    this.kernel = h("select", { "aria-label": "kernel" });
    this.kernelLabel = h("label", { hidden: true }, "kernel ", this.kernel);
    this.#buttons(share);
    this.element = h(
      "div",
      { class: "workbench", onkeydown: (event) => this.#key(event) },
      this.#tabs(),
      h("div", { class: "bar" }, this.runButton, this.stopButton, this.kernelLabel, this.replayButton, this.shareButton),
      this.status,
      this.alert,
      launch ? this.#launch() : null,
      this.results,
      this.replay,
    );
  }

  #buttons(share) {
    this.runButton = button("Run", () => this.run(), { class: "primary", title: "Ctrl+Enter" });
    this.stopButton = button("Stop", () => this.engine.stop(), { hidden: true });
    this.replayButton = button("Replay", () => this.showReplay(), { disabled: true });
    this.shareButton = share ? button("Share", () => this.#share()) : null;
  }

  #launch() {
    const open = innerWidth > 700;
    const take = () => this.form.fill({ ...this.form.read(), arguments: argumentsOf(this.source.text) });
    this.form.element.append(button("Take the arguments from the source", take, { class: "small" }));
    return h("details", { class: "launching", open }, h("summary", {}, "Launch and arguments"), this.form.element);
  }

  #tabs() {
    const panes = { source: this.source.element, ptx: this.ptx.element };
    const names = { source: "CUDA", ptx: "PTX" };
    this.tabs = Object.fromEntries(
      Object.keys(panes).map((key) => [
        key,
        button(names[key], () => this.#select(key), { "aria-pressed": String(key === "source") }),
      ]),
    );
    panes.ptx.hidden = true;
    this.panes = panes;
    return h("div", {}, h("div", { class: "tabs" }, Object.values(this.tabs)), Object.values(panes));
  }

  #select(key) {
    for (const [name, pane] of Object.entries(this.panes)) {
      pane.hidden = name !== key;
      this.tabs[name].setAttribute("aria-pressed", String(name === key));
    }
  }

  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.run();
    }
  }

  /** What is typed is compiled at the next run; typed PTX is run as it is. */
  #edited(what, text) {
    this.state[what] = text;
    this.state.compiled = what === "ptx";
    if (what === "source") Object.assign(this.state, { ptx: "", file: "", declared: [] });
    this.replayButton.disabled = true;
  }

  /** Shows a kernel: {source, ptx, kernel, launch}. */
  show({ source = "", file = "", ptx = "", declared = [], kernel = null, launch }) {
    this.state = { source, file, ptx, declared, compiled: Boolean(ptx), kernel };
    this.source.show(source);
    this.ptx.show(ptx);
    this.form.fill(launch ?? { grid: [1], block: [32], arguments: argumentsOf(source) });
    this.kernelLabel.hidden = true;
    this.kernel.replaceChildren();
    this.clear();
    this.#select(source ? "source" : "ptx");
  }

  clear() {
    this.result = null;
    this.status.textContent = "";
    this.alert.replaceChildren();
    this.results.replaceChildren();
    this.replay.replaceChildren();
    this.replayButton.disabled = true;
  }

  /** What a link holds. */
  get content() {
    return {
      source: this.state.source,
      file: this.state.file,
      ptx: this.state.compiled ? this.state.ptx : "",
      kernel: this.kernel.value || this.state.kernel || null,
      launch: this.form.read(),
    };
  }

  async #compiledPtx() {
    if (!this.state.compiled) {
      const { ptx } = await this.engine.call("compile", { source: this.state.source });
      this.state.ptx = ptx;
      this.state.compiled = true;
      this.ptx.show(ptx);
    }
    return this.state.ptx;
  }

  async #entry(ptx) {
    const names = (await this.engine.call("entries", { ptx })).map((entry) => entry.name);
    if (!names.length) throw Error("there is no kernel: a __global__ function in CUDA, an .entry in PTX");
    const wanted = this.kernel.value || this.state.kernel;
    const chosen = names.includes(wanted) ? wanted : names[0];
    this.kernel.replaceChildren(...names.map((name) => h("option", { selected: name === chosen }, name)));
    this.kernelLabel.hidden = names.length < 2;
    return chosen;
  }

  /** Compiles and runs, after the run before; returns the result or null. */
  run() {
    this.last = (this.last ?? Promise.resolve()).then(() => this.#run());
    return this.last;
  }

  async #run() {
    this.clear();
    this.#busy(true);
    try {
      const launch = this.form.read();
      const ptx = await this.#compiledPtx();
      const entry = await this.#entry(ptx);
      this.task = { ptx, declared: this.state.declared ?? [], launch: workerLaunch(launch, entry) };
      this.arrays = arraysOf(launch);
      const options = { maxInstructions: this.form.maxInstructions };
      const result = await this.engine.call("run", { ...this.task, options });
      this.#found(result, launch, await whyConflict(this.engine, result.trace));
      return result;
    } catch (error) {
      this.#failed(error);
      return null;
    } finally {
      this.#busy(false);
    }
  }

  #busy(on) {
    this.running = on;
    this.stopButton.hidden = !on;
    this.runButton.disabled = on;
    clearInterval(this.clock);
    if (!on) return;
    const since = performance.now();
    let part = "";
    this.engine.onprogress = ({ done, all }) => (part = `, ${number(done)} of ${many(all, "block")} done`);
    const tell = () => {
      const seconds = (performance.now() - since) / 1000;
      this.status.textContent = seconds < 1 ? "running …" : `running for ${Math.floor(seconds)} s${part}; Stop ends it`;
    };
    tell();
    this.clock = setInterval(tell, 500);
  }

  #found(result, launch, why) {
    const { trace } = result;
    this.result = result;
    this.status.textContent = trace.incomplete
      ? "A fault ended the run; the counts are those up to it."
      : `Ran on the emulator in ${Math.max(1, Math.round(result.milliseconds))} ms.`;
    this.#showLines(trace);
    this.replayButton.disabled = false;
    this.results.replaceChildren(
      summary(trace),
      hazardList(trace, (hazard) => this.#showHazard(hazard), (hazard) => this.showReplay(hazard)),
      why,
      result.printed ? h("pre", { class: "printed" }, result.printed) : "",
      h("details", {}, h("summary", {}, "All counts, as smemkern trace prints them"), tables(trace)),
      result.arrays
        ? h("details", {}, h("summary", {}, "Arrays after the run"), arrayList(launch.arguments, result.arrays))
        : "",
    );
    this.onrun(result);
  }

  #showLines(trace) {
    const files = byLine(trace);
    const names = [...files.keys()].filter((name) => name !== "");
    const file = this.state.file || SOURCE_FILE;
    const own = names.find((name) => name.split("/").pop() === file) ?? names.find((name) => name.endsWith(".cu"));
    this.source.showCounts(files.get(own ?? names[0]));
    this.ptx.showCounts(files.get(""));
    if (!own && files.has("")) this.#select("ptx");
  }

  #showHazard(hazard) {
    const pane = hazard.file ? "source" : "ptx";
    this.#select(pane);
    if (hazard.other?.line) this[pane].mark(hazard.other.line, "look");
    this[pane].mark(hazard.line, "hazard");
    this[pane].area.scrollIntoView({ block: "nearest" });
  }

  #failed(error) {
    if (error instanceof Stopped) {
      this.status.textContent = "Stopped.";
      return;
    }
    this.status.textContent = "";
    const place = errorPlace(error.message);
    const part = "This page compiles a part of CUDA C++. PTX of nvcc runs as it is: paste it, or use smemkern share.";
    this.alert.replaceChildren(
      h("div", { class: "error", role: "alert" }, error.message),
      error.code === "compile" ? h("p", { class: "dim" }, part) : "",
    );
    if (place) {
      this.#select(place.what);
      this[place.what].mark(place.line, "error");
    }
  }

  async showReplay(hazard = null) {
    if (!this.task) return;
    await showReplay({
      engine: this.engine,
      container: this.replay,
      job: "record",
      task: this.task,
      grid: this.task.launch.grid,
      texts: {
        ptx: this.state.ptx,
        sources: { [this.state.file || SOURCE_FILE]: this.state.source },
        title: this.task.launch.entry,
        arrays: this.arrays,
      },
      hazard,
    });
  }

  async #share() {
    try {
      const link = await linkOf(this.content);
      this.alert.replaceChildren(shareBox(link));
    } catch (error) {
      this.#failed(error);
    }
  }
}

/** Shows a link, to be copied. */
function shareBox(link) {
  const field = h("input", { value: link, readonly: true, "aria-label": "link", class: "link", onfocus: () => field.select() });
  const copied = h("span", { role: "status" });
  const copy = button("Copy", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      document.execCommand("copy"); // pages from a folder may have no clipboard object
    }
    copied.textContent = "copied";
  });
  return h(
    "div",
    { class: "sharing" },
    h("p", {}, "The link holds source, PTX, launch and data; whoever opens it needs nothing installed."),
    h("div", { class: "bar" }, field, copy, copied),
    link.length > 8000
      ? h("p", { class: "dim" }, `It has ${link.length} characters; some messengers cut links over 2000. smemkern share -o writes a file.`)
      : null,
  );
}
