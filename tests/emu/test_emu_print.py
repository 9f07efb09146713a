"""printf in kernels, on the emulator: what reaches sys.stdout, and in which order."""

from __future__ import annotations

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
