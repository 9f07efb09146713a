// Layouts of a tile in shared memory: where an element is stored. smemkern/_banks/layout.py computes
// the same; tests/test_explorer.py compares the two. What an access costs is the emulator's to say.
import { range } from "./dom.js";

export const LANES = 32;
export const BANKS = 32;
export const WORD = 4;
export const ROW = BANKS * WORD;

const TMA = { "32B": [1, 4, 3], "64B": [2, 4, 3], "128B": [3, 4, 3] };
const CHUNKS = ["xor", "xor:2B", "xor:4B", "xor:8B", "xor:16B"];

/** A tile; `swizzle` is null, a name, or [bits, base, shift]. Throws if it does not fit the shape. */
export class Layout {
  constructor(rows, cols, itemsize = 4, pad = 0, swizzle = null) {
    Object.assign(this, { rows, cols, itemsize, pad, swizzle, period: 0, chunk: 0, bits: null });
    this.pitch = (cols + pad) * itemsize;
    const row = cols * itemsize;
    if (Array.isArray(swizzle)) this.bits = checkedBits(swizzle, itemsize);
    else if (swizzle in TMA) this.bits = this.#tma(row);
    else if (CHUNKS.includes(swizzle)) this.#chunks(row);
    else if (swizzle !== null) throw Error(`There is no swizzle ${swizzle}.`);
    const span = this.bits ? 2 ** (this.bits[0] + this.bits[1]) : 1;
    this.bytes = Math.ceil((rows * this.pitch) / span) * span;
    this.wasted = this.bytes - rows * row;
  }

  #tma(row) {
    const bytes = parseInt(this.swizzle);
    if (row !== bytes || this.pad)
      throw Error(
        `Swizzle ${this.swizzle} needs rows of ${bytes} bytes without padding, not ${row} + ${this.pad * this.itemsize}. ` +
          `For other rows choose bits, base, shift: ${TMA[this.swizzle]}.`,
      );
    return TMA[this.swizzle];
  }

  #chunks(row) {
    this.chunk = this.swizzle === "xor" ? this.itemsize : parseInt(this.swizzle.slice(4));
    if (this.chunk < this.itemsize || row % this.chunk)
      throw Error(`Rows of ${row} bytes do not divide into ${this.chunk}-byte chunks of whole elements.`);
    const chunks = row / this.chunk;
    this.period = chunks & -chunks;
    if (this.period === 1)
      throw Error(`Swizzle ${this.swizzle} needs an even number of chunks in a row, not ${chunks}.`);
  }

  address(r, c) {
    let at = c * this.itemsize;
    if (this.period) at ^= (r % this.period) * this.chunk;
    at += r * this.pitch;
    if (this.bits) {
      const [bits, base, shift] = this.bits;
      at ^= (at >> shift) & ((2 ** bits - 1) << base);
    }
    return at;
  }

  /** The address of a vector of `width` bytes at element (r, c). Throws unless it is whole and aligned. */
  vector(r, c, width) {
    const at = this.address(r, c);
    for (let i = 0; i < width / this.itemsize; i++)
      if (at % width || this.address(r, c + i) !== at + i * this.itemsize)
        throw Error(`This layout does not keep vectors of ${width} bytes whole and aligned.`);
    return at;
  }
}

function checkedBits([bits, base, shift], itemsize) {
  const given = `Swizzle (${bits}, ${base}, ${shift})`;
  if (!(bits >= 1 && base >= 0 && shift >= bits))
    throw Error(`${given} is not a permutation: bits should be at least 1, base at least 0, and shift at least bits.`);
  if (2 ** base < itemsize) throw Error(`${given} splits elements of ${itemsize} bytes: use a larger base.`);
  return [bits, base, shift];
}

/** The requests of an access pattern over a whole tile: of each lane [row, column] or null. */
export function pattern(name, rows, cols, items) {
  if (cols % items) throw Error(`Rows of ${cols} elements do not divide into vectors of ${items}.`);
  const units = cols / items;
  const points = [];
  const put = (r, unit) => points.push(r < rows && unit < units ? [r, unit * items] : null);
  if (name === "row") for (let i = 0; i < rows * units; i++) put(Math.floor(i / units), i % units);
  else if (name === "column") for (let i = 0; i < rows * units; i++) put(i % rows, Math.floor(i / rows));
  else {
    const [a, b] = name.split("x").map(Number);
    const across = Math.ceil(units / b);
    for (let i = 0; i < Math.ceil(rows / a) * across; i++)
      for (let lane = 0; lane < LANES; lane++)
        put(Math.floor(i / across) * a + Math.floor(lane / b), (i % across) * b + (lane % b));
  }
  while (points.length % LANES) points.push(null);
  return range(points.length / LANES).map((i) => points.slice(i * LANES, (i + 1) * LANES));
}

/** The request in which each lane accesses the element of its point. */
export function requestOf(layout, points, width, op) {
  const address = points.map((point) => (point ? layout.vector(...point, width) : 0));
  return { address, active: points.map(Boolean), width, op };
}

const maskOf = (active) => active.reduce((mask, on, lane) => mask + (on ? 2 ** lane : 0), 0);

/** A request as the emulator takes it. */
export const asked = ({ address, active, width, op }) => ({
  addresses: address,
  active: maskOf(active),
  width,
  kind: op,
});
