/* What the planner assumes about a GPU and its host: measured rates, and the block sizes that
 * follow from them. Another chip is another row of chip_rates. */
#ifndef SMK_PIPELINE_RATES_H
#define SMK_PIPELINE_RATES_H

#include <stdint.h>

typedef struct transfer_rates {
    const char *chip;

    /* ---- cost model of out-of-core products (out_of_core.c) ---- */
    /* Of the bus, in one direction. */
    double bus_bytes_per_second;
    /* Of kernels that fill the GPU. */
    double multiply_adds_per_second;
    /* Fixed cost of a tile task. */
    double start_seconds;
    /* Result elements that keep the whole GPU busy. */
    int64_t full_gpu_outputs;
    /* Factor on the arrival time of a streamed block: other copies come first. */
    double late_arrival;

    /* ---- products with all blocks on the device (schedule.c) ---- */
    /* Min rows of A or columns of B in a block: tiles for a quarter of the GPU. */
    int64_t block_rows;
    /* Max blocks along a side: more gain nothing. */
    int64_t max_blocks;
    /* A product is transfer-bound if its kernel time is below this factor times the transfer time
     * of its larger operand. Its smaller operand is then a single block. */
    double transfer_bound;
    /* Blocks of A in transfer-bound products with the larger operand A: min rows, min bytes
     * together with their result, max number. */
    int64_t thin_rows, thin_block_bytes, max_thin_blocks;

    /* ---- batches ---- */
    /* Min bytes of a group of matrices, with all operands. */
    int64_t min_group_bytes;
    /* Matrices of more bytes, with all operands, are cut into blocks. */
    int64_t max_group_matrix_bytes;

    /* ---- transposes ---- */
    /* Blocks per matrix; min and max bytes of a block. Copying the min takes 80 us each way. */
    int64_t transpose_blocks, min_transpose_bytes, max_transpose_bytes;
    /* Min bytes of a block's rows in x, max in y. Threads gather short rows at no cost; the copy
     * engine writes long rows faster. */
    int64_t transpose_row_in, transpose_row_out;
} transfer_rates;

/* Sources: measurements on an H200, docs/performance.md and docs/history.md.
 *
 * The cost model: 89 ways to cut products of 8192 and 16384 into 100 to 1600 MB. Predictions are
 * within 9 % of the measured times on average; the chosen way took at most 6 % longer than the
 * fastest. Other element types have other rates, but only ways to cut the same problem are
 * compared.
 *
 * transfer_bound: products of 1024 to 8192 in several types. Below 1.4 a single block saved up to
 * 16 % of the time; above, it cost time. */
static const transfer_rates chip_rates[] = {
    {.chip = "H200",
     .bus_bytes_per_second = 54e9,
     .multiply_adds_per_second = 58e12,
     .start_seconds = 100e-6,
     .full_gpu_outputs = 4 << 20,
     .late_arrival = 1.25,
     .block_rows = 1024,
     .max_blocks = 8,
     .transfer_bound = 1.4,
     .thin_rows = 512,
     .thin_block_bytes = 2 << 20,
     .max_thin_blocks = 16,
     .min_group_bytes = 16 << 20,
     .max_group_matrix_bytes = 128 << 20,
     .transpose_blocks = 8,
     .min_transpose_bytes = 4 << 20,
     .max_transpose_bytes = 16 << 20,
     .transpose_row_in = 2 << 10,
     .transpose_row_out = 32 << 10},
};

/* Predicted seconds to copy this many bytes. */
static inline double seconds_on_bus(const transfer_rates *rates, double bytes) {
    return bytes / rates->bus_bytes_per_second;
}

#endif
