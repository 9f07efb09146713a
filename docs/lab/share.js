// Links that hold a kernel: lab.html#v1=<base64url of a deflated JSON document>
//
//   {"source", "file", "ptx", "kernel", "launch": {"grid", "block", "shared_bytes", "cluster"?,
//    "cooperative"?, "arguments": [as in values.js]}}
//
// smemkern/_cli/share.py writes the same. A link is untrusted: it is checked here, field by field,
// and its texts are only ever shown as text.
import { check } from "./values.js";

export const VERSION = "v1";
const MOST_TEXT = 16 * 2 ** 20; // bytes of an inflated document

const toUrl = (base64) => base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const fromUrl = (text) => text.replaceAll("-", "+").replaceAll("_", "/");

async function deflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function base64Of(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}

/** The fragment of a link, without #. */
export async function fragmentOf(content) {
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  return `${VERSION}=${toUrl(base64Of(await deflated(bytes)))}`;
}

export async function linkOf(content) {
  return `${location.href.split("#")[0]}#${await fragmentOf(content)}`;
}

/** Inflates at most MOST_TEXT bytes: a small link must not become a large document. */
async function inflated(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > MOST_TEXT) {
      await reader.cancel();
      throw Error("it holds more than 16 MiB");
    }
    parts.push(value);
  }
  return new Blob(parts).text();
}

function bytesFrom(text) {
  if (!/^[\w-]+$/.test(text)) throw Error("it has letters that no link has");
  const binary = atob(fromUrl(text));
  return Uint8Array.from(binary, (c) => c.charCodeAt(0));
}

function textField(document, name) {
  const value = document[name] ?? "";
  if (typeof value !== "string") throw Error(`${name} should be text`);
  return value;
}

function extentField(launch, name, most) {
  const value = launch[name];
  const right = Array.isArray(value) && value.length >= 1 && value.length <= 3;
  if (!right || !value.every((n) => Number.isInteger(n) && n >= 1 && n <= most))
    throw Error(`${name} should be one to three positive integers`);
  return [...value, 1, 1].slice(0, 3);
}

function launchField(launch) {
  if (typeof launch !== "object" || launch === null) throw Error("it has no launch");
  const shared = launch.shared_bytes ?? 0;
  if (!Number.isInteger(shared) || shared < 0 || shared > 232448)
    throw Error("shared_bytes should be an integer from 0 to 232448");
  if (!Array.isArray(launch.arguments) || launch.arguments.length > 64)
    throw Error("arguments should be a list of at most 64");
  for (const argument of launch.arguments) {
    check(argument);
    if (typeof (argument.name ?? "") !== "string") throw Error("the name of an argument should be text");
    if (argument.fill === "data" && typeof argument.data !== "string") throw Error(`${argument.name} has no data`);
  }
  return {
    grid: extentField(launch, "grid", 2 ** 31 - 1),
    block: extentField(launch, "block", 1024),
    shared_bytes: shared,
    cluster: launch.cluster ? extentField(launch, "cluster", 16) : undefined,
    cooperative: launch.cooperative === true || undefined,
    arguments: launch.arguments,
  };
}

/** Reads a fragment (without #). Throws an Error that says what is wrong with the link. */
export async function contentOf(fragment) {
  const [version, text = ""] = fragment.split("=", 2);
  if (version !== VERSION) throw Error(`This link has the format “${version.slice(0, 8)}”; this page reads ${VERSION}.`);
  try {
    const document = JSON.parse(await inflated(bytesFrom(text)));
    if (typeof document !== "object" || document === null || Array.isArray(document)) throw Error("it is no document");
    const content = {
      source: textField(document, "source"),
      file: textField(document, "file"),
      ptx: textField(document, "ptx"),
      kernel: textField(document, "kernel") || null,
      launch: launchField(document.launch),
    };
    if (!content.source && !content.ptx) throw Error("it has neither source nor PTX");
    return content;
  } catch (error) {
    throw Error(`This link is damaged or was not made by smemkern: ${error.message}.`, { cause: error });
  }
}
