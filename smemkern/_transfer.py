"""What calls on device "cuda" move between host and GPU, and what they keep for the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import _core
from ._blocks import Block, Facts, in_notebook


class Transfer(NamedTuple):
    """What one call moved."""

    bytes_in: int  # to the GPU
    bytes_out: int
    bytes_direct: int  # of both, those that pinned arrays gave or took without a copy in between
    bytes_staged: int  # that threads copied through pinned memory; once, though for several GPUs
    bytes_peer: int  # that one GPU had from another, not from the host
    seconds: float  # of the copies and kernels together
    threads: int  # that did so
    steps: int  # copies and kernels that the call was cut into

    def _blocks(self) -> list[Block]:
        moved = self.bytes_in + self.bytes_out
        direct = f", {self.bytes_direct / moved:.0%} directly" if moved else ""
        between = f", {self.bytes_peer / 1e6:,.1f} MB from GPU to GPU" if self.bytes_peer else ""
        return [
            Facts(
                [
                    ("to the GPU", f"{self.bytes_in / 1e6:,.1f} MB{between}"),
                    ("from the GPU", f"{self.bytes_out / 1e6:,.1f} MB{direct}"),
                    ("took", f"{self.seconds * 1e3:,.2f} ms in {self.steps} steps"),
                    ("rate", f"{self.gigabytes_per_second:.1f} GB/s, {self.threads} threads"),
                ]
            )
        ]

    def _repr_html_(self) -> str:
        return in_notebook(self)

    @property
    def gigabytes_per_second(self) -> float:
        """Both ways together."""
        return (self.bytes_in + self.bytes_out) / self.seconds / 1e9 if self.seconds else 0.0


def last_transfer() -> Transfer | None:
    """What this thread's last call on device "cuda" moved over the bus; None: there was none.

    A call on the emulator with max_memory counts, too: it takes the same steps.

    Returns
    -------
    Transfer or None
        All zero after a call on arrays that were on the GPU already.

    Examples
    --------
    >>> c = smemkern.gemm(a, b)  # doctest: +SKIP
    >>> smemkern.last_transfer().bytes_in  # doctest: +SKIP
    134217728
    """
    moved = _core.last_transfer()
    return None if moved is None else Transfer(*moved)


def _bar() -> Callable[[int, int], None]:
    """What shows progress=True: a bar of tqdm, once a call has taken a moment."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        message = "progress=True needs tqdm: pip install tqdm; or pass a function"
        raise ImportError(message) from error
    bars: list[Any] = []

    def show(done: int, total: int) -> None:
        if not bars and done < total:
            bars.append(tqdm(total=total, unit="B", unit_scale=True, leave=False))
        for bar in bars:
            bar.update(done - bar.n)
            if done == total:
                bar.close()

    return show


def empty_cache(device: str | None = None) -> int:
    """Give back what calls keep for later ones: a device's memory, and pinned memory of the host.

    The emulator keeps the kernels that it has read, at most 64 and 512 MiB of those used last. With
    them go the values of their ``__device__`` variables.

    Parameters
    ----------
    device : "cuda", "cuda:N" or "emu", optional
        None: the first GPU if there is one, else the emulator.

    Returns
    -------
    int
        Bytes. What runs at the moment keeps its own.

    Raises
    ------
    ValueError, smemkern.Error
    """
    __tracebackhide__ = True
    return _core.trim(device)
