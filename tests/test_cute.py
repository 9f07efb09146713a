"""banks.Layout.from_cute and to_cute, against the package tensor-layouts and plain Python."""

import itertools
import random

import numpy as np
import pytest

from smemkern.banks import Layout, Swizzle

CASES = 300


def factors(rng, number):
    """A factorisation of a number, as the sizes of a mode's modes."""
    found = []
    while number > 1:
        found.append(rng.choice([d for d in range(2, number + 1) if number % d == 0]))
        number //= found[-1]
    return found or [1]


def nested(rng, items):
    """The items as an integer, a tuple, or tuples in a tuple."""
    if len(items) == 1:
        return items[0]
    if len(items) > 2 and rng.random() < 0.4:
        at = rng.randrange(1, len(items))
        left, right = items[:at], items[at:]
        return tuple(tuple(part) if len(part) > 1 else part[0] for part in (left, right))
    return tuple(items)


def draw(rng):
    """(shape, stride) of a tile: its leaves in a random order in memory, some with gaps."""
    sizes = [factors(rng, rng.choice([1, 2, 3, 4, 6, 8, 16, 24, 32])) for _ in range(2)]
    leaves = [(mode, at) for mode in (0, 1) for at in range(len(sizes[mode]))]
    rng.shuffle(leaves)
    strides, step = [[0] * len(mode) for mode in sizes], 1
    for mode, at in leaves:
        step += rng.choice([0, 0, 0, 1, 3])
        strides[mode][at] = step
        step *= sizes[mode][at]
    form = rng.randrange(2**32)
    shape = [nested(random.Random(form + mode), sizes[mode]) for mode in (0, 1)]
    stride = [nested(random.Random(form + mode), strides[mode]) for mode in (0, 1)]
    return tuple(shape), tuple(stride)


def leaves_of(nest):
    return [nest] if isinstance(nest, int) else [leaf for each in nest for leaf in leaves_of(each)]


def by_hand(shape, stride, i, j):
    """CuTe's offset of (i, j): digits of each index, first fastest, times the strides."""
    total = 0
    for index, mode, step in zip((i, j), shape, stride, strict=True):
        for n, s in zip(leaves_of(mode), leaves_of(step), strict=True):
            total += index % n * s
            index //= n
    return total


def bits_by_hand(swizzle, offset):
    """Bit by bit: Z ^= Y. For a negative shift Y are the low bits."""
    bits, base, shift = swizzle
    low, high = base + max(-shift, 0), base + max(shift, 0)
    for at in range(bits):
        offset ^= ((offset >> high + at) & 1) << (low + at) if shift >= 0 else 0
    if shift < 0:
        source = offset >> base & (1 << bits) - 1
        offset ^= source << low
    return offset


def spellings(shape, stride, swizzle, itemsize):
    """The texts of CUTLASS in C++ and Python, with numbers known statically, and of pointers."""
    plain = f"{shape}:{stride}".replace(" ", "")
    static = "".join(f"_{p}" if p.isdigit() else p for p in _parts(plain))
    if swizzle is None:
        yield from (plain, f"{shape} : {stride}", static)
        return
    bits, base, shift = swizzle
    for name in ("Swizzle", "Sw", "S"):
        yield f"{name}<{bits},{base},{shift}> o {plain}"
    yield f"Sw<{bits},{base},{shift}> o _0 o {static}"
    in_bytes = base + itemsize.bit_length() - 1
    pointer = f"smem_ptr[{8 * itemsize}b](unset)"
    yield f"Sw<{bits},{in_bytes},{shift}> o {pointer} o {static}"
    yield f"Sw<{bits},{in_bytes},{shift}>_smem_ptr[{8 * itemsize}b](0x7f0200) o {plain}"


def _parts(text):
    return ["".join(group) for _, group in itertools.groupby(text, str.isdigit)]


@pytest.fixture
def rng():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_every_spelling(rng):
    for _ in range(CASES):
        (shape, stride), itemsize = draw(rng), rng.choice([1, 2, 4, 8, 16])
        swizzle = None
        if rng.random() < 0.7:
            bits = rng.randint(1, 4)
            swizzle = bits, rng.randint(0, 4), rng.choice([1, 1, 1, -1]) * rng.randint(bits, 6)
        for text in spellings(shape, stride, swizzle, itemsize):
            layout = Layout.from_cute(text, itemsize)
            for _ in range(6):
                i, j = rng.randrange(layout.rows), rng.randrange(layout.cols)
                want = by_hand(shape, stride, i, j)
                want = bits_by_hand(swizzle, want) if swizzle else want
                assert layout.address(i, j) == want * itemsize, text
        sizes = [int(np.prod(leaves_of(mode))) for mode in shape]
        assert [layout.rows, layout.cols] == sizes


def test_against_tensor_layouts(rng):
    tl = pytest.importorskip("tensor_layouts")
    for _ in range(CASES):
        (shape, stride), itemsize = draw(rng), rng.choice([1, 2, 4, 8, 16])
        theirs = tl.Layout(shape, stride)
        if rng.random() < 0.7:
            bits = rng.randint(0, 4)
            shift = rng.choice([1, -1]) * rng.randint(bits, 6)
            theirs = tl.compose(tl.Swizzle(bits, rng.randint(0, 4), shift), theirs)
        given = rng.choice([theirs, str(theirs), repr(theirs)])
        ours = Layout.from_cute(given, itemsize)
        r, c = np.indices((ours.rows, ours.cols))
        want = [[theirs(i, j) * itemsize for j in range(ours.cols)] for i in range(ours.rows)]
        np.testing.assert_array_equal(ours.address(r, c), want, err_msg=str(theirs))
        assert ours.bytes > np.max(want) and ours.wasted == ours.bytes - r.size * itemsize


def test_there_and_back(rng):
    """Text to layout to text: the same addresses, and from then on the same text and repr."""
    for _ in range(CASES):
        (shape, stride), itemsize = draw(rng), rng.choice([1, 2, 4, 8, 16])
        first = Layout.from_cute(f"{shape}:{stride}", itemsize)
        again = Layout.from_cute(first.to_cute(), itemsize)
        r, c = np.indices((first.rows, first.cols))
        np.testing.assert_array_equal(first.address(r, c), again.address(r, c))
        assert again.to_cute() == first.to_cute()
        named = eval(repr(first), {"Layout": Layout, "Swizzle": Swizzle})
        assert repr(named) == repr(first)
        np.testing.assert_array_equal(first.address(r, c), named.address(r, c))


SWIZZLES = [None, "xor", "xor:8B", "xor:16B", "32B", "64B", "128B", (2, 4, 3), (1, 4, -3)]


@pytest.mark.parametrize("swizzle", SWIZZLES, ids=str)
def test_layouts_as_text(swizzle):
    found = 0
    for (rows, cols), size, pad in itertools.product(
        [(1, 8), (8, 1), (16, 16), (8, 64), (32, 32), (7, 24), (24, 128)], [1, 2, 4], [0, 1]
    ):
        try:
            layout = Layout(rows, cols, size, pad, swizzle)
            text = layout.to_cute()
        except ValueError:
            continue  # a swizzle that does not fit the tile, or that CuTe does not have
        again = Layout.from_cute(text, size)
        r, c = np.indices((rows, cols))
        np.testing.assert_array_equal(again.address(r, c), layout.address(r, c), err_msg=text)
        found += 1
    assert found >= 3


def test_costs_do_not_depend_on_the_spelling():
    for text, same in (
        ("(32,32):(32,1)", Layout(32, 32)),
        ("((4,8),32):((33,132),1)", Layout(32, 32, pad=1)),
        ("Swizzle<5,0,5> o (32,32):(32,1)", Layout(32, 32, swizzle="xor")),
        ("(32,(8,4)):(32,(1,8))", Layout(32, 32)),
    ):
        layout = Layout.from_cute(text)
        for access in ("row", "column", "store column"):
            np.testing.assert_array_equal(layout.wavefronts(access), same.wavefronts(access))
    columns = Layout.from_cute("(32,32):(1,32)")
    assert columns.cost("column") == Layout(32, 32).cost("row")
    with pytest.raises(ValueError, match="does not keep vectors"):
        columns.cost("row:16B")


@pytest.mark.parametrize("mode, alignment", [("128B", 1024), ("64B", 512), ("32B", 256)])
def test_alignment(mode, alignment):
    """At multiples of it the hardware's XOR is the layout's, and at half of it, it is not."""
    cols = int(mode[:-1])
    layout = Layout(24, cols, 1, swizzle=mode)
    assert layout.alignment == alignment
    swizzle = {"128B": (3, 4, 3), "64B": (2, 4, 3), "32B": (1, 4, 3)}[mode]
    inner = np.arange(24 * cols)
    at = layout.address(*np.divmod(inner, cols))

    def agrees(start):
        hardware = np.array([bits_by_hand(swizzle, start + int(x)) - start for x in inner])
        return bool((hardware == at).all())

    assert agrees(alignment) and agrees(3 * alignment)
    assert not agrees(alignment // 2)
    assert f"multiple of {alignment} bytes" in layout._repr_html_()
    assert Layout(8, 8, 2).alignment == 2


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "expected a layout"),
        ("(8,64)", "expected a layout"),
        ("(8,64):(64)", "do not have the form"),
        ("(8,64):64", "do not have the form"),
        ("((8,2),8):((1,8),(16,2))", "do not have the form"),
        ("(8,n):(n,1)", "of whole numbers; found"),
        ("(8,8):(8,1):3", "expected a layout"),
        ("(2,3,4):(1,2,6)", "has 3 modes; a tile has two"),
        ("(8,8):(0,1)", "two elements have the same address"),
        ("(4,(2,2)):(2,(1,2))", "two elements have the same address"),
        ("(1000000,1000000):(3,2)", "more than 4194304 elements"),
        ("(8,0):(8,1)", "at least 1"),
        ("(8,8):(-8,1)", "negative strides"),
        ("Sw<3,4> o (8,8):(8,1)", "three numbers"),
        ("Sw<3,-4,3> o (8,8):(8,1)", "not negative"),
        ("Sw<3,4,2> o (8,8):(8,1)", "not a permutation"),
        ("Sw<3,50,3> o (8,8):(8,1)", "bits of an address"),
        ("Sw<3,0,3> o smem_ptr[16b](unset) o (8,64):(64,1)", "splits elements"),
        ("smem_ptr[4b](unset) o (8,64):(64,1)", "elements of 4 bits"),
        ("(" * 3000 + ")" * 3000 + ":1", "expected a layout"),
        ("x" * 20_000, "too long"),
    ],
    ids=lambda given: given[:30],
)
def test_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Layout.from_cute(text)


def test_itemsize():
    pointer = "smem_ptr[16b](unset) o (8,64):(64,1)"
    assert Layout.from_cute(pointer).itemsize == 2
    assert Layout.from_cute("(8,64):(64,1)").itemsize == 4
    with pytest.raises(ValueError, match="elements of 16 bits, and itemsize is 4"):
        Layout.from_cute(pointer, 4)
    with pytest.raises(ValueError, match="1, 2, 4, 8 or 16 bytes, not 3"):
        Layout.from_cute("(8,64):(64,1)", 3)
    with pytest.raises(ValueError, match="power of two"):
        Layout(32, 96, swizzle="xor").to_cute()
