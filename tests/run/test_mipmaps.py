"""Mipmapped arrays, and textures of them, against a model in NumPy with float64."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mipmap_cases import BASE, GRADIENTS, INTEGER_LEVEL, LEVEL, Mipmap, random_mipmap
from test_driver_state import printed
from texture_model import Model

import run_programs
import smemkern
from smemkern._device.emulated import emulated_device

HERE = Path(__file__).resolve().parent
DRIVER = Path(smemkern.__file__).parent / "driver" / "libcuda.so.1"
CASES = 70
STEP = 1 / 256  # of levels in hardware


def on_face(direction, major):
    """The two coordinates on the face of a cube, from 0 to 1; the axes' order does not matter."""
    rows = np.arange(len(direction))
    others = np.array([[1, 2], [0, 2], [0, 1]])[major]
    scale = np.abs(direction[rows, major])
    return (np.take_along_axis(direction, others, axis=1) / scale[:, None] + 1) / 2


def steps(m: Mipmap, words: np.ndarray) -> np.ndarray:
    """The lengths of both gradients, in texels: [gradient, thread]."""
    c = words[:, 5:].view(np.float32).astype(np.float64)
    order = {1: ([0], [1]), 2: ([0, 1], [2, 0]), 3: ([0, 1, 2], [2, 0, 1])}[m.rank]
    gradients = [c[:, list(one)] for one in order]
    if m.texture.cubemap:
        x = words[:, :3].view(np.float32).astype(np.float64)
        major = np.abs(x).argmax(axis=1)
        near = 1e-6 * np.abs(x).max(axis=1, keepdims=True)
        largest = [np.abs(g).max(axis=1, keepdims=True) + 1e-300 for g in gradients]
        gradients = [
            (on_face(x + g / big * near, major) - on_face(x - g / big * near, major))
            / (2 * near)
            * big
            for g, big in zip(gradients, largest, strict=True)
        ]
    sizes = np.array(m.texture.shape[::-1][: gradients[0].shape[1]])
    return np.array([np.sqrt(((g * sizes) ** 2).sum(axis=1)) for g in gradients])


def chosen_level(m: Mipmap, words: np.ndarray) -> np.ndarray:
    level = np.zeros(len(words))
    if m.how == LEVEL:
        level = words[:, 5].view(np.float32).astype(np.float64)
    elif m.how == GRADIENTS:
        with np.errstate(divide="ignore"):
            level = np.log2(steps(m, words).max(axis=0))
    level = np.clip(level + m.bias, *m.clamp)
    return np.clip(level, 0, m.levels - 1)


def at_levels(m: Mipmap, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each level reads, and its error: [level, thread, channel], [level, thread]."""
    found = []
    for k in range(m.levels):
        model = Model(m.level(k), m.texels(k), words)
        found.append(model.linear() if m.texture.filter == "linear" else model.point())
    return np.array([value for value, _ in found]), np.array([error for _, error in found])


def integer_levels(m: Mipmap, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates are clamped, and a level that there is not reads 0."""
    out = np.zeros((len(words), 4))
    for k in range(m.levels):
        inside = words.copy()
        for d, size in enumerate(m.level(k).shape[::-1][: m.rank]):
            inside[:, d] = np.clip(words[:, d].view(np.int32), 0, size - 1)
        value, _ = Model(m.level(k), m.texels(k), inside).fetch()
        out = np.where((words[:, 5] == k)[:, None], value, out)
    return out, np.zeros(len(words))


def model(m: Mipmap, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What is read, and the error that the number of bits allows; NaN: rounding decides."""
    if m.how == INTEGER_LEVEL:
        return integer_levels(m, words)
    level, lanes = chosen_level(m, words), np.arange(len(words))
    value, error = at_levels(m, words)
    if not m.linear_levels:
        nearest = np.floor(level + 0.5).astype(int)
        tie = np.abs(level - np.floor(level) - 0.5) <= STEP
        return value[nearest, lanes], np.where(tie, np.nan, error[nearest, lanes])
    low = np.floor(level).astype(int)
    high, weight = np.minimum(low + 1, m.levels - 1), level - low
    near, far = value[low, lanes], value[high, lanes]
    mixed = near + (far - near) * weight[:, None]
    # a level that is just off a whole one may be that: the errors of the levels around it count
    around = [np.clip(low + k, 0, m.levels - 1) for k in (-1, 0, 1)]
    spread = np.abs(np.diff([value[k, lanes] for k in around], axis=0)).max(axis=(0, 2))
    bound = np.maximum(error[low, lanes], error[high, lanes])
    return mixed, bound + STEP * spread


def is_near(m: Mipmap, out: np.ndarray, value: np.ndarray, error: np.ndarray) -> np.ndarray:
    t = m.texture
    if t.dtype[0] in "iu" and t.read == "element":
        return (out if t.dtype[0] == "u" else out.view(np.int32)) == value
    rounding = 2.0**-23 * np.abs(value)
    return np.abs(out.view(np.float32) - value) <= error[:, None] + rounding


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Random mipmaps, and what the emulator reads of them."""
    seed = random.randrange(1 << 20)
    file = tmp_path_factory.mktemp("mipmaps") / "out.npz"
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(DRIVER.parent),
        "SMEMKERN_RUN_DEVICE": emulated_device("h100").described(),
    }
    command = [sys.executable, HERE / "mipmap_cases.py", str(seed), str(CASES), file]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (seed, done.stderr)
    found = np.load(file)
    return seed, [(random_mipmap(seed, k), found[f"arr_{k}"]) for k in range(CASES)]


def test_samples_are_those_of_the_model(samples):
    seed, cases = samples
    compared = dict.fromkeys((BASE, LEVEL, GRADIENTS, INTEGER_LEVEL), 0)
    for m, out in cases:
        value, error = model(m, m.words())
        known = ~np.isnan(error)
        wrong = ~is_near(m, out, value, error)[known]
        assert not wrong.any(), (seed, m, np.argwhere(wrong)[:3])
        compared[m.how] += known.sum()
    assert all(n > 500 for n in compared.values()), (seed, compared)


def test_levels_differ(samples):
    """A model that always takes level 0 is wrong for most cases."""
    _, cases = samples
    wrong = 0
    for m, out in cases:
        value, error = at_levels(m, m.words())
        known = ~np.isnan(error[0])
        wrong += not is_near(m, out, value[0], error[0])[known].all()
    assert wrong > CASES // 3


WRONG = """
import sys
sys.path[:0] = VALIDATION
from textures import ArrayDescription, Resource, Sampling
def create(width, height=0, depth=0, levels=99, channels=1, flags=0, format=32):
    m = c_void_p()
    form = ArrayDescription(width, height, depth, format, channels, flags)
    code = d.cuMipmappedArrayCreate(byref(m), byref(form), levels)
    return code or m
def levels(m):
    n, a = 0, c_void_p()
    while not d.cuMipmappedArrayGetLevel(byref(a), m, n):
        n += 1
    return n
def texture(m, **fields):
    resource, handle = Resource(kind=1), c_uint64()
    resource.memory.array = m
    sampling = Sampling(**{"flags": 2, **fields})
    code = d.cuTexObjectCreate(byref(handle), byref(resource), byref(sampling), None)
    return code or handle
"""


def test_wrong_calls():
    code = (
        f"VALIDATION = [{str(HERE.parents[1] / 'validation')!r}, "
        f"{str(HERE.parents[1] / 'tests' / 'emu')!r}]\n" + WRONG
    )
    code += """
print(*[levels(create(*size)) for size in ((1,), (2,), (5, 3), (3, 17), (4, 4, 33), (64, 64))])
print(levels(create(64, 64, levels=3)), levels(create(64, levels=0)),
      levels(create(8, 0, 99, flags=1)), levels(create(8, 8, 6, flags=4)))
print(create(0), create(1, channels=3), create(1, format=5), create(40000), create(8, 40000),
      create(8, 9, 6, flags=4), create(8, 8, 5, flags=4), create(8, 8, flags=1),
      d.cuMipmappedArrayCreate(None, None, 1))
m, a, out = create(8, 8), c_void_p(), (c_size_t * 8)()
print(d.cuMipmappedArrayGetLevel(byref(a), m, 4), d.cuMipmappedArrayGetLevel(None, m, 0),
      d.cuMipmappedArrayGetLevel(byref(a), c_void_p(16), 0))
assert not d.cuMipmappedArrayGetLevel(byref(a), m, 1)
print(d.cuArrayDestroy(a), d.cuMipmappedArrayDestroy(a), d.cuArrayDestroy(m))
form = ArrayDescription()
assert not d.cuArray3DGetDescriptor_v2(byref(form), a)
print(form.width, form.height, form.depth)
print(d.cuMipmappedArrayGetMemoryRequirements(byref(out), m, 0), out[0], out[1])
print(texture(m, flags=0), texture(m, anisotropy=2), texture(None), texture(c_void_p(16)),
      texture(create(8, format=3), mipmap_filter=1), texture(m, mipmap_filter=2))
handle = texture(m)
print(d.cuMipmappedArrayDestroy(m), d.cuMipmappedArrayDestroy(m),
      d.cuMipmappedArrayGetLevel(byref(a), m, 0), d.cuArrayDestroy(a))
print(d.cuTexObjectDestroy(handle))
"""
    sizes, counts, made, got, freed, form, needs, made_of, destroyed, [last] = map(
        str.split, printed(code, lines=True)
    )
    assert sizes == ["1", "2", "3", "5", "6", "7"] and counts == ["3", "1", "4", "4"]
    assert made == ["1"] * 9 and got == ["1", "1", "400"] and freed == ["400"] * 3
    assert form == ["4", "4", "0"] and needs == ["0", "65536", "65536"]
    assert made_of == ["1", "801", "1", "400", "1", "1"]
    assert destroyed == ["0", "400", "400", "400"] and last == "0"


PYRAMID = """
// Each level is the mean of the one before; then samples by level and by gradients.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
__global__ void halve(cudaTextureObject_t from, cudaSurfaceObject_t to, int n) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    // between four texels the linear filter is their mean
    if (x < n && y < n) surf2Dwrite(tex2D<float>(from, (x + .5f) / n, (y + .5f) / n), to, x * 4, y);
}
__global__ void sample(cudaTextureObject_t t, float *out, float level, float step) {
    const float x = (threadIdx.x + .5f) / blockDim.x;
    out[threadIdx.x] = tex2DLod<float>(t, x, .5f, level);
    out[blockDim.x + threadIdx.x] =
        tex2DGrad<float>(t, x, .5f, make_float2(step, 0), make_float2(0, step / 2));
    out[2 * blockDim.x + threadIdx.x] = tex2D<float>(t, x, .5f);
}
int main() {
    const int n = 64, levels = 7;
    std::vector<float> x(n * n);
    double mean = 0;
    for (float &one : x) mean += (one = rand() % 1000) / double(n * n);
    cudaChannelFormatDesc form = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    cudaArray_t level, last;
    cudaTextureObject_t texture;
    cudaSurfaceObject_t surface;
    cudaMallocMipmappedArray(&mipmap, &form, make_cudaExtent(n, n, 0), levels,
                             cudaArraySurfaceLoadStore);
    cudaResourceDesc resource = {};
    cudaTextureDesc sampling = {};
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeClamp;
    sampling.normalizedCoords = 1;
    sampling.filterMode = cudaFilterModeLinear;
    for (int k = 0; k < levels; k++) {
        cudaGetMipmappedArrayLevel(&level, mipmap, k);
        if (k == 0)
            cudaMemcpy2DToArray(level, 0, 0, x.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice);
        if (k > 0) {
            const int size = n >> k;
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = last;
            cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
            resource.res.array.array = level;
            cudaCreateSurfaceObject(&surface, &resource);
            const dim3 blocks((size + 15) / 16, (size + 15) / 16);
            halve<<<blocks, dim3(16, 16)>>>(texture, surface, size);
            cudaDestroySurfaceObject(surface);
            cudaDestroyTextureObject(texture);
        }
        last = level;
    }
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    sampling.mipmapFilterMode = cudaFilterModeLinear;
    sampling.maxMipmapLevelClamp = levels - 1;
    cudaCreateTextureObject(&texture, &resource, &sampling, nullptr);
    float *out, one, back[192], row[64];
    cudaMalloc(&out, sizeof back);
    cudaMemcpy2DFromArray(&one, 4, last, 0, 0, 4, 1, cudaMemcpyDeviceToHost);
    bool right = fabs(one - mean) < 1;
    sample<<<1, 64>>>(texture, out, 6, 1);  // a step over the texture: its last level
    cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
    for (int k = 0; k < 64; k++) {
        right &= back[k] == one && back[64 + k] == one;
        right &= fabs(back[128 + k] - (x[31 * n + k] + x[32 * n + k]) / 2) < 4;
    }
    cudaGetMipmappedArrayLevel(&level, mipmap, 5);  // of 2 by 2 texels
    cudaMemcpy2DFromArray(row, 8, level, 0, 0, 8, 2, cudaMemcpyDeviceToHost);
    sample<<<1, 2>>>(texture, out, 5.5f, 1 / 2.f);
    cudaMemcpy(back, out, 6 * 4, cudaMemcpyDeviceToHost);
    for (int k = 0; k < 2; k++) {
        const double here = (row[k] + row[2 + k]) / 2.;
        right &= fabs(back[k] - (here + one) / 2) < 1e-2 && fabs(back[2 + k] - here) < 1e-2;
    }
    cudaDestroyTextureObject(texture);
    right &= !cudaFreeMipmappedArray(mipmap) && !cudaFree(out);
    puts(right ? "PASS" : "FAIL");
}
"""


def test_a_program_that_makes_its_levels(run_program, tmp_path):
    program = run_programs.compiled(tmp_path, "pyramid", "-arch=sm_80", text=PYRAMID)
    status, out, err = run_program(program)
    assert (status, err) == (0, "") and out.startswith("PASS\n"), out
    assert "2 kernels, 8 launches: 0 hazards, 0 wrong calls, 0 unsupported calls, 0 leaks" in out
