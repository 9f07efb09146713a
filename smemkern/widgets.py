"""Pictures of banks with sliders beside them; without ipywidgets, the pictures alone.

    smemkern.widgets.banks()     one request, whose lanes are a stride apart
    smemkern.widgets.layout()    a tile with its pad or swizzle, and a walk over it

Shown in a notebook, an Explorer is its picture and, where ipywidgets is installed (pip install
smemkern[notebook]), controls that draw it anew. A page made from the notebook, where no program
answers, still shows the picture.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from . import plot
from ._access import read_access
from ._layout import TMA, Layout
from ._request import Request, explain
from ._wavefronts import LANES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Explorer", "banks", "layout"]

_DPI = 90


class Explorer:
    """A picture and the values that it is drawn for, each one of a few.

    Attributes
    ----------
    options : dict
        What each value may be.
    values : dict
        What they are now; change them by `set`, or by the controls of `widget()`.
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
        self._picture: tuple[bytes, str] | None = None  # as long as the values stay
        self.set(**values)

    def set(self, **values: Any) -> Explorer:
        """Change values by name; ValueError for what is not among the options."""
        for name, value in values.items():
            if name not in self.options or value not in self.options[name]:
                legal = self.options.get(name, tuple(self.options))
                raise ValueError(f"{name}={value!r}: there are {', '.join(map(repr, legal))}")
        self.values.update(values)
        self._picture = None
        return self

    def picture(self) -> tuple[bytes, str]:
        """The picture as PNG, and what it shows in words."""
        if self._picture is None:
            figure, text = self._draw(**self.values)
            png = BytesIO()
            figure.savefig(png, format="png", dpi=_DPI)
            self._picture = png.getvalue(), text
        return self._picture

    def widget(self) -> Any:
        """An ipywidgets.Widget: controls above the picture. ImportError where that is missing."""
        try:
            import ipywidgets as w
        except ImportError as missing:
            wanted = "controls need ipywidgets: pip install 'smemkern[notebook]'"
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
        raise ImportError("pictures need matplotlib: pip install 'smemkern[plot]'") from missing
    return Figure(figsize=(width, height), layout="constrained")


# ---- a request ----


def banks(**values: Any) -> Explorer:
    """One request, lane l of which asks for element l * stride: lanes against banks.

    Parameters
    ----------
    stride : int, 0..64
        In elements.
    width : 4, 8, 16, 1 or 2
        Bytes of an element.
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
    asked = explain(np.arange(LANES) * stride * width, width, op)
    figure = _figure(6.3, 5.6)
    plot.request(asked, ax=figure.subplots())
    return figure, repr(asked)


# ---- a tile ----

_WALKS = ("column", "row", "tile:8x4", "tile:4x8", "row:16B", "column:16B", "ldmatrix")


def layout(**values: Any) -> Explorer:
    """A tile as a map of banks, and the first request of a walk over it.

    Parameters
    ----------
    rows, cols : 8, 16, 32 or 64
    itemsize : 4, 8 or 2
        Bytes of an element.
    pad : int, 0..8
        Elements added to each row.
    swizzle : None, "xor", "xor:16B", "128B", "64B" or "32B"
        As of smemkern.banks.Layout.
    access : str
        "column", "row", "tile:8x4", "tile:4x8", "row:16B", "column:16B" or "ldmatrix".

    Returns
    -------
    Explorer
        Of values that do not go together it says why.

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
        "access": _WALKS,
    }
    return Explorer(_draw_layout, options, {"rows": 32, "cols": 32, **values})


def _draw_layout(
    rows: int, cols: int, itemsize: int, pad: int, swizzle: str | None, access: str
) -> tuple[Figure, str]:
    figure = _figure(13, 6)
    try:
        tile = Layout(rows, cols, itemsize, pad, swizzle)
        walk = read_access(access, rows, cols, itemsize)
        addresses, active = tile.request(walk)
    except ValueError as refused:
        figure.set_size_inches(13, 0.6)
        figure.text(0.5, 0.5, str(refused), ha="center", va="center", wrap=True)
        return figure, str(refused)
    first: Request = explain(addresses[0], walk.width, walk.op, active[0])
    if cols > 32:  # side by side the numbers would not fit
        figure.set_size_inches(14, 6.5 + 0.2 * rows)
        above, below = figure.subplots(2, 1, height_ratios=(0.2 * rows, 5.5))
    else:
        above, below = figure.subplots(1, 2, width_ratios=(1.15, 1))
    plot.layout(tile, walk, ax=above)
    plot.request(first, ax=below)
    cost = tile.cost(walk)
    text = (
        f"{tile!r}: {tile.bytes} bytes, {tile.wasted} of them wasted\n"
        f"{walk.name}: {cost.requests} requests, {cost.wavefronts} wavefronts, worst {cost.worst}; "
        f"{'free of conflicts' if cost.conflict_free else 'conflicts'}"
    )
    return figure, text
