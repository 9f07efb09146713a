/* Merge sort: runs of 1, 2, 4, ... items, from the array to its copy and back. */
#include "stable_sort.h"

#include <stdlib.h>
#include <string.h>

typedef int (*compare_fn)(const void *, const void *);

/* Merges two sorted runs into `to`. Of equal items that of the first run comes first. */
static void merge(unsigned char *to, const unsigned char *first, const unsigned char *middle,
                  const unsigned char *end, size_t size, compare_fn compare) {
    const unsigned char *second = middle;
    for (; first < middle || second < end; to += size) {
        const unsigned char **from = &second;
        if (first < middle && (second == end || compare(first, second) <= 0)) from = &first;
        memcpy(to, *from, size);
        *from += size;
    }
}

/* Insertion sort, for lack of memory. */
static void insert_each(unsigned char *items, size_t n, size_t size, compare_fn compare) {
    for (size_t k = 1; k < n; k++)
        for (size_t at = k; at && compare(items + (at - 1) * size, items + at * size) > 0; at--)
            for (size_t byte = 0; byte < size; byte++) {
                unsigned char *one = items + (at - 1) * size + byte, kept = *one;
                *one = one[size];
                one[size] = kept;
            }
}

void stable_sort(void *items, size_t n, size_t size, compare_fn compare) {
    unsigned char *from = items, *copy = n > 1 ? calloc(n, size) : NULL, *to = copy;
    if (!copy) {
        insert_each(items, n, size, compare);
        return;
    }
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run) {
            const size_t middle = at + run < n ? at + run : n;
            const size_t end = middle + run < n ? middle + run : n;
            merge(to + at * size, from + at * size, from + middle * size, from + end * size, size,
                  compare);
        }
        unsigned char *const sorted = to;
        to = from;
        from = sorted;
    }
    if (from != items) memcpy(items, from, n * size);
    free(copy);
}
