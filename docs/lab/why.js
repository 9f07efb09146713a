// Why the line with the worst conflict costs what it costs: its worst request, drawn and in words.
import { h, range } from "./dom.js";
import { asked } from "./layout.js";
import { BankPicture } from "./picture.js";
import { placeOf } from "./results.js";
import { wordsOf } from "./words.js";

const KNOWN = ["load", "store", "ldmatrix", "stmatrix"];

/** The access with the most wavefronts beyond the fewest possible; null if there is none. */
function worstSite(trace) {
  const sites = trace.sites.filter((site) => site.shared && KNOWN.includes(site.access) && site.worstRequest);
  const excess = (site) => site.wavefronts - site.ideal;
  const worst = sites.reduce((a, b) => (a && excess(a) >= excess(b) ? a : b), null);
  return worst && excess(worst) > 0 ? worst : null;
}

function requestOfSite({ access, width, worstRequest: { addresses, active } }) {
  return {
    address: addresses.map((address) => address ?? 0),
    active: range(32).map((lane) => Boolean((active >>> lane) & 1)),
    width,
    op: access,
  };
}

/** An element for the results of a run, or "" if there is no conflict. */
export async function whyConflict(engine, trace) {
  const site = worstSite(trace);
  if (!site) return "";
  const request = requestOfSite(site);
  const [[served], words] = await Promise.all([
    engine.call("banks", { requests: [asked(request)] }),
    engine.call("explain", { requests: [asked(request)], array: site.array }),
  ]);
  const picture = new BankPicture("Banks from left to right, wavefronts downwards");
  picture.show({ addresses: request.address, width: request.width }, served);
  return h(
    "details",
    { class: "conflict", open: true },
    h("summary", {}, `Why ${placeOf(site.file, site.line)} has conflicts`),
    wordsOf(words),
    h(
      "figure",
      {},
      picture.element,
      h("figcaption", {}, "Its worst request. Across: banks. Down: wavefronts, one after the other. In the squares: lanes."),
    ),
  );
}
