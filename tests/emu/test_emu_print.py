"""printf in kernels, on the emulator: what reaches sys.stdout, and in which order."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest

import smemkern

pytestmark = pytest.mark.usefixtures("nvrtc")


def run(body: str, *args, grid=1, block=1, parameters="") -> None:
    source = f'extern "C" __global__ void speak({parameters}) {{ {body} }}'
    smemkern.Kernel(source, "speak")(grid, block, *args, device="emu")


CONVERSIONS = [
    ("%d", "-7", -7),
    ("%5d|%-5d|%05d|%+d", "42, 42, 42, 42", (42, 42, 42, 42)),
    ("%i %u", "-1, 4294967295u", (-1, 4294967295)),
    ("%x %X %#x %o", "48879, 48879, 48879, 8", (48879, 48879, 48879, 8)),
    ("%ld %lld %lu", "-(1l << 40), 1ll << 41, 1ul << 63", (-(1 << 40), 1 << 41, 1 << 63)),
    ("%c%c", "'o', 'k'", ("o", "k")),
    ("%f %.2f %8.3f|%-8.1f|", "1.5f, 2.25, 3.14159, 2.5f", (1.5, 2.25, 3.14159, 2.5)),
    ("%e %g %G", "12345.678, 1e-7, 1e20", (12345.678, 1e-7, 1e20)),
    ("%s and %-6s|%.2s", '"one", "two", "three"', ("one", "two", "three")),
    ("%*d|%.*f", "6, 12, 3, 2.0", (6, 12, 3, 2.0)),
    ("100 %% sure", "", ()),
]


@pytest.mark.parametrize("template, arguments, values", CONVERSIONS, ids=lambda v: str(v)[:20])
def test_conversions_print_as_in_c(capsys, template, arguments, values):
    run(f'printf("{template}\\n"{", " if arguments else ""}{arguments});')
    portable = template.replace("%lld", "%d").replace("%ld", "%d").replace("%lu", "%d")
    assert capsys.readouterr().out == portable % values + "\n"


def drawn_hexadecimal(rng):
    """(conversion, value): edges, ties of a short precision, subnormal numbers."""
    flags = "".join(flag for flag in "-+ #0" if rng.random() < 0.25)
    width = rng.choice(["", "12", "25", "40"])
    precision = rng.choice(["", ".0", ".1", ".3", ".12", ".13", ".17"])
    bits = rng.getrandbits(64)
    if rng.random() < 0.4:
        bits &= 0x800FFFFFFFFFFFFF  # zero or subnormal
    if rng.random() < 0.4:
        bits &= (1 << 64) - (1 << rng.randrange(53))
    if rng.random() < 0.2:
        bits |= 0x000FFFFFFFFFFFFF
    if rng.random() < 0.2:
        bits = rng.choice([0, 1 << 63, 1, 0x7FF0 << 48, 0xFFF0 << 48, 0x3FF8 << 48, 0x3FE8 << 48])
    value = np.uint64(bits).view("f8")
    return f"%{flags}{width}{precision}{rng.choice('aA')}", value


def test_hexadecimal_floats_are_those_of_glibc(capsys):
    """Own formatting, so that all hosts and the laboratory page print the same."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        pytest.skip("the C library is not glibc")
    rng = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    drawn = [one for one in (drawn_hexadecimal(rng) for _ in range(400)) if not np.isnan(one[1])]
    lines = "".join(f'printf("{text}|\\n", x[{k}]);' for k, (text, _) in enumerate(drawn))
    run(lines, np.array([value for _, value in drawn]), parameters="const double *x")
    room = ctypes.create_string_buffer(200)
    expected = []
    for text, value in drawn:
        libc.snprintf(room, ctypes.c_size_t(200), text.encode(), ctypes.c_double(value))
        expected.append(room.value.decode() + "|")
    assert capsys.readouterr().out.splitlines() == expected, seed


def test_infinities_and_nan(capsys):
    run(
        'printf("%f %f %f", x[0], x[1], x[2]);',
        np.array([np.inf, -np.inf, np.nan], "f4"),
        parameters="const float *x",
    )
    assert capsys.readouterr().out == "inf -inf nan"


def test_order_is_blocks_then_time_then_lanes(capsys):
    body = """
        printf("%d.%d ", blockIdx.x, threadIdx.x);
        __syncthreads();
        if (threadIdx.x % 2) printf("odd%d ", threadIdx.x);
    """
    run(body, grid=50, block=3)
    expected = "".join(f"{b}.0 {b}.1 {b}.2 odd1 " for b in range(50))
    assert capsys.readouterr().out == expected


def test_result_is_the_number_of_arguments():
    n = np.full(3, -9, "i4")
    source = (
        """n[0] = printf("nothing\\n"); n[1] = printf("%d %s", 1, "x"); n[2] = printf(nullptr);"""
    )
    run(source, n, parameters="int *n")
    assert n.tolist() == [0, 2, -1]


def test_text_before_a_fault_is_shown(capsys):
    with pytest.raises(smemkern.LaunchError, match="out of bounds: .* writes 4 bytes"):
        run('printf("so far\\n"); p[5] = 1;', np.zeros(2, "i4"), parameters="int *p")
    assert capsys.readouterr().out == "so far\n"


def test_a_format_that_is_not_there_is_a_fault():
    with pytest.raises(smemkern.LaunchError, match="null pointer|no memory"):
        run("printf((const char *)p);", 64, parameters="unsigned long long p")


def test_what_is_unknown_is_printed_as_it_stands(capsys):
    run('printf("a %q b %d", 3);')
    assert capsys.readouterr().out == "a %q b 3"


def test_a_flood_is_cut_and_said():
    body = 'for (int k = 0; k < 40000; k++) printf("%500d\\n", k);'
    with pytest.warns(RuntimeWarning, match="dropped"):
        run(body)


def test_a_trace_prints_too(capsys):
    kernel = smemkern.Kernel('extern "C" __global__ void k() { printf("hello\\n"); }', "k")
    smemkern.trace(kernel, 1, 2)
    assert capsys.readouterr().out == "hello\nhello\n"
