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
    sample: int = 0  # compile only so many files, drawn with `seed`; 0: all
    seed: int = SEED
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

FRESH = 223561  # drawn for the suites below; see docs/public-suites.md, "At first sight"
RELAXED = ("--expt-relaxed-constexpr", "--extended-lambda")
# What CUDA 13 no longer has, so that older sources compile.
OLD = (
    "-DcudaThreadSynchronize=cudaDeviceSynchronize",
    "-DcudaThreadExit=cudaDeviceReset",
    "-DclockRate=warpSize",
    "-DmemoryClockRate=warpSize",
)

# Suites that the emulator was not written with.
UNSEEN = (
    Suite("gpuocelot PTX", "gtcasl/gpuocelot", files=("**/*.ptx",)),
    Suite("openptxas", "garrick99/openptxas", files=("**/*.ptx",)),
    Suite("ptx-90-parser", "jialunzhang-psu/ptx-90-parser", files=("**/*.ptx",)),
    Suite("CuAssembler", "cloudcores/CuAssembler", files=("**/*.ptx", "**/*.cu")),
    Suite("jcuda-samples", "jcuda/jcuda-samples", files=("**/*.ptx", "**/*.cu")),
    Suite("rust-cuda", "Rust-GPU/rust-cuda", files=("**/*.ptx",)),
    Suite("libptx", "xeno-by/libptx", files=("**/*.ptx",)),
    Suite(
        "HeCBench",
        "ORNL/HeCBench",
        files=("src/*-cuda/main.cu",),
        include=("src/include",),
        options=RELAXED,
        sample=120,
        seed=FRESH,
    ),
    Suite("Rodinia", "yuhc/gpu-rodinia", include=("cuda/common", "common/inc"), options=OLD),
    Suite("cuda_programming", "CoffeeBeforeArch/cuda_programming"),
    Suite("Learn-CUDA-Programming", "PacktPublishing/Learn-CUDA-Programming"),
    Suite("CUDA-Programming", "brucefan1983/CUDA-Programming"),
    Suite("code-samples", "NVIDIA-developer-blog/code-samples"),
    Suite("How_to_optimize_in_GPU", "Liu-xiandong/How_to_optimize_in_GPU"),
    Suite("how-to-optim-algorithm", "BBuf/how-to-optim-algorithm-in-cuda"),
    Suite("CUDA_Freshman", "Tony-Tan/CUDA_Freshman", include=("include",)),
    Suite("lectures", "gpu-mode/lectures"),
    Suite("PMPP", "R100001/Programming-Massively-Parallel-Processors"),
    Suite("CUDA-C", "tgautam03/CUDA-C", include=(".", "include")),
    Suite("PolyBench", "sgrauerg/polybenchGpu", include=("CUDA/utilities", "common"), options=OLD),
    Suite("Parboil", "abduld/Parboil", include=("common/include",)),
    Suite(
        "SHOC",
        "vetter/shoc",
        include=("src/common", "src/cuda/common", "src/cuda/include"),
        options=OLD,
    ),
    Suite("Altis", "utcs-scea/altis", include=("src/common", "src/cuda/common")),
    Suite("cuda_hgemm", "Bruce-Lee-LY/cuda_hgemm", include=("src/common", "src", ".")),
    Suite("Turing SGEMM", "yzhaiustc/Optimizing-SGEMM-on-NVIDIA-Turing-GPUs"),
    Suite("NVIDIA_SGEMM_PRACTICE", "wangzyon/NVIDIA_SGEMM_PRACTICE", include=("src",)),
    Suite("DissectingTensorCores", "sunlex0717/DissectingTensorCores", options=OLD),
    Suite("bitsandbytes", "bitsandbytes-foundation/bitsandbytes", include=("csrc",)),
    Suite(
        "ThunderKittens",
        "HazyResearch/ThunderKittens",
        files=("kernels/**/*.cu", "tests/**/*.cu"),
        without=("b200", "b300", "/parallel/", "baselines"),
        include=("include", "prototype", "tests", "tests/testing_commons"),
        options=("-DKITTENS_HOPPER", "-DKITTENS_SM90", "-std=c++20", *RELAXED),
        sample=40,
        seed=FRESH,
    ),
    Suite(
        "CuTe unit tests",
        "NVIDIA/cutlass",
        files=("test/unit/cute/**/*.cu",),
        without=("cooperative_gemm",),  # takes a compiler half an hour
        include=("include", "tools/util/include", "test/unit/common"),
        options=("--expt-relaxed-constexpr", "-DCUTLASS_NVCC_ARCHS=90a"),
    ),
)

# How many of the kernels decoded, and of how many, when the emulator saw them first: commit
# cc594ade369b, before any change for their sake.
FIRST_LOOK = {
    "gpuocelot PTX": (550, 818),
    "openptxas": (49, 49),
    "ptx-90-parser": (254, 254),
    "CuAssembler": (4, 4),
    "jcuda-samples": (8, 8),
    "rust-cuda": (1, 1),
    "libptx": (0, 1),
    "HeCBench": (270, 270),
    "Rodinia": (35, 35),
    "cuda_programming": (22, 22),
    "Learn-CUDA-Programming": (83, 85),
    "CUDA-Programming": (57, 57),
    "code-samples": (75, 75),
    "How_to_optimize_in_GPU": (17, 17),
    "how-to-optim-algorithm": (184, 184),
    "CUDA_Freshman": (91, 91),
    "lectures": (24, 24),
    "PMPP": (107, 107),
    "CUDA-C": (11, 11),
    "PolyBench": (90, 90),
    "Parboil": (42, 42),
    "SHOC": (66, 66),
    "Altis": (355, 355),
    "cuda_hgemm": (18, 18),
    "Turing SGEMM": (11, 11),
    "NVIDIA_SGEMM_PRACTICE": (7, 7),
    "DissectingTensorCores": (7, 7),
    "bitsandbytes": (28, 28),
    "ThunderKittens": (17, 17),
    "CuTe unit tests": (62, 62),
}
