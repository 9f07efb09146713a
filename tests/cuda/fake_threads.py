"""Many threads at once on the fake driver's two GPUs, each with a stream and arrays of its own.

    python fake_threads.py SECONDS THREADS

Run by test_faults.py, with LD_LIBRARY_PATH set to the fake's folder; by validation/sanitized.py for
longer, with ThreadSanitizer. Prints how many calls there were.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import numpy as np
from fake_arrays import DlPack, Interface, arrays, create, kernel
from fake_exchange import Tensor, fake
from fake_matrices import INTERFACE

import smemkern


class Worker:
    """What one thread calls: its arrays and its stream are nobody else's."""

    def __init__(self, number: int) -> None:
        self.random = np.random.default_rng(number)
        self.stream = create("cuStreamCreate", 1)
        self.kinds = [arrays(kind, 60 + number) for kind in (Interface, DlPack)]
        self.square = [INTERFACE(self.floats(20, 20)) for _ in range(3)]
        self.tensor = Tensor(self.floats(12, 31))
        self.blocks_made = 10  # and what the library makes for results, which nobody frees
        self.calls: list[Callable[[], bool]] = [
            *(self.product, self.blocks, self.both_gpus, self.turned, self.turned_in_blocks),
            *(self.on_the_gpu, self.result_of_a_library, self.own_kernel, self.new_kernel),
            *(self.wrong, self.forget),
        ]

    def floats(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape).astype("f4")

    def host(self, most: int = 90, **options) -> bool:
        m, n, k = self.random.integers(1, (most, most, 90))
        a, b = self.floats(m, k), self.floats(k, n)
        c = smemkern.gemm(a, b, variant="naive", **options)
        return bool(np.allclose(c, a @ b, atol=1e-3))

    def product(self) -> bool:
        return self.host(device="cuda") and smemkern.last_transfer() is not None

    def blocks(self) -> bool:
        return self.host(device="cuda:1", max_memory=600_000)

    def both_gpus(self) -> bool:
        return self.host(500, devices=[0, 1])  # both read one of the operands

    def turned(self, **options) -> bool:
        x = self.floats(*self.random.integers(1, 400, 2))
        y = smemkern.transpose(x, variant="naive", device="cuda", **options)
        return bool((y == x.T).all())

    def turned_in_blocks(self) -> bool:
        return self.turned(max_memory=600_000)

    def on_the_gpu(self) -> bool:
        a, b, out = self.square
        out.host[:] = 0
        smemkern.gemm(a, b, variant="naive", out=out, stream=self.stream)
        return bool(np.allclose(out.host, a.host @ b.host, atol=1e-3))

    def result_of_a_library(self) -> bool:
        self.blocks_made += 1
        made = smemkern.transpose(self.tensor, variant="naive")
        return bool((made.host == self.tensor.host.T).all())

    def own_kernel(self) -> bool:
        for x, y, z, want in self.kinds:
            z.host[:] = 0
            kernel(1, 1, x, y, z, x.n, stream=self.stream)
            if not (z.host == want).all():
                return False
        return True

    def new_kernel(self) -> bool:
        text = kernel.source + f"// {self.random.integers(100)}\n"
        x, z = self.floats(40), np.zeros(40, "f4")
        smemkern.Kernel(text, "add")(1, 64, x, x, z, 40, device="cuda")
        return bool((z == 2 * x).all())

    def wrong(self) -> bool:
        try:
            smemkern.gemm(self.square[0], self.floats(20, 20), out=self.square[2])
        except ValueError:
            return True
        return False

    def forget(self) -> bool:
        return smemkern.empty_cache(f"cuda:{self.random.integers(2)}") >= 0


def main(seconds: float, threads: int) -> int:
    workers = [Worker(number) for number in range(threads)]
    done, failed = [0] * threads, []
    together, end = threading.Barrier(threads + 1), 0.0

    def work(number: int) -> None:
        together.wait()
        while not failed and (time.monotonic() < end or done[number] < 3):
            call = workers[number].random.choice(workers[number].calls)
            try:
                if not call():
                    failed.append(f"{call.__name__}: a wrong result")
            except BaseException as error:
                failed.append(f"{call.__name__}: {error!r}")
            done[number] += 1

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    end = time.monotonic() + seconds
    together.wait()
    for thread in running:
        thread.join()
    for device in ("cuda:0", "cuda:1"):
        smemkern.empty_cache(device)
    for text in failed[:5]:
        print(text, file=sys.stderr)
    blocks, _streams, events, _modules = fake.alive
    assert failed or blocks == sum(worker.blocks_made for worker in workers), blocks
    assert fake.contexts_pushed == 0 and events == 0 and fake.pinned_bytes == 0
    print(f"{sum(done)} calls")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
