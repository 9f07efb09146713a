"""What a GPU makes of the cases in tests/emu/texture_cases.py.

    python validation/textures.py FOLDER     runs all cases on the GPU; needs NumPy and the driver
    python validation/textures.py FOLDER --record tests/emu/texture_h200.json

The first writes the results to FOLDER, one file per group of cases; the second makes checksums of
them. libcuda is called directly, so this needs no toolkit.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "emu"))
import texture_cases  # noqa: E402
from texture_inputs import BLOCK, Case  # noqa: E402

GROUPS = ("probes", "address", "integer", "cube", "other", "surface", "reduction", "query")
TABLE = "table"  # a process for each of its cases
FORMATS = {
    "uint8": 1,
    "uint16": 2,
    "uint32": 3,
    "int8": 8,
    "int16": 9,
    "int32": 10,
    "float16": 16,
    "float32": 32,
}
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
HOST, ARRAY = 1, 3
pointer, size = ctypes.c_void_p, ctypes.c_size_t


class ArrayDescription(ctypes.Structure):
    _fields_ = [
        ("width", size),
        ("height", size),
        ("depth", size),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    ]


class Side(ctypes.Structure):
    _fields_ = [
        ("x", size),
        ("y", size),
        ("z", size),
        ("level", size),
        ("kind", ctypes.c_int),
        ("host", pointer),
        ("device", ctypes.c_uint64),
        ("array", pointer),
        ("reserved", pointer),
        ("pitch", size),
        ("height", size),
    ]


class Copy(ctypes.Structure):
    _fields_ = [
        ("source", Side),
        ("target", Side),
        ("width", size),
        ("height", size),
        ("depth", size),
    ]


class Linear(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("bytes", size),
    ]


class Pitch(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_uint64),
        ("format", ctypes.c_int),
        ("channels", ctypes.c_uint),
        ("width", size),
        ("height", size),
        ("pitch", size),
    ]


class Memory(ctypes.Union):
    _fields_ = [
        ("array", pointer),
        ("linear", Linear),
        ("pitch", Pitch),
        ("reserved", ctypes.c_int * 32),
    ]


class Resource(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("memory", Memory), ("flags", ctypes.c_uint)]


class Sampling(ctypes.Structure):
    _fields_ = [
        ("address", ctypes.c_int * 3),
        ("filter", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("anisotropy", ctypes.c_uint),
        ("mipmap_filter", ctypes.c_int),
        ("bias", ctypes.c_float),
        ("lowest", ctypes.c_float),
        ("highest", ctypes.c_float),
        ("border", ctypes.c_float * 4),
        ("reserved", ctypes.c_int * 12),
    ]


class Driver:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), pointer()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        version = ctypes.c_int()
        self("cuDriverGetVersion", ctypes.byref(version))
        self.name, self.version = name.value.decode(), version.value

    def __call__(self, function: str, *arguments) -> None:
        result = getattr(self.library, function)(*arguments)
        if result:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(result, ctypes.byref(text))
            raise RuntimeError(f"{function}: {text.value} ({result})")

    def upload(self, array: np.ndarray) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), size(array.nbytes))
        self("cuMemcpyHtoD_v2", address, pointer(array.ctypes.data), size(array.nbytes))
        return address

    def download(self, address: ctypes.c_uint64, array: np.ndarray) -> None:
        self("cuMemcpyDtoH_v2", pointer(array.ctypes.data), address, size(array.nbytes))


def extents(case: Case) -> tuple[int, int, int]:
    """Width, height and depth of the device's array."""
    t = case.texture
    shape = t.shape
    if t.cubemap:
        return shape[-1], shape[-2], shape[0] * (6 if t.layered else 1)
    if t.layered:
        return shape[-1], shape[-2] if len(shape) > 2 else 0, shape[0]
    return (*shape[::-1], 0, 0)[:3]


def copy_array(driver: Driver, case: Case, array: pointer, texels: np.ndarray, back: bool) -> None:
    width, height, depth = (max(n, 1) for n in extents(case))
    row = width * texels.itemsize * case.texture.channels
    host = Side(kind=HOST, host=texels.ctypes.data, pitch=row, height=height)
    device = Side(kind=ARRAY, array=array)
    copy = Copy(device if back else host, host if back else device, row, height, depth)
    driver("cuMemcpy3D_v2", ctypes.byref(copy))


def make_array(driver: Driver, case: Case, texels: np.ndarray) -> pointer:
    t = case.texture
    flags = LAYERED * t.layered | CUBEMAP * t.cubemap | SURFACE * case.surface
    flags |= GATHER * ("tld4" in case.body and not t.cubemap)
    description = ArrayDescription(*extents(case), FORMATS[t.dtype], t.channels, flags)
    array = pointer()
    driver("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(description))
    copy_array(driver, case, array, texels, False)
    return array


def make_resource(driver: Driver, case: Case, texels: np.ndarray) -> Resource:
    t = case.texture
    out = Resource()
    if t.memory == "linear":
        out.kind = 2
        out.memory.linear = Linear(
            driver.upload(texels), FORMATS[t.dtype], t.channels, texels.nbytes
        )
    elif t.memory == "pitch":
        out.kind = 3
        row = texels.nbytes // t.shape[0]
        address = driver.upload(texels)
        out.memory.pitch = Pitch(address, FORMATS[t.dtype], t.channels, *t.shape[::-1], row)
    else:
        out.memory.array = make_array(driver, case, texels)
    return out


def make_sampling(case: Case) -> Sampling:
    t = case.texture
    address = (t.address,) * 3 if isinstance(t.address, str) else (*t.address, "clamp")[:3]
    out = Sampling(filter=t.filter == "linear")
    out.address[:] = [MODES[mode] for mode in address]
    out.border[:] = t.border
    integer = np.dtype(t.dtype).kind in "iu" and t.read == "element"
    out.flags = 1 * integer | 2 * t.normalized
    return out


def run(driver: Driver, case: Case) -> dict[str, np.ndarray]:
    texels, words = case.arrays()
    texels = np.ascontiguousarray(texels)
    resource = make_resource(driver, case, texels)
    handle = ctypes.c_uint64()
    if case.surface:
        driver("cuSurfObjectCreate", ctypes.byref(handle), ctypes.byref(resource))
    else:
        sampling = make_sampling(case)
        driver(
            "cuTexObjectCreate",
            ctypes.byref(handle),
            ctypes.byref(resource),
            ctypes.byref(sampling),
            None,
        )
    module, function = pointer(), pointer()
    driver("cuModuleLoadData", ctypes.byref(module), case.ptx.encode() + b"\0")
    driver("cuModuleGetFunction", ctypes.byref(function), module, b"sample")
    out = np.full((len(words), 4), 0xFEFEFEFE, np.uint32)
    device_words, device_out = driver.upload(words), driver.upload(out)
    values = [handle, device_words, device_out]
    arguments = (pointer * 3)(*[ctypes.addressof(v) for v in values])
    driver("cuLaunchKernel", function, case.count, 1, 1, BLOCK, 1, 1, 0, None, arguments, None)
    driver("cuCtxSynchronize")
    driver.download(device_out, out)
    results = {case.name: out}
    if case.surface:
        after = np.empty_like(texels)
        copy_array(driver, case, resource.memory.array, after, True)
        results[case.name + "/texels"] = after
    driver("cuModuleUnload", module)
    driver("cuMemFree_v2", device_words)
    driver("cuMemFree_v2", device_out)
    return results


def run_group(group: str, folder: Path, only: str | None = None) -> None:
    name = group if group == "probes" else group + "_cases"
    driver, results, errors = Driver(), {}, {}
    for case in getattr(texture_cases, name)():
        if only not in (None, case.name):
            continue
        try:
            results.update(run(driver, case))
        except RuntimeError as error:
            errors[case.name] = str(error)
    keys = list(results)
    group += f" {only}" if only else ""
    np.savez_compressed(
        folder / f"{group}.npz",
        keys=np.array(keys),
        **{f"a{k}": results[key] for k, key in enumerate(keys)},
    )
    about = {"device": driver.name, "driver": driver.version, "errors": errors}
    (folder / f"{group}.json").write_text(json.dumps(about, indent=1))


def load(folder: Path) -> dict[str, np.ndarray]:
    results = {}
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            results.update({str(key): file[f"a{k}"] for k, key in enumerate(file["keys"])})
    return results


def checksum(array: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def record(folder: Path, target: Path) -> None:
    """Checksums of the results, without those that are no longer cases."""
    names = {case.name for case in texture_cases.all_cases()}
    sums = {k: checksum(a) for k, a in load(folder).items() if k.split("/")[0] in names}
    lines = ",\n".join(f"{json.dumps(key)}: {value}" for key, value in sorted(sums.items()))
    target.write_text("{\n" + lines + "\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--group", choices=[*GROUPS, TABLE])
    parser.add_argument("--only")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.record:
        record(given.folder, given.record)
    elif given.group:
        run_group(given.group, given.folder, given.only)
    else:
        # a process each: an instruction that the device traps on ends its context
        parts = [["--group", group] for group in GROUPS]
        parts += [["--group", TABLE, "--only", c.name] for c in texture_cases.table_cases()]
        for part in parts:
            command = [sys.executable, __file__, str(given.folder), *part]
            done = subprocess.run(command, check=False)
            print(*part, "ok" if done.returncode == 0 else f"failed: {done.returncode}", flush=True)


if __name__ == "__main__":
    main()
