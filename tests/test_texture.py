"""smemkern.Texture and Surface: their arguments, kernels that use them, and mistakes with them."""

from __future__ import annotations

import numpy as np
import pytest
from texture_inputs import HEADER, kernel

import smemkern

KERNELS = r"""
extern "C" __global__ void resample(float *out, cudaTextureObject_t t, int width, int height,
                                    float step) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        out[y * width + x] = tex2D<float>(t, x * step + .5f, y * step + .5f);
}
// Each layer and plane of a volume, through a table of colours.
extern "C" __global__ void volume(float4 *out, cudaTextureObject_t volume,
                                  cudaTextureObject_t colours, int n) {
    int x = threadIdx.x, y = threadIdx.y;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int z = 0; z < n; z++) {
        float density = tex3D<float>(volume, (x + .5f) / n, (y + .5f) / n, (z + .5f) / n);
        float4 colour = tex1D<float4>(colours, density);
        sum.x += colour.x; sum.y += colour.y; sum.z += colour.z; sum.w += colour.w;
    }
    out[y * n + x] = sum;
}
extern "C" __global__ void invert(cudaSurfaceObject_t s, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    uchar4 v = surf2Dread<uchar4>(s, x * 4, y);
    v.x = 255 - v.x;
    surf2Dwrite(v, s, x * 4, y);
}
extern "C" __global__ void same_element(cudaSurfaceObject_t s, int factor) {
    surf1Dwrite<int>(factor * (int)threadIdx.x, s, 4 * (threadIdx.x / 2));
}
extern "C" __global__ void write_line(cudaSurfaceObject_t s, int scale) {
    surf1Dwrite<int>(1, s, scale * (int)threadIdx.x);
}
extern "C" __global__ void fetch(short *out, cudaTextureObject_t t) {
    out[threadIdx.x] = tex1Dfetch<short>(t, threadIdx.x);
}
"""
REFERENCE = (
    HEADER
    + """.global .texref line;
.global .surfref result;
.visible .entry copy()
{
    .reg .b32 %i, %x, %v, %r<3>;
    mov.u32 %i, %tid.x;
    shl.b32 %x, %i, 2;
    tex.1d.v4.u32.s32 {%v, %r0, %r1, %r2}, [line, {%i}];
    sust.b.1d.b32.trap [result, {%x}], %v;
    ret;
}
.visible .entry by_address(.param .u64 out)
{
    .reg .b64 %t, %out;
    .reg .b32 %i, %v, %r<3>;
    ld.param.u64 %out, [out];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %out, %i, 4, %out;
    mov.u64 %t, line;
    tex.1d.v4.u32.s32 {%v, %r0, %r1, %r2}, [%t, {%i}];
    st.global.u32 [%out], %v;
    ret;
}
"""
)
PARAMETER = (
    HEADER
    + """.visible .entry of_parameter(.param .u64 out, .param .texref given)
{
    .reg .b64 %out;
    .reg .b32 %i, %v, %r<3>;
    ld.param.u64 %out, [out];
    mov.u32 %i, %tid.x;
    mad.wide.u32 %out, %i, 4, %out;
    tex.1d.v4.u32.s32 {%v, %r0, %r1, %r2}, [given, {%i}];
    st.global.u32 [%out], %v;
    ret;
}
"""
)


@pytest.fixture
def rng():
    seed = int(np.random.default_rng().integers(1 << 32))
    print("seed", seed)
    return np.random.default_rng(seed)


def sample_kernel() -> smemkern.Kernel:
    body = "tex.1d.v4.u32.s32 {%d0, %d1, %d2, %d3}, [%t, {%c0}];"
    return smemkern.Kernel(kernel(body), "sample")


def read_line(texture, n: int, device: str = "emu") -> np.ndarray:
    """The first n texels of a 1-D texture, as words."""
    words = np.zeros((128, 8), np.uint32)
    words[:, 0] = np.arange(128)
    out = np.zeros((128, 4), np.uint32)
    sample_kernel()(1, 128, texture, words, out, device=device)
    return out[:n]


# ---- kernels ----


def test_bilinear_resampling(device, rng, nvrtc):
    image = rng.random((20, 30), np.float32)
    out = np.zeros((40, 60), np.float32)
    texture = smemkern.Texture(image, filter="linear")
    smemkern.Kernel(KERNELS, "resample")((4, 40), 16, out, texture, 60, 40, 0.5, device=device)
    assert (out[::2, ::2] == image).all()
    between = (image[:, 1:].astype(np.float64) + image[:, :-1]) / 2
    np.testing.assert_allclose(out[::2, 1:-1:2], between, rtol=1e-6)


def test_volume_through_a_table(device, rng, nvrtc):
    n = 8
    density = rng.integers(0, 256, (n, n, n), np.uint8)
    table = rng.random((256, 4), np.float32)
    out = np.zeros((n, n, 4), np.float32)
    smemkern.Kernel(KERNELS, "volume")(
        1,
        (n, n),
        out,
        smemkern.Texture(density, normalized=True, read="normalized_float"),
        smemkern.Texture(table, channels=4, normalized=True),
        n,
        device=device,
    )
    # 255 / 255 is the end of the table, which clamps
    places = np.minimum((density / 255 * 256).astype(int), 255)
    np.testing.assert_allclose(out, table[places].sum(axis=0), rtol=1e-5)


def test_surface_in_place(device, rng, nvrtc):
    image = rng.integers(0, 256, (9, 14, 4), np.uint8)
    expected = image.copy()
    expected[..., 0] = 255 - expected[..., 0]
    smemkern.Kernel(KERNELS, "invert")(
        (2, 2), (8, 8), smemkern.Surface(image, channels=4), 14, 9, device=device
    )
    assert (image == expected).all()


def test_a_struct_has_channels(device, rng):
    fields = np.zeros(10, [("x", np.int16), ("y", np.int16)])
    fields["x"] = rng.integers(-99, 99, 10)
    fields["y"] = rng.integers(-99, 99, 10)
    got = read_line(smemkern.Texture(fields), 10, device).view(np.int32)
    assert (got[:, 0] == fields["x"]).all() and (got[:, 1] == fields["y"]).all()


def test_a_cubemap_is_sampled_by_directions(device, rng):
    faces = rng.random((6, 1, 1), np.float32)
    directions = [(2, 1, 1), (-2, 1, 1), (1, 2, 1), (1, -2, 1), (1, 1, 2), (1, 1, -2)]
    words, out = np.zeros((128, 8), np.float32), np.zeros((128, 4), np.float32)
    words[:6, :3] = directions
    body = "tex.cube.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1, %c2, %c2}];"
    k = smemkern.Kernel(kernel(body), "sample")
    k(1, 128, smemkern.Texture(faces, cubemap=True), words, out, device=device)
    assert (out[:6, 0] == faces.ravel()).all()


def test_linear_memory(device, rng, nvrtc):
    values = rng.integers(-(2**15), 2**15, 32, np.int16)
    out = np.zeros(32, np.int16)
    smemkern.Kernel(KERNELS, "fetch")(1, 32, out, smemkern.Texture(values), device=device)
    assert (out == values).all()


def test_a_texture_shares_memory_with_a_pointer(device, rng, nvrtc):
    """The kernel's stores through the pointer reach the array; the texture has the same memory."""
    values = rng.integers(-99, 99, 32).astype(np.int16)
    before = values.copy()
    smemkern.Kernel(KERNELS, "fetch")(1, 32, values, smemkern.Texture(values), device=device)
    assert (values == before).all()


# ---- references ----


def test_references_by_name(device, rng):
    values = rng.integers(0, 1 << 32, 32, np.uint32)
    out = np.zeros(32, np.uint32)
    given = {"line": smemkern.Texture(values), "result": smemkern.Surface(out)}
    smemkern.Kernel(REFERENCE, "copy")(1, 32, textures=given, device=device)
    assert (out == values).all()
    out[:] = 0
    t = smemkern.trace(smemkern.Kernel(REFERENCE, "copy"), 1, 32, textures=given)
    assert (out == values).all() and not t.hazards


def test_address_of_a_reference(device, rng):
    values = rng.integers(0, 1 << 32, 32, np.uint32)
    out = np.zeros(32, np.uint32)
    given = {"line": smemkern.Texture(values)}
    smemkern.Kernel(REFERENCE, "by_address")(1, 32, out, textures=given, device=device)
    assert (out == values).all()


def test_reference_as_a_parameter(rng):
    """Driver 580 loads no module with such a parameter, though ptxas takes it."""
    values = rng.integers(0, 1 << 32, 32, np.uint32)
    out = np.zeros(32, np.uint32)
    smemkern.Kernel(PARAMETER)(1, 32, out, smemkern.Texture(values), device="emu")
    assert (out == values).all()


def test_a_reference_that_is_not_bound():
    k = smemkern.Kernel(REFERENCE, "copy")
    line = smemkern.Texture(np.zeros(32, np.uint32))
    with pytest.raises(smemkern.LaunchError, match=r"reference 'line' is not bound.*textures="):
        k(1, 32, device="emu")
    with pytest.raises(smemkern.LaunchError, match="reference 'result' is not bound"):
        k(1, 32, textures={"line": line}, device="emu")
    with pytest.raises(ValueError, match="no .texref or .surfref variable 'other'"):
        k(1, 32, textures={"line": line, "other": line}, device="emu")


def test_handles_in_memory(device, rng, nvrtc):
    """Textures that the kernel selects by an index, and one in a struct."""
    source = """
    struct Scene { cudaTextureObject_t first; int scale; };
    extern "C" __global__ void pick(int *out, const cudaTextureObject_t *table, Scene scene) {
        int i = threadIdx.x;
        out[i] = scene.scale * tex1Dfetch<int>(scene.first, i) + tex1Dfetch<int>(table[i % 3], i);
    }"""
    lines = rng.integers(-99, 99, (4, 32)).astype(np.int32)
    textures = [smemkern.Texture(line) for line in lines]
    table = np.array([t.handle for t in textures[1:]], np.uint64)
    scene = np.zeros(1, np.dtype([("first", "u8"), ("scale", "i4")], align=True))
    scene[0] = textures[0].handle, 100
    out = np.zeros(32, np.int32)
    k = smemkern.Kernel(source, "pick")
    before = table.copy(), scene.copy()
    k(1, 32, out, table, scene, textures=textures, device=device)
    picked = lines[1 + np.arange(32) % 3, np.arange(32)]
    assert (out == 100 * lines[0] + picked).all()
    assert (table == before[0]).all() and (scene == before[1]).all()
    with pytest.raises(smemkern.LaunchError, match="no texture with the handle"):
        k(1, 32, out, table, scene, textures=textures[:2], device="emu")


@pytest.mark.parametrize("given", [3, [1], {"line": np.zeros(4)}, {3: None}])
def test_textures_that_are_no_textures(given):
    k = smemkern.Kernel(REFERENCE, "copy")
    with pytest.raises(TypeError, match="textures"):
        k(1, 32, textures=given, device="emu")


def test_automatic_device_of_a_texture(rng, nvrtc):
    """None is the GPU, if there is one."""
    image = rng.random((20, 30), np.float32)
    results = []
    for device in (None, "emu"):
        out = np.zeros((40, 60), np.float32)
        texture = smemkern.Texture(image, filter="linear")
        smemkern.Kernel(KERNELS, "resample")((4, 40), 16, out, texture, 60, 40, 0.3, device=device)
        results.append(out)
    assert (results[0].view(np.uint32) == results[1].view(np.uint32)).all()


# ---- mistakes in kernels ----


def test_unknown_handles():
    words, out = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)
    k = sample_kernel()
    for handle in (0, 5, 1 << 63, 7 << 40):
        with pytest.raises(smemkern.LaunchError, match="no texture with the handle 0x"):
            k(1, 128, handle, words, out, device="emu")


def test_a_handle_is_no_pointer():
    """The number that a kernel receives addresses no memory."""
    k = smemkern.Kernel(kernel("ld.global.u32 %d0, [%t];"), "sample")
    texture = smemkern.Texture(np.zeros(4, np.float32))
    words, out = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)
    with pytest.raises(smemkern.LaunchError, match="no memory of this launch has that address"):
        k(1, 128, texture, words, out, device="emu")


def test_a_surface_is_no_texture(nvrtc):
    k, texture = smemkern.Kernel(KERNELS, "write_line"), smemkern.Texture(np.zeros(4, np.int32))
    with pytest.raises(smemkern.LaunchError, match=r"accesses a texture.*given a smemkern.Surface"):
        read_line(smemkern.Surface(np.zeros(4, np.uint32)), 4)
    with pytest.raises(smemkern.LaunchError, match=r"accesses a surface.*given a smemkern.Texture"):
        k(1, 1, texture, 4, device="emu")


def test_another_geometry():
    with pytest.raises(smemkern.LaunchError, match=r"a .1d instruction accesses a .2d texture"):
        read_line(smemkern.Texture(np.zeros((4, 4), np.uint32)), 4)
    with pytest.raises(smemkern.LaunchError, match=r"a .1d instruction accesses a .a1d texture"):
        read_line(smemkern.Texture(np.zeros((4, 4), np.uint32), layered=True), 4)


def test_surface_faults(nvrtc):
    k = smemkern.Kernel(KERNELS, "write_line")
    array = np.zeros(32, np.int32)
    with pytest.raises(smemkern.LaunchError, match="outside of a surface, at x = 128 bytes"):
        k(1, 64, smemkern.Surface(array), 4, device="emu")
    with pytest.raises(smemkern.LaunchError, match="not a multiple of 4; x of suld.b"):
        k(1, 32, smemkern.Surface(array), 1, device="emu")
    assert not array.any()
    hazards = smemkern.trace(k, 1, 64, smemkern.Surface(array), 4).hazards
    assert [h.kind for h in hazards] == ["out-of-bounds"]


@pytest.mark.parametrize(
    "header", ["__nv_nvrtc_builtin_header.h", "/cuda/texture_fetch_functions.h"]
)
def test_a_fault_in_a_builtin_header_names_the_call(header):
    """tex2D and others are inlined from headers that users do not have."""
    body = f"""
.file 1 "image.cu"
.file 2 "{header}"
.file 3 "mine.h"
.loc 1 12 5
.loc 3 40 1, inlined_at 1 12 5
.loc 2 5349 1, inlined_at 3 40 1
.loc 2 5283 1, inlined_at 2 5349 1
tex.1d.v4.u32.s32 {{%d0, %d1, %d2, %d3}}, [%t, {{%c0}}];
.loc 1 13 5
mov.u32 %d0, %d1;
"""
    k = smemkern.Kernel(kernel(body), "sample")
    words, out = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)
    texture = smemkern.Texture(np.zeros((4, 4), np.uint32))
    with pytest.raises(smemkern.LaunchError, match=r"mine.h:40: a .1d instruction accesses"):
        k(1, 128, texture, words, out, device="emu")


def test_a_surface_fault_names_the_call(nvrtc):
    k = smemkern.Kernel(KERNELS, "write_line")
    line = 1 + KERNELS[: KERNELS.index("surf1Dwrite<int>(1")].count("\n")
    with pytest.raises(smemkern.LaunchError, match=rf"kernel.cu:{line}: an access outside"):
        k(1, 64, smemkern.Surface(np.zeros(32, np.int32)), 4, device="emu")


PATHS = """
#define st(v) (p[0] = v)
#define sust(v) surf1Dwrite<int>(v, s, 0)
#define ld (*(volatile int *)p)
#define suld surf1Dread<int>(s, 0)
#define tex tex1Dfetch<int>(t, 0)
extern "C" __global__ void k(int *p, cudaSurfaceObject_t s, cudaTextureObject_t t, int *out,
                             volatile int *flag) {
    const int reader = ACROSS == 2 ? blockIdx.x == 1 : ACROSS ? threadIdx.x == 32 : 1;
    const int writer = ACROSS ? !reader && threadIdx.x == 0 : 1;
    if (writer) WRITE(7);
    if (ACROSS == 1) __syncthreads();
    if (ACROSS == 2 && writer) __threadfence(), *flag = 1;
    if (ACROSS == 2 && reader) { while (!*flag); __threadfence(); }
    if (reader && threadIdx.x % 32 == 0) out[0] = READ;
}"""


@pytest.mark.parametrize("across", [0, 1, 2], ids=["thread", "block", "blocks"])
@pytest.mark.parametrize("read", ["ld", "suld", "tex"])
@pytest.mark.parametrize("write", ["st", "sust"])
def test_reads_by_another_path_than_the_write(nvrtc, write, read, across):
    """No fence of PTX orders pointers, surfaces and textures; each block has its own surfaces."""
    defines = (f"-DWRITE={write}", f"-DREAD={read}", f"-DACROSS={across}")
    k = smemkern.Kernel(PATHS, "k", defines)
    array, out, flag = np.zeros(8, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    arguments = (array, smemkern.Surface(array), smemkern.Texture(array), out, flag)
    hazards = smemkern.trace(k, 1 + (across == 2), 64 if across else 1, *arguments).hazards
    ordered = (write, read) == ("st", "ld") or ((write, read) == ("sust", "suld") and across < 2)
    assert out[0] == 7
    assert [h.kind for h in hazards] == ([] if ordered else ["proxy"])
    if not ordered:
        assert "only the end of the kernel makes the write visible" in hazards[0].message


def test_reads_of_what_an_earlier_launch_wrote(nvrtc):
    array, out, flag = np.zeros(8, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    arguments = (array, smemkern.Surface(array), smemkern.Texture(array), out, flag)
    for write, read in (("sust", "out[0]"), ("(void)", "tex")):
        k = smemkern.Kernel(PATHS, "k", (f"-DWRITE={write}", f"-DREAD={read}", "-DACROSS=0"))
        assert not smemkern.trace(k, 1, 1, *arguments).hazards
    assert out[0] == 7


def test_an_unordered_read_of_a_texture_is_a_race(nvrtc):
    source = PATHS.replace("if (ACROSS == 1) __syncthreads();", "")
    k = smemkern.Kernel(source, "k", ("-DWRITE=st", "-DREAD=tex", "-DACROSS=1"))
    array, out, flag = np.zeros(8, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    arguments = (array, smemkern.Surface(array), smemkern.Texture(array), out, flag)
    assert [h.kind for h in smemkern.trace(k, 1, 64, *arguments).hazards] == ["RAW"]


def test_races_of_surface_stores(nvrtc):
    k = smemkern.Kernel(KERNELS, "same_element")
    array = np.zeros(32, np.int32)
    hazards = smemkern.trace(k, 1, 32, smemkern.Surface(array), 1).hazards
    assert [h.kind for h in hazards] == ["WAW"] and hazards[0].argument == 0
    assert not smemkern.trace(k, 1, 32, smemkern.Surface(array), 0).hazards
    assert smemkern.trace(k, 1, 32, smemkern.Surface(array), 0, equal_writes=True).hazards


@pytest.mark.parametrize(
    "body",
    [
        "tex.2d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1}], {%c2, %c3}, %c4;",
        "tex.2dms.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1, %c2, %c3}];",
        "tex.cube.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1, %c2, %c3}];",
        "tex.1d.v2.f32.s32 {%d0, %d1}, [%t, {%c0}];",
        "tex.1d.v4.f64.s32 {%d0, %d1, %d2, %d3}, [%t, {%c0}];",
        "tex.1d.v4.u32.s32 {%d0, %d1, %d2, %d3}, [%t+8, {%c0}];",
        "tld4.r.3d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1, %c2, %c3}];",
        "tld4.r.2d.v4.f32.s32 {%d0, %d1, %d2, %d3}, [%t, {%c0, %c1}];",
        "txq.squeeze.b32 %d0, [%t];",
        "suld.b.2d.b32 %d0, [%t, {%c0, %c1}];",
        "suld.p.2d.b32.trap %d0, [%t, {%c0, %c1}];",
        "sust.b.cube.b32.trap [%t, {%c0, %c1, %c2, %c2}], %d0;",
        "sust.p.2d.b16.trap [%t, {%c0, %c1}], %h0;",
        "sured.b.add.a1d.u32.trap [%t, {%c0, %c1}], %d0;",
        "sured.b.and.1d.u32.trap [%t, {%c0}], %d0;",
        "sured.p.add.1d.u32.trap [%t, {%c0}], %d0;",
    ],
)
def test_forms_that_are_refused(body):
    """ptxas refuses them too, except a comparison of depths and multisampling."""
    k = smemkern.Kernel(kernel(body), "sample")
    words, out = np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)
    texture = smemkern.Texture(np.zeros((4, 4), np.float32))
    with pytest.raises(smemkern.UnsupportedInstructionError, match=body.split()[0]):
        k(1, 128, texture, words, out, device="emu")


# ---- mistakes in Python ----


def zeros(*shape: int, dtype=np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: smemkern.Texture([1.0]), TypeError, "must be numpy.ndarray"),
        (lambda: smemkern.Texture(zeros(4, dtype=np.float64)), TypeError, "not of float64"),
        (lambda: smemkern.Texture(zeros(4, dtype=np.int64)), TypeError, "not of int64"),
        (lambda: smemkern.Texture(zeros(4, dtype=bool)), TypeError, "not of bool"),
        (lambda: smemkern.Texture(zeros(4, dtype=object)), TypeError, "not of object"),
        (lambda: smemkern.Texture(zeros(4, dtype=">f4")), TypeError, "native byte order"),
        (lambda: smemkern.Texture(zeros(4, 3), channels=3), ValueError, "1, 2 or 4, not 3"),
        (lambda: smemkern.Texture(zeros(4, 3), channels=4), ValueError, "channels=4, but"),
        (lambda: smemkern.Texture(zeros(4, dtype="f4,f4,f4")), ValueError, "1, 2 or 4 channels"),
        (lambda: smemkern.Texture(zeros(4, dtype="f4,i4")), TypeError, "struct"),
        (lambda: smemkern.Texture(zeros(4, dtype="f8,f8")), TypeError, "struct|float64"),
        (lambda: smemkern.Texture(zeros(2, 2, 2, 2)), ValueError, "1 to 3 dimensions"),
        (lambda: smemkern.Texture(zeros(2, 2, 2, 2), layered=True), ValueError, "dimensions"),
        (lambda: smemkern.Texture(np.array(1, np.float32)), ValueError, "dimensions"),
        (lambda: smemkern.Texture(zeros(0)), ValueError, "0 texels along x"),
        (lambda: smemkern.Texture(zeros(4, 0)), ValueError, "0 texels along x"),
        (lambda: smemkern.Texture(zeros(1, 1 << 18)), ValueError, "along x.*1 to 131072"),
        (lambda: smemkern.Texture(zeros(3000, 1), layered=True), ValueError, "3000 layers"),
        (lambda: smemkern.Texture(zeros(4, 4).T[1:]), ValueError, "contiguous"),
        (lambda: smemkern.Texture(zeros(5, 4, 4), cubemap=True), ValueError, "cubemap's array"),
        (lambda: smemkern.Texture(zeros(6, 4, 5), cubemap=True), ValueError, "square"),
        (lambda: smemkern.Texture(zeros(4), address="edge"), ValueError, "address must be one of"),
        (lambda: smemkern.Texture(zeros(4), address=("wrap", "wrap")), ValueError, "2 elements"),
        (lambda: smemkern.Texture(zeros(4), filter="cubic"), ValueError, "filter must be one of"),
        (lambda: smemkern.Texture(zeros(4), read="raw"), ValueError, "read must be one of"),
        (lambda: smemkern.Texture(zeros(4), read="normalized_float"), ValueError, "8 or 16 bits"),
        (lambda: smemkern.Texture(zeros(4), border=(1, 2)), ValueError, "border has 2 elements"),
        (lambda: smemkern.Texture(zeros(4), border="x"), TypeError, "number"),
        (lambda: smemkern.Texture(zeros(4), srgb=True), TypeError, "srgb"),
        (
            lambda: smemkern.Texture(zeros(4, dtype=np.uint8), filter="linear"),
            ValueError,
            'read="normalized_float"',
        ),
        (
            lambda: smemkern.Texture(zeros(4, dtype=np.int32), filter="linear"),
            ValueError,
            'filter="point"',
        ),
        (lambda: smemkern.Surface(np.frombuffer(b"1234", np.uint8)), ValueError, "read-only"),
        (lambda: smemkern.Surface(zeros(4), filter="point"), TypeError, "filter"),
    ],
)
def test_refused_textures(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_arrays_that_change(nvrtc):
    array = np.zeros(8, np.uint32)
    texture, surface = smemkern.Texture(array), smemkern.Surface(array)
    array.shape = (2, 4)
    with pytest.raises(ValueError, match="another type or shape"):
        read_line(texture, 4)
    array.shape = (8,)
    assert (read_line(texture, 8)[:, 0] == array).all()
    array.flags.writeable = False
    k = smemkern.Kernel(KERNELS, "write_line")
    with pytest.raises(ValueError, match="another type or shape"):
        k(1, 1, surface, 4, device="emu")


def test_wrong_parameters(nvrtc):
    k, texture = smemkern.Kernel(KERNELS, "write_line"), smemkern.Texture(np.zeros(4, np.float32))
    surface = smemkern.Surface(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="argument 1 is a Texture, but the kernel's parameter"):
        k(1, 1, texture, texture, device="emu")
    with pytest.raises(TypeError, match="argument 1 is a Surface, but the kernel's parameter"):
        k(1, 1, texture, surface, device="emu")


def test_shared_memory_that_begins_at_an_odd_place(nvrtc):
    line = np.zeros(40, np.int16)
    k = smemkern.Kernel(KERNELS, "fetch")
    with pytest.raises(ValueError, match="begins 2 bytes into memory that it shares"):
        k(1, 32, line, smemkern.Texture(line[1:33]), device="emu")


def test_what_they_look_like():
    image = np.zeros((3, 6, 4, 4), np.float16)
    texture = smemkern.Texture(image, cubemap=True, layered=True, filter="linear")
    assert repr(texture) == (
        "<smemkern.Texture of float16 (3, 6, 4, 4), layered, cubemap, linear filter>"
    )
    assert texture.array is image
    assert repr(smemkern.Surface(image[0, 0])) == "<smemkern.Surface of float16 (4, 4)>"
