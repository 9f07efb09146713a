/* qsort, but equal items keep their order: the C library's qsort need not, and hosts differ. */
#ifndef EMU_STABLE_SORT_H
#define EMU_STABLE_SORT_H

#include <stddef.h>

void stable_sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
