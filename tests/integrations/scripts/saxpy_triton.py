import cupy
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, tl.load(y + i, mask=mask) + a * tl.load(x + i, mask=mask), mask=mask)


class Pointer:
    """CuPy's array as Triton takes arrays."""

    def __init__(self, array):
        self.array, self.dtype = array, str(array.dtype)

    def data_ptr(self):
        return self.array.data.ptr


x = cupy.arange(1000, dtype=cupy.float32)
y = cupy.ones_like(x)
saxpy[(4,)](2.0, Pointer(x), Pointer(y), 1000, BLOCK=256)
assert bool((y == 2 * x + 1).all())
print("PASS")
