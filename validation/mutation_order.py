"""What orders accesses in a kernel, and what becomes of it without: an instruction less, or a
weaker one in its place.

    barrier  __syncthreads, __syncwarp, barriers of some threads
    wait     cp.async waits
    commit   cp.async commits
    arrival  mbarrier arrivals, by threads and by their cp.async copies; of the latter also an
             arrival that does not wait for them
    expect   arrivals that announce bytes; also an arrival that announces none
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
# kind, pattern, what can stand there instead
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
    """(kind, what stands there instead) of an instruction."""
    for kind, pattern, instead in ORDER:
        if m := re.fullmatch(pattern, text):
            for other in instead:
                yield kind, other.format(m.groupdict().get("at"))
            return
