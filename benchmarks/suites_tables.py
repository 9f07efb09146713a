"""The generated parts of docs/public-suites.md, from the record of validation/public_suites.py."""

from __future__ import annotations

from cells import Record, markdown
from records import read

NOT_YET = "Not recorded yet."
RECORD, UNSEEN = "public-suites", "unseen-suites"
COUNTS = ("entries", "decoded", "run", "right", "explained", "wrong", "hazards")


def rows(name: str = RECORD) -> list[Record]:
    record = read(name)
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


def first_sight() -> str:
    """One row per repository: what decoded at first, and what does now."""
    if not (found := rows(UNSEEN)):
        return NOT_YET
    header = ("suite", "files", "kernels", "decoded at first sight", "decoded now", "run", "right")
    header += ("their fault", "wrong")
    lines, total = [], dict.fromkeys((*COUNTS, "files", "first", "first entries"), 0)
    for row in found:
        first = row["first_look"]
        files = row["files"] - len(row["not_compiled"])
        values = {key: row[key] for key in COUNTS} | {"files": files}
        values |= {"first": first["decoded"], "first entries": first["entries"]}
        for key, value in values.items():
            total[key] += value
        name = (
            f"[{row['suite']}](https://github.com/{row['repository']}) {row['repository_commit']}"
        )
        lines.append(_sight(name, values))
    lines.append(_sight("sum", total))
    said = (
        f"At first sight {_share(total['first'], total['first entries'])} of the kernels decoded; "
        f"now {_share(total['decoded'], total['entries'])} do. {max(r['date'] for r in found)}, "
        f"commit {', '.join(sorted({r['commit'] for r in found}))}."
    )
    return f"{said}\n\n{markdown(header, lines, 1)}"


def _sight(name: str, values: Record) -> tuple[str, ...]:
    first = f"{values['first']} of {values['first entries']}"
    keys = ("decoded", "run", "right", "explained", "wrong")
    counts = (str(values[key]) for key in keys)
    return name, str(values["files"]), str(values["entries"]), first, *counts


def refused(record: str = RECORD) -> str:
    """Each reason, with the smallest kernel that it holds for."""
    if not (found := rows(record)):
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
    for row in rows() + rows(UNSEEN):
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
        for row in rows() + rows(UNSEEN)
        for one in row["findings"]
        if not one["explained"]
    ]
    return markdown(("suite", "kernel", "finding"), lines, 3) if lines else "None."


def parts() -> dict[str, str]:
    return {
        "counts": counts(),
        "refused": refused(),
        "first sight": first_sight(),
        "refused at first sight": refused(UNSEEN),
        "faults": findings(harmful=True),
        "harmless": findings(harmful=False),
        "unexplained": unexplained(),
        "not compiled": not_compiled(),
    }
