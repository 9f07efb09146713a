/**
 * The WebAssembly module's functions (csrc/lab/api.h) as a class. Runs in a worker, or under node.
 *
 * Every method is synchronous. A failed call throws a LabError with the C message. To end a run
 * from outside, terminate the worker.
 */

/** A failed call. `kind`: the code's name, such as "value", "launch", "compile" or "memory". */
export class LabError extends Error {
  /**
   * @param {string} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.name = "LabError";
    this.kind = kind;
  }
}

/** @typedef {{kind: "f"|"i"|"u"|"b", size: number, scalarSize: number, offset: number}} Parameter */
/**
 * Lists are in the order of the array's dimensions, which lies without gaps.
 * @typedef {{buffer: number, offset?: number, type: string, shape: number[], box: number[],
 *   swizzle?: "32B"|"64B"|"128B"|null, element_strides?: number[], fill?: "nan"|null}} Tensor
 */
/** @typedef {{buffer: number, offset?: number} | {tensor: Tensor} | {value: number|bigint} | {bytes: Uint8Array}} Argument */

const ACCESS = { work: 0, in: 1, out: 2, inout: 3 };
const PATTERNS = { constant: 0, index: 1, random: 2 };
const RUN_FLAGS = { trace: 1, hazards: 2, equalWrites: 4, byInstruction: 8 };
const BANK_KINDS = { load: 0, store: 1, atomic: 2, ldmatrix: 3, stmatrix: 3 };
const BANK_NUMBERS = 37;
const LANES = 32;
const SWIZZLES = { "32B": 32, "64B": 64, "128B": 128 };
const WASI_OK = 0;
const WASI_NO = 52; // ENOSYS

/** A number in the bytes that a kernel's parameter has. @param {Parameter} parameter */
function encode(parameter, value) {
  const bytes = new Uint8Array(parameter.size);
  const view = new DataView(bytes.buffer);
  const isFloat = parameter.kind === "f" && parameter.size >= 4;
  if (isFloat && parameter.size === 4) view.setFloat32(0, Number(value), true);
  else if (isFloat && parameter.size === 8) view.setFloat64(0, Number(value), true);
  else {
    const wide = BigInt.asUintN(8 * Math.min(parameter.size, 8), BigInt(value));
    for (let k = 0; k < Math.min(parameter.size, 8); k++)
      bytes[k] = Number((wide >> BigInt(8 * k)) & 255n);
  }
  return bytes;
}

/** Size, bytes between elements, box and element stride of each dimension, innermost first. */
function dimensionsOf({ type, shape, box, element_strides }) {
  const steps = element_strides ?? shape.map(() => 1);
  for (const [name, list] of Object.entries({ box, element_strides: steps }))
    if (!Array.isArray(list) || list.length !== shape.length)
      throw new LabError("value", `tensor map: ${name} needs ${shape.length} numbers, as many as the array has dimensions`);
  const numbers = [];
  let bytes = Number(/\d+/.exec(type)?.[0] ?? 0) / 8;
  for (let d = shape.length - 1; d >= 0; d--) {
    // The distance between the elements of a dimension that has one is not used, but checked.
    numbers.push(shape[d], shape[d] < 2 ? Math.ceil(bytes / 16) * 16 : bytes, box[d], steps[d]);
    bytes *= shape[d];
  }
  return Float64Array.from(numbers);
}

function swizzleBytes(name) {
  if (name === null || name === undefined) return 0;
  if (Object.hasOwn(SWIZZLES, name)) return SWIZZLES[name];
  throw new LabError("value", `tensor map: expected a swizzle of ${Object.keys(SWIZZLES).join(", ")}, found ${name}`);
}

function fillsNan(name) {
  if (name === null || name === undefined || name === "nan") return name ? 1 : 0;
  throw new LabError("value", `tensor map: expected nan or nothing as fill, found ${name}`);
}

/** {tile: 32} as the C functions read it. */
function settingsText(params = {}) {
  return Object.entries(params)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

export class Emulator {
  /**
   * @param {BufferSource} bytes of lab.wasm
   * @param {{progress?: (done: number, all: number) => boolean | void}} [options] progress: about
   *   every 50 ms of a run, with finished blocks; true ends the run
   * @returns {Promise<Emulator>}
   */
  static async start(bytes, options) {
    return new Emulator(await WebAssembly.compile(bytes), options);
  }

  /**
   * The same at once. @param {WebAssembly.Module} module
   * @param {{progress?: (done: number, all: number) => boolean | void}} [options]
   */
  constructor(module, { progress } = {}) {
    this.progress = progress;
    this.exports = new WebAssembly.Instance(module, this.#imports()).exports;
    this.exports._initialize();
  }

  /** Bytes from base64 of deflated data (zlib's format), as a page embeds them. */
  static async inflate(base64) {
    const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** What the C library asks of its host: a clock, random numbers; no files, no environment. */
  #imports() {
    let words = new Uint32Array(0); // of the memory; a new array where that has grown
    const put = (at, value) => {
      if (words.length === 0) words = new Uint32Array(this.exports.memory.buffer);
      words[at / 4] = value;
    };
    const wasi = {
      clock_time_get: (_id, _precision, at) => {
        const nanoseconds = Math.round(performance.now() * 1e6);
        put(at, nanoseconds % 2 ** 32);
        put(at + 4, Math.floor(nanoseconds / 2 ** 32));
        return WASI_OK;
      },
      random_get: (at, size) => {
        crypto.getRandomValues(new Uint8Array(this.exports.memory.buffer, at, size));
        return WASI_OK;
      },
      environ_sizes_get: (count, size) => {
        put(count, 0);
        put(size, 0);
        return WASI_OK;
      },
      environ_get: () => WASI_OK,
      proc_exit: (code) => {
        throw new LabError("crash", `the emulator has ended with code ${code}`);
      },
    };
    const refuse = { get: (functions, name) => functions[name] ?? (() => WASI_NO) };
    return {
      wasi_snapshot_preview1: new Proxy(wasi, refuse),
      lab: { progress: (done, all) => (this.progress?.(done, all) ? 1 : 0) },
    };
  }

  // ---- memory ----

  #text(at) {
    const memory = new Uint8Array(this.exports.memory.buffer);
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at)));
  }

  #fail() {
    const { exports } = this;
    const kind = this.#text(exports.lab_error_kind()).toLowerCase();
    throw new LabError(kind, this.#text(exports.lab_error()));
  }

  #check(code) {
    if (code) this.#fail();
  }

  #result() {
    const at = this.exports.lab_result();
    const size = this.exports.lab_result_bytes();
    const bytes = new Uint8Array(this.exports.memory.buffer, at, size);
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** Calls `use` with the addresses of copies of arrays and NUL-terminated texts; null: 0. */
  #with(values, use) {
    const places = [];
    try {
      for (const value of values) {
        const bytes =
          typeof value === "string"
            ? new TextEncoder().encode(`${value}\0`)
            : value && new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
        const at = bytes ? this.exports.lab_alloc(bytes.length) : 0;
        if (bytes && !at) throw new LabError("memory", `out of memory: ${bytes.length} bytes`);
        places.push(at);
        if (bytes) new Uint8Array(this.exports.memory.buffer).set(bytes, at);
      }
      return use(...places);
    } finally {
      for (const at of places) if (at) this.exports.lab_free(at);
    }
  }

  // ---- the session ----

  /** Frees the PTX, the buffers and the launch. */
  reset() {
    this.exports.lab_reset();
  }

  /** Takes a PTX text; module variables have their initial values. @param {string} ptx */
  load(ptx) {
    const bytes = new TextEncoder().encode(ptx);
    this.#with([bytes], (at) => this.#check(this.exports.lab_load(at, bytes.length)));
  }

  /**
   * What the source says of the PTX's arrays in shared memory.
   * @param {{name: string, element: number, columns: number, rows?: number}[]} arrays
   */
  arrays(arrays) {
    const lines = arrays.map(({ name, element, columns, rows = 0 }) => `${name} ${element} ${columns} ${rows}\n`);
    this.#with([lines.join("")], (at) => this.#check(this.exports.lab_arrays(at)));
  }

  /** @returns {{name: string, parameters: Parameter[], sharedBytes: number, cooperative: boolean, registers: number}[]} */
  entries() {
    this.#check(this.exports.lab_entries());
    return this.#result();
  }

  // ---- buffers ----

  /**
   * A new buffer of zeros. @param {number} bytes
   * @param {"in"|"out"|"inout"|"work"} access "work": contents start as NaN, and are not kept
   * @returns {number} its number, counted from 0
   */
  buffer(bytes, access = "inout") {
    const index = this.exports.lab_buffer(bytes, ACCESS[access]);
    if (index < 0) this.#fail();
    return index;
  }

  /** The buffer's memory, until the next call that may allocate: copy what you keep. */
  bytes(index) {
    const at = this.exports.lab_buffer_at(index);
    if (!at) throw new LabError("value", `there is no buffer ${index}`);
    return new Uint8Array(this.exports.memory.buffer, at, this.exports.lab_buffer_bytes(index));
  }

  /**
   * @param {number} index
   * @param {string} type "f32", "f16", "bf16", "f64", "s32", "u8", ...
   * @param {"constant"|"index"|"random"} pattern low; low + index * high; random from low to high
   */
  fill(index, type, pattern, { seed = 0, low, high } = {}) {
    const isFloat = type.includes("f");
    const from = low ?? (pattern === "random" && isFloat ? -1 : 0);
    const to = high ?? (pattern === "random" && !isFloat ? 9 : 1);
    this.#with([type], (at) =>
      this.#check(this.exports.lab_fill(index, at, PATTERNS[pattern], seed, from, to)),
    );
  }

  /** How hazards name the buffer's elements. @param {{name: string, element: number, columns?: number}} as */
  name(index, { name, element, columns = 0 }) {
    this.#with([name], (at) =>
      this.#check(this.exports.lab_name_buffer(index, at, element, columns)),
    );
  }

  dropBuffers() {
    this.exports.lab_drop_buffers();
  }

  // ---- launches ----

  /**
   * Makes the job one launch. Run it, then launch the next one: buffers and module variables stay.
   * @param {{entry?: string|null, grid: number[], block: number[], cluster?: number[],
   *   cooperative?: boolean, sharedBytes?: number, args: Argument[]}} launch
   */
  launch({ entry = null, grid, block, cluster = [0, 0, 0], cooperative = false, sharedBytes = 0, args }) {
    const three = (numbers) => [0, 1, 2].map((k) => numbers[k] ?? 1);
    const shape = Uint32Array.from([...three(grid), ...three(block), ...cluster]);
    this.#with([entry, shape], (name, at) =>
      this.#check(this.exports.lab_launch(name, at, cooperative ? 1 : 0, sharedBytes)),
    );
    const all = this.entries();
    const { parameters } = entry === null ? all[0] : all.find(({ name }) => name === entry);
    if (args.length !== parameters.length)
      throw new LabError("value", `the kernel has ${parameters.length} parameters, not ${args.length}`);
    args.forEach((argument, k) => this.#argument(k, argument, parameters[k]));
  }

  #argument(number, argument, parameter) {
    if ("buffer" in argument) {
      const { buffer, offset = 0 } = argument;
      this.#check(this.exports.lab_argument_buffer(number, buffer, offset));
      return;
    }
    if (argument.tensor) return void this.#tensor(number, argument.tensor);
    const bytes = argument.bytes ?? encode(parameter, argument.value);
    this.#with([bytes], (at) =>
      this.#check(this.exports.lab_argument_bytes(number, at, bytes.length)),
    );
  }

  #tensor(number, tensor) {
    const { buffer, offset = 0, type, shape, swizzle, fill } = tensor;
    const { exports } = this;
    const last = [swizzleBytes(swizzle), fillsNan(fill)];
    this.#with([type, dimensionsOf(tensor)], (...at) =>
      this.#check(exports.lab_argument_tensor(number, buffer, offset, at[0], shape.length, at[1], ...last)),
    );
  }

  /** The table of variants: csrc/kernels/variants.toml. */
  variants() {
    this.#check(this.exports.lab_variants());
    return this.#result();
  }

  /** The file name, without ".ptx", of a variant's PTX. */
  image({ op, variant, dtype, params }) {
    this.#with([op, variant, dtype, settingsText(params)], (...at) =>
      this.#check(this.exports.lab_image(...at)),
    );
    return this.#result();
  }

  /**
   * Makes the job the launches of a variant, and its buffers in place of all others. Load the PTX
   * of its image before the run.
   * @param {{op: string, variant: string, dtype: string, params?: object,
   *   sizes: {m: number, n: number, k: number} | {rows: number, cols: number} | {n: number}}} plan
   */
  plan({ op, variant, dtype, params, sizes }) {
    const { m, n, k, rows, cols } = sizes;
    const numbers = Float64Array.from(
      op === "gemm" ? [m, n, k] : op === "transpose" ? [rows, cols, 0] : [n, 0, 0],
    );
    this.#with([op, variant, dtype, settingsText(params), numbers], (...at) =>
      this.#check(this.exports.lab_plan(...at)),
    );
    return this.#result();
  }

  /**
   * Runs the job.
   * @param {{trace?: boolean, hazards?: boolean, equalWrites?: boolean, byInstruction?: boolean,
   *   maxInstructions?: number, blocks?: number[]}} [options]
   * @returns {{milliseconds: number, printed: string, lost: number, trace?: object}}
   */
  run({ maxInstructions = 0, blocks, ...wanted } = {}) {
    let flags = 0;
    for (const [name, bit] of Object.entries(RUN_FLAGS)) if (wanted[name]) flags |= bit;
    const numbers = blocks && Float64Array.from(blocks);
    this.#with([numbers], (at) =>
      this.#check(this.exports.lab_run(flags, maxInstructions, at, blocks?.length ?? 0)),
    );
    return this.#result();
  }

  /**
   * The same run, and its recording: `steps` steps from `first` on, of some blocks and warps.
   * @param {{first?: number, steps?: number, maxBytes?: number, blocks?: number[], warps?: number[]}} window
   * @param {object} [options] of run
   * @returns {{recording: Uint8Array, milliseconds: number, printed: string, trace?: object}}
   */
  record(window, options = {}) {
    const { first = 0, steps = 100_000, maxBytes = 64 << 20, blocks, warps } = window;
    const numbers = blocks && Float64Array.from(blocks);
    const chosen = warps && Uint32Array.from(warps);
    const { exports } = this;
    try {
      this.#with([numbers, chosen], (blocksAt, warpsAt) => {
        const [nBlocks, nWarps] = [blocks?.length ?? 0, warps?.length ?? 0];
        this.#check(exports.lab_record(first, steps, maxBytes, blocksAt, nBlocks, warpsAt, nWarps));
      });
      const result = this.run(options);
      const [at, size] = [exports.lab_recording(), exports.lab_recording_bytes()];
      return { ...result, recording: new Uint8Array(exports.memory.buffer, at, size).slice() };
    } finally {
      exports.lab_record(0, 0, 0, 0, 0, 0, 0);
    }
  }

  /** PTX of CUDA C++, by the page's own compiler. Its errors name file, line and column. */
  compile(source, name = "kernel.cu") {
    const bytes = new TextEncoder().encode(source);
    this.#with([name, bytes], (...at) =>
      this.#check(this.exports.lab_compile_source(...at, bytes.length)),
    );
    return this.#text(this.exports.lab_result());
  }

  // ---- the bank model ----

  /**
   * What one request of a warp costs.
   * @param {{addresses: ArrayLike<number>, active?: number, width?: number,
   *   kind?: "load"|"store"|"atomic"|"ldmatrix"|"stmatrix"}} request
   */
  banks({ addresses, active = 0xffffffff, width = 4, kind = "load" }) {
    const from = new Float64Array(LANES);
    for (let lane = 0; lane < LANES; lane++) from[lane] = addresses[lane] ?? 0;
    const room = new Int32Array(BANK_NUMBERS);
    return this.#with([from, room], (at, to) => {
      this.#check(this.exports.lab_banks(at, active, width, BANK_KINDS[kind], to));
      const found = new Int32Array(this.exports.memory.buffer, to, BANK_NUMBERS).slice();
      const [wavefronts, ideal, groupLanes, sectors, idealSectors] = found;
      const wavefrontOf = Array.from(found.subarray(BANK_NUMBERS - LANES));
      return { wavefronts, ideal, groupLanes, sectors, idealSectors, wavefrontOf };
    });
  }

  /**
   * Words: why the first request costs what it costs (empty if no lane is active), and a layout of
   * the array that suits all of them (null: nothing is known of it).
   * @param {{addresses: ArrayLike<number>, active?: number, width?: number, kind?: string,
   *   wavefronts?: number, ideal?: number}[]} requests of one width and kind; counts: as `banks` has them
   * @param {{name: string, at: number, bytes: number, element: number, columns: number, rows?: number} | null} [array]
   */
  explain(requests, array = null) {
    const { width = 4, kind = "load" } = requests[0];
    const addresses = Float64Array.from(requests.flatMap((one) => Array.from({ length: LANES }, (_, lane) => one.addresses[lane] ?? 0)));
    const numbers = Uint32Array.from(
      requests.flatMap((one) => {
        const { wavefronts, ideal } = "wavefronts" in one ? one : this.banks(one);
        return [one.active ?? 0xffffffff, wavefronts, ideal];
      }),
    );
    const shape = Float64Array.from(array ? [array.at, array.bytes, array.element, array.columns, array.rows ?? 0] : [0, 0, 0, 0, 0]);
    this.#with([kind, addresses, numbers, array && array.name, shape], (op, at, numbersAt, name, shapeAt) =>
      this.#check(this.exports.lab_explain(op, width, at, numbersAt, requests.length, name, shapeAt)),
    );
    return this.#result();
  }
}
