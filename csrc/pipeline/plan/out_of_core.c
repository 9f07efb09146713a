/* Products in less device memory than their operands take. Blocks of one operand, A or B, stay side
 * by side in a panel while blocks of the other one are streamed past; then the next blocks stay. A
 * tile task multiplies one streamed block with as many blocks of the panel as fill the GPU. */
#include <stdlib.h>

#include "blocks.h"

enum {
    RESULT_SLOTS = 2,   /* per compute stream: one being computed, one being copied out */
    STREAMED_SLOTS = 2, /* min: one in use, one being filled */
    PREPACKED_PART = 8  /* a panel is kept prepacked if that takes at most 1/8 of its own bytes */
};

typedef struct resident_panel {
    block_grid grid;
    block_memory memory;    /* with the panel and its slots */
    int64_t streamed_slots; /* of the other operand */
    int64_t panel_blocks;   /* per tile task, once they have arrived */
    int64_t lead_in; /* streamed blocks that each panel block is multiplied with as it arrives */
    double seconds;  /* predicted; 0: it does not fit */
} resident_panel;

static void schedule_panel_product(schedule *s, const blocking *b, int64_t matrix, int64_t resident,
                                   int64_t streamed, int64_t panel_blocks, bool prepacks) {
    const bool panel_of_b = b->memory.panel == 1;
    schedule_product(s, b, matrix, panel_of_b ? streamed : resident,
                     panel_of_b ? resident : streamed, panel_blocks, prepacks);
}

/* One pass over the streamed operand per filling of the panel. Passes alternate in direction, so
 * that the next one begins with blocks that are still on the device. */
static void schedule_passes(schedule *s, const blocking *b, const resident_panel *r,
                            int64_t matrix) {
    const int64_t n_resident = b->grid.count[b->memory.panel], slots = b->memory.panel_slots;
    const int64_t n_streamed = b->grid.count[!b->memory.panel];
    for (int64_t first = 0, pass = 0; first < n_resident; first += slots, pass++) {
        const int64_t n = min_i64(slots, n_resident - first);
        for (int64_t k = 0; k < n; k++) /* panel blocks arrive one by one */
            for (int64_t i = 0; i < r->lead_in; i++)
                schedule_panel_product(s, b, matrix, first + k, pass % 2 ? n_streamed - 1 - i : i,
                                       1, false);
        for (int64_t i = r->lead_in; i < n_streamed; i++)
            for (int64_t k = 0; k < n; k += r->panel_blocks)
                schedule_panel_product(s, b, matrix, first + k, pass % 2 ? n_streamed - 1 - i : i,
                                       min_i64(r->panel_blocks, n - k), true);
    }
}

static double max_f64(double a, double b) {
    return a > b ? a : b;
}

/* Sets lead_in and seconds. Each pass begins with panel blocks that arrive and are multiplied with
 * the first streamed blocks, as many as there is time for. Then the time is that of the bus or that
 * of tile tasks, whichever is longer. A tile task takes its time alone divided by the number that
 * run at once. Compute streams limit that number, and so do the streamed slots: no tile task uses a
 * slot while its next block arrives. */
static void predict(const blocking *b, resident_panel *r, int64_t panel_block_bytes) {
    const transfer_rates *rates = b->problem.rates;
    const int panel = b->memory.panel;
    const double start = rates->start_seconds;
    const double min_outputs = (double)rates->full_gpu_outputs / 2.0; /* fewer take as long */
    const double n_resident = (double)b->grid.count[panel];
    const double n_streamed = (double)b->grid.count[!panel];
    const double passes = (double)ceil_div(b->grid.count[panel], b->memory.panel_slots);
    const double tasks_per_column = (double)ceil_div(b->grid.count[panel], r->panel_blocks);
    const double streams = b->memory.compute_streams;
    const double arrival = seconds_on_bus(rates, (double)panel_block_bytes);
    const double streaming = seconds_on_bus(rates, (double)b->memory.slot_bytes[!panel]);
    const double output_seconds = (double)b->problem.gemm->K / rates->multiply_adds_per_second;
    const double outputs = (double)b->grid.size[0] * (double)b->grid.size[1];
    const double first = output_seconds * max_f64(outputs, min_outputs) + start;
    const double work = output_seconds * outputs * (double)r->panel_blocks;
    const double alone = max_f64(work, output_seconds * min_outputs) + start;
    r->lead_in = (int64_t)(streams * arrival / first);
    r->lead_in = max_i64(1, min_i64(r->lead_in, r->streamed_slots));
    const double lead_in = n_resident * max_f64((double)r->lead_in * first / streams, arrival);
    const double per_slot = (alone + rates->late_arrival * streaming) / (double)r->streamed_slots;
    const double task = max_f64(work, max_f64(alone / streams, per_slot));
    const double bus = n_resident * arrival + passes * n_streamed * streaming;
    r->seconds =
        lead_in + max_f64(bus, tasks_per_column * (n_streamed - (double)r->lead_in) * task);
}

/* Fits a panel into the memory, for the operand, block size and compute streams set in `b`. *needed
 * falls to the memory that would be enough. A prepacked panel is kept only if it is small, as the
 * largest elements of columns are: the memory is for blocks. */
static smk_code size_panel(blocking *b, int operand, int64_t streamed_slots, resident_panel *r,
                           int64_t *needed, smk_status *status) {
    const int64_t full = b->problem.rates->full_gpu_outputs;
    const int64_t memory = (int64_t)b->problem.query->memory;
    const int64_t block_bytes = b->memory.slot_bytes[operand], count = b->grid.count[operand];
    int64_t workspace;
    *r = (resident_panel){.streamed_slots = min_i64(streamed_slots, b->grid.count[!operand])};
    r->panel_blocks = full / (b->grid.size[0] * b->grid.size[1]);
    r->panel_blocks = max_i64(1, min_i64(r->panel_blocks, count));
    b->memory.panel = operand;
    for (; r->panel_blocks; r->panel_blocks /= 2) {
        b->memory.panel_slots = r->panel_blocks;
        block_size_slots(b, r->panel_blocks);
        int64_t max[2] = {0, 0};
        max[operand] = r->panel_blocks * block_bytes / PREPACKED_PART;
        if (block_size_scratch(b, r->panel_blocks, max, &workspace, status)) return status->code;
        const int64_t slot_bytes = block_bytes + b->memory.prepacked_bytes[operand];
        const int64_t fixed = workspace + r->streamed_slots * b->memory.slot_bytes[!operand] +
                              RESULT_SLOTS * b->memory.compute_streams * b->memory.slot_bytes[2];
        const int64_t min_slots = min_i64(2, count);
        *needed = min_i64(*needed, fixed + min_slots * slot_bytes);
        const int64_t room = (memory - fixed) / (slot_bytes + !slot_bytes);
        if (room < min_slots || room < r->panel_blocks) continue;
        b->memory.panel_slots = ceil_div(count, ceil_div(count, min_i64(room, count)));
        r->panel_blocks = min_i64(r->panel_blocks, b->memory.panel_slots);
        block_size_slots(b, r->panel_blocks);
        predict(b, r, block_bytes);
        r->grid = b->grid;
        r->memory = b->memory;
        break;
    }
    return SMK_OK;
}

/* The panel that is predicted to be the fastest of those that fit. */
static smk_code choose_panel(blocking *b, resident_panel *best, smk_status *status) {
    enum { MAX_SIZE = 2048, MAX_RATIO = 4, CHOICES = 12 };
    int64_t needed = INT64_MAX;
    *best = (resident_panel){.seconds = 0};
    for (int64_t size = MAX_SIZE; size >= MIN_BLOCK_ROWS; size /= 2) {
        for (int64_t thin = size / MAX_RATIO; thin <= size; thin *= 2) {
            const int64_t streamed = max_i64(thin, MIN_BLOCK_ROWS);
            for (int choice = 0; choice < CHOICES; choice++) {
                const int operand = choice & 1;
                resident_panel r;
                b->memory.panel = NONE;
                b->memory.compute_streams = SMK_COMPUTE_STREAMS >> choice / 4; /* 4, 2, 1 */
                block_cut(b, operand ? streamed : size, operand ? size : streamed);
                if (size_panel(b, operand, STREAMED_SLOTS + !(choice & 2), &r, &needed, status))
                    return status->code;
                if (r.seconds > 0 && (best->seconds == 0 || r.seconds < best->seconds)) *best = r;
            }
        }
    }
    return best->seconds > 0 ? SMK_OK : block_refuse_memory(b, needed, status);
}

smk_code out_of_core_gemm(blocking *b, smk_pipeline_plan *out, smk_status *status) {
    schedule order;
    resident_panel r;
    if (choose_panel(b, &r, status)) return status->code;
    b->grid = r.grid;
    b->memory = r.memory;
    int64_t slots[3] = {r.streamed_slots, r.streamed_slots,
                        RESULT_SLOTS * b->memory.compute_streams};
    slots[b->memory.panel] = b->memory.panel_slots;
    if (schedule_init(&order, b, status)) return status->code;
    for (int64_t matrix = 0; matrix < b->grid.matrices; matrix++)
        schedule_passes(&order, b, &r, matrix);
    const smk_code code = pipeline_build(b, &order, slots, out, status);
    free(order.tasks);
    return code;
}
