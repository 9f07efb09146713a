"""Renders a trace as self-contained HTML, without scripts, web fonts or external URLs.

`markup` is for notebooks; `page` is the same as a complete document. Source text, names and other
input are escaped. Colours are those of _render/html.py.
"""

from __future__ import annotations

import math
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from .._banks.pictures import bank_map
from .._render.html import STYLE
from .listing import Line, listing
from .rows import SharedRow, place

if TYPE_CHECKING:
    from .observe import Trace

_STYLE = f"""{STYLE}
.smk-page{{padding:16px 20px}}
.smk h1{{font-size:21px;margin:0 0 2px;font-weight:650}}
.smk h2{{font-size:15px;margin:26px 0 8px;font-weight:650}}
.smk h3{{font:600 13px ui-monospace,monospace;margin:16px 0 6px}}
.smk .sub{{color:var(--dim);margin:0 0 14px}}
.smk .facts{{display:grid;grid-template-columns:repeat(auto-fill,minmax(148px,1fr));gap:8px}}
.smk .fact{{background:var(--soft);border:1px solid var(--line);border-radius:7px;padding:7px 11px}}
.smk .fact b{{display:block;font-size:17px;font-weight:600;font-variant-numeric:tabular-nums}}
.smk .fact span{{color:var(--dim);font-size:12px}}
.smk .fact.bad b{{color:rgb(var(--bad))}}.smk .fact.good b{{color:var(--good)}}
.smk-page .wide,.smk-page table{{width:100%}}.smk-page td{{padding:1px 9px}}
.smk .code,.smk .note{{text-align:left!important}}
.smk .over th,.smk .gap td{{text-align:center!important}}
.smk .code{{font:12px/1.5 ui-monospace,monospace;white-space:pre;width:100%;
tab-size:4}}
.smk .no{{color:var(--dim);border-left:1px solid var(--line);font:12px ui-monospace,monospace}}
.smk .note{{color:rgb(var(--bad));white-space:normal}}.smk .note div{{max-width:56ch}}
.smk .over th+th,.smk .over+tr .edge{{border-left:1px solid var(--line)}}
.smk .gap td{{color:var(--dim);background:var(--soft)}}
.smk details{{border:1px solid var(--line);border-radius:7px;margin:6px 0;padding:7px 12px}}
.smk summary{{cursor:pointer}}
.smk summary code{{font-family:ui-monospace,monospace;font-size:12.5px;color:var(--fg);
background:none}}
.smk .hazard{{border-left:3px solid rgb(var(--bad));background:var(--soft);padding:6px 12px;
margin:6px 0;border-radius:0 7px 7px 0}}
.smk .opcodes{{columns:260px;column-gap:28px}}
.smk .opcode{{break-inside:avoid;display:flex;justify-content:space-between;gap:12px;
border-bottom:1px solid var(--line);padding:1px 0;font:12px/1.6 ui-monospace,monospace}}
.smk .foot{{color:var(--dim);font-size:12px;margin:18px 0 0}}
"""


def page(trace: Trace) -> str:
    """A complete HTML document."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(trace.launch.title)} - smemkern trace</title>"
        "<style>body{margin:0}</style></head>"
        f"<body>{markup(trace)}</body></html>\n"
    )


def markup(trace: Trace) -> str:
    """A <div> for a notebook's output cell."""
    return "".join(
        (
            f'<div class="smk smk-page"><style>{_STYLE}</style>',
            _head(trace),
            _hazards(trace),
            _sources(trace),
            _conflicts(trace),
            _opcodes(trace),
            '<p class="foot">A request is one warp instruction. Wavefronts are its cost in shared '
            "memory; ideal is the fewest wavefronts that could serve its bytes; as joined: after "
            f"ptxas joins neighbouring accesses, {trace.shared.source}. A sector is 32 "
            "bytes of global memory. <b>+</b>: includes code inlined at this line. FLOPs per byte "
            "(arithmetic intensity): floating-point operations per byte of the sectors moved.</p>"
            "</div>",
        )
    )


def _number(count: float) -> str:
    return f"{count:,}".replace(",", "\u2009")


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return (
                f"{count / size:.3g} {unit}"
                if count < 1000 * size
                else f"{count / size:.0f} {unit}"
            )
    return f"{count} B"


def _extent(lengths: tuple[int, ...]) -> str:
    return " \u00d7 ".join(map(str, lengths))


def _head(trace: Trace) -> str:
    launch = trace.launch
    factor, moved = trace.conflict_factor, trace.bytes_moved
    grid = _extent(launch.grids[0]) if launch.grids else "none"
    if len(launch.grids) > 1:
        grid += f" and {len(launch.grids) - 1} more"
    facts = [("", "grid", grid), ("", "block", _extent(launch.block))]
    facts.append(("", "shared per block", _bytes(launch.shared_bytes)))
    if not math.isnan(factor):
        facts.append(("bad" if factor > 1 else "good", "conflict factor", f"{factor:.2f}"))
        facts.append(("", "shared wavefronts", _number(trace.shared_wavefronts)))
        facts.append(("", "shared requests", _number(trace.shared_requests)))
        joined = trace.machine_conflict_factor
        if any(row.joined for row in trace.shared):
            facts.append(("bad" if joined > 1 else "good", "factor as joined", f"{joined:.2f}"))
    facts += _machine_facts(trace)
    facts.append(("", "global read", _bytes(moved["global_read"])))
    facts.append(("", "global written", _bytes(moved["global_written"])))
    if trace.flops:
        facts.append(("", "FLOPs", _number(trace.flops)))
        facts.append(("", "FLOPs per byte", f"{trace.arithmetic_intensity:.3g}"))
    facts.append(("", "warp instructions", _number(trace.warp_instructions)))
    facts.append(("", "barrier arrivals", _number(trace.barriers)))
    if trace.checked:
        kind = "bad" if trace.hazards else "good"
        facts.append((kind, "hazards", str(len(trace.hazards)) if trace.hazards else "none"))
    cells = "".join(
        f'<div class="fact {kind}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for kind, name, value in facts
    )
    about = [launch.image or launch.op, "device emu"]
    about += [trace.coverage] if trace.coverage else []
    about += ["a fault ended the run: counts are up to it"] if trace.incomplete else []
    shown = " \u00b7 ".join(about)
    return (
        f"<h1>{escape(launch.title)}</h1>"
        f'<p class="sub">{escape(shown)}</p><div class="facts">{cells}</div>'
    )


def _machine_facts(trace: Trace) -> list[tuple[str, str, str]]:
    resources = trace.machine_code and trace.machine_code.resources
    if not resources:
        return []
    spills = resources.spill_stores + resources.spill_loads
    facts = [("", f"registers, {resources.arch}", str(resources.registers))]
    facts.append(("bad" if spills else "good", "bytes spilled", str(spills)))
    occupancy = trace.occupancy
    if occupancy:
        facts.append(("", "occupancy", f"{occupancy.fraction:.1%}"))
    return facts


def _hazards(trace: Trace) -> str:
    if not trace.hazards:
        return ""
    found = "".join(
        f'<div class="hazard">{escape(hazard.message)}</div>' for hazard in trace.hazards
    )
    return f"<h2>Hazards</h2>{found}"


# ---- the source ----


def _heat(line: Line, max_lost: int) -> str:
    """A red background for lost wavefronts, scaled to the line that loses most."""
    lost = line.wavefronts - line.ideal
    if lost <= 0 or not max_lost:
        return ""
    return f' style="background:rgba(var(--bad),{0.10 + 0.34 * math.sqrt(lost / max_lost):.2f})"'


def _row(line: Line, max_lost: int, joined: bool) -> str:
    shared, machine, global_ = [""] * 4, [""] * 4, [""] * 2
    more = "+" if line.inlined else ""
    if line.shared:
        shared = [_number(line.shared_requests) + more, _number(line.wavefronts)]
        shared += [_number(line.ideal), f"{line.factor:.2f}"]
        machine = [*map(_number, line.joined), f"{line.joined_factor:.2f}"]
    if line.global_:
        global_ = [_number(line.global_requests) + more, _number(line.sectors)]
    cells = [*shared, *(machine if joined else []), *global_]
    counts = "".join(f"<td>{cell}</td>" for cell in cells)
    code = f'<td class="no">{line.number}</td><td class="code">{escape(line.text) or " "}</td>'
    before = f'<td colspan="{len(cells) + 1}"></td>'
    notes = "".join(
        f'<tr>{before}<td class="note"><div>{escape(message)}</div></td></tr>'
        for message in line.hazards
    )
    return f"<tr{_heat(line, max_lost)}>{counts}{code}</tr>{notes}"


_COST = ("requests", "wavefronts", "ideal", "factor")


def _source_head(groups: list[tuple[str, tuple[str, ...]]]) -> str:
    """The two header rows of a table of source lines."""
    over = "".join(f'<th colspan="{len(names)}">{name}</th>' for name, names in groups[:-1])
    head = f'<tr class="over">{over}<th colspan="2"></th></tr><tr>'
    for k, (_, names) in enumerate(groups):
        first = ' class="edge"' if 0 < k < len(groups) - 1 else ""
        head += f"<th{first}>{names[0]}</th>" + "".join(f"<th>{name}</th>" for name in names[1:])
    return head + '<th class="left">source</th></tr>'


def _sources(trace: Trace) -> str:
    joined = any(row.joined for row in trace.shared)
    groups: list[tuple[str, tuple[str, ...]]] = [("shared", _COST)]
    groups += [("as joined by ptxas", _COST)] if joined else []
    groups += [("global", ("requests", "sectors")), ("", ("line",))]
    head = _source_head(groups)
    columns = sum(len(names) for _, names in groups) + 1
    files = listing(trace)
    every = [line for lines in files.values() for line in lines]
    max_lost = max((line.wavefronts - line.ideal for line in every), default=0)
    parts = ["<h2>Source</h2>"] if files else []
    for name, lines in files.items():
        rows, before = [], None
        for line in lines:
            if before is not None and line.number != before + 1:
                rows.append(f'<tr class="gap"><td colspan="{columns}">\u22ef</td></tr>')
            before = line.number
            rows.append(_row(line, max_lost, joined))
        parts.append(
            f"<h3>{escape(Path(name).name or 'PTX')}</h3>"
            f'<div class="wide"><table><thead>{head}</thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )
    return "".join(parts)


# ---- the worst requests ----


def _conflict(row: SharedRow, first: bool) -> str:
    request = row.worst_request
    if request is None:
        return ""
    return (
        f"<details{' open' if first else ''}><summary><code>{escape(place(row))}</code> "
        f"{escape(row.op)}, {row.width} bytes per lane: worst request {row.worst} wavefronts, "
        f"factor {row.factor:.2f}</summary>{bank_map(request)}"
        f'<span class="sub">block {request.block}, warp {request.warp}. Blue: the first word '
        "that a bank serves; red: further words of the same bank, in later wavefronts.</span>"
        "</details>"
    )


def _conflicts(trace: Trace) -> str:
    rows = [row for row in trace.shared if row.wavefronts > row.ideal]
    if not rows:
        return ""
    rows.sort(key=lambda row: row.ideal - row.wavefronts)
    shown = "".join(_conflict(row, at == 0) for at, row in enumerate(rows))
    return f"<h2>Worst request of each conflicting line</h2>{shown}"


def _opcodes(trace: Trace) -> str:
    by_count = sorted(trace.instructions.items(), key=lambda item: (-item[1], item[0]))
    items = "".join(
        f'<div class="opcode"><span>{escape(opcode)}</span><span>{_number(count)}</span></div>'
        for opcode, count in by_count
    )
    return f'<h2>Warp instructions</h2><div class="opcodes">{items}</div>'
