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
ROOM = ctypes.create_string_buffer(1 << 17)  # to register
LARGEST = 1 << 40  # bytes: more than the host gives
NAME = ctypes.create_string_buffer(b"add")
IMAGE = ctypes.create_string_buffer(Path(ptx).read_bytes())
PARAMS = (ctypes.c_void_p * 8)(*[ctypes.addressof(OUT)] * 8)

# h: handle; a: device address; p: valid memory; s: size; i: small number; g: blocks, few; n: name;
# m: image; k: kernel parameters; d: a drawn structure; l: a list of handles; > before a letter: the
# call writes a handle or an address.
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
cuLaunchKernel h g g g i i i i h k z|cuLaunchCooperativeKernel h g g g i i i i h k
cuOccupancyMaxActiveBlocksPerMultiprocessor p h i s|cuGraphCreate p i|cuMemPoolTrimTo h s
cuMemPoolDestroy h|cuDeviceGetDefaultMemPool >h i|cuGetErrorName i p|cuMemHostUnregister p
cuIpcGetMemHandle p a|cuIpcCloseMemHandle a|cuIpcGetEventHandle p h
cuMemRangeGetAttribute p i8 i a s|cuMemPrefetchAsync_v2 a s s i h|cuMemAdvise_v2 a s i s"""
# Arrays, textures, graphs, captures, ranges of addresses.
MORE = """cuArrayCreate_v2 >h d|cuArray3DCreate_v2 >h d|cuArray3DCreate_v2 >h A|cuArrayDestroy h
cuArray3DGetDescriptor_v2 p h|cuArrayGetDescriptor_v2 p h|cuArrayGetMemoryRequirements p h i
cuMemcpyDtoA_v2 h s a s|cuMemcpyAtoD_v2 a h s s|cuMemcpyHtoA_v2 h s p c|cuMemcpyAtoH_v2 p h s c
cuMipmappedArrayCreate >h A i|cuMipmappedArrayGetLevel >h h i|cuMipmappedArrayDestroy h
cuMemcpyAtoA_v2 h s h s s|cuMemcpy2D_v2 B|cuMemcpy2DAsync_v2 B h
cuMemcpy3D_v2 C|cuMemcpy3DAsync_v2 C h|cuMemcpy3DPeer C
cuTexObjectCreate >h R T z|cuTexObjectCreate >h d d z|cuTexObjectDestroy h|cuSurfObjectCreate >h R
cuSurfObjectDestroy h|cuTexObjectGetResourceDesc p h|cuTexObjectGetTextureDesc p h
cuDeviceGetTexture1DLinearMaxWidth p i i i|cuTensorMapEncodeTiled p i i a d d d d i i i i
cuGraphCreate >h 0|cuGraphDestroy h|cuGraphClone >h h|cuGraphNodeFindInClone >h h h
cuGraphAddKernelNode_v2 >h h l i K|cuGraphKernelNodeGetParams_v2 h p|cuGraphAddEmptyNode >h h l i
cuGraphAddEmptyNode >h h l 0|cuGraphAddEmptyNode >h h l 0|cuGraphKernelNodeSetParams_v2 h K
cuGraphAddMemcpyNode >h h l 0 C h|cuGraphAddMemsetNode >h h l 0 S h|cuGraphMemsetNodeSetParams h S
cuGraphAddMemcpyNode >h h l i d h|cuGraphAddChildGraphNode >h h l 0 h|cuGraphAddNode_v2 >h h l z i d
cuGraphAddEventRecordNode >h h l 0 h|cuGraphAddEventWaitNode >h h l 0 h|cuGraphNodeGetType h p
cuGraphAddMemAllocNode >h h l 0 d|cuGraphAddMemFreeNode >h h l 0 a|cuGraphDestroyNode h
cuGraphGetNodes h p n8|cuGraphGetRootNodes h p n8|cuGraphGetEdges h p p n8|cuGraphUpload h h
cuGraphNodeGetDependencies h p n8|cuGraphNodeGetDependentNodes h p n8
cuGraphAddDependencies h l l i|cuGraphAddDependencies h l l 1|cuGraphRemoveDependencies h l l 1
cuGraphInstantiateWithFlags >h h 0|cuGraphInstantiateWithFlags >h h i|cuGraphLaunch h h
cuGraphExecDestroy h|cuGraphExecUpdate_v2 h h p|cuGraphNodeSetEnabled h h i
cuGraphExecKernelNodeSetParams_v2 h h K|cuGraphExecMemsetNodeSetParams h h S h
cuGraphExecGetFlags h p|cuGraphChildGraphNodeGetGraph h >h|cuGraphKernelNodeGetAttribute h i p
cuStreamEndCapture h >h|cuEventQuery h
cuGraphKernelNodeSetAttribute h i d|cuGraphKernelNodeCopyAttributes h h|cuUserObjectRelease h i
cuStreamBeginCapture_v2 h i|cuStreamBeginCapture_v2 h 0|cuStreamBeginCaptureToGraph h h l z i i
cuStreamIsCapturing h p|cuStreamGetCaptureInfo_v2 h p p >h p p|cuGraphReleaseUserObject h h i
cuStreamUpdateCaptureDependencies h l i i|cuThreadExchangeStreamCaptureMode d
cuMemAddressReserve >a s s a i|cuMemAddressReserve >a G 0 0 0|cuMemAddressFree a G|cuMemRelease h
cuMemCreate >h G P 0|cuMemMap a G 0 h 0|cuMemMap a s s h i|cuMemUnmap a G|cuMemUnmap a s
cuMemSetAccess a s d i|cuMemGetAccess p d a|cuMemGetAllocationGranularity p P i
cuCtxEnablePeerAccess h i|cuDeviceGetGraphMemAttribute i i p|cuMemPoolGetAccess p h d"""
# Host functions, user objects, linking, contexts, pools, and images of random bytes.
MORE += """
cuLaunchHostFunc h f z|cuStreamAddCallback h f z 0|cuGraphAddHostNode >h h l 0 H
cuGraphHostNodeSetParams h H|cuGraphExecHostNodeSetParams h h H|cuUserObjectCreate >h z f i i
cuUserObjectRetain h i|cuGraphRetainUserObject h h i i|cuGraphRetainUserObject h h 1 1
cuLinkCreate_v2 0 z z >h|cuLinkAddData_v2 h 1 m I z 0 z z|cuLinkAddData_v2 h i F I z 0 z z
cuLinkComplete h >a p|cuLinkDestroy h|cuModuleLoadData >h F|cuLibraryLoadData >h F z z 0 z z 0
cuCtxCreate_v2 >h 0 0|cuCtxDetach h|cuCtxPushCurrent_v2 h|cuMemPoolCreate >h P|cuMemPoolDestroy h
cuMemAllocFromPoolAsync >a s h h|cuMemPoolSetAttribute h i p|cuMemPoolGetAttribute h i p
cuMemHostRegister_v2 r c i|cuMemHostUnregister r|cuMemHostGetDevicePointer_v2 >a r i
cuPointerGetAttributes i8 x k a|cuStreamCopyAttributes h h|cuEventRecordWithFlags h h i
cuOccupancyAvailableDynamicSMemPerBlock p h i i|cuOccupancyMaxPotentialBlockSize p p h z s i
cuModuleEnumerateFunctions p i8 h|cuLibraryEnumerateKernels p i8 h|cuLaunchKernelEx L h k z
cuGraphConditionalHandleCreate >h h h 0 0|cuGraphConditionalHandleCreate >h h h 0 1
cuGraphAddNode_v2 >h h l z 0 N|cuGraphAddNode >h h l 0 N|cuGraphNodeSetParams h N
cuStreamBeginCaptureToGraph h h z z 0 0|cuGraphDebugDotPrint h z i
cuGraphInstantiateWithParams >h h z|cuStreamSetAttribute h i p"""
CALLS = f"{CALLS}\n{MORE}"
CALLS = [call.split() for line in CALLS.splitlines() for call in line.split("|")]

handles, addresses, KEPT = [], [], []


def number():
    return rng.choice(
        [0, 1, 2, 3, 4, 7, 8, 16, 32, 33, 64, 127, 1024, 1025, -1, 2**31 - 1, -(2**31)]
    )


def blocks():
    return rng.choice([0, 1, 2, 3, 33, 33, -1, -(2**31)])


def size():
    small = [0, 1, 2, 3, 4, 15, 16, 100, 255, 256, 1000, 4096, 5000, 16384]
    return rng.choice(small + small + [2**31, 2**40, 2**63, 2**64 - 1, rng.getrandbits(64)])


# What the handles of a call are, in order, and which calls make such handles.
ROLES = {
    r"cuGraphExec(Kern|Mem|Node)|cuGraphNode(Set|Get)En": ["Instantiate", "cuGraphAdd"],
    "cuGraphExecUpdate": ["Instantiate", "cuGraphCreate|EndCapture"],
    "cuGraph(ExecD|ExecG|Launch|Upload)": ["Instantiate", "cuStreamCreate"],
    "cuGraphAddKernel": ["cuGraphCreate", "cuModuleGetFunction"],
    "cuGraphAddChild": ["cuGraphCreate", "cuGraphCreate"],
    "cuGraphAddEvent": ["cuGraphCreate", "cuEventCreate"],
    "cuGraphNodeFind": ["cuGraphAdd", "cuGraphClone"],
    "cuGraph(Kernel|Memset|Child|Node|DestroyNode)": ["cuGraphAdd", "cuGraphAdd"],
    "cuGraph": ["cuGraphCreate"],
    "cuEvent": ["cuEventCreate"],
    "cuStreamWait": ["cuStreamCreate", "cuEventCreate"],
    "cuStreamBeginCaptureTo": ["cuStreamCreate", "cuGraphCreate"],
    "cuStream": ["cuStreamCreate"],
    "cuArray|cuMemcpy.to": ["cuArray|GetLevel", "cuArray"],
    "cuMipmapped": ["cuMipmappedArrayCreate"],
    "cuTex": ["cuTexObjectCreate"],
    "cuSurf": ["cuSurfObjectCreate"],
    "cuMem(Map|Release)": ["cuMemCreate"],
    "cuLaunch|cuFunc|cuOcc": ["cuModuleGetFunction", "cuStreamCreate"],
    "cuModule|cuLibrary": ["cuModuleLoadData"],
    "cuLink": ["cuLinkCreate"],
    "cuUserObject": ["cuUserObject"],
    "cuMemPool|cuMemAllocFrom": ["cuMemPoolCreate", "cuStreamCreate"],
    "cuCtx(Push|Detach|SetCur)": ["cuCtxCreate"],
}


def handle_of(makers):
    """Mostly one that a call of this name has made."""
    right = [one for one, maker in handles if re.search(makers, maker)]
    return rng.choice(right) if right and rng.random() < 0.8 else handle()


def roles_of(name):
    return next((roles for call, roles in ROLES.items() if re.match(call, name)), [])


def handle():
    wild = [0, 1, 2, 3, 8, ctypes.addressof(OUT), 0xDEAD0000, 2**64 - 16, rng.getrandbits(48)]
    return rng.choice([one for one, _ in handles] * 2 + wild)


def address():
    wild = [0, 1, 4096, rng.getrandbits(50), rng.getrandbits(64), 1 << 47, 6 << 40, 3 << 40]
    near = [one + rng.choice([0, 0, 0, 0, 1, 4, 100, -1]) for one in addresses]
    return rng.choice(near + near + wild)


def copy_parameters():
    """CUDA_MEMCPY3D: a host side is OUT, so its sizes are small."""
    sides = []
    for _ in range(2):
        kind = rng.choice([1, 2, 3, 3])
        small = [rng.randrange(8) for _ in range(3)]
        sides.append(
            [*(small if kind == 1 else [size() for _ in small]), 0, kind]
            + [ctypes.addressof(OUT), address(), handle(), 0]
            + ([64, 8] if kind == 1 else [size(), number()])
        )
    return words(*sides[0], *sides[1], rng.randrange(50), rng.randrange(9), rng.randrange(9))


def copy_2d_parameters():
    """CUDA_MEMCPY2D, of the same."""
    sides = []
    for _ in range(2):
        kind = rng.choice([1, 2, 3])
        at = [rng.randrange(8) if kind == 1 else size() for _ in range(2)]
        places = [ctypes.addressof(OUT), address(), handle()]
        sides.append([*at, kind, *places, 64 if kind == 1 else size()])
    return words(*sides[0], *sides[1], rng.randrange(50), rng.randrange(9))


def copied_size():
    """Of a copy from or to OUT: pinned memory may have more bytes than OUT."""
    bytes_ = size()
    return bytes_ if bytes_ <= len(OUT) or bytes_ > LARGEST else len(OUT)


def words(*each):
    """A structure of 64-bit words, and more of them than any call reads."""
    made = (ctypes.c_uint64 * 64)(*(one % 2**64 for one in each))
    KEPT.append(made)
    return ctypes.cast(made, ctypes.c_void_p)


def halves(low, high):
    return low % 2**32 | (high % 2**32) << 32


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def CALLED(_):
    pass


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def CALLING(_):
    """A host function that calls CUDA, which programs must not."""
    call(rng.choice(CALLS))


def damaged_image():
    """A fat binary of one entry, with some random fields; as long as its headers say, or longer."""
    body = rng.randbytes(rng.choice([0, 8, 64, 500]))
    if rng.random() < 0.5:
        body = bytes.fromhex("28b52ffd") + rng.choice([b"\x00\x58", b"\x20\x40"]) + body
    flags = rng.choice([0, 0x2000, 0x8000, 0xA000])
    fields = [
        rng.choice([1, 2]) | 0x0101 << 16, rng.choice([64, 64, 64, 0, 72]),
        len(body), 0, rng.choice([len(body), 0, len(body) + 1]), 0, 0,
        rng.choice([0, 50, 80, 90, 120]), 0, 0, flags, 0, 0, 0, rng.choice([0, 10, 1000, 2**31]), 0,
    ]  # fmt: skip
    entry = b"".join(one.to_bytes(4, "little") for one in fields) + body
    head = (
        0xBA55ED50.to_bytes(4, "little") + bytes([1, 0, 16, 0]) + len(entry).to_bytes(8, "little")
    )
    made = ctypes.create_string_buffer(head + entry + bytes(4096))
    KEPT.append(made)
    return ctypes.cast(made, ctypes.c_void_p)


FORMATS = [1, 2, 3, 8, 9, 10, 16, 32, 32, 32, 0, 5, 0xB0]
STRUCTURES = {
    "A": lambda: words(  # CUDA_ARRAY3D_DESCRIPTOR
        number(), number(), number(), halves(rng.choice(FORMATS), number()), rng.choice(range(9))
    ),
    "B": copy_2d_parameters,
    "C": copy_parameters,
    "K": lambda: words(  # CUDA_KERNEL_NODE_PARAMS
        handle_of("GetFunction"),
        *[halves(rng.choice([1, 32]), 1)] * 3,
        halves(1, 0),
        ctypes.addressof(PARAMS),
        0,
        handle(),
        0,
    ),
    "S": lambda: words(  # CUDA_MEMSET_NODE_PARAMS
        address(), size(), halves(7, rng.choice([1, 2, 4, 3])), size(), number()
    ),
    "N": lambda: words(  # CUgraphNodeParams of a node with a condition, which is 0
        13, 0, handle_of("Conditional"), halves(rng.randrange(4), rng.choice([0, 1, 1, 2, 3])), 0, 0
    ),
    "R": lambda: words(  # CUDA_RESOURCE_DESC
        rng.randrange(5),
        rng.choice([handle_of("cuArray|cuMipmapped"), address()]),
        halves(rng.choice(FORMATS), 1),
        size(),
        number(),
        size(),
    ),
    "T": lambda: words(*[halves(rng.randrange(5), rng.randrange(4)) for _ in range(6)]),
    "P": lambda: words(1, halves(1, 0)),  # CUmemAllocationProp
    "G": lambda: ctypes.c_uint64(rng.choice([2 << 20, 4 << 20])),
    "d": lambda: words(*[rng.choice([number(), size(), address(), handle()]) for _ in range(30)]),
    "l": lambda: words(*[handle_of("cuGraphAdd") for _ in range(40)]),
    "c": lambda: ctypes.c_uint64(copied_size()),
    "L": lambda: words(  # CUlaunchConfig
        halves(blocks(), 1), halves(1, rng.choice([1, 32])), halves(1, 1), 0, handle(), 0, 0
    ),
    "H": lambda: words(ctypes.cast(rng.choice([CALLED, CALLING]), ctypes.c_void_p).value, 0),
    "f": lambda: rng.choice([CALLED, CALLED, CALLING]),
    "F": damaged_image,
    "I": lambda: ctypes.c_uint64(len(IMAGE)),
    "r": lambda: ctypes.c_void_p(ctypes.addressof(ROOM) + rng.choice([8192, 8192, 4096, 4, 0])),
    "x": lambda: (ctypes.c_int * 8)(*[rng.randrange(-1, 20) for _ in range(8)]),
    "i8": lambda: ctypes.c_int(rng.randrange(8)),
    "0": lambda: ctypes.c_uint64(0),
    "1": lambda: ctypes.c_uint64(1),
    "n8": lambda: words(8),
}


def arguments(name, letters, made):
    roles = iter(roles_of(name))
    for one in letters:
        if one[0] == ">":
            yield ctypes.byref(made)
        elif one == "h" and (makers := next(roles, None)):
            yield ctypes.c_uint64(handle_of(makers) % 2**64)
        else:
            yield argument(one, name)


def argument(letter, name):
    if letter in STRUCTURES:
        return STRUCTURES[letter]()
    if letter == "p":
        return ctypes.cast(OUT, ctypes.c_void_p)
    if letter in "nmk":
        return {"n": NAME, "m": IMAGE, "k": PARAMS}[letter]
    if letter == "z":
        return None
    if letter == "i":
        return ctypes.c_int(number())
    if letter == "g":
        return ctypes.c_int(blocks())
    of_size = copied_size if re.match("cuMemcpy(HtoD|DtoH)", name) else size
    return ctypes.c_uint64({"s": of_size, "h": handle, "a": address}[letter]() % 2**64)


def call(words_of_call):
    name, *letters = words_of_call
    made = ctypes.c_uint64(0)
    given = list(arguments(name, letters, made))
    result = getattr(driver, name)(*given)
    seen.setdefault(name, set()).add(result)
    for one in letters:
        if one[0] == ">" and result == 0:
            kept = handles if one == ">h" else addresses
            kept.append((made.value, name) if one == ">h" else made.value)
            del kept[:-100]
    if "N" in letters and name.startswith("cuGraphAdd") and result == 0:
        bodies = ctypes.cast(KEPT[-1][4], ctypes.POINTER(ctypes.c_uint64))
        handles.append((bodies[0], "cuGraphCreate"))


seen = {}
OUT.raw = bytes(len(OUT))
wrong = [] if driver.cuInit(0) == 0 else ["cuInit"]
context = ctypes.c_void_p()
for step in range(6000):
    if step % 50 == 0:  # most calls need a context, and no capture that forbids them
        for one, maker in handles:
            if maker.startswith("cuStreamCreate"):
                driver.cuStreamEndCapture(ctypes.c_uint64(one), ctypes.byref(ctypes.c_uint64(0)))
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        driver.cuCtxSetCurrent(context)
    OUT.raw = bytes(len(OUT))
    del KEPT[:-100]
    call(rng.choice(CALLS))
print(json.dumps({"wrong": wrong, "seen": {name: sorted(all_) for name, all_ in seen.items()}}))
