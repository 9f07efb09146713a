"""Removes an instruction that orders accesses in a kernel, or replaces it with a weaker one.

barrier  __syncthreads, __syncwarp, barriers of a subset of threads
wait     cp.async waits
commit   cp.async commits
arrival  mbarrier arrivals; cp.async.mbarrier.arrive is also replaced by an arrival that does
         not wait for the copies
expect   mbarrier.arrive.expect_tx; also replaced by an arrival without a transaction count
phase    waits for a phase of an mbarrier
init     mbarrier.init
proxy    fences between the generic and the asynchronous proxy, wgmma's fence, commit and wait,
         commit and wait of bulk stores
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ARRIVAL = r"cp\.async\.mbarrier\.arrive\S*\s+(?P<at>\[[^]]*\]);"
EXPECT = r"mbarrier\.arrive\.expect_tx\S*\s+_,\s*(?P<at>\[[^]]*\]),.*"
PLAIN = "mbarrier.arrive.shared::cta.b64 _, {};"
# (kind, pattern, replacements)
ORDER = [
    ("barrier", r"bar(rier)?\..*", [""]),
    ("wait", r"cp\.async\.wait.*", [""]),
    ("commit", r"cp\.async\.commit.*", [""]),
    ("expect", EXPECT, ["", PLAIN]),
    ("arrival", r"mbarrier\.arrive.*", [""]),
    ("arrival", ARRIVAL, ["", PLAIN]),
    ("phase", r"mbarrier\.(try|test)_wait\S*\s+(?P<at>[%\w]+),.*", ["mov.pred {}, -1;"]),
    ("init", r"mbarrier\.init.*", [""]),
    (
        "proxy",
        r"(fence\.(proxy|mbarrier_init)|wgmma\.(fence|commit|wait)"
        r"|cp\.async\.bulk\.(commit|wait)).*",
        [""],
    ),
]
KINDS = tuple(dict.fromkeys(kind for kind, _, _ in ORDER))


def removals(text: str) -> Iterator[tuple[str, str]]:
    """(kind, replacement) for each mutation of an instruction."""
    for kind, pattern, instead in ORDER:
        if m := re.fullmatch(pattern, text):
            for other in instead:
                yield kind, other.format(m.groupdict().get("at"))
            return
