/* In which wavefront of a request to shared memory each lane is served. */
#ifndef EMU_WAVEFRONT_INDEX_H
#define EMU_WAVEFRONT_INDEX_H

#include "../observe/observer.h"

enum { WAVEFRONT_NONE = 255 }; /* of lanes that are not active */

/* Sets index[lane] to a number below the request's cost (request_cost.h). Lanes are served in
 * ascending order. An atomic or a copy may take further wavefronts that serve no lane: attempts
 * to store that fail, and reads that wait for writes. */
void wavefront_index(const emu_request *r, uint8_t index[32]);

#endif
