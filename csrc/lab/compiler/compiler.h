/* A compiler from a teaching subset of CUDA C++ to PTX.
 *
 * For pages and tests that have no other compiler. The subset and the differences from nvcc are in
 * docs/lab-language.md. The source is untrusted: any text ends in PTX or in an error, in bounded
 * time and memory.
 */
#ifndef LAB_COMPILER_H
#define LAB_COMPILER_H

#include <stddef.h>

/* PTX of all kernels in `source`, NUL-terminated, for the caller to free; or NULL, with a message
 * such as "kernel.cu:3:7: expected ';', found '}'" in `error`. `name` is the file's name, for
 * messages and line information. `source` need not be NUL-terminated. */
char *lab_compile(const char *name, const char *source, size_t size, char *error,
                  size_t error_size);

#endif
