// What there is to see in a recording, with buttons that go there.

import {el, many} from "./dom.js";

const MOST_FINDINGS = 6;

/** Conflicts by line, and hazards. `go` has seek(k) and showHazard(index, party). */
export function findings(steps, go) {
  const conflicts = steps.conflictLines();
  const cards = [
    ...conflicts.slice(0, MOST_FINDINGS).map((line) => conflictCard(steps, go, line)),
    ...steps.hazards.slice(0, MOST_FINDINGS).map((hazard, i) => hazardCard(steps, go, hazard, i))
  ];
  const more = Math.max(0, conflicts.length - MOST_FINDINGS) +
    Math.max(0, steps.hazards.length - MOST_FINDINGS);
  if (more) cards.push(el("p", {class: "legend"}, `${more} more: step by conflict or hazard.`));
  if (!cards.length)
    cards.push(el("p", {class: "card good"}, "✓ No bank conflict and no hazard in these steps."));
  return el("section", {class: "findings", "aria-label": "Findings"}, ...cards);
}

function conflictCard(steps, go, {worst, count, cost, ideal}) {
  const times = count > 1 ? `; ${count} such accesses take ${cost} in place of ${ideal}` : "";
  return el(
    "div",
    {class: "card bad", "data-k": worst.k},
    el(
      "p",
      {},
      el("b", {}, `Bank conflict, ${steps.place(worst.k)}: `),
      `${many(worst.cost, "wavefront")} where ${worst.ideal} would do${times}.`
    ),
    el("button", {type: "button", click: () => go.seek(worst.k)}, "Show"),
  );
}

function hazardCard(steps, go, hazard, index) {
  const buttons = hazard.parties.map((party, i) => {
    const k = steps.ofParty(party);
    const name = `Show the ${steps.noun(k)}`;
    const where = k === null ? "not in this window" : `${steps.place(k)}, step ${party.step}`;
    const shown = {".disabled": k === null, click: () => go.showHazard(index, i)};
    return el("button", {type: "button", ...shown}, `${name} (${where})`);
  });
  const message = hazard.message ?? `${hazard.kind} hazard`;
  const found = steps.ofParty({step: hazard.found_at});
  if (found !== null && hazard.parties.every((party) => steps.ofParty(party) === null)) {
    buttons.push(el(
      "button",
      {type: "button", click: () => go.seek(found)},
      `Show where it was found (${steps.place(found)})`
    ));
  }
  return el(
    "div",
    {class: `card ${hazard.benign ? "" : "bad"}`},
    el(
      "p",
      {},
      el("b", {}, "Hazard: "),
      message,
      hazard.cure ? el("span", {class: "cure"}, ` Cure: ${hazard.cure}.`) : null
    ),
    el("div", {}, ...buttons)
  );
}
