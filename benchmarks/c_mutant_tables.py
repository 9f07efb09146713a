"""The results of validation/c_mutants.py for docs/reliability.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cells import markdown
from records import load, stored

CHANGES = {
    "comparison": "`<` for `<=`, `==` for `!=`, ...",
    "bound": "a constant in a comparison or an index, plus or minus 1",
    "mask": "`&` for `|`, `<<` for `>>`, a bit mask, a shift count plus or minus 1",
    "rounding": "`+ align - 1` removed, rounding in another direction",
    "off by one": "`+ 1` or `- 1` removed",
    "dropped call": "a call statement removed",
    "dropped guard": "`if (...) return ...;` removed",
    "negated condition": "the condition of an `if` or a `while` negated",
    "logic": "`&&` for `||`, `||` for `&&`",
}
HOW = {
    "failed": "by a failing test",
    "crashed": "by a crash",
    "hung": "by a test that does not finish",
    "broken": "by a failing import",
    "sanitizer": "by a report of AddressSanitizer or UBSan",
}


def code(text: str) -> str:
    """Text as Markdown code in a table cell."""
    return f"`` {text} ``".replace("|", "\\|")


def summary(path: Path) -> str:
    if not stored(path):
        return "Not yet measured."
    record = load(path)
    lines = [
        (name, CHANGES[name], str(every), str(killed))
        for name, (killed, every) in record["operators"].items()
    ]
    lines.append(("all", "", str(record["mutants"]), str(record["killed"])))
    how = ", ".join(f"{record['how'][k]} {HOW[k]}" for k in HOW if k in record["how"])
    skipped = record["not counted"]
    parts = [
        f"{record['mutants']} mutants, drawn with seed {record['seed']} from {record['sites']} "
        f"sites: {record['killed']} killed ({how}), {record['date']}, commit "
        f"{record['commit'] or 'unknown'}. Not counted: {skipped['equivalent']} that compiled to "
        f"the same machine code, {skipped['not compiled']} that did not compile, and "
        f"{record['told by no input']} that behave like the original for every input "
        "(reasons: `validation/c_mutant/reasons.py`).",
        markdown(("operator", "change", "mutants", "killed"), lines, 2),
    ]
    left = [m for m in record["records"] if m["verdict"] == "survived"]
    if left:
        header = ("survivor", "original", "mutant", "why no test fails")
        rows = [
            (f"`{m['file']}:{m['line']}`", *map(code, (m["before"], m["after"])), m["reason"])
            for m in left
            if "reason" in m
        ]
        parts.append(markdown(header, rows, 4))
        if unexplained := Counter("reason" in m for m in left)[False]:
            parts.append(f"{unexplained} survivors have no reason yet.")
    return "\n\n".join(parts)
