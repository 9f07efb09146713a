"""check and trace with PyTorch: the sources of its extensions, and its tensors."""

import numpy as np
import pytest
from kernel_texts import SOURCE

import smemkern

EXTENSION = """\
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>
#define CHECK(x) TORCH_CHECK(x.is_cuda(), "no { here")
namespace {
// A brace in a comment: {
template <typename scalar_t> __device__ scalar_t twice(scalar_t x) { return x + x; }
constexpr int FLIP = 32;
struct Shape { int n; };
}  // namespace
template <typename scalar_t> __global__ void kernel(const scalar_t *x, scalar_t *out, Shape shape) {
    __shared__ scalar_t tile[64];
    int i = threadIdx.x;
    tile[i] = x[i];
    if (i < shape.n) out[i] = twice(tile[i ^ FLIP]);
}
torch::Tensor run(torch::Tensor x);
static std::vector<int> host_only(const char *text = "}") { return {1, 2}; }
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", [&] {
        kernel<scalar_t><<<1, 64>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), Shape{64});
    });
    return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


@pytest.mark.parametrize("name, dtype", [("float", "f4"), ("double", "f8"), ("c10::Half", "f2")])
def test_extension_of_pytorch(nvrtc, random, name, dtype):
    x = random.standard_normal(64).astype(dtype)
    shape, kernel = np.array([50], "i4").tobytes(), f"kernel<{name}>"
    found = smemkern.check([EXTENSION], 1, 64, x, np.zeros_like(x), shape, name=kernel)
    assert [(h.kind, h.line, h.other_line) for h in found] == [("RAW", 15, 14)]
    fixed = EXTENSION.replace("tile[i] = x[i];", "tile[i] = x[i]; __syncthreads();")
    out = np.zeros_like(x)
    assert not smemkern.check([fixed], 1, 64, x, out, shape, name=kernel)
    inside = np.arange(64) < 50
    np.testing.assert_array_equal(out, np.where(inside, 2 * x[np.arange(64) ^ 32], 0))


ACCESSORS = """#include <torch/extension.h>
template <typename T>
__global__ void sums(const torch::PackedTensorAccessor32<T, 3, torch::RestrictPtrTraits> x,
                     torch::PackedTensorAccessor64<T, 2> out) {
    const int n = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c <= LAST) out[n][c] = x[n][0][c] + x[n][x.size(1) - 1][c];
}
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty({x.size(0), x.size(2)}, x.options());
    sums<float><<<1, 32>>>(x.packed_accessor32<float, 3, torch::RestrictPtrTraits>(),
                           out.packed_accessor64<float, 2>());
    return out;
}
"""


def test_accessors_of_pytorch(nvrtc, random):
    """A kernel that takes accessors gets arrays, with any strides but negative ones."""
    n, many = int(random.integers(1, 5)), int(random.integers(1, 60))
    whole = random.standard_normal((many, 2 * n, 7)).astype("f4")
    x = whole.T[::2, ::2]  # 4 of 7, n of 2 n, in another order of axes
    out = np.zeros((2, 4, 64), "f4")[1, :, :many]
    text = [ACCESSORS.replace("LAST", "out.size(1) - 1")]
    found = smemkern.check(text, (2, 4), 32, x, out, name="sums<float>")
    assert not found, found
    np.testing.assert_array_equal(out, x[:, 0] + x[:, -1])
    past = [ACCESSORS.replace("LAST", "out.size(1)")]
    small, to = np.ones((1, 2, 32), "f4"), np.zeros((1, 32), "f4")
    [hazard] = smemkern.check(past, 2, 32, small, to, name="sums<float>")
    assert hazard.kind == "out-of-bounds" and hazard.line == 6
    with pytest.raises(TypeError, match="argument 0 has 2 dimensions, .* an accessor of 3"):
        smemkern.check(text, 1, 32, to, to, name="sums<float>")
    with pytest.raises(TypeError, match="argument 1 is an array of float64, and not .*float, 2"):
        smemkern.check(text, 1, 32, small, to.astype("f8"), name="sums<float>")
    with pytest.raises(ValueError, match="argument 0 has a negative stride"):
        smemkern.check(text, 1, 32, small[:, ::-1], to, name="sums<float>")


def test_accessors_of_tensors(nvrtc, random):
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 2, 40)
    out = torch.zeros(3, 40)
    text = [ACCESSORS.replace("LAST", "out.size(1) - 1")]
    assert not smemkern.check(text, (2, 3), 32, x, out, name="sums<float>")
    torch.testing.assert_close(out, x[:, 0] + x[:, 1])


# Sources as load_inline takes them: PyTorch adds the header. Each with its kernel, the type of x
# and what x becomes.
INLINE = {
    "constants": (
        """__global__ void kernel(float *x, uint32_t n) {
            float best = -FLT_MAX;
            for (uint32_t i = 0; i < n; i++) best = std::max(best, fminf(x[i], INFINITY));
            __syncthreads();
            x[threadIdx.x] = best;
        }
        torch::Tensor run(torch::Tensor x) {
            TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
            const at::cuda::OptionalCUDAGuard guard(device_of(x));
            kernel<<<1, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), x.numel());
            C10_CUDA_KERNEL_LAUNCH_CHECK();
            return x;
        }""",
        None,
        "f4",
        lambda x: np.full_like(x, x.max()),
    ),
    "bfloat16": (
        """std::vector<torch::Tensor> run(std::vector<torch::Tensor> all);
        __global__ void kernel(at::BFloat16 *x, int64_t n) {
            if (threadIdx.x < n) x[threadIdx.x] = -x[threadIdx.x];
        }
        std::vector<torch::Tensor> run(std::vector<torch::Tensor> all) {
            for (auto &x : all) kernel<<<1, 64>>>(x.data_ptr<at::BFloat16>(), x.numel());
            return all;
        }""",
        None,
        "bfloat16",
        lambda x: -x,
    ),
    "a library": (
        """#include <torch/library.h>
        #include <c10/cuda/CUDAException.h>
        namespace own {
        using namespace at;
        template <typename T> __device__ T twice(T x) { return x + x; }
        template <typename T> __global__ void kernel(T *x, int n) {
            if (threadIdx.x < n) x[threadIdx.x] = twice(x[threadIdx.x]);
        }
        template <typename T> void launch(Tensor &x) {
            kernel<T><<<1, 64>>>(x.data_ptr<T>(), x.numel());
            C10_CUDA_CHECK(cudaGetLastError());
        }
        Tensor &run(Tensor &x) {
            switch (x.scalar_type()) {
                case kFloat: launch<float>(x); break;
                default: AT_ERROR("expected float");
            }
            return x;
        }
        TORCH_LIBRARY(own, m) { m.def("run(Tensor(a!) x) -> Tensor(a!)"); }
        TORCH_LIBRARY_IMPL(own, CUDA, m) { m.impl("run", &run); }
        }""",
        "own::kernel<c10::Half>",
        "f2",
        lambda x: x + x,
    ),
}


@pytest.mark.parametrize("name", INLINE)
def test_sources_of_load_inline(nvrtc, random, name):
    text, kernel, dtype, wanted = INLINE[name]
    n = int(random.integers(1, 64))
    x = random.standard_normal(n).astype(dtype)
    want = wanted(x.copy())
    threads = n if name == "constants" else 64
    assert not smemkern.check(text, 1, threads, x, n, name=kernel)
    np.testing.assert_array_equal(x, want)


@pytest.mark.long(instead="the other texts of extensions")
def test_any_text_of_an_extension(nvrtc, random):
    """Of random pieces, whole and cut: a kernel, or an error that says what is wrong."""
    pieces = [
        *EXTENSION.splitlines(),
        "}",
        "{",
        '"',
        "/*",
        "*/",
        'R"x(',
        ')x"',
        "#define X \\",
        "'",
    ]
    for _ in range(12):
        lines = [pieces[i] for i in random.integers(0, len(pieces), random.integers(1, 40))]
        text = "\n".join(["torch::Tensor f();", *lines])[: random.integers(20, 2000)]
        try:
            kernel = smemkern.Kernel(text, "kernel<float>")
        except (smemkern.CompileError, ValueError) as error:
            assert str(error).strip(), text
        else:
            assert kernel.name.startswith("_Z"), text


# ---- PyTorch's tensors ----


def test_tensors(nvrtc, random):
    torch = pytest.importorskip("torch")
    values = torch.tensor(random.standard_normal(64), dtype=torch.float32)
    subclass = type("Mine", (torch.Tensor,), {})
    clones = values.clone(), values.clone().requires_grad_(), values.clone().as_subclass(subclass)
    for x in clones:
        smemkern.check(SOURCE, 1, 64, x, 2.0, 64, name="scale<float>")
        assert torch.equal(x.detach(), 2 * values)
    bits = """#include <cuda_bf16.h>
    __global__ void twice(__nv_bfloat16 *x) { x[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }"""
    brain = values.to(torch.bfloat16)
    want = brain + brain
    assert not smemkern.check(bits, 1, 64, brain)
    assert torch.equal(brain, want)
    sparse = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match="strided tensors"):
        smemkern.check(SOURCE, 1, 64, sparse, name="reverse")
    conjugate = torch.zeros(4, dtype=torch.complex64).conj()
    with pytest.raises(ValueError, match="resolve_conj"):
        smemkern.check(SOURCE, 1, 64, conjugate, name="reverse")
    meta = torch.zeros(4, device="meta")
    with pytest.raises(ValueError, match=r"device meta, .* tensor.cpu\(\)"):
        smemkern.check(SOURCE, 1, 64, meta, name="reverse")


def test_tensors_of_triton(tri, random):
    torch = pytest.importorskip("torch")
    from triton.tools.tensor_descriptor import TensorDescriptor

    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
        x, y = (torch.tensor(random.integers(-9, 9, 500)).to(dtype) for _ in range(2))
        out = torch.zeros_like(x)
        smemkern.check(tri.axpy, 4, None, 1, x, y, out, 500, SIZE=128)
        assert torch.equal(out, x + y)
    x = torch.randn(32, 64).to(torch.float16)
    out = torch.zeros_like(x)
    maps = [TensorDescriptor.from_tensor(tensor, [8, 32]) for tensor in (x, out)]
    assert not smemkern.check(tri.doubled_tiles, (4, 2), None, *maps, 8, 32)
    assert torch.equal(out, x + x)
