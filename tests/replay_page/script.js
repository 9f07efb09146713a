const asked = JSON.parse(document.getElementById("asked").textContent);
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
let told;
try {
  told = ask(asked);
} catch (error) {
  told = {failed: `${error}\n${error.stack}`};
}
document.body.replaceChildren(
  Object.assign(document.createElement("pre"), {textContent: JSON.stringify(told)})
);
