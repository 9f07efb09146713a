// Records a run and shows it with the reader of smemkern/_web.
import { button, h } from "./dom.js";
import { decode } from "web/recording.js";
import { ReplayView } from "web/replay.js";

const STEPS = 50000;
const MOST_BYTES = 64 * 2 ** 20;

let shown = null; // one view at a time listens to the keyboard

/**
 * @param {object} options engine; container; job and task of worker.js; texts {ptx, sources: {file
 *   name: text}, title, arrays: [{name, dtype, shape}]}; hazard: to begin at, a row of the trace
 */
export async function showReplay({ engine, container, job, task, texts, hazard = null }) {
  shown?.destroy();
  shown = null;
  const stop = button("Stop", () => engine.stop(), { class: "small" });
  container.replaceChildren(h("p", { class: "status", role: "status" }, "recording … ", stop));
  try {
    const recording = { blocks: [hazard?.blockNumber ?? 0], steps: STEPS, maxBytes: MOST_BYTES };
    const bytes = await engine.call(job, { ...task, recording });
    const place = h("div", { class: "replay-view" });
    const close = () => {
      shown?.destroy();
      shown = null;
      container.replaceChildren();
    };
    container.replaceChildren(h("div", { class: "bar" }, h("h3", {}, "Replay"), button("Close", close, { class: "small" })), place);
    shown = new ReplayView(place, filled(decode(bytes), texts));
    if (hazard) showHazard(shown, hazard);
    container.scrollIntoView({ block: "start" });
  } catch (error) {
    container.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
  }
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

/** Goes to the later access of a hazard of the trace, if the recording has it. */
function showHazard(view, hazard) {
  const index = view.recording.header.hazards.findIndex(
    ({ kind, parties }) => kind === hazard.kind && parties[0]?.line === hazard.line,
  );
  if (index >= 0) view.showHazard(index, 0);
}
