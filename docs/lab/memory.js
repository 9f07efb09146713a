// What the browser keeps for this page. Pages from a folder may not be allowed any storage: then it
// lasts until the page is closed.

const PREFIX = "smemkern-lab:";
const here = new Map();

/** Keeps a value; returns whether it outlives the page. */
export function remember(name, value) {
  here.set(name, value);
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export function remembered(name, fallback) {
  if (here.has(name)) return here.get(name);
  try {
    const kept = JSON.parse(localStorage.getItem(PREFIX + name));
    return kept !== null && typeof kept === typeof fallback ? kept : fallback;
  } catch {
    return fallback;
  }
}
