"""Findings in public kernels that were checked by reading: wrong results, hazards and faults."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why a kernel gives a wrong result or has a hazard. `harmful`: the result can be wrong."""

    suite: str
    file: str  # regular expression of the path
    kernel: str  # regular expression of the kernel's name, all of it
    harmful: bool
    reason: str
    template: str = ""  # regular expression of the template arguments


EXPLAINED = (
    Explanation(
        "llm.c",
        "softmax_forward",
        "softmax_forward_kernel4",
        True,
        "Thread 0 overwrites `shared[0]` with a warp's sum while other warps still read the "
        "maximum from it: no barrier between line 268 and line 288.",
    ),
    Explanation(
        "llm.c",
        "softmax_forward",
        "softmax_forward_kernel7",
        False,
        "Elements past the end are read as the row's last one, which another thread writes; the "
        "value is not used.",
    ),
    Explanation(
        "llm.c",
        "attention_forward",
        "attention_forward_fused1",
        True,
        "Lanes read the scores that other lanes of the warp wrote to global memory, without a "
        "`__syncwarp` between.",
    ),
    Explanation(
        "llm.c",
        "attention_backward",
        "softmax_autoregressive_backward_kernel8",
        True,
        "The loop writes `block_acc` again while slower warps still read it: one barrier per turn, "
        "two are needed.",
    ),
    Explanation(
        "llm.c",
        "layernorm_backward",
        "layernorm_backward_kernel(9|10)",
        True,
        "The last block reads the other blocks' sums. Each block's threads write them, then "
        "thread 0 increments the counter, with no `__threadfence` between.",
    ),
    Explanation(
        "llm.c",
        "layernorm_backward",
        "layernorm_backward_kernel4",
        False,
        "`atomicAdd` of bfloat16 starts with an ordinary read of the word that other blocks add "
        "to; the loop of compare-and-swap repairs a stale value.",
    ),
    Explanation(
        "SGEMM_CUDA",
        "runner",
        "sgemm(Vectorize|ResolveBankConflicts|ResolveBankExtraCol)",
        True,
        "The 64 x 64 tile, which the host takes for matrices below 128, has 64 threads, and each "
        "loads one `float4`: half of the shared tiles is never written.",
        "^64",
    ),
    Explanation(
        "SGEMM_CUDA",
        "runner",
        "sgemmDoubleBuffering",
        False,
        "The halves of a block wait at different `__syncthreads` of an `if`, which CUDA leaves "
        "undefined; current GPUs count arrivals and do what was meant.",
    ),
    Explanation(
        "ZLUDA",
        "ldmatrix.ptx|ldmatrix_trans.ptx|_2x.ptx",
        ".*",
        True,
        "The test launches 64 threads on arrays for 32: the upper warp works past their end.",
    ),
    Explanation(
        "cuda-samples",
        "/reduction/",
        "reduce[4-7]",
        True,
        "Blocks of fewer than 32 threads make a tile of 32 threads and shuffle over it: the "
        "missing lanes have no value.",
        "^(int|float|double), (1|2|4|8|16)u",
    ),
    Explanation(
        "cuda-samples",
        "/reduction/",
        "reduce7",
        True,
        "The last shuffles take values from lanes outside their mask, which is undefined; the "
        "variant for int is another instruction, and right.",
        "^(float|double)",
    ),
    Explanation(
        "cuda-samples",
        "threadFenceReduction",
        "reduce(Multi|Single)Pass",
        True,
        "Blocks of fewer than 32 threads read 16 elements ahead in shared memory, past what they "
        "wrote and past what the host allocates.",
        "^(1|2|4|8|16)u",
    ),
    Explanation(
        "cuda-samples",
        "globalToShmemAsyncCopy",
        "MatrixMulAsyncCopyMultiStageLargeChunk",
        True,
        "Five stages are in flight in four buffers, and the tile of B is loaded from the offset of "
        "A's tile; the sample's constant matrices hide both.",
    ),
    Explanation(
        "cuda-samples",
        "globalToShmemAsyncCopy",
        "MatrixMulAsyncCopyMultiStage",
        True,
        "Five stages are in flight in four buffers: a copy overwrites a tile that may still be "
        "read.",
    ),
    Explanation(
        "cuda-samples",
        "globalToShmemAsyncCopy",
        "MatrixMul(AsyncCopy|Naive)LargeChunk(AWBarrier)?",
        True,
        "The tile of B is loaded from the offset of A's tile; the sample's constant matrices hide "
        "it.",
    ),
    Explanation(
        "cuda-samples",
        "bf16TensorCoreGemm",
        "simple_wmma_bf16gemm",
        True,
        "The row and the column of B's tile are swapped; the sample runs other kernels unless it "
        "is told to, or shared memory is short.",
    ),
    Explanation(
        "LeetCUDA",
        "softmax",
        "online_safe_softmax_f32(x4_pack)?_per_token_kernel",
        True,
        "A warp reads 32 partial results of an array that has one per warp of the block: past its "
        "end.",
    ),
    Explanation(
        "LeetCUDA",
        "softmax|norm|reduce|dot",
        ".*",
        True,
        "Blocks of fewer than 32 threads shuffle with the mask of a whole warp: the missing lanes "
        "have no value.",
        "^(4|8|16)$",
    ),
    Explanation(
        "fast.cu",
        "sum.cu",
        "sumKernel4",
        True,
        "All lanes execute `redux.sync` with the mask 0xff, which names eight of them: undefined.",
    ),
    Explanation(
        "fast.cu",
        "matmul.cu",
        "M[89]::matmulKernel[89]",
        True,
        "Consumers arrive at an mbarrier of the other block of the cluster, which may have exited: "
        "there is no barrier of the cluster at the end.",
    ),
    Explanation(
        "fast.cu",
        "matmul.cu",
        "M[67]::matmulKernel[67]",
        False,
        "The mbarriers are initialized with ordinary writes, and TMA uses them without a "
        "`fence.proxy.async` (or `fence.mbarrier_init`) between.",
    ),
    Explanation(
        "SGEMM_CUDA",
        "runner",
        "runSgemmDoubleBuffering2",
        False,
        "`cuda::memcpy_async` becomes bulk copies, which complete on barriers whose initialization "
        "no `fence.proxy.async` follows.",
    ),
    Explanation(
        "CuTe tutorials",
        "wgmma_sm90.cu",
        "gemm_device",
        True,
        "After `cp.async.wait_group` there is no barrier and no `fence.proxy.async`: the wgmma "
        "reads tiles that other threads are still copying.",
    ),
    Explanation(
        "LeetCUDA",
        "flash-attn/mma/swizzle",
        "flash_attn_mma_stages_split_q_(shared_kv|shared_qkv|tiling_qk)_swizzle_qkv_kernel",
        True,
        "For a head size of 96 the threads divide into rows of V with a remainder: those left over "
        "load rows past its end.",
        "^96,",
    ),
    Explanation(
        "cuda-samples",
        "/reduction/",
        "multi_warp_cg_reduce",
        False,
        "In Cooperative Groups one lane acquires the other warps' results and tells its warp by a "
        "shuffle, which orders no memory.",
    ),
    Explanation(
        "cuda-samples",
        "threadFenceReduction",
        "reduceSinglePass",
        False,
        "The last block reads the other blocks' sums after its atomic without a fence: only the "
        "writers have one, before theirs.",
    ),
    Explanation(
        "llm.c",
        "layernorm_backward",
        "layernorm_backward_kernel5",
        False,
        "The last block reads the other blocks' sums after its atomic without a fence: only the "
        "writers have one, before theirs.",
    ),
    Explanation(
        "PMPP",
        "scan/scan.cu",
        "Kogge_Stone_inclusive_scan",
        True,
        "`XY[tx] += XY[tx - stride]` reads what another thread writes in the same step: two "
        "barriers per step are needed, there is one.",
    ),
    Explanation(
        "PMPP",
        "scan/scan.cu",
        "three_phase_parallel_inclusive_scan",
        True,
        "The second phase scans the first elements of the sections instead of the last ones, and "
        "the third keeps a float in an `int`.",
    ),
)
