/* Stores of 8 and 16 bytes. In PTX, because the compiler splits a vector assembled from registers
 * into several stores. */
#ifndef SMK_STORE_BITS_CUH
#define SMK_STORE_BITS_CUH

__device__ __forceinline__ void store_bits(void *p, uint4 v) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}
__device__ __forceinline__ void store_bits(void *p, uint2 v) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(v.x), "r"(v.y) : "memory");
}

template <int BYTES> struct bits_type {
    typedef uint4 type;
};
template <> struct bits_type<8> {
    typedef uint2 type;
};

#endif
