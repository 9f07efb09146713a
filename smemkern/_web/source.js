// The source, with the current line. A click on a number runs to that line.

import {el, many} from "./dom.js";
import {fileName, position} from "./steps.js";

const KEYWORDS =
  `const|constexpr|volatile|unsigned|signed|int|float|double|half|char|short|long|void
  |bool|auto|struct|template|typename|for|if|else|while|do|return|extern|static|inline
  |threadIdx|blockIdx|blockDim|gridDim`.replace(/\s/g, "");
const OPCODE = "(^\\s*[.@]?[a-z][\\w.:]*(?=\\s))";  // of PTX
const WORDS = new RegExp(
  `(//.*$|/\\*.*?\\*/)|("(?:[^"\\\\]|\\\\.)*")|\\b(__\\w+__|${KEYWORDS})\\b|${OPCODE}`, "g"
);

export class SourceView {
  /** @param {(file: number | "ptx", line: number) => void} onLine */
  constructor(container, recording, steps, onLine) {
    this.recording = recording;
    this.onLine = onLine;
    this.files = this.listFiles();
    this.marks = this.costs(steps);
    this.tabs = el("div", {class: "tabs", role: "tablist", "aria-label": "Source files"});
    this.box = el("div", {class: "code", tabindex: 0, role: "region", "aria-label": "Source"});
    this.note = el("p", {class: "legend"});
    this.file = null;
    this.chosen = null;  // a tab that the reader chose
    this.tables = new Map();
    container.append(this.tabs, this.box, this.note);
    for (const {id, name} of this.files) {
      this.tabs.append(el(
        "button", {type: "button", role: "tab", "data-file": id, click: () => this.choose(id)}, name
      ));
    }
    this.tabs.hidden = this.files.length < 2;
  }

  listFiles() {
    const {header} = this.recording;
    const used = new Set(header.instructions.map((one) => position(this.recording, one)?.[0]));
    const files =
      header.files
        .map(
          ({name, text}, id) =>
            ({id, name: name.split("/").at(-1), lines: text?.replace(/\n$/, "").split("\n")})
        )
        .filter(({id, lines}) => lines && used.has(id));
    const ptx = header.ptx ? header.ptx.split("\n") : this.listing();
    return [...files, {id: "ptx", name: "PTX", lines: ptx}];
  }

  /** Without the text of the PTX: its instructions. */
  listing() {
    const lines = [];
    for (const {text, ptx_line} of this.recording.header.instructions)
      lines[ptx_line - 1] = `    ${text}`;
    return Array.from(lines, (line) => line ?? "");
  }

  /** The conflicts of each line, by file and line. */
  costs(steps) {
    const marks = new Map();
    const {recording} = this;
    for (const one of recording.conflicts()) {
      const instruction = recording.instruction(one.k);
      const place = position(recording, instruction);
      for (const key of [place?.join(":"), `ptx:${instruction.ptx_line}`]) {
        if (!key) continue;
        const mark = marks.get(key) ?? {cost: 0, ideal: 0, hazards: []};
        marks.set(key, {...mark, cost: mark.cost + one.cost, ideal: mark.ideal + one.ideal});
      }
    }
    for (const hazard of steps.hazards) {
      for (const party of hazard.parties) {
        const k = steps.ofParty(party);
        const key = k === null ? null : position(recording, recording.instruction(k))?.join(":");
        if (!key) continue;
        const mark = marks.get(key) ?? {cost: 0, ideal: 0, hazards: []};
        marks.set(key, {...mark, hazards: [...mark.hazards, hazard.message ?? hazard.kind]});
      }
    }
    return marks;
  }

  choose(id) {
    this.chosen = id;
    this.open(id);
    this.highlight();
  }

  open(id) {
    if (this.file === id) return;
    this.file = id;
    if (!this.tables.has(id))
      this.tables.set(id, this.table(this.files.find((file) => file.id === id)));
    this.box.replaceChildren(this.tables.get(id));
    for (const tab of this.tabs.children)
      tab.setAttribute("aria-selected", tab.dataset.file === String(id));
  }

  table({id, lines}) {
    return el("div", {class: "lines"}, ...lines.map((text, i) => this.line(id, i + 1, text)));
  }

  line(id, number, text) {
    const mark = this.marks.get(`${id}:${number}`);
    const code = el("code", {});
    paint(code, text);
    return el(
      "div",
      {class: `line${mark?.ideal ? " costly" : ""}`, "data-line": number},
      el(
        "button",
        {
          type: "button",
          class: "number",
          title: `Run to line ${number}`,
          "aria-label": `Run to line ${number}`,
          click: () => this.onLine(id, number),
          tabindex: -1
        },
        `${number}`
      ),
      this.badge(mark),
      code,
    );
  }

  badge(mark) {
    if (!mark) return el("span", {class: "badge"});
    const times = mark.ideal ? `×${Number((mark.cost / mark.ideal).toFixed(1))}` : "";
    const words = [
      mark.ideal ? `${many(mark.cost, "wavefront")}, the fewest possible ${mark.ideal}` : "",
      ...mark.hazards
    ];
    return el(
      "span",
      {class: "badge", title: words.filter(Boolean).join("\n")},
      `${mark.hazards.length ? "⚠" : ""}${times}`
    );
  }

  /** Shows the line of an instruction. */
  show(instruction) {
    this.instruction = instruction;
    const place = position(this.recording, instruction);
    const has = place && this.files.some(({id}) => id === place[0]);
    const own = has ? place[0] : "ptx";
    const stay = this.chosen === "ptx" || (!instruction && this.file !== null);
    this.open(stay ? (this.chosen ?? this.file) : own);
    this.highlight();
  }

  highlight() {
    this.box.querySelector(".current")?.classList.remove("current");
    this.box.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const place = position(this.recording, this.instruction);
    const line = this.file === "ptx" ? this.instruction?.ptx_line
      : place?.[0] === this.file     ? place[1]
                                     : null;
    const row = line ? this.tables.get(this.file).children[line - 1] : null;
    this.note.textContent = this.inlined(place);
    if (!row) return;
    row.classList.add("current");
    row.setAttribute("aria-current", "true");
    const {top, bottom} = row.getBoundingClientRect();
    const box = this.box.getBoundingClientRect();
    if (top < box.top + 20 || bottom > box.bottom - 20)
      this.box.scrollTop += top - box.top - box.height / 3;
  }

  /** Where an instruction of inlined code really is. */
  inlined(place) {
    const own = this.instruction;
    if (!own || !place || (own.file === place[0] && own.line === place[1])) return "";
    return `In ${fileName(this.recording, own.file)}:${own.line}, called from this line.`;
  }
}

/** Adds a line's text, with comments, strings and keywords in elements of their own. */
function paint(code, text) {
  let end = 0;
  for (const match of text.matchAll(WORDS)) {
    const [all, comment, string, keyword] = match;
    if (!all) continue;
    code.append(
      text.slice(end, match.index),
      el(
        "span",
        {class: comment ? "comment"
           : string     ? "string"
           : keyword    ? "keyword"
                        : "op"},
        all
      )
    );
    end = match.index + all.length;
  }
  code.append(text.slice(end) || (end ? "" : " "));
}
