"""Smaller sizes for programs that have theirs in the source.

An edit is "FILE: OLD -> NEW". OLD is text of that file, and NEW the same text with other numbers.
So sizes and repetitions can change, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

NUMBER = re.compile(r"\b\d[\w.]*")


def make(edits: Iterable[str], folder: Path) -> None:
    """Edits files of the folder. An edit without effect is an error, as the suite may change."""
    for edit in edits:
        name, change = edit.split(": ", 1)
        old, new = change.split(" -> ")
        if NUMBER.sub("", old) != NUMBER.sub("", new):
            raise ValueError(f"expected an edit that changes numbers only, found {edit!r}")
        file = folder / name
        text = file.read_text(encoding="latin-1")
        words = r"\s+".join(map(re.escape, old.split()))
        edited = new.join(re.split(rf"(?<!\w){words}(?!\w)", text))
        if edited == text:
            raise ValueError(f"expected {old!r} in {name} of {folder.name}, found no such text")
        file.write_text(edited, encoding="latin-1")


HECBENCH = {
    "ace-cuda": [
        "main.cu: DATAXSIZE 400 -> DATAXSIZE 24",
        "main.cu: DATAYSIZE 400 -> DATAYSIZE 24",
        "main.cu: DATAZSIZE 400 -> DATAZSIZE 24",
    ],
    "addBiasQKV-cuda": [
        "main.cu: batch_size = 8 -> batch_size = 2",
        "main.cu: seq_len = 1024 -> seq_len = 20",
        "main.cu: repeat = 1000 -> repeat = 1",
    ],
    "addBiasResidualLayerNorm-cuda": ["main.cu: m = 4096 -> m = 5"],
    "aligned-types-cuda": [
        "main.cu: MEM_SIZE = 50000000 -> MEM_SIZE = 50000",
        "main.cu: NUM_ITERATIONS = 1000 -> NUM_ITERATIONS = 2",
    ],
    "assert-cuda": ["main.cu: Nblocks = 1000 -> Nblocks = 3"],
    "atomicCost-cuda": ["main.cu: length = 922521600 -> length = 61440"],
    "binomial-cuda": [
        "binomialOptions.h: NUM_STEPS 2048 -> NUM_STEPS 512",
        "binomialOptions.h: MAX_OPTIONS 1024 -> MAX_OPTIONS 3",
        "binomialOptions.h: NUM_ITERATIONS 1000 -> NUM_ITERATIONS 1",
    ],
    "bitpacking-cuda": ["main.cu: 83621, 872163, 100000001 -> 4362, 8716, 16001"],
    "bitpermute-cuda": [
        "main.cu: bit_permute(27, repeat) -> bit_permute(16, repeat)",
        "main.cu: bit_permute(28, repeat) -> bit_permute(17, repeat)",
    ],
    "bspline-vgh-cuda": [
        "kernel.h: WSIZE = 12000 -> WSIZE = 6",
        "kernel.h: NSIZE = 2003 -> NSIZE = 515",
        "reference.h: cNSIZE = 2003 -> cNSIZE = 515",
    ],
    "car-cuda": [
        "main.cu: {128, 3, 480, 640, 9, 1024, 1024} -> {2, 3, 48, 65, 9, 100, 100}",
    ],
    "clink-cuda": [
        "kernel.h: N 8192 -> N 512",
        "kernel.h: SAMPLE_TEST_LEN 20000 -> SAMPLE_TEST_LEN 50",
    ],
    "concat-cuda": [
        "main.cu: seq_len = 1024 -> seq_len = 20",
        "main.cu: batch_size = 8 -> batch_size = 2",
        "main.cu: beam_size = 8 -> beam_size = 2",
    ],
    "crossEntropy-cuda": [
        "main.cu: warmup = 10 -> warmup = 1",
        "reference.h: bs = 128 -> bs = 3",
        "reference.h: H = 8732 -> H = 100",
    ],
    "d3q19-bgk-cuda": [
        "main.cu: bench_ini_iter = 1000 -> bench_ini_iter = 2",
        "main.cu: bench_max_iter = 2000 -> bench_max_iter = 3",
    ],
    "ddbp-cuda": [
        "main.cu: nPixX = 1996 -> nPixX = 40",
        "main.cu: nPixY = 2457 -> nPixY = 51",
        "main.cu: nSlices = 78 -> nSlices = 6",
        "main.cu: nDetX = 1664 -> nDetX = 36",
        "main.cu: nDetY = 2048 -> nDetY = 45",
        "main.cu: nProj = 15 -> nProj = 3",
    ],
    "degrid-cuda": [
        "degrid.h: NPOINTS 40000 -> NPOINTS 320",
        "degrid.h: GCF_DIM 256 -> GCF_DIM 32",
        "degrid.h: IMG_SIZE 8192 -> IMG_SIZE 512",
        "degrid.h: REPEAT 100 -> REPEAT 1",
        "main.cu: RAND_MAX*8000 -> RAND_MAX*450",
    ],
    "dispatch-cuda": [
        "main.cu: WARMUP_RUN_COUNT 100 -> WARMUP_RUN_COUNT 2",
        "main.cu: TIMING_RUN_COUNT 1000 -> TIMING_RUN_COUNT 10",
        "main.cu: BATCH_SIZE 1000 -> BATCH_SIZE 10",
    ],
    "dslash-cuda": [
        "dslash.h: ITERATIONS 100 -> ITERATIONS 1",
        "Makefile: DLDIM=32 -> DLDIM=6",
    ],
    "egs-cuda": [
        "main.cu: num_histories = 100000000 -> num_histories = 100",
        "EGS.h: NUM_MULTIPROC 80 -> NUM_MULTIPROC 2",
        "EGS.h: SIMULATION_WARPS_PER_BLOCK 16 -> SIMULATION_WARPS_PER_BLOCK 2",
        "EGS.h: SIMULATION_ITERATIONS 32768 -> SIMULATION_ITERATIONS 64",
    ],
    "ert-cuda": ["main.cu: ERT_MEMORY_MAX 33554432 -> ERT_MEMORY_MAX 16384"],
    "extrema-cuda": [
        "main.cu: (1000000, order -> (3000, order",
        "main.cu: (1000, 1000, order -> (50, 61, order",
    ],
    "f16max-cuda": ["main.cu: NUM_OF_BLOCKS 1048576 -> NUM_OF_BLOCKS 33"],
    "feynman-kac-cuda": [
        "main.cu: N = 1000 -> N = 3",
        "main.cu: nj = 128 -> nj = 12",
    ],
    "fresnel-cuda": ["main.cu: interval = 1e-7 -> interval = 1e-4"],
    "fsm-cuda": [
        "parameters.h: REPEAT 10 -> REPEAT 1",
        "parameters.h: POPCNT 1024 -> POPCNT 3",
        "parameters.h: POPSIZE 256 -> POPSIZE 64",
    ],
    "geglu-cuda": [
        "main.cu: shape = 128; shape <= 512 -> shape = 2; shape <= 8",
        "main.cu: batch <= 16 -> batch <= 1",
        "main.cu: shape = 4096; shape <= 8192 -> shape = 4; shape <= 8",
    ],
    "graphExecution-cuda": [
        "main.cu: size <= 1<<27 -> size <= 1<<18",
        "main.cu: i < 100 -> i < 2",
    ],
    "grrt-cuda": [
        "constants.h: IMAGE_SIZE 1024 -> IMAGE_SIZE 8",
    ],
    "hellinger-cuda": ["main.cu: m_size = 768 * 8 -> m_size = 21 * 8"],
    "hexciton-cuda": [
        "utils.hpp: NUM 2048 -> NUM 256",
        "utils.hpp: NUM_ITERATIONS 1001 -> NUM_ITERATIONS 2",
    ],
    "idivide-cuda": [
        "main.cu: divisor_count = 100000 -> divisor_count = 30",
        "main.cu: divident_count = 1000000 -> divident_count = 1000",
        "main.cu: 32 * 1024 -> 32 * 1",
        "main.cu: i < 100 -> i < 2",
    ],
    "jacobi-cuda": ["main.cu: N 2048 -> N 32"],
    "keccaktreehash-cuda": [
        "KeccakTree.h: NB_THREADS_BLOCKS 64 -> NB_THREADS_BLOCKS 4",
        "KeccakTree.h: NB_INPUT_BLOCK 1024 -> NB_INPUT_BLOCK 4",
        "Test.cu: IMAX 8 -> IMAX 2",
    ],
    "knn-cuda": [
        "main.cu: ref_nb = 4096 -> ref_nb = 101",
        "main.cu: query_nb = 4096 -> query_nb = 270",
        "main.cu: dim = 68 -> dim = 19",
    ],
    "langford-cuda": [
        "main.cu: kLimit = 100000000 -> kLimit = 10000",
        "main.cu: kNumLogicalThreads = 16383 -> kNumLogicalThreads = 1023",
        "main.cu: run_gpu<15> -> run_gpu<8>",
    ],
    "laplace-cuda": [
        "kernels.h: NUM 1024 -> NUM 64",
        "kernels.h: BLOCK_SIZE 128 -> BLOCK_SIZE 16",
    ],
    "ldpc-cuda": [
        "LDPC.h: MIN_CODEWORD 2000 -> MIN_CODEWORD 4",
        "LDPC.h: MCW 40 -> MCW 2",
        "LDPC.h: MAX_SIM 500 -> MAX_SIM 2",
    ],
    "lid-driven-cavity-cuda": [
        "main.cu: NUM 512 -> NUM 32",
        "main.cu: BLOCK_SIZE 128 -> BLOCK_SIZE 8",
    ],
    "linearprobing-cuda": ["linearprobing.h: 64*1024*1024 -> 64*64*4"],
    "log2-cuda": [
        "log2_parameters.config: ceilingVal 10000000 -> ceilingVal 1000",
        "log2_parameters.config: numRepeats 100 -> numRepeats 1",
    ],
    "loopback-cuda": [
        "loopback.h: TAUSWORTHE_NUM_BLOCKS 4096 -> TAUSWORTHE_NUM_BLOCKS 3",
        "loopback.h: LOOKBACK_PATHS_PER_SIM 512 -> LOOKBACK_PATHS_PER_SIM 2",
    ],
    "lrn-cuda": [
        "main.cu: C = 150 -> C = 7",
        "main.cu: D = 100 -> D = 3",
        "main.cu: H = 160 -> H = 16",
        "main.cu: W = 160 -> W = 17",
    ],
    "match-cuda": ["main.cu: (2048*8) -> (16*8)"],
    "maxFlops-cuda": ["main.cu: 2*1024*1024 -> 2*16*16"],
    "mdh-cuda": [
        # Sums are infinite, as in the original size. Finite ones are over 1e20, and its tolerance
        # is 1e-3.
        "main.cu: natom = 5877 -> natom = 777",
        "main.cu: ngrid = 134918 -> ngrid = 5918",
    ],
    "meanshift-cuda": [
        "constants.h: NUM_ITER = 1000 -> NUM_ITER = 30",
        "constants.h: N = 10000 -> N = 300",
    ],
    "memtest-cuda": [
        "kernels.h: (1024*1024) -> (16*1024)",
        "main.cu: 2*1024*1024*1024UL -> 2*1024*16*3UL",
    ],
    "merkle-cuda": [
        "main.cu: dim = (1ul << 20); dim <= (1ul << 24) -> dim = (1ul << 6); dim <= (1ul << 7)",
    ],
    "minkowski-cuda": ["main.cu: m_size = 512 * 8 -> m_size = 17 * 8"],
    "pnpoly-cuda": ["main.cu: nPoints = 2e7 -> nPoints = 2001"],
    "prefetch-cuda": [
        "main.cu: 64 * 1024 * 1024 -> 64 * 103 * 1",
        "main.cu: i < 10 -> i < 2",
    ],
    "randomAccess-cuda": ["main.cu: 1024*1024*512 -> 1024*64*1"],
    "score-cuda": [
        "main.cu: num_classes = 1000 -> num_classes = 5",
        "main.cu: batch_size = 128 -> batch_size = 2",
    ],
    "sheath-cuda": [
        "main.cu: NUM_IONS 500000 -> NUM_IONS 2000",
        "main.cu: NUM_ELECTRONS 500000 -> NUM_ELECTRONS 2000",
        "main.cu: NUM_TS 1000 -> NUM_TS 5",
    ],
    "shuffle-cuda": ["main.cu: total = 1 << 27 -> total = 1 << 12"],
    "softmax-online-cuda": [
        "main.cu: B = 8 -> B = 1",
        "main.cu: T = 1024 -> T = 35",
        "main.cu: V = 50257 -> V = 1257",
        "main.cu: repeat_times = 100 -> repeat_times = 1",
    ],
    "ssim-cuda": ["main.cu: dims(4096, 1024, 1024) -> dims(41, 24, 24)"],
    "ssm-cuda": ["main.cu: kBatch = 32 -> kBatch = 2", "main.cu: kDim = 2048 -> kDim = 17"],
    "storeKVCache-cuda": [
        "main.cu: 2 * 1024 * 1024 / num_layers -> 2 * 64 * 1 / num_layers",
        "main.cu: item_size <= 1024 -> item_size <= 16",
    ],
    "streamOrderedAllocation-cuda": [
        "main.cu: nelem = 33554432 -> nelem = 3355",
        "main.cu: repeat 100 -> repeat 2",
    ],
    "streamPriority-cuda": ["main.cu: N = 1 << 24 -> N = 1 << 11"],
    "vol2col-cuda": [
        # Reads zeros in arrays that malloc gives; smaller ones are not new from the system.
        "main.cu: height = 255 -> height = 45",
        "main.cu: width = 255 -> width = 47",
        "main.cu: height_col = 255 -> height_col = 45",
        "main.cu: width_col = 255 -> width_col = 47",
    ],
    "wlcpow-cuda": ["main.cu: n = 1e6 -> n = 1001"],
    "wsm5-cuda": [
        "main.cu: ime = 59, jms = 0, jme = 45 -> ime = 9, jms = 0, jme = 9",
        "main.cu: ipe = 59, jps = 0, jpe = 45 -> ipe = 9, jps = 0, jpe = 9",
    ],
}

CUDA_SAMPLES = {
    "2_Concepts_and_Techniques/convolutionTexture": [
        "main.cpp: imageW = 3072 -> imageW = 200",
        "main.cpp: imageH = 3072 / 2 -> imageH = 198 / 2",
        "main.cpp: iterations = 10 -> iterations = 1",
    ],
    "2_Concepts_and_Techniques/scan": [
        "main.cpp: 13 * 1048576 / 2 -> 3 * 65536 / 1",
        "main.cpp: iCycles = 100 -> iCycles = 1",
        "scan.cu: MAX_LARGE_ARRAY_SIZE = 4 -> MAX_LARGE_ARRAY_SIZE = 1",
    ],
    # CPU_DEBUG has these compare with a product on the host, as VERIFY_GPU_CORRECTNESS below.
    "3_CUDA_Features/bf16TensorCoreGemm": [
        "bf16TensorCoreGemm.cu: CPU_DEBUG 0 -> CPU_DEBUG 1",
        "bf16TensorCoreGemm.cu: M_TILES 512 -> M_TILES 16",
        "bf16TensorCoreGemm.cu: N_TILES 512 -> N_TILES 16",
        "bf16TensorCoreGemm.cu: K_TILES 512 -> K_TILES 16",
    ],
    "3_CUDA_Features/cudaTensorCoreGemm": [
        "cudaTensorCoreGemm.cu: CPU_DEBUG 0 -> CPU_DEBUG 1",
        "cudaTensorCoreGemm.cu: M_TILES 256 -> M_TILES 16",
        "cudaTensorCoreGemm.cu: N_TILES 256 -> N_TILES 16",
        "cudaTensorCoreGemm.cu: K_TILES 256 -> K_TILES 16",
    ],
    "3_CUDA_Features/dmmaTensorCoreGemm": [
        "dmmaTensorCoreGemm.cu: CPU_DEBUG 0 -> CPU_DEBUG 1",
        "dmmaTensorCoreGemm.cu: M_TILES 1024 -> M_TILES 16",
        "dmmaTensorCoreGemm.cu: N_TILES 1024 -> N_TILES 16",
        "dmmaTensorCoreGemm.cu: K_TILES 1024 -> K_TILES 32",
    ],
    "3_CUDA_Features/immaTensorCoreGemm": [
        "immaTensorCoreGemm.cu: CPU_DEBUG 0 -> CPU_DEBUG 1",
        "immaTensorCoreGemm.cu: M_TILES 256 -> M_TILES 16",
        "immaTensorCoreGemm.cu: N_TILES 256 -> N_TILES 16",
        "immaTensorCoreGemm.cu: K_TILES 256 -> K_TILES 32",
    ],
    "3_CUDA_Features/tf32TensorCoreGemm": [
        "tf32TensorCoreGemm.cu: CPU_DEBUG 0 -> CPU_DEBUG 1",
        "tf32TensorCoreGemm.cu: M_TILES 512 -> M_TILES 16",
        "tf32TensorCoreGemm.cu: N_TILES 512 -> N_TILES 16",
        "tf32TensorCoreGemm.cu: K_TILES 512 -> K_TILES 16",
    ],
    "3_CUDA_Features/globalToShmemAsyncCopy": [
        "globalToShmemAsyncCopy.cu: nIter = 100 -> nIter = 1",
    ],
    "3_CUDA_Features/graphMemoryFootprint": [
        "graphMemoryFootprint.cu: 64 * 1024 * 1024 -> 64 * 1024 * 1",
    ],
    "5_Domain_Specific/BlackScholes": [
        "BlackScholes.cu: OPT_N = 4000000 -> OPT_N = 4002",
        "BlackScholes.cu: NUM_ITERATIONS = 512 -> NUM_ITERATIONS = 1",
    ],
    "5_Domain_Specific/NV12toBGRandResize": [
        "resize_convert_main.cpp: TEST_LOOP 20 -> TEST_LOOP 1",
        "resize_convert_main.cpp: batch = 24 -> batch = 1",
        "resize_convert_main.cpp: dst_width = 640 -> dst_width = 64",
        "resize_convert_main.cpp: dst_height = 480 -> dst_height = 48",
    ],
    "6_Performance/UnifiedMemoryPerf": [
        "matrixMultiplyPerf.cu: VERIFY_GPU_CORRECTNESS 0 -> VERIFY_GPU_CORRECTNESS 1",
        "matrixMultiplyPerf.cu: maxSampleSizeInMb = 64 -> maxSampleSizeInMb = 1",
        "matrixMultiplyPerf.cu: ONE_MB) / 4 -> ONE_MB) / 16",
        "matrixMultiplyPerf.cu: numKernelRuns = 20 -> numKernelRuns = 2",
    ],
}
