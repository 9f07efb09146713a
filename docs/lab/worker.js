// The worker: jobs of the page, each done by the emulator.
import { Emulator } from "./emulator.js";

let emulator = null;

/** Loads PTX and adds one launch; returns the buffer of each array argument. */
function prepare({ ptx, launch, declared = [] }) {
  emulator.reset();
  emulator.load(ptx);
  emulator.arrays(declared);
  const buffers = [];
  const args = launch.args.map((argument) => {
    if (!argument.bytes) return { value: argument.value };
    const buffer = emulator.buffer(argument.bytes.length, "inout");
    emulator.bytes(buffer).set(argument.bytes);
    emulator.name(buffer, argument.name);
    buffers.push(buffer);
    return argument.tensor ? { tensor: { ...argument.tensor, buffer } } : { buffer };
  });
  emulator.launch({ ...launch, args });
  return buffers;
}

const SHORT = { float32: "f32", float64: "f64", float16: "f16", bfloat16: "bf16" };
const BITS = { b8: "u8", b16: "u16", b32: "u32", b64: "u64", b128: "u64" };

/** Plans a call of a shipped kernel with data from a seed. */
function prepareVariant({ ptx, call, seed, declared = [] }) {
  emulator.reset();
  emulator.load(ptx);
  emulator.arrays(declared);
  const plan = emulator.plan(call);
  plan.buffers.forEach(({ dtype, written }, index) => {
    if (written) return;
    const type = SHORT[dtype] ?? BITS[dtype];
    const high = BITS[dtype] ? 255 : undefined;
    emulator.fill(index, type, "random", { seed: seed + index, high });
  });
  return plan;
}

/** A hazard with the place of its later access beside its other fields, where there is one. */
function flat(hazard) {
  const { party, other, ...rest } = hazard;
  const { file = null, line = 0, block, thread, callers = [] } = party ?? {};
  return { ...rest, file, line, block, thread, callers, text: party?.text, other: other?.line ? other : null };
}

function run(options) {
  const found = emulator.run({ ...CHECKED, ...options });
  found.trace.hazards = found.trace.hazards.map(flat);
  return found;
}

const CHECKED = { trace: true, hazards: true };

const copies = (buffers) => buffers.map((buffer) => emulator.bytes(buffer).slice());

/** The sum over a list of requests; null stays null. */
function costOf(list) {
  if (!list) return null;
  const found = list.map((request) => emulator.banks(request));
  const sum = (name) => found.reduce((total, one) => total + one[name], 0);
  return { requests: list.length, cost: sum("wavefronts"), ideal: sum("ideal") };
}

const jobs = {
  async start({ bytes }) {
    emulator = await Emulator.start(bytes, { progress });
  },
  variants: () => emulator.variants(),
  compile: ({ source }) => ({ ptx: emulator.compile(source) }),
  entries({ ptx }) {
    emulator.load(ptx);
    return emulator.entries();
  },
  run(task) {
    const buffers = prepare(task);
    const found = run(task.options);
    return { ...found, arrays: found.trace.incomplete ? null : copies(buffers) };
  },
  runVariant(task) {
    const plan = prepareVariant(task);
    return { plan, ...run(task.options) };
  },
  record(task) {
    prepare(task);
    return emulator.record(task.recording, CHECKED).recording;
  },
  recordVariant(task) {
    prepareVariant(task);
    return emulator.record(task.recording, CHECKED).recording;
  },
  banks: ({ requests }) => requests.map((request) => emulator.banks(request)),
  costs: ({ lists }) => lists.map(costOf),
  explain: ({ requests, array }) => emulator.explain(requests, array),
};

let current = 0; // the call that runs

function progress(done, all) {
  self.postMessage({ id: current, progress: { done, all } });
}

self.onmessage = async ({ data: { id, job, argument } }) => {
  current = id;
  try {
    self.postMessage({ id, value: await jobs[job](argument) });
  } catch (error) {
    const broken = error instanceof WebAssembly.RuntimeError || error.kind === "crash";
    const message = broken ? `the emulator failed: ${error.message}` : error.message;
    self.postMessage({ id, error: { message: String(message), code: error.kind, broken } });
  }
};
