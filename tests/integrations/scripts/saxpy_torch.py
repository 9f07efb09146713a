import torch
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, tl.load(y + i, mask=mask) + a * tl.load(x + i, mask=mask), mask=mask)


x = torch.arange(1000, dtype=torch.float32, device="cuda")
y = torch.ones_like(x)
saxpy[(4,)](2.0, x, y, 1000, BLOCK=256)
assert bool((y == 2 * x + 1).all())
print("PASS")
