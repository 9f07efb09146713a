// Pictures of one request of a warp: which bank serves which lane in which wavefront.
import { h, range, svg } from "./dom.js";

const LANES = 32;

/** "0-3, 7" of [0, 1, 2, 3, 7]. */
export function runs(numbers, most = 6) {
  const found = [];
  for (const n of numbers) {
    const last = found.at(-1);
    if (last && last[1] === n - 1) last[1] = n;
    else found.push([n, n]);
  }
  const names = found.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`));
  return names.length > most ? `${names.slice(0, most).join(", ")}, …` : names.join(", ");
}

/**
 * The cells of a request: {lane, bank, span, chunk, wavefront} of each active lane.
 * @param {object} request {addresses, active, width}
 * @param {object} served the emulator's answer, with wavefrontOf
 */
function cellsOf(request, served) {
  const bytes = Math.max(request.width, 4);
  const span = bytes / 4;
  return range(LANES)
    .filter((lane) => served.wavefrontOf[lane] >= 0)
    .map((lane) => {
      const chunk = Math.floor(request.addresses[lane] / bytes);
      const bank = (chunk % (LANES / span)) * span;
      return { lane, bank, span, chunk, wavefront: served.wavefrontOf[lane] };
    });
}

/** The groups of lanes that are served one after the other: [{first, size, cells, wavefronts}]. */
export function groupsOf(request, served) {
  const size = served.groupLanes;
  const cells = cellsOf({ addresses: request.address, width: request.width }, served);
  return Array.from({ length: LANES / size }, (_, g) => {
    const own = cells.filter((cell) => Math.floor(cell.lane / size) === g);
    const first = Math.min(...own.map((cell) => cell.wavefront));
    const last = Math.max(...own.map((cell) => cell.wavefront));
    return { first: g * size, size, cells: own, start: first, wavefronts: own.length ? last - first + 1 : 0 };
  });
}

const SIZE = 20;
const LEFT = 30;
const TOP = 18;

/**
 * Banks from left to right, wavefronts downwards. Squares move to their new places when the request
 * changes, unless the visitor prefers reduced motion.
 */
export class BankPicture {
  /** @param {number} rows wavefronts that there is room for, at least */
  constructor(label, rows = 1) {
    this.rows = rows;
    this.squares = range(LANES).map((lane) =>
      svg(
        "g",
        { class: "square" },
        svg("rect", { width: SIZE - 2, height: SIZE - 2, rx: 3 }),
        svg("text", { x: SIZE / 2 - 1, y: SIZE / 2 + 3 }, String(lane)),
      ),
    );
    this.rowsOf = svg("g", {});
    this.svg = svg("svg", { role: "img", class: "banks" }, this.rowsOf, this.squares);
    this.title = svg("title", {}, label);
    this.svg.prepend(this.title);
    this.element = h("div", { class: "scroll picture", tabindex: "0", role: "group", "aria-label": label }, this.svg);
  }

  show(request, served) {
    const cells = cellsOf(request, served);
    const rows = Math.max(this.rows, served.wavefronts);
    const width = LEFT + LANES * SIZE;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${TOP + rows * SIZE + 2}`);
    this.#grid(rows);
    for (const square of this.squares) square.style.opacity = 0;
    const first = new Map(); // lanes that share a word are drawn one above the other
    for (const cell of cells) {
      const square = this.squares[cell.lane];
      const key = `${cell.wavefront}:${cell.bank}`;
      const shared = first.get(key) ?? 0;
      first.set(key, shared + 1);
      square.style.opacity = 1;
      square.style.transform = `translate(${LEFT + cell.bank * SIZE + Math.min(shared, 3) * 2}px, ${TOP + cell.wavefront * SIZE}px)`;
      square.classList.toggle("late", cell.wavefront > 0);
      square.querySelector("rect").setAttribute("width", cell.span * SIZE - 2);
    }
    this.title.textContent = said(cells, served.wavefronts);
  }

  #grid(rows) {
    const text = (x, y, what, anchor = "middle") => svg("text", { x, y, "text-anchor": anchor, class: "axis" }, String(what));
    this.rowsOf.replaceChildren(
      ...range(LANES).map((bank) => text(LEFT + bank * SIZE + SIZE / 2 - 1, 12, bank)),
      ...range(rows).map((row) => text(LEFT - 6, TOP + row * SIZE + 13, row + 1, "end")),
      ...range(rows).map((row) =>
        svg("rect", { x: LEFT - 1, y: TOP + row * SIZE - 1, width: LANES * SIZE, height: SIZE, class: "row" }),
      ),
    );
  }
}

function said(cells, rows) {
  const banks = new Set(cells.map((cell) => cell.bank)).size;
  return `${cells.length} lanes in ${banks} ${banks === 1 ? "bank" : "banks"}, ${rows} ${rows === 1 ? "wavefront" : "wavefronts"}`;
}
