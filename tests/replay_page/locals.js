function ask({data, steps}) {
  const recording = decode(bytesOf(data));
  const view = new ReplayView(document.getElementById("view"), recording);
  return steps.map((k) => {
    view.seek(k);
    const rows = [...view.root.querySelectorAll(".register-table")][0].querySelectorAll("tbody tr");
    const shown = [...rows].map((row) => row.querySelector("th").textContent.replace("● ", ""));
    const found = variables(recording, recording.warpAt(k), k);
    return {shown, found: Object.fromEntries(found.map(({name, texts}) => [name, texts]))};
  });
}
