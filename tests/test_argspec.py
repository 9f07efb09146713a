"""Kernel arguments as text."""

import numpy as np
import pytest

from smemkern._trace.argspec import argument, arguments, extent


def one(text, seed=0):
    [made] = arguments([text], seed)
    return made


def test_an_array_alone_is_zeros():
    made = one("f32[1024]")
    assert made.dtype == np.float32
    assert made.shape == (1024,)
    assert not made.any()


@pytest.mark.parametrize("name", ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u64"])
def test_fills(name):
    made = one(f"{name}[5,7]=random")
    assert made.shape == (5, 7)
    assert len(np.unique(made)) > 10
    assert not one(f"{name}[3]=zeros").any()
    np.testing.assert_array_equal(one(f"{name}[2]=ones"), [1, 1])
    np.testing.assert_array_equal(one(f"{name}[2,3]=arange"), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(one(f"{name}[2]=7"), [7, 7])
    assert one(f"{name}=5") == 5
    assert one(f"{name}=5").dtype == made.dtype


def test_numpys_names_and_bases():
    assert one("float32[2]").dtype == np.float32
    assert one("uint32=0xffffffff") == 0xFFFFFFFF
    assert one("f64=1e-3") == 1e-3
    assert one("i32=-5") == -5
    assert np.isnan(one("f32=nan"))
    assert one("f32[0]").size == 0


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("-3", -3), ("0x10", 16), ("0.5", 0.5), ("1e3", 1000.0)]
)
def test_a_number_without_a_type(text, value):
    """Python's int or float, which a Kernel converts to the type of its parameter."""
    assert type(one(text)) is type(value) and one(text) == value


def test_random_is_of_the_seed():
    texts = ["f32[64]=random", "f32[64]=random"]
    first, again, other = arguments(texts), arguments(texts), arguments(texts, seed=1)
    np.testing.assert_array_equal(first, again)
    assert (first[0] != other[0]).any()
    assert (first[0] != first[1]).any()


def test_a_file(tmp_path, rng):
    x = rng.standard_normal((3, 5))
    np.save(tmp_path / "x.npy", x)
    np.testing.assert_array_equal(one(str(tmp_path / "x.npy")), x)
    with pytest.raises(OSError, match="missing"):
        one("missing.npy")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "should be one of"),
        ("f32", "should be one of"),
        ("f32[4", "should be one of"),
        ("x32[4]", "no type 'x32'"),
        ("complex64[4]", "no type"),
        ("object[4]", "no type"),
        ("f8[4]", "no type"),
        ("f32[]", "expected lengths"),
        ("f32[-1]", "expected lengths"),
        ("f32[4]=tall", "'tall' is not a number"),
        ("i32=1.5", "not an integer"),
        ("u8=256", "does not fit"),
        ("u32=-1", "does not fit"),
    ],
)
def test_refused(text, why):
    with pytest.raises(ValueError, match=why):
        one(text)


def test_a_tensor_map():
    made = one("tensor{f32[6,40]=arange, box=3x8, swizzle=32B, element_strides=2x1, fill=nan}")
    np.testing.assert_array_equal(made.array, np.arange(240, dtype="f4").reshape(6, 40))
    assert (made.box, made.swizzle) == ((3, 8), "32B")
    assert (made.element_strides, made.fill) == ((2, 1), "nan")
    plain = one("tensor{u8[64],box=16}")
    assert (plain.box, plain.swizzle, plain.element_strides, plain.fill) == (
        (16,),
        None,
        (1,),
        None,
    )


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("", "should be one of"),
        ("5,box=4", "expected an array first, found '5'"),
        ("f32[64]", "needs a box"),
        ("f32[64],box=", "expected numbers, as 16x32"),
        ("f32[64],box=-4", "expected numbers"),
        ("f32[64],box=4,box=4", "expected each of"),
        ("f32[64],box=4,size=4", "expected each of .* found 'size=4'"),
        ("f32[64],box=3", "must be a multiple of 16"),
        ("f32[64],box=4x4", "box has 2 elements, the array 1"),
        ("f32[64],box=4,swizzle=16B", "swizzle must be None or one of 32B"),
        ("i32[64],box=4,fill=nan", "no NaN"),
        ("f32[4,3],box=4x4", "multiple of 16"),
    ],
)
def test_a_wrong_tensor_map(inside, why):
    with pytest.raises(ValueError, match=why):
        one(f"tensor{{{inside}}}")


def test_extent():
    assert extent("256") == (256,)
    assert extent("16,16") == extent("16x16") == (16, 16)
    for text in ("", "0", "1,2,3,4", "a", "-1"):
        with pytest.raises(ValueError, match="positive integers"):
            extent(text)


def test_random_bytes_are_all_bytes(drawn):
    assert len(np.unique(argument("u8[20000]=random", drawn))) == 256
