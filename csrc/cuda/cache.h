/* Compiled text on disk, by key. A cache: whatever goes wrong, the answer is "not there" and the
 * caller compiles. Any number of processes may use a directory at once. */
#ifndef SMK_CUDA_CACHE_H
#define SMK_CUDA_CACHE_H

#include "sha256.h"

/* The text, malloc'ed and NUL-terminated, or NULL. Only what was stored under this key, whole and
 * unchanged, is given. */
char *cache_load(const char *directory, const uint8_t key[SHA256_BYTES], size_t *bytes);

/* The directory is made if need be, for its owner alone. One that others can write to is not used:
 * its contents are run as code. */
void cache_store(const char *directory, const uint8_t key[SHA256_BYTES], const char *text,
                 size_t bytes);

#endif
