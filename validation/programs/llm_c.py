"""llm.c: its test of training in fp32, on a tiny model with random weights.

The test reads a model, and what a reference says of it: logits, loss, gradients. Both files are
written here, with a reference in NumPy and float64. The losses of ten steps, which the test has as
constants, are the reference's, too. cuBLAS, which has machine code only, is replaced by kernels of
cublas.cu.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from . import gpt2
from .running import Program, complaint

CUBLAS = Path(__file__).with_name("cublas.cu")
TEST = "test_gpt2_fp32.cu"
TRAIN = "train_gpt2_fp32.cu"
ALLOCATED = "cudaCheck(cudaMalloc((void**)&acts_memory, num_activations * sizeof(float)));"
# Attention's scores of later positions are never written, and its sums read them.
ZERO = (ALLOCATED, f"{ALLOCATED} cudaMemset(acts_memory, 0, num_activations * sizeof(float));")
# Nothing orders the reads of block_acc with the writes of the loop's next iteration.
LAST = "__stcs(dpreatt_bth + t3, scale * acc);\n        }\n"
BARRIER = (LAST, f"{LAST}        block.sync();\n")
VARIANTS = {
    "": [],
    ", activations zeroed": [ZERO],
    ", activations zeroed, a barrier added": [ZERO, BARRIER],
}
MAGIC_MODEL, MAGIC_STATE = 20240326, 20240327


def header(*words: int) -> np.ndarray:
    return np.array([*words, *[0] * (256 - len(words))], np.int32)


def write(file: Path, *arrays: np.ndarray) -> None:
    file.write_bytes(b"".join(array.tobytes() for array in arrays))


def build(checkout: Path, changes: list[tuple[str, str]], out: Path) -> str:
    random = np.random.default_rng(27)
    size = gpt2.Size()
    weights = gpt2.initial(size, random)
    tokens = random.integers(0, size.vocabulary, (2, size.batch, size.length), dtype=np.int32)
    inputs, targets = tokens
    logits, loss, gradient = gpt2.step(size, weights, *tokens)
    sizes = (size.longest, size.vocabulary, size.layers, size.heads, size.channels, size.padded)
    write(
        out / "gpt2_124M.bin",
        header(MAGIC_MODEL, 3, *sizes),
        gpt2.flat(weights),
    )
    write(
        out / "gpt2_124M_debug_state.bin",
        header(MAGIC_STATE, 2, size.batch, size.length),
        tokens,
        logits.astype(np.float32),
        np.array([loss], np.float32),
        gpt2.flat(gradient),
    )
    losses = ", ".join(
        f"{one:.9g}f" for one in gpt2.train(size, weights, inputs, targets, steps=10)
    )
    text = (checkout / TEST).read_text()
    text = re.sub(r"(expected_losses\[10\] = \{)[^}]*", rf"\g<1>{losses}", text)
    (out / TEST).write_text(text)
    text = (checkout / TRAIN).read_text()
    for old, new in changes:
        text = text.replace(old, new)
    (out / TRAIN).write_text(text)
    options = ["-w", "-O2", "-g", "-lineinfo", "-arch=compute_80", f"-I{checkout}"]
    return complaint(["nvcc", *options, TEST, str(CUBLAS), "-o", "test"], out)


def programs(checkout: Path) -> list[Program]:
    """As it is, and with two faults of its kernels mended."""
    return [
        Program(TEST + what, None, ["{out}/test"], partial(build, checkout, changes))
        for what, changes in VARIANTS.items()
    ]
