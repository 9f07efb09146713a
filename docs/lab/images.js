// The gallery's data: one deflate stream of JSON. Its PTX is packed as buildtools/lab_page.py says.
import { inflate } from "./engine.js";

const MISSING = /(%[a-z]+|\$L__tmp|\$L__info_string|\$L__BB\d+_|[+])`/g;

/** Numbers that are stored as differences: returns a function that gives the next difference. */
function differences(text) {
  const values = text.split(" ").map(Number);
  let at = 0;
  return () => values[at++];
}

/** The PTX of {text, places, order, numbers}. */
export function restored({ text, places, order, numbers }) {
  const next = Object.fromEntries(Object.entries(numbers).map(([kind, values]) => [kind, differences(values)]));
  const last = new Map();
  const numbered = text.replace(MISSING, (_, kind) => {
    const value = (last.get(kind) ?? 0) + next[kind.replace(/\d+/, "")]();
    last.set(kind, value);
    return kind + value;
  });
  const step = differences(order);
  let at = 0;
  return numbered.replace(/^@\n/gm, () => {
    at += step();
    return `\t.loc\t${places[at]}\n`;
  });
}

/** {images: [{op, variant, dtype, params, ptx, declared}], sources: {name: text}, mistakes: [...]} */
export async function galleryOf(base64) {
  const data = JSON.parse(new TextDecoder().decode(await inflate(base64)));
  for (const one of [...data.images, ...data.mistakes]) {
    const packed = one.ptx;
    let text = null;
    Object.defineProperty(one, "ptx", { get: () => (text ??= restored(packed)) });
  }
  return data;
}
