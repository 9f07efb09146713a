// Scaled copy of a matrix by tensor copies: tiles come in on an mbarrier, three in flight, and go back out.
typedef unsigned long long u64;
struct alignas(64) Map {
    char bytes[128];
};

__device__ unsigned in_shared(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ void load_tile(void *to, const Map &map, int column, int row, unsigned bytes, u64 *full) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(in_shared(full)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(in_shared(to)), "l"(&map), "r"(column), "r"(row), "r"(in_shared(full))
                 : "memory");
}

__device__ void store_tile(const Map &map, int column, int row, const void *from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 "cp.async.bulk.commit_group;"
                 :: "l"(&map), "r"(column), "r"(row), "r"(in_shared(from)) : "memory");
}

__device__ void wait(u64 *full, int parity) {
    asm volatile("{.reg .pred done;"
                 "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 "@!done bra AGAIN;}"
                 :: "r"(in_shared(full)), "r"(parity) : "memory");
}

// A block does a row of tiles. What hangs over the matrix is cut off by the maps, on the way in and out.
template <int ROWS, int COLS>
__global__ void tma_tile_copy(const __grid_constant__ Map from, const __grid_constant__ Map to,
                              float scale, int tiles) {
    constexpr int STAGES = 3;
    __shared__ alignas(128) float tile[STAGES][ROWS][COLS];
    __shared__ u64 full[STAGES];
    const int row = blockIdx.x * ROWS;
    const bool leads = threadIdx.x == 0;
    if (leads) {
        for (int s = 0; s < STAGES; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(&full[s])));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int t = 0; t < STAGES - 1 && t < tiles; t++)
            load_tile(tile[t], from, t * COLS, row, sizeof tile[t], &full[t]);
    }
    __syncthreads();
    for (int t = 0; t < tiles; t++) {
        const int s = t % STAGES, next = t + STAGES - 1;
        wait(&full[s], t / STAGES & 1);
        for (int i = threadIdx.x; i < ROWS * COLS; i += blockDim.x)
            tile[s][i / COLS][i % COLS] *= scale;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (!leads) continue;
        store_tile(to, t * COLS, row, tile[s]);
        if (next < tiles) {
            // The next tile comes where the one before this was, which has to have been read.
            asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            load_tile(tile[next % STAGES], from, next * COLS, row, sizeof tile[s],
                      &full[next % STAGES]);
        }
    }
    if (leads) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
