"""PyTorch under `smemkern run`: its own kernels are machine code, so the host does their work.

Memory, streams, and the kernels of others (Triton, extensions) are as on a GPU. PyTorch's kernels
for the host do each operation on copies of CUDA tensors. What it returns or changes is copied to
the device. sitecustomize.py calls `install`.
"""

import ctypes
import functools
import itertools
import warnings

import torch
from torch.utils._pytree import tree_map_only

# Operations that launch no kernel: they run as they are, as do views.
NATIVE = frozenset(
    f"aten::{name}"
    for name in (
        "empty empty_strided _local_scalar_dense is_set_to record_stream resize_ set_ "
        "_use_cudnn_ctc_loss _use_miopen_ctc_loss"
    ).split()
)
# Those that write all of a tensor and read nothing of it. So do those with `out`.
OVERWRITE = frozenset(
    f"aten::{name}_"
    for name in (
        "bernoulli cauchy copy exponential fill geometric log_normal normal random uniform zero"
    ).split()
)
# Those that sum or multiply halves in halves on the host, but in float32 on a GPU. How many of
# their results are halves: the statistics of layer_norm are float32 on a GPU.
IN_FLOAT = {
    "aten::embedding_dense_backward": 1,
    "aten::native_layer_norm": 1,
    "aten::native_layer_norm_backward": 3,
    "aten::prod": 1,
}
NUMBERS = (bool, int, float, complex)
HALVES = (torch.float16, torch.bfloat16)


# ---- copies ----


@functools.cache
def _driver():
    return ctypes.CDLL("libcuda.so.1")


def _span(tensor):
    """The bytes from the first to the last element."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size() if tensor.numel() else 0


def _rows(tensor):
    """The memory of the elements: offsets, bytes of a row, number of rows, and their distance."""
    size = tensor.element_size()
    steps = [step * size for step in tensor.stride()]
    dims = sorted((step, n) for step, n in zip(steps, tensor.shape, strict=True) if step and n > 1)
    width = size
    while dims and dims[0][0] == width:
        width *= dims.pop(0)[1]
    extent = width
    for step, n in dims:
        if step < extent:  # elements that overlap
            return [(0, _span(tensor), 1, 0)]
        extent += step * (n - 1)
    pitch, rows = dims.pop(0) if dims else (0, 1)
    outer = itertools.product(*(range(0, step * n, step) for step, n in dims))
    return [(sum(offsets), width, rows, pitch) for offsets in outer]


class _Copy2D(ctypes.Structure):  # CUDA_MEMCPY2D
    _fields_ = [
        (f"{side}_{name}", kind)
        for side in ("from", "to")
        for name, kind in (
            *(("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("memory", ctypes.c_int)),
            *(("host", ctypes.c_void_p), ("device", ctypes.c_uint64)),
            *(("array", ctypes.c_void_p), ("pitch", ctypes.c_size_t)),
        )
    ] + [("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


def _side(name, tensor, offset, pitch):
    memory = 2 if tensor.is_cuda else 1  # CUmemorytype
    pointer = "device" if tensor.is_cuda else "host"
    values = {"memory": memory, pointer: tensor.data_ptr() + offset, "pitch": pitch}
    return {f"{name}_{key}": value for key, value in values.items()}


def _copy(to, source):
    """Between host and device, after the work of the current stream: tensors of the same strides.

    What lies between the elements is not copied: perhaps it was never written.
    """
    if not to.numel():
        return
    with torch.cuda.device(to.device if to.is_cuda else source.device):
        torch.cuda.current_stream().synchronize()
        for offset, width, rows, pitch in _rows(to):
            sides = _side("from", source, offset, pitch) | _side("to", to, offset, pitch)
            copy = _Copy2D(**sides, width=width, height=rows)
            if result := _driver().cuMemcpy2DUnaligned_v2(ctypes.byref(copy)):
                raise RuntimeError(f"CUDA error: cuMemcpy2DUnaligned returned {result}")


def _like(tensor, device):
    """A tensor of the same type, shape and strides: new memory."""
    memory = torch.empty(_span(tensor), dtype=torch.uint8, device=device)
    empty = torch.empty(0, dtype=tensor.dtype, device=device)
    like = empty.set_(memory.untyped_storage(), 0, tensor.shape, tensor.stride())
    like = like.conj() if tensor.is_conj() else like
    return torch._neg_view(like) if tensor.is_neg() else like


def _copied(tensor, device):
    other = _like(tensor, device)
    _copy(other, tensor)
    return other


# ---- operations ----


class _Call:
    """The operands of one operation, on the host."""

    def __init__(self):
        self.device = None  # of the CUDA tensors
        self._copies = {}  # CUDA tensors and their copies, by place
        self._read = set()  # those that hold the tensor's values
        self._written = []

    def to_host(self, tensor, writes, reads):
        if not tensor.is_cuda:
            return tensor
        self.device = tensor.device
        place = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        place += (tensor.is_conj(), tensor.is_neg())
        if place not in self._copies:
            self._copies[place] = tensor, _like(tensor, "cpu")
        if reads and place not in self._read:
            self._read.add(place)
            _copy(self._copies[place][1], tensor)
        if writes:
            self._written.append(self._copies[place])
        return self._copies[place][1]

    @property
    def has_written(self):
        return bool(self._written)

    def write_back(self):
        for tensor, copy in self._written:
            if copy.shape != tensor.shape:  # it resized its `out`
                tensor.resize_(copy.shape)
            _copy(tensor, copy)

    def to_device(self, device, tensor):
        for original, copy in self._copies.values():
            if copy is tensor:
                return original
        return _copied(tensor, device)


def _on_host(operation, *args, **kwargs):
    schema, call = operation._schema, _Call()

    def operand(argument, value):
        writes = argument.alias_info is not None and argument.alias_info.is_write
        reads = not writes or not (argument.is_out or schema.name in OVERWRITE)
        if isinstance(value, NUMBERS) and isinstance(argument.type, torch.TensorType):
            return torch.tensor(value)
        return tree_map_only(torch.Tensor, lambda one: call.to_host(one, writes, reads), value)

    by_name = {argument.name: argument for argument in schema.arguments}
    host_args = [operand(*pair) for pair in zip(schema.arguments, args, strict=False)]
    host_kwargs = {name: operand(by_name[name], value) for name, value in kwargs.items()}
    device = kwargs.get("device") or call.device
    if kwargs.get("device") is not None:
        host_kwargs["device"] = torch.device("cpu")
    if kwargs.get("generator") is not None:
        host_kwargs["generator"] = _generator(kwargs["generator"])
    run = _in_float if schema.name in IN_FLOAT and not call.has_written else _as_it_is
    result = run(operation, host_args, host_kwargs)
    call.write_back()
    if device is None or device.type != "cuda":
        return result
    return tree_map_only(torch.Tensor, functools.partial(call.to_device, device), result)


def _as_it_is(operation, args, kwargs):
    return operation(*args, **kwargs)


def _in_float(operation, args, kwargs):
    """The first results have the types that they have without float32."""
    types = operation(*_moved("meta", args), **_moved("meta", kwargs))
    results = operation(*_widened(args), **_widened(kwargs))
    if not isinstance(results, tuple):
        return results.to(types.dtype)
    n = IN_FLOAT[operation._schema.name]
    pairs = zip(results[:n], types, strict=False)
    narrow = [None if one is None else one.to(like.dtype) for one, like in pairs]
    return (*narrow, *results[n:])


def _moved(device, values):
    return tree_map_only(torch.Tensor, lambda one: one.to(device), values)


def _widened(values):
    return tree_map_only(
        torch.Tensor, lambda one: one.float() if one.dtype in HALVES else one, values
    )


_generators: dict[torch.Generator, tuple[int, torch.Generator]] = {}


def _generator(generator):
    """A host's generator in place of a device's one, with the same seed."""
    if generator.device.type != "cuda":
        return generator
    seed = generator.initial_seed()
    kept = _generators.get(generator)
    if kept is None or kept[0] != seed:
        kept = _generators[generator] = seed, torch.Generator().manual_seed(seed)
    return kept[1]


def _operations():
    """All that have kernels of their own for CUDA, and copies, which launch some."""
    own = torch._C._dispatch_get_registrations_for_dispatch_key("CUDA")
    for name in sorted({*own, "aten::copy_"}):
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if space != "aten" or f"{space}::{packet}" in NATIVE:
            continue
        operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
        if not operation.is_view:
            yield operation


def install():
    if not torch.version.cuda:
        return
    # Where PyTorch has other ones, those that only a GPU has kernels for are not taken.
    torch.backends.cudnn.enabled = False
    for name in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(False)
    install.library = library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():  # that the operators have kernels, which is why
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        for operation in _operations():
            library.impl(operation, functools.partial(_on_host, operation), "CUDA")
