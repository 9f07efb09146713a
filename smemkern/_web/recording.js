// Recordings: the decoder, and the state of registers and memories at any step.
//
// A step is one instruction of one warp. "k" is a step's index in the window, 0 .. count; the state
// at k is the state before step k executes, so the state at count is the end. Every change is in a
// column with its step. The state at k is therefore found by a binary search among the changes of
// one register or word: going back costs what going forward costs, and there are no keyframes.

export const NONE = 0xffffffff;
const MOST_WRITES = 256;  // of one register that writtenLanes looks through
export const LANES = 32;
const UNINITIALIZED = 0x7ff77ff7;  // what reads where nobody has written
const MAGIC = "SMKREC1\n";
const FORMAT = 1;
const ELEMENT = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array
};
const REQUIRED = `
  step_warp step_instruction step_active step_executed first_delta first_access
  first_write first_event delta_register delta_warp delta_kind delta_at access_operation
  access_memory access_space access_width access_active access_kind access_at access_cost
  access_ideal access_waves access_words write_memory write_word write_value write_warp
  write_lane write_step event_kind event_warp event_lanes event_object event_flags words
  waves initial_warp initial_register initial_kind initial_at memory_words memory_warp
  memory_lane memory_instruction`;

/** A recording that cannot be read. */
export class RecordingError extends Error {}

/** The bytes behind base64 of a zlib stream. */
export async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Uint8Array} bytes @returns {Recording} */
export function decode(bytes) {
  const magic = String.fromCharCode(...bytes.subarray(0, 8));
  if (magic !== MAGIC) {
    throw new RecordingError(
      `expected a recording that begins with SMKREC1, found ${JSON.stringify(magic)}`
    );
  }
  const aligned = bytes.byteOffset % 8 ? bytes.slice() : bytes;
  const view = new DataView(aligned.buffer, aligned.byteOffset, aligned.length);
  const length = bytes.length < 12 ? NONE : view.getUint32(8, true);
  if (12 + length > bytes.length) {
    throw new RecordingError(`the recording ends in its header: ${bytes.length} bytes`);
  }
  const header = JSON.parse(new TextDecoder().decode(aligned.subarray(12, 12 + length)));
  if (header.format !== FORMAT) {
    throw new RecordingError(
      `expected a recording of format ${FORMAT}, found format ${header.format}`
    );
  }
  return new Recording(header, sections(header.sections ?? {}, aligned, 12 + length));
}

function sections(described, bytes, start) {
  const columns = {};
  for (const [name, {type, at, count}] of Object.entries(described)) {
    const Type = ELEMENT[type];
    const fits = Type && at >= 0 && at % 8 === 0 && count >= 0;
    if (!fits || start + at + count * Type.BYTES_PER_ELEMENT > bytes.length) {
      throw new RecordingError(`section ${name} is not within the recording`);
    }
    columns[name] = new Type(bytes.buffer, bytes.byteOffset + start + at, count);
  }
  const missing = REQUIRED.trim().split(/\s+/).filter((name) => !columns[name]);
  if (missing.length)
    throw new RecordingError(`the recording has no section ${missing.join(", ")}`);
  return columns;
}

/** The lanes of a mask, ascending. */
export function lanesOf(mask) {
  const lanes = [];
  for (let lane = 0; lane < LANES; lane++)
    if ((mask >>> lane) & 1) lanes.push(lane);
  return lanes;
}

/** The changes of many places, sorted by place and then by time. */
class Changes {
  /** @param {number} count @param {(index: number) => number} placeOf in order of time */
  constructor(count, placeOf) {
    this.count = Math.max(count, 1);
    this.keys = new Float64Array(count);
    for (let i = 0; i < count; i++) this.keys[i] = placeOf(i) * this.count + i;
    this.keys.sort();
  }

  /** How many keys are below `key`. */
  below(key) {
    let low = 0;
    let high = this.keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.keys[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /** The last change of `place` among those with an index below `before`, or -1. */
  last(place, before) {
    const found = this.below(place * this.count + before) - 1;
    const key = found < 0 ? -1 : this.keys[found];
    return key >= place * this.count ? key - place * this.count : -1;
  }
}

/** Indices grouped by a small number, ascending within each group. */
class Groups {
  constructor(numbers, groups) {
    this.starts = new Uint32Array(groups + 1);
    for (const number of numbers) this.starts[number + 1]++;
    for (let group = 0; group < groups; group++) this.starts[group + 1] += this.starts[group];
    this.items = new Uint32Array(numbers.length);
    const next = this.starts.slice();
    numbers.forEach((number, i) => (this.items[next[number]++] = i));
  }

  of(group) {
    return this.items.subarray(this.starts[group], this.starts[group + 1]);
  }
}

/** The position of the first item that is at least `value`. */
export function lowerBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

export class Recording {
  constructor(header, columns) {
    this.header = header;
    this.columns = columns;
    this.count = columns.step_warp.length;
    this.first = header.first;
    this.checkIndices();
    this.stepsByWarp = new Groups(columns.step_warp, header.warps.length);
    const registers = header.registers.length;
    this.deltas = new Changes(
      columns.delta_register.length,
      (i) => columns.delta_warp[i] * registers + columns.delta_register[i],
    );
    this.initial = new Map();
    columns.initial_register.forEach((register, i) => {
      this.initial.set(columns.initial_warp[i] * registers + register, i);
    });
    this.kinds = Object.fromEntries(header.event_kinds.map((name, i) => [name, i]));
    this.eventSteps = spread(columns.first_event);
    this.accessSteps = spread(columns.first_access);
    this.writesOf = new Map();
    this.eventsOf = this.groupEvents();
  }

  checkIndices() {
    const {columns, header, count} = this;
    const limits = [
      ["step_warp", header.warps.length],
      ["step_instruction", header.instructions.length],
      ["delta_register", header.registers.length],
      ["delta_warp", header.warps.length],
      ["initial_register", header.registers.length],
      ["initial_warp", header.warps.length],
      ["write_memory", header.memories.length],
      ["event_kind", header.event_kinds.length],
      ["access_operation", header.operations.length],
      ["access_space", header.spaces.length],
    ];
    for (const [name, limit] of limits) {
      for (const index of columns[name]) {
        if (index >= limit) throw new RecordingError(`${name} has ${index}, of ${limit}`);
      }
    }
    for (const [name, of] of [
           ["first_delta", "delta_register"],
           ["first_access", "access_cost"],
           ["first_write", "write_value"],
           ["first_event", "event_kind"],
    ]) {
      const column = columns[name];
      const ascends = column.every((value, i) => i === 0 || value >= column[i - 1]);
      if (column.length !== count + 1 || !ascends || column[count] !== columns[of].length) {
        throw new RecordingError(`${name} does not divide ${of} into ${count} steps`);
      }
    }
  }

  /** Arrivals and exits of each warp, and the completions of each block's barriers. */
  groupEvents() {
    const {event_kind, event_warp, event_flags} = this.columns;
    const {kinds} = this;
    const arrivals = this.header.warps.map(() => []);
    const exits = this.header.warps.map(() => []);
    const completions = this.header.blocks.map(() => []);
    event_kind.forEach((kind, i) => {
      const warp = event_warp[i];
      if (warp >= exits.length) return;
      if (kind === kinds.exit) exits[warp].push(i);
      if (kind === kinds.barrier_arrive && !(event_flags[i] & 1)) arrivals[warp].push(i);
      if (kind === kinds.barrier_complete) completions[this.header.warps[warp].block].push(i);
    });
    return {arrivals, exits, completions};
  }

  // ---- steps

  /** The warp of step k; at the end, that of the last step. */
  warpAt(k) {
    return this.count ? this.columns.step_warp[Math.min(k, this.count - 1)] : 0;
  }

  instruction(k) {
    return k < this.count ? this.header.instructions[this.columns.step_instruction[k]] : null;
  }

  /** All steps of a warp, ascending. */
  stepsOf(warp) {
    return this.stepsByWarp.of(warp);
  }

  /** The first step of the warp at or after k, or null. */
  nextOf(warp, k) {
    const steps = this.stepsOf(warp);
    return steps[lowerBound(steps, k)] ?? null;
  }

  /** The last step of the warp before k, or null. */
  previousOf(warp, k) {
    const steps = this.stepsOf(warp);
    return steps[lowerBound(steps, k) - 1] ?? null;
  }

  // ---- registers

  /** Bits of a vector: 32 lanes of max(1, size / 4) words, low word first. */
  vector(kind, at, size) {
    const per = Math.max(1, size / 4);
    const {words} = this.columns;
    const bits = new Uint32Array(LANES * per);
    if (kind === 1) {
      bits.set(words.subarray(at, at + bits.length));
    } else if (kind === 2) {
      for (let lane = 0; lane < LANES; lane++) bits[lane] = (words[at] >>> lane) & 1;
    } else {
      affine(bits, words.subarray(at, at + 2 * per), per, size);
    }
    return bits;
  }

  /** The register's bits before step k, as `vector` has them; null: not written. */
  register(warp, register, k) {
    const {columns} = this;
    const size = this.header.registers[register].size;
    const place = warp * this.header.registers.length + register;
    const delta = this.deltas.last(place, columns.first_delta[k]);
    if (delta >= 0) return this.vector(columns.delta_kind[delta], columns.delta_at[delta], size);
    const initial = this.initial.get(place);
    if (initial === undefined) return null;
    return this.vector(columns.initial_kind[initial], columns.initial_at[initial], size);
  }

  isWritten(warp, register, k) {
    const place = warp * this.header.registers.length + register;
    return this.registerChange(warp, register, k) >= 0 || this.initial.has(place);
  }

  /**
   * The lanes that have written a register before step k, as a mask. In other lanes its bits can be
   * those of another register: registers that are never live together share their place.
   */
  writtenLanes(warp, register, k) {
    const place = warp * this.header.registers.length + register;
    if (this.initial.has(place)) return NONE;
    const {keys, count} = this.deltas;
    const {first_delta, step_executed, step_warp} = this.columns;
    const end = this.deltas.below(place * count + first_delta[k]);
    let lanes = 0;
    for (let i = end - 1; i >= 0 && keys[i] >= place * count && lanes !== -1; i--) {
      if (end - i > MOST_WRITES) return NONE;
      const step = lowerBound(first_delta, keys[i] - place * count + 1) - 1;
      lanes |= step_warp[step] === warp ? step_executed[step] : NONE;
    }
    return lanes;
  }

  /**
   * The index of the register's last change before step k, or -1. It tells whether two states
   * differ.
   */
  registerChange(warp, register, k) {
    const place = warp * this.header.registers.length + register;
    return this.deltas.last(place, this.columns.first_delta[k]);
  }

  // ---- memories

  writes(memory) {
    if (!this.writesOf.has(memory)) {
      const {write_memory, write_word} = this.columns;
      const items = [];
      write_memory.forEach((of, i) => of === memory && items.push(i));
      const indices = Uint32Array.from(items);
      const changes = new Changes(indices.length, (i) => write_word[indices[i]]);
      this.writesOf.set(memory, {indices, changes});
    }
    return this.writesOf.get(memory);
  }

  /** Number of words of a memory: of a local one, those of all lanes. */
  wordsOf(memory) {
    const {bytes, kind, words} = this.header.memories[memory];
    return Math.max(Math.ceil((bytes * (kind === "local" ? LANES : 1)) / 4), words ?? 0);
  }

  /** The index of the last write to a word before step k, or -1. */
  lastWrite(memory, word, k) {
    const {indices, changes} = this.writes(memory);
    const found = changes.last(word, lowerBound(indices, this.columns.first_write[k]));
    return found < 0 ? -1 : indices[found];
  }

  /** {value, warp, lane, step, instruction} of a word before step k; warp null: nobody known. */
  word(memory, word, k) {
    return this.wordAfter(memory, word, this.lastWrite(memory, word, k));
  }

  wordAfter(memory, word, write) {
    const {columns} = this;
    if (write < 0) return this.initialWord(memory, word);
    const step = columns.write_step[write];
    return {
      value: columns.write_value[write],
      warp: orNull(columns.write_warp[write]),
      lane: columns.write_lane[write],
      step: orNull(step),
      instruction: step === NONE ? null : columns.step_instruction[step],
      written: true,
    };
  }

  /** Whether the recording has the word's value from before the window. */
  isIncluded(memory, word) {
    const {at, words} = this.header.memories[memory];
    return at !== null && at !== undefined && word < words;
  }

  initialWord(memory, word) {
    const {columns} = this;
    const {at} = this.header.memories[memory];
    if (!this.isIncluded(memory, word)) {
      const value = this.header.memories[memory].kind === "shared" ? UNINITIALIZED : 0;
      return {value, warp: null, lane: null, step: null, instruction: null, written: false};
    }
    const instruction = orNull(columns.memory_instruction[at + word]);
    const warp = orNull(columns.memory_warp[at + word]);
    return {
      value: columns.memory_words[at + word],
      warp,
      lane: warp === null ? null : columns.memory_lane[at + word],
      step: null,
      instruction,
      written: warp !== null || instruction !== null,
    };
  }

  /**
   * A whole memory before step k: values, and for each word the index of its last write or -1.
   * Where contents are not known, words without a write are 0; in shared memory, UNINITIALIZED.
   */
  memory(memory, k) {
    const {columns} = this;
    const words = this.wordsOf(memory);
    const {at, words: included, kind} = this.header.memories[memory];
    const values = new Uint32Array(words).fill(kind === "shared" ? UNINITIALIZED : 0);
    if (this.isIncluded(memory, 0))
      values.set(columns.memory_words.subarray(at, at + Math.min(words, included)));
    const last = new Int32Array(words).fill(-1);
    const {indices} = this.writes(memory);
    const end = lowerBound(indices, columns.first_write[k]);
    for (let i = 0; i < end; i++) {
      const write = indices[i];
      values[columns.write_word[write]] = columns.write_value[write];
      last[columns.write_word[write]] = write;
    }
    return {values, last};
  }

  // ---- accesses and events

  /** The accesses of step k. */
  accesses(k) {
    if (k >= this.count) return [];
    const found = [];
    for (let i = this.columns.first_access[k]; i < this.columns.first_access[k + 1]; i++) {
      found.push(this.access(i));
    }
    return found;
  }

  access(i) {
    const {columns, header} = this;
    const memory = orNull(columns.access_memory[i]);
    const cost = columns.access_cost[i];
    return {
      index: i,
      k: this.accessSteps[i],
      operation: header.operations[columns.access_operation[i]],
      memory,
      kind: memory === null ? "global" : header.memories[memory].kind,
      space: header.spaces[columns.access_space[i]],
      width: columns.access_width[i],
      active: columns.access_active[i],
      addresses: this.addresses(i),
      cost,
      ideal: columns.access_ideal[i],
      waves: this.waves(i),
      words: orNull(columns.access_words[i]),
    };
  }

  /** Byte offsets in the access's memory; in global memory, addresses as numbers below 2^53. */
  addresses(i) {
    const {columns} = this;
    const space = this.header.spaces[columns.access_space[i]];
    const isWide = columns.access_memory[i] === NONE && (space === "global" || space === "generic");
    const bits = this.vector(columns.access_kind[i], columns.access_at[i], isWide ? 8 : 4);
    if (!isWide) return Array.from(bits);
    return Array.from({length: LANES}, (_, lane) => bits[2 * lane] + bits[2 * lane + 1] * 2 ** 32);
  }

  /** The wavefront of each lane, 255: not active. */
  waves(i) {
    const {access_waves, access_active, waves} = this.columns;
    if (access_waves[i] !== NONE) return waves.subarray(access_waves[i], access_waves[i] + LANES);
    return Uint8Array.from(
      {length: LANES}, (_, lane) => ((access_active[i] >>> lane) & 1 ? 0 : 255)
    );
  }

  /** Whether access i is to shared memory and was counted. */
  isShared(i) {
    const memory = this.columns.access_memory[i];
    return memory !== NONE && this.header.memories[memory].kind === "shared" &&
      this.columns.access_cost[i] > 0;
  }

  /**
   * Accesses to shared memory that take more wavefronts than needed, at least `ways` times as
   * many.
   */
  conflicts(ways = 1) {
    const {access_cost, access_ideal} = this.columns;
    const found = [];
    for (let i = 0; i < access_cost.length; i++) {
      const cost = access_cost[i];
      const ideal = access_ideal[i];
      if (cost > ideal && cost >= ways * ideal && this.isShared(i)) {
        found.push({k: this.accessSteps[i], access: i, cost, ideal});
      }
    }
    return found;
  }

  events(k) {
    if (k >= this.count) return [];
    const found = [];
    for (let i = this.columns.first_event[k]; i < this.columns.first_event[k + 1]; i++)
      found.push(this.event(i));
    return found;
  }

  event(i) {
    const {columns, header} = this;
    return {
      index: i,
      k: this.eventSteps[i],
      kind: header.event_kinds[columns.event_kind[i]],
      warp: orNull(columns.event_warp[i]),
      lanes: columns.event_lanes[i],
      object: columns.event_object[i],
      flags: columns.event_flags[i],
    };
  }

  // ---- lanes

  /**
   * What each lane of a warp does at k: {state, instruction, barrier}. The state is "executes",
   * "guarded" (its guard does not hold), "ready" (its warp's turn has not come), "barrier",
   * "waits" (for other lanes of its warp), "exited" or "absent".
   */
  lanes(warp, k) {
    const {columns} = this;
    const all = this.header.warps[warp].lanes;
    const next = this.nextOf(warp, k);
    const active = next === null ? 0 : columns.step_active[next];
    const executed = next === null ? 0 : columns.step_executed[next];
    const positions = this.positions(warp, k);
    const exited = this.exitedBefore(warp, k);
    const barriers = this.barriersAt(warp, k);
    return Array.from({ length: LANES }, (_, lane) => {
      const bit = (mask) => ((mask >>> lane) & 1) === 1;
      const at = { instruction: positions[lane], barrier: null };
      if (!bit(all)) return { ...at, state: "absent" };
      if (bit(exited)) return { ...at, state: "exited", instruction: null };
      if (barriers[lane] !== null) return { ...at, state: "barrier", barrier: barriers[lane] };
      if (!bit(active)) return { ...at, state: "waits" };
      if (next !== k) return { ...at, state: "ready" };
      return { ...at, state: bit(executed) ? "executes" : "guarded" };
    });
  }

  /** The instruction that each lane executes next, or null. */
  positions(warp, k) {
    const {columns} = this;
    const found = Array(LANES).fill(null);
    let open = this.header.warps[warp].lanes & ~this.exitedBefore(warp, k);
    const steps = this.stepsOf(warp);
    for (let i = lowerBound(steps, k); i < steps.length && open; i++) {
      const here = open & columns.step_active[steps[i]];
      for (const lane of lanesOf(here)) found[lane] = columns.step_instruction[steps[i]];
      open &= ~here;
    }
    for (const {warp: of, lanes, instruction} of this.header.end ?? []) {
      if (of === warp)
        for (const lane of lanesOf(open & lanes)) found[lane] = instruction;
    }
    return found;
  }

  exitedBefore(warp, k) {
    const end = this.columns.first_event[k];
    let lanes = 0;
    for (const event of this.eventsOf.exits[warp]) {
      if (event >= end) break;
      lanes |= this.columns.event_lanes[event];
    }
    return lanes;
  }

  /** The barrier that each lane waits at, or null. */
  barriersAt(warp, k) {
    const {event_lanes, event_object} = this.columns;
    const found = Array(LANES).fill(null);
    const end = this.columns.first_event[k];
    const arrivals = this.eventsOf.arrivals[warp];
    let open = NONE | 0;
    for (let i = lowerBound(arrivals, end) - 1; i >= 0 && open; i--) {
      const event = arrivals[i];
      const here = open & event_lanes[event];
      open &= ~here;
      if (here && !this.completed(warp, event_object[event], event, end)) {
        for (const lane of lanesOf(here)) found[lane] = event_object[event];
      }
    }
    return found;
  }

  /**
   * Whether the barrier of the warp's block completed among events after `from` and before `to`.
   */
  completed(warp, barrier, from, to) {
    const {event_object} = this.columns;
    const done = this.eventsOf.completions[this.header.warps[warp].block];
    for (let i = lowerBound(done, from); i < done.length && done[i] < to; i++) {
      if (event_object[done[i]] === barrier) return true;
    }
    return false;
  }
}

const orNull = (index) => (index === NONE ? null : index);

/** The step of each entry, from the column of each step's first entry. */
function spread(firsts) {
  const steps = new Uint32Array(firsts.at(-1) ?? 0);
  for (let k = 0; k + 1 < firsts.length; k++) steps.fill(k, firsts[k], firsts[k + 1]);
  return steps;
}

/** base + lane * stride modulo 2^(8 size), both of `per` words. */
function affine(bits, parts, per, size) {
  if (per > 2) {
    for (let lane = 0; lane < LANES; lane++) bits.set(parts.subarray(0, per), lane * per);
  } else if (per === 2) {
    const join = (low, high) => BigInt(low) + (BigInt(high) << 32n);
    const [base, stride] = [join(parts[0], parts[1]), join(parts[2], parts[3])];
    for (let lane = 0; lane < LANES; lane++) {
      const value = BigInt.asUintN(64, base + BigInt(lane) * stride);
      bits[2 * lane] = Number(value & 0xffffffffn);
      bits[2 * lane + 1] = Number(value >> 32n);
    }
  } else {
    const mask = size < 4 ? 2 ** (8 * size) - 1 : -1;
    for (let lane = 0; lane < LANES; lane++)
      bits[lane] = (parts[0] + Math.imul(lane, parts[1])) & mask;
  }
}
