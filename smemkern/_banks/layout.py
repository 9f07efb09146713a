"""The layout of a tile in shared memory: the addresses of its elements, and the cost of accesses.

    pad        rows of cols + pad elements, which spread a column over the banks
    "xor"      element c of row r is stored at c ^ (r mod m), m the largest power of two that
               divides cols, as in csrc/kernels/gemm_swizzle.cu
    "xor:16B"  the same with chunks of 16 (or 8, ...) bytes, which keeps vectors contiguous, as in
               csrc/kernels/gemm_vectorized.cu
    "128B", "64B", "32B"
               TMA's swizzles (CU_TENSOR_MAP_SWIZZLE_*): within a line of 128 bytes, the index of
               each 16-byte chunk XOR the low 3, 2 or 1 bits of the line's number
    Swizzle(bits, base, shift)
               `bits` address bits from bit `base` on, XOR those that are `shift` bits higher; TMA's
               swizzles are (3, 4, 3), (2, 4, 3) and (1, 4, 3). With a negative shift, bits from
               base - shift on, XOR those that are -shift bits lower

Layout.from_cute reads these and any other strides from CuTe's text.

Source of TMA's swizzles: CUDA C++ Programming Guide, "Tensor Memory Access", swizzle modes, and
cuTensorMapEncodeTiled in the driver API's reference. Addresses are relative to the tile's start.
The hardware swizzles the bits of whole addresses, so the tile must start where its pattern does:
at a multiple of 1024 bytes for "128B", 512 for "64B", 256 for "32B" (Layout.alignment).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._device.architectures import BANK_BYTES, BANKS
from .._render.document import Facts, Heading, Node, Picture, Table, in_notebook
from .._render.rows import factor
from . import cute
from .access import Access, pattern, read_access
from .wavefronts import integers, read_requests

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Swizzle(NamedTuple):
    """address ^ (address >> shift & mask), where mask is `bits` ones from bit `base` on.

    With a negative shift: address ^ ((address & mask) << -shift). So it is CuTe's Swizzle<bits,
    base, shift>, of bytes.
    """

    bits: int
    base: int
    shift: int

    def apply(self, address: Any) -> Any:
        mask = ((1 << self.bits) - 1) << self.base
        if self.shift < 0:
            return address ^ (address & mask) << -self.shift
        return address ^ (address >> self.shift & mask)

    @property
    def _changed(self) -> int:
        """The number of low bits of which some change."""
        return self.base + max(-self.shift, 0) + self.bits

    @property
    def _repeat(self) -> int:
        """Bytes after which the pattern repeats."""
        return 1 << self.base + abs(self.shift) + self.bits


TMA = {"32B": Swizzle(1, 4, 3), "64B": Swizzle(2, 4, 3), "128B": Swizzle(3, 4, 3)}


class Cost(NamedTuple):
    """The cost of an access pattern on a layout, over the whole tile."""

    requests: int
    wavefronts: int
    ideal: int
    worst: int  # wavefronts of the worst request
    conflict_free: bool  # every group of lanes takes one wavefront


class Layout:
    """A tile of rows x cols elements in shared memory.

    Parameters
    ----------
    rows, cols : int
    itemsize : int
        Bytes per element: 1, 2, 4, 8 or 16.
    pad : int
        Elements added to each row.
    swizzle : optional
        None, "xor", "xor:8B", "xor:16B", "32B", "64B", "128B", a Swizzle or a tuple of its fields.

    Attributes
    ----------
    pitch : int
        Bytes from one row to the next.
    bytes : int
        The size of the tile in memory.
    wasted : int
        Bytes of it that hold no element.
    alignment : int
        The tile must start at a multiple of this number of bytes, so that the hardware's swizzle of
        whole addresses is this one, of addresses relative to the start. TMA needs a multiple of 128
        in any case.

    Raises
    ------
    ValueError
        For sizes that are not positive, and swizzles that do not fit the shape.

    Examples
    --------
    >>> from smemkern.banks import Layout
    >>> Layout(32, 32).cost("column").wavefronts, Layout(32, 32, pad=1).cost("column").wavefronts
    (1024, 32)
    >>> Layout(32, 32, swizzle="xor").address(1, 0), Layout(8, 32, swizzle="128B").address(1, 0)
    (132, 144)
    """

    def __init__(
        self,
        rows: int,
        cols: int,
        itemsize: int = 4,
        pad: int = 0,
        swizzle: str | Swizzle | tuple[int, int, int] | None = None,
    ) -> None:
        __tracebackhide__ = True
        for name, value, low in (("rows", rows, 1), ("cols", cols, 1), ("pad", pad, 0)):
            if not isinstance(value, int | np.integer) or value < low:
                raise ValueError(f"{name} should be an integer of at least {low}, not {value!r}")
        if itemsize not in (1, 2, 4, 8, 16):
            raise ValueError(f"itemsize should be 1, 2, 4, 8 or 16 bytes, not {itemsize!r}")
        self.rows, self.cols, self.itemsize, self.pad = int(rows), int(cols), itemsize, int(pad)
        self.pitch = (self.cols + self.pad) * itemsize
        if isinstance(swizzle, tuple):
            swizzle = _checked(Swizzle(*swizzle), itemsize)
        self.swizzle = swizzle
        self._bits: Swizzle | None = swizzle if isinstance(swizzle, Swizzle) else None
        self._chunk = self._period = 0  # of "xor": bytes per chunk, and m
        if isinstance(swizzle, str):
            self._read_swizzle(swizzle)
        # A Swizzle permutes within aligned spans of this size, so the tile is rounded up to them.
        self._modes: tuple[cute.Mode, cute.Mode] | None = None  # None: rows that are contiguous
        self._offset = 0  # of the first element, in elements
        self.alignment = self._bits._repeat if self._bits else itemsize
        self._measure(self.rows * self.pitch)

    def _measure(self, end: int) -> None:
        """Sets the size of a tile whose addresses end there before the swizzle."""
        span = 1 << self._bits._changed if self._bits else 1
        self.bytes = -(-end // span) * span
        self.wasted = self.bytes - self.rows * self.cols * self.itemsize

    def _read_swizzle(self, swizzle: str) -> None:
        __tracebackhide__ = True
        row = self.cols * self.itemsize
        if swizzle in TMA:
            span = int(swizzle[:-1])
            if row != span or self.pad:
                raise ValueError(
                    f"swizzle {swizzle!r} needs rows of {span} bytes without padding, not {row} + "
                    f"{self.pad * self.itemsize}; for other rows pass {TMA[swizzle]!r}"
                )
            self._bits = TMA[swizzle]
            return
        known = {"xor": self.itemsize, **{f"xor:{n}B": n for n in (2, 4, 8, 16)}}
        if swizzle not in known:
            names = ", ".join(map(repr, (*known, *TMA)))
            raise ValueError(f"swizzle {swizzle!r} is not known; there are: None, {names}, Swizzle")
        self._chunk = known[swizzle]
        if self._chunk < self.itemsize or row % self._chunk:
            raise ValueError(
                f"rows of {row} bytes do not divide into {self._chunk}-byte chunks of whole "
                "elements"
            )
        chunks = row // self._chunk
        self._period = chunks & -chunks
        if self._period == 1:
            raise ValueError(f"swizzle {swizzle!r} needs an even number of chunks, not {chunks}")

    @classmethod
    def from_cute(cls, layout: Any, itemsize: int | None = None) -> Layout:
        """The tile of a CuTe layout.

        Parameters
        ----------
        layout : str, or an object whose str is such a text
            CuTe's text: "(8,64):(64,1)", "Swizzle<3,4,3> o ((2,4),8):((1,16),2)", or with a type of
            pointer "Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)". The first mode is the rows,
            the second the columns. A layout of the package tensor-layouts is accepted too.
        itemsize : int, optional
            Bytes per element. None: by the type of pointer, else 4.

        Raises
        ------
        ValueError
            For a text that is no layout, other than two modes, and elements that share an address.

        Notes
        -----
        CuTe's swizzle is of element numbers, and with a type of pointer of bytes; Layout's is of
        bytes. So Swizzle<3,3,3> of 2-byte elements is Layout's Swizzle(3, 4, 3), TMA's "128B".

        Examples
        --------
        >>> from smemkern.banks import Layout
        >>> Layout.from_cute("Swizzle<3,3,3> o (8,64):(64,1)", itemsize=2)
        Layout(8, 64, itemsize=2, swizzle=Swizzle(bits=3, base=4, shift=3))
        >>> Layout.from_cute("(64,8):(1,64)").cost("column").conflict_free
        True
        """
        __tracebackhide__ = True
        text = layout if isinstance(layout, str) else str(layout)
        read = cute.read(text)
        itemsize = _itemsize(read.bits, itemsize, text)
        shift = 0 if read.bits else itemsize.bit_length() - 1
        swizzle = None
        if read.swizzle:
            bits, base, over = read.swizzle
            swizzle = Swizzle(bits, base + shift, over)
        rows, cols = cute.size(read.rows), cute.size(read.cols)
        pad = _padding(read)
        if pad is not None:
            return cls(rows, cols, itemsize, pad, swizzle)
        cute.check_distinct(read.rows, read.cols, text)
        made = cls(rows, cols, itemsize, 0, swizzle)
        made._modes, made._offset = (read.rows, read.cols), read.offset
        made.pitch = (read.rows[0][1] if read.rows else 0) * itemsize
        end = read.offset + cute.last(read.rows) + cute.last(read.cols) + 1
        made._measure(end * itemsize)
        return made

    def to_cute(self) -> str:
        """CuTe's text of this layout, in elements: the inverse of from_cute.

        Raises
        ------
        ValueError
            If CuTe has none: for "xor" unless the pitch is a power of two.

        Examples
        --------
        >>> from smemkern.banks import Layout
        >>> Layout(32, 32, pad=1).to_cute(), Layout(8, 64, itemsize=2, swizzle="128B").to_cute()
        ('(32,32):(33,1)', 'Swizzle<3,3,3> o (8,64):(64,1)')
        """
        __tracebackhide__ = True
        rows, cols = self._modes or (
            ((self.rows, self.pitch // self.itemsize),) if self.rows > 1 else (),
            ((self.cols, 1),) if self.cols > 1 else (),
        )
        swizzle = self._bits or self._xor_bits()
        if swizzle:
            base = swizzle.base - (self.itemsize.bit_length() - 1)
            return cute.write(rows, cols, (swizzle.bits, base, swizzle.shift), self._offset)
        return cute.write(rows, cols, None, self._offset)

    def _xor_bits(self) -> Swizzle | None:
        """The Swizzle that "xor" is, if rows begin at multiples of a power of two."""
        __tracebackhide__ = True
        if not self._period or self.rows == 1:
            return None
        if self.pitch & (self.pitch - 1) or self._chunk & (self._chunk - 1):
            raise ValueError(
                f"{self!r} is no layout of CuTe, whose swizzles are of address bits: its rows of "
                f"{self.pitch} bytes do not begin at multiples of a power of two"
            )
        chunk = self._chunk.bit_length() - 1
        return Swizzle(self._period.bit_length() - 1, chunk, self.pitch.bit_length() - 1 - chunk)

    def address(self, r: ArrayLike, c: ArrayLike) -> Any:
        """The byte address of element (r, c) relative to the tile's start. Arrays broadcast.

        Raises IndexError for an element outside the tile.
        """
        __tracebackhide__ = True
        row, column = integers("r", r), integers("c", c)
        for name, index, size in (("row", row, self.rows), ("column", column, self.cols)):
            if index.size and (index.min() < 0 or index.max() >= size):
                wrong = index.min() if index.min() < 0 else index.max()
                raise IndexError(f"{name} {wrong} is outside the tile, which has {size}")
        if self._modes:
            rows, cols = self._modes
            elements = self._offset + cute.offsets(rows, row) + cute.offsets(cols, column)
            at = elements * self.itemsize
        else:
            at = column * self.itemsize
            if self._period:
                at = at ^ row % self._period * self._chunk
            at = row * self.pitch + at
        if self._bits:
            at = self._bits.apply(at)
        return int(at) if at.ndim == 0 else at

    def bank(self, r: ArrayLike, c: ArrayLike) -> Any:
        """The bank of the first byte of element (r, c)."""
        __tracebackhide__ = True
        return self.address(r, c) // BANK_BYTES % BANKS

    def request(self, access: str | Access | ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Addresses (n, 32) and active lanes (n, 32) of an access pattern's requests.

        Raises ValueError if a lane's vector is not contiguous and aligned in this layout.
        """
        __tracebackhide__ = True
        given = read_access(access, self.rows, self.cols, self.itemsize)
        at = self.address(given.r, given.c)
        items = np.arange(0, given.width, self.itemsize)
        elements = self.address(given.r[..., None], given.c[..., None] + items // self.itemsize)
        broken = (elements != at[..., None] + items).any(-1) | (at % given.width != 0)
        if (broken & given.active).any():
            raise ValueError(
                f"{self!r} does not keep vectors of {given.width} bytes whole and aligned, as "
                f"{given.name!r} needs"
            )
        return at, given.active

    def _count(self, access: str | Access | ArrayLike) -> tuple[NDArray[Any], ...]:
        __tracebackhide__ = True
        given = read_access(access, self.rows, self.cols, self.itemsize)
        addresses, active = self.request(given)
        requests = read_requests(addresses, given.width, given.op, active)
        cost, ideal, size = _core.shared_requests(
            requests.addresses, requests.active, given.width, given.op
        )
        eighths = active.reshape(-1, 4, 8).any(-1)  # 8 lanes are the smallest group
        pairs = eighths.reshape(-1, 2, 2).any(-1)
        groups = np.select(
            [size == 8, size == 16], [eighths.sum(-1), pairs.sum(-1)], eighths.any(-1)
        )
        return cost.astype(np.int64), ideal.astype(np.int64), groups

    def wavefronts(self, access: str | Access | ArrayLike) -> NDArray[np.int64]:
        """The wavefronts of each request of an access pattern, (n,).

        Parameters
        ----------
        access : str, Access or array of int
            A name for smemkern.banks.pattern, its result, or an array (..., lanes, 2) of each
            lane's (r, c).
        """
        __tracebackhide__ = True
        return self._count(access)[0]

    def cost(self, access: str | Access | ArrayLike) -> Cost:
        """The cost of an access pattern over the whole tile."""
        __tracebackhide__ = True
        cost, ideal, groups = self._count(access)
        return Cost(
            len(cost),
            int(cost.sum()),
            int(ideal.sum()),
            int(cost.max(initial=0)),
            bool((cost <= np.maximum(groups, ideal)).all()),
        )

    def plot(self, *, ax: Axes | None = None, **kw: Any) -> Axes:
        """Plots the tile as a map of banks; see smemkern.plot.layout."""
        from ..plot import layout

        return layout(self, ax=ax, **kw)

    def _picture(self) -> list[Node]:
        from .pictures import tile_map

        return [Picture(tile_map(self))]

    def _nodes(self) -> list[Node]:
        costs = [(name, self.cost(name)) for name in ("row", "column")]
        rows = [
            (f"a {name}", c.requests, c.wavefronts, c.ideal, c.worst, factor(c.wavefronts, c.ideal))
            for name, c in costs
        ]
        wasted = f"{self.bytes} bytes, {self.wasted} of them wasted"
        facts = [("pitch", f"{self.pitch} bytes"), ("size", wasted)]
        if self._bits:
            facts.append(("alignment", f"the tile starts at a multiple of {self.alignment} bytes"))
        header = ("lanes along", "requests", "wavefronts", "ideal", "worst", "factor")
        return [Heading(repr(self)), Facts(facts), Table(header, rows), *self._picture()]

    _repr_html_ = in_notebook

    def __repr__(self) -> str:
        if self._modes:
            size = f", itemsize={self.itemsize}" if self.itemsize != 4 else ""
            return f"Layout.from_cute({self.to_cute()!r}{size})"
        parts = [str(self.rows), str(self.cols)]
        parts += [f"itemsize={self.itemsize}"] if self.itemsize != 4 else []
        parts += [f"pad={self.pad}"] if self.pad else []
        parts += [f"swizzle={self.swizzle!r}"] if self.swizzle is not None else []
        return f"Layout({', '.join(parts)})"


_MAX_BITS = 40


def _itemsize(bits: int | None, given: int | None, text: str) -> int:
    """Bytes per element, by a pointer's type and the caller."""
    __tracebackhide__ = True
    if bits is None:
        itemsize = 4 if given is None else given
    else:
        itemsize = bits // 8
        if given not in (None, itemsize) or bits % 8:
            raise ValueError(f"{text!r} has elements of {bits} bits, and itemsize is {given}")
    if itemsize not in (1, 2, 4, 8, 16):
        raise ValueError(f"itemsize should be 1, 2, 4, 8 or 16 bytes, not {itemsize!r}")
    return itemsize


def _padding(read: cute.Cute) -> int | None:
    """The padding with which rows and columns are these modes; None: no padding does it."""
    rows, cols = read.rows, read.cols
    if read.offset or len(rows) > 1 or len(cols) > 1 or (cols and cols[0][1] != 1):
        return None
    width = cute.size(cols)
    pad = rows[0][1] - width if rows else 0
    return pad if pad >= 0 else None


def _checked(swizzle: Swizzle, itemsize: int) -> Swizzle:
    __tracebackhide__ = True
    bits, base, shift = swizzle
    if not (bits >= 1 and base >= 0 and abs(shift) >= bits):
        raise ValueError(
            f"{swizzle!r} is not a permutation: bits should be at least 1, base at least 0 and "
            f"shift at least bits, or at most -bits"
        )
    if base + abs(shift) + bits > _MAX_BITS:
        raise ValueError(f"{swizzle!r} is of more than the {_MAX_BITS} bits of an address")
    if 1 << base < itemsize:
        raise ValueError(f"{swizzle!r} splits elements of {itemsize} bytes: use a larger base")
    return swizzle


__all__ = ["Access", "Cost", "Layout", "Swizzle", "pattern"]
