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

static double sum_of(const ring_tree *trees, size_t n, const float facts[RING_FACTS]) {
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned leaf = 0;
        for (int level = 0; level < LEVELS; level++)
            leaf |= (unsigned)(facts[trees[i].fact[level]] > trees[i].border[level]) << level;
        sum += trees[i].leaf[leaf];
    }
    return (double)sum * 1e-4;
}

double ring_trees(int64_t itemsize, const double facts[RING_FACTS]) {
    float x[RING_FACTS];
    for (int i = 0; i < RING_FACTS; i++)
        x[i] = (float)facts[i];
    return exp(itemsize == 2 ? sum_of(TREES_16, sizeof TREES_16 / sizeof *TREES_16, x)
                             : sum_of(TREES_32, sizeof TREES_32 / sizeof *TREES_32, x));
}
