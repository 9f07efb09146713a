function ask({data, hostile}) {
  const told = {};
  const recording = decode(bytesOf(data));
  const view = new ReplayView(document.getElementById("view"), recording);
  const $ = (selector) => view.root.querySelector(selector);
  const text = (selector) => $(selector)?.textContent ?? null;
  const press = (key, target = document.body) =>
    target.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const state = () => [view.k, view.wave];
  told.opening = {
    k: view.k,
    title: text(".now h3"),
    numbers: text(".numbers"),
    detail: text(".access .detail"),
    cure: text("p.cure"),
    line: text(".line.current .number"),
    cells: view.root.querySelectorAll("svg .cell").length,
    paths: view.root.querySelectorAll("svg .path").length
  };
  told.badges =
    [...view.root.querySelectorAll(".badge")].map((one) => one.textContent).filter(Boolean);
  told.waves =
    ["w", "w", "w", "W"].map((key) => (press(key), [view.wave, text(".access .detail")]));
  $(".access-picture").focus();
  told.lanes = ["ArrowDown", "ArrowDown"].map(
    (key) => (press(key, $(".access-picture")), text(".access .detail"))
  );
  told.walk = {};
  for (const [key, back] of
         [["n", "N"], ["i", "I"], ["b", "B"], ["c", "C"], ["w", "W"], [".", ","], [
           "ArrowRight",
           "ArrowLeft"
         ]]) {
    view.seek(0);
    const path = [state()];
    for (let i = 0; i < 4; i++) {
      press(key);
      path.push(state());
    }
    for (let i = 0; i < 4; i++) {
      press(back);
      path.push(state());
    }
    told.walk[key] = path;
  }
  view.seek(0);
  const click = (number) => { [...view.root.querySelectorAll(".number")].find((one) => one.textContent === `${number}`).click(); return [view.k, text(".status")]; };
  told.clicks = {forwards: click(6), again: click(6), backwards: click(4), never: click(2)};
  told.ends = ["End", "Home"].map((key) => (press(key), [view.k, text(".now h3")]));
  told.hazards = [...view.root.querySelectorAll(".card")]
                   .filter((one) => one.textContent.includes("Hazard"))
                   .flatMap(
                     (card) => [...card.querySelectorAll("button")].map(
                       (one) => (one.click(), [one.textContent, view.k])
                     )
                   );
  view.seek(5);
  told.other = ["]", "]", "["].map((key) => (press(key), view.warp));
  const time = $(".time-frame");
  told.time = ["Home", "ArrowRight", "PageDown", "End"].map(
    (key) =>
      (press(key, time),
       [view.k, time.getAttribute("aria-valuenow"), time.getAttribute("aria-valuetext")])
  );
  view.seek(view.opening());
  const grid = $(".shared-grid");
  told.grid = ["ArrowRight", "ArrowRight", "ArrowDown"].map(
    (key) => (press(key, grid), text(".shared .detail"))
  );
  const columns = $(".shared input[type=number]");
  columns.value = 16;
  columns.dispatchEvent(new Event("change"));
  told.columns = (press("ArrowDown", grid), text(".shared .detail"));
  told.help = (press("?"), [$("dialog").open, text("dialog")]);
  $("dialog").close();
  told.changed = [...view.root.querySelectorAll("tr.changed th")].map((one) => one.textContent);
  told.registers = [...view.root.querySelectorAll("tr.register")].map(
    (one) => [...one.children].map((cell) => cell.textContent)
  );
  told.named = [...view.root.querySelectorAll(
                  "button, input, select, [role=group], [role=slider], [role=img], [role=region]"
                )]
                 .filter(
                   (one) =>
                     !(one.getAttribute("aria-label") || one.textContent.trim() ||
                       one.closest("label") || one.title)
                 )
                 .map((one) => one.outerHTML);
  told.asked = performance.getEntriesByType("resource").map(({name}) => name);
  view.destroy();
  told.left = document.getElementById("view").children.length;
  return told;
}
