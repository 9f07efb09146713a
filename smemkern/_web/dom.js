// Small helpers: elements, and words for numbers and lanes. Text goes into pages as text only.

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {object} attributes properties begin with a point: {".value": 3} */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("."))
      element[name.slice(1)] = value;
    else if (typeof value === "function")
      element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** "1 wavefront", "2 wavefronts" */
export function many(count, noun) {
  return `${count.toLocaleString("en").replaceAll(",", "\u2009")} ${noun}${count === 1 ? "" : "s"}`;
}

/** "0–3, 7" of ascending numbers; at most `most` runs. */
export function runs(numbers, most = 6) {
  const found = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] + 1 === number)
      last[1] = number;
    else
      found.push([number, number]);
  }
  const texts = found.slice(0, most).map(
    ([a, b]) =>
      (a === b ? `${a}`
         : b === a + 1 ? `${a}, ${b}`
                       : `${a}–${b}`)
  );
  return texts.join(", ") + (found.length > most ? " …" : "");
}

/** "lane 3", "lanes 0–31" */
export function lanesText(lanes) {
  return `lane${lanes.length === 1 ? "" : "s"} ${runs(lanes)}`;
}

/** Calls draw when the element's width changes. Returns a function that stops it. */
export function onResize(element, draw) {
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    draw();
  });
  observer.observe(element);
  return () => observer.disconnect();
}

/** The colours of the theme, for canvases. */
export function theme(element) {
  const style = getComputedStyle(element);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

/** A canvas's context, scaled for the screen. */
export function context(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const drawing = canvas.getContext("2d");
  drawing.scale(ratio, ratio);
  return drawing;
}
