// A tile in shared memory as a grid: each word in the colour of its bank, those of a request framed.
import { h, range, svg } from "./dom.js";

const SIZE = 14;
const ROWS = 32;

export class TilePicture {
  constructor() {
    this.svg = svg("svg", { role: "img", class: "tile-grid" });
    this.element = h("div", { class: "scroll picture", tabindex: "0", role: "group", "aria-label": "the tile in shared memory" }, this.svg);
  }

  /** @param {object} request its word addresses are framed; @param {number} cols words per row */
  show(request, cols) {
    const words = new Map(request.addresses.map((address, lane) => [Math.floor(address / 4), lane]));
    const cells = range(ROWS * cols).map((word) => this.#cell(word, cols, words.get(word)));
    this.svg.setAttribute("viewBox", `0 0 ${33 * SIZE + 1} ${ROWS * SIZE + 1}`);
    const banks = new Set([...words.keys()].map((word) => word % 32)).size;
    this.svg.replaceChildren(svg("title", {}, `a tile of ${ROWS} rows of ${cols} words; the read column is in ${banks} of 32 banks`), ...cells);
  }

  #cell(word, cols, lane) {
    const [row, column] = [Math.floor(word / cols), word % cols];
    const read = lane !== undefined;
    const unused = column >= 32;
    return svg(
      "g",
      { class: `${read ? "read" : ""} ${unused ? "unused" : ""}`, style: `--bank:${word % 32}` },
      svg("rect", { x: column * SIZE + 0.5, y: row * SIZE + 0.5, width: SIZE - 1, height: SIZE - 1, rx: 1.5 }),
      svg("text", { x: column * SIZE + SIZE / 2, y: row * SIZE + SIZE / 2 + 2.6 }, String(word % 32)),
    );
  }
}
