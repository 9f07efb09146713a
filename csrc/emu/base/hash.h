/* The seed of hash tables whose keys come from untrusted text. */
#ifndef EMU_HASH_H
#define EMU_HASH_H

#include <stdint.h>

/* Random, odd, and chosen once per process. This prevents hash flooding: a PTX text cannot be
 * crafted so that all its names or constants collide. */
uint64_t hash_seed(void);

#endif
