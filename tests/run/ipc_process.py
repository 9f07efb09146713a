"""A process of test_ipc.py: evaluates the lines of its standard input and prints the results.

Calls return (result code, value).
"""

import sys
from ctypes import (
    CDLL,
    Structure,
    byref,
    c_char,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    cast,
    create_string_buffer,
    pointer,
)

driver = CDLL("libcuda.so.1")
BEYOND = 1 << 20  # bytes


class Handle(Structure):
    _fields_ = [("reserved", c_char * 64)]


def of_hex(text):
    return Handle.from_buffer_copy(bytes.fromhex(text))


def alloc(size, managed=False):
    at = c_uint64()
    if managed:
        return driver.cuMemAllocManaged(byref(at), c_size_t(size), 1), at.value
    return driver.cuMemAlloc_v2(byref(at), c_size_t(size)), at.value


def free(at):
    return driver.cuMemFree_v2(c_uint64(at))


def put(at, data):
    return driver.cuMemcpyHtoD_v2(c_uint64(at), data, c_size_t(len(data)))


def get(at, size):
    out = create_string_buffer(size)
    return driver.cuMemcpyDtoH_v2(out, c_uint64(at), c_size_t(size)), out.raw


def copy(to, source, size):
    return driver.cuMemcpyDtoD_v2(c_uint64(to), c_uint64(source), c_size_t(size))


def extent(at):
    base, size = c_uint64(), c_size_t()
    code = driver.cuMemGetAddressRange_v2(byref(base), byref(size), c_uint64(at))
    return code, base.value, size.value


def can_share(at):
    out = c_int(-1)
    return driver.cuPointerGetAttribute(byref(out), 10, c_uint64(at)), out.value


def memory_handle(at):
    out = Handle()
    return driver.cuIpcGetMemHandle(byref(out), c_uint64(at)), bytes(out).hex()


def open_memory(text, flags=1):
    at = c_uint64()
    return driver.cuIpcOpenMemHandle_v2(byref(at), of_hex(text), c_uint(flags)), at.value


def close_memory(at):
    return driver.cuIpcCloseMemHandle(c_uint64(at))


def event(flags):
    out = c_void_p()
    return driver.cuEventCreate(byref(out), flags), out.value


def event_handle(at):
    out = Handle()
    return driver.cuIpcGetEventHandle(byref(out), c_void_p(at)), bytes(out).hex()


def open_event(text):
    out = c_void_p()
    return driver.cuIpcOpenEventHandle(byref(out), of_hex(text)), out.value


def on_event(call, *args):
    return getattr(driver, call)(*map(c_void_p, args))


def launch(kernel, at, n, blocks=1):
    function = c_void_p()
    driver.cuModuleGetFunction(byref(function), module, kernel.encode())
    values = [c_uint64(at), c_int(n)]
    params = (c_void_p * 2)(*(cast(pointer(one), c_void_p) for one in values))
    return driver.cuLaunchKernel(function, blocks, 1, 1, 128, 1, 1, 0, None, params, None)


def new_context():
    out = c_void_p()
    return driver.cuCtxCreate_v2(byref(out), 0, 0)


def pop_context():
    return driver.cuCtxPopCurrent_v2(None)


def sync():
    return driver.cuCtxSynchronize()


context, module = c_void_p(), c_void_p()
assert not driver.cuInit(0) and not driver.cuDevicePrimaryCtxRetain(byref(context), 0)
assert not driver.cuCtxSetCurrent(context)
with open(sys.argv[1], "rb") as file:
    assert not driver.cuModuleLoadData(byref(module), create_string_buffer(file.read()))
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
