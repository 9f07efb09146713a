"""The generated parts of docs/public-suites.md, from the record of validation/public_suites.py."""

from __future__ import annotations

from cells import Record, markdown
from records import read

NOT_YET = "Not recorded yet."
RECORD = "public-suites"
COUNTS = ("entries", "decoded", "run", "right", "explained", "wrong", "hazards")


def rows() -> list[Record]:
    record = read(RECORD)
    return record["rows"] if record else []


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}\N{NO-BREAK SPACE}%" if whole else "–"


def counts() -> str:
    """One row per suite, and their sum."""
    if not (found := rows()):
        return NOT_YET
    lines = [
        (
            f"[{row['suite']}](https://github.com/{row['repository']}) {row['repository_commit']}",
            str(row["files"] - len(row["not_compiled"])),
            *(str(row[key]) for key in COUNTS),
        )
        for row in found
    ]
    total = {key: sum(row[key] for row in found) for key in COUNTS}
    files = sum(row["files"] - len(row["not_compiled"]) for row in found)
    lines.append(("sum", str(files), *(str(total[key]) for key in COUNTS)))
    header = (
        "suite",
        "files",
        "kernels",
        "decoded",
        "run",
        "right",
        "their fault",
        "wrong",
        "hazards",
    )
    sound = total["run"] - total["explained"]
    said = (
        f"{_share(total['decoded'], total['entries'])} of the kernels decode. Of the kernels with "
        f"a reference, without those that are wrong themselves, {_share(total['right'], sound)} "
        f"give the right result. {max(row['date'] for row in found)}, "
        f"commit {', '.join(sorted({row['commit'] for row in found}))}."
    )
    return f"{said}\n\n{markdown(header, lines, 1)}"


def refused() -> str:
    """Each reason, with the smallest kernel that it holds for."""
    if not (found := rows()):
        return NOT_YET
    lines = [
        (
            f"`{reason}`",
            f"{row['suite']}, `{one['file'].rpartition('/')[2]}`, `{one['entry'][:60]}`",
            str(one["count"]),
        )
        for row in found
        for reason, one in row["refused"].items()
    ]
    lines.sort(key=lambda line: (-int(line[2]), line[0]))
    return markdown(("missing", "for example", "kernels"), lines, 2) if lines else "None."


def not_compiled() -> str:
    """One row per error of a suite, with its first file."""
    seen: dict[tuple[str, str], list[str]] = {}
    for row in rows():
        for one in row["not_compiled"]:
            seen.setdefault((row["suite"], one["error"]), []).append(one["file"])
    lines = [
        (suite, str(len(files)), f"`{files[0].rpartition('/')[2]}`", error)
        for (suite, error), files in seen.items()
    ]
    return markdown(("suite", "files", "the first", "reason"), lines, 4) if lines else "None."


def findings(*, harmful: bool) -> str:
    """The faults of public kernels, each with the number of its instances that show it."""
    seen: dict[tuple[str, ...], int] = {}
    for row in rows():
        for one in row["findings"]:
            if one["explained"] and one["harmful"] == harmful:
                name = f"`{one['file'].rpartition('/')[2]}`: `{one['kernel']}`"
                shown = "wrong result" if one["wrong"] else "hazard"
                key = (row["suite"], name, shown, one["explained"])
                seen[key] = len(one["instances"])
    lines = [(*key[:3], str(count), key[3]) for key, count in seen.items()]
    return markdown(("suite", "kernel", "seen as", "instances", "reason"), lines, 5) or NOT_YET


def unexplained() -> str:
    """Hazards and wrong results that nobody has explained yet."""
    lines = [
        (
            row["suite"],
            f"`{one['file'].rpartition('/')[2]}`: `{one['kernel']}`",
            one["message"].replace("|", "\\|"),
        )
        for row in rows()
        for one in row["findings"]
        if not one["explained"]
    ]
    return markdown(("suite", "kernel", "finding"), lines, 3) if lines else "None."


def parts() -> dict[str, str]:
    return {
        "counts": counts(),
        "refused": refused(),
        "faults": findings(harmful=True),
        "harmless": findings(harmful=False),
        "unexplained": unexplained(),
        "not compiled": not_compiled(),
    }
