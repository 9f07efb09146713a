/* Whether a source is read from nowhere but memory: only then does a hash of it tell the result. */
#ifndef SMK_CUDA_INCLUDES_H
#define SMK_CUDA_INCLUDES_H

#include <stdbool.h>

#include "gpu.h"

/* True if every #include of the text, as far as can be seen, names one of the headers. In doubt,
 * false. */
bool includes_only(const char *text, const nvrtc_header *headers, int n_headers);

#endif
