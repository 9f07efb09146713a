"""Plots of banks with interactive controls; without ipywidgets, the plots alone.

    smemkern.widgets.banks()     one request whose lanes are a stride apart
    smemkern.widgets.layout()    a tile with its padding or swizzle, and an access pattern

In a notebook, an Explorer shows its plot. If ipywidgets is installed (pip install
pip install '.[notebook]'), it also shows controls that redraw it. A static page exported from the
notebook still contains the plot.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from . import plot
from ._banks.access import read_access
from ._banks.layout import TMA, Layout
from ._banks.request import Request, explain
from ._banks.wavefronts import LANES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explorer", "banks", "layout"]


def __dir__() -> list[str]:
    return sorted(__all__)


_DPI = 90


class Explorer:
    """A plot and the values of its parameters, each out of a list of options.

    Attributes
    ----------
    options : dict
        The options of each parameter.
    values : dict
        The current values. Change them with `set`, or with the controls of `widget()`.
    """

    def __init__(
        self,
        draw: Callable[..., tuple[Figure, str]],
        options: Mapping[str, Sequence[Any]],
        values: Mapping[str, Any],
    ) -> None:
        __tracebackhide__ = True
        self._draw = draw
        self.options = {name: tuple(some) for name, some in options.items()}
        self.values = {name: some[0] for name, some in self.options.items()}
        self._picture: tuple[bytes, str] | None = None  # cached until the values change
        self.set(**values)

    def set(self, **values: Any) -> Explorer:
        """Change values by name. Raises ValueError for a value that is not among the options."""
        for name, value in values.items():
            if name not in self.options or value not in self.options[name]:
                legal = self.options.get(name, tuple(self.options))
                raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, legal))}")
        self.values.update(values)
        self._picture = None
        return self

    def picture(self) -> tuple[bytes, str]:
        """The plot as PNG, and its content as text."""
        if self._picture is None:
            figure, text = self._draw(**self.values)
            png = BytesIO()
            figure.savefig(png, format="png", dpi=_DPI)
            self._picture = png.getvalue(), text
        return self._picture

    def widget(self) -> Any:
        """An ipywidgets.Widget: controls above the plot. Raises ImportError without ipywidgets."""
        try:
            import ipywidgets as w
        except ImportError as missing:
            wanted = "controls need ipywidgets: pip install '.[notebook]' in the clone"
            raise ImportError(wanted) from missing

        png, text = self.picture()
        image, words = w.Image(value=png, format="png"), w.HTML(_html(text))

        def changed(name: str) -> Callable[[Any], None]:
            def redraw(change: Any) -> None:
                value = self.options[name][change["new"]]
                image.value, text = self.set(**{name: value}).picture()
                words.value = _html(text)

            return redraw

        controls = []
        for name, options in self.options.items():
            numbers = all(isinstance(option, int) for option in options)
            kind = w.SelectionSlider if numbers else w.Dropdown
            about = {"continuous_update": False} if numbers else {}
            control = kind(
                options=["none" if option is None else str(option) for option in options],
                index=options.index(self.values[name]),
                description=name,
                **about,
            )
            control.observe(changed(name), names="index")
            controls.append(control)
        row = w.Layout(flex_flow="row wrap")
        return w.VBox([w.Box(controls, layout=row), image, words])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        png, text = self.picture()
        bundle: dict[str, Any] = {
            "image/png": base64.b64encode(png).decode(),
            "text/plain": text,
        }
        try:
            live = self.widget()._repr_mimebundle_()
        except ImportError:
            return bundle
        view = "application/vnd.jupyter.widget-view+json"
        return bundle | {view: live[view]}

    def __repr__(self) -> str:
        return self.picture()[1]


def _html(text: str) -> str:
    return f"<pre style='line-height:1.3'>{escape(text)}</pre>"


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError(plot.NO_MATPLOTLIB) from missing
    return Figure(figsize=(width, height), layout="constrained")


# ---- a request ----


def banks(**values: Any) -> Explorer:
    """Plots the banks of one request in which lane l accesses element l * stride.

    Parameters
    ----------
    stride : int, 0..64
        In elements.
    width : 4, 8, 16, 1 or 2
        Bytes per element.
    op : "load" or "store"

    Returns
    -------
    Explorer

    Examples
    --------
    >>> from smemkern import widgets
    >>> widgets.banks(stride=2)  # doctest: +SKIP
    """
    __tracebackhide__ = True
    strides = (1, 0, *range(2, 65))
    options = {"stride": sorted(strides), "width": (4, 8, 16, 1, 2), "op": ("load", "store")}
    return Explorer(_draw_banks, options, {"stride": 1, **values})


def _draw_banks(stride: int, width: int, op: str) -> tuple[Figure, str]:
    request = explain(np.arange(LANES) * stride * width, width, op)
    figure = _figure(6.3, 5.6)
    plot.request(request, ax=figure.subplots())
    return figure, repr(request)


# ---- a tile ----

_ACCESSES = ("column", "row", "tile:8x4", "tile:4x8", "row:16B", "column:16B", "ldmatrix")


def layout(**values: Any) -> Explorer:
    """Plots a tile as a map of banks, and the first request of an access pattern.

    Parameters
    ----------
    rows, cols : 8, 16, 32 or 64
    itemsize : 4, 8 or 2
        Bytes per element.
    pad : int, 0..8
        Elements added to each row.
    swizzle : None, "xor", "xor:16B", "128B", "64B" or "32B"
        See smemkern.banks.Layout.
    access : str
        "column", "row", "tile:8x4", "tile:4x8", "row:16B", "column:16B" or "ldmatrix".

    Returns
    -------
    Explorer
        For values that cannot be combined, it shows the reason instead of a plot.

    Examples
    --------
    >>> from smemkern import widgets
    >>> widgets.layout(pad=1, access="column")  # doctest: +SKIP
    """
    __tracebackhide__ = True
    sizes = (8, 16, 32, 64)
    options: dict[str, Sequence[Any]] = {
        **{"rows": sizes, "cols": sizes, "itemsize": (4, 8, 2), "pad": range(9)},
        "swizzle": (None, "xor", "xor:16B", *reversed(TMA)),
        "access": _ACCESSES,
    }
    return Explorer(_draw_layout, options, {"rows": 32, "cols": 32, **values})


def _draw_layout(
    rows: int, cols: int, itemsize: int, pad: int, swizzle: str | None, access: str
) -> tuple[Figure, str]:
    figure = _figure(13, 6)
    try:
        tile = Layout(rows, cols, itemsize, pad, swizzle)
        given = read_access(access, rows, cols, itemsize)
        addresses, active = tile.request(given)
    except ValueError as refused:
        figure.set_size_inches(13, 0.6)
        figure.text(0.5, 0.5, str(refused), ha="center", va="center", wrap=True)
        return figure, str(refused)
    first: Request = explain(addresses[0], given.width, given.op, active[0])
    if cols > 32:  # the numbers would not fit side by side
        figure.set_size_inches(14, 6.5 + 0.2 * rows)
        above, below = figure.subplots(2, 1, height_ratios=(0.2 * rows, 5.5))
    else:
        above, below = figure.subplots(1, 2, width_ratios=(1.15, 1))
    plot.layout(tile, given, ax=above)
    plot.request(first, ax=below)
    cost = tile.cost(given)
    text = (
        f"{tile!r}: {tile.bytes} bytes, {tile.wasted} of them wasted\n"
        f"{given.name}: requests: {cost.requests}, wavefronts: {cost.wavefronts}, "
        f"worst: {cost.worst}; {'free of conflicts' if cost.conflict_free else 'conflicts'}"
    )
    return figure, text
