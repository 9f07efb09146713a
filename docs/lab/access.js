// The access that the explorer's form describes. State is text as typed; errors name the field.
import { parseFormula } from "./formula.js";
import { LANES, Layout, pattern, requestOf } from "./layout.js";
import { range } from "./dom.js";

export const START = {
  rows: "32",
  cols: "32",
  itemsize: "4",
  pad: "0",
  swizzle: "none",
  bits: "3, 4, 3",
  op: "load",
  width: "4",
  pattern: "column",
  block: "8x4",
  request: "0",
  stride: "2",
  row: "lane / 4",
  column: "lane % 4 * 8",
  address: "lane * 8",
  lanes: "0-31",
};

const NAMES = { rows: "rows", cols: "columns", pad: "padding", request: "request", stride: "elements apart" };

const wrong = (field, message) => Object.assign(Error(message), { field });

function integer(state, name, min, max) {
  const text = state[name].trim();
  if (!/^-?\d+$/.test(text) || Number(text) < min || Number(text) > max)
    throw wrong(name, `${NAMES[name]} should be an integer from ${min} to ${max}, not “${text}”.`);
  return Number(text);
}

/** "0-7, 16" as 32 booleans. */
function lanesOf(text) {
  const active = Array(LANES).fill(false);
  const parts = text.split(",").map((part) => part.trim());
  for (const part of parts.filter(Boolean)) {
    const [, first, last] = /^(\d+)(?:\s*[-–]\s*(\d+))?$/.exec(part) ?? [];
    const end = Number(last ?? first);
    if (first === undefined || end >= LANES || Number(first) > end)
      throw wrong("lanes", `Lanes should be numbers from 0 to 31 or ranges of them, as in “0-7, 16”, not “${part}”.`);
    active.fill(true, Number(first), end + 1);
  }
  return active;
}

function bitsOf(text) {
  const three = text.split(",").map((part) => part.trim());
  const right = three.length === 3 && three.every((part) => /^\d{1,2}$/.test(part) && Number(part) <= 20);
  if (!right) throw wrong("bits", `A swizzle should be three numbers from 0 to 20, as in “3, 4, 3”, not “${text}”.`);
  return three.map(Number);
}

function layoutOf(state) {
  const named = state.swizzle === "none" ? null : state.swizzle;
  const swizzle = named === "bits" ? bitsOf(state.bits) : named;
  const size = [integer(state, "rows", 1, 256), integer(state, "cols", 1, 256)];
  return new Layout(...size, Number(state.itemsize), integer(state, "pad", 0, 128), swizzle);
}

function compiled(text, field) {
  try {
    return parseFormula(text);
  } catch (error) {
    throw wrong(field, error.message);
  }
}

function formulas(state) {
  if (state.pattern === "diagonal") return ["lane % rows", "lane % cols"];
  if (state.pattern === "custom") return [state.row, state.column];
  const step = integer(state, "stride", 0, 65536);
  return [`lane * ${step} / cols`, `lane * ${step} % cols`];
}

/** Each active lane's [row, column], from formulas. */
function pointsOf(state, layout, active, width) {
  const { rows, cols } = layout;
  const [row, column] = formulas(state);
  const [r, c] = [compiled(row, "row"), compiled(column, "column")];
  return range(LANES).map((lane) => {
    if (!active[lane]) return null;
    const point = [r({ lane, rows, cols }), c({ lane, rows, cols })];
    const last = point[1] + Math.max(1, width / layout.itemsize) - 1;
    if (point[0] < 0 || point[0] >= rows || point[1] < 0 || last >= cols)
      throw Error(
        `Lane ${lane} accesses row ${point[0]}, column ${point[1]}${last > point[1] ? ` to ${last}` : ""}; ` +
          `the tile has ${rows} rows and ${cols} columns.`,
      );
    return point;
  });
}

function byAddress(state, layout, active, width) {
  const formula = compiled(state.address, "address");
  const { rows, cols } = layout;
  const address = range(LANES).map((lane) => (active[lane] ? formula({ lane, rows, cols }) : 0));
  const bad = address.findIndex((a) => a < 0 || a % width || a > 2 ** 31);
  if (bad >= 0 && address[bad] > 2 ** 31) throw Error(`Lane ${bad} has the address ${address[bad]}, which no shared memory has.`);
  if (bad >= 0)
    throw Error(
      `Lane ${bad} has the address ${address[bad]}, which is not a multiple of ${width}, the bytes per lane.`,
    );
  return { layout, points: null, requests: null, request: { address, active, width, op: state.op } };
}

export const isMatrix = (state) => state.op.endsWith("matrix");
export const isNamed = (state) => ["row", "column", "tile"].includes(state.pattern);

/**
 * {layout, points, request, requests}: requests are those of the whole access pattern, or null.
 * Throws an Error, whose `field` names what was typed wrongly.
 */
export function accessOf(state) {
  const layout = layoutOf(state);
  const active = lanesOf(state.lanes);
  const width = isMatrix(state) ? 16 : Number(state.width);
  if (state.pattern === "address") return byAddress(state, layout, active, width);
  if (width < layout.itemsize)
    throw Error(`${width} bytes per lane are less than an element of ${layout.itemsize} bytes.`);
  if (!isNamed(state)) {
    const points = pointsOf(state, layout, active, width);
    return { layout, points, requests: null, request: requestOf(layout, points, width, state.op) };
  }
  if (isMatrix(state) && layout.rows % 8)
    throw Error(`${state.op} accesses 8 rows at a time; the tile has ${layout.rows}.`);
  const name = state.pattern === "tile" ? state.block : state.pattern;
  const requests = pattern(name, layout.rows, layout.cols, width / layout.itemsize);
  const chosen = requests[integer(state, "request", 0, requests.length - 1)];
  const points = chosen.map((point, lane) => (active[lane] ? point : null));
  return { layout, points, requests, request: requestOf(layout, points, width, state.op) };
}

/** Layouts to compare with: [pad, swizzle]. */
export function otherLayouts({ itemsize, cols }) {
  const vector = Math.max(1, 16 / itemsize);
  const row = itemsize * cols;
  return [
    [0, null],
    [1, null],
    ...(vector > 1 ? [[vector, null]] : []),
    [0, "xor"],
    ...(itemsize < 16 ? [[0, "xor:16B"]] : []),
    ...([32, 64, 128].includes(row) ? [[0, `${row}B`]] : []),
  ];
}

/** The lines of Python that compute the same. */
export function pythonOf(state, { layout, request, requests }, served) {
  const { swizzle } = layout;
  const options = [
    layout.itemsize !== 4 && `itemsize=${layout.itemsize}`,
    layout.pad && `pad=${layout.pad}`,
    swizzle && `swizzle=${Array.isArray(swizzle) ? `(${swizzle.join(", ")})` : `"${swizzle}"`}`,
  ];
  const make = `layout = banks.Layout(${[layout.rows, layout.cols, ...options.filter(Boolean)].join(", ")})\n`;
  const whole = requests && lanesOf(state.lanes).every(Boolean) && (!isMatrix(state) || state.pattern === "column");
  const code = whole ? make + byName(state, layout, request, served) : byAddresses(request);
  return `from smemkern import banks\n\n${code}`;
}

function byName(state, layout, request, served) {
  const pattern = state.pattern === "tile" ? `tile:${state.block}` : state.pattern;
  const wide = request.width === layout.itemsize ? "" : `:${request.width}B`;
  const name = isMatrix(state) ? state.op : `${state.op === "load" ? "" : "store "}${pattern}${wide}`;
  return `layout.wavefronts("${name}")[${state.request}]  # ${served.wavefronts}\nlayout.cost("${name}")`;
}

function byAddresses({ address, active, width, op }) {
  const mask = active.reduce((sum, on, lane) => sum + (on ? 2 ** lane : 0), 0);
  const of = active.every(Boolean) ? "" : `, active=0x${mask.toString(16)}`;
  return `banks.explain([${address.join(", ")}],\n    width=${width}, op="${op}"${of})`;
}
