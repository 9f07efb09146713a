// The emulator's words for a request (csrc/emu/cost/explain.h).
import { h } from "./dom.js";

/** @param {{conflict: string | null, layout: string | null}} words */
export function wordsOf({ conflict, layout }) {
  return h(
    "div",
    { class: "words" },
    h("p", {}, conflict ?? "No lane is active, so nothing is accessed."),
    layout ? h("p", {}, layout) : null,
  );
}
