/* Sizes from untrusted text and arguments are 64 bits wide, also where size_t has 32. */
#ifndef EMU_SIZE_H
#define EMU_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* SIZE_MAX if it does not fit, of which no allocator has so many bytes. */
static inline size_t size_from(uint64_t bytes) {
    return bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

#endif
