/* Which shared loads ptxas joins: see widen.c. */
#ifndef EMU_WIDEN_H
#define EMU_WIDEN_H

#include "ptx.h"

/* What becomes of an instruction of PTX. */
typedef struct widened {
    bool joined;   /* an earlier load fetches its words too: the machine does not run it */
    uint8_t width; /* bytes a lane that the machine loads instead; 0: as written */
    int8_t shift;  /* from the address written to the one loaded: at most 0 */
} widened;

/* One for each instruction of the function, to be freed; NULL: out of memory. */
widened *widen_loads(const ptx_function *f);

#endif
