from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, final, overload

import numpy as np
from numpy.typing import ArrayLike

from ._compiler.compile import Compiled
from ._trace.hazards import Hazards
from ._trace.observe import Trace

__version__: str
benign_kinds: tuple[str, ...]

class Error(Exception):
    """Base of what smemkern raises beside Python's own exceptions."""

class NoDeviceError(Error):
    """There is no driver, no GPU, or no GPU of that number."""

class DriverTooOldError(Error):
    """The NVIDIA driver lacks something that is needed."""

class KernelImageError(Error):
    """Compiled code that the device cannot load, or PTX that is not well-formed."""

class CompileError(Error):
    """CUDA source that does not compile (with the log), or no compiler."""

class LaunchError(Error):
    """A kernel that could not be started, or failed while it ran."""

class UnsupportedInstructionError(Error):
    """A PTX instruction that the emulator does not know; it is named."""

class HazardError(Error):
    """A race or another hazard that was found where none was accepted."""

    hazards: Hazards  # of the call
    trace: Trace

_Array = np.ndarray[Any, Any]
_Host = np.ndarray[Any, Any] | Sequence[Any]
_Extent = int | tuple[int] | tuple[int, int] | tuple[int, int, int]

@overload
def gemm(
    a: _Host,
    b: _Host,
    *,
    variant: str = "auto",
    accuracy: Literal["float32", "norm", "tf32", "tf32-norm"] = "float32",
    out: _Array | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    device: str | None = None,
    stream: Any = None,
    max_memory: int | None = None,
    devices: Sequence[int | str] | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    **params: int,
) -> _Array:
    """alpha * (a @ b) + beta * out, computed by one of the kernels.

    Parameters
    ----------
    a, b : array_like, float32, float64, float16 or bfloat16
        Shapes (..., M, K) and (..., K, N), with numpy.matmul's rules for 1-D operands and for
        broadcasting batches. Any strides are allowed: rows with unit stride are read in place,
        anything else is packed once. Big-endian arrays are converted. If the dtypes differ, the
        product is computed in the wider one, and in float32 for float16 with bfloat16. K = 0
        gives beta * out.
        Arrays of CuPy, PyTorch, JAX, Numba and other libraries that support DLPack or
        __cuda_array_interface__ are used in place on their GPU, on their library's current
        stream; the call returns when its work is enqueued there. An operand that the variant
        cannot read in place is copied on the GPU. Dtypes of device arrays are not converted.
        Mixing device arrays with host arrays raises ValueError.
    variant : str
        A row of variants('gemm'); 'auto' selects one by device, dtype, sizes and accuracy.
    accuracy : {'float32', 'norm', 'tf32', 'tf32-norm'}
        Which variants 'auto' may select for float32 and float64. 'float32': every element is as
        accurate as with sums of the dtype. 'norm': the result's norm is that accurate; in rows
        of a and columns of b that span more than a factor of 2**17, small elements may lose
        bits. 'tf32': operands of float32 are rounded to 11 bits. 'tf32-norm': the result's norm
        is as accurate as with 'tf32'; in rows and columns that span more than a factor of 2**29,
        small elements may lose bits.
    out : ndarray or device array, optional
        Has the result's shape, and its dtype or, for an ndarray, one that it casts to, as in
        numpy.matmul ('same_kind'). May overlap a and b. It stays unchanged if an argument is
        illegal, or if memory or a kernel is not available. On device 'cuda', a contiguous out
        of the result's dtype that overlaps neither operand is written block by block, so it is
        partly written if Ctrl-C or a lost GPU ends the call. An array on a GPU is written in
        place, has exactly that dtype, and is written through a copy on the GPU if it overlaps
        an operand or has strides that the kernel cannot write.
    alpha, beta : float
        beta needs out; beta = 0 does not read it.
    device : {None, 'emu', 'cuda', 'cuda:N'}
        None: 'cuda' if there is a GPU, else 'emu'.
    stream : int or object with __cuda_stream__, optional
        The address of a CUDA stream. None: the device's own stream, or for device arrays their
        library's current one.
    max_memory : int, optional
        Bytes of GPU memory that a call on host arrays may use. None: most of the free memory. A
        larger product is computed block by block, with a bit-identical result. On the emulator
        max_memory makes the call perform the same steps.
    devices : sequence of int or 'cuda:N', optional
        GPUs among which a product of host arrays is divided, by rows, columns or batch. Used
        instead of device.
    progress : bool or function, optional
        For a call on host arrays. True shows a bar (tqdm). A function is called about every
        50 ms and at the end, with what is done and the total: bytes of the result, or, on the
        emulator without max_memory, blocks. Ctrl-C ends the call.
    **params : int
        Parameters of the variant, such as tile=16; see variants('gemm')[i].params.

    Returns
    -------
    ndarray of that dtype, C-contiguous, (..., M, N), or an array of a's library; or out.

    Raises
    ------
    TypeError, ValueError
        For an illegal dtype, shape, variant or parameter; the message lists what is legal.
    smemkern.Error
        One of its subclasses: no device, no compiler, a failed launch, ...

    Notes
    -----
    Source: gemm_<variant>.cu in csrc/kernels (rungs) or csrc/kernels/library;
    variants('gemm')[i].source has the text.

    Examples
    --------
    >>> a, b = np.random.rand(123, 77), np.random.rand(77, 211)
    >>> c = smemkern.gemm(a, b, variant='swizzle')
    """

@overload
def gemm(
    a: Any,  # ArrayLike, or an array on a GPU
    b: Any,
    *,
    variant: str = "auto",
    accuracy: Literal["float32", "norm", "tf32", "tf32-norm"] = "float32",
    out: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    device: str | None = None,
    stream: Any = None,
    max_memory: int | None = None,
    devices: Sequence[int | str] | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    **params: int,
) -> Any: ...
@overload
def transpose(
    a: _Host,
    *,
    variant: str = "auto",
    out: _Array | None = None,
    device: str | None = None,
    stream: Any = None,
    max_memory: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    **params: int,
) -> _Array:
    """A copy with the last two axes swapped, made by one of the kernels.

    Parameters
    ----------
    a : array_like, or an array on a GPU as in gemm
        Shape (..., M, N); elements of 1, 2, 4, 8 or 16 bytes without Python references. Type
        and byte order do not matter, because only bits are moved. Any strides are allowed.
    variant : str
        A row of variants('transpose'); 'auto' selects one.
    out : ndarray, optional
        Has exactly the result's shape and dtype. May overlap a. If out is a itself and square,
        'auto' and 'sector_aligned' transpose it in place.
    device, stream, max_memory, progress, **params
        See gemm.

    Returns
    -------
    ndarray of a's dtype, C-contiguous, (..., N, M), or an array of a's library; or out.

    Raises
    ------
    TypeError, ValueError, smemkern.Error
        See gemm.

    Notes
    -----
    Source: transpose_<variant>.cu in csrc/kernels or csrc/kernels/library.
    """

@overload
def transpose(
    a: Any,  # ArrayLike, or an array on a GPU
    *,
    variant: str = "auto",
    out: Any = None,
    device: str | None = None,
    stream: Any = None,
    max_memory: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
    **params: int,
) -> Any: ...
def probe(
    x: ArrayLike,
    *,
    variant: str = "stride_read",
    device: str | None = None,
    stream: Any = None,
    **params: int,
) -> _Array:
    """Runs a small kernel that demonstrates one property of memory.

    Parameters
    ----------
    x : array_like of float32, 1-D
        At least as long as what the variant reads.
    variant : str
        A row of variants('probe'), whose summary says what it computes.
        smemkern.reference.probe computes the same with NumPy.
    device, stream, **params
        See gemm.

    Returns
    -------
    ndarray of float32, 1-D.

    Raises
    ------
    TypeError, ValueError, smemkern.Error
        See gemm.

    Notes
    -----
    Source: csrc/kernels/probe_<variant>.cu.
    """

@final
class Kernel:
    """A kernel of your own: k(grid, block, *args, shared_bytes=0, device=None, stream=None,
    timeout=None, max_instructions=None, textures=None, cluster=None, cooperative=False).

    Parameters
    ----------
    source_or_ptx : str or path, or a kernel of CuPy or cuda.core
        CUDA C++, which NVRTC or nvcc compiles (pip install '.[nvrtc]'), or PTX from any
        compiler: the text, or the path of a file. RawKernel, RawModule, Program and ObjectCode
        bring their own options. Kernels of Triton and Numba: see check and trace.
    name : str or None
        Of CUDA C++: the kernel as C++ names it, as 'scale', 'space::scale' or 'tile<float, 16>'.
        Of PTX: the entry. None: the only one.
    options : sequence of str
        Of the compiler, as ('-DTILE=32', '-arch=compute_90').
    check : bool
        Each call runs on the emulator and looks for hazards: races, uninitialised shared
        memory, accesses out of bounds, barriers that not every thread reaches. If it finds any
        it raises HazardError and writes no array. Device None then means 'emu'; with 'cuda'
        the kernel runs on the GPU after a check without hazards.

    Calling it
    ----------
    grid, block : int or tuple of up to 3
    *args
        One per parameter. A NumPy array is passed as a pointer to its memory and must be
        contiguous. A writable array is read and written, a read-only one is only read. NumPy
        arrays are written only if the run succeeds. An array in a GPU's memory (DLPack or
        __cuda_array_interface__: CuPy, PyTorch, Numba) is used in place. None is a null
        pointer. int, float and complex are converted to the parameter's kind and size; NumPy
        scalars must already have both. For a struct pass a tuple of its members, in which
        arrays are pointers, or numpy.void or bytes; for a CUtensorMap a TensorMap, for a
        cudaTextureObject_t a Texture, for a cudaSurfaceObject_t a Surface.
    shared_bytes : int
        Dynamic shared memory per block.
    device : {None, 'emu', 'cuda', 'cuda:N'}
        None: where the arrays are, else 'cuda' if there is one, else 'emu'.
    stream : int or object with __cuda_stream__, optional
        A CUDA stream by its address. None: the current stream of the first device array's
        library, or without device arrays one of our own. On the caller's or a library's stream,
        and with no argument in host memory, the call returns when the kernel is enqueued;
        otherwise when it has finished.
    timeout : float, optional
        Seconds after which the call raises TimeoutError and writes no host array; checked about
        20 times per second. The emulator stops. A GPU cannot stop a kernel: one that never ends
        occupies its GPU until the process ends. With a timeout the call waits for the kernel.
    max_instructions : int, optional
        On the emulator: LaunchError once the call has run more warp instructions (checked at
        least every 4096 instructions of a warp). For kernels that may never end.
    textures : dict of str to Texture or Surface, or list of them, optional
        A dict: for .texref and .surfref variables of the PTX, by their names. A list: textures
        whose `handle` the kernel finds in a struct or an array.
    cluster : int or tuple of up to 3, optional
        Blocks per cluster. None: as the kernel states (__cluster_dims__), else 1. At most 8,
        or 16 on the emulator and on GPUs that allow it.
    cooperative : bool
        A cooperative launch: all blocks are resident at the same time. A kernel that calls
        grid.sync() of cooperative groups is always launched so.

    Raises
    ------
    CompileError, KernelImageError, UnsupportedInstructionError, LaunchError, NoDeviceError
    HazardError
        If check is set; it has .hazards and .trace.
    TypeError, ValueError, OverflowError
        Arguments that do not fit the kernel's parameters.
    TimeoutError
        The kernel took longer than timeout.
    """

    def __new__(
        cls,
        source_or_ptx: str | PathLike[str] | Compiled | Any,  # Any: a kernel of CuPy or cuda.core
        name: str | None = None,
        options: Sequence[str] = (),
        *,
        check: bool = False,
    ) -> Kernel: ...
    def __call__(
        self,
        grid: _Extent,
        block: _Extent,
        /,
        *args: Any,
        shared_bytes: int = 0,
        device: str | None = None,
        stream: Any = None,
        timeout: float | None = None,
        max_instructions: int | None = None,
        textures: dict[str, Texture | Surface]
        | list[Texture | Surface]
        | tuple[Texture | Surface, ...]
        | None = None,
        cluster: _Extent | None = None,
        cooperative: bool = False,
    ) -> None: ...
    @property
    def name(self) -> str:
        """Name of the entry in the PTX."""
    @property
    def source(self) -> str:
        """What it was made from: CUDA C++ or PTX."""
    @property
    def ptx(self) -> str:
        """The PTX text."""
    @property
    def file(self) -> str | None:
        """The file it was read from, as given; None: a text."""
    @property
    def compiler(self) -> str | None:
        """What compiled it; None: it was PTX."""
    @property
    def _origin(self) -> Any:
        """See smemkern/_compiler/compile.py."""
    def __reduce__(self) -> tuple[object, ...]: ...
    @property
    def check(self) -> bool:
        """Whether each call looks for hazards."""
    @property
    def shared_bytes(self) -> int:
        """Static shared memory of the kernel, in bytes per block."""
    @property
    def live_registers(self) -> int:
        """Registers per thread that the PTX needs: an estimate of what ptxas will allocate."""

@final
class TensorMap:
    """An array for tensor copies (TMA): the argument of a Kernel whose parameter is a
    `const __grid_constant__ CUtensorMap`, or `const CUtensorMap *`. The kernel copies box by
    box, with coordinates from the innermost dimension out. In a struct argument, bytes(map) are
    the bytes of the member; keep the map until the kernel is called.

    Parameters
    ----------
    array : numpy.ndarray
        1 to 5 dimensions; the last contiguous, the strides of the others multiples of 16 bytes.
        Integers, float16, float32, float64, bfloat16. A writable array is read and written.
    box : sequence of int
        Extents of the box, 1 to 256 elements, in the order of the array's dimensions. The last
        extent is a multiple of 16 bytes, and at most the swizzle's span.
    swizzle : {None, '32B', '64B', '128B'}
        Permutes the 16-byte chunks of the box in shared memory.
    element_strides : sequence of int, optional
        Per dimension, copy only every n-th element: 1 to 8, and 1 in the last. The box then has
        ceil(box / n) elements.
    fill : {None, 'nan'}
        The value of elements outside of the array: None means 0.

    Raises
    ------
    TypeError, ValueError
        For maps that the driver's cuTensorMapEncodeTiled refuses, also on the emulator.
    """

    def __new__(
        cls,
        array: np.ndarray[Any, Any],
        box: Sequence[int],
        *,
        swizzle: str | None = None,
        element_strides: Sequence[int] | None = None,
        fill: str | None = None,
    ) -> TensorMap: ...
    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The array."""
    @property
    def box(self) -> tuple[int, ...]:
        """Elements of the box, in the order of the array's dimensions."""
    @property
    def swizzle(self) -> str | None:
        """None, '32B', '64B' or '128B'."""
    @property
    def element_strides(self) -> tuple[int, ...]:
        """Per dimension, which elements are copied: every n-th."""
    @property
    def fill(self) -> str | None:
        """None or 'nan'."""
    def __bytes__(self) -> bytes: ...

@final
class Texture:
    """An array that kernels sample: the argument of a Kernel whose parameter is a
    `cudaTextureObject_t`, or a value of textures= for a .texref variable of the PTX. The kernel
    sees the array's contents at the launch.

    Parameters
    ----------
    array : numpy.ndarray
        1 to 3 dimensions, contiguous, the last one is x: `tex2D(t, x, y)` samples array[y, x].
        Integers of 8, 16 and 32 bits, float16 and float32. Linear memory (tex1Dfetch), pitched
        memory and CUDA arrays are all the same here; on a GPU the kernel's instructions decide.
    address : str or tuple of str
        What is outside: 'clamp', 'border', 'wrap' or 'mirror'; a tuple has one per axis, x first.
        As in CUDA, wrap and mirror are clamp unless coordinates are normalized.
    filter : {'point', 'linear'}
    normalized : bool
        Coordinates are from 0 to 1.
    read : {'element', 'normalized_float'}
        The latter reads integers of 8 and 16 bits as floats from 0 to 1, or from -1 to 1.
    channels : {1, 2, 4}
        With 2 or 4 the array has one dimension more, the last, of that size: float2 and float4
        of CUDA. A struct of 1, 2 or 4 equal fields has channels without it.
    layered : bool
        The first dimension is the layer.
    cubemap : bool
        The array's shape is (6, n, n), or (layers, 6, n, n): +x, -x, +y, -y, +z, -z.
        Coordinates are a direction. A filter does not cross the edges of a face.
    border : float or tuple of float
        What address 'border' reads outside; a tuple has one per channel.

    Raises
    ------
    TypeError, ValueError
        For textures that CUDA has not. Mipmaps and sRGB are not supported.
    """

    def __new__(
        cls,
        array: np.ndarray[Any, Any],
        *,
        address: str | tuple[str, ...] = "clamp",
        filter: str = "point",
        normalized: bool = False,
        read: str = "element",
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        border: float | tuple[float, ...] = 0.0,
    ) -> Texture: ...
    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The array."""
    @property
    def handle(self) -> int:
        """What the kernel's 64-bit parameter receives; for structs and arrays of textures."""

@final
class Surface:
    """An array that kernels read and write by element: the argument of a Kernel whose parameter is
    a `cudaSurfaceObject_t`, or a value of textures= for a .surfref variable of the PTX. The
    array is written if the run succeeds.

    Parameters
    ----------
    array : numpy.ndarray
        Writable; else, and the other parameters, as of Texture.
    """

    def __new__(
        cls,
        array: np.ndarray[Any, Any],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
    ) -> Surface: ...
    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The array."""
    @property
    def handle(self) -> int:
        """What the kernel's 64-bit parameter receives; for structs and arrays of textures."""

class _Config(TypedDict):
    version: str
    gpus: int
    images: str
    kernels: str
    driver: str
    nvrtc: str

@overload
def observe(
    what: str | Kernel,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    repeat: int = 0,
    trace: bool = False,
    hazards: bool = False,
    equal_writes: bool = False,
    only_if_clean: bool = False,
    blocks: _Array | None = None,
    progress: Callable[[int, int], object] | None = None,
    by_instruction: bool = False,
    recording: None = None,
) -> tuple[Any, list[float], tuple[Any, ...] | None]:
    """Run an operation or a Kernel: (result, milliseconds of each of `repeat` more runs, raw trace
    or None). The other parameters are for traces. hazards: look for hazards. equal_writes: also
    for races between writes of equal values. only_if_clean: write a Kernel's arrays only if
    there is no hazard. blocks: run only these (uint64, ascending). progress: is called now and
    then as progress(blocks done, blocks in total). by_instruction: count also by PTX
    instruction. recording: (first step, steps, bytes at most, blocks, warps, shared arrays);
    the result then has two more items, the recording and the places of the arguments' arrays.
    """

@overload
def observe(
    what: str | Kernel,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    repeat: int = 0,
    trace: bool = False,
    hazards: bool = False,
    equal_writes: bool = False,
    only_if_clean: bool = False,
    blocks: _Array | None = None,
    progress: Callable[[int, int], object] | None = None,
    by_instruction: bool = False,
    *,
    recording: tuple[int, int, int, _Array | None, _Array | None, Sequence[tuple[str, int, int]]],
) -> tuple[
    Any, list[float], tuple[Any, ...] | None, bytes | None, list[tuple[int, int, int]] | None
]: ...
def plan(op: str, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> dict[str, Any]:
    """The launches of an operation, without running it. For tests."""

def watch(open: bool, /) -> None:
    """True: calls run by smemkern._trace.watch from now on. False: ends one True."""

def variants() -> tuple[tuple[Any, ...], ...]:
    """The registry: (op, name, summary, differs_from, min_sm, dtypes, params, ...) of each row."""

def devices() -> tuple[tuple[Any, ...], ...]:
    """(ordinal, name, sm, multiprocessors, clock_khz, memory_bytes, shared_bytes,
    driver_version) of each GPU.
    """

def config() -> _Config:
    """Version, number of GPUs, folders, and the state of the driver and of NVRTC."""

def shared_requests(
    addresses: _Array, active: _Array, width: int, op: str, /
) -> tuple[_Array, _Array, _Array]:
    """The cost of n requests to shared memory: (wavefronts, ideal, lanes per group), each uint32
    (n,). addresses: uint64 (n, 32); active: uint32 masks (n,). The caller, smemkern.banks,
    checks the arguments.
    """

def layouts(
    rows: int, cols: int, itemsize: int, accesses: Sequence[tuple[Any, ...]], /
) -> list[tuple[Any, ...]]:
    """Tries every layout of a tile: (pad, swizzle, wasted, wavefronts, ideal, worst, conflict_free)
    of each that keeps the vectors whole and aligned. An access is (r, c, active, width, op): int64
    (n, 32) twice, uint32 masks (n,). The caller, smemkern.banks.suggest, checks the arguments.
    """

def explain_request(request: tuple[Any, ...], array: tuple[Any, ...] | None, /) -> str:
    """Words for what a request to shared memory costs. request: (op, 32 addresses, active mask,
    width, wavefronts, ideal); array: (name, first byte, bytes, bytes per element, columns or 0) of
    the array that it accesses, or None.
    """

def explain_layout(requests: Sequence[tuple[Any, ...]], array: tuple[Any, ...], /) -> str | None:
    """Words for the layout of the array that suits these requests best, and its price. None:
    nothing is known of its elements. Arguments as explain_request's.
    """

def explain_hazard(
    kind: str,
    party: tuple[Any, ...],
    other: tuple[Any, ...],
    space: str | None,
    count: int,
    message: str | None,
    where: str,
    /,
) -> tuple[str, str | None]:
    """Words for a hazard, and for its cure, which may be None. A party is (file, line, PTX line,
    text, block, thread).
    """

def explain_element(array: tuple[Any, ...], at: int, width: int, text: str | None, /) -> str:
    """The element at a byte offset in an array of shared memory, as the source writes it. width: of
    the access; text: its instruction, or None. array: as for explain_request, and rows or 0.
    """

def shared_arrays(ptx: str, entry: str | None, dynamic_bytes: int, /) -> list[tuple[Any, ...]]:
    """The arrays in shared memory of a launch of the entry; None: of all entries. Rows are (name,
    first byte, bytes, bytes per element or 0, columns or 0, rows or 0).
    """

def set_timings(ordinal: int, timings: Sequence[tuple[Any, ...]] | None, /) -> None:
    """Sets the table of `auto` for that GPU, in the format of
    smemkern._variants.cost_model.load. None: reloads the tables of all.
    """

def predict(
    timings: Sequence[tuple[Any, ...]],
    op: str,
    dtype: str,
    accuracy: str,
    sizes: tuple[int, int, int, int],
    sm: int,
    multiprocessors: int,
    layout: str,
    alignment: int,
    /,
) -> list[tuple[int, float, tuple[float, ...]]]:
    """(index, predicted microseconds, terms) of each timing that applies. strides: smk_strides."""

def ring_facts(
    sizes: tuple[int, int, int, int],
    tile: tuple[int, int, int, bool, int, int],
    layout: str,
    multiprocessors: int,
    itemsize: int,
    aligned: bool,
    /,
) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """What the planner counts of a product of fp16, bf16 or tf32: the terms of its time
    (core/plan_ring.c), then what only the trees use; the terms of the launch that packs its
    operands; and the load of the device: 0 if up to half of its multiprocessors have a block,
    1 up to all, 2 more. Not aligned: TMA cannot read both.
    """

def gemv_forms(
    sizes: tuple[int, int, int, int],
    layout: str,
    multiprocessors: int,
    itemsize: int,
    aligned: bool,
    /,
) -> list[tuple[tuple[int, int, int], tuple[float, ...], float]]:
    """((lanes, threads, split), terms of its time, predicted microseconds) of each form of gemm's
    gemv (core/plan_gemv.c). Aligned: rows of the matrix begin on 16-byte boundaries.
    """

def last_transfer() -> tuple[int, int, int, int, int, float, int, int] | None:
    """The fields of smemkern._device.transfer.Transfer, or None; see smemkern.last_transfer."""

def trim(device: str | None, /) -> int:
    """Frees what is cached for later calls, and returns its bytes; see smemkern.empty_cache."""

def event_record(ordinal: int, stream: Any, /) -> Any:
    """A CUDA event, recorded on that stream of a GPU."""

def event_query(event: Any, /) -> bool:
    """Whether the work before the event has finished."""

def stream_wait_event(event: Any, stream: Any, /) -> None:
    """Makes a stream of the same GPU wait for the event; None: the default stream."""

def nvrtc_compile(
    source: str,
    file_name: str,
    entry: str | None,
    names: Sequence[str],
    headers: Sequence[str],
    options: Sequence[str],
    /,
) -> bytes:
    """PTX that NVRTC makes of CUDA C++, as bytes. `names` and `headers`: of headers in memory."""

def cache_load(key: bytes, /) -> bytes | None:
    """The bytes stored under a key of 32 bytes, or None."""

def cache_store(key: bytes, text: bytes, /) -> None:
    """Stores bytes in the cache on disk."""

def configure(images: str, kernels: str) -> None:
    """Sets the folders of compiled kernels and of their sources."""
