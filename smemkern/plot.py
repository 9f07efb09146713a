"""Plots of the models. They need matplotlib (pip install '.[plot]' in a clone), but no display.

Each function draws into `ax`, or into a new figure, and returns the Axes. Colours are Okabe and
Ito's and matplotlib's perceptually uniform maps, which colour-blind readers can distinguish.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._banks.layout import Layout
from ._banks.request import Request, explain
from ._banks.wavefronts import LANES, Arch, lanes_of, mask_of
from ._device.architectures import BANK_BYTES, BANKS
from ._device.occupancy import LIMITERS
from ._device.occupancy import occupancy as _occupancy
from ._performance.roofline import Roofline
from ._performance.roofline import roofline as _roofline
from .banks import stride_table as _stride_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["layout", "occupancy", "request", "roofline", "sectors", "stride_table"]


def __dir__() -> list[str]:
    return sorted(__all__)


NO_MATPLOTLIB = "pictures need matplotlib: pip install '.[plot]' in the clone"
BLUE, ORANGE, GREEN, RED, PURPLE = "#0072B2 #E69F00 #009E73 #D55E00 #CC79A7".split()
GREY = "#8a8a8a"
OF_LIMITER = dict(zip(LIMITERS, (BLUE, ORANGE, GREEN, PURPLE, RED), strict=True))


def pyplot() -> Any:
    """matplotlib.pyplot, where notebooks and plt.show() look for figures."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(NO_MATPLOTLIB) from missing
    return plt


def _axes(ax: Axes | None, width: float, height: float) -> Axes:
    plt = pyplot()
    if ax is not None:
        return ax
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _clean(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)


# ---- a request ----


def request(
    addresses: ArrayLike | Request,
    width: int = 4,
    op: str = "load",
    active: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plots the banks that each lane accesses, coloured by the wavefront that serves it.

    Parameters
    ----------
    addresses, width, op, active
        The arguments of smemkern.banks.explain for one request; or as addresses a Request, such as
        a trace row's worst_request, without the other three.
    ax : matplotlib Axes, optional
    """
    if not isinstance(addresses, Request):
        addresses = explain(addresses, width, op, active)
    return draw_request(_axes(ax, 7, 5.6), addresses)


def draw_request(ax: Axes, request_: Request) -> Axes:
    """Plots a Request into the Axes."""
    import matplotlib as mpl

    served = _wavefront_of_lanes(request_)
    grid = np.full((LANES, BANKS), np.nan)
    words = max(request_.width // BANK_BYTES, 1)
    for lane, bank in zip(request_.lanes, request_.banks[request_.active, 0].tolist(), strict=True):
        grid[lane, np.arange(bank, bank + words) % BANKS] = served[lane]
    n = max(request_.cost, 1)
    colours = (
        mpl.colormaps["viridis_r"].resampled(n) if n > 1 else mpl.colors.ListedColormap([BLUE])
    )
    edges = np.arange(BANKS + 1) - 0.5
    mesh = ax.pcolormesh(
        edges,
        edges,
        grid,
        cmap=colours,
        vmin=0.5,
        vmax=n + 0.5,
        edgecolors="#e8e8e8",
        linewidth=0.4,
    )
    if n > 1:
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=30)
        bar.set_label("served in wavefront")
        bar.set_ticks(range(1, n + 1, max(1, -(-n // 8))))
    for group in request_.groups[1:]:
        ax.axhline(group[0] - 0.5, color="black", linewidth=1)
    ax.set_xticks(range(0, BANKS, 4))
    ax.set_yticks(range(0, LANES, 4))
    ax.set(xlim=(-0.5, 31.5), ylim=(31.5, -0.5), xlabel="bank", ylabel="lane", aspect="equal")
    several = f", {len(request_.groups)} groups of lanes" if len(request_.groups) > 1 else ""
    plural = "" if request_.cost == 1 else "s"
    ax.set_title(
        f"{request_.op}, {request_.width} bytes per lane{several}\n"
        f"{request_.cost} wavefront{plural}, ideal {request_.ideal}",
        fontsize=11,
    )
    return ax


def _wavefront_of_lanes(request_: Request) -> NDArray[Any]:
    """The number, from 1 on, of the wavefront that serves each lane.

    Groups follow one another; within a group, a bank serves its words one after another.
    """
    served = request_.turns.max(axis=1) + 1
    before = 0
    for group in map(list, request_.groups):
        took = served[group].max()
        served[group] += before
        before += took
    return served


# ---- a request to global memory ----


def sectors(
    addresses: ArrayLike,
    width: int = 4,
    active: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plots the 32-byte sectors that each lane accesses, omitting lines without any access.

    Parameters
    ----------
    addresses, width, active
        The arguments of smemkern.coalescing.sectors for one request to global memory.
    ax : matplotlib Axes, optional
    """
    from . import coalescing

    count = coalescing.sectors(addresses, width, active)
    if np.ndim(count):
        raise ValueError(f"sectors draws one request, not an array of shape {np.shape(count)}")
    at = np.asarray(addresses)
    lanes = np.flatnonzero(lanes_of(mask_of(active, (1,), len(at)))[0])
    lines = np.unique(at[lanes] // coalescing.LINE)
    per_line = coalescing.LINE // coalescing.SECTOR
    first = at[lanes] // coalescing.SECTOR
    column = np.searchsorted(lines, first // per_line) * per_line + first % per_line
    grid = np.full((LANES, max(per_line * len(lines), 1)), np.nan)
    grid[:, column] = 0
    grid[lanes, column] = 1
    ax = _axes(ax, 7, 5.6)
    import matplotlib as mpl

    edges = np.arange(grid.shape[1] + 1) - 0.5, np.arange(LANES + 1) - 0.5
    ax.pcolormesh(*edges, grid, cmap=mpl.colors.ListedColormap(["#dcebf5", BLUE]), vmin=0, vmax=1)
    for edge in range(0, grid.shape[1] + 1, per_line):
        ax.axvline(edge - 0.5, color="#c8c8c8", linewidth=0.6)
    ax.set_yticks(range(0, LANES, 4))
    ax.set_xticks([])
    ax.set(ylim=(31.5, -0.5), ylabel="lane", xlabel="sectors of 32 bytes, in lines of 128")
    ideal = coalescing.ideal(addresses, width, active)
    ax.set_title(
        f"{width} bytes per lane\n{count} sector{'' if count == 1 else 's'} in {len(lines)} "
        f"line{'' if len(lines) == 1 else 's'}, ideal {ideal}",
        fontsize=11,
    )
    return ax


# ---- a layout ----


def layout(what: Layout, access: Any = None, *, request: int = 0, ax: Axes | None = None) -> Axes:
    """Plots the elements of a tile, coloured and numbered by bank, and outlines one request.

    Parameters
    ----------
    what : smemkern.banks.Layout
    access : optional
        The access pattern, as for Layout.cost: "column", "row:16B", ...
    request : int
        The number of the request to outline.
    ax : matplotlib Axes, optional
    """
    across, down = min(max(what.cols, 16), 64), min(max(what.rows, 12), 36)
    ax = _axes(ax, 1.2 + 0.23 * across, 1.1 + 0.19 * down)
    import matplotlib as mpl
    from matplotlib.patches import Rectangle

    r, c = np.indices((what.rows, what.cols))
    bank = what.bank(r, c)
    # A cyclic map, because banks are cyclic. Lightened, so that the numbers are readable.
    wheel = mpl.colormaps["twilight"](np.linspace(0, 1, BANKS, endpoint=False))
    wheel[:, :3] = 1 - 0.5 * (1 - wheel[:, :3])
    image = ax.imshow(
        bank, cmap=mpl.colors.ListedColormap(wheel), vmin=-0.5, vmax=31.5, aspect="auto"
    )
    if what.rows <= 32 and what.cols <= 64:
        step = max(BANK_BYTES // what.itemsize, 1)  # one number per word
        for i, j in np.ndindex(what.rows, what.cols):
            if j % step == 0 or bank[i, j] != bank[i, j - 1]:
                number = ax.text(j, i, str(bank[i, j]), ha="center", va="center", fontsize=7)
                number.set_in_layout(False)  # skips measuring it, which is slow
        title = f"{what!r}; the numbers are banks"
    else:
        ax.figure.colorbar(image, ax=ax, pad=0.02, label="bank", ticks=range(0, BANKS, 4))
        title = repr(what)
    if what._bits:
        title += f"\nthe tile starts at a multiple of {what.alignment} bytes"
    if access is not None:
        from ._banks.access import read_access

        given = read_access(access, what.rows, what.cols, what.itemsize)
        cost = int(what.wavefronts(given)[request])
        lanes = zip(given.r[request], given.c[request], given.active[request], strict=True)
        for i, j, on in lanes:
            if on:
                size = (given.width // what.itemsize, 1)
                ax.add_patch(
                    Rectangle(
                        (j - 0.5, i - 0.5), *size, fill=False, edgecolor="black", linewidth=1.8
                    )
                )
        title += f"\n{given.name}, request outlined: {cost} wavefront{'' if cost == 1 else 's'}"
    ax.set(xlabel="column", ylabel="row")
    for axis, length in ((ax.xaxis, what.cols), (ax.yaxis, what.rows)):
        axis.set_ticks(range(0, length, 4 * -(-length // 64)))
    ax.set_title(title, fontsize=10)
    return ax


# ---- strides ----


def stride_table(
    strides: ArrayLike = tuple(range(1, 34)),
    width: int = 4,
    op: str = "load",
    *,
    ax: Axes | None = None,
) -> Axes:
    """Plots the wavefronts per request by stride, and the percentage of the bandwidth achieved.

    Parameters
    ----------
    strides, width, op
        See smemkern.banks.stride_table.
    ax : matplotlib Axes, optional
    """
    ax = _axes(ax, 9, 3.6)
    rows = _stride_table(strides, width, op)
    at = np.arange(len(rows))
    cost = np.array([row.wavefronts for row in rows])
    free = np.array([row.bandwidth == 100 for row in rows])
    ax.bar(at, cost, color=np.where(free, BLUE, ORANGE), width=0.75)
    for x, row in enumerate(rows):
        if row.bandwidth < 100:
            ax.text(
                x,
                1.05 * row.wavefronts,
                f"{row.bandwidth:.1f}".removesuffix(".0"),
                ha="center",
                fontsize=7,
            )
    ax.set_yscale("log", base=2)
    ticks = [2**i for i in range(8) if 2**i <= 2 * cost.max()]
    ax.set_yticks(ticks, [str(t) for t in ticks])
    ax.set_xticks(at, [str(row.stride) for row in rows], fontsize=8)
    ax.set(xlim=(-0.7, len(rows) - 0.3), ylim=(min(1, cost.min()) / 1.15, 1.5 * cost.max()))
    ax.set(xlabel=f"stride, elements of {width} bytes", ylabel="wavefronts per request")
    ax.set_title("Bank conflicts by stride; on the bars, % of the full bandwidth", fontsize=11)
    _clean(ax)
    return ax


# ---- occupancy ----


def occupancy(
    registers: int,
    shared_bytes: int = 0,
    arch: Arch = "sm_90",
    *,
    threads: int | None = None,
    ax: Axes | None = None,
    **kw: Any,
) -> Axes:
    """Plots occupancy by block size, coloured by the limiting resource.

    Parameters
    ----------
    registers, shared_bytes, arch, **kw
        See smemkern.occupancy.
    threads : int, optional
        A block size to annotate.
    ax : matplotlib Axes, optional
    """
    ax = _axes(ax, 7.5, 3.8)
    sizes = np.arange(32, 1025, 32)
    curve = _occupancy(sizes, registers, shared_bytes, arch, **kw)
    share = 100 * curve.fraction
    ax.step(sizes, share, where="mid", color="#c8c8c8", linewidth=1.2, zorder=1)
    for limiter, colour in OF_LIMITER.items():
        here = curve.limiter == limiter
        if here.any():
            ax.scatter(sizes[here], share[here], color=colour, s=30, label=limiter, zorder=2)
    if threads is not None:
        one = _occupancy(threads, registers, shared_bytes, arch, **kw)
        plural = "" if one.blocks == 1 else "s"
        ax.annotate(
            f"{threads} threads: {one.blocks} block{plural}, {one.fraction:.0%}",
            (threads, 100 * one.fraction),
            xytext=(0, 14),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "color": GREY},
        )
    ax.set_xticks(range(0, 1025, 128))
    ax.set(xlim=(0, 1056), ylim=(0, 112), xlabel="threads per block")
    ax.set_ylabel("occupancy, % of warps")
    ax.set_title(
        f"{curve.arch.sm}: {registers} registers per thread, {shared_bytes} bytes of shared memory",
        fontsize=11,
    )
    ax.legend(
        title="limited by", frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize=9
    )
    _clean(ax)
    return ax


# ---- roofline ----


def roofline(
    what: Roofline | tuple[int, int, int],
    dtype: Any = "float32",
    *,
    measured: Mapping[str, float] | str | PathLike[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plots the variants of gemm under the roofs of arithmetic and of L1 and shared memory.

    Parameters
    ----------
    what : Roofline or (M, N, K)
    dtype : dtype
        Used if `what` is a shape.
    measured : mapping or path, optional
        TFLOP/s by variant, or a results file of benchmarks/gpu.py; plotted as dots.
    ax : matplotlib Axes, optional
    """
    roof = what if isinstance(what, Roofline) else _roofline("gemm", what, dtype)
    if not roof.flops:
        raise ValueError(f"a {roof.op} has no FLOPs, so no roofline; see its .variants")
    speeds = _speeds(measured, roof)
    ax = _axes(ax, 8.5, 5)
    bandwidth, peak = roof.ceilings.shared, roof.flops / roof.seconds["compute"] / 1e12
    points = [
        (row, roof.flops / (max(row.seconds["L1"], row.seconds["shared"]) * bandwidth))
        for row in roof.variants
    ]
    stacks = _stacks(points)
    x = np.geomspace(stacks[0][1] / 5, max(stacks[-1][1] * 4, 4), 200)
    ax.plot(
        x,
        np.minimum(bandwidth * x / 1e12, peak),
        color="black",
        linewidth=1.5,
        zorder=1,
        label=f"{bandwidth / 1e12:.1f} TB/s of L1 and shared memory, {peak:.1f} TFLOP/s",
    )
    for at, (names, intensity, below) in enumerate(stacks):
        found = [speeds[name] for name in names if name in speeds]
        ax.plot([intensity] * 2, [min([below, *found]), below], color="#c8c8c8", lw=1, zorder=0)
        ax.plot([intensity], [below], "o", mfc="white", mec=BLUE, ms=7, zorder=2)
        ax.plot([intensity] * len(found), found, "o", color=ORANGE, ms=6, zorder=3)
        names = sorted(names, key=lambda name: -speeds.get(name, 0))  # in the order of the dots
        lines = [f"{name} {speeds[name]:.3g}" if name in speeds else name for name in names]
        dots = [below, *found]
        # On the slope, labels alternate between above it and below the dots, so that neighbours do
        # not overlap. On the flat part they are below the dots; the last one is to the right.
        if below < 0.99 * peak:
            up = at % 2 == 0
            where, offset = (max(dots), (-7, 5)) if up else (min(dots), (8, 0))
            ha, va = ("right", "bottom") if up else ("left", "center")
        elif at < len(stacks) - 1:
            where, offset, ha, va = min(dots), (0, -6), "left", "top"
        else:
            where, ha = below, "left"
            offset, va = ((8, -6), "top") if found else ((0, 6), "bottom")
        ax.annotate(
            "\n".join(lines),
            (intensity, where),
            xytext=offset,
            textcoords="offset points",
            ha=ha,
            va=va,
            fontsize=8,
        )
    ax.plot([], [], "o", mfc="white", mec=BLUE, label="roof of a variant")
    if speeds:
        ax.plot([], [], "o", color=ORANGE, label="measured, TFLOP/s")
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    ax.set(xscale="log", yscale="log", xlim=(x[0], x[-1]))
    low = min([below for _, _, below in stacks] + list(speeds.values()))
    ax.set_ylim(low / 2.5, peak * 2)
    ax.set(xlabel="FLOP per byte moved by L1 or shared memory", ylabel="TFLOP/s")
    shape = " x ".join(map(str, roof.shape))
    ax.set_title(f"gemm {shape}, {roof.dtype}, {roof.ceilings.device}", fontsize=11)
    _clean(ax)
    return ax


def _stacks(points: list[tuple[Any, float]]) -> list[tuple[list[str], float, float]]:
    """Groups variants of similar intensity: (names, intensity, attainable)."""
    stacks: list[tuple[list[str], float, float]] = []
    for row, intensity in sorted(points, key=lambda point: point[1]):
        for names, other, _ in stacks:
            if abs(other / intensity - 1) < 0.2:
                names.append(row.variant)
                break
        else:
            stacks.append(([row.variant], intensity, row.attainable))
    return stacks


def _speeds(
    measured: Mapping[str, float] | str | PathLike[str] | None, roof: Roofline
) -> dict[str, float]:
    if measured is None:
        return {}
    if isinstance(measured, Mapping):
        return dict(measured)
    lines = json.loads(Path(measured).read_text(encoding="utf-8"))["gemm"]["lines"]
    return {
        line["variant"]: line["tflops"]
        for line in lines
        if not line["params"] and tuple(line["shape"]) == roof.shape and line["dtype"] == roof.dtype
    }
