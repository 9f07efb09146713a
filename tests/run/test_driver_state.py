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


def printed(code, *words):
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(DRIVER.parent),
        "SMEMKERN_RUN_DEVICE": emulated_device("h100").described(),
    }
    command = [sys.executable, "-c", START + code, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


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
