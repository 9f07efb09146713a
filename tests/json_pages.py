"""The keys that docs/command-line.md promises of --json, and whether a document has just these."""

import re

from command import PAGE

KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def section_of(name):
    """{path: kinds} of the command's own table."""
    section = PAGE.read_text(encoding="utf-8").split(f"### smemkern.{name}/1\n")[1].split("###")[0]
    found = {"schema": {"string"}}
    for keys, kinds in re.findall(r"^\| (`.*?) \| ([^|]*) \|", section, re.M):
        for path in re.findall(r"`([^`]+)`", keys):
            found[path] = set(re.split(", | or ", kinds))
    return found


def promised(name):
    """{path: kinds}, with [] for what an array holds and * for any key."""
    found = section_of(name)
    if name == "trace":
        check = promised("check")
        found |= {path: kinds for path, kinds in check.items() if path.startswith("hazards")}
    if name == "check":
        trace = section_of("trace")
        found |= {path: kinds for path, kinds in trace.items() if path.startswith("over_limit")}
    if name == "run":
        for space in ("shared", "global"):
            rows = {p: k for p, k in section_of("trace").items() if p.startswith(f"{space}[]")}
            found |= {f"kernels[].{path}": kinds for path, kinds in rows.items()}
        found |= {
            f"kernels[].{path}": kinds
            for path, kinds in promised("check").items()
            if path.startswith(("hazards[]", "over_limit[]")) and path != "hazards[].element[]"
        }
    if name == "judge":
        found |= {
            path.replace("hazards[]", "problems[].hazard", 1): kinds
            for path, kinds in promised("check").items()
            if path.startswith("hazards[].")
        }
    if name in ("check", "run"):
        hazards = {path: kinds for path, kinds in found.items() if "hazards[]" in path}
        found |= {path.replace("hazards", "benign", 1): kinds for path, kinds in hazards.items()}
    for path in list(found):  # what holds something is an object or an array, if nothing is said
        while cut := re.search(r"(\[\]|\.[^.\[]+)$", path):
            path, last = path[: cut.start()], cut[0]
            found.setdefault(path, {"array" if last == "[]" else "object"})
    return found


def check(value, found, path=""):
    """Every value is promised and of its kind, and no key of an object is missing."""
    if path:
        kinds = found[path]
        fits = [k for k in kinds if isinstance(value, KINDS[k])]
        assert fits and not (isinstance(value, bool) and "boolean" not in kinds), (path, value)
    if isinstance(value, list):
        for one in value:
            check(one, found, f"{path}[]")
    if isinstance(value, dict):
        start = f"{path}." if path else ""
        own = {p[len(start) :] for p in found if p.startswith(start)}
        own = {key for key in own if "." not in key and "[" not in key and key}
        if own == {"*"} or not own:
            own = set()
            keys = dict.fromkeys(value, "*")
        else:
            keys = {key: key for key in value}
            assert {*value} == own, (path, {*value} ^ own)
        for key, of in keys.items():
            check(value[key], found, f"{start}{of}")


def paths(value, path=""):
    """Those that a document has."""
    if path:
        yield path
    if isinstance(value, list):
        for one in value:
            yield from paths(one, f"{path}[]")
    if isinstance(value, dict):
        for key, one in value.items():
            yield from paths(one, f"{path}.{key}" if path else key)
