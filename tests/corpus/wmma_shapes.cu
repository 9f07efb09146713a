// wmma's shapes, types and layouts: one warp, a product of one tile whose factors and result pass through shared memory.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda::wmma;

// A matrix as its layout has it: lines of so many elements, which lie some elements further apart.
template <typename T, int LINES, int LENGTH>
struct Lines {
    static constexpr int pitch = LENGTH + 16 / sizeof(T);
    alignas(32) T at[LINES][pitch];

    __device__ void load(const T *from) {
        for (int i = threadIdx.x; i < LINES * LENGTH; i += 32)
            at[i / LENGTH][i % LENGTH] = from[i];
        __syncwarp();
    }
    __device__ void store(T *to) const {
        __syncwarp();
        for (int i = threadIdx.x; i < LINES * LENGTH; i += 32)
            to[i] = at[i / LENGTH][i % LENGTH];
    }
};

template <bool ROWS>
struct Layout {
    using type = col_major;
};
template <>
struct Layout<true> {
    using type = row_major;
};

// ELEMENT is what wmma calls the type, T what it is in memory. A is M x K, B is K x N.
template <int M, int N, int K, typename ELEMENT, typename T, typename SUM, bool A_ROWS, bool B_ROWS,
          bool C_ROWS>
__global__ void wmma_shapes(const T *A, const T *B, SUM *C) {
    __shared__ Lines<T, A_ROWS ? M : K, A_ROWS ? K : M> a;
    __shared__ Lines<T, B_ROWS ? K : N, B_ROWS ? N : K> b;
    __shared__ Lines<SUM, C_ROWS ? M : N, C_ROWS ? N : M> c;
    a.load(A), b.load(B), c.load(C);
    fragment<matrix_a, M, N, K, ELEMENT, typename Layout<A_ROWS>::type> fa;
    fragment<matrix_b, M, N, K, ELEMENT, typename Layout<B_ROWS>::type> fb;
    fragment<accumulator, M, N, K, SUM> fc;
    constexpr layout_t layout = C_ROWS ? mem_row_major : mem_col_major;
    load_matrix_sync(fa, &a.at[0][0], a.pitch);
    load_matrix_sync(fb, &b.at[0][0], b.pitch);
    load_matrix_sync(fc, &c.at[0][0], c.pitch, layout);
    mma_sync(fc, fa, fb, fc);
    store_matrix_sync(&c.at[0][0], fc, c.pitch, layout);
    c.store(C);
}
