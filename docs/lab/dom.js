// Builds elements. Text always becomes a text node, so nothing that a visitor types or a link
// carries is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined));
  return element;
}

/** An HTML element: h("p", {class: "dim"}, "text", child). */
export function h(name, attributes = {}, ...children) {
  return put(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return put(document.createElementNS(SVG, name), attributes, children);
}

/** Text in which `words in backquotes` are code. */
export function prose(text) {
  return String(text)
    .split("`")
    .map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

/** A select with [value, text] or plain values. */
export function select(options, value, onchange, attributes = {}) {
  const made = options.map((option) => {
    const [own, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: own, selected: String(own) === String(value) }, String(text));
  });
  return h("select", { onchange, ...attributes }, made);
}

export const range = (n) => Array.from({ length: n }, (_, i) => i);

export const many = (n, one, more = `${one}s`) => `${number(n)} ${n === 1 ? one : more}`;

/** 12345 as "12 345", with a thin space that does not break. */
export function number(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
