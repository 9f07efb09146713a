"""Programs that others wrote, under `smemkern run`, with their own checks.

    python -m validation.programs SUITE --source CHECKOUT

SUITE is a module of this package (SUITES). Its `programs(checkout)` lists what there is, and how
each is compiled and run. `running` runs one and says what came of it; `__main__` writes the record.
"""

SUITES = {
    "cuda_samples": "NVIDIA/cuda-samples",
    "hecbench": "ORNL/HeCBench",
    "rodinia": "yuhc/gpu-rodinia",
    "llm_c": "karpathy/llm.c",
}
