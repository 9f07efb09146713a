"""Plots a trace: wavefronts and ideal of each line, and the request that loses most wavefronts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .rows import place

if TYPE_CHECKING:
    from .observe import Trace


def plot(trace: Trace) -> Any:
    from ..plot import BLUE, ORANGE, draw_request, pyplot

    plt = pyplot()
    rows = trace.shared
    figure, axes = plt.subplots(
        1,
        2 if rows else 1,
        figsize=(12, max(4.2, 0.45 * len(rows) + 1.5)),
        layout="constrained",
        squeeze=False,
    )
    axes = axes[0]
    figure.suptitle(trace.launch.title + (f"  ({trace.coverage})" if trace.coverage else ""))
    if not rows:
        axes[0].text(0.5, 0.5, "no access to shared memory", ha="center", va="center")
        axes[0].set_axis_off()
        return axes
    bars, request_axes = axes
    at = np.arange(len(rows))
    bars.barh(at - 0.2, [row.wavefronts for row in rows], 0.4, color=ORANGE, label="wavefronts")
    bars.barh(at + 0.2, [row.ideal for row in rows], 0.4, color=BLUE, label="ideal")
    bars.set_yticks(at, [f"{place(row)} {row.op}" for row in rows], fontsize="small")
    bars.invert_yaxis()
    bars.set_xlabel("shared-memory wavefronts")
    bars.legend(fontsize="small")

    worst = max(rows, key=lambda row: (row.wavefronts - row.ideal, row.worst))
    request = worst.worst_request
    assert request is not None
    draw_request(request_axes, request)
    request_axes.set_title(
        f"{place(worst)} {worst.op}: {worst.worst} wavefronts", fontsize="medium"
    )
    return axes
