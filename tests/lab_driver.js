/**
 * Repeats the cases of lab_cases.py with the WebAssembly module, and says what differs.
 * Used by test_lab_exactness.py, in a browser's page and under node.
 */

/** The first difference of two JSON values, as a text; null: none. Only what is expected counts. */
function firstDifference(got, expected, at = "") {
  if (expected === null || typeof expected !== "object")
    return got === expected ? null : `${at}: ${JSON.stringify(got)}, expected ${JSON.stringify(expected)}`;
  if (got === null || typeof got !== "object") return `${at}: ${JSON.stringify(got)}`;
  if (Array.isArray(expected) && got.length !== expected.length)
    return `${at}: ${got.length} items, expected ${expected.length}`;
  for (const key of Object.keys(expected)) {
    const found = firstDifference(got[key], expected[key], `${at}.${key}`);
    if (found) return found;
  }
  return null;
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function bytesDiffer(got, expected, at) {
  if (got.length !== expected.length) return `${at}: ${got.length} bytes, expected ${expected.length}`;
  const k = got.findIndex((byte, index) => byte !== expected[index]);
  return k < 0 ? null : `${at}: byte ${k} is ${got[k]}, expected ${expected[k]}`;
}

function argument(given) {
  if ("int" in given) return { value: BigInt(given.int) };
  if ("float" in given) return { value: Number(given.float) };
  if ("bytes" in given) return { bytes: fromBase64(given.bytes) };
  return given;
}

/** The job of a step, and its buffers. */
function prepare(emulator, { plan, image, launch, buffers }) {
  if (plan) {
    const found = emulator.image(plan);
    if (found !== image) throw new Error(`image ${found}, expected ${image}`);
    emulator.plan(plan);
  } else {
    emulator.dropBuffers();
    for (const { access, data } of buffers) emulator.buffer(fromBase64(data).length, access);
  }
  buffers.forEach(({ data }, k) => emulator.bytes(k).set(fromBase64(data)));
  if (launch) emulator.launch({ ...launch, args: launch.args.map(argument) });
}

function compare(emulator, step, result) {
  const incomplete = step.trace.incomplete; // the contents are then unspecified
  for (let k = 0; k < step.after.length && !incomplete; k++) {
    const found = bytesDiffer(emulator.bytes(k), fromBase64(step.after[k]), `buffer ${k}`);
    if (found) return found;
  }
  return result.trace ? firstDifference(result.trace, step.trace, "trace") : null;
}

/** CRC-32 as zlib computes it. */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/** [length, CRC-32], as recorded_window of lab_cases.py. */
const digest = (recording) => [recording.length, crc32(recording)];

/** What differs in the recordings of the steps, or null. */
function recordSteps(emulator, steps) {
  let loaded = null;
  for (const [k, step] of steps.entries()) {
    if (step.ptx !== loaded) emulator.load(step.ptx);
    loaded = step.ptx;
    prepare(emulator, step);
    const { recording } = emulator.record(step.window, { trace: true, hazards: true });
    const found = digest(recording);
    if (String(found) !== String(step.recording)) return `step ${k}: recording ${found}, expected ${step.recording}`;
    prepare(emulator, step);
    emulator.run({}); // for module variables of the next step
  }
  return null;
}

function runSteps(emulator, steps, options) {
  let loaded = null;
  for (const [k, step] of steps.entries()) {
    if (step.ptx !== loaded) emulator.load(step.ptx);
    loaded = step.ptx;
    prepare(emulator, step);
    const found = compare(emulator, step, emulator.run(options));
    if (found) return `step ${k}: ${found}`;
  }
  return null;
}

/** Repeats a case plainly, unless it faults, and traced. Returns what differs, or null. */
function runCase(emulator, { steps }) {
  const faults = steps.some(({ trace }) => trace.incomplete);
  const traced = { trace: true, hazards: true, byInstruction: true };
  try {
    const plain = faults ? null : runSteps(emulator, steps, {});
    if (plain) return `without a trace, ${plain}`;
    const recorded = faults ? null : recordSteps(emulator, steps);
    if (recorded) return recorded;
    return runSteps(emulator, steps, traced);
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

/** {names of cases: what differs}, and how long they took. */
function runCases(Emulator, module, cases) {
  const differences = {};
  const begin = performance.now();
  let emulator = new Emulator(module);
  for (const one of cases) {
    const found = runCase(emulator, one);
    if (found) {
      differences[one.name] = found;
      emulator = new Emulator(module); // a trap leaves it unusable
    }
  }
  return { differences, seconds: (performance.now() - begin) / 1000, count: cases.length };
}

/** The PTX, or the error, of each CUDA source. */
function compileCases(Emulator, module, sources) {
  const emulator = new Emulator(module);
  return sources.map((source) => {
    try {
      return emulator.compile(source);
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  });
}

/** Milliseconds of a traced run: the mean of as many as take 10, since clocks of browsers are coarse. */
function meanTime(emulator) {
  const begin = performance.now();
  for (let runs = 1; ; runs++) {
    emulator.run({ trace: true });
    const time = performance.now() - begin;
    if (time >= 10) return time / runs;
  }
}

/**
 * The shortest time of a traced run of each case's first step, in milliseconds. In rounds, by one
 * instance: V8 compiles hot functions again, in the background.
 */
function rateCases(Emulator, module, { rounds, cases }) {
  const emulator = new Emulator(module);
  const best = cases.map(() => Infinity);
  for (let round = 0; round < rounds; round++)
    cases.forEach(({ steps: [step] }, k) => {
      emulator.load(step.ptx);
      prepare(emulator, step);
      const end = performance.now() + 150;
      for (let run = 0; run < 2 || performance.now() < end; run++) // the first decodes the PTX
        best[k] = Math.min(best[k], meanTime(emulator));
    });
  return best;
}
