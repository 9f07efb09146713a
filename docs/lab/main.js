// The page: its parts, and which of them the address shows.
import { h } from "./dom.js";
import { Engine, inflate } from "./engine.js";
import { FirstExperiment, LAUNCH, STAGES } from "./first.js";
import { Gallery } from "./gallery.js";
import { Explorer } from "./explorer.js";
import { Exercises } from "./exercises.js";
import { Workbench } from "./workbench.js";
import { contentOf, fragmentOf } from "./share.js";
import { Layout, asked, pattern, requestOf } from "./layout.js";
import { galleryOf } from "./images.js";

const embedded = (id) => document.getElementById(id)?.textContent.trim() ?? "";

/** Views by the first word of the address after #. */
class Page {
  constructor() {
    this.engine = new Engine(embedded("worker"), inflate(embedded("module")));
    const packed = embedded("gallery");
    const open = (content) => this.open(content);
    this.first = new FirstExperiment({ engine: this.engine, open });
    this.gallery = packed ? new Gallery({ engine: this.engine, data: galleryOf(packed), open }) : null;
    this.bench = new Workbench({ engine: this.engine });
    this.explorer = new Explorer({ engine: this.engine });
    this.exercises = new Exercises({ engine: this.engine, list: JSON.parse(embedded("exercises") || "[]") });
    this.editor = this.#editor();
    this.main = document.querySelector("main");
    this.links = [...document.querySelectorAll("nav.views a")];
    this.bench.show({ source: STAGES.plain.source, launch: LAUNCH });
    addEventListener("hashchange", () => this.route());
  }

  #editor() {
    this.banner = h("div", {});
    return h(
      "section",
      { class: "editor" },
      h("h2", {}, "Editor"),
      this.banner,
      h("p", { class: "dim" }, "Write a kernel in CUDA C++ (the part of it that this page compiles) or paste PTX, say how to launch it, and run it. Ctrl+Enter runs; Escape, then Tab leaves the text."),
      this.bench.element,
    );
  }

  /** Shows a kernel in the editor. */
  open(content) {
    this.banner.replaceChildren();
    this.bench.show(content);
    this.opened = true;
    location.hash = "#edit";
    this.bench.run();
  }

  #show(name, element) {
    if (this.main.firstChild !== element) {
      this.main.replaceChildren(element);
      scrollTo(0, 0);
    }
    for (const link of this.links) link.setAttribute("aria-current", link.hash === `#${name}` ? "page" : "false");
  }

  async route() {
    const fragment = location.hash.slice(1) || embedded("shared");
    const [name, ...rest] = fragment.split(/[/?]/);
    if (/^v\d+=/.test(fragment)) return this.#shared(fragment);
    const query = fragment.includes("?") ? fragment.slice(fragment.indexOf("?") + 1) : "";
    if (name === "gallery" && this.gallery) {
      this.#show(name, this.gallery.element);
      return this.gallery.show(decodeURIComponent(rest.join("/")));
    }
    if (name === "edit") return this.#show(name, this.editor);
    if (name === "banks") {
      this.#show(name, this.explorer.element);
      return this.explorer.show(Object.fromEntries(new URLSearchParams(query)));
    }
    if (name === "exercises") {
      this.#show(name, this.exercises.element);
      return this.exercises.show(rest[0] ?? "");
    }
    this.#show("start", this.first.element);
    if (!this.first.now) return this.first.show("plain");
  }

  async #shared(fragment) {
    this.#show("edit", this.editor);
    try {
      const content = await contentOf(fragment);
      this.bench.show(content);
      this.banner.replaceChildren(h("p", { class: "verdict" }, "Somebody shared this kernel with you. It has just been run, in this page; change it and run it again."));
      await this.bench.run();
    } catch (error) {
      this.bench.show({ source: STAGES.plain.source, launch: LAUNCH });
      this.banner.replaceChildren(h("div", { class: "error", role: "alert" }, error.message));
    }
  }
}

export const page = new Page();
export const shown = page.route();
Object.assign(globalThis, { lab: { page, shown, parts: { Layout, asked, contentOf, fragmentOf, pattern, requestOf } } });
