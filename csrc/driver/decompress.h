/* The two compressed forms of code in fat binaries. Input is untrusted: both functions check every
 * read and write, and return false if the input is not what the format allows, or if it does not
 * give exactly `out_bytes` bytes. */
#ifndef DRIVER_DECOMPRESS_H
#define DRIVER_DECOMPRESS_H

#include <stdbool.h>
#include <stddef.h>

bool zstd_decompress(const void *in, size_t bytes, unsigned char *out, size_t out_bytes);
bool lz4_decompress(const void *in, size_t bytes, unsigned char *out, size_t out_bytes);

#endif
