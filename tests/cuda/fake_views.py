"""Views of arrays in the fake driver's memory that a kernel cannot read or write where they are,
and results that lie over what they are made from. NumPy says what is right.

Run by test_fake_driver.py, with LD_LIBRARY_PATH set to the fake's folder; a function a case.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from fake_exchange import OTHER, STREAM, Tensor, fake
from fake_matrices import INTERFACE, close, floats, refuse

import smemkern
from smemkern import _core

VIEWS = {
    "as it is": lambda x: x,
    "transposed": lambda x: x.swapaxes(-1, -2).copy().swapaxes(-1, -2),
    "backwards": lambda x: x[..., ::-1, ::-1],
    "every third": lambda x: np.repeat(x, 3, axis=-1)[..., ::3],
    "rows backwards": lambda x: x[..., ::-1, :],
    "one row for all": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
    "batch last": lambda x: np.moveaxis(np.moveaxis(x, 0, -1).copy(), -1, 0),
    "a column of cubes": lambda x: np.repeat(x[..., None], 5, axis=-1)[..., 2],
}


def shown(values: np.ndarray):
    """The view's memory in the fake's, and the view of it: the same strides."""
    low, high = np.lib.array_utils.byte_bounds(values) if values.size else (values.ctypes.data,) * 2
    memory = INTERFACE(np.zeros((high - low) // 4, "f4"))
    low -= values.ctypes.data
    memory.whole = memory.host
    memory.host = np.lib.stride_tricks.as_strided(
        memory.whole[-low // 4 :], values.shape, values.strides
    )
    for at in np.ndindex(values.shape):  # also of views that repeat elements
        memory.host[at] = values[at]
    return memory


def inputs() -> None:
    for name_a, name_b in itertools.product(VIEWS, VIEWS):
        for batch in ((), (3,), (2, 1)):
            a = shown(VIEWS[name_a](floats(*batch, 4, 5)))
            b = shown(VIEWS[name_b](floats(*batch, 5, 6)))
            out = INTERFACE(np.full((*batch, 4, 6), np.nan, "f4"))
            before = a.whole.copy(), b.whole.copy()
            smemkern.gemm(a, b, variant="naive", out=out)
            close(out.host, a.host @ b.host)
            assert np.array_equal(a.whole, before[0]) and np.array_equal(b.whole, before[1])
        turned = INTERFACE(np.full((*batch, 5, 4), np.nan, "f4"))
        for variant in ("naive", "sector_aligned"):
            turned.host[...] = np.nan
            smemkern.transpose(a, variant=variant, out=turned)
            assert np.array_equal(turned.host, a.host.swapaxes(-1, -2)), (name_a, variant)
    for vector in (floats(10)[::-2], floats(5)[::-1], floats(15)[::3]):
        v, b, out = shown(vector), shown(floats(5, 6)), INTERFACE(np.full(6, np.nan, "f4"))
        smemkern.gemm(v, b, variant="naive", out=out)
        close(out.host, vector @ b.host)
        out = INTERFACE(np.full(4, np.nan, "f4"))
        a = shown(floats(5, 4).T)
        smemkern.gemm(a, v, variant="naive", out=out)
        close(out.host, a.host @ vector)


def only_what_is_needed() -> None:
    """Launches, and the streams that are waited for, are what they were without views."""
    a, b, out = Tensor(floats(4, 4)), Tensor(floats(4, 4)), Tensor(floats(4, 4))

    def launches(*operands, **keywords) -> int:
        before, alive = fake.launches, fake.alive[0]
        smemkern.gemm(*operands, variant="naive", **keywords)
        assert fake.alive[0] == alive, "the memory of copies went back to the pool"
        return fake.launches - before

    turned = shown(floats(4, 4).T)
    assert launches(a, b, out=out) == 1
    assert launches(turned, b, out=out) == launches(b, turned, out=out) == 2
    assert launches(turned, turned, out=out) == 3
    assert launches(a, b, out=turned) == 2
    assert launches(a, b, out=turned, beta=0.5) == 3
    assert launches(turned, turned, out=turned, beta=0.5) == 5
    Tensor.stream = STREAM
    turned.stream = OTHER
    waits = fake.waits
    assert launches(a, turned, out=out) == 2
    assert fake.launched_on == STREAM and fake.waits == waits + 1
    for k, n in ((0, 4), (4, 0)):
        result = INTERFACE(np.full((4, n), np.nan, "f4"))
        a, b = shown(np.zeros((k, 4), "f4").T), shown(np.zeros((n, k), "f4").T)
        smemkern.gemm(a, b, variant="naive", out=result)
        assert not result.host.any()


def chosen() -> None:
    """Where no variant reads the strides, `auto` takes the fastest of those that read a copy."""
    costs = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    only = ("gemm", "naive", {}, "float32", 16, 0, costs)
    _core.set_timings(0, [only])
    for view in VIEWS.values():
        a, b = shown(view(floats(4, 8))), INTERFACE(floats(8, 4))
        out = INTERFACE(np.full((4, 4), np.nan, "f4"))
        smemkern.gemm(a, b, out=out)
        close(out.host, a.host @ b.host)


def results() -> None:
    """Out of any strides; what is between its elements stays."""
    for name in VIEWS:
        if name == "one row for all":
            continue
        for batch in ((), (3,), (2, 2)):
            a, b = floats(*batch, 4, 5), floats(*batch, 5, 6)
            old = floats(*batch, 4, 6)
            for beta in (0.0, 0.5):
                out = shown(VIEWS[name](old))
                start = out.host.copy()
                out.whole[:] = np.where(np.isin(out.whole, start), out.whole, 7)
                between = ~np.isin(out.whole, start)
                smemkern.gemm(
                    INTERFACE(a), INTERFACE(b), variant="naive", out=out, alpha=2, beta=beta
                )
                close(out.host, 2 * (a @ b) + beta * start)
                assert (out.whole[between] == 7).all()
            x = floats(*batch, 6, 4)
            for variant in ("naive", "sector_aligned"):
                out.host[...] = np.nan
                smemkern.transpose(INTERFACE(x), variant=variant, out=out)
                assert np.array_equal(out.host, x.swapaxes(-1, -2)), (name, variant)
    vector = shown(np.zeros(12, "f4")[::-2])
    a, b = floats(5), floats(5, 6)
    smemkern.gemm(INTERFACE(a), INTERFACE(b), variant="naive", out=vector)
    close(vector.host, a @ b)


def over_inputs() -> None:
    """As NumPy: as though all of the inputs were read before the result is written."""
    square = np.arange(1, 26, dtype="f4").reshape(5, 5)
    for pick in (lambda w: w[1:6], lambda w: w[2:7], lambda w: w[6:1:-1], lambda w: w[1:6].T):
        memory = INTERFACE(np.resize(square, (9, 5)) / 50)
        whole = memory.host

        def at(host, memory=memory):
            other = INTERFACE.__new__(INTERFACE)
            other.n, other.host, other.type_, other.read_only = 25, host, "<f4", False
            other.stream, other.address = None, memory.address
            return other

        for beta in (0.0, 1.0):
            a, b, out = at(whole[:5]), at(whole[4:9]), at(pick(whole))
            want = a.host @ b.host + beta * out.host
            smemkern.gemm(a, b, variant="naive", out=out, beta=beta)
            close(out.host, want)
        for variant in ("naive", "sector_aligned"):
            x = at(whole[:5])
            want = x.host.T.copy()
            smemkern.transpose(x, variant=variant, out=at(pick(whole)))
            assert np.array_equal(pick(whole), want)
    x = at(whole[:5])
    want = x.host.T.copy()
    smemkern.transpose(x, variant="naive", out=x)
    assert np.array_equal(x.host, want)


def refused() -> None:
    a, b, out = (INTERFACE(floats(4, 4)) for _ in range(3))
    before = out.host.copy()
    a.host = np.lib.stride_tricks.as_strided(a.host, (4, 4), (2, 4))
    refuse(ValueError, "do not begin at multiples of their size", smemkern.gemm, a, b, out=out)
    refuse(ValueError, "b.copy() of CuPy", smemkern.gemm, b, a, out=out)
    a.type_ = "<f8"
    refuse(TypeError, "nothing is converted silently", smemkern.gemm, b, a, out=out)
    assert np.array_equal(out.host, before)


CASES = (inputs, only_what_is_needed, chosen, results, over_inputs, refused)

if __name__ == "__main__":
    {case.__name__: case for case in CASES}[sys.argv[1]]()
