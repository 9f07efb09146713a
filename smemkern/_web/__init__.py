"""The page of a recording: one document that steps to and fro in it, without a network.

The scripts are ES modules, one file per subject. `script` joins them to one text; docs/lab.html is
made of the same files.
"""

from __future__ import annotations

import base64
import re
import zlib
from html import escape
from importlib.resources import files

# In the order of their imports: a module comes behind those that it uses.
SCRIPTS = (
    *("recording.js", "values.js", "dom.js", "steps.js", "access.js", "lanes.js", "locals.js"),
    *(
        "source.js",
        "registers.js",
        "shared.js",
        "timeline.js",
        "findings.js",
        "now.js",
        "replay.js",
    ),
)
STYLES = ("theme.css", "replay.css")
HEIGHT = 1100  # of the frame in a notebook, in pixels

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[\w.]+\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:class|function|const)\b)", re.MULTILINE)
_COMMENT = re.compile(r"//|/\*|\*( |/|$)")  # a line of nothing else
_START = """
const held = document.getElementById("recording");
const settings = new URLSearchParams(location.hash.slice(1));
if (settings.has("theme")) document.documentElement.dataset.theme = settings.get("theme");
inflate(held.textContent)
  .then((bytes) => {
    const recording = decode(bytes);
    const start = settings.has("step") ? Number(settings.get("step")) - recording.first : undefined;
    window.replay = new ReplayView(document.getElementById("view"), recording, { start });
    if (settings.has("wavefront")) window.replay.setWave(Number(settings.get("wavefront")) - 1);
  })
  .catch((error) => {
    const text = `This recording cannot be shown: ${error.message}`;
    document.getElementById("view").textContent = text;
  });
"""
_UNPACK = """
const bytes = Uint8Array.from(atob("PACKED"), (c) => c.charCodeAt(0));
const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
new Response(stream).text().then((text) => {
  document.open();
  document.write(text);
  document.close();
});
"""
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


def read(name: str) -> str:
    """The text of a script or style of this package."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def script() -> str:
    """All modules as one, without imports and exports; their top-level names are unique.

    Comments and indentation are left out: a notebook keeps a page in each cell that shows one.
    """
    return "".join(_short(_EXPORT.sub("", _IMPORT.sub("", read(name)))) for name in SCRIPTS)


def _short(text: str) -> str:
    """The text without indentation, empty lines and lines of comments."""
    lines = (line.strip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not _COMMENT.match(line))


def page(recording: bytes, title: str) -> str:
    """A complete HTML document that shows the recording. It needs no other file and no network."""
    packed = base64.b64encode(zlib.compress(recording, 9)).decode()
    style = "body{margin:0;background:var(--bg)}\n" + "".join(_short(read(name)) for name in STYLES)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)} - smemkern replay</title>"
        f"<style>{style}</style></head>"
        '<body><main id="view"><noscript>This page needs JavaScript.</noscript></main>'
        f'<script type="application/octet-stream" id="recording">{packed}</script>'
        f'<script type="module">{script()}{_START}</script></body></html>\n'
    )


def frame(document: str, height: int = HEIGHT) -> str:
    """The page for a notebook's output cell. The frame keeps its styles and scripts to itself.

    A notebook keeps what its cells show, so the page is in it compressed, and unpacks itself.
    """
    packed = base64.b64encode(zlib.compress(document.encode(), 9)).decode()
    inside = f"<script>{_UNPACK.replace('PACKED', packed)}</script>"
    return (
        f'<iframe srcdoc="{escape(inside)}" sandbox="allow-scripts" title="Replay" '
        f'style="width:100%;height:{height}px;border:0"></iframe>'
    )
