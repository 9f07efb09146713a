"""Tuples as structs that a kernel takes by value: the compiler's own layout judges ours."""

import random

import numpy as np
import pytest

import smemkern

Kernel = smemkern.Kernel

# C++ type: (a value of it, what the kernel writes of it as doubles)
SCALARS = {
    "signed char": lambda: np.int8(random.randint(-128, 127)),
    "unsigned short": lambda: np.uint16(random.randint(0, 65535)),
    "int": lambda: random.randint(-(2**31), 2**31 - 1),
    "float": lambda: np.float32(random.uniform(-9, 9)),
    "double": lambda: random.choice([np.float64, np.double])(random.uniform(-9, 9)),
    "long long": lambda: np.int64(random.randint(-(2**50), 2**50)),
    "bool": lambda: random.random() < 0.5,
}


def drawn(depth, name):
    """(members of a struct in C++, statements that write them, the tuple, what is written)."""
    fields, writes, values, expected = [], [], [], []
    for k in range(random.randint(1, 6)):
        member = f"m{k}"
        kind = random.choice([*SCALARS, "array", "struct" if depth < 3 else "array"])
        if kind == "struct":
            inner, below, value, more = drawn(depth + 1, f"{name}.{member}")
            fields.append(f"struct {{ {inner} }} {member};")
            writes += below
            expected += more
        elif kind == "array":
            value = np.array([random.uniform(-9, 9) for _ in range(random.randint(1, 5))])
            fields.append(f"const double *{member};")
            writes.append(f"{name}.{member}[{value.size - 1}]")
            expected.append(value[-1])
        else:
            value = SCALARS[kind]()
            fields.append(f"{kind} {member};")
            writes.append(f"{name}.{member}")
            expected.append(float(value))
        values.append(value)
    return " ".join(fields), writes, tuple(values), expected


@pytest.mark.parametrize("_", range(8))
def test_layouts_are_the_compilers(nvrtc, _):
    seed = random.randrange(2**32)
    random.seed(seed)
    fields, writes, given, expected = drawn(0, "s")
    body = " ".join(f"*out++ = {write};" for write in writes)
    source = f"""struct S {{ {fields} }};
    extern "C" __global__ void k(char before, S s, double *out) {{ {body} *out = before; }}"""
    out = np.zeros(len(expected) + 1)
    print(f"seed {seed}\n{source}")
    Kernel(source, "k")(1, 1, np.int8(7), given, out, device="emu")
    np.testing.assert_array_equal(out, [*expected, 7])


MATRICES = """struct Matrix { int width, height; float *elements; };
extern "C" __global__ void half(Matrix a, Matrix b) {
    int i = threadIdx.x;
    b.elements[i * b.width + i] = a.elements[i * a.width + i] / 2;
}"""


def test_arrays_are_written_checked_and_named(nvrtc):
    a, b = np.random.default_rng().random((32, 32), "f4"), np.zeros((32, 32), "f4")
    found = smemkern.check(MATRICES, 1, 32, (32, 32, a), (32, 32, b))
    assert not found
    np.testing.assert_array_equal(b, np.diag(np.diag(a) / 2))
    same = np.ones((32, 32), "f4")
    assert not smemkern.check(MATRICES, 1, 32, (32, 32, same), (32, 32, same))
    assert same.trace() == 16  # two pointers to one array
    [past] = smemkern.check(MATRICES, 1, 32, (32, 32, a), (33, 32, b))
    assert past.kind == "out-of-bounds" and past.argument == 1
    assert "argument 1, byte 4216, past its 4096 bytes" in past.message
    constant = a.copy()
    constant.flags.writeable = False
    [written] = smemkern.check(MATRICES, 1, 32, (32, 32, a), (32, 32, constant))
    assert "read-only" in written.message


def test_null_pointers(nvrtc):
    source = """struct S { const int *p; int n; };
    extern "C" __global__ void k(S s, int *out) { *out = s.p ? *s.p : s.n; }"""
    kernel, out = Kernel(source, "k"), np.zeros(1, "i4")
    for pointer, want in ((None, 5), (np.array([3], "i4"), 3)):
        kernel(1, 1, (pointer, 5), out, device="emu")
        assert out[0] == want


def test_on_the_command_line(nvrtc, command, tmp_path):
    (tmp_path / "half.cu").write_text(MATRICES)
    given = ["check", str(tmp_path / "half.cu"), "--grid", "1", "--block", "32"]
    given += ["--arg", "{32, 32, f32[32,32]=random}", "--arg"]
    assert command.run("", *given, "{32,32,f32[32,32]}") == 0
    assert command.run("", *given, "{32,32,f32[31,32]}") == 1
    assert "argument 1, byte 4092, past its 3968 bytes" in " ".join(command.out.split())
    assert command.run("", *given, "{32,f32[31,32]") == 2
    assert "a struct of these {5,f32[64]}" in command.err


def nested(depth):
    return (nested(depth - 1),) if depth else (1,)


def doubled(depth):
    """A tuple that holds itself 2**depth times."""
    one = ()
    for _ in range(depth):
        one = (one, one)
    return one


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ((1,), TypeError, "make a struct of 4 bytes; the kernel's struct has 16"),
        ((1, 2, None, 3), TypeError, "at least 24 bytes; the kernel's struct has 16"),
        ((), TypeError, "make a struct of 1 bytes"),
        ((1, 0.5, None), TypeError, "type float; pass numpy.float32 or numpy.float64"),
        ((1, "2", None), TypeError, "type str; members of a struct are NumPy arrays"),
        ((1, [2], None), TypeError, "type list; members of a struct are NumPy arrays"),
        ((1, 2**32, None), OverflowError, "does not fit into an int; pass numpy.int64"),
        ((1, 2, np.zeros((4, 4), "f4")[:, ::2]), ValueError, "not contiguous"),
        ((1, 2, np.array([None])), TypeError, "dtype object"),
        (nested(100), TypeError, "nested 32 deep"),
        (doubled(30), TypeError, "at least .* bytes; the kernel's struct has 16"),
    ],
)
def test_refused(nvrtc, given, error, match):
    kernel, a = Kernel(MATRICES, "half"), np.zeros((32, 32), "f4")
    with pytest.raises(error, match=match):
        kernel(1, 32, (32, 32, a), given, device="emu")


def test_a_tuple_for_a_number_is_refused(nvrtc):
    kernel = Kernel('extern "C" __global__ void k(int n) {}', "k")
    with pytest.raises(TypeError, match="is a tuple, which is a struct, but"):
        kernel(1, 1, (3,), device="emu")
