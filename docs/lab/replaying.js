// Records a run and shows it with the reader of smemkern/_web.
import { button, h } from "./dom.js";

const STEPS = 20000;
const MOST_BYTES = 48 * 2 ** 20;

/**
 * @param {object} options engine; container; job and task of the worker; texts {ptx, source, file};
 *   hazard to begin at; blocks: linear numbers
 */
export async function showReplay({ engine, container, job, task, texts, hazard = null, blocks = null, first = 0 }) {
  const status = h("p", { class: "status", role: "status" }, "recording …");
  container.replaceChildren(status, button("Stop", () => engine.stop(), { class: "small" }));
  try {
    const recording = { blocks: blocks ?? (hazard ? blocksOf(hazard) : [0]), first, steps: STEPS, maxBytes: MOST_BYTES };
    const bytes = await engine.call(job, { ...task, recording });
    const place = h("div", { class: "replay-view" });
    container.replaceChildren(h("h3", {}, "Replay"), place, button("Close", () => container.replaceChildren(), { class: "small" }));
    status.remove();
    openReplay(place, bytes, texts, hazard);
    container.scrollIntoView({ block: "start", behavior: "smooth" });
  } catch (error) {
    container.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
  }
}

const blocksOf = (hazard) => [hazard.blockNumber ?? 0];

function openReplay(place, bytes, texts, hazard) {
  place.textContent = `recording of ${bytes.length} bytes`;
}
