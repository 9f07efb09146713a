#define SQUARE(a) ((a) * (a))
#define PAIR(a, b) a, b
#define TWICE(m, v) m(m(v))
#define EMPTY
#ifndef MISSING
#define N 4
#else
#define N 5
#endif
#if N == 4 && (defined(SQUARE) || defined MISSING) && !defined MISSING
constexpr int FOUR = N;
#elif 1
constexpr int FOUR = 9;
#endif
const float HALF = 1.0f / 2, TABLE[3] = {0.5f, -1.5f, 2.5f};
__constant__ int primes[2][3] = {{2, 3, 5}, {7, 11}};
__device__ int counter = 5;
__device__ int add(int a, int b) { return a + b; }
__device__ int sum(const int *p, int n) { int r = 0; for (int i = 0; i < n; i++) r += p[i]; return r; }
__device__ void swap(int *a, int *b) { int c = *a; *a = *b; *b = c; }
__device__ int early(int a) { if (a > 3) return 1; for (;;) { if (a++ > 2) return a; } }
__device__ const int *later(const int *p, int n) { return p + n; }
__device__ float4 scaled(float4 v, float k) { v.x *= k; v.y *= k; v.z += k; return v; }
__device__ int nested(int a) { return add(add(a, early(a)), sum(&a, 1)); }
__device__ int row(int (*m)[4], int r) { return m[r][0] + m[r][3]; }
__device__ int rows(int m[][4], int r) { return m[r + 1][1]; }
__device__ unsigned char low(int a) { return a; }
__device__ bool odd(int a) { return a & 1; }
extern "C" __global__ void k(int *x, float *f, long long *out, double *d) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = x[t];
    __syncthreads();

//// macros
    out[t] = SQUARE(x[t] + 1) + add(PAIR(t, FOUR)) EMPTY + TWICE(SQUARE, 3);

//// tables
    d[t] = TABLE[t % 3] * HALF; out[t] = primes[t % 2][t % 3];

//// counter
    if (t == 7) counter += 3; out[t] = atomicAdd(&counter, 0) * 0 + 1;

//// functions
    out[t] = nested(t & 7) + early(t);

//// pointers
    int *p = &x[t]; p -= t; out[t] = *(p + 3) + p[t] + *later(p, 2) + (later(p, 9) - p);

//// shared pointers
    const int *p = s + 5; p++; out[t] = p[t % 8] + sum(s, 9) + *p++ + p[-1];

//// either space
    const int *p = t % 2 ? x : s; out[t] = p[t] + sum(p, 3) + (p == s);

//// changing space
    int *p = s; int a = p[t]; p = x; a -= p[t] * 2; out[t] = a + sum(p, 4);

//// swapped
    int *a = s, *b = s + 32; for (int i = 0; i < 3; i++) { int *c = a; a = b; b = c; } out[t] =
    a[t % 32];

//// addresses
    int a = x[t], b = t; swap(&a, &b); swap(&s[t], &a); out[t] = a * 1000 + b + s[t];

//// pointers in arrays
    int *p[2] = {s, x}; out[t] = p[t % 2][t] + *p[1]; int **q = p; out[t] += **q;

//// pointer to pointer
    int *p = s; int **q = &p; *q += t; out[t] = *p + **q;

//// pointer compare
    int *p = s + t, *q = s + 20; out[t] = (p < q) + 2 * (p == q) + 4 * (p - q) + 100 * !p;

//// null
    int *p = t > 5 ? x : nullptr; out[t] = p ? p[t] : -1; int *q = 0; out[t] += q == nullptr;

//// casts of pointers
    float *p = (float *)x; out[t] = __float_as_int(p[t]); unsigned char *b = (unsigned char *)s;
    out[t] += b[t];

//// address bits
    out[t] = (unsigned long long)&s[t] - (unsigned long long)s;

//// rows
    __shared__ int m[8][4]; if (t < 32) m[t / 4][t % 4] = t * t; __syncthreads(); out[t] =
    row(m, t % 8) + rows(m, t % 7) + (&m[1] - &m[0]) + (int)sizeof m + (int)sizeof m[0];

//// local arrays
    int a[3][4]; for (int i = 0; i < 12; i++) a[i / 4][i % 4] = i * t; out[t] = row(a, t % 3) +
    a[2][x[t] & 3] + *a[1] + **a;

//// initializers
    int a[2][3] = {{1}, {4, 5}}, b[] = {7, 8, 9}, c[4] = {}; float e[3] = {1, 2.5}; out[t] = a[t
    % 2][t % 3] + b[t % 3] + c[t % 4] + (int)sizeof b; d[t] = e[t % 3];

//// vectors
    float4 v = make_float4(f[t], 2, t, -1); float4 w = scaled(v, 3); v.w += w.x; d[t] = v.x +
    w.z * v.w + w.y;

//// vector loads
    float4 v = ((float4 *)f)[t % 16]; ((float2 *)d)[t] = make_float2(v.y, v.z); out[t] =
    (int)v.x + ((int2 *)s)[t % 32].y;

//// vector swap
    float2 v = make_float2(f[t], t); v = make_float2(v.y, v.x); v = t % 3 ? make_float2(v.y,
    v.x) : v; d[t] = v.x - 2 * v.y;

//// vector arrays
    float2 a[3]; for (int i = 0; i < 3; i++) a[i] = make_float2(i, t); a[1].y = 9; a[2] = a[1];
    d[t] = a[t % 3].x + a[t % 3].y; float2 *p = a; p->x = 4; d[t] += p[0].x;

//// vector braces
    int3 v = {1, t, 3}; int4 w{}; uchar4 c = {1, 2, 3, 255}; w.y = v.y; w.w += c.w; out[t] = v.x
    + v.z + w.x + w.y + w.w;

//// vector results
    d[t] = scaled(make_float4(1, 2, 3, f[t]), 2).w + scaled(make_float4(t, 2, 3, 4), .5f).x;

//// three lanes
    __shared__ float3 q[21]; if (t < 21) q[t] = make_float3(t, 2 * t, f[t]); __syncthreads();
    d[t] = q[t % 21].z + q[(t + 1) % 21].y;

//// increments
    int i = t; int a = i++ * 2, b = ++i, c = i-- - 1, e = --i; out[t] = a + 10 * b + 100 * c +
    1000 * e + i;

//// increments in memory
    s[t]++; --s[t]; int a = s[t]++; out[t] = a + 2 * s[t] + x[t]++; f[t]++; d[t] = f[t]-- + f[t]
    * 0;

//// narrow increments
    unsigned char c = 250; for (int i = 0; i < 10; i++) c++; signed char e = 120; e += 20; short
    h = 32760; h += t; out[t] = c + 1000 * e + h;

//// assignments
    int a, b, c; a = b = c = t; a += b -= c *= 2; out[t] = a + 10 * b + 100 * c; a <<= 2; a |=
    1; a ^= 5; a %= 7; a >>= 1; a &= 6; out[t] += a;

//// mixed updates
    int i = 7; i *= 1.5; i += 0.6f; unsigned u = 5; u -= 7.0; float g = t; g /= 3; g += 2ull;
    char h = 3; h /= 2.0; out[t] = i + h + (u == 5u - 7); d[t] = g;

//// order
    int i = t; i = i++ + 1; int j = 5; j += j++; out[t] = i + 1000 * j;

//// comma
    int i = (x[t]++, t), j; for (j = 0, i += 1; j < 3; j++, i--) ; out[t] = i + j;

//// short circuit
    int n = 0; if (t > 3 && n++ == 0) n += 10; if (t > 9 || ++n > 2) n += 100; bool b = t < 5 &&
    x[t] > 0; out[t] = n + b + (t && n) + (t || n++);

//// guarded
    out[t] = t < 60 && s[t + 4] > 0 ? s[t + 4] : t >= 60 || s[t + 1] != 0;

//// ternary
    out[t] = t < 9 ? x[t] : t < 20 ? s[t] : -t; d[t] = t % 2 ? 1 : 2.5; unsigned u = t ? -1 :
    2u; out[t] += u;

//// ternary mixed
    char c = 3; short h = 4; out[t] = (t & 1 ? c : h) + (t & 2 ? c : 1LL) + sizeof(t ? c : h);

//// unsigned
    unsigned u = t; int i = -1; out[t] = (u > i) + 2 * (u - 10 > 5) + (u - 10) / 3 + (u - 100) %
    7 + ((u - 50) >> 3) + (u * 123456789u);

//// signed
    int i = t - 30; out[t] = i / 4 + 100 * (i % 4) + 10000 * (i >> 2) + (i * 3 < -9) + (-i &
    0xf) + ~i;

//// long
    long long a = (long long)x[t] * 123456789; out[t] = a / 1000 + a % 77 + (a >> 5) + (a << 3)
    + (a > 5) + (int)a + ~a + -a;

//// unsigned long
    unsigned long long a = (unsigned long long)x[t] << 32 | t; size_t b = t; out[t] = a /
    1000003 + a % 77 + (a >> 35) - b + (a > b);

//// literals
    out[t] = 0x7fffffff + 0xffffffff + 010 + 0b101 + 'a' + '\n' + 4294967296 + 1'000u + 5ull +
    sizeof(1) + sizeof(4294967296) + sizeof('a') + sizeof 1.0f;

//// real literals
    d[t] = 1e3 + .5 + 1.f + 2.5e-3f + 0.1 + 0.1f + 3e+2;

//// conversions
    int i = t * 1000 - 30000; out[t] = (char)i + (unsigned char)i * 2 + (short)i * 3 + (unsigned
    short)i * 5 + (bool)i + (unsigned)i + (long long)i;

//// to float
    d[t] = (float)(x[t] * 16777217LL) + (float)(unsigned)-t + (double)(unsigned long long)-t +
    (float)(t > 3);

//// from float
    out[t] = (int)(f[t] * 9) + (unsigned char)fabsf(f[t] * 9) + (long long)(f[t] * 1e9f) +
    (bool)f[t] + (unsigned)fabsf(f[t]) + (short)(f[t] * 99);

//// float truth
    int n = 0; if (f[t]) n = 1; while (n < f[t] * 5) n++; out[t] = n + !f[t] + (f[t] && t) +
    (f[t] != f[t]);

//// nan
    float q = sqrtf(-1.0f - fabsf(f[t])); out[t] = (q < 1) + 2 * (q >= 1) + 4 * (q == q) + 8 *
    (q != q) + 16 * !(q > 1) + 32 * (fmaxf(q, 2) == 2);

//// float arithmetic
    d[t] = f[t] / 3 + f[t] * f[63 - t] - 7 * f[t] + f[t] / f[63 - t] + -f[t] / 8 - 1.5f;

//// double arithmetic
    double a = f[t], b = f[63 - t]; d[t] = a * b + a / b - 3 * b + b / 4 - a * 0.1 +
    sqrt(fabs(a)) + fma(a, b, 1.0);

//// contraction
    float a = f[t], b = f[63 - t], p = a * b, q = a * a; float r = p + 1; q += b * b; d[t] = r +
    q * 2 + (a - b * 3) + (p - q) ; d[t] += a * b - 2;

//// no contraction
    float a = f[t], b = f[63 - t], p = a * b; d[t] = (p + a) * (p - a) + __fadd_rn(__fmul_rn(a,
    b), a) + fmaf(a, b, a);

//// functions of floats
    float a = f[t]; d[t] = floorf(a * 9) + ceilf(a * 7) + truncf(a * 5) + rintf(a * 3) +
    fminf(a, .1f) + max(a, 0.2f) + abs(a) + fmax(a, 1.0) + min(1.5, a);

//// functions of ints
    int a = x[t]; out[t] = min(a, 3) + max(a, -3) + abs(a) + __popc(a) + __clz(a) + __ffs(a) +
    __mulhi(a, 1 << 30) + __umulhi(a, 3u << 30) + min(5u, 7) + max(5LL, (long long)a);

//// bits
    out[t] = __float_as_int(f[t]) + (long long)__brev(t) + __float_as_uint(f[t]); d[t] =
    __int_as_float(0x3f800000 + t);

//// loops
    int n = 0; for (int i = 0; i < 9; i++) { if (i == t % 5) continue; if (i > t % 11) break;
    int j = i; while (j-- > 0) { if (j == 3) break; n += j; } do n++; while (n % 3); } out[t] =
    n;

//// endless
    int n = t; for (;;) { n = n * 3 % 101; if (n < 20) break; } while (true) { if (++n > 30)
    break; } out[t] = n;

//// early return
    if (t % 3 == 0) { out[t] = 5; return; } else if (t % 3 == 1) return; out[t] = 6;

//// scopes
    int a = 1; { int a = 2; a++; s[t] = a; } for (int a = 5; a < 7; a++) s[t] += a; out[t] = a +
    s[t];

//// bools
    bool a = t > 5, b = !a, c = a ^ b; c |= t == 3; a = x[t]; out[t] = a + 2 * b + 4 * c + (a ==
    b) + -a + ~b + (a > b); __shared__ bool z[64]; z[t] = t & 2; out[t] += z[t];

//// narrow memory
    __shared__ short h[64]; __shared__ unsigned char u[64]; signed char c[2]; h[t] = x[t] * 99;
    u[t] = x[t]; c[0] = x[t]; c[1] = c[0] * 2; out[t] = h[t] + u[t] * 3 + c[1] + low(x[t]) +
    odd(t);

//// atomics
    out[t] = 0; __shared__ int c; __shared__ unsigned u; if (t == 0) { c = 3; u = 9; }
    __syncthreads(); atomicAdd(&c, t); atomicMax(&u, (unsigned)t); atomicSub(&c, 1);
    atomicOr(&u, 1024u); __syncthreads(); out[t] = c + u;

//// more atomics
    int *p = &s[0]; __syncthreads(); if (t == 5) { out[0] = atomicCAS(p, s[0], 77); out[1] =
    atomicExch(&s[1], 4); out[2] = atomicMin(&x[2], -5000); out[3] = atomicAnd(x + 3, 255);
    out[4] = atomicXor(&s[4], 15); } float *g = f; atomicAdd(g + 63, 1.0f);

//// long atomics
    unsigned long long *u = (unsigned long long *)out; atomicAdd(&u[5], 3ull); atomicMax(u + 6,
    (unsigned long long)t); atomicAdd(&d[3], 1.0);

//// shuffles
    out[t] = __shfl_sync(-1u, x[t], 5) + __shfl_up_sync(0xffffffff, t, 3) +
    __shfl_down_sync(0xffffffffu, t, t % 2 + 1) + __shfl_xor_sync(~0u, t, 7, 16) +
    __shfl_sync(-1, x[t], t + 1, 8); d[t] = __shfl_xor_sync(-1, (double)f[t], 1) +
    __shfl_down_sync(-1, f[t], 2); long long q = __shfl_up_sync(-1, (long long)t << 40, 1, 4);
    out[t] += q;

//// votes
    out[t] = __ballot_sync(0xffffffff, x[t] > 0) + __any_sync(~0u, t == 3) + 2 * __all_sync(~0u,
    t < 40) + __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, x[t]) + __activemask();

//// fences
    s[t] = t; __threadfence_block(); __syncwarp(); out[t] = s[t ^ 1]; __threadfence();
    __syncwarp(0xffffffffu);

//// volatile
    volatile int *p = s; p[t] = t; __syncwarp(); p[t] += 1; __syncwarp(); out[t] = p[t ^ 1];
    volatile int a = t; a++; out[t] += a;

//// dynamic index
    int a[8] = {1, 2, 3}; a[x[t] & 7] += 5; int *p = a + 2; p[1] = 9; out[t] = a[t % 8] + p[0] +
    *(p - 1);

//// auto
    auto a = x[t]; auto b = f[t] * 2; auto *p = &s[3]; const auto c = 3u; auto v = make_int2(1,
    2); out[t] = a + *p + c + v.y + sizeof(a + 1LL); d[t] = b;

//// sizes
    __shared__ double q[3][5]; out[t] = sizeof(q) + sizeof q[0] + sizeof(float4) + sizeof(int *)
    + sizeof(char) + sizeof(s) / sizeof(s[0]) + sizeof(x[0]);

//// dimensions
    out[t] = blockDim.x + 10 * blockIdx.x + 100 * gridDim.x + threadIdx.y + blockDim.z +
    warpSize - blockIdx.x * 2;

//// grouping
    out[t] = 2 + 3 * 4 - 10 / 3 % 2 << 1 & 0xff | 64 ^ 3 == 3 > 1; out[t] += t - 1 - 2 * -3 - -t
    + !t * ~t;

//// casts
    out[t] = int(f[t]) + (int)3.9f + static_cast<long long>(t) + float(t) / 2 == t; out[t] +=
    (char)300 + unsigned(7) + (unsigned short)-1 + bool(5);

//// unused
    int a = x[t], b = a / 7; float g = f[t] / b; (void)g; b + 3; x[t]; out[t] = a;

//// constant conditions
    if (N == 4) out[t] = 1; else out[t] = 2; if (false) out[t] = 3; while (false) ; do out[t] +=
    2; while (0); for (; N > 5;) ; out[t] += N > 3 ? 10 : x[1000000];

//// spaces of loops
    const int *p = x; for (int i = 0; i < 4; i++) { out[t] += *p; p = i % 2 ? s + i : x + i; }

//// pointer arithmetic
    int *e = s + 64, *p = e - 1 - t; out[t] = *p + (e - p) + p[-(t > 60 ? 0 : 0)] + *(1 + s);

//// wide indices
    long long i = t; size_t j = 63 - t; unsigned u = t; unsigned char c = t; out[t] = x[i] +
    s[j] + x[u / 2] + s[c] + x[(short)t] + *(x + i - 0);

//// negative indices
    int *m = x + 32; out[t] = m[t - 32] + m[-1] + m[(t & 31) - 32 + 1] + *(m - t % 32);

//// static constants
    static const int a = 3; static constexpr float b[2] = {1.5f, 2}; static __shared__ int c[64];
    c[t] = a; out[t] = c[t] + a; d[t] = b[t % 2];
