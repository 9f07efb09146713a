const rgb = (text) => { const n = text.match(/[\d.]+/g).map(Number); return { c: n.slice(0, 3), a: n[3] ?? 1 }; };
const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const over = ({c, a}, below) => c.map((v, i) => v * a + below[i] * (1 - a));
function behind(element) {
  const layers = [];
  for (let one = element; one; one = one.parentElement) {
    if (one.tagName === "g" && one.querySelector(":scope > rect")) {
      const fill = getComputedStyle(one.querySelector(":scope > rect")).fill;
      if (fill !== "none") return rgb(fill).c;
    }
    const colour = rgb(getComputedStyle(one).backgroundColor);
    layers.push(colour);
    if (colour.a === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
}
function faint(root) {
  const found = [];
  for (const element of root.querySelectorAll("*")) {
    const own = [...element.childNodes]
                  .filter((node) => node.nodeType === 3 && node.data.trim())
                  .map((node) => node.data)
                  .join("");
    if (
      !own || !element.getClientRects().length ||
      element.closest("[aria-disabled=true], :disabled, option")
    )
      continue;
    const style = getComputedStyle(element);
    const ink = rgb(element instanceof SVGElement ? style.fill : style.color);
    const paper = behind(element);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    const has = ratio(over(ink, paper), paper);
    if (has < needed)
      found.push([
        element.tagName,
        element.className.baseVal ?? element.className,
        own.slice(0, 30),
        Number(has.toFixed(2))
      ]);
  }
  return found;
}
function canvasFaint(root) {
  const style = getComputedStyle(root);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const probe = document.body.appendChild(document.createElement("i"));
  const colour = (text) => { probe.style.color = text; return rgb(getComputedStyle(probe).color).c; };
  const found = [];
  const check = (ink, paper, needed, name) => { const has = ratio(colour(ink), colour(paper)); if (has < needed) found.push([name, has]); };
  for (let hue = 0; hue < 360; hue += 3)
    check(
      value("cell-fg"), `hsl(${hue} ${value("cell-s")} ${value("cell-l")})`, 4.5, `cell ${hue}`
    );
  check(value("cell-fg"), value("soft"), 4.5, "unwritten cell");
  check(value("on-accent"), value("accent"), 4.5, "touched cell");
  check(value("dim"), value("bg"), 4.5, "labels");
  for (const mark of ["bad", "time-step", "accent", "fg"]) check(value(mark), value("bg"), 3, mark);
  probe.remove();
  return found;
}
function ask({data, themes, hazard}) {
  const recording = decode(bytesOf(data));
  const view = new ReplayView(document.getElementById("view"), recording);
  const told = {};
  for (const theme of themes) {
    document.documentElement.dataset.theme = theme;
    view.redraw();
    told[theme] = {faint: faint(view.root), canvas: canvasFaint(view.root)};
    view.step("wavefront", 1);
    view.step("wavefront", 1);
    told[theme].faint.push(...faint(view.root));
    view.seek(2);
    told[theme].faint.push(...faint(view.root));
    view.seek(view.opening());
  }
  const wide = [...view.root.querySelectorAll("*")].filter(
    (one) => one.getBoundingClientRect().right > innerWidth + 1 &&
      !one.closest(".code, .access-picture, .shared-grid, .register-table, .sectors, .time-frame")
  );
  return {
    ...told,
    width: innerWidth,
    wide: wide.map((one) => one.outerHTML.slice(0, 120)),
    scroll: document.documentElement.scrollWidth,
    small: [...view.root.querySelectorAll(".bar button")]
             .filter((one) => one.getBoundingClientRect().height < 24)
             .length
  };
}
