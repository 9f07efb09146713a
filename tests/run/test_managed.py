"""Advice about managed memory and prefetches: what cuMemRangeGetAttribute says of them."""

import ast
from pathlib import Path

from test_driver_state import printed

PAGE = 4096
DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = 1, 2, 3, 4  # CUmemLocationType
CPU, NONE = -1, -2  # in place of a device
INVALID_VALUE, INVALID_DEVICE, INVALID_HANDLE = 1, 101, 400
SET_READ_MOSTLY, UNSET_READ_MOSTLY, SET_PREFERRED, UNSET_PREFERRED, SET_ACCESSED, UNSET_ACCESSED = (
    range(1, 7)
)
READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED = range(1, 5)
ATTRIBUTES = range(1, 9)

START = """
import sys
def managed(size):
    at = c_uint64()
    assert not d.cuMemAllocManaged(byref(at), c_size_t(size), 1)
    return at.value
def location(type, id=0):
    return c_uint64(type | (id % 2**32) << 32)
def prefetch(at, size, *where, stream=0, flags=0):
    if len(where) == 1:
        return d.cuMemPrefetchAsync(c_uint64(at), c_size_t(size), where[0], c_void_p(stream))
    return d.cuMemPrefetchAsync_v2(c_uint64(at), c_size_t(size), location(*where), flags,
                                   c_void_p(stream))
def advise(at, size, advice, *where):
    if len(where) == 1:
        return d.cuMemAdvise(c_uint64(at), c_size_t(size), advice, where[0])
    return d.cuMemAdvise_v2(c_uint64(at), c_size_t(size), advice, location(*where))
def ask(at, size, attribute, n=1):
    out = (c_int * n)(*[99] * n)
    code = d.cuMemRangeGetAttribute(out, c_size_t(4 * n), attribute, c_uint64(at), c_size_t(size))
    return code or list(out)
def ask_all(at, size):
    out = [(c_int * (3 if k == 3 else 1))() for k in range(1, 9)]
    code = d.cuMemRangeGetAttributes(
        (c_void_p * 8)(*map(addressof, out)), (c_size_t * 8)(*map(sizeof, out)),
        (c_int * 8)(*range(1, 9)), c_size_t(8), c_uint64(at), c_size_t(size))
    assert code == 0
    return [list(one) for one in out]
"""


def results(code):
    """What the process prints, a value in each line."""
    return [ast.literal_eval(line) for line in printed(START + code, lines=True)]


class Model:
    """What the documentation says, page by page."""

    def __init__(self, size):
        self.pages = [
            {"prefetched": None, "preferred": None, "accessed": set(), "mostly": False}
            for _ in range(-(-size // PAGE))
        ]

    def of(self, offset, size):
        return self.pages[offset // PAGE : -(-(offset + size) // PAGE)]

    def answers(self, offset, size):
        pages = self.of(offset, size)
        found = {}
        for key in ("prefetched", "preferred"):
            values = {page[key] for page in pages}
            found[key] = values.pop() if len(values) == 1 else None
        accessed = set.intersection(*(page["accessed"] for page in pages))

        def single(place):
            return [{None: NONE, DEVICE: 0}.get(place, CPU)]

        def kind(place):
            return [0 if place is None else place if isinstance(place, int) else HOST_NUMA]

        def number(place):
            return [place[1]] if isinstance(place, tuple) else single(place)

        return [
            [int(all(page["mostly"] for page in pages))],
            single(found["preferred"]),
            ([0] * (DEVICE in accessed) + [CPU] * (HOST in accessed) + [NONE] * 3)[:3],
            single(found["prefetched"]),
            kind(found["preferred"]),
            number(found["preferred"]),
            kind(found["prefetched"]),
            number(found["prefetched"]),
        ]


def drawn(draw, model, size):
    """A random call, and what it does to the model."""
    offset = draw.randrange(size)
    some = draw.randrange(1, size - offset + 1)
    place, where = draw.choice(
        [
            (DEVICE, "0"),
            (DEVICE, f"{DEVICE}, 0"),
            (HOST, "-1"),
            (HOST, f"{HOST}, {draw.randrange(9)}"),  # its number does not count
            ((HOST_NUMA, 0), f"{HOST_NUMA}, 0"),
        ]
    )
    pages = model.of(offset, some)
    if draw.random() < 0.4:
        for page in pages:
            page["prefetched"] = place
        return f"assert not prefetch(at + {offset}, {some}, {where})"
    advice = draw.randrange(SET_READ_MOSTLY, UNSET_ACCESSED + 1)
    if advice in (SET_ACCESSED, UNSET_ACCESSED) and isinstance(place, tuple):
        place, where = HOST, "-1"
    for page in pages:
        if advice in (SET_READ_MOSTLY, UNSET_READ_MOSTLY):
            page["mostly"] = advice == SET_READ_MOSTLY
        elif advice in (SET_PREFERRED, UNSET_PREFERRED):
            page["preferred"] = place if advice == SET_PREFERRED else None
        elif advice == SET_ACCESSED:
            page["accessed"] = page["accessed"] | {place}
        else:
            page["accessed"] = page["accessed"] - {place}
    return f"assert not advise(at + {offset}, {some}, {advice}, {where})"


def test_random_advice(draw):
    size = draw.randrange(1, 8 * PAGE)
    model, lines, wanted = Model(size), [f"at = managed({size})"], []
    for _ in range(300):
        lines.append(drawn(draw, model, size))
        offset = draw.randrange(size)
        some = draw.randrange(1, size - offset + 1)
        lines.append(f"print(ask_all(at + {offset}, {some}))")
        wanted.append(model.answers(offset, some))
    assert results("\n".join(lines)) == wanted


def test_nothing_is_known_at_first_and_of_the_next_allocation():
    fresh = [[0], [NONE], [NONE] * 3, [NONE], [0], [NONE], [0], [NONE]]
    code = f"""
at = managed({5 * PAGE})
print(ask_all(at, {5 * PAGE}))
assert not prefetch(at, {5 * PAGE}, 0) and not advise(at, 1, {SET_READ_MOSTLY}, 0)
print(ask(at, {5 * PAGE}, {PREFETCHED}))
print(ask(at, {PAGE}, {READ_MOSTLY}))
print(ask(at, {PAGE + 1}, {READ_MOSTLY}))
assert not d.cuMemFree_v2(c_uint64(at))
again = managed({5 * PAGE})
print(ask_all(again, {5 * PAGE}))
"""
    assert results(code) == [fresh, [0], [1], [0], fresh]


def test_lists_of_processors_are_as_long_as_there_is_room():
    code = f"""
at = managed(100)
assert not advise(at, 100, {SET_ACCESSED}, -1) and not advise(at, 100, {SET_ACCESSED}, 0)
for n in (1, 2, 4):
    print(ask(at, 100, {ACCESSED_BY}, n))
"""
    assert results(code) == [[0], [0, CPU], [0, CPU, NONE, NONE]]


def test_a_batch_of_prefetches():
    code = f"""
at = managed({6 * PAGE})
def batch(n, starts, locations, stream=2, flags=0, sizes=None):
    return d.cuMemPrefetchBatchAsync(
        (c_uint64 * 6)(*(at + {PAGE} * k for k in range(6))),
        (c_size_t * 6)(*(sizes or [{PAGE}] * 6)), c_size_t(n), (c_uint64 * 6)(*locations),
        (c_size_t * 6)(*starts), c_size_t(len(starts)), c_uint64(flags), c_void_p(stream))
to = [{DEVICE}, {HOST}, {HOST_NUMA}]
print(batch(6, [0, 1, 4], to))
for k in range(6):
    print(ask(at + {PAGE} * k, 1, 7))
print(batch(6, [1, 2, 4], to), batch(6, [0, 4, 4], to), batch(4, [0, 1, 4], to),
      batch(2, [0, 1, 2], to), batch(0, [], to), batch(6, [0], [9]),
      batch(6, [0], to, stream=0), batch(6, [0], to, flags=1),
      batch(6, [0], [{DEVICE} | 1 << 32]), batch(6, [0], to, sizes=[0] * 6), sep=", ")
"""
    *places, wrong = results(code)
    assert places == [0, *([place] for place in (DEVICE, HOST, HOST, HOST, HOST_NUMA, HOST_NUMA))]
    assert wrong == (*[INVALID_VALUE] * 8, INVALID_DEVICE, INVALID_VALUE)


def test_wrong_calls():
    code = f"""
at, plain, stream = managed(100), c_uint64(), c_void_p()
assert not d.cuMemAlloc_v2(byref(plain), c_size_t(100))
out = (c_int * 4)()
def get(size, attribute, address=at, bytes=100, to=out):
    return d.cuMemRangeGetAttribute(to, c_size_t(size), attribute, c_uint64(address),
                                    c_size_t(bytes))
print(*(get(4, k) for k in (0, 9, -1, 999)), *(get(8, k) for k in (1, 2, 4, 5, 6, 7, 8)),
      get(10, 3), get(0, 1), get(0, 3), get(4, 1, to=None), get(4, 1, 0), get(4, 1, plain.value),
      get(4, 1, bytes=0), get(4, 1, bytes=101), get(4, 1, at + 100, 1), sep=", ")
print(prefetch(at, 0, 0), prefetch(at, 101, 0), prefetch(plain.value, 4, 0),
      prefetch(at, 4, 0, 0), prefetch(at, 4, 5, 0), prefetch(at, 4, {HOST_NUMA}, -1),
      prefetch(at, 4, {HOST_NUMA}, 2**31 - 1), prefetch(at, 4, {DEVICE}, 0, flags=1),
      advise(at, 4, 0, 0), advise(at, 4, 7, 0), advise(at, 101, 1, 0),
      advise(plain.value, 4, 1, 0), advise(at, 4, {SET_ACCESSED}, {HOST_NUMA}, 0),
      advise(at, 4, {UNSET_ACCESSED}, {HOST_NUMA_CURRENT}, 0),
      advise(at, 4, {SET_PREFERRED}, 0, 0), sep=", ")
print(prefetch(at, 4, 1), prefetch(at, 4, -2), prefetch(at, 4, {DEVICE}, 1),
      advise(at, 4, {SET_PREFERRED}, 1), advise(at, 4, {SET_ACCESSED}, {DEVICE}, 3), sep=", ")
print(prefetch(at, 4, 0, stream=4096), prefetch(at, 4, {HOST_NUMA_CURRENT}, 77),
      advise(at, 4, {SET_READ_MOSTLY}, 77), advise(at, 4, {UNSET_PREFERRED}, 77),
      d.cuMemRangeGetAttributes(None, None, None, c_size_t(0), c_uint64(at), c_size_t(4)),
      sep=", ")
"""
    questions, values, devices, others = results(code)
    assert questions == (INVALID_VALUE,) * 20
    assert values == (INVALID_VALUE,) * 15
    assert devices == (INVALID_DEVICE,) * 5
    assert others == (INVALID_HANDLE, 0, 0, 0, INVALID_VALUE)


VARIABLES = """.version 7.0
.target sm_70
.address_size 64
.visible .global{} .align 4 .b8 large[10000];
.visible .entry k() {{ ret; }}"""


def test_managed_variables_and_others(tmp_path):
    for name, attribute in (("managed", " .attribute(.managed)"), ("plain", "")):
        Path(tmp_path, name).write_text(VARIABLES.format(attribute))
    code = f"""
for name in ("managed", "plain"):
    module, at, size = c_void_p(), c_uint64(), c_size_t()
    assert not d.cuModuleLoad(byref(module), ({str(tmp_path)!r} + "/" + name).encode())
    assert not d.cuModuleGetGlobal_v2(byref(at), byref(size), module, b"large")
    print(size.value, prefetch(at.value, 10000, 0), ask(at.value, 10000, {PREFETCHED}), sep=", ")
"""
    assert results(code) == [(10000, 0, [0]), (10000, INVALID_VALUE, INVALID_VALUE)]
