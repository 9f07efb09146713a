/* SHA-256 (FIPS 180-4): keys of the cache, and digests of its entries. */
#ifndef SMK_CUDA_SHA256_H
#define SMK_CUDA_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    uint8_t block[64];
} sha256;

void sha256_start(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t bytes);
void sha256_finish(sha256 *s, uint8_t digest[SHA256_BYTES]);

#endif
