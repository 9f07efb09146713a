// Records a run and shows it with the reader of smemkern/_web.
import { button, h } from "./dom.js";
import { decode } from "web/recording.js";
import { ReplayView } from "web/replay.js";

const STEPS = 50000;
const MOST_BYTES = 64 * 2 ** 20;

let shown = null; // one view at a time listens to the keyboard

/**
 * @param {object} options engine; container; job and task of worker.js; grid: of the launch; texts
 *   {ptx, sources: {file name: text}, title, arrays: [{name, dtype, shape}]}; hazard: to begin at, a
 *   row of the trace; first: the first step
 */
export async function showReplay(options) {
  const { engine, container, texts } = options;
  close(container);
  const stop = button("Stop", () => engine.stop(), { class: "small" });
  container.replaceChildren(h("p", { class: "status", role: "status" }, "recording … ", stop));
  try {
    const { recording, party } = await recorded(options);
    const place = h("div", { class: "replay-view" });
    container.replaceChildren(bar(options, recording), place);
    shown = new ReplayView(place, filled(recording, texts));
    if (party) shown.showHazard(party.index, 0);
    container.scrollIntoView({ block: "start" });
  } catch (error) {
    container.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
  }
}

function close(container) {
  shown?.destroy();
  shown = null;
  container.replaceChildren();
}

/** A recording of the window that has the hazard, if one is asked for. */
async function recorded(options) {
  const { engine, job, task, hazard = null, first = 0 } = options;
  const record = async (from) => {
    const recording = { blocks: blocksOf(options), first: from, steps: STEPS, maxBytes: MOST_BYTES };
    return decode(await engine.call(job, { ...task, recording }));
  };
  const recording = await record(first);
  const party = hazard && laterAccess(recording, hazard);
  if (!party?.step || party.step < recording.first + recording.count) return { recording, party };
  const further = await record(Math.max(0, party.step - STEPS / 2));
  return { recording: further, party: laterAccess(further, hazard) };
}

/** The blocks that take part in a hazard, else the first one. */
function blocksOf({ grid, hazard = null }) {
  if (!hazard?.block) return [0];
  const linear = ([x, y, z]) => x + grid[0] * (y + grid[1] * z);
  return [...new Set([hazard.block, hazard.other?.block ?? hazard.block].map(linear))];
}

/** Where a recording has a hazard of the trace: {index, step}; null if it has not. */
function laterAccess({ header }, hazard) {
  const index = header.hazards.findIndex(
    ({ kind, parties }) => kind === hazard.kind && parties[0]?.line === hazard.line,
  );
  if (index < 0) return null;
  const { parties, found_at: found } = header.hazards[index];
  return { index, step: parties[0].step ?? found };
}

/** Leads to the steps before and after those recorded, and away. */
function bar(options, { first, count, header }) {
  const go = (from) => () => showReplay({ ...options, hazard: null, first: from });
  const steps = `Steps ${first} to ${first + count} of ${header.total}.`;
  return h(
    "div",
    { class: "bar" },
    h("h3", {}, "Replay"),
    first > 0 ? button("Earlier steps", go(Math.max(0, first - STEPS)), { class: "small" }) : null,
    header.truncated ? button("Later steps", go(first + count), { class: "small" }) : null,
    first > 0 || header.truncated ? h("span", { class: "dim" }, steps) : null,
    button("Close", () => close(options.container), { class: "small" }),
  );
}

/** Adds to a recording what only the page knows: texts and names. */
function filled(recording, { ptx, sources, title, arrays = [] }) {
  const { header } = recording;
  header.ptx ??= ptx;
  header.title ??= title;
  for (const file of header.files) file.text ??= sources[file.name.split("/").pop()] ?? null;
  header.arrays.forEach((array, index) => Object.assign(array, arrays[index]));
  return recording;
}
