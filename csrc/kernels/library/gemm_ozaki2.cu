/* GEMM of float64 matrices by int8 tensor cores: the Ozaki scheme II.
 *
 *   A, B   scale rows and columns by powers of two, round to integers A', B' (ozaki_pack.cuh)
 *   A', B' mod p_i      MODULI planes of int8, p_i = 256, 255, 253, 251, ... pairwise coprime
 *   C' mod p_i          MODULI products by wgmma, exact in int32; the sums modulo p_i are stored
 *   C      the integers C' from their residues (ozaki_combine.cuh), scaled, rounded once
 *
 * So the only errors are the roundings of A and B to integers and of the result: about those of a
 * float64 sum with 14 moduli, relative to the norms of row and column (docs/choosing.md).
 * FLOPs: MODULI times 2 M N K at int8's rate, 32 times that of float64's tensor cores.
 * Bytes: MODULI + 16 per element of A and B, 2 MODULI + 8 per element of C, and the product's.
 * Banks: as in wgmma_16bit.cuh, with 128 elements of K per row of a tile.
 * Differs from fp64 by integer products.
 */
#include "wgmma_bytes.cuh"

OZAKI_KERNEL(gemm_ozaki2, THREADS, 1) {
    let_next_launch_begin();
    ring r = ring_init();
    const int down = (int)((g.M + BLOCK_M - 1) / BLOCK_M);
    const int across = (int)((g.N + BLOCK_N - 1) / BLOCK_N);
    const int items = down * across * MODULI * o.batches, warp = warp_of_block();
    const int steps = (o.k + OZAKI_STEP - 1) / OZAKI_STEP;
    if (threadIdx.x == 0) {
        tma_prefetch_map(&a_map);
        tma_prefetch_map(&b_map);
    }
    wait_for_launch_before();
    if (MULTIPLIES(warp)) {
        take_registers<CONSUMER_REGISTERS>();
        const int consumer = warp / 4 - 1;
        /* One warpgroup is ahead of the other, so that one multiplies while the other stores its
         * half of a tile. They stay apart, because within the ring neither waits for the other. */
        if (consumer == 1 && o.lead > 0 && items >= 16 * (int)gridDim.x) __nanosleep(500 * o.lead);
        for (int item = blockIdx.x; item < items; item += gridDim.x) {
            const plane_tile t = tile_of(item, down, across);
            int sum[REGISTERS];
            accumulate(sum, r, consumer, steps);
            if (o.first_k > 0) add_before(o, sum, g, t, t.row + 64 * consumer);
            store(&c_map, sum, r.out + consumer * 2 * BOX, consumer, t);
        }
        if (is_leader()) tma_store_wait_read<0>(); /* before the block exits */
        return;
    }
    give_registers<PRODUCER_REGISTERS>();
    if (warp == 0 && elect_one()) {
        for (int item = blockIdx.x; item < items; item += gridDim.x) {
            const plane_tile t = tile_of(item, down, across);
            for (int step = 0; step < steps; step++, next(r))
                fill(g, &a_map, &b_map, r, t, step);
        }
    }
}

OZAKI_OTHER_KERNELS(gemm_ozaki2)
