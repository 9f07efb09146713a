/* Two observers of one launch, combined into one. */
#ifndef EMU_OBSERVER_PAIR_H
#define EMU_OBSERVER_PAIR_H

#include "observer.h"

typedef struct observer_pair {
    emu_observer first, second;
} observer_pair;

/* An observer that calls each hook of `first`, then of `second`. The pair must outlive it. */
emu_observer observer_of_pair(observer_pair *pair);

#endif
