/* Two observers that watch one launch. */
#ifndef EMU_OBSERVERS_H
#define EMU_OBSERVERS_H

#include "observer.h"

typedef struct observer_pair {
    emu_observer first, second;
} observer_pair;

/* Both see everything, the first before the second. The pair must outlive the observer. */
emu_observer observer_of_pair(observer_pair *pair);

#endif
