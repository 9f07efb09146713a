// What a run found: totals, hazards in words, the table that `smemkern trace` prints, arrays.
import { button, h, many, number } from "./dom.js";
import { factorOf, hazardsOf, totals } from "./counts.js";
import { elements, lengthOf } from "./values.js";

function tile(value, label, kind = "") {
  return h("div", { class: `tile ${kind}` }, h("b", {}, value), h("span", {}, label));
}

const factorText = (factor) => `×${factor < 10 ? factor.toFixed(2) : Math.round(factor)}`;

/** The figures first. */
export function summary(trace) {
  const { sharedWavefronts, sharedIdeal, factor, globalSectors, worst } = totals(trace);
  const hazards = hazardsOf(trace).length;
  return h(
    "div",
    { class: "tiles" },
    sharedIdeal
      ? [
          tile(number(sharedWavefronts), "wavefronts of shared memory", factor > 1 ? "bad" : "good"),
          tile(number(sharedIdeal), "the fewest possible"),
          tile(worst, "wavefronts of the worst request"),
          factor > 1 ? tile(factorText(factor), "the fewest: bank conflicts", "bad") : tile("×1", "no bank conflicts", "good"),
        ]
      : tile(0, "wavefronts: shared memory was not used"),
    tile(number(globalSectors), "sectors of global memory"),
    tile(hazards, hazards === 1 ? "hazard" : "hazards", hazards ? "bad" : "good"),
  );
}

export const placeOf = (file, line) => `${file ? String(file).split("/").pop() : "PTX"}:${line}`;

/** @param {(hazard) => void} onshow shows a hazard's line */
export function hazardList(trace, onshow, onreplay) {
  const hazards = hazardsOf(trace);
  if (!hazards.length)
    return h("p", { class: "ok" }, "✓ No hazards: no race, no uninitialised read, no missing barrier in this run.");
  const items = hazards.slice(0, 50).map((hazard) =>
    h(
      "li",
      {},
      h("span", { class: "words" }, hazard.words ?? `${hazard.kind} at ${placeOf(hazard.file, hazard.line)}`),
      hazard.cure ? h("span", { class: "words cure" }, `Cure: ${hazard.cure}.`) : null,
      hazard.line ? button(`show line ${hazard.line}`, () => onshow(hazard), { class: "small" }) : null,
      onreplay && hazard.line ? button("replay", () => onreplay(hazard), { class: "small" }) : null,
    ),
  );
  const rest = hazards.length - items.length;
  return h(
    "div",
    { class: "hazards" },
    h("h3", {}, `${many(hazards.length, "hazard")}`),
    h("ol", {}, items),
    rest ? h("p", { class: "dim" }, `and ${many(rest, "more")}`) : null,
  );
}

const WIDEST = 30;

function rowsTable(caption, head, rows) {
  if (!rows.length) return null;
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell))))),
    ),
  );
}

const where = (site) =>
  [[site.file, site.line], ...(site.callers ?? [])]
    .slice(0, 3)
    .map(([file, line]) => placeOf(file, line).slice(-WIDEST))
    .join(" < ");

/** The table of `smemkern trace`. */
export function tables(trace) {
  const { shared, global } = totals(trace);
  const sharedRows = shared.map((site) => [
    where(site),
    site.access,
    site.width,
    number(site.requests),
    number(site.wavefronts),
    number(site.ideal),
    site.worst,
    factorOf([site]).toFixed(2),
  ]);
  const globalRows = global.map((site) => [
    where(site),
    site.access,
    site.width,
    number(site.requests),
    number(site.wavefronts),
    number(site.ideal),
  ]);
  const opcodes = Object.entries(trace.opcodes ?? {})
    .map(([name, { warps }]) => [name, warps])
    .sort((a, b) => b[1] - a[1])
    .slice(0, 8)
    .map(([name, warps]) => [name, number(warps)]);
  return h(
    "div",
    {},
    rowsTable(
      "Shared memory, by line",
      ["line", "access", "bytes per lane", "requests", "wavefronts", "ideal", "worst", "factor"],
      sharedRows,
    ),
    rowsTable(
      "Global memory, by line",
      ["line", "access", "bytes per lane", "requests", "sectors", "ideal"],
      globalRows,
    ),
    h(
      "p",
      { class: "dim" },
      `${many(trace.warpInstructions, "warp instruction")}, ${many(trace.barriers, "barrier arrival")}, ` +
        `${many(trace.flops, "floating-point operation")}, ${many(trace.sharedBytes, "byte")} of shared memory per block, ` +
        `${number(trace.blocks)} of ${many(trace.gridBlocks, "block")}`,
    ),
    rowsTable("Most frequent instructions", ["instruction", "warps"], opcodes),
  );
}

const SHOWN = 64;

/** The first elements of the arrays after the run. */
export function arrayList(args, arrays) {
  const named = args.filter((argument) => argument.shape);
  return h(
    "div",
    {},
    named.map((argument, index) => {
      const values = Array.from(elements(argument.type, arrays[index].slice(0, 8 * SHOWN))).slice(0, SHOWN);
      const more = lengthOf(argument) > values.length ? ", …" : "";
      return h(
        "p",
        { class: "array" },
        h("b", {}, `${argument.name}: `),
        `${argument.type}[${argument.shape.join(", ")}] = `,
        h("span", { class: "mono" }, `${values.map(shown).join(", ")}${more}`),
      );
    }),
  );
}

function shown(value) {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}
