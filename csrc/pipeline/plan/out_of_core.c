/* Products in less memory than they take (plan_flow.c has the picture). */
#include <stdlib.h>

#include "blocks.h"
#include "../../core/plan_parts.h"

enum {
    ALL_OUTPUTS = 4 << 20, /* elements of a result that keep all of a large GPU busy */
    RESULTS = 2,           /* slots a lane: one being computed and one leaving */
    STREAMED = 2,          /* slots of an operand that passes by: one in use, one on its way */
    LITTLE = 8             /* what is kept may be this part of what it was made of */
};

/* How a product goes through less memory than it takes: blocks of the outer operand stay, side by side in a panel, while
 * those of the inner one pass by, to and fro; then the next ones stay. A unit has a run of outer blocks, once they
 * have arrived, so that it fills the GPU. */
typedef struct residence {
    int outer; /* operand */
    int lanes;
    int64_t size[2]; /* of the blocks, along M and N */
    int64_t stay, inner, run;
    int64_t begin;  /* inner blocks that an outer one meets alone, as it arrives */
    int64_t kept;   /* bytes of each place, of what the runs make */
    double seconds; /* expected; 0: it does not fit */
} residence;

static void append_turn(schedule *order, const blocks *all, const residence *r, int64_t matrix,
                        int64_t outer, int64_t inner, int64_t run, bool keeps) {
    schedule_product(order, all, matrix, r->outer ? inner : outer, r->outer ? outer : inner, run,
                     keeps);
}

static void order_turns(const blocks *all, const residence *r, int64_t matrix, schedule *order) {
    const int64_t n_outer = all->count[r->outer], n_inner = all->count[!r->outer];
    for (int64_t first = 0, turn = 0; first < n_outer; first += r->stay, turn++) {
        const int64_t n = min_i64(r->stay, n_outer - first);
        for (int64_t k = 0; k < n; k++) /* they arrive one by one */
            for (int64_t step = 0; step < r->begin; step++)
                append_turn(order, all, r, matrix, first + k, turn % 2 ? n_inner - 1 - step : step,
                            1, false);
        for (int64_t step = r->begin; step < n_inner; step++)
            for (int64_t k = 0; k < n; k += r->run)
                append_turn(order, all, r, matrix, first + k, turn % 2 ? n_inner - 1 - step : step,
                            min_i64(r->run, n - k), true);
    }
}

static double most_of(double a, double b) {
    return a > b ? a : b;
}

/* About how long it takes. At the beginning of each turn outer blocks arrive and meet the first inner ones, as many as
 * that leaves time for. Then it waits for the bus or for units: these take as long as one does alone, divided by how many
 * go at the same time, which lanes limit, and slots of inner blocks, where nothing goes while the next block arrives.
 *
 * The rates are what such products took on an H200, 89 ways to cut them: it is within 9 % of these times (in the mean), and
 * what it chose took at most 6 % longer than the fastest. Those of other element types differ, but what is compared are
 * ways to cut one problem. */
static void expect(const blocks *all, const smk_gemm *p, residence *r, int64_t outer_bytes) {
    const double products = 58e12, start = 100e-6;
    const double half_full = ALL_OUTPUTS / 2.0; /* a unit of fewer takes as long */
    const double late = 1.25; /* an inner block's arrival takes longer, as others come first */
    const double n_outer = (double)all->count[r->outer], n_inner = (double)all->count[!r->outer];
    const double turns = (double)ceil_div(all->count[r->outer], r->stay);
    const double runs = (double)ceil_div(all->count[r->outer], r->run), lanes = r->lanes;
    const double arriving = seconds_on_bus((double)outer_bytes);
    const double passing = seconds_on_bus((double)all->slot_bytes[!r->outer]);
    const double each = (double)p->K / products; /* seconds of an output */
    const double outputs = (double)all->size[0] * (double)all->size[1];
    const double first = each * most_of(outputs, half_full) + start;
    const double work = each * outputs * (double)r->run;
    const double alone = most_of(work, each * half_full) + start;
    r->begin = (int64_t)(lanes * arriving / first);
    r->begin = max_i64(1, min_i64(r->begin, r->inner));
    const double begins = n_outer * most_of((double)r->begin * first / lanes, arriving);
    const double slots = (alone + late * passing) / (double)r->inner;
    const double unit = most_of(work, most_of(alone / lanes, slots));
    const double moved = n_outer * arriving + turns * n_inner * passing;
    r->seconds = begins + most_of(moved, runs * (n_inner - (double)r->begin) * unit);
}

/* Fills in what follows from the sizes, the lanes and the slots of the inner operand. `needed` falls to the memory that
 * would do. What products make of a run is kept where that is little, as the largest of each column: the memory is for
 * blocks. */
static smk_code reside(blocks *all, const smk_gemm *p, residence *r, int64_t *needed,
                       smk_status *status) {
    int64_t workspace;
    all->panel = NONE;
    all->lanes = r->lanes;
    block_count(all, p->M, p->N, r->size[0], r->size[1]);
    const int64_t outer_bytes = all->slot_bytes[r->outer], count = all->count[r->outer];
    r->run = ALL_OUTPUTS / (all->size[0] * all->size[1]);
    r->run = max_i64(1, min_i64(r->run, count));
    r->inner = min_i64(r->inner, all->count[!r->outer]);
    r->seconds = 0;
    all->panel = r->outer;
    for (;; r->run /= 2) {
        all->stay = r->run;
        block_size_slots(all, r->run);
        int64_t most[2] = {0, 0};
        most[r->outer] = r->run * outer_bytes / LITTLE;
        if (block_size_scratch(all, r->run, most, &workspace, status)) return status->code;
        r->kept = all->kept_bytes[r->outer];
        const int64_t each = outer_bytes + r->kept;
        const int64_t fixed = workspace + r->inner * all->slot_bytes[!r->outer] +
                              RESULTS * r->lanes * all->slot_bytes[2];
        const int64_t least = min_i64(2, count);
        *needed = min_i64(*needed, fixed + least * each);
        const int64_t room = ((int64_t)all->question->memory - fixed) / (each + !each);
        if (room >= least && room >= r->run) {
            r->stay = ceil_div(count, ceil_div(count, min_i64(room, count)));
            r->run = min_i64(r->run, r->stay);
            expect(all, p, r, outer_bytes);
            return SMK_OK;
        }
        if (r->run == 1) return SMK_OK;
    }
}

/* The residence that is expected to be the fastest of those that fit. */
static smk_code choose_residence(blocks *all, const smk_gemm *p, residence *best,
                                 smk_status *status) {
    enum { LARGEST = 2048, THINNEST = 4, MOST_STREAMED = STREAMED + 1 };
    int64_t needed = INT64_MAX;
    *best = (residence){0};
    for (int64_t size = LARGEST; size >= MIN_BLOCK_ROWS; size /= 2) {
        for (int64_t thin = size / THINNEST; thin <= size; thin *= 2) {
            const int64_t inner = thin > MIN_BLOCK_ROWS ? thin : MIN_BLOCK_ROWS;
            for (int choice = 0; choice < 12; choice++) {
                const int outer = choice & 1;
                residence r = {.outer = outer,
                               .lanes = SMK_COMPUTE_STREAMS >> choice / 4, /* down to one */
                               .size = {outer ? inner : size, outer ? size : inner},
                               .inner = choice & 2 ? STREAMED : MOST_STREAMED};
                if (reside(all, p, &r, &needed, status)) return status->code;
                if (r.seconds > 0 && (best->seconds == 0 || r.seconds < best->seconds)) *best = r;
            }
        }
    }
    return best->seconds > 0 ? SMK_OK : pipeline_refuse_memory(all, needed, status);
}

smk_code out_of_core_gemm(blocks *all, const smk_gemm *p, smk_pipeline_plan *out,
                          smk_status *status) {
    schedule order = {0};
    residence r;
    if (choose_residence(all, p, &r, status)) return status->code;
    all->panel = r.outer;
    all->stay = r.stay;
    all->lanes = r.lanes;
    block_count(all, p->M, p->N, r.size[0], r.size[1]);
    block_size_slots(all, r.run);
    all->kept_bytes[r.outer] = r.kept;
    all->kept_bytes[!r.outer] = 0;
    int64_t slots[3] = {r.inner, r.inner, RESULTS * r.lanes};
    slots[r.outer] = r.stay;
    smk_code code = schedule_init(&order, schedule_n_products(all), status);
    for (int64_t matrix = 0; !code && matrix < all->matrices; matrix++)
        order_turns(all, &r, matrix, &order);
    if (!code) code = pipeline_build(all, &order, slots, out, status);
    free(order.units);
    return code;
}
