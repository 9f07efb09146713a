"""What docs/reliability.md says of validation/c_mutants.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cells import markdown
from records import load, stored

CHANGES = {
    "comparison": "`<` for `<=`, `==` for `!=`, ...",
    "bound": "a constant of a comparison or an index, one more or less",
    "mask": "`&` for `|`, `<<` for `>>`, a bit mask, a shift by one more or less",
    "rounding": "`+ align - 1` left out, another direction",
    "off by one": "`+ 1` or `- 1` left out",
    "dropped call": "a statement that is a call left out",
    "dropped guard": "`if (...) return ...;` left out",
    "negated condition": "of `if` and `while`",
    "logic": "`&&` for `||`, `||` for `&&`",
}
HOW = {
    "failed": "by a test that fails",
    "crashed": "by a crash",
    "hung": "by a test that does not end",
    "broken": "by an import that fails",
    "sanitizer": "by a report of AddressSanitizer or UBSan",
}


def code(text: str) -> str:
    """As Markdown code within a table."""
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
        f"{record['mutants']} mutants drawn by seed {record['seed']} from {record['sites']} "
        f"places: {record['killed']} killed ({how}), {record['date']}, commit "
        f"{record['commit'] or 'unknown'}. Besides, {skipped['equivalent']} were compiled into the "
        f"same machine code, {skipped['not compiled']} did not compile, and "
        f"{record['told by no input']} no input tells from the original "
        "(`validation/c_mutant_reasons.py` says why): they do not count.",
        markdown(("change", "", "mutants", "killed"), lines, 2),
    ]
    left = [m for m in record["records"] if m["verdict"] == "survived"]
    if left:
        header = ("survivor", "line", "became", "why no test can tell")
        rows = [
            (f"`{m['file']}:{m['line']}`", *map(code, (m["before"], m["after"])), m["reason"])
            for m in left
            if "reason" in m
        ]
        parts.append(markdown(header, rows, 4))
        if unexplained := Counter("reason" in m for m in left)[False]:
            parts.append(f"{unexplained} survivors have no reason yet.")
    return "\n\n".join(parts)
