"""A trace as a picture: wavefronts beside the ideal, and who meets whom in the worst request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._trace_rows import place

if TYPE_CHECKING:
    from ._observe import Trace


def plot(trace: Trace) -> Any:
    from matplotlib.figure import Figure

    rows = trace.shared
    figure = Figure(figsize=(10, max(3.2, 0.45 * len(rows) + 1.5)), layout="constrained")
    figure.suptitle(trace.launch.kernel + (f"  ({trace.coverage})" if trace.coverage else ""))
    if not rows:
        axes = figure.subplots()
        axes.text(0.5, 0.5, "no access to shared memory", ha="center", va="center")
        axes.set_axis_off()
        return figure
    bars, request_axes = figure.subplots(1, 2, width_ratios=(3, 2))
    at = np.arange(len(rows))
    bars.barh(at - 0.2, [row.wavefronts for row in rows], 0.4, color="#d1495b", label="wavefronts")
    bars.barh(at + 0.2, [row.ideal for row in rows], 0.4, color="#3d7ea6", label="ideal")
    bars.set_yticks(at, [f"{place(row)} {row.op}" for row in rows], fontsize="small")
    bars.invert_yaxis()
    bars.set_xlabel("shared-memory wavefronts")
    bars.legend(fontsize="small")

    worst = max(rows, key=lambda row: (row.factor, row.worst))
    request = worst.worst_request
    assert request is not None
    depth = np.full((32, 32), np.nan)
    lane, step = np.nonzero(request.turns >= 0)
    depth[lane, request.banks[lane, step]] = request.turns[lane, step] + 1
    image = request_axes.imshow(depth, cmap="viridis", vmin=1, origin="upper", aspect="equal")
    figure.colorbar(image, ax=request_axes, label="wavefront", shrink=0.8)
    request_axes.set(xlabel="bank", ylabel="lane")
    request_axes.set_title(f"{place(worst)} {worst.op}: {worst.worst} wavefronts", fontsize="small")
    return figure
