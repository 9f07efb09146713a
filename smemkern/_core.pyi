from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict, final, overload

import numpy as np
from numpy.typing import ArrayLike

from ._compile import Compiled
from ._hazards import Hazards
from ._observe import Trace

__version__: str
benign_kinds: tuple[str, ...]

class Error(Exception): ...
class NoDeviceError(Error): ...
class DriverTooOldError(Error): ...
class KernelImageError(Error): ...
class CompileError(Error): ...
class LaunchError(Error): ...
class UnsupportedInstructionError(Error): ...

class HazardError(Error):
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
) -> _Array: ...
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
) -> _Array: ...
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
) -> _Array: ...

@final
class Kernel:
    def __new__(
        cls,
        source_or_ptx: str | PathLike[str] | Compiled,
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
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def ptx(self) -> str: ...
    @property
    def file(self) -> str | None: ...
    @property
    def compiler(self) -> str | None: ...
    @property
    def _origin(self) -> Any: ...
    def __reduce__(self) -> tuple[object, ...]: ...
    @property
    def check(self) -> bool: ...
    @property
    def shared_bytes(self) -> int: ...
    @property
    def live_registers(self) -> int: ...

@final
class TensorMap:
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
    def array(self) -> np.ndarray[Any, Any]: ...
    @property
    def box(self) -> tuple[int, ...]: ...
    def __bytes__(self) -> bytes: ...

@final
class Texture:
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
    def array(self) -> np.ndarray[Any, Any]: ...
    @property
    def handle(self) -> int: ...

@final
class Surface:
    def __new__(
        cls,
        array: np.ndarray[Any, Any],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
    ) -> Surface: ...
    @property
    def array(self) -> np.ndarray[Any, Any]: ...
    @property
    def handle(self) -> int: ...

class _Config(TypedDict):
    version: str
    gpus: int
    images: str
    kernels: str
    driver: str
    nvrtc: str

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
) -> tuple[Any, list[float], tuple[Any, ...] | None]: ...
def plan(op: str, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> dict[str, Any]: ...
def watch(open: bool, /) -> None: ...
def variants() -> tuple[tuple[Any, ...], ...]: ...
def devices() -> tuple[tuple[Any, ...], ...]: ...
def config() -> _Config: ...
def shared_requests(
    addresses: _Array, active: _Array, width: int, op: str, /
) -> tuple[_Array, _Array, _Array]: ...
def set_timings(ordinal: int, timings: Sequence[tuple[Any, ...]] | None, /) -> None: ...
def predict(
    timings: Sequence[tuple[Any, ...]],
    op: str,
    dtype: str,
    accuracy: str,
    sizes: tuple[int, int, int, int],
    sm: int,
    multiprocessors: int,
    strides: int,
    aligned: bool,
    /,
) -> list[tuple[int, float, tuple[float, ...]]]: ...
def last_transfer() -> tuple[int, int, int, int, int, float, int, int] | None: ...
def trim(device: str | None, /) -> int: ...
def event_record(ordinal: int, stream: Any, /) -> Any: ...
def event_query(event: Any, /) -> bool: ...
def stream_wait_event(event: Any, stream: Any, /) -> None: ...
def nvrtc_compile(
    source: str,
    file_name: str,
    entry: str | None,
    names: Sequence[str],
    headers: Sequence[str],
    options: Sequence[str],
    /,
) -> bytes: ...
def cache_load(key: bytes, /) -> bytes | None: ...
def cache_store(key: bytes, text: bytes, /) -> None: ...
def configure(images: str, kernels: str) -> None: ...
