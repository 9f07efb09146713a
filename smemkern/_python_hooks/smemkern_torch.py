"""PyTorch under `smemkern run`: its own kernels are machine code, so the host does their work.

Memory, streams, and the kernels of others (Triton, extensions) are as on a GPU. PyTorch's kernels
for the host do each operation on copies of CUDA tensors. What it returns or changes is copied to
the device. sitecustomize.py calls `install`.
"""

import ctypes
import functools

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


def _bytes(tensor):
    """The memory from the first to the last element of a tensor, as a tensor of bytes."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    count = (last + 1) * tensor.element_size() if tensor.numel() else 0
    start = tensor.storage_offset() * tensor.element_size()
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(tensor.untyped_storage(), start, (count,), (1,))


def _copy(to, source):
    """Bytes, between host and device, after the work of the current stream."""
    if not to.numel():
        return
    device = to.device if to.is_cuda else source.device
    name = "cuMemcpyHtoD_v2" if to.is_cuda else "cuMemcpyDtoH_v2"
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()
        pointers = map(ctypes.c_void_p, (to.data_ptr(), source.data_ptr()))
        result = getattr(_driver(), name)(*pointers, ctypes.c_size_t(to.numel()))
    if result:
        raise RuntimeError(f"CUDA error: {name} returned {result}")


def _like(tensor, memory):
    """A tensor of the same type, shape and strides in other memory."""
    empty = torch.empty(0, dtype=tensor.dtype, device=memory.device)
    like = empty.set_(memory.untyped_storage(), 0, tensor.shape, tensor.stride())
    like = like.conj() if tensor.is_conj() else like
    return torch._neg_view(like) if tensor.is_neg() else like


def _copied(tensor, device):
    memory = _bytes(tensor)
    other = torch.empty(memory.shape, dtype=torch.uint8, device=device)
    _copy(other, memory)
    return _like(tensor, other)


def _is_dense(tensor):
    return torch.ops.aten.is_non_overlapping_and_dense(tensor)


# ---- operations ----


class _Call:
    """The operands of one operation, on the host."""

    def __init__(self):
        self.device = None  # of the CUDA tensors
        self._copies = {}  # CUDA tensors and their copies, by place
        self._written = []

    def to_host(self, tensor, writes, reads):
        if not tensor.is_cuda:
            return tensor
        self.device = tensor.device
        place = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        place += (tensor.is_conj(), tensor.is_neg())
        if place not in self._copies:
            if reads or not _is_dense(tensor):
                copy = _copied(tensor, "cpu")
            else:
                copy = _like(tensor, torch.empty_like(_bytes(tensor), device="cpu"))
            self._copies[place] = tensor, copy
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
            _copy(_bytes(tensor), _bytes(copy))

    def to_device(self, device, tensor):
        for original, copy in self._copies.values():
            if copy is tensor:
                return original
        return _copied(tensor if _is_dense(tensor) else tensor.contiguous(), device)


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
    yield torch.ops.aten.copy_.default
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if space != "aten" or f"{space}::{packet}" in NATIVE:
            continue
        operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
        if not operation.is_view:
            yield operation


def install():
    # Where PyTorch has other ones, those that only a GPU has kernels for are not taken.
    torch.backends.cudnn.enabled = False
    for name in ("flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(False)
    install.library = library = torch.library.Library("aten", "IMPL")
    for operation in _operations():
        library.impl(operation, functools.partial(_on_host, operation), "CUDA")
