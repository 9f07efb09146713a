/* On-disk cache of compiled PTX. Every failure counts as a miss, and the caller compiles. Several
 * processes may use a directory at the same time. */
#ifndef SMK_CUDA_CACHE_H
#define SMK_CUDA_CACHE_H

#include "sha256.h"

/* Returns the text stored under this key, malloc'ed and NUL-terminated; NULL if there is none or
 * the file is damaged. */
char *cache_load(const char *directory, const uint8_t key[SHA256_BYTES], size_t *bytes);

/* Creates the directory if it is missing, with access for its owner only. A directory that others
 * can write to is not used, because its contents run as code. */
void cache_store(const char *directory, const uint8_t key[SHA256_BYTES], const char *text,
                 size_t bytes);

#endif
