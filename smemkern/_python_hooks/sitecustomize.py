"""Python starts with this file under `smemkern run`: packages that compile for a GPU hand over PTX.

Some packages make machine code, which the emulator cannot run. Here each of them is told, when it
is imported, to stop one step before. The program's own Python runs this file, so it imports nothing
of smemkern.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import warnings


def _cuda_core(module):
    """cuda.core, and Numba on top of it: NVRTC stops at PTX, and the driver links it.

    nvJitLink would link to machine code.
    """
    linker = importlib.import_module("cuda.core._linker")
    warnings.filterwarnings("ignore", "libnvJitLink.so")
    linker._nvjitlink_has_version_symbol = lambda _: False

    class Program(module.Program):
        def compile(self, target_type, *args, **kw):
            return super().compile("ptx" if target_type == "cubin" else target_type, *args, **kw)

    module.Program = Program


def _numba(module):
    """Numba makes PTX, and no LTO-IR, where there is only the driver's linker."""
    module._have_nvjitlink = lambda: False


def _pycuda(module):
    """PyCUDA runs nvcc."""
    original = module.compile

    def compile(*args, **kw):
        kw["target"] = "ptx"
        return original(*args[:9], **kw)

    module.compile = compile


def _triton(module):
    """Triton runs ptxas. Its cache keeps such kernels apart."""
    backend = module.CUDABackend
    original = backend.hash
    backend.make_cubin = lambda self, src, *args: src.encode() + b"\0"
    backend.hash = lambda self: f"smemkern-{original(self)}"


def _torch(module):
    """PyTorch's own kernels are machine code."""
    importlib.import_module("smemkern_torch").install()


HOOKS = {
    "cuda.core": _cuda_core,
    "numba.cuda.cudadrv.driver": _numba,
    "pycuda.compiler": _pycuda,
    "torch": _torch,
    "triton.backends.nvidia.compiler": _triton,
}


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, hook):
        self._loader = loader
        self._hook = hook

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        self._hook(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules as the other finders do, and adds the hook."""

    def find_spec(self, name, path=None, target=None):
        if name not in HOOKS:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, HOOKS[name])
                return spec
        return None


class _MetaPath(list):
    """The finders. The first one stays it: pytest inserts one that can take every module."""

    def insert(self, index, finder):
        super().insert(index or 1, finder)


def _run_hidden():
    """The environment's own sitecustomize, which this file hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path = _MetaPath([_Finder(), *sys.meta_path])
_run_hidden()
