"""Renders document nodes as HTML for notebooks, without scripts, web fonts or external URLs.

All text is escaped. Colours follow the theme that the page declares (JupyterLab, VS Code, common
documentation themes), else the reader's light or dark setting. The background is set too, so that
text stays readable if the theme was guessed wrong. The few !important rules override
JupyterLab's own table rules, which have higher specificity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .document import Facts, Heading, Listing, Node, Paragraph, Picture, Table
from .table import Bar, are_left, style_of

_LIGHT = (
    "color-scheme:light;--bg:#fff;--fg:#1d2530;--dim:#5d6979;--line:#e2e6ec;--soft:#f5f7f9;"
    "--bad:190,45,56;--good:#1d774f;--c1:#3d7ea6"
)
_DARK = (
    "color-scheme:dark;--bg:#15191f;--fg:#dde3ea;--dim:#95a1b0;--line:#2d343e;--soft:#1c222a;"
    "--bad:240,110,110;--good:#5fc496;--c1:#6fb1d8"
)
_LIGHT_THEMES = ("[data-jp-theme-light=true]", ".vscode-light", "[data-theme=light]")
_DARK_THEMES = (
    *("[data-jp-theme-light=false]", ".vscode-dark", "[data-theme=dark]"),
    "[data-md-color-scheme=slate]",
)


def _under(themes: Sequence[str]) -> str:
    return ",".join(f"{theme} .smk" for theme in themes)


STYLE = f"""
.smk{{{_LIGHT};font:14px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);
padding:10px 14px;box-sizing:border-box;text-align:left}}
@media(prefers-color-scheme:dark){{.smk{{{_DARK}}}}}
{_under(_LIGHT_THEMES)}{{{_LIGHT}}}
{_under(_DARK_THEMES)}{{{_DARK}}}
.smk .wide{{overflow-x:auto;border:1px solid var(--line);border-radius:7px;margin:8px 0;
width:fit-content;max-width:100%}}
.smk table{{border-collapse:collapse;border:0;margin:0;font-size:12.5px;color:var(--fg);
table-layout:auto!important}}
.smk tr,.smk tbody tr:nth-child(odd),.smk tbody tr:nth-child(even){{background:none}}
.smk tbody tr:hover{{background:var(--soft)}}
.smk th{{font-weight:600;color:var(--dim);text-align:right;padding:5px 9px;white-space:nowrap;
border:0;border-bottom:1px solid var(--line);background:var(--soft)}}
.smk td{{text-align:right;padding:2px 9px;border:0;white-space:nowrap;
font-variant-numeric:tabular-nums}}
.smk .left,.smk .facts-table th,.smk td.bar{{text-align:left!important}}
.smk td.left{{white-space:normal;max-width:64ch}}
.smk td.left:first-child{{white-space:nowrap}}.smk td.bar{{padding-right:12px}}
.smk .facts-table th{{background:none;border:0;padding:2px 9px;font-weight:500}}
.smk h4{{font-size:14px;font-weight:650;margin:6px 0;color:var(--fg)}}
.smk p{{margin:6px 0;max-width:100ch;color:var(--fg)}}
.smk pre{{font:12px/1.5 ui-monospace,monospace;color:var(--fg);background:none;margin:6px 0;
overflow-x:auto;white-space:pre}}
.smk .bad{{color:rgb(var(--bad))}}.smk .good{{color:var(--good)}}.smk .dim{{color:var(--dim)}}
.smk .strong{{font-weight:600}}
.smk span.bar{{display:inline-node;height:9px;background:var(--c1);border-radius:2px}}
.smk svg{{display:node;margin:10px 0 4px;max-width:100%;height:auto}}
.smk svg text{{font:9px ui-monospace,monospace;fill:var(--dim)}}
"""


def markup(nodes: Iterable[Node]) -> str:
    """A <div> with its own styles, for a notebook's output cell."""
    return f'<div class="smk"><style>{STYLE}</style>{"".join(map(_node, nodes))}</div>'


def _node(node: Node) -> str:
    if isinstance(node, Heading):
        return f"<h4>{escape(node.text)}</h4>"
    if isinstance(node, Paragraph):
        lines = escape(node.text).replace("\n", "<br>")
        return f"<p{_class(node.style)}>{lines}</p>"
    if isinstance(node, Listing):
        spans = (f"<span{_class(style_of(x))}>{escape(str(x))}</span>" for x in node.lines)
        return f"<pre>{chr(10).join(spans)}</pre>"
    if isinstance(node, Facts):
        rows = "".join(
            f'<tr><th scope="row">{escape(name)}</th>{_cell(value, True)}</tr>'
            for name, value in node.pairs
        )
        return f'<div class="wide"><table class="facts-table"><tbody>{rows}</tbody></table></div>'
    if isinstance(node, Picture):
        return node.svg
    return _table(node)


def _table(node: Table) -> str:
    left = are_left(len(node.header), node.rows)
    head = "".join(
        f"<th{_class('left' if to_left else '')}>{escape(name)}</th>"
        for name, to_left in zip(node.header, left, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row, left))}</tr>" for row in node.rows)
    rows = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{rows}</table></div>'


def _cell(cell: object, left: bool) -> str:
    classes = " ".join(filter(None, ("left" if left else "", style_of(cell))))
    if isinstance(cell, Bar):
        shown = f'<span class="bar" style="width:{100 * cell.share:.0f}px"></span>'
    else:
        shown = escape(str(cell)).replace("\n", "<br>")
    return f"<td{_class(classes)}>{shown}</td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
