/* The seed of the hash tables whose keys come from untrusted text. */
#ifndef EMU_HASH_H
#define EMU_HASH_H

#include <stdint.h>

/* Odd, and drawn once per process, so that a text cannot be written whose names, or constants, all have one
 * hash. */
uint64_t hash_seed(void);

#endif
