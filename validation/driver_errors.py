"""The result codes of the driver's API for wrong calls: of a GPU's driver, or of the emulator's.

    python validation/driver_errors.py record.json                    # on a machine with a GPU
    smemkern run -- python validation/driver_errors.py ours.json      # the emulator

Each group of calls runs in a process of its own, as some calls end the process or the context on a
GPU's driver. Such a call has the record "crash", and its group goes on after it. No call resets a
device or uses managed memory. tests/run/test_driver_errors.py compares the two records.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from pathlib import Path

SECONDS = 30  # of a group, at most
MAX_RUNS = 24  # of a group
ENDS_CONTEXT = range(700, 720)  # codes after which a context is of no use
STATUS_ENDED = 7  # of a process whose context ended
WILD = 0x1234  # an address that nothing has
PTX = b""".version 7.0
.target sm_70
.address_size 64
.global .align 4 .b8 variable[16];
.visible .entry k(.param .u64 y) { ret; }
.visible .entry big(.param .u64 y) .maxntid 64, 1, 1 { ret; }
.visible .entry store(.param .u64 y) {
    .reg .b64 %a;
    ld.param.u64 %a, [y];
    st.global.u32 [%a], 1;
    ret;
}
.visible .entry trap(.param .u64 y) { trap; }
\0"""


class Fields(ctypes.Structure):
    """A structure of the fields that its class lists; given by name, others are 0."""


def structure(**fields):
    return type("made", (Fields,), {"_fields_": list(fields.items())})


LaunchConfig = structure(
    **dict.fromkeys("gx gy gz bx by bz shared".split(), c_uint),
    stream=c_void_p, attributes=c_void_p, n=c_uint,
)  # fmt: skip
SIDE = {
    "x": c_size_t, "y": c_size_t, "z": c_size_t, "lod": c_size_t, "type": c_int, "host": c_void_p,
    "device": c_uint64, "array": c_void_p, "reserved": c_void_p, "pitch": c_size_t,
    "height": c_size_t,
}  # fmt: skip
Copy3D = structure(
    **{f"{side}_{name}": type_ for side in ("src", "dst") for name, type_ in SIDE.items()},
    width=c_size_t, height=c_size_t, depth=c_size_t,
)  # fmt: skip
Array3D = structure(
    width=c_size_t, height=c_size_t, depth=c_size_t, format=c_int, channels=c_uint, flags=c_uint
)
Resource = structure(type=c_int, of=c_uint64 * 16, flags=c_uint)
Texture = structure(
    address=c_int * 3, filter=c_int, flags=c_uint, anisotropy=c_uint, rest=c_uint * 64
)
KernelNode = structure(
    function=c_void_p,
    **dict.fromkeys("gx gy gz bx by bz shared".split(), c_uint),
    params=c_void_p, extra=c_void_p, kernel=c_void_p, context=c_void_p,
)  # fmt: skip
MemsetNode = structure(
    dst=c_uint64, pitch=c_size_t, value=c_uint, element=c_uint, width=c_size_t, height=c_size_t
)
HostNode = structure(function=c_void_p, data=c_void_p)
Physical = structure(
    type=c_int, handles=c_int, location=c_int, device=c_int, security=c_void_p, rest=c_uint64 * 2
)
Access = structure(location=c_int, device=c_int, flags=c_int)
Pool = structure(
    type=c_int, handles=c_int, location=c_int, device=c_int, security=c_void_p,
    most=c_size_t, rest=c_uint64 * 8,
)  # fmt: skip


class Driver:
    """Calls by name, which return their code; and what most groups need."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.buffer = ctypes.create_string_buffer(1 << 16)  # takes any result
        self.argument = c_uint64(0)
        self.params = (c_void_p * 1)(ctypes.addressof(self.argument))

    def __getattr__(self, name):
        return getattr(self.library, name, lambda *_: "missing")

    def start(self):
        self.context = c_void_p()
        for code in (
            self.cuInit(0),
            self.cuDevicePrimaryCtxRetain(byref(self.context), 0),
            self.cuCtxSetCurrent(self.context),
        ):
            if code:
                raise SystemExit(f"no device: {code}")
        return self

    def made(self, call, *arguments):
        """The handle that a call writes to its first argument."""
        out = c_void_p()
        code = getattr(self, call)(byref(out), *arguments)
        if code:
            raise SystemExit(f"{call}: {code}")
        return out

    def memory(self, size=400):
        return c_uint64(self.made("cuMemAlloc_v2", c_size_t(size)).value)

    def module(self):
        return self.made("cuModuleLoadData", PTX)

    def kernel(self, name=b"k"):
        return self.made("cuModuleGetFunction", self.module(), name)

    def launch(self, f, grid=(1, 1, 1), block=(32, 1, 1), shared=0, stream=None):
        return self.cuLaunchKernel(f, *grid, *block, shared, stream, self.params, None)


def at(address, offset=0):
    return c_uint64(address.value + offset)


# ---- groups: each yields (name, call, arguments...) ----

SIZES = {
    "fine": ((1, 1, 1), (32, 1, 1), 0),
    "block2048": ((1, 1, 1), (2048, 1, 1), 0),
    "block1024x2": ((1, 1, 1), (1024, 2, 1), 0),
    "block128": ((1, 1, 1), (128, 1, 1), 0),
    "grid0": ((0, 1, 1), (32, 1, 1), 0),
    "block0": ((1, 1, 1), (0, 1, 1), 0),
    "gridy": ((1, 100000, 1), (32, 1, 1), 0),
    "z65": ((1, 1, 1), (1, 1, 65), 0),
    "shared1M": ((1, 1, 1), (32, 1, 1), 1 << 20),
    "shared64K": ((1, 1, 1), (32, 1, 1), 1 << 16),
}


def launches(d):
    module, library = d.module(), d.made("cuLibraryLoadData", PTX, None, None, 0, None, None, 0)
    functions = {
        "module": d.made("cuModuleGetFunction", module, b"k"),
        "library": d.made("cuLibraryGetKernel", library, b"k"),
        "maxntid": d.made("cuModuleGetFunction", module, b"big"),
    }
    for which, f in functions.items():
        for what, (grid, block, shared) in SIZES.items():
            yield f"launch {which} {what}", d.launch, f, grid, block, shared
            config = LaunchConfig(*grid, *block, shared)
            name = f"launchEx {which} {what}"
            yield name, d.cuLaunchKernelEx, byref(config), f, d.params, None
    f = functions["module"]
    one = (1, 1, 1, 32, 1, 1, 0)
    yield "noparams", d.cuLaunchKernel, f, *one, None, None, None
    yield "launch with both", d.cuLaunchKernel, f, *one, None, d.params, d.params
    yield "launch null", d.cuLaunchKernel, None, *one, None, d.params, None
    yield "launchEx null config", d.cuLaunchKernelEx, None, f, d.params, None
    config = LaunchConfig(1, 1, 1, 32, 1, 1, 0, None, None, 3)
    yield "launchEx null attributes", d.cuLaunchKernelEx, byref(config), f, d.params, None
    four = c_uint64(4)
    short = (c_void_p * 5)(1, ctypes.addressof(d.argument), 2, ctypes.addressof(four), 0)
    yield "launch extra too short", d.cuLaunchKernel, f, *one, None, None, short
    cooperative = d.cuLaunchCooperativeKernel
    yield "cooperative", cooperative, f, *one, None, d.params
    yield "cooperative large", cooperative, f, 1 << 20, 1, 1, 32, 1, 1, 0, None, d.params
    yield "cooperative block2048", cooperative, f, 1, 1, 1, 2048, 1, 1, 0, None, d.params
    yield "host function null", d.cuLaunchHostFunc, None, None, None
    yield "block shape", d.cuFuncSetBlockShape, f, 0, 1, 1
    yield "launch grid 2^31", d.launch, f, (-(2**31), 1, 1)


def functions(d):
    f, out = d.kernel(), d.buffer
    size = c_size_t()
    yield "function attribute", d.cuFuncGetAttribute, out, 0, f
    yield "function attribute 99", d.cuFuncGetAttribute, out, 99, f
    yield "function attribute -1", d.cuFuncGetAttribute, out, -1, f
    yield "function attribute null", d.cuFuncGetAttribute, None, 0, f
    yield "function attribute of null", d.cuFuncGetAttribute, out, 0, None
    for attribute, values in {
        0: [64],  # read-only
        8: [-1, 0, 49152, 100000, 227 << 10, (227 << 10) + 1, 1 << 20],  # dynamic shared memory
        9: [-2, -1, 0, 100, 101],  # carveout
        10: [1],
        11: [0, 1, -1],
        14: [0, 1, 2],
        99: [0],
    }.items():
        for value in values:
            name = f"set function attribute {attribute} to {value}"
            yield name, d.cuFuncSetAttribute, f, attribute, value
    yield "set attribute of null", d.cuFuncSetAttribute, None, 8, 0
    yield "cache config 9", d.cuFuncSetCacheConfig, f, 9
    yield "function name null", d.cuFuncGetName, None, f
    yield "parameter 0", d.cuFuncGetParamInfo, f, c_size_t(0), byref(size), byref(size)
    yield "parameter 1", d.cuFuncGetParamInfo, f, c_size_t(1), byref(size), byref(size)
    yield "parameter null", d.cuFuncGetParamInfo, f, c_size_t(0), None, None
    yield "function module null", d.cuFuncGetModule, None, f
    occupancy = d.cuOccupancyMaxActiveBlocksPerMultiprocessor
    for threads in (-1, 0, 1, 1024, 1025, 1 << 20):
        yield f"occupancy {threads}", occupancy, out, f, threads, c_size_t(0)
    yield "occupancy shared", occupancy, out, f, 32, c_size_t(1 << 30)
    yield "occupancy null", occupancy, None, f, 32, c_size_t(0)
    yield "occupancy of null", occupancy, out, None, 32, c_size_t(0)
    with_flags = d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    yield "occupancy flags 1", with_flags, out, f, 32, c_size_t(0), 1
    yield "occupancy flags 8", with_flags, out, f, 32, c_size_t(0), 8
    potential = d.cuOccupancyMaxPotentialBlockSize
    yield "potential", potential, out, byref(c_int()), f, None, c_size_t(0), 0
    yield "potential null", potential, None, None, f, None, c_size_t(0), 0
    yield "potential limit", potential, out, byref(c_int()), f, None, c_size_t(0), -1
    available = d.cuOccupancyAvailableDynamicSMemPerBlock
    yield "available", available, byref(size), f, 1, 32
    yield "available 0 blocks", available, byref(size), f, 0, 32
    yield "available 0 threads", available, byref(size), f, 1, 0
    yield "available 1000 blocks", available, byref(size), f, 1000, 32
    yield "available null", available, None, f, 1, 32


def memory(d):
    out, size, a = d.buffer, c_size_t(), c_uint64()
    yield "alloc0", d.cuMemAlloc_v2, byref(a), c_size_t(0)
    yield "allochuge", d.cuMemAlloc_v2, byref(a), c_size_t(1 << 45)
    yield "alloc 2^64-1", d.cuMemAlloc_v2, byref(a), c_size_t(2**64 - 1)
    yield "alloc null", d.cuMemAlloc_v2, None, c_size_t(4)
    yield "alloc", d.cuMemAlloc_v2, byref(a), c_size_t(400)
    yield "dtoh over by 4", d.cuMemcpyDtoH_v2, out, a, c_size_t(404)
    yield "htod null", d.cuMemcpyHtoD_v2, c_uint64(0), out, c_size_t(4)
    yield "htod wild", d.cuMemcpyHtoD_v2, c_uint64(WILD), out, c_size_t(4)
    yield "dtoh zero bytes null", d.cuMemcpyDtoH_v2, out, c_uint64(0), c_size_t(0)
    yield "htod zero bytes wild", d.cuMemcpyHtoD_v2, c_uint64(WILD), out, c_size_t(0)
    yield "htod from null", d.cuMemcpyHtoD_v2, a, None, c_size_t(4)
    yield "dtoh to null", d.cuMemcpyDtoH_v2, None, a, c_size_t(4)
    yield "htod 2^64-1", d.cuMemcpyHtoD_v2, a, out, c_size_t(2**64 - 1)
    yield "dtod over by 4", d.cuMemcpyDtoD_v2, a, a, c_size_t(404)
    yield "dtod wild", d.cuMemcpyDtoD_v2, a, c_uint64(WILD), c_size_t(4)
    yield "dtod onto itself", d.cuMemcpyDtoD_v2, at(a, 4), a, c_size_t(16)
    yield "copy wild", d.cuMemcpy, c_uint64(0), a, c_size_t(4)
    yield "htod async wild", d.cuMemcpyHtoDAsync_v2, c_uint64(WILD), out, c_size_t(4), None
    yield "dtoh async over by 4", d.cuMemcpyDtoHAsync_v2, out, a, c_size_t(404), None
    yield "memset odd", d.cuMemsetD32_v2, at(a, 1), 0, c_size_t(1)
    yield "memset 16 odd", d.cuMemsetD16_v2, at(a, 1), 0, c_size_t(1)
    yield "memset wild", d.cuMemsetD8_v2, c_uint64(WILD), 0, c_size_t(1)
    yield "memset null 0", d.cuMemsetD8_v2, c_uint64(0), 0, c_size_t(0)
    yield "memset over", d.cuMemsetD8_v2, a, 0, c_size_t(401)
    yield "memset far over", d.cuMemsetD8_v2, a, 0, c_size_t(1 << 40)
    yield "memset 2^62 words", d.cuMemsetD32_v2, a, 0, c_size_t(2**62 + 1)
    memset2d = d.cuMemsetD2D32_v2
    yield "memset2D", memset2d, a, c_size_t(16), 0, c_size_t(4), c_size_t(5)
    yield "memset2D pitch", memset2d, a, c_size_t(12), 0, c_size_t(4), c_size_t(5)
    yield "memset2D pitch odd", memset2d, a, c_size_t(17), 0, c_size_t(4), c_size_t(5)
    yield "memset2D over", memset2d, a, c_size_t(16), 0, c_size_t(4), c_size_t(500)
    yield "memset2D no width", memset2d, a, c_size_t(16), 0, c_size_t(0), c_size_t(5)
    yield "memset2D 1 row", memset2d, a, c_size_t(0), 0, c_size_t(4), c_size_t(1)
    yield "range", d.cuMemGetAddressRange_v2, byref(c_uint64()), byref(size), at(a, 10)
    yield "range wild", d.cuMemGetAddressRange_v2, byref(c_uint64()), byref(size), c_uint64(WILD)
    yield "range null", d.cuMemGetAddressRange_v2, None, None, a
    yield "range end", d.cuMemGetAddressRange_v2, byref(c_uint64()), byref(size), at(a, 512)
    yield "info null", d.cuMemGetInfo_v2, None, None
    yield "free inside", d.cuMemFree_v2, at(a, 4)
    yield "free", d.cuMemFree_v2, a
    yield "free again", d.cuMemFree_v2, a
    yield "htod freed", d.cuMemcpyHtoD_v2, a, out, c_size_t(4)
    yield "memset freed", d.cuMemsetD8_v2, a, 0, c_size_t(4)
    yield "range freed", d.cuMemGetAddressRange_v2, byref(c_uint64()), byref(size), a
    yield "free null", d.cuMemFree_v2, c_uint64(0)
    yield "free wild", d.cuMemFree_v2, c_uint64(WILD)
    pitch = d.cuMemAllocPitch_v2
    for element in (0, 3, 4, 16, 32):
        name = f"pitch {element}" if element != 4 else "pitch"
        yield name, pitch, byref(a), byref(size), c_size_t(100), c_size_t(10), element
    yield "pitch no width", pitch, byref(a), byref(size), c_size_t(0), c_size_t(10), 4
    yield "pitch no height", pitch, byref(a), byref(size), c_size_t(100), c_size_t(0), 4
    yield "pitch wide", pitch, byref(a), byref(size), c_size_t(2**63), c_size_t(4), 4
    yield "pitch null", pitch, byref(a), None, c_size_t(100), c_size_t(10), 4


def host_memory(d):
    out, a = d.buffer, c_void_p()
    pages = ctypes.create_string_buffer(1 << 16)
    base = c_void_p((ctypes.addressof(pages) + 4095) & ~4095)
    yield "freehost wild", d.cuMemFreeHost, c_void_p(WILD)
    yield "freehost null", d.cuMemFreeHost, None
    yield "hostalloc 0", d.cuMemHostAlloc, byref(a), c_size_t(0), 0
    yield "hostalloc null", d.cuMemHostAlloc, None, c_size_t(4), 0
    yield "hostalloc flags 8", d.cuMemHostAlloc, byref(a), c_size_t(4), 8
    yield "hostalloc flags 255", d.cuMemHostAlloc, byref(a), c_size_t(4), 255
    yield "allochost 0", d.cuMemAllocHost_v2, byref(a), c_size_t(0)
    yield "hostalloc", d.cuMemHostAlloc, byref(a), c_size_t(4096), 2
    inside = c_void_p(a.value + 8)
    yield "host pointer", d.cuMemHostGetDevicePointer_v2, out, a, 0
    yield "host pointer inside", d.cuMemHostGetDevicePointer_v2, out, inside, 0
    yield "host pointer flags", d.cuMemHostGetDevicePointer_v2, out, a, 1
    yield "host pointer wild", d.cuMemHostGetDevicePointer_v2, out, c_void_p(WILD), 0
    yield "host pointer null", d.cuMemHostGetDevicePointer_v2, out, None, 0
    yield "host pointer no result", d.cuMemHostGetDevicePointer_v2, None, a, 0
    yield "host flags", d.cuMemHostGetFlags, out, a
    yield "host flags wild", d.cuMemHostGetFlags, out, c_void_p(WILD)
    yield "free of host memory", d.cuMemFree_v2, c_uint64(a.value)
    yield "freehost inside", d.cuMemFreeHost, inside
    yield "unregister hostalloc", d.cuMemHostUnregister, a
    yield "freehost", d.cuMemFreeHost, a
    yield "freehost again", d.cuMemFreeHost, a
    yield "freehost of device", d.cuMemFreeHost, c_void_p(d.memory().value)
    register = d.cuMemHostRegister_v2
    yield "register", register, base, c_size_t(8192), 0
    yield "register again", register, base, c_size_t(8192), 0
    yield "register overlap", register, c_void_p(base.value + 4096), c_size_t(8192), 0
    yield "register null", register, None, c_size_t(4096), 0
    yield "register 0", register, c_void_p(base.value + 16384), c_size_t(0), 0
    yield "register flags", register, c_void_p(base.value + 16384), c_size_t(4096), 255
    yield "freehost of registered", d.cuMemFreeHost, base
    yield "unregister inside", d.cuMemHostUnregister, c_void_p(base.value + 4096)
    yield "unregister", d.cuMemHostUnregister, base
    yield "unregister again", d.cuMemHostUnregister, base
    yield "unregister null", d.cuMemHostUnregister, None


def pointers(d):
    a, out = d.memory(), d.buffer
    host = c_uint64(ctypes.addressof(out))
    yield "ptr attr host", d.cuPointerGetAttribute, out, 2, host
    yield "ptr attr wild", d.cuPointerGetAttribute, out, 99, a
    for attribute in (*range(0, 21), -1):
        yield f"pointer attribute {attribute}", d.cuPointerGetAttribute, out, attribute, a
        name = f"pointer attribute {attribute} of the host"
        yield name, d.cuPointerGetAttribute, out, attribute, host
    yield "pointer attribute null", d.cuPointerGetAttribute, None, 2, a
    yield "pointer attribute of null", d.cuPointerGetAttribute, out, 2, c_uint64(0)
    kinds, data = (c_int * 2)(2, 99), (c_void_p * 2)(*[ctypes.addressof(out)] * 2)
    yield "pointer attributes", d.cuPointerGetAttributes, 1, kinds, data, a
    yield "pointer attributes wrong", d.cuPointerGetAttributes, 2, kinds, data, a
    yield "pointer attributes 0", d.cuPointerGetAttributes, 0, kinds, data, a
    yield "pointer attributes null", d.cuPointerGetAttributes, 1, None, None, a
    yield "pointer attributes host", d.cuPointerGetAttributes, 1, kinds, data, host
    d.cuMemFree_v2(a)
    yield "pointer attribute freed", d.cuPointerGetAttribute, out, 2, a


def devices(d):
    out, name = d.buffer, c_char_p()
    yield "attr 0", d.cuDeviceGetAttribute, out, 0, 0
    yield "attr 1000", d.cuDeviceGetAttribute, out, 1000, 0
    yield "attr -1", d.cuDeviceGetAttribute, out, -1, 0
    yield "attr null", d.cuDeviceGetAttribute, None, 1, 0
    yield "attr device", d.cuDeviceGetAttribute, out, 1, 99
    yield "attr device -1", d.cuDeviceGetAttribute, out, 1, -1
    yield "device 99", d.cuDeviceGet, out, 99
    yield "device -1", d.cuDeviceGet, out, -1
    yield "device null", d.cuDeviceGet, None, 0
    yield "count null", d.cuDeviceGetCount, None
    yield "device name 0", d.cuDeviceGetName, out, 0, 0
    yield "device name 4", d.cuDeviceGetName, out, 4, 0
    yield "device name -1", d.cuDeviceGetName, out, -1, 0
    yield "device name of 99", d.cuDeviceGetName, out, 64, 99
    yield "device name null", d.cuDeviceGetName, None, 64, 0
    yield "memory of 99", d.cuDeviceTotalMem_v2, out, 99
    yield "memory null", d.cuDeviceTotalMem_v2, None, 0
    yield "uuid of 99", d.cuDeviceGetUuid_v2, out, 99
    yield "uuid null", d.cuDeviceGetUuid_v2, None, 0
    yield "bus 4", d.cuDeviceGetPCIBusId, out, 4, 0
    yield "bus of 99", d.cuDeviceGetPCIBusId, out, 64, 99
    yield "bus none", d.cuDeviceGetByPCIBusId, out, b"ffff:ff:1f.0"
    yield "bus garbage", d.cuDeviceGetByPCIBusId, out, b"garbage"
    yield "bus null", d.cuDeviceGetByPCIBusId, out, None
    yield "capability of 99", d.cuDeviceComputeCapability, out, byref(c_int()), 99
    yield "peer itself", d.cuDeviceCanAccessPeer, out, 0, 0
    yield "peer 99", d.cuDeviceCanAccessPeer, out, 0, 99
    yield "peer attribute", d.cuDeviceGetP2PAttribute, out, 1, 0, 0
    yield "peer attribute 99", d.cuDeviceGetP2PAttribute, out, 99, 0, 0
    yield "peer enable itself", d.cuCtxEnablePeerAccess, d.context, 0
    yield "peer disable itself", d.cuCtxDisablePeerAccess, d.context
    yield "version null", d.cuDriverGetVersion, None
    yield "name 9", d.cuGetErrorName, 9, byref(name)
    yield "name null", d.cuGetErrorName, 1, None
    yield "string 9", d.cuGetErrorString, 9, byref(name)
    yield "init flags", d.cuInit, 1
    proc = d.cuGetProcAddress_v2
    yield "proc", proc, b"cuInit", out, 12000, c_uint64(0), None
    yield "proc unknown", proc, b"cuNoSuchCall", out, 12000, c_uint64(0), None
    yield "proc old", proc, b"cuLibraryLoadData", out, 5000, c_uint64(0), None
    yield "proc flags", proc, b"cuInit", out, 12000, c_uint64(64), None
    yield "proc null", proc, None, out, 12000, c_uint64(0), None
    yield "proc null result", proc, b"cuInit", None, 12000, c_uint64(0), None
    yield "primary of 99", d.cuDevicePrimaryCtxRetain, byref(c_void_p()), 99
    yield "primary null", d.cuDevicePrimaryCtxRetain, None, 0
    yield "primary state null", d.cuDevicePrimaryCtxGetState, 0, None, None
    yield "primary flags", d.cuDevicePrimaryCtxSetFlags_v2, 0, 255
    yield "primary release 99", d.cuDevicePrimaryCtxRelease_v2, 99


def broken_images(d):
    """Images that no driver loads: name, bytes."""
    del d
    magic = bytes.fromhex("50ed55ba")
    yield "bad ptx", b"nonsense\0"
    yield "empty image", b"\0"
    yield "image of spaces", b"   \n\0"
    yield "ptx of a comment", b"// .version 7.0\n\0"
    yield "ptx of the version alone", b".version 7.0\n\0"
    yield "ptx syntax", PTX.replace(b"{ ret; }", b"{ ret }", 1)
    yield "ptx opcode", PTX.replace(b"{ ret; }", b"{ nosuch; }", 1)
    yield "ptx unknown register", PTX.replace(b"{ ret; }", b"{ mov.u32 %x, 1; ret; }", 1)
    yield "ptx version 99", PTX.replace(b"7.0", b"99.0", 1)
    yield "ptx target sm_120", PTX.replace(b"7.0", b"8.8", 1).replace(b"sm_70", b"sm_120", 1)
    yield "ptx target sm_9", PTX.replace(b"sm_70", b"sm_9", 1)
    yield "ptx 32 bits", PTX.replace(b"size 64", b"size 32", 1)
    yield (
        "ptx extern",
        PTX.replace(b"{ ret; }", b"{ call f; ret; }", 1).replace(
            b".visible", b".extern .func f;\n.visible", 1
        ),
    )
    yield "elf header", b"\x7fELF" + bytes(252)
    yield "elf of the host", Path(sys.executable).read_bytes()[:4096]
    yield "fat binary header", magic + bytes(252)
    yield "fat binary version 1", magic + bytes([1, 0, 16, 0]) + bytes(248)
    yield "fat binary empty", magic + bytes([1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0]) + bytes(64)


def modules(d):
    out, module, size = c_void_p(), d.module(), c_size_t()
    for name, image in broken_images(d):
        padded = image + bytes(1024)
        yield name, d.cuModuleLoadData, byref(out), padded
        yield f"{name}, Ex", d.cuModuleLoadDataEx, byref(out), padded, 0, None, None
    yield "image null", d.cuModuleLoadData, byref(out), None
    yield "image to null", d.cuModuleLoadData, None, PTX
    yield "func missing", d.cuModuleGetFunction, byref(out), module, b"none"
    yield "func empty", d.cuModuleGetFunction, byref(out), module, b""
    yield "func null name", d.cuModuleGetFunction, byref(out), module, None
    yield "func to null", d.cuModuleGetFunction, None, module, b"k"
    yield "func of null", d.cuModuleGetFunction, byref(out), None, b"k"
    yield "global", d.cuModuleGetGlobal_v2, byref(out), byref(size), module, b"variable"
    yield "global missing", d.cuModuleGetGlobal_v2, byref(out), byref(size), module, b"none"
    yield "global no results", d.cuModuleGetGlobal_v2, None, None, module, b"variable"
    yield "global null name", d.cuModuleGetGlobal_v2, byref(out), byref(size), module, None
    yield "file", d.cuModuleLoad, byref(out), b"/no/such"
    yield "file a folder", d.cuModuleLoad, byref(out), b"/"
    yield "file null", d.cuModuleLoad, byref(out), None
    yield "file empty name", d.cuModuleLoad, byref(out), b""
    yield "function count null", d.cuModuleGetFunctionCount, None, module
    yield "loading mode null", d.cuModuleGetLoadingMode, None
    yield "unload null", d.cuModuleUnload, None
    yield "unload", d.cuModuleUnload, module


def libraries(d):
    out, size = c_void_p(), c_size_t()
    nothing = (None, None, 0, None, None, 0)
    for name, image in broken_images(d):
        yield f"library {name}", d.cuLibraryLoadData, byref(out), image + bytes(1024), *nothing
    library = d.made("cuLibraryLoadData", PTX, *nothing)
    kernel = d.made("cuLibraryGetKernel", library, b"k")
    yield "library null", d.cuLibraryLoadData, byref(out), None, *nothing
    yield "library to null", d.cuLibraryLoadData, None, PTX, *nothing
    yield "library file", d.cuLibraryLoadFromFile, byref(out), b"/no/such", *nothing
    yield "kernel missing", d.cuLibraryGetKernel, byref(out), library, b"none"
    yield "kernel null name", d.cuLibraryGetKernel, byref(out), library, None
    yield "kernel to null", d.cuLibraryGetKernel, None, library, b"k"
    yield "kernel of null", d.cuLibraryGetKernel, byref(out), None, b"k"
    yield "library module null", d.cuLibraryGetModule, None, library
    yield "library global", d.cuLibraryGetGlobal, byref(out), byref(size), library, b"variable"
    yield "library global none", d.cuLibraryGetGlobal, byref(out), byref(size), library, b"none"
    yield "library managed none", d.cuLibraryGetManaged, byref(out), byref(size), library, b"none"
    yield "kernel count null", d.cuLibraryGetKernelCount, None, library
    yield "kernels null", d.cuLibraryEnumerateKernels, None, 4, library
    yield "kernels 0", d.cuLibraryEnumerateKernels, d.buffer, 0, library
    yield "kernel function null", d.cuKernelGetFunction, None, kernel
    yield "kernel function of null", d.cuKernelGetFunction, byref(out), None
    yield "kernel attribute", d.cuKernelGetAttribute, d.buffer, 0, kernel, 0
    yield "kernel attribute 99", d.cuKernelGetAttribute, d.buffer, 99, kernel, 0
    yield "kernel attribute device", d.cuKernelGetAttribute, d.buffer, 0, kernel, 99
    yield "kernel set attribute", d.cuKernelSetAttribute, 8, 1 << 20, kernel, 0
    yield "kernel set read-only", d.cuKernelSetAttribute, 0, 1, kernel, 0
    yield "kernel name null", d.cuKernelGetName, None, kernel
    yield "occ", d.cuOccupancyMaxActiveBlocksPerMultiprocessor, d.buffer, kernel, 0, c_size_t(0)
    yield "library unload null", d.cuLibraryUnload, None
    yield "library unload", d.cuLibraryUnload, library


def events(d):
    out = d.buffer
    fresh, untimed, recorded = (d.made("cuEventCreate", flags) for flags in (0, 2, 0))
    yield "elapsed unrecorded", d.cuEventElapsedTime, out, fresh, fresh
    yield "event query unrecorded", d.cuEventQuery, fresh
    yield "event wait unrecorded", d.cuEventSynchronize, fresh
    yield "stream waits unrecorded", d.cuStreamWaitEvent, None, fresh, 0
    yield "event record", d.cuEventRecord, recorded, None
    yield "elapsed one unrecorded", d.cuEventElapsedTime, out, recorded, fresh
    yield "elapsed no timing", d.cuEventElapsedTime, out, recorded, untimed
    yield "event record untimed", d.cuEventRecord, untimed, None
    d.cuCtxSynchronize()
    yield "elapsed untimed", d.cuEventElapsedTime, out, recorded, untimed
    yield "elapsed itself", d.cuEventElapsedTime, out, recorded, recorded
    yield "elapsed null result", d.cuEventElapsedTime, None, recorded, recorded
    for flags in (1, 3, 4, 6, 8, 255):
        name = "event flags" if flags == 255 else f"event flags {flags}"
        yield name, d.cuEventCreate, byref(c_void_p()), flags
    yield "event to null", d.cuEventCreate, None, 0
    yield "record flags", d.cuEventRecordWithFlags, recorded, None, 8
    yield "record external", d.cuEventRecordWithFlags, recorded, None, 1
    yield "wait flags", d.cuStreamWaitEvent, None, recorded, 8
    yield "wait external", d.cuStreamWaitEvent, None, recorded, 1
    for name, call, arguments in (
        ("record", d.cuEventRecord, (None, None)),
        ("query", d.cuEventQuery, (None,)),
        ("synchronize", d.cuEventSynchronize, (None,)),
        ("elapsed", d.cuEventElapsedTime, (out, None, None)),
        ("wait", d.cuStreamWaitEvent, (None, None, 0)),
        ("destroy", d.cuEventDestroy_v2, (None,)),
    ):
        yield f"event null {name}", call, *arguments
    yield "event destroy", d.cuEventDestroy_v2, recorded


def streams(d):
    out, stream = d.buffer, d.made("cuStreamCreate", 0)
    for flags in (1, 2, 255):
        name = "stream flags" if flags == 255 else f"stream flags {flags}"
        yield name, d.cuStreamCreate, byref(c_void_p()), flags
    yield "stream to null", d.cuStreamCreate, None, 0
    for priority in (-100, 100):
        name = f"stream priority {priority}"
        yield name, d.cuStreamCreateWithPriority, byref(c_void_p()), 0, priority
    for name, which in (("null", None), ("legacy", c_void_p(1)), ("thread", c_void_p(2))):
        yield f"stream {name} query", d.cuStreamQuery, which
        yield f"stream {name} synchronize", d.cuStreamSynchronize, which
        yield f"stream {name} flags", d.cuStreamGetFlags, which, out
        yield f"stream {name} priority", d.cuStreamGetPriority, which, out
        yield f"stream {name} id", d.cuStreamGetId, which, out
        yield f"stream {name} context", d.cuStreamGetCtx, which, out
        yield f"stream {name} capturing", d.cuStreamIsCapturing, which, out
        yield f"stream {name} destroy", d.cuStreamDestroy_v2, which
    yield "stream flags null", d.cuStreamGetFlags, stream, None
    yield "stream priority null", d.cuStreamGetPriority, stream, None
    yield "stream id null", d.cuStreamGetId, stream, None
    yield "stream context null", d.cuStreamGetCtx, stream, None
    yield "stream capturing null", d.cuStreamIsCapturing, stream, None
    yield "stream attribute", d.cuStreamGetAttribute, stream, 1, out
    yield "stream attribute 99", d.cuStreamGetAttribute, stream, 99, out
    yield "stream attribute null", d.cuStreamGetAttribute, stream, 1, None
    yield "stream callback null", d.cuStreamAddCallback, stream, None, None, 0
    yield "stream priorities null", d.cuCtxGetStreamPriorityRange, None, None
    yield "stream destroy", d.cuStreamDestroy_v2, stream


def limits(d):
    out = d.buffer
    yield "limit", d.cuCtxGetLimit, out, 99
    for limit in range(0, 10):
        yield f"limit {limit}", d.cuCtxGetLimit, out, limit
        yield f"limit {limit} to 2^63", d.cuCtxSetLimit, limit, c_size_t(2**63)
    yield "limit -1", d.cuCtxGetLimit, out, -1
    yield "limit null", d.cuCtxGetLimit, None, 0
    yield "set limit 99", d.cuCtxSetLimit, 99, c_size_t(1)
    yield "set stack", d.cuCtxSetLimit, 0, c_size_t(4096)


def contexts(d):
    out = d.buffer
    yield "context device null", d.cuCtxGetDevice, None
    yield "context flags null", d.cuCtxGetFlags, None
    yield "context current null", d.cuCtxGetCurrent, None
    yield "context api", d.cuCtxGetApiVersion, d.context, out
    yield "context api of null", d.cuCtxGetApiVersion, None, out
    yield "context id of null", d.cuCtxGetId, None, out
    yield "context cache 9", d.cuCtxSetCacheConfig, 9
    yield "context shared 9", d.cuCtxSetSharedMemConfig, 9
    yield "context push null", d.cuCtxPushCurrent_v2, None
    yield "context destroy null", d.cuCtxDestroy_v2, None
    yield "context destroy primary", d.cuCtxDestroy_v2, d.context
    yield "context create flags", d.cuCtxCreate_v2, byref(c_void_p()), 0xFF00, 0
    yield "context create 99", d.cuCtxCreate_v2, byref(c_void_p()), 0, 99
    yield "context create null", d.cuCtxCreate_v2, None, 0, 0
    mine, a = c_void_p(), d.memory()
    event, stream, module = d.made("cuEventCreate", 0), d.made("cuStreamCreate", 0), d.module()
    f = d.made("cuModuleGetFunction", module, b"k")
    yield "context create", d.cuCtxCreate_v2, byref(mine), 0, 0
    yield "other context's memory", d.cuMemsetD8_v2, a, 0, c_size_t(4)
    yield "other context's free", d.cuMemFree_v2, d.memory()
    yield "other context's stream", d.cuStreamQuery, stream
    yield "other context's launch", d.launch, f
    yield "other context's launch and stream", d.launch, f, (1, 1, 1), (32, 1, 1), 0, stream
    yield "other context's event", d.cuEventRecord, event, None
    yield "other context's event and stream", d.cuEventRecord, event, stream
    yield "other context's event waited", d.cuStreamWaitEvent, None, event, 0
    yield "other context's module", d.cuModuleGetFunction, byref(c_void_p()), module, b"k"
    yield "other context's event query", d.cuEventQuery, event
    own = d.made("cuStreamCreate", 0)
    yield "context destroy", d.cuCtxDestroy_v2, mine
    yield "context synchronize after", d.cuCtxSynchronize
    d.cuCtxSetCurrent(d.context)
    yield "stream of a destroyed context", d.cuStreamQuery, own
    yield "push destroyed", d.cuCtxPushCurrent_v2, mine
    yield "set destroyed", d.cuCtxSetCurrent, mine
    yield "destroy destroyed", d.cuCtxDestroy_v2, mine


def without_context(d):
    out = d.buffer
    module, a, event, stream = (
        d.module(), d.memory(), d.made("cuEventCreate", 0), d.made("cuStreamCreate", 0)
    )  # fmt: skip
    f = d.made("cuModuleGetFunction", module, b"k")
    d.cuCtxSetCurrent(None)
    yield "no context alloc", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4)
    yield "no context free", d.cuMemFree_v2, a
    yield "no context htod", d.cuMemcpyHtoD_v2, a, out, c_size_t(4)
    yield "no context memset", d.cuMemsetD8_v2, a, 0, c_size_t(4)
    yield "no context launch", d.launch, f
    yield "no context launch in stream", d.launch, f, (1, 1, 1), (32, 1, 1), 0, stream
    yield "no context module", d.cuModuleLoadData, byref(c_void_p()), PTX
    yield "no context function", d.cuModuleGetFunction, byref(c_void_p()), module, b"k"
    yield "no context library", d.cuLibraryLoadData, byref(c_void_p()), PTX, *[None] * 6
    yield "no context stream", d.cuStreamCreate, byref(c_void_p()), 0
    yield "no context stream query", d.cuStreamQuery, stream
    yield "no context null stream query", d.cuStreamQuery, None
    yield "no context event", d.cuEventCreate, byref(c_void_p()), 0
    yield "no context event query", d.cuEventQuery, event
    yield "no context synchronize", d.cuCtxSynchronize
    yield "no context device", d.cuCtxGetDevice, out
    yield "no context current", d.cuCtxGetCurrent, out
    yield "no context limit", d.cuCtxGetLimit, out, 0
    yield "no context pop", d.cuCtxPopCurrent_v2, out
    yield "no context hostalloc", d.cuMemHostAlloc, byref(c_void_p()), c_size_t(4), 0
    yield "no context info", d.cuMemGetInfo_v2, out, byref(c_size_t())
    yield "no context pointer", d.cuPointerGetAttribute, out, 2, a
    yield "no context graph", d.cuGraphCreate, byref(c_void_p()), 0
    yield "no context occupancy", d.cuOccupancyMaxActiveBlocksPerMultiprocessor, out, f, 32, 0
    yield "no context function attribute", d.cuFuncGetAttribute, out, 0, f
    d.cuCtxSetCurrent(d.context)


def uninitialised(d):
    """Before cuInit."""
    out = d.buffer
    yield "no init count", d.cuDeviceGetCount, out
    yield "no init device", d.cuDeviceGet, out, 0
    yield "no init alloc", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4)
    yield "no init alloc null", d.cuMemAlloc_v2, None, c_size_t(4)
    yield "no init current", d.cuCtxGetCurrent, out
    yield "no init set current", d.cuCtxSetCurrent, None
    yield "no init retain", d.cuDevicePrimaryCtxRetain, byref(c_void_p()), 0
    yield "no init library", d.cuLibraryLoadData, byref(c_void_p()), PTX, *[None] * 6
    yield "no init graph", d.cuGraphCreate, byref(c_void_p()), 0
    yield "no init synchronize", d.cuCtxSynchronize
    yield "no init version", d.cuDriverGetVersion, out
    yield "no init name", d.cuGetErrorName, 1, byref(c_char_p())
    yield "no init proc", d.cuGetProcAddress_v2, b"cuInit", out, 12000, c_uint64(0), None
    yield "no init pointer", d.cuPointerGetAttribute, out, 2, c_uint64(0)


def captures(d):
    out, graph, f, a = d.buffer, c_void_p(), d.kernel(), d.memory()
    stream, other = d.made("cuStreamCreate", 1), d.made("cuStreamCreate", 1)
    blocking, event = d.made("cuStreamCreate", 0), d.made("cuEventCreate", 0)
    begin, end = d.cuStreamBeginCapture_v2, d.cuStreamEndCapture
    yield "capture null stream", begin, None, 0
    yield "capture mode 9", begin, stream, 9
    yield "end without begin", end, stream, byref(graph)
    yield "capture", begin, stream, 0
    yield "capture again", begin, stream, 0
    yield "capture synchronize", d.cuStreamSynchronize, stream
    yield "capture end invalidated", end, stream, byref(graph)
    yield "capture 2", begin, stream, 0
    yield "capture query", d.cuStreamQuery, stream
    yield "capture end 2", end, stream, byref(graph)
    yield "capture 3", begin, stream, 0
    yield "capture context synchronize", d.cuCtxSynchronize
    yield "capture end 3", end, stream, byref(graph)
    yield "capture 4", begin, stream, 0
    yield "capture alloc", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4)
    yield "capture end 4", end, stream, byref(graph)
    yield "capture relaxed", begin, stream, 2
    yield "capture relaxed alloc", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4)
    yield "capture launch", d.launch, f, (1, 1, 1), (32, 1, 1), 0, stream
    yield "capture record", d.cuEventRecord, event, stream
    yield "captured event query", d.cuEventQuery, event
    yield "capture end 5", end, stream, byref(graph)
    yield "capture 6", begin, stream, 2
    yield "capture record 6", d.cuEventRecord, event, stream
    yield "captured event synchronize", d.cuEventSynchronize, event
    yield "capture end 6", end, stream, byref(graph)
    yield "capture 7", begin, stream, 2
    yield "capture record 7", d.cuEventRecord, event, stream
    yield "capture join", d.cuStreamWaitEvent, other, event, 0
    yield "capture launch other", d.launch, f, (1, 1, 1), (32, 1, 1), 0, other
    yield "capture end other", end, other, byref(graph)
    yield "capture end unjoined", end, stream, byref(graph)
    yield "capture 8", begin, blocking, 0
    yield "capture legacy launch", d.launch, f
    yield "capture end 8", end, blocking, byref(graph)
    yield "capture 9", begin, stream, 0
    yield "capture destroy stream", d.cuStreamDestroy_v2, stream
    stream = d.made("cuStreamCreate", 1)
    yield "capture 10", begin, stream, 0
    yield "capture end to null", end, stream, None
    yield "capture end 10", end, stream, byref(graph)
    yield "capture 11", begin, stream, 0
    yield "capture memset", d.cuMemsetD8Async, a, 0, c_size_t(4), stream
    yield "capture memset wild", d.cuMemsetD8Async, c_uint64(WILD), 0, c_size_t(4), stream
    yield "capture end 11", end, stream, byref(graph)
    yield "capture mode null", d.cuThreadExchangeStreamCaptureMode, None
    yield "capture mode exchange 9", d.cuThreadExchangeStreamCaptureMode, byref(c_int(9))
    yield "capture info null", d.cuStreamGetCaptureInfo_v2, stream, *[None] * 5
    yield "capture info", d.cuStreamGetCaptureInfo_v2, stream, out, *[None] * 4


def graphs(d):
    out, node, size = d.buffer, c_void_p(), c_size_t(8)
    f, a = d.kernel(), d.memory()
    graph, second = d.made("cuGraphCreate", 0), d.made("cuGraphCreate", 0)
    kernel = KernelNode(f, 1, 1, 1, 32, 1, 1, 0, ctypes.addressof(d.params))
    yield "graph flags", d.cuGraphCreate, byref(node), 1
    yield "graph to null", d.cuGraphCreate, None, 0
    first = d.made("cuGraphAddEmptyNode", graph, None, c_size_t(0))
    foreign = d.made("cuGraphAddEmptyNode", second, None, c_size_t(0))
    one, two = (c_void_p * 1)(first.value), (c_void_p * 1)(foreign.value)
    both = (c_void_p * 2)(first.value, first.value)
    n = c_size_t
    empty, add = d.cuGraphAddEmptyNode, d.cuGraphAddKernelNode_v2
    yield "empty node", empty, byref(node), graph, one, n(1)
    yield "empty node null list", empty, byref(node), graph, None, n(1)
    yield "empty node foreign", empty, byref(node), graph, two, n(1)
    yield "empty node twice", empty, byref(node), graph, both, n(2)
    yield "empty node no graph", empty, byref(node), None, None, n(0)
    yield "empty node to null", empty, None, graph, None, n(0)
    yield "kernel node", add, byref(node), graph, None, n(0), byref(kernel)
    yield "kernel node null", add, byref(node), graph, None, n(0), None
    for what, (grid, block, shared) in SIZES.items():
        wrong = KernelNode(f, *grid, *block, shared, ctypes.addressof(d.params))
        yield f"kernel node {what}", add, byref(node), graph, None, n(0), byref(wrong)
    wrong = KernelNode(None, 1, 1, 1, 32, 1, 1, 0, ctypes.addressof(d.params))
    yield "kernel node no function", add, byref(node), graph, None, n(0), byref(wrong)
    wrong = KernelNode(f, 1, 1, 1, 32, 1, 1, 0)
    yield "kernel node no parameters", add, byref(node), graph, None, n(0), byref(wrong)
    memset = d.cuGraphAddMemsetNode
    for what, fields in {
        "": (a.value, 0, 0, 4, 10, 1),
        " element 3": (a.value, 0, 0, 3, 10, 1),
        " odd": (a.value + 1, 0, 0, 4, 10, 1),
        " no width": (a.value, 0, 0, 4, 0, 1),
        " no height": (a.value, 0, 0, 4, 10, 0),
        " wild": (WILD, 0, 0, 4, 10, 1),
        " over": (a.value, 0, 0, 4, 1000, 1),
        " pitch": (a.value, 4, 0, 4, 10, 2),
        " value": (a.value, 0, 256, 1, 10, 1),
    }.items():
        set_ = MemsetNode(*fields)
        yield f"memset node{what}", memset, byref(node), graph, None, n(0), byref(set_), d.context
    set_ = MemsetNode(a.value, 0, 0, 4, 10, 1)
    yield "memset node no context", memset, byref(node), graph, None, n(0), byref(set_), None
    yield "memset node null", memset, byref(node), graph, None, n(0), None, d.context
    copy = d.cuGraphAddMemcpyNode
    for what, fields in COPIES.items():
        made = copy_of(d, a, fields)
        yield f"copy node{what}", copy, byref(node), graph, None, n(0), byref(made), d.context
    yield "copy node null", copy, byref(node), graph, None, n(0), None, d.context
    host = d.cuGraphAddHostNode
    yield "host node no function", host, byref(node), graph, None, n(0), byref(HostNode())
    yield "child node itself", d.cuGraphAddChildGraphNode, byref(node), graph, None, n(0), graph
    yield "child node null", d.cuGraphAddChildGraphNode, byref(node), graph, None, n(0), None
    yield "event node null", d.cuGraphAddEventRecordNode, byref(node), graph, None, n(0), None
    yield "wait node null", d.cuGraphAddEventWaitNode, byref(node), graph, None, n(0), None
    last = d.made("cuGraphAddEmptyNode", graph, one, n(1))
    end = (c_void_p * 1)(last.value)
    depend = d.cuGraphAddDependencies
    yield "dependency again", depend, graph, one, end, n(1)
    yield "dependency itself", depend, graph, one, one, n(1)
    yield "dependency circle", depend, graph, end, one, n(1)
    yield "dependency foreign", depend, graph, one, two, n(1)
    yield "dependency null", depend, graph, None, None, n(1)
    yield "dependency none", depend, graph, None, None, n(0)
    remove = d.cuGraphRemoveDependencies
    yield "remove dependency", remove, graph, one, end, n(1)
    yield "remove again", remove, graph, one, end, n(1)
    yield "nodes null", d.cuGraphGetNodes, graph, None, None
    yield "nodes of null", d.cuGraphGetNodes, None, None, byref(size)
    yield "nodes", d.cuGraphGetNodes, graph, None, byref(size)
    yield "roots null", d.cuGraphGetRootNodes, graph, None, None
    yield "edges null", d.cuGraphGetEdges, graph, None, None, None
    yield "node type null", d.cuGraphNodeGetType, first, None
    yield "node type of null", d.cuGraphNodeGetType, None, out
    yield "node kernel parameters", d.cuGraphKernelNodeGetParams_v2, first, out
    yield "node memset parameters", d.cuGraphMemsetNodeGetParams, first, out
    yield "node event", d.cuGraphEventRecordNodeGetEvent, first, out
    yield "node child", d.cuGraphChildGraphNodeGetGraph, first, out
    yield "set kernel parameters", d.cuGraphKernelNodeSetParams_v2, first, byref(kernel)
    yield "find in clone", d.cuGraphNodeFindInClone, out, first, second
    yield "clone of null", d.cuGraphClone, byref(node), None
    yield "clone to null", d.cuGraphClone, None, graph
    yield "destroy node null", d.cuGraphDestroyNode, None
    yield "destroy null", d.cuGraphDestroy, None
    clean = d.made("cuGraphCreate", 0)
    theirs = d.made("cuGraphAddKernelNode_v2", clean, None, n(0), byref(kernel))
    instantiate = d.cuGraphInstantiateWithFlags
    yield "instantiate flags", instantiate, byref(node), clean, c_ulonglong(1 << 20)
    yield "instantiate null", instantiate, byref(node), None, c_ulonglong(0)
    yield "instantiate to null", instantiate, None, clean, c_ulonglong(0)
    ready = d.made("cuGraphInstantiateWithFlags", clean, c_ulonglong(0))
    yield "launch graph", d.cuGraphLaunch, ready, None
    yield "launch graph null", d.cuGraphLaunch, None, None
    yield "upload null", d.cuGraphUpload, None, None
    yield "exec kernel", d.cuGraphExecKernelNodeSetParams_v2, ready, theirs, byref(kernel)
    yield "exec kernel foreign", d.cuGraphExecKernelNodeSetParams_v2, ready, first, byref(kernel)
    yield "exec memset", d.cuGraphExecMemsetNodeSetParams, ready, theirs, byref(set_), d.context
    yield "exec null", d.cuGraphExecKernelNodeSetParams_v2, None, theirs, byref(kernel)
    result = ctypes.create_string_buffer(64)
    yield "exec update", d.cuGraphExecUpdate_v2, ready, clean, result
    yield "exec update other", d.cuGraphExecUpdate_v2, ready, second, result
    yield "exec update null", d.cuGraphExecUpdate_v2, ready, None, result
    yield "exec flags null", d.cuGraphExecGetFlags, ready, None
    yield "enabled", d.cuGraphNodeGetEnabled, ready, theirs, out
    yield "enabled foreign", d.cuGraphNodeGetEnabled, ready, first, out
    yield "exec destroy null", d.cuGraphExecDestroy, None
    yield "exec destroy", d.cuGraphExecDestroy, ready
    yield "destroy node", d.cuGraphDestroyNode, first
    yield "destroy graph", d.cuGraphDestroy, graph
    objects = c_void_p()
    yield "user object null", d.cuUserObjectCreate, byref(objects), None, None, 1, 1
    yield "user object release null", d.cuUserObjectRelease, None, 1
    yield "graph memory attribute", d.cuDeviceGetGraphMemAttribute, 0, 99, out
    yield "graph memory of 99", d.cuDeviceGetGraphMemAttribute, 99, 0, out
    yield "graph memory trim 99", d.cuDeviceGraphMemTrim, 99


HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4
COPIES = {
    "": {},
    " no width": {"width": 0},
    " no height": {"height": 0},
    " no depth": {"depth": 0},
    " pitch": {"src_pitch": 8, "height": 2},
    " wild": {"dst_device": WILD},
    " null device": {"dst_device": 0},
    " null host": {"src_host": None},
    " type 0": {"src_type": 0},
    " type 9": {"src_type": 9},
    " array null": {"dst_type": ARRAY},
    " unified": {"dst_type": UNIFIED},
    " over": {"width": 500},
    " x over": {"dst_x": 390},
    " x 2^64-4": {"dst_x": 2**64 - 4},
    " lod": {"dst_lod": 1},
    " height of 3D": {"depth": 2, "src_height": 1, "height": 2, "width": 4, "src_pitch": 4},
}


def copy_of(d, a, fields):
    common = {
        "src_type": HOST, "src_host": ctypes.addressof(d.buffer), "dst_type": DEVICE,
        "dst_device": a.value, "width": 16, "height": 1, "depth": 1,
    }  # fmt: skip
    return Copy3D(**(common | fields))


def copies(d):
    a = d.memory()
    for what, fields in COPIES.items():
        yield f"copy3D{what}", d.cuMemcpy3D_v2, byref(copy_of(d, a, fields))
    yield "copy3D null", d.cuMemcpy3D_v2, None
    yield "copy2D null", d.cuMemcpy2D_v2, None


def arrays(d):
    out, made, a = d.buffer, c_void_p(), d.memory(1 << 16)
    FLOAT = 0x20
    create = d.cuArray3DCreate_v2
    for what, fields in {
        "": (16, 16, 0, FLOAT, 1, 0),
        " no width": (0, 16, 0, FLOAT, 1, 0),
        " no height": (16, 0, 4, FLOAT, 1, 0),
        " format 0": (16, 16, 0, 0, 1, 0),
        " 3 channels": (16, 16, 0, FLOAT, 3, 0),
        " 0 channels": (16, 16, 0, FLOAT, 0, 0),
        " wide": (1 << 20, 16, 0, FLOAT, 1, 0),
        " 2^63 wide": (2**63, 0, 0, FLOAT, 1, 0),
        " deep": (16, 16, 1 << 20, FLOAT, 1, 0),
        " layers": (16, 16, 4, FLOAT, 1, 1),
        " no layers": (16, 16, 0, FLOAT, 1, 1),
        " cube of 5": (16, 16, 5, FLOAT, 1, 4),
        " cube not square": (16, 8, 6, FLOAT, 1, 4),
        " flags": (16, 16, 0, FLOAT, 1, 1 << 20),
    }.items():
        yield f"array{what}", create, byref(made), byref(Array3D(*fields))
    yield "array null", create, byref(made), None
    yield "array to null", create, None, byref(Array3D(16, 16, 0, FLOAT, 1, 0))
    array = d.made("cuArray3DCreate_v2", byref(Array3D(16, 16, 0, FLOAT, 1, 2)))
    plain = d.made("cuArray3DCreate_v2", byref(Array3D(16, 16, 0, FLOAT, 1, 0)))
    line = d.made("cuArray3DCreate_v2", byref(Array3D(16, 0, 0, FLOAT, 1, 0)))
    n = c_size_t
    yield "array descriptor null", d.cuArray3DGetDescriptor_v2, None, array
    yield "array descriptor of null", d.cuArray3DGetDescriptor_v2, out, None
    yield "array from host", d.cuMemcpyHtoA_v2, line, n(0), out, n(64)
    yield "array over", d.cuMemcpyHtoA_v2, line, n(0), out, n(65)
    yield "array offset odd", d.cuMemcpyHtoA_v2, line, n(2), out, n(4)
    yield "array 2D from host", d.cuMemcpyHtoA_v2, array, n(0), out, n(64)
    yield "array 2D over a row", d.cuMemcpyHtoA_v2, array, n(0), out, n(128)
    yield "array from null", d.cuMemcpyHtoA_v2, line, n(0), None, n(64)
    yield "array from wild", d.cuMemcpyDtoA_v2, line, n(0), c_uint64(WILD), n(64)
    yield "array to array", d.cuMemcpyAtoA_v2, line, n(0), line, n(4), n(64)
    texture, surface = d.cuTexObjectCreate, d.cuSurfObjectCreate
    plain_texture = Texture()
    of_array, of_plain = Resource(0), Resource(0)
    of_array.of[0], of_plain.of[0] = array.value, plain.value
    yield "texture", texture, byref(made), byref(of_array), byref(plain_texture), None
    yield "texture no descriptor", texture, byref(made), byref(of_array), None, None
    yield "texture no resource", texture, byref(made), None, byref(plain_texture), None
    yield "texture to null", texture, None, byref(of_array), byref(plain_texture), None
    for what, type_, of in (
        ("null array", 0, []),
        ("type 9", 9, []),
        ("null linear", 2, [0, FLOAT | 1 << 32, 64]),
        ("linear", 2, [a.value, FLOAT | 1 << 32, 64]),
        ("linear odd", 2, [a.value + 4, FLOAT | 1 << 32, 64]),
        ("linear empty", 2, [a.value, FLOAT | 1 << 32, 0]),
        ("linear format", 2, [a.value, 7 | 1 << 32, 64]),
        ("linear large", 2, [a.value, FLOAT | 1 << 32, 1 << 40]),
        ("pitch", 3, [a.value, FLOAT | 1 << 32, 16, 16, 64]),
        ("pitch odd", 3, [a.value, FLOAT | 1 << 32, 16, 16, 65]),
        ("pitch short", 3, [a.value, FLOAT | 1 << 32, 32, 16, 64]),
        ("pitch wide", 3, [a.value, FLOAT | 1 << 32, 1 << 20, 1, 1 << 22]),
    ):
        resource = Resource(type_)
        resource.of[: len(of)] = of
        yield f"texture {what}", texture, byref(made), byref(resource), byref(plain_texture), None
    for what, fields in {
        "address 9": {"address": (c_int * 3)(9, 9, 9)},
        "filter 9": {"filter": 9},
        "flags": {"flags": 1 << 20},
        "normalized": {"flags": 2, "filter": 1},
        "wrap, not normalized": {"address": (c_int * 3)(0, 0, 0)},
        "anisotropy": {"anisotropy": 99},
    }.items():
        made_of = Texture(**fields)
        yield f"texture {what}", texture, byref(made), byref(of_array), byref(made_of), None
    yield "surface", surface, byref(made), byref(of_array)
    yield "surface of a plain array", surface, byref(made), byref(of_plain)
    yield "surface of linear memory", surface, byref(made), byref(Resource(2))
    yield "surface no resource", surface, byref(made), None
    yield "texture destroy 0", d.cuTexObjectDestroy, c_uint64(0)
    yield "surface destroy 0", d.cuSurfObjectDestroy, c_uint64(0)
    yield "texture width", d.cuDeviceGetTexture1DLinearMaxWidth, out, FLOAT, 1, 0
    yield "texture width format", d.cuDeviceGetTexture1DLinearMaxWidth, out, 7, 1, 0
    yield "texture width channels", d.cuDeviceGetTexture1DLinearMaxWidth, out, FLOAT, 3, 0
    yield "texture width 99", d.cuDeviceGetTexture1DLinearMaxWidth, out, FLOAT, 1, 99
    yield "array destroy null", d.cuArrayDestroy, None
    yield "array destroy", d.cuArrayDestroy, line


def tensor_maps(d):
    out, a = d.buffer, d.memory(1 << 16)
    where = c_void_p((ctypes.addressof(out) + 63) & ~63)
    base = {
        "rank": 2, "address": a.value, "sizes": (64, 64), "strides": (256,), "box": (16, 16),
        "steps": (1, 1), "type": 7, "interleave": 0, "swizzle": 0, "fill": 0,
    }  # fmt: skip
    for what, fields in {
        "": {},
        " rank 0": {"rank": 0},
        " rank 6": {"rank": 6},
        " address 8": {"address": a.value + 8},
        " size 0": {"sizes": (0, 64)},
        " size 2^33": {"sizes": (2**33, 64)},
        " stride 8": {"strides": (264,)},
        " stride short": {"strides": (128,)},
        " box 0": {"box": (0, 16)},
        " box 257": {"box": (257, 1)},
        " box of 12 bytes": {"box": (3, 16)},
        " step 0": {"steps": (0, 1)},
        " step 9": {"steps": (9, 1)},
        " type 99": {"type": 99},
        " swizzle 32, box of 64": {"swizzle": 1},
        " swizzle 9": {"swizzle": 9},
        " interleave 9": {"interleave": 9},
        " fill 9": {"fill": 9},
        " fill of integers": {"fill": 1, "type": 2},
        " null address": {"address": 0},
        " wild address": {"address": 0x10000},
    }.items():
        m = base | fields
        yield (
            f"tensor map{what}", d.cuTensorMapEncodeTiled, where, m["type"], m["rank"],
            c_uint64(m["address"]), (c_uint64 * 5)(*m["sizes"]), (c_uint64 * 5)(*m["strides"]),
            (c_uint * 5)(*m["box"]), (c_uint * 5)(*m["steps"]), m["interleave"], m["swizzle"], 0,
            m["fill"],
        )  # fmt: skip


def virtual(d):
    n, out, size = c_size_t, d.buffer, c_size_t()
    MIB = 1 << 20
    device = Physical(1, 0, 1, 0)
    granularity = d.cuMemGetAllocationGranularity
    yield "granularity", granularity, byref(size), byref(device), 0
    step = size.value or 2 * MIB
    yield "granularity 9", granularity, byref(size), byref(device), 9
    yield "granularity null", granularity, None, byref(device), 0
    yield "granularity device", granularity, byref(size), byref(Physical(1, 0, 1, 99)), 0
    reserve, create = d.cuMemAddressReserve, d.cuMemCreate
    address, physical = c_uint64(), c_uint64()
    zero = c_uint64(0)
    yield "reserve 0", reserve, byref(address), n(0), n(0), zero, c_ulonglong(0)
    yield "reserve odd", reserve, byref(address), n(1000), n(0), zero, c_ulonglong(0)
    yield "reserve flags", reserve, byref(address), n(step), n(0), zero, c_ulonglong(1)
    yield "reserve alignment 3", reserve, byref(address), n(step), n(3), zero, c_ulonglong(0)
    yield "reserve null", reserve, None, n(step), n(0), zero, c_ulonglong(0)
    yield "reserve 2^62", reserve, byref(address), n(2**62), n(0), zero, c_ulonglong(0)
    yield "reserve", reserve, byref(address), n(4 * step), n(0), zero, c_ulonglong(0)
    yield "create 0", create, byref(physical), n(0), byref(device), c_ulonglong(0)
    yield "create odd", create, byref(physical), n(1000), byref(device), c_ulonglong(0)
    yield "create null", create, byref(physical), n(step), None, c_ulonglong(0)
    yield "create flags", create, byref(physical), n(step), byref(device), c_ulonglong(1)
    wrong = byref(Physical(0, 0, 1, 0))
    yield "create type 0", create, byref(physical), n(step), wrong, c_ulonglong(0)
    wrong = byref(Physical(1, 0, 1, 99))
    yield "create device 99", create, byref(physical), n(step), wrong, c_ulonglong(0)
    wrong = byref(Physical(1, 0, 0, 0))
    yield "create location 0", create, byref(physical), n(step), wrong, c_ulonglong(0)
    yield "create huge", create, byref(physical), n(1 << 45), byref(device), c_ulonglong(0)
    yield "create", create, byref(physical), n(2 * step), byref(device), c_ulonglong(0)
    map_, unmap = d.cuMemMap, d.cuMemUnmap
    none = c_ulonglong(0)
    yield "access before map", d.cuMemSetAccess, address, n(step), byref(Access(1, 0, 3)), n(1)
    yield "map offset", map_, address, n(step), n(step), physical, none
    yield "map odd", map_, address, n(1000), n(0), physical, none
    yield "map 0", map_, address, n(0), n(0), physical, none
    yield "map beyond", map_, at(address, 3 * step), n(2 * step), n(0), physical, none
    yield "map flags", map_, address, n(2 * step), n(0), physical, c_ulonglong(1)
    yield "map large", map_, address, n(4 * step), n(0), physical, none
    yield "map wild", map_, c_uint64(WILD), n(2 * step), n(0), physical, none
    yield "map no handle", map_, address, n(2 * step), n(0), zero, none
    yield "map", map_, address, n(2 * step), n(0), physical, none
    yield "map again", map_, address, n(2 * step), n(0), physical, none
    yield "mapped without access", d.cuMemsetD8_v2, address, 0, n(4)
    access = d.cuMemSetAccess
    yield "access", access, address, n(2 * step), byref(Access(1, 0, 3)), n(1)
    yield "access flags 2", access, address, n(2 * step), byref(Access(1, 0, 2)), n(1)
    yield "access none", access, address, n(2 * step), None, n(0)
    yield "access null", access, address, n(2 * step), None, n(1)
    yield "access device 99", access, address, n(2 * step), byref(Access(1, 99, 3)), n(1)
    yield "access beyond", access, address, n(4 * step), byref(Access(1, 0, 3)), n(1)
    yield "get access", d.cuMemGetAccess, out, byref(Access(1, 0, 0)), address
    yield "get access wild", d.cuMemGetAccess, out, byref(Access(1, 0, 0)), c_uint64(WILD)
    yield "free of mapped", d.cuMemFree_v2, address
    yield "address free mapped", d.cuMemAddressFree, address, n(4 * step)
    yield "unmap part", unmap, address, n(step)
    yield "unmap wild", unmap, c_uint64(WILD), n(step)
    yield "unmap", unmap, address, n(2 * step)
    yield "unmap again", unmap, address, n(2 * step)
    yield "memset unmapped", d.cuMemsetD8_v2, address, 0, n(4)
    yield "release", d.cuMemRelease, physical
    yield "release again", d.cuMemRelease, physical
    yield "release 0", d.cuMemRelease, zero
    yield "address free part", d.cuMemAddressFree, address, n(step)
    yield "address free", d.cuMemAddressFree, address, n(4 * step)
    yield "address free again", d.cuMemAddressFree, address, n(4 * step)


def pools(d):
    n, out, a, pool = c_size_t, d.buffer, c_uint64(), c_void_p()
    alloc, free = d.cuMemAllocAsync, d.cuMemFreeAsync
    yield "async alloc 0", alloc, byref(a), n(0), None
    yield "async alloc huge", alloc, byref(a), n(1 << 45), None
    yield "async alloc null", alloc, None, n(4), None
    yield "async alloc", alloc, byref(a), n(400), None
    yield "async free inside", free, at(a, 4), None
    yield "async free", free, a, None
    yield "async free again", free, a, None
    yield "async free null", free, c_uint64(0), None
    yield "async free wild", free, c_uint64(WILD), None
    yield "async free of alloc", free, d.memory(), None
    alloc(byref(a), n(400), None)
    yield "free of async alloc", d.cuMemFree_v2, a
    device = Pool(1, 0, 1, 0)
    yield "pool null", d.cuMemPoolCreate, byref(pool), None
    yield "pool type 0", d.cuMemPoolCreate, byref(pool), byref(Pool(0, 0, 1, 0))
    yield "pool device 99", d.cuMemPoolCreate, byref(pool), byref(Pool(1, 0, 1, 99))
    yield "pool location 0", d.cuMemPoolCreate, byref(pool), byref(Pool(1, 0, 0, 0))
    yield "pool", d.cuMemPoolCreate, byref(pool), byref(device)
    for attribute in (0, 1, 4, 5, 9, 99):
        yield f"pool attribute {attribute}", d.cuMemPoolGetAttribute, pool, attribute, out
    yield "pool attribute null", d.cuMemPoolGetAttribute, pool, 4, None
    yield "pool set 5", d.cuMemPoolSetAttribute, pool, 5, byref(c_uint64(1))
    yield "pool set 99", d.cuMemPoolSetAttribute, pool, 99, byref(c_uint64(1))
    yield "pool trim null", d.cuMemPoolTrimTo, None, n(0)
    yield "pool destroy null", d.cuMemPoolDestroy, None
    default = d.made("cuDeviceGetDefaultMemPool", 0)
    yield "pool destroy default", d.cuMemPoolDestroy, default
    yield "pool of 99", d.cuDeviceGetDefaultMemPool, byref(c_void_p()), 99
    yield "pool to null", d.cuDeviceGetMemPool, None, 0
    yield "pool set null", d.cuDeviceSetMemPool, 0, None
    yield "pool alloc null", d.cuMemAllocFromPoolAsync, byref(a), n(4), None, None
    yield "pool alloc", d.cuMemAllocFromPoolAsync, byref(a), n(4), pool, None
    yield "pool access", d.cuMemPoolSetAccess, pool, byref(Access(1, 0, 3)), n(1)
    yield "pool access 99", d.cuMemPoolSetAccess, pool, byref(Access(1, 99, 3)), n(1)
    yield "pool destroy", d.cuMemPoolDestroy, pool


def linker(d):
    link, out, size = c_void_p(), c_void_p(), c_size_t()
    create, add = d.cuLinkCreate_v2, d.cuLinkAddData_v2
    PTX_INPUT = 1
    yield "link to null", create, 0, None, None, None
    yield "link null options", create, 1, None, None, byref(link)
    yield "link", create, 0, None, None, byref(link)
    yield "link null data", add, link, PTX_INPUT, None, c_size_t(4), None, 0, None, None
    yield "link no bytes", add, link, PTX_INPUT, PTX, c_size_t(0), None, 0, None, None
    yield "link type 99", add, link, 99, PTX, c_size_t(len(PTX)), None, 0, None, None
    yield "link nonsense", add, link, PTX_INPUT, b"nonsense\0", c_size_t(9), None, 0, None, None
    yield "link no file", d.cuLinkAddFile_v2, link, PTX_INPUT, b"/no/such", 0, None, None
    yield "link add", add, link, PTX_INPUT, PTX, c_size_t(len(PTX)), None, 0, None, None
    yield "link complete null", d.cuLinkComplete, link, None, None
    yield "link complete", d.cuLinkComplete, link, byref(out), byref(size)
    yield "link destroy", d.cuLinkDestroy, link
    empty = c_void_p()
    create(0, None, None, byref(empty))
    yield "link complete of nothing", d.cuLinkComplete, empty, byref(out), byref(size)
    yield "link complete of null", d.cuLinkComplete, None, byref(out), byref(size)
    yield "link destroy null", d.cuLinkDestroy, None


def sticky(kernel, address):
    """What calls return after a kernel that fails: they end the context."""

    def cases(d):
        out, f = d.buffer, d.kernel(kernel)
        event, stream, a = d.made("cuEventCreate", 0), d.made("cuStreamCreate", 0), d.memory()
        d.argument.value = a.value + address if address < 4096 else address
        what = f"after {kernel.decode()} at {address:#x}"
        yield f"{what}: launch", d.launch, f
        yield f"{what}: synchronize", d.cuCtxSynchronize
        yield f"{what}: synchronize again", d.cuCtxSynchronize
        yield f"{what}: launch again", d.launch, f
        yield f"{what}: launch null", d.launch, None
        yield f"{what}: alloc", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(4)
        yield f"{what}: alloc 0", d.cuMemAlloc_v2, byref(c_uint64()), c_size_t(0)
        yield f"{what}: dtoh", d.cuMemcpyDtoH_v2, out, a, c_size_t(4)
        yield f"{what}: query", d.cuStreamQuery, None
        yield f"{what}: stream synchronize", d.cuStreamSynchronize, stream
        yield f"{what}: stream create", d.cuStreamCreate, byref(c_void_p()), 0
        yield f"{what}: record", d.cuEventRecord, event, stream
        yield f"{what}: event query", d.cuEventQuery, event
        yield f"{what}: info", d.cuMemGetInfo_v2, out, byref(c_size_t())
        yield f"{what}: current", d.cuCtxGetCurrent, out
        yield f"{what}: device attribute", d.cuDeviceGetAttribute, out, 1, 0
        yield f"{what}: pointer attribute", d.cuPointerGetAttribute, out, 2, a
        yield f"{what}: function attribute", d.cuFuncGetAttribute, out, 0, f
        yield f"{what}: module", d.cuModuleLoadData, byref(c_void_p()), PTX
        yield f"{what}: graph", d.cuGraphCreate, byref(c_void_p()), 0
        yield f"{what}: limit", d.cuCtxGetLimit, out, 0
        yield f"{what}: free", d.cuMemFree_v2, a
        yield f"{what}: event destroy", d.cuEventDestroy_v2, event
        yield f"{what}: stream destroy", d.cuStreamDestroy_v2, stream

    return cases


def destroyed(d):
    """Handles after their end: a driver may crash."""
    out, n = d.buffer, c_size_t

    def gone(call, destroy, *arguments):
        made = d.made(call, *arguments)
        getattr(d, destroy)(made)
        return made

    event = gone("cuEventCreate", "cuEventDestroy_v2", 0)
    yield "destroyed event query", d.cuEventQuery, event
    yield "destroyed event record", d.cuEventRecord, event, None
    yield "destroyed event destroy", d.cuEventDestroy_v2, event
    stream = gone("cuStreamCreate", "cuStreamDestroy_v2", 0)
    yield "destroyed stream query", d.cuStreamQuery, stream
    yield "destroyed stream launch", d.launch, d.kernel(), (1, 1, 1), (32, 1, 1), 0, stream
    yield "destroyed stream destroy", d.cuStreamDestroy_v2, stream
    module = d.module()
    f = d.made("cuModuleGetFunction", module, b"k")
    d.cuModuleUnload(module)
    yield "unloaded module unload", d.cuModuleUnload, module
    yield "unloaded module function", d.cuModuleGetFunction, byref(c_void_p()), module, b"k"
    yield "unloaded function launch", d.launch, f
    yield "unloaded function attribute", d.cuFuncGetAttribute, out, 0, f
    graph = gone("cuGraphCreate", "cuGraphDestroy", 0)
    yield "destroyed graph nodes", d.cuGraphGetNodes, graph, None, byref(n(0))
    yield "destroyed graph destroy", d.cuGraphDestroy, graph
    graph = d.made("cuGraphCreate", 0)
    node = d.made("cuGraphAddEmptyNode", graph, None, n(0))
    d.cuGraphDestroyNode(node)
    yield "destroyed node type", d.cuGraphNodeGetType, node, out
    yield "destroyed node destroy", d.cuGraphDestroyNode, node
    ready = d.made("cuGraphInstantiateWithFlags", graph, c_ulonglong(0))
    d.cuGraphExecDestroy(ready)
    yield "destroyed exec launch", d.cuGraphLaunch, ready, None
    yield "destroyed exec destroy", d.cuGraphExecDestroy, ready
    array = gone("cuArray3DCreate_v2", "cuArrayDestroy", byref(Array3D(16, 16, 0, 0x20, 1, 0)))
    yield "destroyed array copy", d.cuMemcpyHtoA_v2, array, n(0), out, n(4)
    yield "destroyed array destroy", d.cuArrayDestroy, array


ZEROS = ctypes.create_string_buffer(1 << 12)


def wild_handles(name, address):
    """Handles that no call made: a driver may crash."""

    def cases(d):
        out, n, wild = d.buffer, c_size_t, c_void_p(address)
        yield f"wild {name} context", d.cuCtxSetCurrent, wild
        yield f"wild {name} event", d.cuEventQuery, wild
        yield f"wild {name} stream", d.cuStreamQuery, wild
        yield f"wild {name} module", d.cuModuleGetFunction, byref(c_void_p()), wild, b"k"
        yield f"wild {name} function", d.launch, wild
        yield f"wild {name} function attribute", d.cuFuncGetAttribute, out, 0, wild
        yield f"wild {name} library", d.cuLibraryGetKernel, byref(c_void_p()), wild, b"k"
        yield f"wild {name} graph", d.cuGraphGetNodes, wild, None, byref(n(0))
        yield f"wild {name} node", d.cuGraphNodeGetType, wild, out
        yield f"wild {name} exec", d.cuGraphLaunch, wild, None
        yield f"wild {name} array", d.cuArrayDestroy, wild
        yield f"wild {name} texture", d.cuTexObjectDestroy, wild
        yield f"wild {name} pool", d.cuMemPoolTrimTo, wild, n(0)
        yield f"wild {name} physical", d.cuMemRelease, wild
        yield f"wild {name} linker", d.cuLinkDestroy, wild
        yield f"wild {name} user object", d.cuUserObjectRelease, wild, 1

    return cases


GROUPS = {
    "launches": launches,
    "functions": functions,
    "memory": memory,
    "host memory": host_memory,
    "pointers": pointers,
    "devices": devices,
    "modules": modules,
    "libraries": libraries,
    "events": events,
    "streams": streams,
    "limits": limits,
    "contexts": contexts,
    "no context": without_context,
    "not initialised": uninitialised,
    "captures": captures,
    "graphs": graphs,
    "copies": copies,
    "arrays": arrays,
    "tensor maps": tensor_maps,
    "virtual": virtual,
    "pools": pools,
    "linker": linker,
    "store beyond": sticky(b"store", 1 << 40),
    "store misaligned": sticky(b"store", 2),
    "trap": sticky(b"trap", 0),
    "destroyed": destroyed,
    "wild handles": wild_handles("small", 0x40),
    "handles of zeros": wild_handles("zeros", ctypes.addressof(ZEROS)),
}
FAILING = [GROUPS[name] for name in ("store beyond", "store misaligned", "trap")]


# ---- running ----


def run_group(name, file, skipped):
    """Appends a line for each call before it and one after it, so that a crash can be seen."""
    d = Driver()
    if name != "not initialised":
        d.start()
    ends = GROUPS[name] not in FAILING
    with open(file, "a") as lines:
        for case, call, *arguments in GROUPS[name](d):
            if case in skipped:
                continue
            print(json.dumps([case, "crash"]), file=lines, flush=True)
            code = call(*arguments)
            print(json.dumps([case, code]), file=lines, flush=True)
            if ends and code in ENDS_CONTEXT:
                os._exit(STATUS_ENDED)
    os._exit(0)  # what a driver does at exit is not asked here


def run_apart(name, skipped):
    """The codes of one process, and how it ended: "" or why the group has to go on in another."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as lines:
        command = [sys.executable, __file__, "--group", name, "--lines", lines.name, "--skip"]
        try:
            done = subprocess.run(
                [*command, *skipped], capture_output=True, text=True, timeout=SECONDS
            )
            ended = {0: "", STATUS_ENDED: "context"}.get(done.returncode, "crash")
            if done.returncode == 1:
                print(f"{name}: {done.stderr}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            ended = "timeout"
        return dict(json.loads(line) for line in lines), ended


def codes_of(name):
    """The codes of a group, from as many processes as it takes."""
    codes, skipped = {}, []
    for _ in range(MAX_RUNS):
        found, ended = run_apart(name, skipped)
        if not ended or not found:
            return codes | {case: code for case, code in found.items() if case not in codes}
        last = list(found)[-1]
        if found[last] == "crash":
            found[last] = ended
        skipped.append(last)
        codes |= {case: code for case, code in found.items() if case not in codes}
    return codes


def texts():
    """The names and texts of all codes."""
    d, name, text = Driver(), c_char_p(), c_char_p()
    d.cuInit(0)
    return {
        str(code): [name.value.decode(), text.value.decode()]
        for code in range(1000)
        if not d.cuGetErrorName(code, byref(name)) and not d.cuGetErrorString(code, byref(text))
    }


def device():
    d, name, version = Driver(), ctypes.create_string_buffer(256), c_int()
    d.cuInit(0)
    d.cuDeviceGetName(name, 256, 0)
    d.cuDriverGetVersion(byref(version))
    system = Path("/sys/module/nvidia/version")
    return {
        "device": name.value.decode(),
        "driver": system.read_text().strip() if system.exists() else None,
        "cuda": version.value,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record", nargs="?", help="the JSON file to write")
    parser.add_argument("--only", nargs="*", choices=list(GROUPS), help="these groups")
    parser.add_argument("--jobs", type=int, default=8, help="processes at the same time")
    parser.add_argument("--group", help=argparse.SUPPRESS)
    parser.add_argument("--lines", help=argparse.SUPPRESS)
    parser.add_argument("--skip", nargs="*", default=[], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.group:
        run_group(given.group, given.lines, set(given.skip))
    groups = given.only or list(GROUPS)
    with ThreadPoolExecutor(given.jobs) as pool:
        codes = dict(zip(groups, pool.map(codes_of, groups), strict=True))
    record = {**device(), "codes": codes, "texts": texts()}
    text = json.dumps(record, indent=1) + "\n"
    Path(given.record).write_text(text) if given.record else print(text, end="")


if __name__ == "__main__":
    main()
