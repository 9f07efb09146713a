function ask({data}) {
  const view = new ReplayView(document.getElementById("view"), decode(bytesOf(data)));
  return {
    images: document.querySelectorAll("img, script[src]").length,
    bold: view.root.querySelectorAll("h2 b, code b").length,
    heading: view.root.querySelector("h2").textContent
  };
}
