/* Hopper's instructions, one function each: TMA, wgmma, setmaxnreg. mbarrier.cuh has its barriers.
 *
 * No standard headers, because NVRTC compiles this too. Shared memory is passed as its 32-bit
 * address. Semantics: PTX ISA 9.0.
 */
#ifndef SMK_HOPPER_CUH
#define SMK_HOPPER_CUH

#include "mbarrier.cuh"
#include "shared_address.cuh"

/* Written by the driver's cuTensorMapEncodeTiled; a kernel only passes its address on. */
typedef struct __align__(64) tensor_map {
    unsigned long long words[16];
} tensor_map;

/* ---- TMA: one thread starts the copy of a box; elements outside the matrix read as 0 ---- */

__device__ __forceinline__ void tma_prefetch_map(const tensor_map *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Copies the box at (column, row) of matrix z to `to`; its bytes count at `barrier`. */
__device__ __forceinline__ void tma_load(unsigned to, const tensor_map *map, unsigned barrier,
                                         int column, int row, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(z)
                 : "memory");
}

/* Stores a box from shared memory to (column, row) of matrix z; parts outside are dropped. */
__device__ __forceinline__ void tma_store(const tensor_map *map, unsigned from, int column, int row,
                                          int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group"
                 " [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(from), "r"(column), "r"(row), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void tma_store_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until at most PENDING of this thread's groups of stores still read shared memory. */
template <int PENDING> __device__ __forceinline__ void tma_store_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

/* ---- shared memory by address ---- */

__device__ __forceinline__ void shared_store(unsigned to, float x) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}

__device__ __forceinline__ void shared_store_pair(unsigned to, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ float shared_load(unsigned from) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}

/* A 16-bit element. */
template <typename T> __device__ __forceinline__ T shared_load_half(unsigned from) {
    T v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v.bits) : "r"(from) : "memory");
    return v;
}

__device__ __forceinline__ float2 shared_load_pair(unsigned from) {
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(from) : "memory");
    return v;
}

/* Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. */
__device__ __forceinline__ void shared_store_matrices(unsigned row, unsigned m0, unsigned m1,
                                                      unsigned m2, unsigned m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
                 "r"(m0), "r"(m1), "r"(m2), "r"(m3)
                 : "memory");
}

/* x rounded to the nearest tf32. */
__device__ __forceinline__ unsigned round_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* The two fp16 halves as floats. */
__device__ __forceinline__ float2 unpack_f16(unsigned both) {
    float2 v;
    asm("{\n"
        ".reg .b16 low, high;\n"
        "mov.b32 {low, high}, %2;\n"
        "cvt.f32.f16 %0, low;\n"
        "cvt.f32.f16 %1, high;\n"
        "}"
        : "=f"(v.x), "=f"(v.y)
        : "r"(both));
    return v;
}

/* ---- warpgroups ---- */

template <int REGISTERS> __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> __device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Named barrier of `threads` threads; numbers 1..15 (0 is __syncthreads). */
__device__ __forceinline__ void group_barrier(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* ---- wgmma: 128 threads multiply tiles in shared memory ---- */

/* Descriptor of a tile in 128-byte rows, 128-byte swizzle, on a 1024-byte boundary.
 *   K-major: a row is 128 bytes of K of one m (or n); stride = 1024, from 8 rows to the next 8
 *   MN-major: a row is 128 bytes of n of one k; stride = 1024, from 8 k to the next 8; leading =
 *             from one column of such rows to the next */
__device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned address, unsigned leading,
                                                               unsigned stride) {
    return (unsigned long long)((address & 0x3ffff) >> 4) |
           (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 |
           1ull << 62;
}

/* Required before the first wgmma, and after ordinary code has touched the accumulators. */
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most PENDING of the latest committed groups are still in flight. */
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving uses of the accumulators across this point. */
template <int REGISTERS> __device__ __forceinline__ void wgmma_pin(float (&d)[REGISTERS]) {
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}
template <int REGISTERS> __device__ __forceinline__ void wgmma_pin(int (&d)[REGISTERS]) {
#pragma unroll
    for (int i = 0; i < REGISTERS; i++) {
        asm volatile("" : "+r"(d[i])::"memory");
    }
}

/* d (+)= A * B for a 64 x N tile, 32 bytes of K; `add` = 0: d is not read. One wgmma() per N below,
 * selected by d's size; A in shared memory or in registers. If A is in shared memory, the kernel
 * defines WGMMA_INPUT "f16" or "bf16", WGMMA_K "16", and WGMMA_MAJORS(A, B). If A is in registers,
 * it defines WGMMA_A_IN_REGISTERS and passes float() for tf32, an unsigned short for fp16; B is
 * K-major. WGMMA_BYTES: both are int8 in shared memory, K-major, and sums are int32.
 * Thread t of the 128 has, of row 16 (t / 32) + t % 32 / 4 + 8 h, columns 8 j + 2 (t % 4) + {0, 1}
 * in d[4 j + 2 h + {0, 1}]. C: the registers' constraint. */
#define WGMMA_FROM_4(C, d, i)  C(d[i]), C(d[i + 1]), C(d[i + 2]), C(d[i + 3])
#define WGMMA_OUT_4(C, d)      WGMMA_FROM_4(C, d, 0)
#define WGMMA_OUT_8(C, d)      WGMMA_FROM_8(C, d, 0)
#define WGMMA_OUT_12(C, d)     WGMMA_OUT_8(C, d), WGMMA_FROM_4(C, d, 8)
#define WGMMA_FROM_8(C, d, i)  WGMMA_FROM_4(C, d, i), WGMMA_FROM_4(C, d, i + 4)
#define WGMMA_FROM_16(C, d, i) WGMMA_FROM_8(C, d, i), WGMMA_FROM_8(C, d, i + 8)
#define WGMMA_FROM_32(C, d, i) WGMMA_FROM_16(C, d, i), WGMMA_FROM_16(C, d, i + 16)
#define WGMMA_OUT_16(C, d)     WGMMA_FROM_16(C, d, 0)
#define WGMMA_OUT_32(C, d)     WGMMA_OUT_16(C, d), WGMMA_FROM_16(C, d, 16)
#define WGMMA_OUT_40(C, d)     WGMMA_OUT_32(C, d), WGMMA_FROM_8(C, d, 32)
#define WGMMA_OUT_24(C, d)     WGMMA_OUT_16(C, d), WGMMA_FROM_8(C, d, 16)
#define WGMMA_OUT_48(C, d)     WGMMA_OUT_32(C, d), WGMMA_FROM_16(C, d, 32)
#define WGMMA_OUT_56(C, d)     WGMMA_OUT_48(C, d), WGMMA_FROM_8(C, d, 48)
#define WGMMA_OUT_64(C, d)     WGMMA_OUT_48(C, d), WGMMA_FROM_16(C, d, 48)
#define WGMMA_OUT_72(C, d)     WGMMA_OUT_64(C, d), WGMMA_FROM_8(C, d, 64)
#define WGMMA_OUT_80(C, d)     WGMMA_OUT_64(C, d), WGMMA_FROM_16(C, d, 64)
#define WGMMA_OUT_88(C, d)     WGMMA_OUT_80(C, d), WGMMA_FROM_8(C, d, 80)
#define WGMMA_OUT_96(C, d)     WGMMA_OUT_80(C, d), WGMMA_FROM_16(C, d, 80)
#define WGMMA_OUT_104(C, d)    WGMMA_OUT_96(C, d), WGMMA_FROM_8(C, d, 96)
#define WGMMA_OUT_112(C, d)    WGMMA_OUT_96(C, d), WGMMA_FROM_16(C, d, 96)
#define WGMMA_OUT_120(C, d)    WGMMA_OUT_112(C, d), WGMMA_FROM_8(C, d, 112)
#define WGMMA_OUT_128(C, d)    WGMMA_OUT_112(C, d), WGMMA_FROM_16(C, d, 112)
#define WGMMA_LIST_4           "%0,%1,%2,%3"
#define WGMMA_LIST_8           WGMMA_LIST_4 ",%4,%5,%6,%7"
#define WGMMA_LIST_12          WGMMA_LIST_8 ",%8,%9,%10,%11"
#define WGMMA_LIST_16          "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define WGMMA_LIST_24          WGMMA_LIST_16 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define WGMMA_LIST_32                                                                              \
    WGMMA_LIST_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define WGMMA_LIST_40 WGMMA_LIST_32 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define WGMMA_LIST_48                                                                              \
    WGMMA_LIST_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define WGMMA_LIST_56 WGMMA_LIST_48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define WGMMA_LIST_64                                                                              \
    WGMMA_LIST_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define WGMMA_LIST_72 WGMMA_LIST_64 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define WGMMA_LIST_80                                                                              \
    WGMMA_LIST_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define WGMMA_LIST_88 WGMMA_LIST_80 ",%80,%81,%82,%83,%84,%85,%86,%87"
#define WGMMA_LIST_96                                                                              \
    WGMMA_LIST_80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define WGMMA_LIST_104 WGMMA_LIST_96 ",%96,%97,%98,%99,%100,%101,%102,%103"
#define WGMMA_LIST_112                                                                             \
    WGMMA_LIST_96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define WGMMA_LIST_120 WGMMA_LIST_112 ",%112,%113,%114,%115,%116,%117,%118,%119"
#define WGMMA_LIST_128                                                                             \
    WGMMA_LIST_112                                                                                 \
    ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define WGMMA_DEFINE(N, REGISTERS, A, B, ADD, MAJOR_A, MAJOR_B)                                    \
    template <int A_ACROSS, int B_ACROSS>                                                          \
    __device__ __forceinline__ void wgmma(float (&d)[REGISTERS], unsigned long long a,             \
                                          unsigned long long b, int add) {                         \
        asm volatile("{\n"                                                                         \
                     ".reg .pred add;\n"                                                           \
                     "setp.ne.b32 add, " ADD ", 0;\n"                                              \
                     "wgmma.mma_async.sync.aligned.m64n" N "k" WGMMA_K ".f32." WGMMA_INPUT         \
                     "." WGMMA_INPUT " {" WGMMA_LIST_##REGISTERS                                   \
                     "}, " A ", " B ", add, 1, 1" WGMMA_MAJORS(MAJOR_A, MAJOR_B) ";\n"             \
                                                                                 "}"               \
                     : WGMMA_OUT_##REGISTERS("+f", d)                                              \
                     : "l"(a), "l"(b), "r"(add), "n"(A_ACROSS), "n"(B_ACROSS));                    \
    }

/* Thread t of the 128 has, of row 16 (t / 32) + t % 32 / 4 + 8 h of A, words t % 4 + 4 q of the 8
 * that make 32 bytes of K, in a[h + 2 q]. */
#define WGMMA_DEFINE_A_IN_REGISTERS(TYPE, INPUT, K, MAJOR, N, REGISTERS, A0, A1, A2, A3, B, ADD)   \
    __device__ __forceinline__ void wgmma(TYPE, float (&d)[REGISTERS], const unsigned (&a)[4],     \
                                          unsigned long long b, int add) {                         \
        asm volatile("{\n"                                                                         \
                     ".reg .pred add;\n"                                                           \
                     "setp.ne.b32 add, " ADD ", 0;\n"                                              \
                     "wgmma.mma_async.sync.aligned.m64n" N "k" K ".f32." INPUT "." INPUT           \
                     " {" WGMMA_LIST_##REGISTERS "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B         \
                                                 ", add, 1, 1" MAJOR ";\n"                         \
                                                 "}"                                               \
                     : WGMMA_OUT_##REGISTERS("+f", d)                                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));              \
    }

#ifdef WGMMA_MAJORS
WGMMA_DEFINE("8", 4, "%4", "%5", "%6", "%7", "%8")
WGMMA_DEFINE("16", 8, "%8", "%9", "%10", "%11", "%12")
WGMMA_DEFINE("24", 12, "%12", "%13", "%14", "%15", "%16")
WGMMA_DEFINE("32", 16, "%16", "%17", "%18", "%19", "%20")
WGMMA_DEFINE("48", 24, "%24", "%25", "%26", "%27", "%28")
WGMMA_DEFINE("64", 32, "%32", "%33", "%34", "%35", "%36")
WGMMA_DEFINE("80", 40, "%40", "%41", "%42", "%43", "%44")
WGMMA_DEFINE("96", 48, "%48", "%49", "%50", "%51", "%52")
WGMMA_DEFINE("112", 56, "%56", "%57", "%58", "%59", "%60")
WGMMA_DEFINE("128", 64, "%64", "%65", "%66", "%67", "%68")
WGMMA_DEFINE("144", 72, "%72", "%73", "%74", "%75", "%76")
WGMMA_DEFINE("160", 80, "%80", "%81", "%82", "%83", "%84")
WGMMA_DEFINE("176", 88, "%88", "%89", "%90", "%91", "%92")
WGMMA_DEFINE("192", 96, "%96", "%97", "%98", "%99", "%100")
WGMMA_DEFINE("208", 104, "%104", "%105", "%106", "%107", "%108")
WGMMA_DEFINE("224", 112, "%112", "%113", "%114", "%115", "%116")
WGMMA_DEFINE("240", 120, "%120", "%121", "%122", "%123", "%124")
WGMMA_DEFINE("256", 128, "%128", "%129", "%130", "%131", "%132")
#endif

#ifdef WGMMA_A_IN_REGISTERS
#define WGMMA_DEFINE_TF32(...) WGMMA_DEFINE_A_IN_REGISTERS(float, "tf32", "8", "", __VA_ARGS__)
WGMMA_DEFINE_TF32("16", 8, "%8", "%9", "%10", "%11", "%12", "%13")
WGMMA_DEFINE_TF32("32", 16, "%16", "%17", "%18", "%19", "%20", "%21")
WGMMA_DEFINE_TF32("64", 32, "%32", "%33", "%34", "%35", "%36", "%37")
WGMMA_DEFINE_TF32("96", 48, "%48", "%49", "%50", "%51", "%52", "%53")
WGMMA_DEFINE_TF32("128", 64, "%64", "%65", "%66", "%67", "%68", "%69")
WGMMA_DEFINE_TF32("160", 80, "%80", "%81", "%82", "%83", "%84", "%85")
WGMMA_DEFINE_TF32("192", 96, "%96", "%97", "%98", "%99", "%100", "%101")
WGMMA_DEFINE_TF32("224", 112, "%112", "%113", "%114", "%115", "%116", "%117")
WGMMA_DEFINE_TF32("256", 128, "%128", "%129", "%130", "%131", "%132", "%133")
WGMMA_DEFINE_A_IN_REGISTERS(unsigned short, "f16", "16", ", 0", "128", 64, "%64", "%65", "%66",
                            "%67", "%68", "%69")
#endif

#ifdef WGMMA_BYTES
__device__ __forceinline__ void wgmma(int (&d)[128], unsigned long long a, unsigned long long b,
                                      int add) {
    asm volatile("{\n"
                 ".reg .pred add;\n"
                 "setp.ne.b32 add, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {" WGMMA_LIST_128
                 "}, %128, %129, add;\n"
                 "}"
                 : WGMMA_OUT_128("+r", d)
                 : "l"(a), "l"(b), "r"(add));
}
#endif

/* tma_load() to several blocks of the cluster, a bit per rank in `ranks`: to the same place in each,
 * and the bytes count at each one's own barrier. */
__device__ __forceinline__ void tma_load_multicast(unsigned to, const tensor_map *map,
                                                   unsigned barrier, int column, int row, int z,
                                                   unsigned ranks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(z), "h"((unsigned short)ranks)
                 : "memory");
}

/* round_tf32(), but ties to even, as TMA rounds. */
__device__ __forceinline__ unsigned round_tf32_to_even(float x) {
    unsigned bits;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

/* shared_store_matrices(), of the transposes: a row has 8 elements of a column. */
__device__ __forceinline__ void shared_store_transposed(unsigned row, unsigned m0, unsigned m1,
                                                        unsigned m2, unsigned m3) {
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
        "r"(m0), "r"(m1), "r"(m2), "r"(m3)
        : "memory");
}

#endif
