/* Whether a source includes only headers that are given in memory. Only then does a hash of these
 * texts determine the result of compiling it. */
#ifndef SMK_CUDA_INCLUDES_H
#define SMK_CUDA_INCLUDES_H

#include <stdbool.h>

#include "gpu.h"

/* True only if every #include of the text certainly names one of the headers. */
bool includes_only(const char *text, const nvrtc_header *headers, int n_headers);

#endif
