"""Random calls of the driver with wrong handles, sizes and orders, in a process of its own:
python fuzz_calls.py LIBRARY SEED PTX. Prints the results as JSON.

Output pointers are valid, as no driver can check them. Everything else is drawn.
"""

import ctypes
import json
import random
import re
import sys
from pathlib import Path

library, seed, ptx = sys.argv[1:]
rng = random.Random(int(seed))
driver = ctypes.CDLL(library)
OUT = ctypes.create_string_buffer(1 << 16)  # as large as any copy here, or no allocation is
LARGEST = 1 << 40  # bytes: more than the host gives
NAME = ctypes.create_string_buffer(b"add")
IMAGE = ctypes.create_string_buffer(Path(ptx).read_bytes())
PARAMS = (ctypes.c_void_p * 8)(*[ctypes.addressof(OUT)] * 8)

# h: handle; a: device address; p: valid memory; s: size; i: small number; n: name; m: image;
# k: kernel parameters. > before a letter: the call writes a handle or an address.
CALLS = """cuCtxSynchronize|cuCtxGetDevice p|cuCtxSetCurrent h|cuCtxPushCurrent_v2 h
cuCtxPopCurrent_v2 p
cuCtxGetLimit p i|cuCtxSetLimit i s|cuCtxGetApiVersion h p|cuCtxGetFlags p|cuCtxDestroy_v2 h
cuDeviceGet p i|cuDeviceGetName p i i|cuDeviceGetAttribute p i i|cuDeviceTotalMem_v2 p i
cuDevicePrimaryCtxRetain >h i|cuDevicePrimaryCtxRelease_v2 i|cuDevicePrimaryCtxGetState i p p
cuModuleLoadData >h m|cuModuleUnload h|cuModuleGetFunction >h h n|cuModuleGetGlobal_v2 p p h n
cuLibraryGetKernel >h h n|cuLibraryUnload h|cuKernelGetFunction >h h|cuFuncGetAttribute p i h
cuFuncSetAttribute h i i|cuFuncGetName p h|cuFuncGetParamInfo h s p p|cuModuleGetFunctionCount p h
cuMemAlloc_v2 >a s|cuMemAllocPitch_v2 >a p s s i|cuMemFree_v2 a|cuMemGetAddressRange_v2 p p a
cuMemAllocManaged >a s i|cuMemHostAlloc >a s i|cuMemFreeHost a|cuMemGetInfo_v2 p p
cuMemAllocAsync >a s h|cuMemFreeAsync a h|cuMemcpyHtoD_v2 a p s|cuMemcpyDtoH_v2 p a s
cuMemcpyDtoD_v2 a a s|cuMemcpyHtoDAsync_v2 a p s h|cuMemcpyDtoHAsync_v2 p a s h
cuMemsetD8_v2 a i s|cuMemsetD16_v2 a i s|cuMemsetD32_v2 a i s|cuMemsetD2D32_v2 a s i s s
cuMemsetD8Async a i s h|cuPointerGetAttribute p i a|cuMemPrefetchAsync a s i h|cuMemAdvise a s i i
cuStreamCreate >h i|cuStreamDestroy_v2 h|cuStreamQuery h|cuStreamSynchronize h|cuStreamGetFlags h p
cuStreamWaitEvent h h i|cuStreamCreateWithPriority >h i i|cuEventCreate >h i|cuEventDestroy_v2 h
cuEventRecord h h|cuEventQuery h|cuEventSynchronize h|cuEventElapsedTime p h h|cuStreamGetId h p
cuLaunchKernel h i i i i i i i h k z|cuLaunchCooperativeKernel h i i i i i i i h k
cuOccupancyMaxActiveBlocksPerMultiprocessor p h i s|cuGraphCreate p i|cuMemPoolTrimTo h s
cuMemPoolDestroy h|cuDeviceGetDefaultMemPool >h i|cuGetErrorName i p|cuMemHostUnregister p"""
CALLS = [call.split() for line in CALLS.splitlines() for call in line.split("|")]

handles, addresses = [], []


def number():
    return rng.choice(
        [0, 1, 2, 3, 4, 7, 8, 16, 32, 33, 64, 127, 1024, 1025, -1, 2**31 - 1, -(2**31)]
    )


def size():
    small = [0, 1, 2, 3, 4, 15, 16, 100, 255, 256, 1000, 4096, 5000, 16384]
    return rng.choice(small + small + [2**31, 2**40, 2**63, 2**64 - 1, rng.getrandbits(64)])


def handle():
    wild = [0, 1, 2, 3, 8, ctypes.addressof(OUT), 0xDEAD0000, 2**64 - 16, rng.getrandbits(48)]
    return rng.choice(handles + handles + wild) if handles else rng.choice(wild)


def address():
    wild = [0, 1, 4096, rng.getrandbits(50), rng.getrandbits(64), 1 << 47, 6 << 40, 3 << 40]
    near = [one + rng.choice([0, 0, 0, 0, 1, 4, 100, -1]) for one in addresses]
    return rng.choice(near + near + wild)


def copied_size():
    """Of a copy from or to OUT: pinned memory may have more bytes than OUT."""
    bytes_ = size()
    return bytes_ if bytes_ <= len(OUT) or bytes_ > LARGEST else len(OUT)


def argument(letter, name):
    if letter == "p":
        return ctypes.cast(OUT, ctypes.c_void_p)
    if letter in "nmk":
        return {"n": NAME, "m": IMAGE, "k": PARAMS}[letter]
    if letter == "z":
        return None
    if letter == "i":
        return ctypes.c_int(number())
    of_size = copied_size if re.match("cuMemcpy(HtoD|DtoH)", name) else size
    return ctypes.c_uint64({"s": of_size, "h": handle, "a": address}[letter]() % 2**64)


seen = {}
OUT.raw = bytes(len(OUT))
wrong = [] if driver.cuInit(0) == 0 else ["cuInit"]
context = ctypes.c_void_p()
for step in range(3000):
    if step % 50 == 0:  # most calls need a context
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxSetCurrent(context)
    name, *letters = rng.choice(CALLS)
    made = ctypes.c_uint64(0)
    given = [ctypes.byref(made) if one[0] == ">" else argument(one, name) for one in letters]
    OUT.raw = bytes(len(OUT))
    result = getattr(driver, name)(*given)
    seen.setdefault(name, set()).add(result)
    for one in letters:
        if one[0] == ">" and result == 0:
            kept = handles if one == ">h" else addresses
            kept.append(made.value)
            del kept[:-30]
print(json.dumps({"wrong": wrong, "seen": {name: sorted(all_) for name, all_ in seen.items()}}))
