// What happens at a step, in words: who does what, what it costs and why, and the hazards there.

import {el, lanesText, many} from "./dom.js";
import {warpText} from "./lanes.js";
import {lanesOf} from "./recording.js";
import {fullOpcode} from "./values.js";

export class NowView {
  /**
   * @param {HTMLElement} now   for what happens
   * @param {HTMLElement} why   for why it costs what it costs
   * @param {import("./steps.js").Steps} steps
   * @param {(index: number, party: number) => void} showHazard
   */
  constructor(now, why, steps, showHazard) {
    Object.assign(this, {now, why, steps, showHazard, recording: steps.recording});
  }

  /** `request`: the access of step k that is drawn. `arrays`: those in its block's shared memory. */
  show(k, warp, request, arrays) {
    Object.assign(this, {k, warp, request, arrays});
    const {recording} = this;
    const instruction = recording.instruction(k);
    if (!instruction) {
      this.now.replaceChildren(
        el("h3", {}, "The end of the recording"), el("p", {}, "Step backwards from here.")
      );
      this.why.replaceChildren();
      return;
    }
    const numbers = this.request ? this.numbers(this.request) : null;
    const head = el(
      "div",
      {},
      el("h3", {}, this.title(instruction)),
      el("p", {class: "ptx"}, el("code", {}, instruction.text))
    );
    const texts = this.sentences().map((text) => el("p", {}, text));
    this.now.replaceChildren(
      el("div", {class: "now-head"}, head, ...(numbers ? [numbers] : [])),
      ...texts,
      ...this.hazardsHere()
    );
    this.showWhy(recording.accesses(k));
  }

  /** The words of the recording on this access, and the layout without its conflict. */
  showWhy(accesses) {
    const {explanations} = this.recording.header;
    const texts = accesses.flatMap(
                            ({words}) => (words === null ? [] : [explanations[words]?.text])
    ).filter(Boolean);
    const cure = this.cure();
    const cured = cure ? [el("p", {class: "cure"}, el("b", {}, "What would cure it: "), cure)] : [];
    this.why.replaceChildren(...texts.map((text) => el("p", {}, text)), ...cured);
  }

  /** The hazards that this step is an access of, with buttons to their other accesses. */
  hazardsHere() {
    const {steps, k} = this;
    return steps.hazards.flatMap((hazard, index) => {
      if (!hazard.parties.some((party) => steps.ofParty(party) === k)) return [];
      const buttons = hazard.parties.flatMap((party, i) => {
        const other = steps.ofParty(party);
        if (other === null || other === k) return [];
        const text = `${other < k ? "Back" : "On"} to the ${steps.noun(other)}`;
        const go = {type: "button", click: () => this.showHazard(index, i)};
        return [el("button", go, `${text} (${steps.place(other)})`)];
      });
      const message = hazard.message ?? hazard.kind;
      return [el("p", {class: "hazard"}, el("b", {}, "Hazard: "), message, " ", ...buttons)];
    });
  }

  title(instruction) {
    const who = warpText(this.recording, this.warp);
    const what = this.request ? this.verb(this.request) : this.eventVerb() ?? plain(instruction);
    return `${who[0].toUpperCase()}${who.slice(1)} ${what}`;
  }

  verb({operation, kind, active, width, array}) {
    const acts = {
      ...{
        load: "reads",
        ldmatrix: "reads",
        texture: "reads a texture in",
        matrix_read: "multiplies matrices in"
      },
      ...{
        store: "writes",
        stmatrix: "writes",
        store_async: "writes (asynchronously)",
        atomic: "updates"
      },
      ...{
        copy_async_read: "copies (asynchronously) from",
        copy_async_write: "copies (asynchronously) to"
      },
      ...{bulk_read: "copies in bulk from", bulk_write: "copies in bulk to"},
    };
    const unit = /bulk|matrix_read/.test(operation) ? "chunk" : "lane";
    const where = kind === "shared" ? "shared memory"
      : array?.name                 ? `global memory, ${array.name}`
                                    : "global memory";
    const count = lanesOf(active).length;
    const verb = acts[operation] ?? operation.replaceAll("_", " ");
    return `${verb} ${where}: ${many(count, unit)}, ${many(width, "byte")} each`;
  }

  eventVerb() {
    const [event] = this.recording.events(this.k);
    if (!event) return null;
    if (event.kind === "barrier_arrive") return `arrives at barrier ${event.object}`;
    if (event.kind === "exit") return "ends";
    return event.kind.replaceAll("_", " ");
  }

  /** The cost in large numbers. */
  numbers({kind, cost, ideal}) {
    const unit = kind === "shared" ? "wavefront" : "sector";
    const isBad = cost > ideal;
    const big = (value, text, name) =>
      el("div", {class: `number ${name}`}, el("b", {}, `${value}`), el("span", {}, text));
    return el(
      "div",
      {class: "numbers"},
      big(cost, `${unit}${cost === 1 ? "" : "s"}`, isBad ? "bad" : "good"),
      big(ideal, "the fewest possible", ""),
      isBad ? big(`×${Number((cost / ideal).toFixed(1))}`, "times the fewest", "bad") : null
    );
  }

  sentences() {
    const found = [];
    for (const event of this.recording.events(this.k)) {
      if (event.kind === "barrier_complete")
        found.push("The last warp has arrived: all warps of the block may go on.");
      if (event.kind === "barrier_arrive" && !(event.flags & 1))
        found.push("It waits until the other warps of the block are there.");
    }
    const executed = this.recording.columns.step_executed[this.k];
    const active = this.recording.columns.step_active[this.k];
    if (executed !== active) {
      const some = executed ? lanesText(lanesOf(executed)) : "no lane";
      found.push(`Only ${some} execute it; the guard of the others is false.`);
    }
    return found;
  }

  /** The layout that would be free of this conflict, from the recording. */
  cure() {
    const {request} = this;
    if (!request || request.kind !== "shared" || request.cost <= request.ideal) return null;
    const {explanations, shared} = this.recording.header;
    const known = request.words === null ? null : explanations[request.words]?.array;
    const array = known === null || known === undefined
      ? this.arrays.find(({offset, bytes}) => contains(offset, bytes, request))
      : shared[known];
    return array?.layout ?? null;
  }
}

function contains(offset, bytes, {addresses, active}) {
  const address = addresses[lanesOf(active)[0]];
  return address >= offset && address < offset + bytes;
}

function plain(instruction) {
  const opcode = fullOpcode(instruction);
  const root = opcode.split(".")[0];
  const words = {
    bra: "branches",
    ret: "ends",
    mov: "copies a value",
    cvt: "converts a value",
    setp: "compares",
    ld: "loads",
    st: "stores",
    cvta: "converts an address",
    bar: "synchronises"
  };
  return words[root] ?? `computes: ${opcode}`;
}
