// The first experiment: a transpose whose reads all fall into one bank, and two cures.
import { button, h, many, number, prose } from "./dom.js";
import { CodeView } from "./code.js";
import { BankPicture } from "./picture.js";
import { byLine, sum } from "./counts.js";
import { hazardList } from "./results.js";
import { arraysOf, workerLaunch } from "./launch.js";
import { showReplay } from "./replaying.js";
import { SOURCE_FILE } from "./workbench.js";
import { TilePicture } from "./tile.js";

const source = (declaration, written, read) => `__global__ void transpose(float *x, float *y) {
  __shared__ float ${declaration};
  int column = threadIdx.x;  // lane
  int row = threadIdx.y;     // warp

  ${written} = x[32 * row + column];
  __syncthreads();
  y[32 * row + column] = ${read};
}`;

export const STAGES = {
  plain: {
    name: "32 floats per row",
    cols: 32,
    source: source("tile[32][32]", "tile[row][column]", "tile[column][row]"),
  },
  padded: {
    name: "33 floats per row: padded",
    cols: 33,
    source: source("tile[32][33]", "tile[row][column]", "tile[column][row]"),
  },
  swizzled: {
    name: "32 floats per row, swizzled",
    cols: 32,
    source: source("tile[32][32]", "tile[row][column ^ row]", "tile[column][row ^ column]"),
  },
};
const READ_LINE = 8;
const CURE = "Cure it: add one unused column";

export const LAUNCH = {
  grid: [1, 1, 1],
  block: [32, 32, 1],
  shared_bytes: 0,
  arguments: [
    { name: "x", type: "float32", shape: [32, 32], fill: "range" },
    { name: "y", type: "float32", shape: [32, 32], fill: "constant", value: 0 },
  ],
};

const EXPLAINED = {
  plain:
    "The tile has 32 columns, and there are 32 banks. So one step down a column is 32 words further, which is the same " +
    "bank again: all 32 lanes want different words of one bank. The bank delivers them one after the other, in 32 " +
    "wavefronts. Writing the tile went along rows, where neighbours are in neighbouring banks: 1 wavefront.",
  padded:
    "With 33 words per row, one step down a column is 33 words further: the next bank. So the 32 lanes read from 32 " +
    "different banks, and one wavefront serves them all. The added column is never used. It costs 128 bytes, and the " +
    "answer of the kernel is the same to the last bit.",
  swizzled:
    "Element `column` of row `row` is now stored at place `column ^ row`. Each row is still a permutation of the 32 " +
    "banks, but going down a column visits a different bank in every row. The same cure as padding, and it takes no " +
    "memory. The price is one more instruction, an exclusive or.",
};

export class FirstExperiment {
  constructor({ engine, open }) {
    Object.assign(this, { engine, open });
    this.code = new CodeView({ label: "the kernel's source, with counts", readOnly: true, rows: 10, sectors: false });
    this.banksCaption = h("figcaption", {});
    this.tileCaption = h("figcaption", {});
    this.banks = new BankPicture("The read: banks from left to right, wavefronts downwards", 32);
    this.tile = new TilePicture();
    this.verdict = h("p", { class: "verdict", role: "status", "aria-live": "polite" }, "running the kernel …");
    this.history = h("div", { class: "tiles" });
    this.why = h("p", { class: "why" });
    this.next = h("div", {});
    this.cure = button(CURE, () => this.show(this.now === "plain" ? "padded" : "plain"), { class: "primary big" });
    this.choices = h(
      "div",
      { class: "choices", role: "group", "aria-label": "how the tile is stored" },
      Object.entries(STAGES).map(([key, stage]) => button(stage.name, () => this.show(key), { "data-stage": key, "aria-pressed": "false" })),
    );
    this.found = {};
    this.replay = h("div", {});
    this.element = h("section", { class: "first" }, this.#intro(), this.#halves(), this.replay);
  }

  #intro() {
    return h(
      "div",
      {},
      h("h2", {}, "Your first bank conflict"),
      h(
        "p",
        { class: "wide" },
        "A GPU runs threads in groups of 32: a warp, whose threads are its lanes. They exchange data through shared memory, which is " +
          "divided into 32 banks: word 0 (4 bytes) is in bank 0, word 1 in bank 1, …, word 32 in bank 0 again. ",
        h("b", {}, "In one step, called a wavefront, each bank delivers one word. "),
        "If lanes need different words of the same bank, some wait for further wavefronts: that is a bank conflict.",
      ),
    );
  }

  /** On a wide window two columns; on a phone one, in this order. */
  #halves() {
    return h(
      "div",
      { class: "halves" },
      this.#see(),
      h("figure", { class: "banks-figure" }, this.banksCaption, this.banks.element),
      this.#cure(),
      this.#cured(),
      h("figure", { class: "tile-figure" }, this.tileCaption, this.tile.element),
    );
  }

  #see() {
    const text =
      "This kernel transposes 32 x 32 floats: it writes rows of a tile in shared memory, then reads its columns. It has just run " +
      "in this page. Beside each line: its wavefronts, and how many times the fewest possible that is.";
    return h(
      "div",
      { class: "see" },
      h("h3", {}, "1. See it"),
      h("p", {}, ...prose(text)),
      this.code.element,
      this.verdict,
    );
  }

  #cure() {
    const dim = "Only the place of the data changes: the same loads, the same stores, the same result.";
    return h("div", { class: "cure-part" }, h("h3", {}, "2. Cure it"), this.cure, h("p", { class: "dim" }, dim));
  }

  #cured() {
    return h(
      "div",
      { class: "after" },
      this.history,
      this.choices,
      h("h3", {}, "3. What happened?"),
      this.why,
      this.next,
    );
  }

  /** Runs a stage and shows it. */
  async show(key) {
    const stage = STAGES[key];
    for (const choice of this.choices.children)
      choice.setAttribute("aria-pressed", String(choice.dataset.stage === key));
    try {
      this.found[key] ??= await this.#measure(stage);
    } catch (error) {
      this.verdict.textContent = error.message;
      return;
    }
    this.#draw(key, stage, this.found[key]);
  }

  async #measure(stage) {
    const { ptx } = await this.engine.call("compile", { source: stage.source });
    const task = { ptx, launch: workerLaunch(LAUNCH, "transpose") };
    const { trace } = await this.engine.call("run", task);
    const site = trace.sites.find((one) => one.shared && one.line === READ_LINE);
    const { addresses, active } = site.worstRequest;
    const request = { addresses: addresses.map((a) => a ?? 0), active, width: site.width, kind: site.access };
    const [served] = await this.engine.call("banks", { requests: [request] });
    return { task, trace, site, request, served };
  }

  #draw(key, stage, { trace, site, request, served }) {
    this.now = key;
    this.code.show(stage.source);
    this.code.showCounts([...byLine(trace)].find(([file]) => file.endsWith(SOURCE_FILE))?.[1]);
    const warp = `warp ${site.worstRequest.warp}`;
    this.banksCaption.textContent =
      `How line ${READ_LINE} of ${warp} is served. Across: the 32 banks. Down: wavefronts, one after the other. In the squares: lanes.`;
    this.tileCaption.textContent = `The tile in shared memory. Each word has the number and colour of its bank; framed: what ${warp} reads.`;
    this.banks.show(request, served);
    this.tile.show(request, stage.cols);
    const ways = site.worst;
    this.verdict.className = `verdict ${ways > 1 ? "bad" : "good"}`;
    this.verdict.textContent =
      ways > 1
        ? `✖ Line ${READ_LINE} reads a column. Each read of a warp takes ${ways} wavefronts where 1 would do: a ${ways}-way bank conflict. ` +
          `${many(site.requests, "warp")}, ${number(site.wavefronts)} wavefronts.`
        : `✓ Line ${READ_LINE} still reads a column, but each read of a warp takes 1 wavefront: no conflict. ` +
          `${many(site.requests, "warp")}, ${number(site.wavefronts)} wavefronts.`;
    this.cure.textContent = key === "plain" ? CURE : "Take the cure back";
    this.why.replaceChildren(...prose(EXPLAINED[key]));
    this.#compare();
    this.#offer(key, trace);
  }

  /** The stages that were tried, side by side. */
  #compare() {
    const tried = Object.keys(STAGES).filter((key) => this.found[key]);
    this.history.replaceChildren(
      ...tried.map((key) => {
        const { trace } = this.found[key];
        const wavefronts = sum(trace.sites.filter((site) => site.shared && site.line === READ_LINE), "wavefronts");
        return h(
          "div",
          { class: `tile ${wavefronts > 32 ? "bad" : "good"} ${key === this.now ? "now" : ""}` },
          h("b", {}, number(wavefronts)),
          h("span", {}, `wavefronts of line ${READ_LINE}, ${STAGES[key].name}, ${many(trace.sharedBytes, "byte")}`),
        );
      }),
    );
  }

  #offer(key, trace) {
    const cured = key !== "plain";
    const other = { padded: "swizzled", swizzled: "padded" }[key];
    const actions = [
      cured ? button(`Try the other cure: ${STAGES[other].name}`, () => this.show(other)) : null,
      button("Replay it, step by step", () => this.#replay(key)),
      button("Change it in the editor", () => this.open({ source: STAGES[key].source, launch: LAUNCH })),
      cured ? h("a", { href: "#exercises", class: "button" }, "Find one yourself: exercises") : null,
    ];
    this.next.replaceChildren(hazardList(trace, () => {}), h("div", { class: "bar" }, actions));
  }

  #replay(key) {
    const { task } = this.found[key];
    return showReplay({
      engine: this.engine,
      container: this.replay,
      job: "record",
      task,
      grid: LAUNCH.grid,
      texts: { ptx: task.ptx, sources: { [SOURCE_FILE]: STAGES[key].source }, title: `transpose, ${STAGES[key].name}`, arrays: arraysOf(LAUNCH) },
    });
  }
}
