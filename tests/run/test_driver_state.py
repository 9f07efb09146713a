"""What single calls of the driver leave behind, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import smemkern
from smemkern._device.emulated import emulated_device

PTX = Path(__file__).resolve().parent / "kernels.ptx"
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
START = """
from ctypes import *
d, context = CDLL("libcuda.so.1"), c_void_p()
d.cuInit(0), d.cuDevicePrimaryCtxRetain(byref(context), 0), d.cuCtxSetCurrent(context)
HOST_FUNCTION = CFUNCTYPE(None, c_void_p)
"""


def printed(code, *words, lines=False):
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(DRIVER.parent),
        "SMEMKERN_RUN_DEVICE": emulated_device("h100").described(),
    }
    command = [sys.executable, "-c", START + code, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines() if lines else done.stdout.split()


def test_a_module_of_managed_variables_gives_its_memory_back():
    code = """
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4 .b8 large[1048576];
.visible .entry k() { ret; }'''
free, total, module = c_size_t(), c_size_t(), c_void_p()
for _ in range(3):
    d.cuMemGetInfo_v2(byref(free), byref(total))
    print(free.value)
    assert not d.cuModuleLoadData(byref(module), ptx) and not d.cuModuleUnload(module)
"""
    assert len(set(printed(code))) == 1


def test_memory_is_registered_once_and_only_where_it_is_mapped():
    code = """
import mmap
memory = mmap.mmap(-1, 8 * 4096)
at = addressof(c_char.from_buffer(memory))
for offset, bytes in ((4096, 8192), (0, 4096), (0, 4097), (8192, 4096), (12288, 4096),
                      (20480, 2**47), (20480, 2**64 - 4096)):
    print(d.cuMemHostRegister_v2(c_void_p(at + offset), c_size_t(bytes), 0))
print(d.cuMemHostRegister_v2(c_void_p(4096), c_size_t(4096), 0))
"""
    # 712: CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    assert printed(code) == ["0", "0", "712", "712", "0", "1", "1", "1"]


def test_a_host_function_cannot_free_the_graph_that_calls_it():
    code = """
@HOST_FUNCTION
def free_it(_):
    print(d.cuGraphExecDestroy(ready), d.cuGraphDestroy(graph), d.cuMemAlloc_v2(byref(node), 4))
    print(d.cuStreamQuery(None), d.cuCtxGetCurrent(byref(node)))
graph, ready, node = c_void_p(), c_void_p(), c_void_p()
parameters = (c_void_p * 2)(cast(free_it, c_void_p), None)
d.cuGraphCreate(byref(graph), 0)
for _ in range(3):
    assert not d.cuGraphAddHostNode(byref(node), graph, None, c_size_t(0), parameters)
assert not d.cuGraphInstantiateWithFlags(byref(ready), graph, c_uint64(0))
print(d.cuGraphLaunch(ready, None), d.cuGraphExecDestroy(ready))
"""
    assert printed(code) == ["800", "800", "800", "0", "0"] * 3 + ["0", "0"]  # 800: not permitted


def test_no_block_has_more_shared_memory_than_there_is():
    code = """
ptx = b'''.version 7.0
.target sm_70
.address_size 64
.shared .align 4 .b8 tile[4096];
.visible .entry k() { .reg .b32 r; st.shared.b32 [tile], r; ret; }'''
module, kernel, blocks = c_void_p(), c_void_p(), c_int()
assert not d.cuModuleLoadData(byref(module), ptx)
assert not d.cuModuleGetFunction(byref(kernel), module, b"k")
for shared in (0, 2**40, 2**64 - 1, 2**64 - 200, 2**64 - 4096, 2**64 - 5000):
    d.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(blocks), kernel, 128, c_size_t(shared))
    print(blocks.value)
"""
    found = printed(code)
    assert int(found[0]) > 1 and found[1:] == ["0"] * 5


def test_a_row_of_a_pitched_copy_is_read_where_it_is(monkeypatch):
    """With --shuffle the call keeps the row, as the program may change it before the copy runs."""
    monkeypatch.setenv("SMEMKERN_RUN_SHUFFLE", "1")
    code = """
import random
class Copy(Structure):
    _fields_ = [(name, c_uint if name[3:] == "Type" else c_size_t) for name in
                "srcX srcY srcType srcHost srcDevice srcArray srcPitch "
                "dstX dstY dstType dstHost dstDevice dstArray dstPitch width height".split()]
rows = create_string_buffer(random.randbytes(8 * 64))
stream, address, out = c_void_p(), c_size_t(), create_string_buffer(40)
d.cuStreamCreate(byref(stream), 0), d.cuMemAlloc_v2(byref(address), c_size_t(40))
for y in range(8):
    expected = rows.raw[64 * y + 8 : 64 * y + 48]
    copy = Copy(srcX=8, srcY=y, srcType=1, srcHost=addressof(rows), srcPitch=64, dstType=2,
                dstDevice=address.value, dstPitch=40, width=40, height=1)
    assert not d.cuMemcpy2DAsync_v2(byref(copy), stream)
    rows[:] = bytes(len(rows))
    assert not d.cuStreamSynchronize(stream)
    assert not d.cuMemcpyDtoH_v2(out, address, c_size_t(40))
    print(out.raw == expected)
    rows[:] = random.randbytes(len(rows))
"""
    assert printed(code) == ["True"] * 8


def test_a_capture_ends_with_the_graph_that_it_adds_to():
    """Its graph is part of another one, whose capture ends with its stream."""
    code = """
empty, ready, own, ended = (c_void_p() for _ in range(4))
first, second, nodes, whole = c_void_p(), c_void_p(), (c_void_p * 1)(), c_void_p()
n, status = c_size_t(1), c_int()
d.cuGraphCreate(byref(empty), 0), d.cuGraphInstantiateWithFlags(byref(ready), empty, c_uint64(0))
d.cuStreamCreate(byref(first), 0), d.cuStreamCreate(byref(second), 0)
print(d.cuStreamBeginCapture_v2(first, 2), d.cuGraphLaunch(ready, first))
d.cuStreamGetCaptureInfo_v2(first, byref(status), None, byref(whole), None, None)
d.cuGraphGetNodes(whole, nodes, byref(n))
print(n.value, d.cuGraphChildGraphNodeGetGraph(c_void_p(nodes[0]), byref(own)))
print(d.cuStreamBeginCaptureToGraph(second, own, None, None, c_size_t(0), 2))
print(d.cuStreamDestroy_v2(first))
d.cuStreamIsCapturing(second, byref(status)), print(status.value)
print(d.cuMemsetD8Async(c_size_t(1 << 48), 0, c_size_t(4), second))
print(d.cuStreamEndCapture(second, byref(ended)), ended.value)
"""
    # 901: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    assert printed(code) == ["0", "0", "1", "0", "0", "0", "2", "901", "901", "None"]


def test_a_graph_that_ends_has_no_nodes():
    code = """
@HOST_FUNCTION
def ask(_):
    n = c_size_t()
    print(d.cuGraphGetRootNodes(graph, None, byref(n)), n.value)
graph, node, kept = c_void_p(), c_void_p(), c_void_p()
d.cuGraphCreate(byref(graph), 0), d.cuGraphAddEmptyNode(byref(node), graph, None, c_size_t(0))
d.cuUserObjectCreate(byref(kept), None, ask, 1, 1)
d.cuGraphRetainUserObject(graph, kept, 1, 1), d.cuGraphDestroy(graph)
"""
    assert printed(code) == ["0", "0"]


def test_an_update_that_fails_changes_nothing():
    code = """
class Set(Structure):
    _fields_ = [("at", c_size_t), ("pitch", c_size_t), ("value", c_uint), ("bytes", c_uint),
                ("width", c_size_t), ("height", c_size_t)]
address, out, result = c_size_t(), create_string_buffer(4), create_string_buffer(64)
d.cuMemAlloc_v2(byref(address), c_size_t(4))
def graph(value, inner):
    whole, child, node = c_void_p(), c_void_p(), c_void_p()
    d.cuGraphCreate(byref(whole), 0), d.cuGraphCreate(byref(child), 0)
    for _ in range(inner):
        d.cuGraphAddEmptyNode(byref(node), child, None, c_size_t(0))
    d.cuGraphAddMemsetNode(byref(node), whole, None, c_size_t(0),
                           byref(Set(address.value, 0, value, 1, 4, 1)), context)
    d.cuGraphAddChildGraphNode(byref(node), whole, None, c_size_t(0), child)
    return whole
ready = c_void_p()
assert not d.cuGraphInstantiateWithFlags(byref(ready), graph(1, 1), c_uint64(0))
for value, inner in ((2, 2), (3, 1)):
    print(d.cuGraphExecUpdate_v2(ready, graph(value, inner), result), d.cuGraphLaunch(ready, None))
    d.cuMemcpyDtoH_v2(out, address, c_size_t(4)), print(out.raw[0])
"""
    # 910: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
    assert printed(code) == ["910", "0", "1", "0", "0", "3"]


def test_what_the_runtime_keeps_may_end_with_other_of_it():
    """Destructors of a context's storage, one of which deletes what comes after it."""
    code = """
table = POINTER(c_void_p)()
d.cuGetExportTable(byref(table), bytes.fromhex("c693336e1121df11a8c368f355d89593"))
DESTROY = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
put = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, DESTROY)(table[0])
delete = CFUNCTYPE(c_int, c_void_p, c_void_p)(table[1])
@DESTROY
def destroy(where, key, value):
    print(key, delete(where, 2))
for key in (1, 2, 3):
    assert not put(context, key, None, destroy)
print(d.cuDevicePrimaryCtxReset_v2(0))
"""
    assert printed(code) == ["1", "0", "3", "0", "0"]


def test_attributes_of_a_pointer_need_no_context():
    """As the first thing that CuPy asks: whether the host's memory is pinned."""
    code = """
d.cuCtxSetCurrent(None)
kind, context = c_int(7), c_void_p(7)
attributes, out = (c_int * 2)(2, 1), (c_void_p * 2)(addressof(kind), addressof(context))
print(d.cuPointerGetAttributes(2, attributes, out, c_void_p(addressof(kind))))
print(kind.value, context.value)
"""
    assert printed(code) == ["0", "0", "None"]


NODE = """
class Parameters(Structure):
    _fields_ = [("type", c_uint64), ("_", c_uint64), ("condition", c_uint64), ("kind", c_uint),
                ("n", c_uint), ("bodies", POINTER(c_void_p)), ("more", c_uint64 * 30)]
graph, stream, node, handle = c_void_p(), c_void_p(), c_void_p(), c_uint64()
d.cuGraphCreate(byref(graph), 0), d.cuStreamCreate(byref(stream), 1)
d.cuGraphConditionalHandleCreate(byref(handle), graph, context, 0, 0)
def add(kind, n, condition=None):
    global given
    given = Parameters(13, 0, (condition or handle).value, kind, n)
    return d.cuGraphAddNode_v2(byref(node), graph, None, None, c_size_t(0), byref(given))
"""


def test_nodes_with_conditions_that_do_not_exist():
    code = """
print(*(add(kind, n) for kind in range(4) for n in range(4)))
print(add(0, 1, c_uint64(graph.value)), add(0, 1, c_uint64(3)))
print(d.cuGraphConditionalHandleCreate(byref(handle), node, context, 0, 0))
print(d.cuGraphConditionalHandleCreate(byref(handle), graph, context, 0, 2))
"""
    # if, while, switch, and no kind: with 0 to 3 bodies
    kinds = "1 0 0 1", "1 0 1 1", "1 0 0 0", "1 1 1 1"
    assert printed(NODE + code) == [*" ".join(kinds).split(), "1", "1", "1", "1"]


def test_a_body_that_is_captured_cannot_be_destroyed():
    code = """
print(add(0, 1))
body = c_void_p(given.bodies[0])
print(d.cuStreamBeginCaptureToGraph(stream, body, None, None, c_size_t(0), 0))
print(d.cuGraphDestroyNode(node), d.cuGraphDestroy(graph), d.cuGraphDestroy(body))
print(d.cuStreamEndCapture(stream, None), d.cuGraphDestroyNode(node), d.cuGraphDestroy(graph))
"""
    assert printed(NODE + code) == ["0", "0", "1", "1", "1", "0", "0", "0"]


def test_calls_with_a_stream_an_event_or_memory_need_no_current_context():
    """They run in that object's context. Other calls fail, as do those with an old handle."""
    code = """
stream, event, second, own = c_void_p(), c_void_p(), c_void_p(), c_void_p()
a, b, pinned, out = c_uint64(), c_uint64(), c_void_p(), c_void_p()
d.cuStreamCreate(byref(stream), 1), d.cuEventCreate(byref(event), 0)
d.cuMemAlloc_v2(byref(a), c_size_t(64)), d.cuMemHostAlloc(byref(pinned), c_size_t(64), 0)
d.cuCtxSetCurrent(None)
results = [
    d.cuMemAllocAsync(byref(b), c_size_t(64), stream),
    d.cuMemsetD8Async(b, 7, c_size_t(64), stream),
    d.cuMemcpyAsync(pinned, b, c_size_t(64), stream),
    d.cuLaunchHostFunc(stream, HOST_FUNCTION(lambda _: None), None),
    d.cuEventRecord(event, stream),
    d.cuStreamWaitEvent(stream, event, 0),
    d.cuStreamQuery(stream), d.cuEventQuery(event),
    d.cuEventSynchronize(event), d.cuStreamSynchronize(stream),
    d.cuStreamGetCtx(stream, byref(own)),
    d.cuMemFreeAsync(b, stream), d.cuMemFree_v2(a),
]
value = cast(pinned, POINTER(c_ubyte))[63]
results += [d.cuMemFreeHost(pinned), d.cuEventDestroy_v2(event), d.cuStreamDestroy_v2(stream)]
d.cuCtxGetCurrent(byref(out))
wrong = [
    d.cuStreamQuery(stream), d.cuStreamQuery(None), d.cuMemAlloc_v2(byref(a), c_size_t(64)),
    d.cuMemFree_v2(a), d.cuEventCreate(byref(event), 0),
]
print(set(results), value, own.value == context.value, out.value, set(wrong))
"""
    assert printed(code) == ["{0}", "7", "True", "None", "{201}"]


def test_a_child_of_fork_has_no_gpu():
    """As with NVIDIA's driver, if the parent had one before; also where its lock is held."""
    code = """
import os, threading
def codes():
    a, n = c_uint64(), c_int()
    return d.cuInit(0), d.cuDeviceGetCount(byref(n)), d.cuMemAlloc_v2(byref(a), c_size_t(4))
print(*codes(), flush=True)
busy = True
def calls():
    while busy:
        d.cuCtxSynchronize()
thread = threading.Thread(target=calls)
thread.start()
for _ in range(5):
    child = os.fork()
    if not child:
        print(*codes(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
busy = False
thread.join()
print(*codes())
"""
    assert printed(code) == [*"000", *"333" * 5, *"000"]


GRID_BARRIER = """.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry k(.param .u64 x) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;
    .param .b64 handle; .param .b32 zero; .param .b32 error;
    st.param.b32 [zero], 1;
    call.uni (handle), cudaCGGetIntrinsicHandle, (zero);
    ld.param.u64 %rd1, [handle];
    ld.param.u64 %rd2, [x];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;      // each thread reads what the mirrored one wrote
    mov.u32 %r5, %nctaid.x;
    mul.lo.u32 %r5, %r5, %r2;
    sub.u32 %r5, %r5, %r4;
    sub.u32 %r5, %r5, 1;
    mul.wide.u32 %rd3, %r4, 8;
    mul.wide.u32 %rd4, %r5, 8;
    add.u64 %rd3, %rd2, %rd3;
    add.u64 %rd4, %rd2, %rd4;
    mov.u32 %r7, 0;
LOOP:
    st.global.u32 [%rd3], %r4;
    st.param.b64 [handle], %rd1;
    call.uni (error), cudaCGSynchronize, (handle, zero);
    ld.global.u32 %r6, [%rd4];
    st.global.u32 [%rd3+4], %r6;
    call.uni (error), cudaCGSynchronize, (handle, zero);
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p, %r7, 3;
    @%p bra LOOP;
    ret;
}
"""


def test_the_library_of_the_device_runtime_is_linked():
    """A grid's barrier, as Numba's kernels call it. Another library is machine code."""
    code = """
archive = b"!<arch>" + bytes([10]) + b"cuda_device_runtime.o/" + bytes(100)
other, kernel = archive.replace(b"runtime", b"another"), sys.argv[1].encode()
link, image, size = c_void_p(), c_void_p(), c_size_t()
def add(type, data):
    return d.cuLinkAddData_v2(link, type, data, c_size_t(len(data)), b"name", 0, None, None)
d.cuLinkCreate_v2(0, None, None, byref(link))
print(add(4, archive), add(1, kernel), add(4, other))
print(d.cuLinkComplete(link, byref(image), byref(size)))
module, f, x = c_void_p(), c_void_p(), c_uint64()
print(d.cuModuleLoadData(byref(module), image), d.cuModuleGetFunction(byref(f), module, b"k"))
d.cuMemAlloc_v2(byref(x), c_size_t(8 * 96))
parameters = (c_void_p * 1)(cast(byref(x), c_void_p))
print(d.cuLaunchCooperativeKernel(f, 3, 1, 1, 32, 1, 1, 0, None, parameters))
out = (c_uint32 * 192)()
print(d.cuMemcpyDtoH_v2(out, x, c_size_t(8 * 96)), [*out[1::2]] == [*range(95, -1, -1)])
"""
    # 209: CUDA_ERROR_NO_BINARY_FOR_GPU
    found = printed("import sys\n" + code, GRID_BARRIER)
    assert found == ["0", "0", "209", "0", "0", "0", "0", "0", "True"]
