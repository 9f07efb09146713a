"""Wrong calls: each is refused before anything runs, and the message says what is right."""

import numpy as np
import pytest

import smemkern

F = np.ones((4, 4), np.float32)
D = np.ones((4, 4))


def of(dtype):
    return np.ones((4, 4)).astype(dtype)


# arguments, keywords, exception, what the message has to say
GEMM = [
    ((of("i4"), D), {}, TypeError, r"a has dtype int32.*a\.astype\(numpy\.float64\)"),
    ((D, of("?")), {}, TypeError, r"b has dtype bool.*b\.astype\(numpy\.float64\)"),
    (
        (of("f2"), of("f2")),
        {"variant": "naive"},
        TypeError,
        "'naive' does not take float16; it takes: float32, float64",
    ),
    ((D, of("g")), {}, TypeError, r"b has dtype (longdouble|float128).*astype"),
    ((of("c16"), D), {}, TypeError, r"complex128.*real and imaginary"),
    ((of(object), D), {}, TypeError, r"object.*astype"),
    ((of("S3"), D), {}, TypeError, r"S3.*float32, float64, float16 and bfloat16"),
    (([[1, 2], [3, 4]], [[1.0, 2.0]]), {}, TypeError, r"int64.*astype"),
    ((np.ma.masked_array(D, D > 2), D), {}, TypeError, r"a is a masked array.*filled"),
    ((D, np.ma.masked_array(D)), {}, TypeError, r"b is a masked array"),
    ((np.array("2020", "M8[s]"), D), {}, TypeError, r"datetime64"),
    ((3.0, D), {}, ValueError, r"a has 0 dimensions"),
    ((D, np.float64(3)), {}, ValueError, r"b has 0 dimensions"),
    ((D, np.ones((3, 4))), {}, ValueError, r"\(n\?,k\),\(k,m\?\)->\(n\?,m\?\).*3 is.* from 4"),
    ((D, np.ones(3)), {}, ValueError, r"size 3 is different from 4"),
    ((np.ones(3), D), {}, ValueError, r"size 4 is different from 3"),
    ((np.ones((2, 4, 4)), np.ones((3, 4, 4))), {}, ValueError, r"\(2, 4, 4\).*\(3, 4, 4\)"),
    ((np.ones((0, 4, 4)), np.ones((3, 4, 4))), {}, ValueError, r"broadcast"),
    ((D,), {}, TypeError, r"missing required argument 'b'"),
    ((D, D, D), {}, TypeError, r"takes 2 positional arguments but 3"),
    ((D, D), {"a": D}, TypeError, r"multiple values for argument 'a'"),
    (
        (D, D),
        {"variant": "tield"},
        ValueError,
        r"no variant 'tield'; there are: auto, naive.*tiled",
    ),
    ((D, D), {"variant": 3}, TypeError, r"variant must be a string"),
    ((D, D), {"variant": None}, TypeError, r"variant must be a string"),
    (
        (D, D),
        {"variant": "tiled", "tyle": 3},
        ValueError,
        r"no parameter 'tyle'; legal: tile = 4\.\.",
    ),
    (
        (D, D),
        {"variant": "tiled", "tile": 33},
        ValueError,
        r"tile = 33.*legal: 4\.\.32 \(default 32",
    ),
    ((D, D), {"variant": "tiled", "tile": 1 << 80}, ValueError, r"tile = .*legal: 4\.\.32"),
    (
        (D, D),
        {"variant": "tiled", "tile": 8.0},
        TypeError,
        r"parameter tile must be an integer, not float",
    ),
    ((D, D), {"variant": "naive", "tile": 8}, ValueError, r"'naive' has no parameter 'tile'"),
    ((D, D), {"tile": 8}, ValueError, r"'tile' belongs to a variant"),
    (
        (D, D),
        dict.fromkeys("cdefghijklmnop", 1) | {"variant": "tiled"},
        ValueError,
        r"no parameter",
    ),
    ((D, D), {"out": [[0.0] * 4] * 4}, TypeError, r"out must be a numpy\.ndarray, not list"),
    ((D, D), {"out": of("i8")}, TypeError, r"out has dtype int64, the result has float64"),
    ((D, D), {"out": of("c16"), "beta": 1}, TypeError, r"out has dtype complex128"),
    ((D, D), {"varient": "tiled"}, TypeError, r"unexpected keyword argument 'varient'"),
    ((D, D), {"tyle": 8}, TypeError, r"unexpected keyword argument 'tyle'"),
    ((D, D), {"out": np.ones((4, 5))}, ValueError, r"\(4, 5\).*\(4, 4\)"),
    ((D, D), {"out": np.ones((1, 4, 4))}, ValueError, r"\(1, 4, 4\).*\(4, 4\)"),
    ((D, D), {"out": np.broadcast_to(0.0, (4, 4))}, ValueError, r"out is read-only"),
    ((D, D), {"out": np.ma.masked_array(D.copy())}, TypeError, r"out is a masked array"),
    ((D, D), {"beta": 1.0}, ValueError, r"pass out="),
    ((D, D), {"alpha": "2"}, TypeError, r"alpha must be a real number, not str"),
    ((D, D), {"alpha": 2j}, TypeError, r"alpha must be a real number, not complex"),
    ((D, D), {"alpha": np.complex64(2)}, TypeError, r"alpha must be a real number"),
    ((D, D), {"beta": np.ones(2)}, TypeError, r"beta must be a real number"),
    ((D, D), {"alpha": None}, TypeError, r"alpha must be a real number, not NoneType"),
    ((D, D), {"device": "gpu"}, ValueError, r"'emu', 'cuda' or 'cuda:N', not 'gpu'"),
    ((D, D), {"device": "cuda:"}, ValueError, r"not 'cuda:'"),
    ((D, D), {"device": "cuda:1x"}, ValueError, r"not 'cuda:1x'"),
    ((D, D), {"device": 0}, TypeError, r"device must be.*int"),
    ((D, D), {"device": "emu", "stream": 1}, ValueError, r"'emu' has none"),
]

TRANSPOSE = [
    ((of(object),), {}, TypeError, r"object.*numpy\.swapaxes"),
    ((of("S3"),), {}, TypeError, r"S3.*1, 2, 4, 8 or 16 bytes"),
    ((of("U1").astype(np.dtypes.StringDType()),), {}, TypeError, r"StringDType"),
    ((np.ones((4, 4), [("x", "O"), ("y", "i8")]),), {}, TypeError, r"without Python references"),
    ((np.ma.masked_array(D),), {}, TypeError, r"masked"),
    ((np.ones(4),), {}, ValueError, r"1 dimension where at least 2"),
    ((3.0,), {}, ValueError, r"0 dimensions where at least 2"),
    ((D,), {"out": np.ones((4, 5))}, ValueError, r"\(4, 5\).*\(4, 4\)"),
    ((D,), {"out": F.copy()}, TypeError, r"out has dtype float32"),
    ((D,), {"alpha": 2}, TypeError, r"unexpected keyword argument 'alpha'"),
    (
        (D,),
        {"variant": "conflicted"},
        ValueError,
        r"no variant 'conflicted'; there are: auto, naive",
    ),
    ((), {}, TypeError, r"missing required argument 'a'"),
]

X = np.ones(4096, np.float32)
PROBE = [
    ((np.ones(4096),), {}, TypeError, r"x has dtype float64.*x\.astype\(numpy\.float32\)"),
    ((np.ones((64, 64), np.float32),), {}, ValueError, r"2 dimensions where 1.*ravel"),
    ((X[:3],), {"variant": "coalescing"}, ValueError, r"reads \d+ elements; x has 3"),
    ((X,), {"variant": "auto"}, ValueError, r"no variant 'auto'; there are: stride_read"),
    ((X,), {"out": X}, TypeError, r"parameter out must be an integer"),
    ((), {}, TypeError, r"missing required argument 'x'"),
]

CALLS = [
    pytest.param(function, *call, id=f"{function.__name__}-{i}")
    for function, calls in (
        (smemkern.gemm, GEMM),
        (smemkern.transpose, TRANSPOSE),
        (smemkern.probe, PROBE),
    )
    for i, call in enumerate(calls)
]


@pytest.mark.parametrize(("function", "args", "kwargs", "exception", "message"), CALLS)
def test_refused(function, args, kwargs, exception, message):
    out = kwargs.get("out")
    before = np.array(out) if isinstance(out, np.ndarray) else None
    with pytest.raises(exception, match=f"(?s){message}"):
        function(*args, **kwargs)
    if before is not None:
        assert np.array_equal(out, before)


def test_no_such_gpu():
    with pytest.raises(smemkern.NoDeviceError):
        smemkern.gemm(D, D, device="cuda:77")


def test_operands_may_be_keywords():
    assert np.array_equal(smemkern.gemm(b=D, a=2 * D, device="emu"), 2 * D @ D)


def test_real_numbers_of_any_kind():
    from fractions import Fraction

    for alpha in (2, 2.0, np.float32(2), np.int8(2), np.array(2.0), Fraction(2), True + True):
        assert np.array_equal(smemkern.gemm(D, D, alpha=alpha, device="emu"), 2 * D @ D)


def test_integer_parameters_of_any_kind():
    for pad in (1, True, np.int64(1), np.uint8(1)):
        smemkern.gemm(D, D, variant="tiled", pad=pad, device="emu")
