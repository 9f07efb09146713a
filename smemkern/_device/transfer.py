"""What calls on device "cuda" transfer between host and GPU, and the memory that they cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _core
from .._render.document import Facts, Node, in_notebook


class Transfer(NamedTuple):
    """What one call transferred."""

    bytes_in: int  # host to GPU
    bytes_out: int  # GPU to host
    bytes_direct: int  # of both, copied from or to pinned arrays without a staging copy
    bytes_staged: int  # copied by threads through pinned memory; once, even if for several GPUs
    bytes_peer: int  # copied from another GPU instead of the host
    seconds: float  # of the copies and kernels together
    threads: int  # host threads that took part
    steps: int  # copies and kernels into which the call was divided

    def _nodes(self) -> list[Node]:
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
        """Of both directions together."""
        return (self.bytes_in + self.bytes_out) / self.seconds / 1e9 if self.seconds else 0.0


def last_transfer() -> Transfer | None:
    """What this thread's last call on device "cuda" transferred; None if there was none.

    A call on the emulator with max_memory counts too, because it performs the same steps.

    Returns
    -------
    Transfer or None
        All zero after a call on arrays that were already on the GPU.

    Examples
    --------
    >>> c = smemkern.gemm(a, b)  # doctest: +SKIP
    >>> smemkern.last_transfer().bytes_in  # doctest: +SKIP
    134217728
    """
    moved = _core.last_transfer()
    return None if moved is None else Transfer(*moved)


def _bar(unit: str) -> Callable[[int, int], None]:
    """The callback for progress=True. It creates a tqdm bar at its first call with work left."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        message = "progress=True needs tqdm: pip install tqdm; or pass a function"
        raise ImportError(message) from error
    bars: list[Any] = []

    def show(done: int, total: int) -> None:
        if not bars and done < total:
            bars.append(tqdm(total=total, unit=unit, unit_scale=unit == "B", leave=False))
        for bar in bars:
            bar.update(done - bar.n)
            if done == total:
                bar.close()

    return show


def empty_cache(device: str | None = None) -> int:
    """Free what calls cache for later ones: memory of a device, and pinned memory of the host.

    The emulator caches the kernels that it has parsed: the most recently used ones, at most 64 and
    512 MiB. Freeing them also discards the values of their ``__device__`` variables.

    Parameters
    ----------
    device : "cuda", "cuda:N" or "emu", optional
        None: the first GPU if there is one, else the emulator.

    Returns
    -------
    int
        The bytes freed. Calls that are running keep their memory.

    Raises
    ------
    ValueError, smemkern.Error
    """
    __tracebackhide__ = True
    return _core.trim(device)
