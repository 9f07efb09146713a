"""What the tests of smemkern.judge share: a kernel, and how it is judged."""

import smemkern

HEAD = """extern "C" __global__ void f(const float *x, const float *w, float *y, int n) {
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
RELU = "if (i < n) y[i] = fmaxf(x[i], 0) * w[i] + 1;"
ARGS = ["f32[n]=random", "f32[n]=random", "f32[n]", "i32=n"]
PLACE = {"grid": "cdiv(n, 64)", "block": 64, "sizes": {"n": 150}}
LIMITS = {"timeout": 10.0, "max_instructions": 200_000}
RIGHT = {
    "itself": RELU,
    "another form": "if (i < n) { float v = w[i]; y[i] = fmaf(fmaxf(x[i], 0), v, 1); }",
    "strides": """
        for (int j = t; j < n; j += 64)
            if (blockIdx.x == 0) y[j] = fmaxf(x[j], 0) * w[j] + 1;""",
    "through shared memory": """
        __shared__ float tile[64];
        if (i < n) tile[t] = x[i];
        __syncthreads();
        if (i < n) y[i] = fmaxf(tile[t], 0) * w[i] + 1;""",
}


def kernel(body, before=""):
    return smemkern.Kernel(f"{before}\n{HEAD}{body}\n}}", "f")


def judged(candidate, reference=RELU, before="", **more):
    left = reference if callable(reference) else kernel(reference)
    given = PLACE | LIMITS | more
    return smemkern.judge(left, kernel(candidate, before), given.pop("args", ARGS), **given)
