"""The bank rules of compute capability 1.x to 3.x, from which today's common advice stems.

Source: CUDA C Programming Guide, the shared memory section of each compute capability: version 4.2
for 1.x and 2.x (F.3.3, F.4.3), 7.5 for 3.x (H.3.3). No such GPU was measured.

1.x   16 banks of 4 bytes. A warp's request is split into one per half-warp. In one step each bank
      serves one lane; one word is broadcast and serves all its lanes. The guide does not say which
      word that is; this model picks the one that gives the fewest steps. If several lanes store
      to one word, it is written once. 8- and 16-byte accesses are 2 and 4 requests of 4 bytes.
2.x   32 banks of 4 bytes. A step serves one word of each bank to all its lanes (multicast).
      Requests are of whole warps, those of 8 bytes of half-warps. The guide has no exact rule for
      16 bytes.
3.x   32 banks of 8 bytes, in the mode of 4-byte words: two words of an aligned range of 64 words
      whose indices differ by 32 share a row of a bank. Requests are of whole warps at every width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.uint64]
Active = NDArray[np.bool_]


def banks_of(generation: int) -> int:
    return 16 if generation == 1 else 32


def wavefronts(
    addresses: Addresses, active: Active, width: int, op: str, generation: int
) -> NDArray[np.uint32]:
    """The wavefronts of requests (n, 32) on compute capability `generation`.x."""
    if op not in ("load", "store"):
        raise ValueError(f"compute capability {generation}.x has no {op}: op is 'load' or 'store'")
    if generation == 2 and width == 16:
        raise ValueError("there is no exact rule for 16 bytes per lane on compute capability 2.x")
    costs = [
        _request([int(a) for a in row], list(mask), width, op, generation)
        for row, mask in zip(addresses, active, strict=True)
    ]
    return np.array(costs, np.uint32)


def _request(address: list[int], active: list[bool], width: int, op: str, generation: int) -> int:
    lanes = [lane for lane in range(32) if active[lane]]
    words = range(max(width // 4, 1))  # per lane
    half = [[lane for lane in lanes if lane < 16], [lane for lane in lanes if lane >= 16]]
    if generation == 1:
        count = _steps_with_one_broadcast if op == "load" else _most_distinct
        return sum(
            count([address[lane] // 4 + word for lane in group], 16)
            for group in half
            for word in words
        )
    if generation == 2:
        groups = half if width == 8 else [lanes]
        return sum(
            _most_distinct([address[lane] // 4 + word for lane in group for word in words], 32)
            for group in groups
        )
    # 3.x: the range of 64 words and the bank identify the 8-byte row that a bank reads in a step.
    rows = [address[lane] // 4 + word for lane in lanes for word in words]
    return _most_distinct([row // 64 * 32 + row % 32 for row in rows], 32)


def _most_distinct(words: list[int], banks: int) -> int:
    in_bank: dict[int, set[int]] = {}
    for word in words:
        in_bank.setdefault(word % banks, set()).add(word)
    return max(map(len, in_bank.values()), default=0)


def _steps_with_one_broadcast(words: list[int], banks: int) -> int:
    """The fewest steps, if a step serves one lane per bank, and in one bank all lanes of a word.

    With k steps there are k broadcasts. A bank that gets b of them serves its b most shared words
    and k - b further lanes. So k steps suffice if the banks need at most k broadcasts in total.
    """
    wanted: dict[int, dict[int, int]] = {}
    for word in words:
        bank = wanted.setdefault(word % banks, {})
        bank[word] = bank.get(word, 0) + 1
    steps = 1 if words else 0
    while sum(_broadcasts_needed(list(bank.values()), steps) for bank in wanted.values()) > steps:
        steps += 1
    return steps


def _broadcasts_needed(lanes_of_words: list[int], steps: int) -> int:
    left, needed = sum(lanes_of_words), 0
    for lanes in sorted(lanes_of_words, reverse=True):
        if left <= steps - needed:
            break
        left, needed = left - lanes, needed + 1
    return needed
