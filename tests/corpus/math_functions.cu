// The functions of math.h in float and double, as the compiler writes them out in PTX.
template <typename T> __global__ void math_functions(const T *x, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T v = x[i], *row = out + 16 * i;
    row[0] = exp(v), row[1] = log(v), row[2] = sin(v), row[3] = cos(v);
    row[4] = tan(v), row[5] = atan(v), row[6] = sinh(v), row[7] = tanh(v);
    row[8] = pow(v, T(1.7)), row[9] = cbrt(v), row[10] = erf(v), row[11] = lgamma(v);
    row[12] = hypot(v, T(3)), row[13] = fmod(v, T(0.7)), row[14] = log1p(v),
    row[15] = atan2(v, T(2));
}
