"""The ceilings of a device: the peak rates of its arithmetic and memories, as measured.

With a GPU, three small kernels compiled by NVRTC measure them. Without one they come from the table
below, which says on which device and when they were measured.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import _core
from .._render.document import Facts, Heading, Node, Table, in_notebook
from .._render.table import Right


class Ceilings(NamedTuple):
    """The ceilings of a device. None means unknown."""

    device: str
    arch: str
    multiprocessors: int
    clock: float  # of the multiprocessors, in Hz
    compute: dict[str, float]  # FLOP/s by unit; "float32" and "float64": outside matrix units
    memory: float  # bytes/s read plus written, device memory
    shared: float  # bytes/s read, all multiprocessors
    pcie: float | None  # bytes/s, one direction, pinned
    source: str

    @property
    def wavefronts(self) -> float:
        """Shared-memory wavefronts/s of the whole device, of 128 bytes each."""
        return self.shared / 128

    def _nodes(self) -> list[Node]:
        rates = [(unit, rate, "TFLOP/s") for unit, rate in self.compute.items()]
        rates += [("device memory", self.memory, "TB/s"), ("shared memory", self.shared, "TB/s")]
        rates += [("PCIe, one direction", self.pcie, "TB/s")] if self.pcie else []
        return [
            Heading(self.device),
            Facts([("multiprocessors", f"{self.multiprocessors} at {self.clock / 1e6:.0f} MHz")]),
            Table(("ceiling", "rate", ""), [(n, Right(f"{r / 1e12:.4g}"), u) for n, r, u in rates]),
            Facts([("source", self.source)]),
        ]

    def _repr_html_(self) -> str:
        return in_notebook(self)

    def __repr__(self) -> str:
        tera = ", ".join(f"{unit} {rate / 1e12:.1f}" for unit, rate in self.compute.items())
        return (
            f"<Ceilings of {self.device} ({self.arch}, {self.multiprocessors} SMs): "
            f"{tera} TFLOP/s; memory {self.memory / 1e12:.2f} TB/s, shared memory "
            f"{self.shared / 1e12:.1f} TB/s; "
            f"{self.source}>"
        )


# memory: a copy of 4 GiB. Matrix units: mma.sync for float64, cuBLAS for the others. float64
# outside the matrix units was not measured: it is computed from 64 lanes at 1980 MHz, 33.5 TFLOP/s.
H200 = Ceilings(
    device="NVIDIA H200",
    arch="sm_90",
    multiprocessors=132,
    clock=1.98e9,
    compute={
        "float32": 65.0e12,
        "float64": 2 * 64 * 132 * 1.98e9,
        "float64 matrix": 58.3e12,
        "tf32 matrix": 403e12,
        "bfloat16 matrix": 790e12,
    },
    memory=4.27e12,
    shared=33.1e12,
    pcie=55.5e9,
    source="measured on one NVIDIA H200, driver 580, CUDA 13.0, November 2026; float64 computed",
)

_SOURCE = r"""
#define CHAINS 16 /* independent multiply-adds per thread, enough to hide their latency */

extern "C" __global__ void __launch_bounds__(256)
    multiply_add(REAL *out, REAL a, REAL b, int steps) {
    REAL x[CHAINS];
    for (int i = 0; i < CHAINS; i++) x[i] = REAL(threadIdx.x + i);
#pragma unroll 8
    for (int s = 0; s < steps; s++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) x[i] = x[i] * a + b;
    }
    REAL sum = 0;
    for (int i = 0; i < CHAINS; i++) sum += x[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* A block copies 4 x 256 vectors; each thread has 4 loads in flight. */
extern "C" __global__ void __launch_bounds__(256) copy(uint4 *to, const uint4 *from) {
    const size_t at = (size_t)blockIdx.x * 1024 + threadIdx.x;
    uint4 held[4];
#pragma unroll
    for (int i = 0; i < 4; i++) held[i] = from[at + 256 * i];
#pragma unroll
    for (int i = 0; i < 4; i++) to[at + 256 * i] = held[i];
}

/* Contiguous vectors: 4 wavefronts per request, without conflicts. */
extern "C" __global__ void __launch_bounds__(256) read_shared(unsigned *out, int steps) {
    __shared__ uint4 tile[1024];
    for (int i = threadIdx.x; i < 1024; i += 256) tile[i] = make_uint4(i, i + 1, i + 2, i + 3);
    __syncthreads();
    unsigned sum = 0;
    for (int s = 0; s < steps; s++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            /* Also volatile in PTX: otherwise ptxas merges the reads of several steps. */
            unsigned x, y, z, w;
            const unsigned at = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x + 256 * i);
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at));
            sum += x ^ y ^ z ^ w;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
CHAINS = 16  # multiply-adds per thread and step
COPIED = 1024 * 16  # bytes per block
READ = 4 * 16  # bytes per thread and step
THREADS = 256


def kernel(name: str, real: str = "float") -> _core.Kernel:
    """One of the three measuring kernels."""
    return _core.Kernel(_SOURCE, name, (f"-DREAL={real}",))


def _seconds(k: _core.Kernel, grid: int, *args: object, device: str) -> float:
    """The shortest of ten runs, after one warm-up run."""
    _, times, _ = _core.observe(k, (grid, THREADS, *args), {"device": device}, 10)
    return min(times) / 1e3


_measured: dict[str, Ceilings] = {}


def _measure(device: str, steps: int = 20_000, blocks: int = 2**14) -> Ceilings:
    from .devices import devices

    found = next((d for d in devices() if d.name == device), None)
    if found is None or found.compute_capability is None:
        raise _core.NoDeviceError(f"there is no GPU {device!r} to measure")
    sms, clock = found.multiprocessors or 1, 1e6 * (found.clock_mhz or 0.0)
    grid = 8 * sms
    compute = {}
    for name, real in (("float32", "float"), ("float64", "double")):
        out = np.empty(grid * THREADS, name)
        one, small = out.dtype.type(0.999), out.dtype.type(1e-3)
        n = steps if name == "float32" else steps // 10
        seconds = _seconds(kernel("multiply_add", real), grid, out, one, small, n, device=device)
        compute[name] = 2 * CHAINS * n * out.size / seconds
    source, target = np.zeros((2, blocks * COPIED // 4), np.uint32)
    source.flags.writeable = False
    moved = 2 * source.nbytes / _seconds(kernel("copy"), blocks, target, source, device=device)
    out = np.empty(grid * THREADS, np.uint32)
    seconds = _seconds(kernel("read_shared"), grid, out, steps, device=device)
    return Ceilings(
        device=found.description,
        arch="sm_{}{}".format(*found.compute_capability),
        multiprocessors=sms,
        clock=clock,
        compute=compute,
        memory=moved,
        shared=READ * steps * out.size / seconds,
        pcie=None,
        source="measured now, by smemkern.ceilings",
    )


def ceilings(device: str | None = None) -> Ceilings:
    """The ceilings of a device: peak rates of arithmetic, device memory and shared memory.

    Parameters
    ----------
    device : {None, "cuda", "cuda:N", "H200", "A100", "RTX 4090", ...}
        A GPU is measured once per process, in about 2 seconds; this needs NVRTC. "H200" is the
        package's own table, measured on one such GPU. Of other GPUs the table has published
        peaks. None: the first GPU if there is one, else "H200"; `source` says which.

    Returns
    -------
    Ceilings

    Raises
    ------
    ValueError
        For a device that is neither a GPU nor in the table.
    NoDeviceError, CompileError
        If there is no such GPU, or no NVRTC to measure it with.

    Examples
    --------
    >>> import smemkern
    >>> smemkern.ceilings("H200").compute["float32"]
    65000000000000.0
    >>> smemkern.ceilings("A100").source
    "published peaks, not measured: NVIDIA's A100 data sheet, SXM4, 80 GB"
    """
    __tracebackhide__ = True
    if not isinstance(device, str | None):
        raise TypeError(f"device should be a string, not {type(device).__name__}")
    if device is None:
        device = "cuda:0" if _core.devices() else "H200"
    if device == "cuda":
        device = "cuda:0"
    if device.startswith("cuda:"):
        if device not in _measured:
            _measured[device] = _measure(device)
        return _measured[device]
    if device.lower().removeprefix("nvidia ") == "h200":
        return H200
    from .published_ceilings import PUBLISHED, published_ceilings

    found = published_ceilings(device)
    if found is None:
        known = ", ".join(repr(row.name) for row in PUBLISHED)
        raise ValueError(
            f"the ceilings of {device!r} are not known; pass 'cuda:N', 'H200', or one of {known}"
        )
    return found
