// The exercise path: small tasks, checked by values, counts and hazards. docs/lab/exercises/ has one
// folder per task; progress is kept in the browser where that allows it.
import { button, h, number, prose } from "./dom.js";
import { Workbench } from "./workbench.js";
import { measures } from "./counts.js";
import { workerLaunch } from "./launch.js";
import { lengthOf } from "./values.js";
import { remember, remembered } from "./memory.js";

const plain = (source) => source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "").replace(/\s+/g, "");

const MEASURES = {
  hazards: "hazards",
  shared_wavefronts: "wavefronts of shared memory",
  shared_requests: "requests to shared memory",
  conflict_factor: "conflict factor of the worst line",
  shared_bytes: "bytes of shared memory per block",
  warp_instructions: "warp instructions",
  barriers: "barrier arrivals",
  global_requests: "requests to global memory",
  global_sectors: "sectors of global memory",
  global_load_requests: "loads from global memory",
};

const launchOf = (exercise, of = "") => ({
  grid: exercise[`${of}grid`] ?? exercise.grid,
  block: exercise[`${of}block`] ?? exercise.block,
  shared_bytes: of ? (exercise.reference_shared_bytes ?? 0) : exercise.shared_bytes,
  arguments: exercise.arguments,
});

function bounds({ at_most: most, at_least: least }) {
  if (most === 0) return "none";
  if (most === least) return `exactly ${number(most)}`;
  if (least === undefined) return `at most ${number(most)}`;
  return most === undefined ? `at least ${number(least)}` : `${number(least)} to ${number(most)}`;
}

/** How a limit stands: {ok, text}. */
export function judged(limit, { source, found, values }) {
  if (limit.keep) {
    const ok = plain(source).includes(plain(limit.keep));
    return { ok, text: ["the source ", ok ? "has " : "should keep ", h("code", {}, limit.keep)] };
  }
  if (limit.forbid) {
    const ok = !plain(source).includes(plain(limit.forbid));
    return { ok, text: ["the source ", ok ? "does without " : "should do without ", h("code", {}, limit.forbid)] };
  }
  if (limit.measure === "values") return { ok: values.ok, text: [values.text] };
  const value = found[limit.measure];
  const ok = value <= (limit.at_most ?? Infinity) && value >= (limit.at_least ?? -Infinity);
  const shown = Number.isInteger(value) ? number(value) : value.toFixed(2);
  const name = MEASURES[limit.measure] ?? limit.measure;
  return { ok, text: [ok ? `${name}: ${shown} (${bounds(limit)})` : `${name}: ${shown}, should be ${bounds(limit)}`] };
}

/** Where arrays first differ from the reference, in words. */
function comparedValues(args, arrays, expected) {
  const named = args.filter((argument) => argument.shape);
  for (const [index, argument] of named.entries()) {
    const [own, right] = [arrays[index], expected[index]];
    const at = own.findIndex((byte, i) => byte !== right[i]);
    if (at < 0) continue;
    const element = Math.floor(at / (own.length / lengthOf(argument)));
    const place = [];
    let rest = element;
    for (const length of [...argument.shape].reverse()) {
      place.unshift(rest % length);
      rest = Math.floor(rest / length);
    }
    return { ok: false, text: `wrong values: ${argument.name}[${place.join("][")}] is the first that differs` };
  }
  return { ok: true, text: "right values" };
}

export class Exercises {
  constructor({ engine, list }) {
    Object.assign(this, { engine, list });
    this.done = remembered("exercises", {});
    this.summary = h("summary", {});
    this.path = h("ol", { class: "path" });
    this.pane = h("div", { class: "exercise" });
    this.element = h(
      "section",
      { class: "exercises" },
      h("h2", {}, "Exercises"),
      h("p", {}, `${list.length} small tasks, from reading counts to curing races. The emulator checks values, counts and hazards. Progress stays in this browser.`),
      h("details", { open: innerWidth > 700 }, this.summary, this.path),
      this.pane,
    );
    this.#drawPath();
  }

  #drawPath() {
    const solved = this.list.filter((exercise) => this.done[exercise.name]?.solved).length;
    this.summary.textContent = `All exercises: ${solved} of ${this.list.length} solved`;
    this.path.replaceChildren(
      ...this.list.map((exercise, index) => {
        const solved = this.done[exercise.name]?.solved;
        const attributes = { href: `#exercises/${index + 1}`, "aria-current": String(this.current === exercise), class: solved ? "solved" : "" };
        return h("li", {}, h("a", attributes, h("span", { class: "sign" }, solved ? "✓" : index + 1), exercise.title, solved ? h("span", { class: "dim" }, " solved") : null));
      }),
    );
  }

  /** Shows an exercise by number, from 1; "" shows the first that is not solved. */
  show(number) {
    const open = this.list.findIndex((one) => !this.done[one.name]?.solved);
    const index = number === "" ? Math.max(0, open) : Number(number) - 1;
    const exercise = this.list[index];
    if (!exercise) return this.pane.replaceChildren(h("div", { class: "error", role: "alert" }, `There is no exercise ${number}.`));
    if (exercise === this.current) return;
    this.current = exercise;
    this.#drawPath();
    this.#draw(exercise, index);
  }

  #draw(exercise, index) {
    this.bench = new Workbench({ engine: this.engine, rows: 22, share: true, launch: false });
    this.#start(exercise, this.done[exercise.name]?.source ?? exercise.start);
    this.verdict = h("div", { "aria-live": "polite" });
    this.hints = h("ol", { class: "hints" });
    this.more = button("A hint", () => this.#hint(exercise));
    this.answers = (exercise.questions ?? []).map((question) => ({ question, field: h("input", { class: "short", inputmode: "numeric", "aria-label": question.text }) }));
    this.bench.status.after(this.verdict, this.hints);
    this.bench.runButton.classList.remove("primary");
    this.bench.runButton.before(button("Check", () => this.check(), { class: "primary" }));
    this.bench.shareButton.after(this.more, button("Start over", () => this.#start(exercise, exercise.start)));
    this.pane.replaceChildren(
      h("h3", {}, `${index + 1}. ${exercise.title}`),
      ...exercise.text.map((text) => h("p", {}, ...prose(text))),
      h("p", {}, "It is solved when:"),
      h("ul", { class: "limits" }, exercise.limits.map((limit) => h("li", {}, ...aim(limit)))),
      ...this.answers.map(({ question, field }) => h("p", { class: "question" }, h("label", {}, ...prose(question.text), " ", field))),
      this.bench.element,
    );
    this.bench.run();
  }

  #start(exercise, source) {
    this.bench.show({ source, kernel: exercise.kernel, launch: launchOf(exercise) });
  }

  #hint(exercise) {
    const shown = this.hints.children.length;
    if (shown < exercise.hints.length) this.hints.append(h("li", {}, ...prose(exercise.hints[shown])));
    else this.hints.append(h("li", {}, "One solution:", h("pre", {}, exercise.solution)));
    this.more.textContent = shown + 1 < exercise.hints.length ? "Another hint" : "Show a solution";
    this.more.hidden = shown >= exercise.hints.length;
  }

  /** The arrays that reference.cu makes. */
  async #expected(exercise) {
    const { ptx } = await this.engine.call("compile", { source: exercise.reference });
    const launch = workerLaunch(launchOf(exercise, "reference_"), exercise.kernel);
    const { arrays } = await this.engine.call("run", { ptx, launch, options: { hazards: false } });
    return arrays;
  }

  /** Runs and judges; returns whether the exercise is solved. */
  async check() {
    const exercise = this.current;
    this.verdict.replaceChildren(h("p", { class: "dim" }, "checking …"));
    const result = await this.bench.run();
    if (!result) {
      this.verdict.replaceChildren(h("p", { class: "verdict bad" }, "✖ It did not run; see below."));
      return false;
    }
    try {
      const rows = await this.#judge(exercise, result);
      return this.#tell(exercise, rows);
    } catch (error) {
      this.verdict.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
      return false;
    }
  }

  async #judge(exercise, { trace, arrays }) {
    const source = this.bench.source.text;
    const expected = await this.#expected(exercise);
    const values = arrays
      ? comparedValues(exercise.arguments, arrays, expected)
      : { ok: false, text: "no values: a fault ended the run" };
    const found = measures(trace);
    const rows = exercise.limits.map((limit) => ({ ...judged(limit, { source, found, values }), why: limit.why }));
    for (const { question, field } of this.answers) rows.push(answered(question, field.value));
    return rows;
  }

  #tell(exercise, rows) {
    const solved = rows.every((row) => row.ok);
    const index = this.list.indexOf(exercise);
    this.verdict.replaceChildren(
      h(
        "ul",
        { class: "checks" },
        rows.map((row) =>
          h("li", { class: row.ok ? "good" : "bad" }, h("span", { class: "sign" }, row.ok ? "✓" : "✖"), ...row.text, row.ok || !row.why ? null : h("span", { class: "dim" }, ". ", ...prose(row.why))),
        ),
      ),
      solved ? h("p", { class: "verdict good" }, "✓ Solved. ", ...prose(exercise.learned)) : h("p", { class: "verdict bad" }, "✖ Not yet."),
      solved && this.list[index + 1] ? h("p", {}, h("a", { class: "button primary", href: `#exercises/${index + 2}` }, "Next exercise")) : "",
    );
    const before = this.done[exercise.name];
    this.done[exercise.name] = { solved: solved || Boolean(before?.solved), source: this.bench.source.text };
    if (!remember("exercises", this.done)) this.verdict.append(h("p", { class: "dim" }, "This browser keeps nothing for this page: progress lasts until it is closed."));
    this.#drawPath();
    return solved;
  }
}

function aim(limit) {
  if (limit.keep) return ["The source keeps ", h("code", {}, limit.keep), "."];
  if (limit.forbid) return ["The source does without ", h("code", {}, limit.forbid), "."];
  if (limit.measure === "values") return ["The values are right."];
  const name = MEASURES[limit.measure] ?? limit.measure;
  return [`${name[0].toUpperCase()}${name.slice(1)}: ${bounds(limit)}.`];
}

function answered(question, text) {
  const given = String(text).replaceAll(/[\s\u202f]/g, "");
  const ok = given !== "" && Number(given) === question.answer;
  return { ok, text: [...prose(question.text), ` ${given ? `${given}${ok ? "" : " is not it"}` : "no answer yet"}`] };
}
