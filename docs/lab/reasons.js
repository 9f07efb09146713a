// Why a request costs what it costs, in words. The counts come from the emulator.
import { many } from "./dom.js";
import { LANES, ROW, WORD } from "./layout.js";
import { cellsOf, runs } from "./picture.js";

const gcd = (a, b) => (b ? gcd(b, a % b) : Math.abs(a));
const chunk = (width) => (width > WORD ? `chunk of ${width} bytes` : "word");
const chunks = (width) => (width > WORD ? `chunks of ${width} bytes` : "words");
const unmerged = (width) => ROW / Math.max(width, WORD); // lanes served together

/** Whether the partner of every active lane is inactive or has the same address. */
function paired({ address, active }, by) {
  return active.every((on, lane) => !on || !active[lane ^ by] || address[lane] === address[lane ^ by]);
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

function howServed({ width, op, address, active }, served, groups) {
  const size = served.groupLanes;
  const merged = size > unmerged(width);
  if (size === LANES && !merged) return "All 32 lanes are served together.";
  const so = `${many(groups.length, "group")} of ${size} lanes, one after the other`;
  if (!merged)
    return op.endsWith("matrix")
      ? `Eight rows of 16 bytes are served together: ${so}.`
      : `${width} bytes per lane: ${so}, since a wavefront moves at most ${ROW} bytes.`;
  const by = paired({ address, active }, 1) ? 1 : 2;
  return (
    `${width} bytes per lane, but every active lane has the same address as lane ^ ${by}, unless that lane is inactive. ` +
    `So groups merge in pairs, and there ${groups.length === 1 ? "is" : "are"} ${so}.`
  );
}

/** [{bank, span, lanes of each chunk: Map}] of a group's busiest bank. */
function busiest(group) {
  const banks = new Map();
  for (const cell of group.cells) {
    if (!banks.has(cell.bank)) banks.set(cell.bank, new Map());
    const queue = banks.get(cell.bank);
    queue.set(cell.chunk, [...(queue.get(cell.chunk) ?? []), cell.lane]);
  }
  return [...banks].reduce((a, b) => (b[1].size > a[1].size ? b : a));
}

function worst({ width }, groups) {
  const slowest = groups.reduce((a, b) => (b.wavefronts > a.wavefronts ? b : a));
  if (slowest.wavefronts < 2) return "No group accesses two different words of the same bank.";
  const [bank, queue] = busiest(slowest);
  const accessed = [...queue].slice(0, 3).map(([n, lanes]) => `${n} by lane${lanes.length > 1 ? "s" : ""} ${runs(lanes)}`);
  const span = Math.max(width, WORD) / WORD;
  const where = span > 1 ? `banks ${bank}–${bank + span - 1}` : `bank ${bank}`;
  return (
    `Lanes ${slowest.first}–${slowest.first + slowest.size - 1} access ${queue.size} different ${chunks(width)} in ` +
    `${where}: number ${accessed.join(", ")}${queue.size > 3 ? " and so on" : ""}. Each takes a wavefront of its own.`
  );
}

function sharedWords({ width, op }, groups) {
  const most = Math.max(...groups.map((group) => {
    const lanes = new Map();
    for (const cell of group.cells) lanes.set(cell.chunk, (lanes.get(cell.chunk) ?? 0) + 1);
    return Math.max(0, ...lanes.values());
  }));
  if (most < 2) return null;
  return `Up to ${most} lanes access the same ${chunk(width)}, which is ${op.startsWith("st") ? "written" : "read"} once for all of them.`;
}

/** For lanes at a constant stride: the rule of the greatest common divisor. */
function stride({ address, active, width }) {
  const step = address[1] - address[0];
  const even = active.every(Boolean) && address.every((a, lane) => a === address[0] + lane * step);
  if (!even || width < WORD || step % width || !step) return null;
  const together = unmerged(width);
  const n = Math.abs(step / width);
  const ways = gcd(n, together);
  const unit = width > WORD ? `times ${width} bytes` : n === 1 ? "word" : "words";
  return (
    `Lanes are ${n} ${unit} apart, and gcd(${n}, ${together}) = ${ways}: ` +
    (ways === 1 ? "every bank is used once." : `of ${together} lanes, ${ways} conflict in each bank that is used.`)
  );
}

/** The different bytes that are accessed, in whole chunks. */
function bytesAccessed({ address, active, width }) {
  const bytes = Math.max(width, WORD);
  return new Set(address.filter((_, lane) => active[lane]).map((a) => Math.floor(a / bytes))).size * bytes;
}

function verdict(request, { wavefronts, ideal }) {
  if (!wavefronts) return "No lane is active, so nothing is accessed.";
  const bytes = bytesAccessed(request);
  if (wavefronts === ideal)
    return (
      `${many(bytes, "byte")} at ${ROW} per wavefront${wavefronts > Math.ceil(bytes / ROW) ? ", in groups of this width," : ""} ` +
      `need at least ${many(ideal, "wavefront")}: no conflict.`
    );
  return `${many(ideal, "wavefront")} would suffice for ${many(bytes, "byte")}: ${many(wavefronts - ideal, "wavefront")} too many.`;
}

/** Sentences that explain a request's cost. */
export function reasons(request, served) {
  if (!served.wavefronts) return [verdict(request, served)];
  const groups = groupsOf(request, served).filter((group) => group.cells.length);
  const all = groupsOf(request, served);
  return [howServed(request, served, all), stride(request), worst(request, groups), sharedWords(request, groups), verdict(request, served)].filter(Boolean);
}
