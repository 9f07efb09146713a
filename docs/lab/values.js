// The types of arrays and scalars, and what fills them.
//
// An argument of a kernel is
//   {name, type, shape: [..], fill: "constant" | "range" | "random" | "data", value, low, high, seed, data}
//   {name, type, value}                        a scalar
// With `tensor: {box: [..], swizzle?, element_strides?, fill?}` the kernel is given a tensor map of
// the array, as smemkern.TensorMap has it; the emulator checks its numbers.
// `data` is base64 of the array's bytes. Exercises and shared links use the same form.

const MOST_BYTES = 256 * 2 ** 20;

class Float16 {
  static BYTES_PER_ELEMENT = 2;
}

// type: constructor, whether it is an integer, smallest and largest value
const TYPES = {
  float32: [Float32Array, false],
  float64: [Float64Array, false],
  float16: [Float16, false],
  int32: [Int32Array, true, -(2 ** 31), 2 ** 31 - 1],
  uint32: [Uint32Array, true, 0, 2 ** 32 - 1],
  int64: [BigInt64Array, true, -(2 ** 53), 2 ** 53],
  uint64: [BigUint64Array, true, 0, 2 ** 53],
  int16: [Int16Array, true, -(2 ** 15), 2 ** 15 - 1],
  uint16: [Uint16Array, true, 0, 2 ** 16 - 1],
  int8: [Int8Array, true, -128, 127],
  uint8: [Uint8Array, true, 0, 255],
};

export const typeNames = Object.keys(TYPES);
export const FILLS = ["constant", "range", "random", "data"];
export const isInteger = (type) => TYPES[type][1];
export const itemBytes = (type) => TYPES[type][0].BYTES_PER_ELEMENT;
export const lengthOf = (argument) => argument.shape.reduce((a, b) => a * b, 1);

/** The bits of a float16, rounded to nearest even. */
function halfBits(value) {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (Number.isNaN(size)) return 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  const exponent = Math.max(Math.floor(Math.log2(size || 2 ** -30)), -14);
  const steps = size / 2 ** (exponent - 10);
  let rounded = Math.floor(steps);
  const rest = steps - rounded;
  if (rest > 0.5 || (rest === 0.5 && rounded % 2)) rounded += 1;
  return sign | (exponent === -14 ? rounded : ((exponent + 14) << 10) + rounded);
}

/** The value of a float16's bits. */
function halfValue(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

function checkedShape(argument) {
  const shape = argument.shape;
  const right = Array.isArray(shape) && shape.length && shape.length <= 8;
  if (!right || !shape.every((n) => Number.isInteger(n) && n >= 0))
    throw Error(`${argument.name}: expected lengths, as in 64, 64`);
  if (lengthOf(argument) * itemBytes(argument.type) > MOST_BYTES)
    throw Error(`${argument.name}: ${lengthOf(argument)} elements take more than 256 MiB`);
}

function numberOf(argument, name, fallback) {
  const value = argument[name] ?? fallback;
  const [, integer, low, high] = TYPES[argument.type];
  const right = typeof value === "number" && !Number.isNaN(value);
  if (!right || (integer && !(Number.isInteger(value) && value >= low && value <= high)))
    throw Error(
      integer
        ? `${argument.name}: expected ${name} to be an integer from ${low} to ${high}, found ${value}`
        : `${argument.name}: expected ${name} to be a number, found ${value}`,
    );
  return value;
}

function mix(x) {
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return x ^ (x >>> 15);
}

/** Whole numbers from `low` to `high`: element i is a hash of the seed and i (csrc/lab/data.c). */
function randomNumbers(argument) {
  const low = numberOf(argument, "low", isInteger(argument.type) ? 0 : -8);
  const high = numberOf(argument, "high", isInteger(argument.type) ? 99 : 8);
  if (!(Number.isInteger(low) && Number.isInteger(high) && high >= low && high - low < 2 ** 32))
    throw Error(`${argument.name}: expected whole numbers with low <= high, found ${low} and ${high}`);
  const seed = argument.seed ?? 1;
  if (!Number.isInteger(seed) || seed < 0 || seed >= 2 ** 32)
    throw Error(`${argument.name}: expected a seed from 0 to 2^32 - 1, found ${seed}`);
  let next = 0;
  return () => {
    const hash = mix((mix(next++ ^ Math.imul(seed, 0x9e3779b9)) + seed) | 0) >>> 0;
    return low + (hash % (high - low + 1));
  };
}

function generator(argument) {
  if (argument.fill === "range") {
    let next = 0;
    return () => next++;
  }
  if (argument.fill === "random") return randomNumbers(argument);
  const value = numberOf(argument, "value", 0);
  return () => value;
}

/** Checks an argument. Throws an Error that names it. */
export function check(argument) {
  if (typeof argument !== "object" || argument === null || !(argument.type in TYPES))
    throw Error(`${argument?.name}: there is no type ${argument?.type}; use ${typeNames.join(", ")}`);
  if (!argument.shape) return void numberOf(argument, "value", 0);
  checkedShape(argument);
  if (!FILLS.includes(argument.fill))
    throw Error(`${argument.name}: there is no fill ${argument.fill}; use ${FILLS.join(", ")}`);
  if (argument.tensor !== undefined) checkTensor(argument);
}

function checkTensor({ name, tensor, shape }) {
  if (typeof tensor !== "object" || tensor === null) throw Error(`${name}: expected a tensor map with a box`);
  for (const [what, list] of [["box", tensor.box], ["element strides", tensor.element_strides ?? shape.map(() => 1)]])
    if (!Array.isArray(list) || list.length !== shape.length || !list.every((n) => Number.isInteger(n) && n >= 1))
      throw Error(`${name}: expected the ${what} as ${shape.length} positive integers, one per length of the array`);
}

/** The bytes of an array argument. */
export function bytesOf(argument) {
  check(argument);
  const length = lengthOf(argument);
  const made = new Uint8Array(length * itemBytes(argument.type));
  if (argument.fill === "data") {
    const data = Uint8Array.from(atob(argument.data ?? ""), (c) => c.charCodeAt(0));
    if (data.length !== made.length)
      throw Error(`${argument.name}: expected ${made.length} bytes of data, found ${data.length}`);
    return data;
  }
  const next = generator(argument);
  const items = arrayOf(argument.type, made.buffer);
  const big = items instanceof BigInt64Array || items instanceof BigUint64Array;
  const half = argument.type === "float16";
  for (let i = 0; i < length; i++) {
    const value = next();
    items[i] = big ? BigInt(value) : half ? halfBits(value) : value;
  }
  return made;
}

/** A typed array on a buffer; of float16, its bits. */
export function arrayOf(type, buffer) {
  return type === "float16" ? new Uint16Array(buffer) : new TYPES[type][0](buffer);
}

/** The elements of an array as numbers, from its bytes. */
export function elements(type, bytes) {
  const items = arrayOf(type, bytes.slice().buffer);
  return type === "float16" ? Array.from(items, halfValue) : items;
}

/** What an argument holds, in a few words. */
export function described(argument) {
  if (!argument.shape) return `${argument.type} ${argument.value}`;
  const fill = {
    constant: () => (argument.value ? `all ${argument.value}` : "zeros"),
    range: () => "0, 1, 2, …",
    random: () => `random, seed ${argument.seed ?? 1}`,
    data: () => "data of the link",
  }[argument.fill]();
  const map = argument.tensor ? `, as a tensor map with boxes of ${argument.tensor.box.join(" × ")}` : "";
  return `${argument.type}[${argument.shape.join(", ")}], ${fill}${map}`;
}
