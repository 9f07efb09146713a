// Values in words: bits of a register or of memory, by their PTX type.

const FLOAT_BITS = new DataView(new ArrayBuffer(8));

/** A number from the bits of a 16-bit float with `fraction` bits below the point. */
function small(bits, fraction) {
  const exponentBits = 15 - fraction;
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> fraction) & (2 ** exponentBits - 1);
  const rest = (bits & (2 ** fraction - 1)) / 2 ** fraction;
  if (exponent === 2 ** exponentBits - 1) return rest ? NaN : sign * Infinity;
  return exponent ? sign * (1 + rest) * 2 ** (exponent - bias) : sign * rest * 2 ** (1 - bias);
}

function real(number, digits) {
  if (Object.is(number, -0)) return "-0";
  if (Number.isInteger(number) && Math.abs(number) < 1e9) return `${number}`;
  return Number.isFinite(number) ? `${Number(number.toPrecision(digits))}`
                                 : `${number}`.replace("Infinity", "inf");
}

const hex = (bits, digits) => `0x${bits.toString(16).padStart(digits, "0")}`;

const WORD_TYPES = {
  f32: (bits) => {
    FLOAT_BITS.setUint32(0, bits);
    return real(FLOAT_BITS.getFloat32(0), 7);
  },
  f16: (bits) => real(small(bits & 0xffff, 10), 4),
  bf16: (bits) => real(small(bits & 0xffff, 7), 3),
  f16x2: (bits) => `${WORD_TYPES.f16(bits)}, ${WORD_TYPES.f16(bits >>> 16)}`,
  bf16x2: (bits) => `${WORD_TYPES.bf16(bits)}, ${WORD_TYPES.bf16(bits >>> 16)}`,
  tf32: (bits) => WORD_TYPES.f32(bits),
  s32: (bits) => `${bits | 0}`,
  u32: (bits) => `${bits}`,
  s16: (bits) => `${(bits << 16) >> 16}`,
  u16: (bits) => `${bits & 0xffff}`,
  s8: (bits) => `${(bits << 24) >> 24}`,
  u8: (bits) => `${bits & 0xff}`,
  b16: (bits) => hex(bits & 0xffff, 4),
  b8: (bits) => hex(bits & 0xff, 2),
  pred: (bits) => (bits & 1 ? "true" : "false"),
};

/** What a small integer is: 7; what a large pattern is: 0x3f800000. */
function untyped(bits) {
  const signed = bits | 0;
  return Math.abs(signed) < 1 << 20 ? `${signed}` : hex(bits, 8);
}

function wide(type, low, high) {
  if (type === "f64") {
    FLOAT_BITS.setUint32(0, high);
    FLOAT_BITS.setUint32(4, low);
    return real(FLOAT_BITS.getFloat64(0), 12);
  }
  const bits = (BigInt(high) << 32n) | BigInt(low);
  if (type === "s64") return `${BigInt.asIntN(64, bits)}`;
  return bits < 1n << 32n ? `${bits}` : hex(bits, 1);
}

/**
 * @param {ArrayLike<number>} words low word first @param {string} type PTX type without its point
 */
export function format(words, type) {
  if (words.length === 1) return (WORD_TYPES[type] ?? untyped)(words[0]);
  if (words.length === 2) return wide(type, words[0], words[1]);
  return `0x${Array.from(words, (word) => word.toString(16).padStart(8, "0")).reverse().join("_")}`;
}

/** The 32 values of a register's bits. */
export function values(bits, type) {
  const per = bits.length / 32;
  return Array.from(
    {length: 32}, (_, lane) => format(bits.subarray(lane * per, lane * per + per), type)
  );
}

/** The values of the lanes in a few words: "all 7", "0, 1, 2 ... 31", "0.5, 0.25 ... ". */
export function summary(texts, lanes) {
  const shown = lanes.map((lane) => texts[lane]).filter((text) => text !== "unset");
  if (!shown.length) return "unset";
  if (shown.every((text) => text === shown[0]))
    return shown.length > 1 ? `${shown[0]} in all ${shown.length}` : shown[0];
  const numbers = shown.map(Number);
  const stride = numbers[1] - numbers[0];
  const isEven = numbers.every((n, i) => Number.isInteger(n) && n === numbers[0] + i * stride);
  if (isEven && shown.length > 4) return `${shown[0]}, ${shown[1]}, ${shown[2]} … ${shown.at(-1)}`;
  const few = shown.slice(0, 5).join(", ");
  return shown.length > 5 ? `${few}, …` : few;
}

/** A PTX type's bytes. */
export function typeBytes(type) {
  const bits = /^[a-z]+?f?(8|16|32|64|128)(x2)?$/.exec(type ?? "");
  return bits ? (Number(bits[1]) * (bits[2] ? 2 : 1)) / 8 : 4;
}

const OF_DTYPE = {
  float32: "f32",
  float64: "f64",
  float16: "f16",
  bfloat16: "bf16",
  int32: "s32",
  int64: "s64"
};
const OPAQUE = /^b(16|32|64)$/;
const MIXED =
  /^(setp|set|selp|cvt|cvta|mma|wmma|wgmma|ld|st|atom|red|shfl|mul\.wide|mad\.wide)\b/;  // operands
                                                                                         // of
                                                                                         // several
                                                                                         // types

/** The opcode with all that follows its points: "fma.rn.f32" of "@%p1 fma.rn.f32 %f1, ...". */
export function fullOpcode({text}) {
  return text.replace(/^@!?[%\w]+\s+/, "").split(/\s/, 1)[0].replace(/;$/, "");
}

/** The type at the end of an opcode: "f32" of "fma.rn.f32". */
function typeOf(opcode) {
  const parts = opcode.split(".").slice(1);
  return parts.reverse().find((part) => /^(f|bf|tf|s|u|b)\d+(x2)?$/.test(part)) ?? null;
}

/**
 * The type to show each register by. nvcc declares floats as .b32, so the instructions that read
 * and write a register decide: arithmetic tells the type, moves and stores do not.
 */
export function registerTypes(recording) {
  const {header} = recording;
  const votes = header.registers.map(() => ({}));
  const vote = (register, type) => (votes[register][type] = (votes[register][type] ?? 0) + 1);
  for (const instruction of header.instructions) {
    const opcode = fullOpcode(instruction);
    if (MIXED.test(opcode)) continue;
    const type = typeOf(opcode);
    if (!type || OPAQUE.test(type)) continue;
    for (const register of[...instruction.reads, ...instruction.writes]) vote(register, type);
  }
  voteByMemory(recording, vote);
  return header.registers.map(({ type, size, as }, i) => {
    if (as && !OPAQUE.test(as)) return as;
    const declared = type.replace(/^\./, "");
    if (!OPAQUE.test(declared)) return declared;
    const [best] = Object.entries(votes[i]).sort((a, b) => b[1] - a[1]).map(([name]) => name);
    return best && typeBytes(best) === Math.max(size, 2) ? best : declared;
  });
}

/** What global loads and stores move has the type of their array. */
function voteByMemory(recording, vote) {
  const {header, columns} = recording;
  const known = new Set();
  for (let i = 0; i < columns.access_memory.length; i++) {
    const index = columns.step_instruction[recording.accessSteps[i]];
    const instruction = header.instructions[index];
    if (known.has(index)) continue;
    known.add(index);
    const opcode = fullOpcode(instruction);
    const type = OF_DTYPE[arrayOf(recording, recording.access(i))?.dtype];
    if (!type || typeBytes(type) !== typeBytes(typeOf(opcode))) continue;
    if (/^ld/.test(opcode))
      for (const register of instruction.writes) vote(register, type);
    if (/^st/.test(opcode)) vote(instruction.reads.at(-1), type);
  }
}

/** The argument array that an access to global memory is in, or null. */
export function arrayOf({header}, access) {
  const {arrays = [], memories} = header;
  if (access.memory !== null) return arrays[memories[access.memory].array] ?? null;
  const lane = Math.clz32(access.active & -access.active) ^ 31;
  const region = Math.floor((access.addresses[lane] ?? 0) / 2 ** 40);
  return arrays[region - header.first_array] ?? null;
}
