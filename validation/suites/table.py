"""The public suites: where their repositories are, and how their files compile."""

from __future__ import annotations

import dataclasses

SEED = 11  # of the samples of suites that are too large to compile in full


@dataclasses.dataclass(frozen=True)
class Suite:
    """Files of one repository. It is expected in FOLDER/NAME, where NAME ends `repository`."""

    name: str
    repository: str  # on GitHub
    files: tuple[str, ...] = ("**/*.cu",)
    without: tuple[str, ...] = ()  # regular expressions of paths that are left out
    include: tuple[str, ...] = (".",)  # folders of headers
    options: tuple[str, ...] = ()
    sample: int = 0  # compile only so many files, drawn with SEED; 0: all
    package: str = ""  # of Python, that compiles the file
    own: bool = False  # the file is ours, in this folder; what compiles it is theirs


SUITES = (
    Suite("ZLUDA", "vosen/ZLUDA", files=("ptx/src/test/spirv_run/*.ptx",)),
    Suite("SGEMM_CUDA", "siboehm/SGEMM_CUDA", include=("src",)),
    Suite("llm.c", "karpathy/llm.c", files=("dev/cuda/*.cu",), include=("dev/cuda", ".")),
    Suite(
        "fast.cu",
        "pranjalssh/fast.cu",
        files=("*.cu",),
        options=("-DNDEBUG", "--expt-relaxed-constexpr", "--expt-extended-lambda"),
    ),
    Suite(
        "cuda-samples",
        "NVIDIA/cuda-samples",
        files=("Samples/**/*.cu",),
        include=("Common",),
        options=("-rdc=true",),
    ),
    Suite(
        "LeetCUDA",
        "xlite-dev/LeetCUDA",
        files=("kernels/**/*.cu",),
        include=("../cutlass/include",),
        options=("-DTORCH_EXTENSION_NAME=suite",),
    ),
    Suite(
        "CuTe tutorials",
        "NVIDIA/cutlass",
        files=("examples/cute/tutorial/**/*.cu",),
        without=("/blackwell/",),
        include=("include", "tools/util/include", "examples/common"),
        options=("--expt-relaxed-constexpr",),
    ),
    Suite("Triton", "triton-lang/triton", files=("triton_kernels.py",), package="triton", own=True),
    Suite(
        "Numba", "NVIDIA/numba-cuda", files=("numba_kernels.py",), package="numba-cuda", own=True
    ),
    Suite(
        "CUB",
        "NVIDIA/cccl",
        files=("cub_algorithms.cu",),
        options=("--extended-lambda",),
        own=True,
    ),
    Suite(
        "ggml",
        "ggml-org/ggml",
        files=("src/ggml-cuda/*.cu", "src/ggml-cuda/template-instances/*.cu"),
        include=("include", "src", "src/ggml-cuda"),
        options=("--expt-relaxed-constexpr", "--extended-lambda", "-use_fast_math"),
        sample=60,
    ),
)
