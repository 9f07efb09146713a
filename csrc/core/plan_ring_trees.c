/* Corrects the sum of a product's terms (plan_ring.c) by boosted trees. Why: the terms are linear,
 * and times are not. Waves, ring, L2 and the order of blocks act together, and no further term that
 * was tried held for new calls. The trees are fitted to what is left (benchmarks/columns.py): of
 * random calls that the fit has not seen, half as many are behind cuBLAS by more than a tenth. All
 * splits of one level of a tree are the same.
 */
#include "plan_parts.h"

#include <math.h>

enum { LEVELS = 6 };

/* The leaf's number has a bit per level: whether the fact is more than the border. Leaves are
 * logarithms, in 1/10000. */
typedef struct ring_tree {
    uint8_t fact[LEVELS];
    float border[LEVELS];
    int16_t leaf[1 << LEVELS];
} ring_tree;

static const ring_tree TREES_16[] = {
#include "ring_trees_16.def"
};
static const ring_tree TREES_32[] = {
#include "ring_trees_32.def"
};

static void add_trees(const ring_tree *trees, size_t n, float facts[RING_FACTS][RING_NEAR],
                      int32_t sum[RING_NEAR]) {
    for (size_t i = 0; i < n; i++) {
        int32_t leaf[RING_NEAR] = {0};
        for (int level = 0; level < LEVELS; level++) {
            const float *own = facts[trees[i].fact[level]];
            for (int at = 0; at < RING_NEAR; at++) /* in vectors */
                leaf[at] |= (own[at] > trees[i].border[level]) << level;
        }
        for (int at = 0; at < RING_NEAR; at++)
            sum[at] += trees[i].leaf[leaf[at]];
    }
}

void ring_trees(int64_t itemsize, float facts[RING_FACTS][RING_NEAR], double out[RING_NEAR]) {
    int32_t sum[RING_NEAR] = {0};
    if (itemsize == 2)
        add_trees(TREES_16, sizeof TREES_16 / sizeof *TREES_16, facts, sum);
    else
        add_trees(TREES_32, sizeof TREES_32 / sizeof *TREES_32, facts, sum);
    for (int i = 0; i < RING_NEAR; i++)
        out[i] = exp(sum[i] * 1e-4);
}
